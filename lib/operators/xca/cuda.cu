/* SPDX-License-Identifier: BSD-3-Clause */
/* Cross-covariance attention (XCiT, El-Nouby et al. 2021): Y = V A^T, A = softmax(tau C), C = Q^^T
 * K^, over the tokens of which both query and key are valid.
 *
 * Backward, with G = dY and L = tau C:
 *   dV = G A,   dA = G^T V,   dL = A o (dA - (A o dA) 1),   dtau = dL.C,   dC = tau dL,
 *   dQ^ = K^ dC^T,   dK^ = Q^ dC. */
#include "operators/norms/cuda.cuh"
#include "operators/softmax/cuda.cuh"

/* ---- Memory ---- */

/* Per head: norms of Q and K, `along` of both; where there may be masks, the tokens of which both
 * are valid; C, A, dA or dC. Per chunk: two columns' partial norms or `along`; C or dA. Per block:
 * tiles of Q or G, of K or V, of a gradient; at the start the work of columns_sum. */
typedef struct {
    column_norms queries, keys;
    double *along_queries, *along_keys;
    int64_t *pairs; /* their number, then their positions */
    real *covariance, *weights, *slopes;
} head_memory;

typedef struct {
    real *q, *k, *grad;
} tiles;

static __host__ __device__ int64_t pair_count(const atn_attention_desc *desc, int64_t n)
{
    return desc->padding ? n + 1 : 0;
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape, head_sizes *s)
{
    static_assert(sizeof(int64_t) == sizeof(double), "positions are kept among the doubles");
    int64_t d = shape->dim, tiles = 3 * HEAD_TILE * d;
    int64_t norms = double_reals(columns_work_doubles(d));
    s->head_reals =
        double_reals(2 * columns_doubles(d) + 2 * d + pair_count(desc, shape->tokens)) + 3 * d * d;
    s->chunk_reals = double_reals(2 * columns_partial_doubles(d)) + d * d;
    s->block_reals = tiles > norms ? tiles : norms;
}

static __device__ head_memory memory_of(const head &h)
{
    head_memory m;
    double *doubles = (double *)h.state;
    m.queries = columns_at(ATN_SIMA_L2, h.d, doubles);
    m.keys = columns_at(ATN_SIMA_L2, h.d, doubles + columns_doubles(h.d));
    m.along_queries = doubles + 2 * columns_doubles(h.d);
    m.along_keys = m.along_queries + h.d;
    m.pairs = (int64_t *)(m.along_keys + h.d);
    m.covariance = (real *)(m.pairs + pair_count(h.desc, h.length));
    m.weights = m.covariance + h.d * h.d;
    m.slopes = m.weights + h.d * h.d;
    return m;
}

static __device__ tiles tiles_of(const head &h)
{
    tiles t;
    t.q = h.work;
    t.k = t.q + HEAD_TILE * h.d;
    t.grad = t.k + HEAD_TILE * h.d;
    return t;
}

/* A chunk's partial norms, or its `along`; the keys' after the queries'; then C or dA. */
static __device__ double *partial_of_keys(const head &h)
{
    return (double *)head_partial(h) + columns_partial_doubles(h.d);
}

static __device__ int64_t keys_offset(const head &h)
{
    return double_reals(columns_partial_doubles(h.d));
}

static __device__ int64_t square_offset(const head &h)
{
    return double_reals(2 * columns_partial_doubles(h.d));
}

/* ---- Masks ---- */

/* Whether the key at a position is not padded; positions ascend. */
static __device__ bool has_key(const head &h, int64_t position)
{
    int64_t low = 0, high = h.n_k;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (h.k.positions[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low < h.n_k && h.k.positions[low] == position;
}

/* Lists the tokens of which both are valid, in order, by one warp. */
static __device__ void list_pairs(const head &h)
{
    int64_t *pairs = memory_of(h).pairs, count = 0;
    unsigned lane = threadIdx.x;
    for (int64_t i = 0; lane < 32 && i < h.n; i += 32) {
        int64_t position = i + lane < h.n ? h.q.positions[i + lane] : -1;
        bool there = position >= 0 && has_key(h, position);
        unsigned all = __ballot_sync(0xffffffffu, there);
        if (there)
            pairs[1 + count + __popc(all & ((1u << lane) - 1))] = position;
        count += __popc(all);
    }
    if (threadIdx.x == 0)
        pairs[0] = count;
    __syncthreads();
}

/* Clears the rows of queries whose key is padded. */
static __device__ void clear_output(const head &h)
{
    BLOCK_EACH (e, (h.end - h.first) * h.d)
        rows_set(h.out, h.first + e / h.d, e % h.d, 0);
    __syncthreads();
}

/* The head restricted to the tokens of which both are valid. */
static __device__ const head &paired(const head &all)
{
    __shared__ head h;
    if (threadIdx.x == 0) {
        h = all;
        if (all.q.positions) {
            const int64_t *pairs = memory_of(all).pairs;
            token_rows *const rows[] = {&h.q,        &h.k,      &h.v,      &h.out,
                                        &h.grad_out, &h.grad_q, &h.grad_k, &h.grad_v};
            for (token_rows *r : rows)
                r->positions = pairs + 1;
            h.n = h.n_k = pairs[0];
            h.first = h.first_key = head_smaller(all.first, h.n);
            h.end = h.end_key = head_smaller(all.end, h.n);
        }
    }
    __syncthreads();
    return h;
}

/* ---- C and A ---- */

static __device__ void sum_norms(const head &all)
{
    const head &h = paired(all);
    columns_sum(ATN_SIMA_L2, h.d, h.q, h.first, h.end, (double *)head_partial(h), (double *)h.work);
    columns_sum(ATN_SIMA_L2, h.d, h.k, h.first, h.end, partial_of_keys(h), (double *)h.work);
}

static __device__ void finish_norms(const head &h)
{
    head_memory m = memory_of(h);
    columns_finish(h, m.queries, 0, h.desc->xca.epsilon);
    columns_finish(h, m.keys, keys_offset(h), h.desc->xca.epsilon);
}

static __device__ void sum_covariance(const head &all)
{
    const head &h = paired(all);
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    real *sum = head_partial(h) + square_offset(h);
    block_fill(h.d * h.d, 0, sum);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        columns_load(m.queries, h.q, i, rows, t.q);
        columns_load(m.keys, h.k, i, rows, t.k);
        block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, h.d, h.d, rows, t.q, h.d, t.k, h.d, true, sum,
                   h.d);
    }
}

static __device__ double temperature_of(const head &h)
{
    const atn_tensor &tau = h.desc->xca.temperature;
    return tau.data ? (double)rows_get(head_parameter(tau, h.index), 0, 0) : 1;
}

static __device__ void finish_covariance(const head &h)
{
    head_memory m = memory_of(h);
    head_add_chunks(h, square_offset(h), h.d * h.d, m.covariance);
    BLOCK_EACH (e, h.d * h.d)
        m.weights[e] = m.covariance[e];
    __syncthreads();
    softmax_rows(h.d, h.d, temperature_of(h), m.weights, h.d);
}

/* ---- Forward ---- */

static __device__ void write_output(const head &all)
{
    const head &h = paired(all);
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        block_load(h.v, i, rows, h.d, t.k);
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, h.d, h.d, t.k, h.d, m.weights, h.d, false,
                   t.q, h.d);
        block_store(h.out, i, rows, h.d, t.q);
    }
}

/* ---- Backward ---- */

/* dA over the chunk, and the gradient by its values. */
static __device__ void backward_values(const head &all)
{
    const head &h = paired(all);
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    real *slopes = head_partial(h) + square_offset(h);
    block_fill(h.d * h.d, 0, slopes);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        block_load(h.grad_out, i, rows, h.d, t.q);
        block_load(h.v, i, rows, h.d, t.k);
        block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, h.d, h.d, rows, t.q, h.d, t.k, h.d, true, slopes,
                   h.d);
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.d, h.d, t.q, h.d, m.weights, h.d, false,
                   t.grad, h.d);
        block_add(h.grad_v, i, rows, h.d, t.grad);
    }
}

/* dC from dA in place, and dtau. */
static __device__ void finish_values(const head &h)
{
    head_memory m = memory_of(h);
    double tau = temperature_of(h), sum = 0;
    real *grad_tau = h.grad_parameters[ATN_PARAMETER_TEMPERATURE];
    head_add_chunks(h, square_offset(h), h.d * h.d, m.slopes);
    softmax_rows_backward(h.d, h.d, 1, m.weights, m.slopes, h.d);
    BLOCK_EACH (e, h.d * h.d) {
        sum += (double)m.slopes[e] * (double)m.covariance[e];
        m.slopes[e] = (real)((double)m.slopes[e] * tau);
    }
    sum = block_sum(sum);
    if (grad_tau && threadIdx.x == 0)
        *grad_tau += (real)sum;
}

/* The gradients by the chunk's queries and keys, without the norms' term. */
static __device__ void backward_tokens(const head &all)
{
    const head &h = paired(all);
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    double *along_queries = (double *)head_partial(h), *along_keys = partial_of_keys(h);
    block_fill(double_reals(h.d), 0, (real *)along_queries);
    block_fill(double_reals(h.d), 0, (real *)along_keys);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        columns_load(m.queries, h.q, i, rows, t.q);
        columns_load(m.keys, h.k, i, rows, t.k);
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, h.d, h.d, t.k, h.d, m.slopes, h.d, false,
                   t.grad, h.d);
        columns_backward_partial(m.queries, rows, t.q, t.grad, along_queries, h.grad_q, i);
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.d, h.d, t.q, h.d, m.slopes, h.d, false,
                   t.grad, h.d);
        columns_backward_partial(m.keys, rows, t.k, t.grad, along_keys, h.grad_k, i);
    }
}

static __device__ void finish_along(const head &h)
{
    head_memory m = memory_of(h);
    columns_add_along(h, h.d, 0, m.along_queries);
    columns_add_along(h, h.d, keys_offset(h), m.along_keys);
}

static __device__ void finish_tokens(const head &all)
{
    const head &h = paired(all);
    head_memory m = memory_of(h);
    columns_backward_finish(m.queries, m.along_queries, h.q, h.first, h.end, h.grad_q);
    columns_backward_finish(m.keys, m.along_keys, h.k, h.first, h.end, h.grad_k);
}

/* ---- Both directions ---- */

static void make_weights(head_launch *l)
{
    if (l->call.masked)
        OVER_HEADS(l, list_pairs);
    OVER_CHUNKS(l, sum_norms);
    OVER_HEADS(l, finish_norms);
    OVER_CHUNKS(l, sum_covariance);
    OVER_HEADS(l, finish_covariance);
}

static void forward(head_launch *l)
{
    make_weights(l);
    if (l->call.masked)
        OVER_CHUNKS(l, clear_output);
    OVER_CHUNKS(l, write_output);
}

static void backward(head_launch *l)
{
    make_weights(l);
    OVER_CHUNKS(l, backward_values);
    OVER_HEADS(l, finish_values);
    OVER_CHUNKS(l, backward_tokens);
    OVER_HEADS(l, finish_along);
    OVER_CHUNKS(l, finish_tokens);
}

extern "C" const head_operator R(cuda_operator_xca) = {sizes, forward, backward};
