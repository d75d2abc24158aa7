/* SPDX-License-Identifier: BSD-3-Clause */
/* SimA (Eq. 1-2): Y = Q^ K^^T V with normalised columns, either product first.
 *
 * Backward, with G = dY, S = K^^T V and dS = Q^^T G:
 *   dQ^ = G S^T = (G V^T) K^,   dK^ = V dS^T = (G V^T)^T Q^,   dV = K^ dS = (Q^ K^^T)^T G. */
#include "operators/norms/cuda.cuh"
#include "operators/sima/plan.h"

/* ---- Memory ---- */

/* Per head: norms of Q and K, `along` of both, S, dS. Per chunk: two columns' partial norms or
 * `along`, S, dS. Per block: tiles of Q^ and K^, of V or dY, of a gradient, of weights and slopes;
 * at the start the work of columns_sum. */
typedef struct {
    column_norms queries, keys;
    double *along_queries, *along_keys;
    real *sum, *grad_sum;
} head_memory;

typedef struct {
    real *q, *k, *v, *g, *grad, *weights, *slopes;
} tiles;

static void sizes(const atn_attention_desc *, const atn_attention_shape *shape, head_sizes *s)
{
    int64_t d = shape->dim, dv = shape->value_dim, width = larger_of(d, dv);
    s->head_reals = double_reals(2 * columns_doubles(d) + 2 * d) + 2 * d * dv;
    s->chunk_reals = double_reals(2 * columns_partial_doubles(d)) + 2 * d * dv;
    s->block_reals =
        larger_of(2 * HEAD_TILE * (d + dv) + HEAD_TILE * width + 2 * HEAD_TILE * HEAD_TILE,
                  double_reals(columns_work_doubles(d)));
}

static __device__ head_memory memory_of(const head &h)
{
    head_memory m;
    double *doubles = (double *)h.state;
    m.queries = columns_at(h.desc->sima.norm, h.d, doubles);
    m.keys = columns_at(h.desc->sima.norm, h.d, doubles + columns_doubles(h.d));
    m.along_queries = doubles + 2 * columns_doubles(h.d);
    m.along_keys = m.along_queries + h.d;
    m.sum = (real *)(m.along_keys + h.d);
    m.grad_sum = m.sum + h.d * h.dv;
    return m;
}

static __device__ tiles tiles_of(const head &h)
{
    tiles t;
    real *free = h.work;
    t.q = head_take(&free, HEAD_TILE * h.d);
    t.k = head_take(&free, HEAD_TILE * h.d);
    t.v = head_take(&free, HEAD_TILE * h.dv);
    t.g = head_take(&free, HEAD_TILE * h.dv);
    t.weights = head_take(&free, HEAD_TILE * HEAD_TILE);
    t.slopes = head_take(&free, HEAD_TILE * HEAD_TILE);
    t.grad = free;
    return t;
}

/* A chunk's partial norms, or its `along`; the keys' after the queries'; then S and dS. */
static __device__ double *partial_of_keys(const head &h)
{
    return (double *)head_partial(h) + columns_partial_doubles(h.d);
}

static __device__ int64_t keys_offset(const head &h)
{
    return double_reals(columns_partial_doubles(h.d));
}

static __device__ int64_t sum_offset(const head &h)
{
    return double_reals(2 * columns_partial_doubles(h.d));
}

/* ---- Norms ---- */

static __device__ void sum_norms(const head &h)
{
    atn_sima_norm norm = h.desc->sima.norm;
    columns_sum(norm, h.d, h.q, h.first, h.end, (double *)head_partial(h), (double *)h.work);
    columns_sum(norm, h.d, h.k, h.first_key, h.end_key, partial_of_keys(h), (double *)h.work);
}

static __device__ void finish_norms(const head &h)
{
    head_memory m = memory_of(h);
    columns_finish(h, m.queries, 0, h.desc->sima.epsilon);
    columns_finish(h, m.keys, keys_offset(h), h.desc->sima.epsilon);
}

/* ---- Channels first: S = K^^T V ---- */

static __device__ void sum_keys(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    real *sum = head_partial(h) + sum_offset(h);
    block_fill(h.d * h.dv, 0, sum);
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end_key - j);
        columns_load(m.keys, h.k, j, rows, t.k);
        block_load(h.v, j, rows, h.dv, t.v);
        block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, h.d, h.dv, rows, t.k, h.d, t.v, h.dv, true, sum,
                   h.dv);
    }
}

static __device__ void finish_keys(const head &h)
{
    head_add_chunks(h, sum_offset(h), h.d * h.dv, memory_of(h).sum);
}

static __device__ void write_output(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        columns_load(m.queries, h.q, i, rows, t.q);
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, h.d, t.q, h.d, m.sum, h.dv, false, t.v,
                   h.dv);
        block_store(h.out, i, rows, h.dv, t.v);
    }
}

/* dS over the chunk, and dQ without the norms' term. */
static __device__ void backward_queries(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    double *along = (double *)head_partial(h);
    real *grad_sum = head_partial(h) + sum_offset(h) + h.d * h.dv;
    block_fill(h.d * h.dv, 0, grad_sum);
    block_fill(double_reals(h.d), 0, (real *)along);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        columns_load(m.queries, h.q, i, rows, t.q);
        block_load(h.grad_out, i, rows, h.dv, t.g);
        block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, h.d, h.dv, rows, t.q, h.d, t.g, h.dv, true,
                   grad_sum, h.dv);
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, h.d, h.dv, t.g, h.dv, m.sum, h.dv, false,
                   t.grad, h.d);
        columns_backward_partial(m.queries, rows, t.q, t.grad, along, h.grad_q, i);
    }
}

static __device__ void finish_queries(const head &h)
{
    head_add_chunks(h, sum_offset(h) + h.d * h.dv, h.d * h.dv, memory_of(h).grad_sum);
}

static __device__ void backward_keys(const head &h)
{
    if (h.n == 0) /* no output, so a dead channel of K does not matter */
        return;
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    double *along = partial_of_keys(h);
    block_fill(double_reals(h.d), 0, (real *)along);
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end_key - j);
        columns_load(m.keys, h.k, j, rows, t.k);
        block_load(h.v, j, rows, h.dv, t.v);
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, h.d, t.k, h.d, m.grad_sum, h.dv, false,
                   t.g, h.dv);
        block_add(h.grad_v, j, rows, h.dv, t.g);
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, h.d, h.dv, t.v, h.dv, m.grad_sum, h.dv,
                   false, t.grad, h.d);
        columns_backward_partial(m.keys, rows, t.k, t.grad, along, h.grad_k, j);
    }
}

/* ---- Tokens first: Q^ K^^T, a tile at a time ---- */

/* weights = Q^ K^^T of the loaded tiles. */
static __device__ void weigh(const head &h, const tiles &t, int64_t rows, int64_t keys)
{
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, keys, h.d, t.q, h.d, t.k, h.d, false, t.weights,
               HEAD_TILE);
}

static __device__ void write_output_by_tokens(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        columns_load(m.queries, h.q, i, rows, t.q);
        block_fill(rows * h.dv, 0, t.g);
        for (int64_t j = 0; j < h.n_k; j += HEAD_TILE) {
            int64_t keys = head_smaller(HEAD_TILE, h.n_k - j);
            columns_load(m.keys, h.k, j, keys, t.k);
            block_load(h.v, j, keys, h.dv, t.v);
            weigh(h, t, rows, keys);
            block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, keys, t.weights, HEAD_TILE, t.v,
                       h.dv, true, t.g, h.dv);
        }
        block_store(h.out, i, rows, h.dv, t.g);
    }
}

/* slopes = dY V^T of the loaded tiles. */
static __device__ void slope(const head &h, const tiles &t, int64_t rows, int64_t keys)
{
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, keys, h.dv, t.g, h.dv, t.v, h.dv, false,
               t.slopes, HEAD_TILE);
}

static __device__ void backward_queries_by_tokens(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    double *along = (double *)head_partial(h);
    block_fill(double_reals(h.d), 0, (real *)along);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        columns_load(m.queries, h.q, i, rows, t.q);
        block_load(h.grad_out, i, rows, h.dv, t.g);
        block_fill(rows * h.d, 0, t.grad);
        for (int64_t j = 0; j < h.n_k; j += HEAD_TILE) {
            int64_t keys = head_smaller(HEAD_TILE, h.n_k - j);
            columns_load(m.keys, h.k, j, keys, t.k);
            block_load(h.v, j, keys, h.dv, t.v);
            slope(h, t, rows, keys);
            block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.d, keys, t.slopes, HEAD_TILE, t.k, h.d,
                       true, t.grad, h.d);
        }
        columns_backward_partial(m.queries, rows, t.q, t.grad, along, h.grad_q, i);
    }
}

/* dV and dK of the chunk's keys, one tile after the other with all queries. The tile of V is
 * overwritten by dV after the last query. */
static __device__ void backward_keys_by_tokens(const head &h)
{
    if (h.n == 0) /* no output, so a dead channel of K does not matter */
        return;
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    double *along = partial_of_keys(h);
    block_fill(double_reals(h.d), 0, (real *)along);
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t keys = head_smaller(HEAD_TILE, h.end_key - j);
        columns_load(m.keys, h.k, j, keys, t.k);
        block_load(h.v, j, keys, h.dv, t.v);
        block_fill(keys * h.d, 0, t.grad);
        for (int64_t i = 0; i < h.n; i += HEAD_TILE) {
            int64_t rows = head_smaller(HEAD_TILE, h.n - i);
            columns_load(m.queries, h.q, i, rows, t.q);
            block_load(h.grad_out, i, rows, h.dv, t.g);
            slope(h, t, rows, keys);
            block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, keys, h.d, rows, t.slopes, HEAD_TILE, t.q, h.d,
                       true, t.grad, h.d);
        }
        columns_backward_partial(m.keys, keys, t.k, t.grad, along, h.grad_k, j);
    }
}

static __device__ void grad_values_by_tokens(const head &h)
{
    head_memory m = memory_of(h);
    tiles t = tiles_of(h);
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t keys = head_smaller(HEAD_TILE, h.end_key - j);
        columns_load(m.keys, h.k, j, keys, t.k);
        block_fill(keys * h.dv, 0, t.v);
        for (int64_t i = 0; i < h.n; i += HEAD_TILE) {
            int64_t rows = head_smaller(HEAD_TILE, h.n - i);
            columns_load(m.queries, h.q, i, rows, t.q);
            block_load(h.grad_out, i, rows, h.dv, t.g);
            weigh(h, t, rows, keys);
            block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, keys, h.dv, rows, t.weights, HEAD_TILE, t.g,
                       h.dv, true, t.v, h.dv);
        }
        block_add(h.grad_v, j, keys, h.dv, t.v);
    }
}

/* ---- Both orders ---- */

static __device__ void finish_along(const head &h)
{
    head_memory m = memory_of(h);
    columns_add_along(h, h.d, 0, m.along_queries);
    columns_add_along(h, h.d, keys_offset(h), m.along_keys);
}

static __device__ void finish_query_gradient(const head &h)
{
    head_memory m = memory_of(h);
    columns_backward_finish(m.queries, m.along_queries, h.q, h.first, h.end, h.grad_q);
}

/* A pass of its own, because the rows may also be the queries'. */
static __device__ void finish_key_gradient(const head &h)
{
    if (h.n == 0) /* no output, so a dead channel of K does not matter */
        return;
    head_memory m = memory_of(h);
    columns_backward_finish(m.keys, m.along_keys, h.k, h.first_key, h.end_key, h.grad_k);
}

static bool tokens_first(const head_launch *l)
{
    const atn_attention_shape *s = &l->call.plan.shape;
    return core_sima_tokens_first(&l->call.plan.desc.sima, s->tokens, s->key_tokens, s->dim,
                                  s->value_dim);
}

static void forward(head_launch *l)
{
    OVER_CHUNKS(l, sum_norms);
    OVER_HEADS(l, finish_norms);
    if (tokens_first(l)) {
        OVER_CHUNKS(l, write_output_by_tokens);
    } else {
        OVER_CHUNKS(l, sum_keys);
        OVER_HEADS(l, finish_keys);
        OVER_CHUNKS(l, write_output);
    }
}

static void backward(head_launch *l)
{
    OVER_CHUNKS(l, sum_norms);
    OVER_HEADS(l, finish_norms);
    if (tokens_first(l)) {
        OVER_CHUNKS(l, backward_queries_by_tokens);
        OVER_CHUNKS(l, backward_keys_by_tokens);
        OVER_CHUNKS(l, grad_values_by_tokens);
    } else {
        OVER_CHUNKS(l, sum_keys);
        OVER_HEADS(l, finish_keys);
        OVER_CHUNKS(l, backward_queries);
        OVER_HEADS(l, finish_queries);
        OVER_CHUNKS(l, backward_keys);
    }
    OVER_HEADS(l, finish_along);
    OVER_CHUNKS(l, finish_query_gradient);
    OVER_CHUNKS(l, finish_key_gradient);
}

extern "C" const head_operator R(cuda_operator_sima) = {sizes, forward, backward};
