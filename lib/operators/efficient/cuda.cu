/* SPDX-License-Identifier: BSD-3-Clause */
/* Efficient attention (Shen et al. 2021): Y = rho_q S, S = rho_k^T V, with rho_q the softmax of Q
 * over channels and rho_k that of K over tokens.
 *
 * Backward, with G = dY and dS = rho_q^T G:
 *   dQ = rho_q o (G S^T - (rho_q o G S^T) 1),   dV = rho_k dS,   dK = rho_k o (V dS^T - 1 t^T),
 * where t_c = sum_j (V dS^T)_jc rho_k,jc is row c of S o dS. */
#include "operators/norms/cuda.cuh"
#include "operators/softmax/cuda.cuh"

/* ---- Memory ---- */

/* Per channel of K the sum of exps, t, the maximum; S and dS. Per chunk: its partial sums, maxima,
 * and part of S or dS. */
typedef struct {
    double *sums, *along;
    real *maxima, *state, *grad_state;
} head_memory;

typedef struct {
    double *sums;
    real *maxima, *state;
} chunk_memory;

/* Per block: rho_q or rho_k, V or dY, a gradient; at the start maxima. */
typedef struct {
    real *rho, *v, *grad;
} tiles;

/* Threads per channel in the search for maxima. */
static __host__ __device__ int64_t threads_per_channel(int64_t d)
{
    return d < BLOCK_THREADS ? BLOCK_THREADS / d : 1;
}

static void sizes(const atn_attention_desc *, const atn_attention_shape *shape, head_sizes *s)
{
    int64_t d = shape->dim, dv = shape->value_dim, width = d > dv ? d : dv;
    int64_t tiles = HEAD_TILE * (d + dv + width), maxima = threads_per_channel(d) * d;
    s->head_reals = double_reals(2 * d) + d + 2 * d * dv;
    s->chunk_reals = double_reals(d) + d + d * dv;
    s->block_reals = tiles > maxima ? tiles : maxima;
}

static __device__ head_memory memory_of(const head &h)
{
    head_memory m;
    m.sums = (double *)h.state;
    m.along = m.sums + h.d;
    m.maxima = (real *)(m.along + h.d);
    m.state = m.maxima + h.d;
    m.grad_state = m.state + h.d * h.dv;
    return m;
}

static __device__ chunk_memory chunk_of(const head &h, int64_t chunk)
{
    chunk_memory c;
    c.sums = (double *)(h.partials + chunk * h.chunk_reals);
    c.maxima = (real *)(c.sums + h.d);
    c.state = c.maxima + h.d;
    return c;
}

static __device__ int64_t state_offset(const head &h)
{
    return double_reals(h.d) + h.d;
}

static __device__ tiles tiles_of(const head &h)
{
    tiles t;
    t.rho = h.work;
    t.v = t.rho + HEAD_TILE * h.d;
    t.grad = t.v + HEAD_TILE * h.dv;
    return t;
}

/* ---- S ---- */

static __device__ void find_maxima(const head &h)
{
    int64_t d = h.d, threads = threads_per_channel(d);
    real *found = h.work, *to = chunk_of(h, h.chunk).maxima;
    BLOCK_EACH (t, threads * d) {
        found[t] = -REAL_INFINITY;
        for (int64_t j = h.first_key + t / d; j < h.end_key; j += threads)
            found[t] = larger(found[t], rows_get(h.k, j, t % d));
    }
    __syncthreads();
    BLOCK_EACH (c, d) {
        real most = found[c];
        for (int64_t t = 1; t < threads; t++)
            most = larger(most, found[t * d + c]);
        to[c] = most;
    }
    __syncthreads();
}

static __device__ void finish_maxima(const head &h)
{
    real *maxima = memory_of(h).maxima;
    BLOCK_EACH (c, h.d) {
        real most = -REAL_INFINITY;
        for (int64_t i = 0; i < h.chunks; i++)
            most = larger(most, chunk_of(h, i).maxima[c]);
        maxima[c] = most;
    }
    __syncthreads();
}

/* rho = exp(k - max) of a tile of keys. */
static __device__ void load_exps(const head &h, const real *maxima, int64_t first, int64_t rows,
                                 real *rho)
{
    BLOCK_EACH (e, rows * h.d)
        rho[e] = real_exp(rows_get(h.k, first + e / h.d, e % h.d) - maxima[e % h.d]);
    __syncthreads();
}

/* The sums of exps, and S before the division by them. */
static __device__ void sum_keys(const head &h)
{
    head_memory m = memory_of(h);
    chunk_memory c = chunk_of(h, h.chunk);
    tiles t = tiles_of(h);
    block_fill(double_reals(h.d), 0, (real *)c.sums);
    block_fill(h.d * h.dv, 0, c.state);
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end_key - j);
        load_exps(h, m.maxima, j, rows, t.rho);
        block_columns(rows, h.d, t.rho, h.d, true, c.sums,
                      [](real weight) { return (double)weight; });
        block_load(h.v, j, rows, h.dv, t.v);
        block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, h.d, h.dv, rows, t.rho, h.d, t.v, h.dv, true,
                   c.state, h.dv);
    }
}

static __device__ void finish_keys(const head &h)
{
    head_memory m = memory_of(h);
    head_add_chunks(h, state_offset(h), h.d * h.dv, m.state);
    BLOCK_EACH (c, h.d) {
        double sum = 0;
        for (int64_t i = 0; i < h.chunks; i++)
            sum += chunk_of(h, i).sums[c];
        m.sums[c] = sum;
    }
    __syncthreads();
    if (h.n_k > 0) /* no keys: S is an empty sum */
        BLOCK_EACH (e, h.d * h.dv)
            m.state[e] = (real)((double)m.state[e] / m.sums[e / h.dv]);
    __syncthreads();
}

/* ---- Forward ---- */

/* A tile of rho_q. */
static __device__ void load_queries(const head &h, int64_t first, int64_t rows, real *rho)
{
    block_load(h.q, first, rows, h.d, rho);
    softmax_rows(rows, h.d, 1, rho, h.d);
}

static __device__ void write_output(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        load_queries(h, i, rows, t.rho);
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, h.d, t.rho, h.d, m.state, h.dv, false,
                   t.v, h.dv);
        block_store(h.out, i, rows, h.dv, t.v);
    }
}

/* ---- Backward ---- */

/* dS over the chunk, and the gradient by its queries. */
static __device__ void backward_queries(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    real *grad_state = chunk_of(h, h.chunk).state;
    block_fill(h.d * h.dv, 0, grad_state);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        load_queries(h, i, rows, t.rho);
        block_load(h.grad_out, i, rows, h.dv, t.v);
        block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, h.d, h.dv, rows, t.rho, h.d, t.v, h.dv, true,
                   grad_state, h.dv);
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, h.d, h.dv, t.v, h.dv, m.state, h.dv, false,
                   t.grad, h.d);
        softmax_rows_backward(rows, h.d, 1, t.rho, t.grad, h.d);
        block_add(h.grad_q, i, rows, h.d, t.grad);
    }
}

/* dS and t. */
static __device__ void finish_queries(const head &h)
{
    head_memory m = memory_of(h);
    head_add_chunks(h, state_offset(h), h.d * h.dv, m.grad_state);
    BLOCK_EACH (c, h.d) {
        double sum = 0;
        for (int64_t e = c * h.dv; e < (c + 1) * h.dv; e++)
            sum += (double)m.state[e] * (double)m.grad_state[e];
        m.along[c] = sum;
    }
    __syncthreads();
}

/* A tile of rho_k. */
static __device__ void load_keys(const head &h, const head_memory &m, int64_t first, int64_t rows,
                                 real *rho)
{
    load_exps(h, m.maxima, first, rows, rho);
    BLOCK_EACH (e, rows * h.d)
        rho[e] = (real)((double)rho[e] / m.sums[e % h.d]);
    __syncthreads();
}

/* The gradients by the chunk's keys and values. */
static __device__ void backward_keys(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end_key - j);
        load_keys(h, m, j, rows, t.rho);
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, h.d, t.rho, h.d, m.grad_state, h.dv,
                   false, t.grad, h.dv);
        block_add(h.grad_v, j, rows, h.dv, t.grad);
        block_load(h.v, j, rows, h.dv, t.v);
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, h.d, h.dv, t.v, h.dv, m.grad_state, h.dv,
                   false, t.grad, h.d);
        BLOCK_EACH (e, rows * h.d)
            t.grad[e] = (real)((double)t.rho[e] * ((double)t.grad[e] - m.along[e % h.d]));
        __syncthreads();
        block_add(h.grad_k, j, rows, h.d, t.grad);
    }
}

static void make_state(head_launch *l)
{
    OVER_CHUNKS(l, find_maxima);
    OVER_HEADS(l, finish_maxima);
    OVER_CHUNKS(l, sum_keys);
    OVER_HEADS(l, finish_keys);
}

static void forward(head_launch *l)
{
    make_state(l);
    OVER_CHUNKS(l, write_output);
}

static void backward(head_launch *l)
{
    make_state(l);
    OVER_CHUNKS(l, backward_queries);
    OVER_HEADS(l, finish_queries);
    OVER_CHUNKS(l, backward_keys);
}

extern "C" const head_operator R(cuda_operator_efficient) = {sizes, forward, backward};
