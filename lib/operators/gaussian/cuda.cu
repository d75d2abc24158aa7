/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact Gaussian kernel attention, SOFT (IJCV) Appendix D: Y = K(Q,K) V, in tiles of queries and
 * keys. */
#include "cuda/heads.cuh"
#include "kernel/cuda.cuh"

/* Tiles in a block's work. q holds queries or dY, k keys or values; rest is Y, or dY and dQ, or dK
 * and dV. Norms are kept if the distance uses them. */
typedef struct {
    gaussian kernel;
    real *q, *k, *weights, *query_norms, *key_norms, *rest;
} tiles;

static __host__ __device__ int64_t norm_reals(const atn_attention_desc *desc)
{
    return desc->distance == ATN_DISTANCE_DIRECT ? 0 : HEAD_TILE;
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape, head_sizes *s)
{
    int64_t d = shape->dim, dv = shape->value_dim;
    s->head_reals = 0;
    s->chunk_reals = 0;
    s->block_reals = 2 * HEAD_TILE * larger_of(d, dv) + HEAD_TILE * HEAD_TILE +
                     2 * norm_reals(desc) + HEAD_TILE * (d + dv);
}

static __device__ tiles tiles_of(const head &h)
{
    int64_t width = larger_of(h.d, h.dv);
    real *free = h.work;
    tiles t;
    t.kernel = gaussian_of(*h.desc, h.heads, h.d);
    t.q = head_take(&free, HEAD_TILE * width);
    t.k = head_take(&free, HEAD_TILE * width);
    t.weights = head_take(&free, HEAD_TILE * HEAD_TILE);
    t.query_norms = head_take(&free, norm_reals(h.desc));
    t.key_norms = head_take(&free, norm_reals(h.desc));
    t.rest = free;
    return t;
}

static __device__ point_set load_queries(const head &h, const tiles &t, int64_t i, int64_t rows)
{
    block_load(h.q, i, rows, h.d, t.q);
    return gaussian_points(t.kernel, rows, t.q, h.d, t.query_norms);
}

static __device__ point_set load_keys(const head &h, const tiles &t, int64_t j, int64_t keys)
{
    block_load(h.k, j, keys, h.d, t.k);
    return gaussian_points(t.kernel, keys, t.k, h.d, t.key_norms);
}

static __device__ void write_output(const head &h)
{
    tiles t = tiles_of(h);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        point_set queries = load_queries(h, t, i, rows);
        block_fill(rows * h.dv, 0, t.rest);
        for (int64_t j = 0; j < h.n_k; j += HEAD_TILE) {
            int64_t count = head_smaller(HEAD_TILE, h.n_k - j);
            point_set keys = load_keys(h, t, j, count);
            gaussian_tile(t.kernel, queries, keys, t.weights, HEAD_TILE);
            block_load(h.v, j, count, h.dv, t.k);
            block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, count, t.weights, HEAD_TILE, t.k,
                       h.dv, true, t.rest, h.dv);
        }
        block_store(h.out, i, rows, h.dv, t.rest);
    }
}

/* K becomes W, W_ij = 2 s K_ij dY_i.v_j:  dq_i -= sum_j W_ij (q_i - k_j), dk_j the opposite. */
static __device__ void slope(const head &h, const tiles &t, int64_t rows, int64_t keys,
                             const real *dy, const real *v)
{
    real two_s = (real)(2 * t.kernel.s), *weights = t.weights;
    block_gemm_each(
        h.tf32, AS_IT_IS, TRANSPOSED, rows, keys, h.dv, dy, h.dv, v, h.dv,
        [&](int64_t i, int64_t j, real sum) { weights[i * HEAD_TILE + j] *= two_s * sum; });
}

static __device__ void backward_queries(const head &h)
{
    tiles t = tiles_of(h);
    real *dy = t.rest, *grad = dy + HEAD_TILE * h.dv;
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        point_set queries = load_queries(h, t, i, rows);
        block_load(h.grad_out, i, rows, h.dv, dy);
        block_fill(rows * h.d, 0, grad);
        for (int64_t j = 0; j < h.n_k; j += HEAD_TILE) {
            int64_t count = head_smaller(HEAD_TILE, h.n_k - j);
            point_set keys = load_keys(h, t, j, count);
            gaussian_tile(t.kernel, queries, keys, t.weights, HEAD_TILE);
            block_load(h.v, j, count, h.dv, t.k);
            slope(h, t, rows, count, dy, t.k);
            block_load(h.k, j, count, h.d, t.k);
            gaussian_backward(t.kernel, AS_IT_IS, t.weights, HEAD_TILE, queries, keys, grad, h.d);
        }
        block_add(h.grad_q, i, rows, h.d, grad);
    }
}

/* Adds the contribution of queries i .. i + rows - 1 to dK and dV of keys j .. j + count - 1. */
static __device__ void backward_key_tile(const head &h, const tiles &t, int64_t i, int64_t rows,
                                         int64_t j, int64_t count, real *grad_k, real *grad_v)
{
    point_set queries = load_queries(h, t, i, rows), keys = load_keys(h, t, j, count);
    gaussian_tile(t.kernel, queries, keys, t.weights, HEAD_TILE);
    block_load(h.grad_out, i, rows, h.dv, t.q);
    block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, count, h.dv, rows, t.weights, HEAD_TILE, t.q, h.dv,
               true, grad_v, h.dv);
    block_load(h.v, j, count, h.dv, t.k);
    slope(h, t, rows, count, t.q, t.k);
    block_load(h.q, i, rows, h.d, t.q);
    block_load(h.k, j, count, h.d, t.k);
    gaussian_backward(t.kernel, TRANSPOSED, t.weights, HEAD_TILE, keys, queries, grad_k, h.d);
}

static __device__ void backward_keys(const head &h)
{
    tiles t = tiles_of(h);
    real *grad_k = t.rest, *grad_v = grad_k + HEAD_TILE * h.d;
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t count = head_smaller(HEAD_TILE, h.end_key - j);
        block_fill(count * h.d, 0, grad_k);
        block_fill(count * h.dv, 0, grad_v);
        for (int64_t i = 0; i < h.n; i += HEAD_TILE)
            backward_key_tile(h, t, i, head_smaller(HEAD_TILE, h.n - i), j, count, grad_k, grad_v);
        block_add(h.grad_k, j, count, h.d, grad_k);
        block_add(h.grad_v, j, count, h.dv, grad_v);
    }
}

static void forward(head_launch *l)
{
    OVER_CHUNKS(l, write_output);
}

static void backward(head_launch *l)
{
    OVER_CHUNKS(l, backward_queries);
    OVER_CHUNKS(l, backward_keys);
}

extern "C" const head_operator R(cuda_operator_gaussian) = {sizes, forward, backward};
