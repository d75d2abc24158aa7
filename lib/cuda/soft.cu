/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++, tokens streamed in tiles: SOFT (IJCV) Alg. 1, Eq. 9 and 17.
 *
 *   explicit inverse X:          U = P V,              Y = P^T (X U)
 *   factor A[piv,piv] = L L^T:   U = (L^-1 P) V,       Y = (L^-1 P)^T U      on the pivots' rows
 *
 * SOFT++ replaces X by X' = D^-1/2 X D^-1/2, and L by D^1/2 L. cpu/soft.c says why L^-1 is applied
 * to the tokens' rows. Backward (cpu/soft_backward.c), with T = P dY, B1 = X' U, B2 = X' T:
 *
 *   dV = P^T B2,   dP_i = B1 dY_i + B2 V_i for token i,   dX' = T U^T. */
#include "cuda/soft.h"
#include "cuda/gaussian.cuh"
#include "cuda/gaussian.h"
#include "cuda/heads.cuh"

/* ---- Memory ---- */

/* A head's. */
typedef struct {
    real *landmarks, *grad_landmarks, *pivoted, *roots;
    real *sums, *weights, *grad_sums, *grad_weights; /* U, B1, T, B2 */
    real *a, *x, *grad_x, *grad_a;
    const int *pivots;
    int64_t m;
    int64_t count;    /* the landmarks used: all, or the factor's pivots */
    const real *rows; /* these, count x d */
} soft_memory;

/* A block's: tokens; landmarks, values or gradients of outputs; columns of K(Q, L); their slopes,
 * or the output. */
typedef struct {
    real *tokens, *other, *kernel, *slopes, *norms, *other_norms;
    int64_t columns;
    int64_t stride; /* of landmarks in `other`: odd, so that a column's are in different banks */
} soft_tiles;

static __device__ soft_memory memory_of(const head &h, const soft_matrices &s)
{
    soft_memory g;
    real *free = h.state;
    int64_t m = s.m, matrix = h.piece * m * m;
    g.landmarks = head_take(&free, m * h.d);
    g.grad_landmarks = head_take(&free, m * h.d);
    g.pivoted = head_take(&free, m * h.d);
    g.roots = head_take(&free, m);
    g.sums = head_take(&free, m * h.dv);
    g.weights = head_take(&free, m * h.dv);
    g.grad_sums = head_take(&free, m * h.dv);
    g.grad_weights = head_take(&free, m * h.dv);
    g.a = (real *)s.a + matrix;
    g.x = (real *)s.x + matrix;
    g.grad_x = (real *)s.grad_x + matrix;
    g.grad_a = (real *)s.grad_a + matrix;
    g.pivots = s.factored ? s.pivots + h.piece * m : NULL;
    g.m = m;
    g.count = s.factored ? s.infos[h.piece].rank : m;
    g.rows = s.factored ? g.pivoted : g.landmarks;
    return g;
}

static __device__ soft_tiles tiles_of(const head &h, const soft_matrices &s)
{
    soft_tiles t;
    real *free = h.work;
    int64_t wide = h.dv > h.d + 1 ? h.dv : h.d + 1;
    t.columns = s.columns;
    t.stride = h.d | 1;
    t.tokens = head_take(&free, HEAD_TILE * h.d);
    t.other = head_take(&free, HEAD_TILE * wide);
    t.kernel = head_take(&free, HEAD_TILE * s.columns);
    t.slopes = head_take(&free, HEAD_TILE * (s.columns > h.dv ? s.columns : h.dv));
    t.norms = head_take(&free, HEAD_TILE);
    t.other_norms = head_take(&free, HEAD_TILE);
    return t;
}

/* ---- Before the tokens ---- */

/* D^1/2, D = diag(A 1) (Eq. 17); a warp for each row. */
static __device__ void fill_roots(const soft_memory &g)
{
    for (int64_t i = threadIdx.x / 32; i < g.m; i += BLOCK_WARPS) {
        double sum = 0;
        for (int64_t j = threadIdx.x % 32; j < g.m; j += 32)
            sum += (double)g.a[i * g.m + j];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0)
            g.roots[i] = (real)sqrt(sum);
    }
    __syncthreads();
}

static __device__ void normalise(const soft_memory &g)
{
    fill_roots(g);
    BLOCK_EACH (e, g.count * g.count) {
        int64_t i = e / g.count, j = e % g.count;
        if (!g.pivots)
            g.x[i * g.m + j] /= g.roots[i] * g.roots[j];
        else if (j <= i)
            g.x[i * g.m + j] *= g.roots[g.pivots[i]];
    }
    __syncthreads();
}

/* Run for all heads, also those that are not finite. */
static __device__ void prepare_head(const head &h, const soft_matrices &s)
{
    if (s.infos[h.piece].status == ATN_NONFINITE) {
        if (threadIdx.x == 0)
            s.nonfinite[h.piece] = 1;
        return;
    }
    soft_memory g = memory_of(h, s);
    if (s.normalise)
        normalise(g);
    if (g.pivots)
        BLOCK_EACH (e, g.count * h.d)
            g.pivoted[e] = g.landmarks[g.pivots[e / h.d] * h.d + e % h.d];
}

/* ---- A tile of tokens ---- */

static __device__ point_set load_tokens(const head &h, const gaussian &k, const soft_tiles &t,
                                        int64_t first, int64_t rows)
{
    block_load(h.q, first, rows, h.d, t.tokens);
    return gaussian_points(k, rows, t.tokens, h.d, t.norms);
}

/* Landmarks first .. first + count - 1 of those used. */
static __device__ point_set load_landmarks(const gaussian &k, const soft_memory &g,
                                           const soft_tiles &t, int64_t first, int64_t count)
{
    BLOCK_EACH (e, count * k.d)
        t.other[e / k.d * t.stride + e % k.d] = g.rows[first * k.d + e];
    __syncthreads();
    return gaussian_points(k, count, t.other, t.stride, t.other_norms);
}

/* kernel = K(Q, L) for the tokens that are loaded and `cols` landmarks. */
static __device__ void fill_kernel(const gaussian &k, const soft_memory &g, const soft_tiles &t,
                                   const point_set &tokens, int64_t first, int64_t cols)
{
    for (int64_t j = 0; j < cols; j += HEAD_TILE) {
        point_set l = load_landmarks(k, g, t, first + j, head_smaller(HEAD_TILE, cols - j));
        gaussian_tile(k, tokens, l, t.kernel + j, t.columns);
    }
}

/* Rows times L^-T, in factor form: forward substitution, four threads for each row. */
static __device__ void solve_rows(const soft_memory &g, const soft_tiles &t, int64_t rows,
                                  real *tile)
{
    static_assert(HEAD_TILE * 4 == BLOCK_THREADS, "four threads for each row");
    int64_t part = threadIdx.x % 4, i = threadIdx.x / 4;
    real *row = tile + i * t.columns;
    for (int64_t k = 0; k < g.count; k++) {
        real sum = 0;
        for (int64_t c = part; c < k && i < rows; c += 4)
            sum += row[c] * g.x[k * g.m + c];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (part == 0 && i < rows)
            row[k] = (row[k] - sum) / g.x[k * g.m + k];
        __syncwarp();
    }
    __syncthreads();
}

/* ---- First pass: U, and backward T, over a chunk ---- */

/* sums (cols x dv) += kernel^T values. */
static __device__ void add_product(const head &h, const soft_tiles &t, const token_rows &values,
                                   int64_t first, int64_t rows, int64_t cols, real *sums)
{
    block_load(values, first, rows, h.dv, t.other);
    block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, cols, h.dv, rows, t.kernel, t.columns, t.other, h.dv,
               true, sums, h.dv);
}

static __device__ void sum_tokens(const head &h, const soft_matrices &s)
{
    soft_memory g = memory_of(h, s);
    soft_tiles t = tiles_of(h, s);
    gaussian k = gaussian_of(*h.desc, h.heads, h.d);
    real *sums = head_partial(h), *grad_sums = sums + g.m * h.dv;
    bool backward = h.grad_out.memory != NULL;
    block_fill((backward ? 2 : 1) * g.m * h.dv, 0, sums);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        point_set tokens = load_tokens(h, k, t, i, rows);
        for (int64_t j = 0; j < g.count; j += t.columns) {
            int64_t cols = head_smaller(t.columns, g.count - j);
            fill_kernel(k, g, t, tokens, j, cols);
            if (g.pivots)
                solve_rows(g, t, rows, t.kernel);
            add_product(h, t, h.v, i, rows, cols, sums + j * h.dv);
            if (backward)
                add_product(h, t, h.grad_out, i, rows, cols, grad_sums + j * h.dv);
        }
    }
}

/* ---- Between the passes ---- */

/* weights = X U. In factor form U is applied as it is. */
static __device__ void apply_inverse(const head &h, const soft_matrices &s)
{
    soft_memory g = memory_of(h, s);
    head_add_chunks(h, 0, g.m * h.dv, g.sums);
    if (!g.pivots)
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, g.m, h.dv, g.m, g.x, g.m, g.sums, h.dv, false,
                   g.weights, h.dv);
}

/* ---- Second pass: the output ---- */

/* The published code's depthwise convolution on V's grid: adds it to `rows` tokens' outputs. With
 * `mirrored` the filter is, and that is the way back. */
static __device__ void add_residual(const head &h, const token_rows &values, bool mirrored,
                                    int64_t first, int64_t rows, real *tile)
{
    const atn_tensor &residual = h.desc->residual;
    token_rows filter = head_parameter(residual, h.index);
    int64_t height = h.desc->residual_height, width = h.desc->residual_width;
    int64_t window = residual.rows, half = window / 2, last = window - 1;
    BLOCK_EACH (e, rows * h.dv) {
        int64_t i = first + e / h.dv, c = e % h.dv, y = i / width - half, x = i % width - half;
        real sum = 0;
        for (int64_t dy = 0; dy < window; dy++)
            for (int64_t dx = 0; dx < window; dx++)
                if (y + dy >= 0 && y + dy < height && x + dx >= 0 && x + dx < width)
                    sum += rows_get(filter, mirrored ? last - dy : dy, mirrored ? last - dx : dx) *
                           rows_get(values, (y + dy) * width + x + dx, c);
        tile[e] += sum;
    }
    __syncthreads();
}

static __device__ void write_output(const head &h, const soft_matrices &s)
{
    soft_memory g = memory_of(h, s);
    soft_tiles t = tiles_of(h, s);
    gaussian k = gaussian_of(*h.desc, h.heads, h.d);
    const real *weights = g.pivots ? g.sums : g.weights;
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        point_set tokens = load_tokens(h, k, t, i, rows);
        block_fill(rows * h.dv, 0, t.slopes);
        for (int64_t j = 0; j < g.count; j += t.columns) {
            int64_t cols = head_smaller(t.columns, g.count - j);
            fill_kernel(k, g, t, tokens, j, cols);
            if (g.pivots)
                solve_rows(g, t, rows, t.kernel);
            block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, cols, t.kernel, t.columns,
                       weights + j * h.dv, h.dv, true, t.slopes, h.dv);
        }
        if (h.desc->residual.data)
            add_residual(h, h.v, false, i, rows, t.slopes);
        block_store(h.out, i, rows, h.dv, t.slopes);
    }
}

/* ---- Calls ---- */

#define SOFT_OVER_HEADS(launch, pass)                                                              \
    launch_pass_with<soft_matrices, pass, false>(launch, soft_of(launch)->matrices, 1, #pass)
#define SOFT_OVER_ALL_HEADS(launch, pass)                                                          \
    launch_pass_with<soft_matrices, pass, true>(launch, soft_of(launch)->matrices, 1, #pass)
#define SOFT_OVER_CHUNKS(launch, pass)                                                             \
    launch_pass_with<soft_matrices, pass, false>(launch, soft_of(launch)->matrices,                \
                                                 (launch)->call.plan.chunks, #pass)

static const cuda_soft *soft_of(const head_launch *l)
{
    return (const cuda_soft *)l->heads;
}

/* An m x d matrix of every head's state. */
static atn_tensor in_state(const head_launch *l, int64_t index)
{
    const cuda_soft *soft = soft_of(l);
    const cuda_heads *p = &soft->heads;
    atn_dtype dtype = p->desc.dtype == ATN_F64 || p->desc.dtype == ATN_TF32 ? p->desc.dtype : ATN_F32;
    int64_t m = soft->matrices.m, d = p->shape.dim;
    atn_tensor t = atn_tensor_dense((real *)p->state + index * m * d, dtype, p->shape.batch,
                                    p->shape.heads, m, d);
    t.head_stride = p->sizes.head_reals;
    t.batch_stride = t.head_stride * t.heads;
    return t;
}

/* All heads' landmarks, A, its inverse or factor, and what the passes over tokens need of them. */
static void open_heads(head_launch *l)
{
    const cuda_soft *soft = soft_of(l);
    const atn_attention_shape *s = &soft->heads.shape;
    const soft_matrices *matrices = &soft->matrices;
    atn_tensor landmarks = in_state(l, 0);
    atn_tensor a = atn_tensor_dense(matrices->a, landmarks.dtype, s->batch, s->heads, matrices->m,
                         matrices->m);
    const atn_attention_desc *desc = &soft->heads.desc;
    double scale = atn_kernel_scale(desc->scale, desc->scale_value, s->heads, s->dim);
    if (l->status == ATN_OK)
        l->status = R(cuda_sampling).sample(l->context, &soft->sampling, &l->call.q, &landmarks);
    if (l->status == ATN_OK)
        l->status = R(cuda_gaussian)(l->context, desc->distance, scale, &landmarks, NULL, &a);
    if (l->status == ATN_OK)
        l->status = R(cuda_inverse).batch(l->context, &soft->inverse, matrices->a, matrices->x);
    SOFT_OVER_ALL_HEADS(l, prepare_head);
}

static void soft_sum_tokens(head_launch *l)
{
    SOFT_OVER_CHUNKS(l, sum_tokens);
}

static void soft_write_output(head_launch *l)
{
    SOFT_OVER_CHUNKS(l, write_output);
}

static void forward(head_launch *l)
{
    open_heads(l);
    soft_sum_tokens(l);
    SOFT_OVER_HEADS(l, apply_inverse);
    soft_write_output(l);
}

static void backward(head_launch *l)
{
    open_heads(l);
}

extern "C" const head_operator R(cuda_soft) = {NULL, forward, backward};
