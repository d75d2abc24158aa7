/* SPDX-License-Identifier: BSD-3-Clause */
/* Linformer (Wang et al. 2020): Y = softmax(c Q K'^T) V' with K' = E^T K and V' = F^T V. The
 * softmax is that of operators/softmax/cuda.cuh with K' and V' in place of the tokens, so that only
 * a tile of weights is in memory whatever r is. */
#include "operators/softmax/cuda.cuh"

/* Per head: statistics of the queries; K' and V' one after the other, and their gradients likewise.
 * Per chunk: its partial sums of these. Per block, besides the softmax's: tiles of a projection's
 * matrix, of tokens, of its sums. */
typedef struct {
    int64_t r;
    real *statistics, *sums, *grad_sums;
} head_memory;

/* One of the two sums over tokens, X' = M^T X: E with K or F with V. The rows of M have the tokens'
 * positions. */
typedef struct {
    token_rows matrix, tokens, grad_tokens;
    int64_t width, offset;   /* of X'; its start in sums, grad_sums and a chunk's partial sums */
    atn_parameter parameter; /* the parameter that M is */
} projection;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape, head_sizes *s)
{
    int64_t r = desc->linformer.e.cols, d = shape->dim, dv = shape->value_dim;
    s->head_reals = SOFTMAX_STATISTICS * shape->tokens + 2 * r * (d + dv);
    s->chunk_reals = r * (d + dv);
    s->block_reals = softmax_work_reals(d, dv); /* more than three tiles */
}

static __device__ head_memory memory_of(const head &h)
{
    head_memory m;
    real *free = h.state;
    m.r = h.desc->linformer.e.cols;
    m.sums = head_take(&free, m.r * (h.d + h.dv));
    m.grad_sums = head_take(&free, m.r * (h.d + h.dv));
    m.statistics = free;
    return m;
}

static __device__ projection keys_projection(const head &h)
{
    projection p = {
        head_parameter(h.desc->linformer.e, h.index), h.k, h.grad_k, h.d, 0, ATN_PARAMETER_E};
    p.matrix.positions = h.k.positions;
    return p;
}

static __device__ projection values_projection(const head &h)
{
    const atn_linformer_options &o = h.desc->linformer;
    projection p = {
        head_parameter(o.f.data ? o.f : o.e, h.index), h.v, h.grad_v, h.dv, o.e.cols * h.d,
        o.f.data ? ATN_PARAMETER_F : ATN_PARAMETER_E};
    p.matrix.positions = h.v.positions;
    return p;
}

/* The block's head with K' and V' in place of its keys and values. */
static __device__ const head &head_of_sums(const head &h)
{
    __shared__ head f;
    atn_dtype type = sizeof(real) == sizeof(double) ? ATN_F64 : ATN_F32;
    head_memory m = memory_of(h);
    real *partial = head_partial(h);
    if (threadIdx.x == 0) {
        f = h;
        f.n_k = f.end_key = m.r;
        f.first_key = 0;
        f.k = {m.sums, type, h.d, NULL};
        f.v = {m.sums + m.r * h.d, type, h.dv, NULL};
        f.grad_k = {partial, type, h.d, NULL};
        f.grad_v = {partial + m.r * h.d, type, h.dv, NULL};
    }
    __syncthreads();
    return f;
}

/* ---- The sums over tokens ---- */

/* tile (count x cols) = columns c0 .. c0 + cols - 1 of rows of the matrix. */
static __device__ void load_columns(const token_rows &matrix, int64_t first, int64_t count,
                                    int64_t c0, int64_t cols, real *tile)
{
    BLOCK_ENTRIES (i, c, count, cols)
        tile[i * cols + c] = rows_get(matrix, first + i, c0 + c);
    __syncthreads();
}

/* The chunk's partial sums of X', a tile of its rows at a time. */
static __device__ void project(const head &h, const projection &x)
{
    int64_t r = h.desc->linformer.e.cols;
    real *sums = head_partial(h) + x.offset;
    real *matrix = h.work, *tokens = matrix + HEAD_TILE * HEAD_TILE;
    block_fill(r * x.width, 0, sums);
    for (int64_t c = 0; c < r; c += HEAD_TILE) {
        int64_t cols = head_smaller(HEAD_TILE, r - c);
        for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
            int64_t count = head_smaller(HEAD_TILE, h.end_key - j);
            load_columns(x.matrix, j, count, c, cols, matrix);
            block_load(x.tokens, j, count, x.width, tokens);
            block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, cols, x.width, count, matrix, cols, tokens,
                       x.width, true, sums + c * x.width, x.width);
        }
    }
}

static __device__ void sum_tokens(const head &h)
{
    project(h, keys_projection(h));
    project(h, values_projection(h));
}

static __device__ void finish_sums(const head &h)
{
    head_memory m = memory_of(h);
    head_add_chunks(h, 0, m.r * (h.d + h.dv), m.sums);
}

static __device__ void write_output(const head &h)
{
    softmax_forward(head_of_sums(h));
}

/* ---- Backward ---- */

/* Backward through the queries: dQ, and the chunk's partial sums of dK' and dV'. Separate passes
 * need fewer registers than one. */
static __device__ void measure(const head &h)
{
    softmax_measure(head_of_sums(h), memory_of(h).statistics);
}

static __device__ void backward_queries(const head &h)
{
    softmax_grad_queries(head_of_sums(h), memory_of(h).statistics);
}

static __device__ void backward_sums(const head &h)
{
    head_memory m = memory_of(h);
    block_fill(m.r * (h.d + h.dv), 0, head_partial(h));
    softmax_grad_keys(head_of_sums(h), m.statistics, h.first, h.end);
}

static __device__ void finish_grad_sums(const head &h)
{
    head_memory m = memory_of(h);
    head_add_chunks(h, 0, m.r * (h.d + h.dv), m.grad_sums);
}

/* Backward through the sum over tokens, for tokens j .. j + count - 1 and rows c .. c + cols - 1 of
 * X': adds M dX' to grad, and X dX'^T to the matrix's gradient. */
static __device__ void backward_token_tile(const head &h, const projection &x, int64_t j,
                                           int64_t count, int64_t c, int64_t cols,
                                           const real *grad_sums, real *grad)
{
    int64_t r = h.desc->linformer.e.cols;
    real *matrix = h.work, *tokens = matrix + HEAD_TILE * HEAD_TILE;
    real *to = h.grad_parameters[x.parameter];
    load_columns(x.matrix, j, count, c, cols, matrix);
    block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, count, x.width, cols, matrix, cols,
               grad_sums + c * x.width, x.width, true, grad, x.width);
    if (!to)
        return;
    block_load(x.tokens, j, count, x.width, tokens);
    block_gemm_each(h.tf32, AS_IT_IS, TRANSPOSED, count, cols, x.width, tokens, x.width,
                    grad_sums + c * x.width, x.width, [&](int64_t i, int64_t col, real sum) {
                        to[head_position(x.tokens, j + i) * r + c + col] += sum;
                    });
}

static __device__ void backward_tokens_of(const head &h, const projection &x)
{
    head_memory m = memory_of(h);
    real *grad = h.work + HEAD_TILE * (HEAD_TILE + x.width);
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t count = head_smaller(HEAD_TILE, h.end_key - j);
        block_fill(count * x.width, 0, grad);
        for (int64_t c = 0; c < m.r; c += HEAD_TILE)
            backward_token_tile(h, x, j, count, c, head_smaller(HEAD_TILE, m.r - c),
                                m.grad_sums + x.offset, grad);
        block_add(x.grad_tokens, j, count, x.width, grad);
    }
}

static __device__ void backward_keys(const head &h)
{
    backward_tokens_of(h, keys_projection(h));
}

static __device__ void backward_values(const head &h)
{
    backward_tokens_of(h, values_projection(h));
}

static void forward(head_launch *l)
{
    OVER_CHUNKS(l, sum_tokens);
    OVER_HEADS(l, finish_sums);
    OVER_CHUNKS(l, write_output);
}

static void backward(head_launch *l)
{
    OVER_CHUNKS(l, sum_tokens);
    OVER_HEADS(l, finish_sums);
    OVER_CHUNKS(l, measure);
    OVER_CHUNKS(l, backward_queries);
    OVER_CHUNKS(l, backward_sums);
    OVER_HEADS(l, finish_grad_sums);
    OVER_CHUNKS(l, backward_keys);
    OVER_CHUNKS(l, backward_values);
}

extern "C" const head_operator R(cuda_operator_linformer) = {sizes, forward, backward};
