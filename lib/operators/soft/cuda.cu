/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++, tokens streamed in tiles: SOFT (IJCV) Alg. 1, Eq. 9 and 17.
 *
 *   explicit inverse X:          U = P V,              Y = P^T (X U)
 *   factor A[piv,piv] = L L^T:   U = (L^-1 P) V,       Y = (L^-1 P)^T U      on the pivots' rows
 *
 * SOFT++ replaces X by X' = D^-1/2 X D^-1/2, and L by D^1/2 L. operators/soft/cpu.c says why L^-1
 * is applied to the tokens' rows. Backward (operators/soft/cpu_backward.c), with T = P dY, B1 = X'
 * U, B2 = X' T:
 *
 *   dV = P^T B2,   dP_i = B1 dY_i + B2 V_i for token i,   dX' = T U^T. */
#include "cuda/heads.cuh"
#include "kernel/cuda.cuh"
#include "kernel/cuda.h"
#include "operators/soft/cuda.h"

/* ---- Memory ---- */

/* The arrays of a head. */
typedef struct {
    real *landmarks, *grad_landmarks, *pivoted, *roots;
    real *sums, *weights, *grad_sums, *grad_weights; /* U, B1, T, B2 */
    real *a, *x, *grad_x, *grad_a;
    const int *pivots;
    int64_t m;
    int64_t count;    /* the landmarks used: all, or the pivots of the factor */
    const real *rows; /* the rows of these, count x d */
} soft_memory;

/* The arrays of a block: tokens; landmarks, values or gradients of outputs; columns of K(Q, L);
 * their slopes, or the output. */
typedef struct {
    real *tokens, *other, *kernel, *slopes, *norms, *other_norms;
    int64_t columns;
    int64_t stride; /* of landmarks in `other`: odd, so that the entries of a column are in
                       different banks */
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

/* The state of a pass over tokens, in shared memory to save registers; for the same reason the
 * functions that it calls are not inlined. */
typedef struct {
    soft_memory g;
    soft_tiles t;
    gaussian k;
    point_set tokens, landmarks; /* the loaded ones */
} soft_block;

static __device__ __noinline__ void open_block(const head &h, const soft_matrices &s, soft_block *b)
{
    if (threadIdx.x == 0) {
        b->g = memory_of(h, s);
        b->t = tiles_of(h, s);
        b->k = gaussian_of(*h.desc, h.heads, h.d);
    }
    __syncthreads();
}

/* ---- Before the tokens ---- */

/* D^1/2, D = diag(A 1) (Eq. 17); one warp per row. */
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

/* Runs for all heads, including those that are not finite. */
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

/* Rounds the landmarks as factors of products in the dtype are. */
static __device__ void round_landmarks(const head &h, const soft_matrices &s)
{
    real *landmarks = memory_of(h, s).landmarks;
    atn_dtype type = h.desc->dtype;
    BLOCK_EACH (e, s.m * h.d)
        if (type == ATN_BF16)
            landmarks[e] = (real)__bfloat162float(__float2bfloat16_rn((float)landmarks[e]));
        else if (type == ATN_F16)
            landmarks[e] = (real)__half2float(__float2half_rn((float)landmarks[e]));
        else
            landmarks[e] = real_factor(h.tf32, landmarks[e]);
}

/* ---- A tile of tokens ---- */

static __device__ __noinline__ void load_tokens(const head &h, soft_block *b, int64_t first,
                                                int64_t rows)
{
    block_load(h.q, first, rows, h.d, b->t.tokens);
    point_set tokens = gaussian_points(b->k, rows, b->t.tokens, h.d, b->t.norms);
    if (threadIdx.x == 0)
        b->tokens = tokens;
    __syncthreads();
}

/* Landmarks first .. first + count - 1 of those used. */
static __device__ __noinline__ void load_landmarks(soft_block *b, int64_t first, int64_t count)
{
    int64_t d = b->k.d, stride = b->t.stride;
    BLOCK_ENTRIES (i, c, count, d)
        b->t.other[i * stride + c] = b->g.rows[(first + i) * d + c];
    __syncthreads();
    point_set landmarks = gaussian_points(b->k, count, b->t.other, stride, b->t.other_norms);
    if (threadIdx.x == 0)
        b->landmarks = landmarks;
    __syncthreads();
}

/* kernel = K(Q, L) for the loaded tokens and `cols` landmarks. */
static __device__ __noinline__ void fill_kernel(soft_block *b, int64_t first, int64_t cols)
{
    for (int64_t j = 0; j < cols; j += HEAD_TILE) {
        load_landmarks(b, first + j, head_smaller(HEAD_TILE, cols - j));
        gaussian_tile(b->k, b->tokens, b->landmarks, b->t.kernel + j, b->t.columns);
    }
}

/* In factor form: multiplies rows by L^-T by forward substitution, four threads per row. */
static __device__ __noinline__ void solve_rows(const soft_block &b, real *tile)
{
    static_assert(HEAD_TILE * 4 == BLOCK_THREADS, "four threads for each row");
    int64_t part = threadIdx.x % 4, i = threadIdx.x / 4, m = b.g.m;
    bool here = i < b.tokens.count;
    real *row = tile + i * b.t.columns;
    for (int64_t k = 0; k < b.g.count; k++) {
        real sum = 0;
        for (int64_t c = part; c < k && here; c += 4)
            sum += row[c] * b.g.x[k * m + c];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (part == 0 && here)
            row[k] = (row[k] - sum) / b.g.x[k * m + k];
        __syncwarp();
    }
    __syncthreads();
}

/* ---- First pass: U, and backward T, over a chunk ---- */

/* sums (cols x dv) += kernel^T values. */
static __device__ __noinline__ void add_product(const head &h, const soft_block &b,
                                                const token_rows &values, int64_t first,
                                                int64_t cols, real *sums)
{
    int64_t rows = b.tokens.count;
    block_load(values, first, rows, h.dv, b.t.other);
    block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, cols, h.dv, rows, b.t.kernel, b.t.columns, b.t.other,
               h.dv, true, sums, h.dv);
}

template <bool backward> static __device__ void sum_tokens(const head &h, const soft_matrices &s)
{
    __shared__ soft_block b;
    open_block(h, s, &b);
    real *sums = head_partial(h), *grad_sums = sums + b.g.m * h.dv;
    block_fill((backward ? 2 : 1) * b.g.m * h.dv, 0, sums);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        load_tokens(h, &b, i, head_smaller(HEAD_TILE, h.end - i));
        for (int64_t j = 0; j < b.g.count; j += b.t.columns) {
            int64_t cols = head_smaller(b.t.columns, b.g.count - j);
            fill_kernel(&b, j, cols);
            if (b.g.pivots)
                solve_rows(b, b.t.kernel);
            add_product(h, b, h.v, i, cols, sums + j * h.dv);
            if (backward)
                add_product(h, b, h.grad_out, i, cols, grad_sums + j * h.dv);
        }
    }
}

/* ---- Between the passes ---- */

/* B (count x dv) = L^-T S by back substitution, one thread per column. */
static __device__ void solve_columns(const soft_memory &g, int64_t dv, const real *s, real *b)
{
    BLOCK_EACH (c, dv)
        for (int64_t i = g.count - 1; i >= 0; i--) {
            real sum = 0;
            for (int64_t k = i + 1; k < g.count; k++)
                sum += g.x[k * g.m + i] * b[k * dv + c];
            b[i * dv + c] = (s[i * dv + c] - sum) / g.x[i * g.m + i];
        }
    __syncthreads();
}

/* B = X' S for S = U or T; in factor form S holds L^-1 times that. */
static __device__ void apply_inverse(const head &h, const soft_memory &g, const real *s, real *b)
{
    if (g.pivots)
        solve_columns(g, h.dv, s, b);
    else
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, g.m, h.dv, g.m, g.x, g.m, s, h.dv, false, b, h.dv);
}

/* Adds up the chunks' U, and computes the weights that K(Q, L) is multiplied by; in factor form
 * these are U itself. */
static __device__ void finish_sums(const head &h, const soft_matrices &s)
{
    soft_memory g = memory_of(h, s);
    head_add_chunks(h, 0, g.m * h.dv, g.sums);
    if (!g.pivots)
        apply_inverse(h, g, g.sums, g.weights);
}

/* ---- Second pass: the output ---- */

/* The published code's depthwise convolution on V's grid: adds it to `rows` tokens' outputs. With
 * `mirrored` it uses the mirrored filter, as backward needs it. */
static __device__ __noinline__ void add_residual(const head &h, const token_rows &values,
                                                 bool mirrored, int64_t first, int64_t rows,
                                                 real *tile)
{
    const atn_tensor &residual = h.desc->residual;
    token_rows filter = head_parameter(residual, h.index);
    int64_t height = h.desc->residual_height, width = h.desc->residual_width;
    int64_t window = residual.rows, half = window / 2, last = window - 1;
    BLOCK_EACH (e, rows * h.dv) {
        int64_t i = first + e / h.dv, c = e % h.dv, y = i / width - half, x = i % width - half;
        real sum = 0;
        for (int64_t dy = 0; dy < window; dy++)
#pragma unroll 1
            for (int64_t dx = 0; dx < window; dx++)
                if (y + dy >= 0 && y + dy < height && x + dx >= 0 && x + dx < width)
                    sum += rows_get(filter, mirrored ? last - dy : dy, mirrored ? last - dx : dx) *
                           rows_get(values, (y + dy) * width + x + dx, c);
        tile[e] += sum;
    }
    __syncthreads();
}

/* output (rows x dv) += kernel weights. */
static __device__ __noinline__ void add_output(const head &h, const soft_block &b, int64_t cols,
                                               const real *weights)
{
    block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, b.tokens.count, h.dv, cols, b.t.kernel, b.t.columns,
               weights, h.dv, true, b.t.slopes, h.dv);
}

static __device__ void write_output(const head &h, const soft_matrices &s)
{
    __shared__ soft_block b;
    open_block(h, s, &b);
    const real *weights = b.g.pivots ? b.g.sums : b.g.weights;
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        load_tokens(h, &b, i, rows);
        block_fill(rows * h.dv, 0, b.t.slopes);
        for (int64_t j = 0; j < b.g.count; j += b.t.columns) {
            int64_t cols = head_smaller(b.t.columns, b.g.count - j);
            fill_kernel(&b, j, cols);
            if (b.g.pivots)
                solve_rows(b, b.t.kernel);
            add_output(h, b, cols, weights + j * h.dv);
        }
        if (h.desc->residual.data)
            add_residual(h, h.v, false, i, rows, b.t.slopes);
        block_store(h.out, i, rows, h.dv, b.t.slopes);
    }
}

/* ---- Backward, between the passes: A ---- */

/* The landmark at place i of those used. */
static __device__ __forceinline__ int64_t landmark_at(const soft_memory &g, int64_t i)
{
    return g.pivots ? g.pivots[i] : i;
}

/* D^1/2 of the landmark at place i, or 1. */
static __device__ __forceinline__ real root_at(const soft_matrices &s, const soft_memory &g,
                                               int64_t i)
{
    return s.normalise ? g.roots[landmark_at(g, i)] : (real)1;
}

/* Eq. 12, dA = -X dX X with dX = R T U^T R:  -(D^1/2 B2) (D^1/2 B1)^T. */
static __device__ void closed_gradient(const head &h, const soft_matrices &s, const soft_memory &g)
{
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, g.count, g.count, h.dv, g.grad_weights, h.dv,
               g.weights, h.dv, false, g.grad_x, g.m);
    block_fill(g.m * g.m, 0, g.grad_a);
    BLOCK_EACH (e, g.count * g.count) {
        int64_t i = e / g.count, j = e % g.count;
        g.grad_a[landmark_at(g, i) * g.m + landmark_at(g, j)] =
            -g.grad_x[i * g.m + j] * root_at(s, g, i) * root_at(s, g, j);
    }
    __syncthreads();
}

/* The other gradients need dX itself, and X, which SOFT++ has replaced by X'. */
static __device__ void open_adjoint(const head &h, const soft_matrices &s, const soft_memory &g)
{
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, g.m, g.m, h.dv, g.grad_sums, h.dv, g.sums, h.dv, false,
               g.grad_x, g.m);
    if (s.normalise)
        BLOCK_EACH (e, g.m * g.m) {
            real roots = g.roots[e / g.m] * g.roots[e % g.m];
            g.grad_x[e] /= roots;
            g.x[e] *= roots;
        }
    __syncthreads();
}

/* Runs for all heads: the derivative by X of one that is not finite is set to 0, so that it does
 * not reach other heads through a shared alpha. */
static __device__ void differentiate_inverse(const head &h, const soft_matrices &s)
{
    soft_memory g = memory_of(h, s);
    if (s.nonfinite[h.piece]) {
        block_fill(g.m * g.m, 0, g.grad_x);
        return;
    }
    head_add_chunks(h, 0, g.m * h.dv, g.sums);
    head_add_chunks(h, g.m * h.dv, g.m * h.dv, g.grad_sums);
    apply_inverse(h, g, g.sums, g.weights);
    apply_inverse(h, g, g.grad_sums, g.grad_weights);
    if (h.desc->gradient == ATN_GRADIENT_CLOSED)
        closed_gradient(h, s, g);
    else
        open_adjoint(h, s, g);
}

/* Row i of U or T; the factor form holds L^-1 times it. */
static __device__ __forceinline__ double sum_at(const soft_memory &g, int64_t dv, const real *s,
                                                int64_t i, int64_t c)
{
    if (!g.pivots)
        return (double)s[i * dv + c];
    double sum = 0;
    for (int64_t k = 0; k <= i; k++)
        sum += (double)g.x[i * g.m + k] * (double)s[k * dv + c];
    return sum;
}

/* SOFT++: X' = R X R has D_j in row and column j, to the power -1/2, so that dD_j = -(T_j.B1_j +
 * U_j.B2_j) / (2 D_j); every entry of row j of A receives it. One warp per row. */
static __device__ void row_sum_gradient(const head &h, const soft_matrices &s, const soft_memory &g)
{
    for (int64_t i = threadIdx.x / 32; i < g.count; i += BLOCK_WARPS) {
        double sum = 0, root = (double)root_at(s, g, i);
        for (int64_t c = threadIdx.x % 32; c < h.dv; c += 32)
            sum += sum_at(g, h.dv, g.grad_sums, i, c) * (double)g.weights[i * h.dv + c] +
                   sum_at(g, h.dv, g.sums, i, c) * (double)g.grad_weights[i * h.dv + c];
        real slope = (real)(-warp_sum(sum) / (2 * root * root));
        for (int64_t j = threadIdx.x % 32; j < g.m; j += 32)
            g.grad_a[landmark_at(g, i) * g.m + j] += slope;
    }
    __syncthreads();
}

/* The gradient by L through both arguments of A = K(L, L): d x -= W (x - y), W = 2 s dA A. */
static __device__ void self_kernel_backward(const head &h, const soft_matrices &s)
{
    soft_memory g = memory_of(h, s);
    gaussian k = gaussian_of(*h.desc, h.heads, h.d);
    real two_s = (real)(2 * k.s);
    point_set l = {g.m, h.d, g.landmarks, NULL};
    if (s.normalise)
        row_sum_gradient(h, s, g);
    BLOCK_EACH (e, g.m * g.m) {
        int64_t i = e / g.m, j = e % g.m;
        g.grad_x[e] = i == j ? 0 : two_s * (g.grad_a[e] + g.grad_a[j * g.m + i]) * g.a[e];
    }
    block_fill(g.m * h.d, 0, g.grad_landmarks);
    gaussian_backward(k, AS_IT_IS, g.grad_x, g.m, l, l, g.grad_landmarks, h.d);
}

/* ---- Backward, second pass: the tokens' gradients over one chunk ---- */

/* Rows of a gradient, which has type `real` (heads.cu rounds it afterwards). */
static __device__ __forceinline__ real *gradient_rows(const token_rows &rows, int64_t first)
{
    return (real *)rows.memory + first * rows.stride;
}

/* dV = P^T B2 = (L^-1 P)^T (L^-1 T): in factor form the second expression is the accurate one. */
static __device__ __noinline__ void value_gradient(const head &h, const soft_block &b, int64_t i,
                                                   int64_t first, int64_t cols)
{
    const real *kernel = b.t.kernel, *weights = b.g.grad_weights + first * h.dv;
    int64_t rows = b.tokens.count;
    if (b.g.pivots) {
        BLOCK_EACH (e, rows * b.t.columns)
            b.t.slopes[e] = b.t.kernel[e];
        __syncthreads();
        solve_rows(b, b.t.slopes);
        kernel = b.t.slopes;
        weights = b.g.grad_sums;
    }
    block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, cols, kernel, b.t.columns, weights, h.dv,
               true, gradient_rows(h.grad_v, i), h.grad_v.stride);
}

/* slopes (rows x cols) = values weights^T, or += that. */
static __device__ __noinline__ void add_slopes(const head &h, const soft_block &b,
                                               const token_rows &values, int64_t i, int64_t cols,
                                               const real *weights, bool add)
{
    int64_t rows = b.tokens.count;
    block_load(values, i, rows, h.dv, b.t.other);
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, cols, h.dv, b.t.other, h.dv, weights, h.dv, add,
               b.t.slopes, b.t.columns);
}

/* The chunk's partial sums of the landmarks' gradient. */
static __device__ __forceinline__ real *landmark_partials_of(const head &h, const soft_block &b)
{
    return head_partial(h) + 2 * b.g.m * h.dv;
}

/* slopes = 2 s dK K, the coefficients of the differences of tokens and landmarks. */
static __device__ __noinline__ void weigh_slopes(const soft_block &b, int64_t cols)
{
    real two_s = (real)(2 * b.k.s);
    BLOCK_ENTRIES (i, j, b.tokens.count, cols)
        b.t.slopes[i * b.t.columns + j] *= two_s * b.t.kernel[i * b.t.columns + j];
    __syncthreads();
}

/* Adds the tokens' gradients for the loaded landmarks, whose slopes are the columns from j on. */
static __device__ __noinline__ void backward_at_tokens(const head &h, const soft_block &b,
                                                       int64_t i, int64_t j)
{
    gaussian_backward(b.k, AS_IT_IS, b.t.slopes + j, b.t.columns, b.tokens, b.landmarks,
                      gradient_rows(h.grad_q, i), h.grad_q.stride);
}

static __device__ __noinline__ void backward_at_landmarks(const head &h, const soft_block &b,
                                                          int64_t first, int64_t j)
{
    gaussian_backward(b.k, TRANSPOSED, b.t.slopes + j, b.t.columns, b.landmarks, b.tokens,
                      landmark_partials_of(h, b) + first * h.d, h.d);
}

/* For the loaded tokens, from i on, and landmarks from `first` on. */
static __device__ __noinline__ void differentiate_columns(const head &h, soft_block *b, int64_t i,
                                                          int64_t first)
{
    int64_t cols = head_smaller(b->t.columns, b->g.count - first);
    fill_kernel(b, first, cols);
    value_gradient(h, *b, i, first, cols);
    add_slopes(h, *b, h.grad_out, i, cols, b->g.weights + first * h.dv, false);
    add_slopes(h, *b, h.v, i, cols, b->g.grad_weights + first * h.dv, true);
    weigh_slopes(*b, cols);
    for (int64_t j = 0; j < cols; j += HEAD_TILE) {
        load_landmarks(b, first + j, head_smaller(HEAD_TILE, cols - j));
        backward_at_tokens(h, *b, i, j);
        backward_at_landmarks(h, *b, first + j, j);
    }
}

static __device__ void differentiate_tokens(const head &h, const soft_matrices &s)
{
    __shared__ soft_block b;
    open_block(h, s, &b);
    block_fill(b.g.m * h.d, 0, landmark_partials_of(h, b));
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        load_tokens(h, &b, i, head_smaller(HEAD_TILE, h.end - i));
        for (int64_t j = 0; j < b.g.count; j += b.t.columns)
            differentiate_columns(h, &b, i, j);
    }
}

/* Completes the landmarks' gradients. */
static __device__ void finish_landmarks(const head &h, const soft_matrices &s)
{
    soft_memory g = memory_of(h, s);
    int64_t offset = 2 * g.m * h.dv;
    BLOCK_EACH (e, g.count * h.d) {
        real sum = 0;
        for (int64_t c = 0; c < h.chunks; c++)
            sum += h.partials[c * h.chunk_reals + offset + e];
        g.grad_landmarks[landmark_at(g, e / h.d) * h.d + e % h.d] += sum;
    }
}

/* ---- Backward: the residual ---- */

static __device__ void differentiate_residual(const head &h, const soft_matrices &s)
{
    soft_tiles t = tiles_of(h, s);
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        block_fill(rows * h.dv, 0, t.slopes);
        add_residual(h, h.grad_out, true, i, rows, t.slopes);
        block_add(h.grad_v, i, rows, h.dv, t.slopes);
    }
}

static __device__ real *filter_partial(const head &h, const soft_matrices &s, int64_t chunk)
{
    return h.partials + chunk * h.chunk_reals + s.m * (2 * h.dv + h.d);
}

/* The gradient of every entry of the filter, summed over the chunk's outputs. */
static __device__ void sum_filter(const head &h, const soft_matrices &s)
{
    int64_t height = h.desc->residual_height, width = h.desc->residual_width;
    int64_t window = h.desc->residual.rows, half = window / 2;
    real *partial = filter_partial(h, s, h.chunk);
    for (int64_t entry = 0; entry < window * window; entry++) {
        int64_t down = entry / window - half, right = entry % window - half;
        double sum = 0;
#pragma unroll 1
        BLOCK_EACH (e, (h.end - h.first) * h.dv) {
            int64_t i = h.first + e / h.dv, c = e % h.dv, y = i / width + down,
                    x = i % width + right;
            if (y >= 0 && y < height && x >= 0 && x < width)
                sum += (double)rows_get(h.grad_out, i, c) * (double)rows_get(h.v, y * width + x, c);
        }
        sum = block_sum(sum);
        if (threadIdx.x == 0)
            partial[entry] = (real)sum;
    }
}

static __device__ void finish_filter(const head &h, const soft_matrices &s)
{
    real *gradient = h.grad_parameters[ATN_PARAMETER_RESIDUAL];
    BLOCK_EACH (e, h.desc->residual.rows * h.desc->residual.cols) {
        double sum = 0;
        for (int64_t c = 0; c < h.chunks; c++)
            sum += (double)filter_partial(h, s, c)[e];
        gradient[e] += (real)sum;
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
    atn_dtype dtype =
        p->desc.dtype == ATN_F64 || p->desc.dtype == ATN_TF32 ? p->desc.dtype : ATN_F32;
    int64_t m = soft->matrices.m, d = p->shape.dim;
    atn_tensor t = atn_tensor_dense((real *)p->state + index * m * d, dtype, p->shape.batch,
                                    p->shape.heads, m, d);
    t.head_stride = p->sizes.head_reals;
    t.batch_stride = t.head_stride * t.heads;
    return t;
}

/* Whether this call's forward passes are those of cuda_fused.h or cuda_chain.h. */
static bool is_fused(const head_launch *l)
{
    const head_call *c = &l->call;
    return soft_of(l)->chained || (soft_of(l)->fused && soft_fused_aligned(&c->q) &&
                                   soft_fused_aligned(&c->v) && soft_fused_aligned(&c->out));
}

static soft_fused fused_of(const head_launch *l)
{
    const cuda_heads *p = &soft_of(l)->heads;
    int64_t m = soft_of(l)->matrices.m, d = p->shape.dim, dv = p->shape.value_dim;
    const float *state = (const float *)p->state;
    soft_fused f = {};
    f.s = atn_kernel_scale(p->desc.scale, p->desc.scale_value, p->shape.heads, d);
    f.clamp = p->desc.distance == ATN_DISTANCE_CLAMPED;
    f.m = m;
    f.landmarks = state;
    f.weights = state + m * (3 * d + 1 + dv);
    f.partials = (float *)p->partials;
    f.head_stride = p->sizes.head_reals;
    f.partial_stride = p->sizes.chunk_reals;
    f.chunk = p->chunk;
    f.chunks = p->chunks;
    f.nonfinite = p->nonfinite;
    return f;
}

/* Computes all heads' landmarks, A, its inverse or factor, and the arrays derived from them for the
 * passes over tokens. */
static void open_heads(head_launch *l, bool fused)
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
    if (fused)
        SOFT_OVER_HEADS(l, round_landmarks);
    if (l->status == ATN_OK)
        l->status = R(cuda_gaussian)(l->context, desc->distance, scale, &landmarks, NULL, &a);
    if (l->status == ATN_OK)
        l->status = R(cuda_inverse).batch(l->context, &soft->inverse, matrices->a, matrices->x);
    SOFT_OVER_ALL_HEADS(l, prepare_head);
}

/* These passes check what they read and write for NaN themselves. */
static void forward_fused(head_launch *l)
{
    soft_chain chain = soft_of(l)->chain;
    soft_fused f = fused_of(l);
    head_call *c = &l->call;
    bool chained = soft_of(l)->chained;
    chain.f = f;
    open_heads(l, true);
    if (l->status == ATN_OK)
        l->status = chained ? soft_chain_sum(l->context, &chain, &c->q, &c->v)
                            : soft_fused_sum(l->context, &f, &c->q, &c->v);
    SOFT_OVER_HEADS(l, finish_sums);
    if (l->status == ATN_OK)
        l->status = chained ? soft_chain_write(l->context, &chain, &c->q, &c->out)
                            : soft_fused_write(l->context, &f, &c->q, &c->out);
    if (l->status == ATN_OK)
        l->status = soft_fused_finish(l->context, &f, &c->out);
}

static void forward(head_launch *l)
{
    if (is_fused(l)) {
        forward_fused(l);
        return;
    }
    if (l->status == ATN_OK && soft_of(l)->heads.desc.passes == ATN_SOFT_FUSED)
        l->status = core_fail(l->context, ATN_ERR_STRIDE,
                              "passes are fused: q, v and the output must begin, and their rows, "
                              "heads and entries be apart, by multiples of 16 bytes");
    open_heads(l, false);
    SOFT_OVER_CHUNKS(l, sum_tokens<false>);
    SOFT_OVER_HEADS(l, finish_sums);
    SOFT_OVER_CHUNKS(l, write_output);
}

/* From dX the derivative by A, unless it is Eq. 12's. */
static void adjoint(head_launch *l)
{
    const cuda_soft *soft = soft_of(l);
    const soft_matrices *s = &soft->matrices;
    if (l->status == ATN_OK && soft->heads.desc.gradient != ATN_GRADIENT_CLOSED)
        l->status =
            R(cuda_adjoint).backward(l->context, &soft->adjoint, s->a, s->x, s->grad_x, s->grad_a);
}

/* Backward from the landmarks to their tokens, and to the parameters of the sampling. */
static void differentiate_landmarks(head_launch *l)
{
    const cuda_soft *soft = soft_of(l);
    const head_call *c = &l->call;
    const atn_tensor *conv = l->gradients->parameters[ATN_PARAMETER_CONV];
    atn_tensor landmarks = in_state(l, 1);
    void *norms[2];
    for (int i = 0; i < 2; i++)
        norms[i] = c->wanted & 1u << (ATN_PARAMETER_NORM_WEIGHT + i)
                       ? soft->heads.sums[ATN_PARAMETER_NORM_WEIGHT + i]
                       : NULL;
    if (l->status == ATN_OK)
        l->status =
            R(cuda_sampling).backward(l->context, &soft->sampling, &landmarks, &c->grad_q, norms);
    if (l->status == ATN_OK && conv)
        l->status =
            R(cuda_sampling).weights_backward(l->context, &soft->sampling, &c->q, &landmarks, conv);
}

static void backward(head_launch *l)
{
    open_heads(l, false);
    SOFT_OVER_CHUNKS(l, sum_tokens<true>);
    SOFT_OVER_ALL_HEADS(l, differentiate_inverse);
    adjoint(l);
    SOFT_OVER_HEADS(l, self_kernel_backward);
    SOFT_OVER_CHUNKS(l, differentiate_tokens);
    SOFT_OVER_HEADS(l, finish_landmarks);
    differentiate_landmarks(l);
    if (soft_of(l)->heads.desc.residual.data)
        SOFT_OVER_CHUNKS(l, differentiate_residual);
    if (l->call.wanted & 1u << ATN_PARAMETER_RESIDUAL) {
        SOFT_OVER_CHUNKS(l, sum_filter);
        SOFT_OVER_HEADS(l, finish_filter);
    }
}

extern "C" const head_operator R(cuda_operator_soft) = {NULL, forward, backward, is_fused};
