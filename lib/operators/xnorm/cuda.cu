/* SPDX-License-Identifier: BSD-3-Clause */
/* UFO-ViT's cross-normalisation (Eq. 4-8): T = K^T V summed over chunks of keys, then Y = q^ T^ a
 * tile of queries at a time.
 *
 * Backward, with q_ and T_ normalised without gamma, Y = gamma^2 q_ T_, and D = q_^T dY:
 *   dgamma = 2 gamma D.T_,   dT_ = gamma^2 D,   dq_ = gamma^2 dY T_^T,   dK = V dT^T,   dV = K dT,
 * and through a norm, x_ = x / max(|x|, e):   dx = (dx_ - (dx_.x_) x_) / |x|, or dx_ / e. */
#include "operators/norms/cuda.cuh"

/* ---- Memory ---- */

/* Per head: divisors of T's lines; T, and D or dT. Per chunk: T or D. Per block: divisors of a tile
 * of queries; tiles of Q or K, of V or dY, and of a gradient. */
typedef struct {
    double *divisors, *varies;
    real *sum, *grad_sum;
} head_memory;

typedef struct {
    double *divisors, *varies;
    real *q, *v, *grad;
} tiles;

/* The lines of T that are normalised: columns over d, or rows over d_v. */
static __host__ __device__ line_layout lines_of(const atn_attention_desc *desc, int64_t d,
                                                int64_t dv)
{
    line_layout columns = {dv, 1, d, dv}, rows = {d, dv, dv, 1};
    return desc->xnorm.axis == ATN_XNORM_COLUMNS ? columns : rows;
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape, head_sizes *s)
{
    int64_t d = shape->dim, dv = shape->value_dim, width = d > dv ? d : dv;
    s->head_reals = double_reals(2 * lines_of(desc, d, dv).lines) + 2 * d * dv;
    s->chunk_reals = d * dv;
    s->block_reals = double_reals(2 * HEAD_TILE) + HEAD_TILE * (d + dv + width);
}

static __device__ head_memory memory_of(const head &h)
{
    head_memory m;
    int64_t lines = lines_of(h.desc, h.d, h.dv).lines;
    m.divisors = (double *)h.state;
    m.varies = m.divisors + lines;
    m.sum = (real *)(m.varies + lines);
    m.grad_sum = m.sum + h.d * h.dv;
    return m;
}

static __device__ tiles tiles_of(const head &h)
{
    tiles t;
    t.divisors = (double *)h.work;
    t.varies = t.divisors + HEAD_TILE;
    t.q = (real *)(t.varies + HEAD_TILE);
    t.v = t.q + HEAD_TILE * h.d;
    t.grad = t.v + HEAD_TILE * h.dv;
    return t;
}

static __device__ double gamma_of(const head &h)
{
    const atn_tensor &gamma = h.desc->xnorm.gamma;
    return gamma.data ? (double)rows_get(head_parameter(gamma, h.index), 0, 0) : 1;
}

/* ---- T ---- */

static __device__ void sum_keys(const head &h)
{
    tiles t = tiles_of(h);
    real *sum = head_partial(h);
    block_fill(h.d * h.dv, 0, sum);
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end_key - j);
        block_load(h.k, j, rows, h.d, t.q);
        block_load(h.v, j, rows, h.dv, t.v);
        block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, h.d, h.dv, rows, t.q, h.d, t.v, h.dv, true, sum,
                   h.dv);
    }
}

/* T, and then its lines normalised. */
static __device__ void make_state(const head &h, double gamma)
{
    head_memory m = memory_of(h);
    head_add_chunks(h, 0, h.d * h.dv, m.sum);
    lines_normalise(lines_of(h.desc, h.d, h.dv), gamma, h.desc->xnorm.epsilon, m.sum, m.divisors,
                    m.varies);
}

/* ---- Forward ---- */

static __device__ void finish_keys(const head &h)
{
    make_state(h, gamma_of(h));
}

/* A tile of queries normalised, and their divisors. */
static __device__ void load_queries(const head &h, const tiles &t, double gamma, int64_t first,
                                    int64_t rows)
{
    line_layout queries = {rows, h.d, h.d, 1};
    block_load(h.q, first, rows, h.d, t.q);
    lines_normalise(queries, gamma, h.desc->xnorm.epsilon, t.q, t.divisors, t.varies);
}

static __device__ void write_output(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    double gamma = gamma_of(h);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        load_queries(h, t, gamma, i, rows);
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, h.d, t.q, h.d, m.sum, h.dv, false, t.v,
                   h.dv);
        block_store(h.out, i, rows, h.dv, t.v);
    }
}

/* ---- Backward ---- */

static __device__ void finish_keys_without_gamma(const head &h)
{
    make_state(h, 1);
}

/* D over the chunk, and the gradient by its queries. */
static __device__ void backward_queries(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    double gamma = gamma_of(h);
    real *grad_sum = head_partial(h);
    block_fill(h.d * h.dv, 0, grad_sum);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        line_layout queries = {rows, h.d, h.d, 1};
        load_queries(h, t, 1, i, rows);
        block_load(h.grad_out, i, rows, h.dv, t.v);
        block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, h.d, h.dv, rows, t.q, h.d, t.v, h.dv, true,
                   grad_sum, h.dv);
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, h.d, h.dv, t.v, h.dv, m.sum, h.dv, false,
                   t.grad, h.d);
        lines_backward(queries, gamma * gamma, t.q, t.divisors, t.varies, t.grad);
        block_add(h.grad_q, i, rows, h.d, t.grad);
    }
}

/* dgamma, and dT from D in place. */
static __device__ void finish_queries(const head &h)
{
    if (h.n == 0) /* no output, whatever the norms of T are */
        return;
    head_memory m = memory_of(h);
    double gamma = gamma_of(h), sum = 0;
    real *grad_gamma = h.grad_parameters[ATN_PARAMETER_GAMMA];
    head_add_chunks(h, 0, h.d * h.dv, m.grad_sum);
    BLOCK_EACH (e, h.d * h.dv)
        sum += (double)m.grad_sum[e] * (double)m.sum[e];
    sum = block_sum(sum);
    if (grad_gamma && threadIdx.x == 0)
        *grad_gamma += (real)(2 * gamma * sum);
    lines_backward(lines_of(h.desc, h.d, h.dv), gamma * gamma, m.sum, m.divisors, m.varies,
                   m.grad_sum);
}

/* The gradients by the chunk's keys and values. */
static __device__ void backward_keys(const head &h)
{
    if (h.n == 0)
        return;
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end_key - j);
        block_load(h.k, j, rows, h.d, t.q);
        block_load(h.v, j, rows, h.dv, t.v);
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, h.d, h.dv, t.v, h.dv, m.grad_sum, h.dv,
                   false, t.grad, h.d);
        block_add(h.grad_k, j, rows, h.d, t.grad);
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, h.d, t.q, h.d, m.grad_sum, h.dv, false,
                   t.grad, h.dv);
        block_add(h.grad_v, j, rows, h.dv, t.grad);
    }
}

static void forward(head_launch *l)
{
    OVER_CHUNKS(l, sum_keys);
    OVER_HEADS(l, finish_keys);
    OVER_CHUNKS(l, write_output);
}

static void backward(head_launch *l)
{
    OVER_CHUNKS(l, sum_keys);
    OVER_HEADS(l, finish_keys_without_gamma);
    OVER_CHUNKS(l, backward_queries);
    OVER_HEADS(l, finish_queries);
    OVER_CHUNKS(l, backward_keys);
}

extern "C" const head_operator R(cuda_operator_xnorm) = {sizes, forward, backward};
