/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of all threads of a block. Every function here is called by all of them with the same
 * arguments, reads only what was written before a __syncthreads, and ends with one, so that all
 * threads can read its results.
 *
 * Matrices are row-major arrays of `real` with a row stride, in shared or device memory. The order
 * of sums depends on the sizes alone. */
#ifndef CUDA_BLOCK_CUH
#define CUDA_BLOCK_CUH

#include "cuda/real.cuh"

enum { BLOCK_THREADS = 256, BLOCK_WARPS = BLOCK_THREADS / 32 };

/* The block's threads share i = 0 .. count - 1. */
#define BLOCK_EACH(i, count)                                                                       \
    for (int64_t i = threadIdx.x, i##_count = (count); i < i##_count; i += BLOCK_THREADS)

/* Likewise the entries (i, c) of a rows x cols tile, fewer than 2^32, because 64-bit divisions are
 * function calls. */
#define BLOCK_ENTRIES(i, c, rows, cols)                                                            \
    for (unsigned c##_count = (unsigned)(cols), i##_all = (unsigned)(rows)*c##_count,              \
                  i##_entry = threadIdx.x, i, c;                                                   \
         i##_entry < i##_all && (i = i##_entry / c##_count, c = i##_entry % c##_count, true);      \
         i##_entry += BLOCK_THREADS)

/* One head's rows in the caller's memory. Row i is at positions[i], or at i. */
typedef struct {
    void *memory;
    atn_dtype type;
    int64_t stride;
    const int64_t *positions;
} token_rows;

static __device__ __forceinline__ int64_t rows_index(const token_rows &t, int64_t i, int64_t c)
{
    return (t.positions ? t.positions[i] : i) * t.stride + c;
}

static __device__ __forceinline__ real rows_get(const token_rows &t, int64_t i, int64_t c)
{
    return real_load(t.memory, t.type, rows_index(t, i, c));
}

static __device__ __forceinline__ void rows_set(const token_rows &t, int64_t i, int64_t c,
                                                real value)
{
    real_store(t.memory, t.type, rows_index(t, i, c), value);
}

/* tile (count x cols, row stride cols) = rows first .. first + count - 1. */
static __device__ void block_load(const token_rows &from, int64_t first, int64_t count,
                                  int64_t cols, real *tile)
{
    BLOCK_ENTRIES (i, c, count, cols)
        tile[i * cols + c] = rows_get(from, first + i, c);
    __syncthreads();
}

/* Stores the tile to the rows. */
static __device__ void block_store(const token_rows &to, int64_t first, int64_t count, int64_t cols,
                                   const real *tile)
{
    BLOCK_ENTRIES (i, c, count, cols)
        rows_set(to, first + i, c, tile[i * cols + c]);
    __syncthreads();
}

/* Adds the tile to the rows. */
static __device__ void block_add(const token_rows &to, int64_t first, int64_t count, int64_t cols,
                                 const real *tile)
{
    BLOCK_ENTRIES (i, c, count, cols)
        rows_set(to, first + i, c, rows_get(to, first + i, c) + tile[i * cols + c]);
    __syncthreads();
}

static __device__ void block_fill(int64_t count, real value, real *a)
{
    BLOCK_EACH (e, count)
        a[e] = value;
    __syncthreads();
}

/* How a product reads its factors. */
enum { AS_IT_IS, TRANSPOSED };

/* Each thread computes SIZE x SIZE entries of a product, whose rows and columns are spaced so that
 * neighbouring threads read neighbouring columns. */
template <int SIZE, class F>
static __device__ void gemm_tiles(bool tf32, int64_t rows, int64_t cols, int64_t inner,
                                  const real *a, int64_t a_row, int64_t a_inner, const real *b,
                                  int64_t b_inner, int64_t b_col, F take)
{
    unsigned down = (unsigned)((rows + SIZE - 1) / SIZE);
    unsigned across = (unsigned)((cols + SIZE - 1) / SIZE);
    for (unsigned t = threadIdx.x; t < down * across; t += BLOCK_THREADS) {
        unsigned r = t / across, s = t % across;
        const real *left_at[SIZE], *right_at[SIZE]; /* beyond the end: the last one, not used */
        real sums[SIZE][SIZE] = {{0}};
#pragma unroll
        for (int i = 0; i < SIZE; i++) {
            int64_t row = r + i * down, col = s + i * across;
            left_at[i] = a + (row < rows ? row : rows - 1) * a_row;
            right_at[i] = b + (col < cols ? col : cols - 1) * b_col;
        }
#pragma unroll 2
        for (int64_t k = 0; k < inner; k++) {
            real left[SIZE], right[SIZE];
#pragma unroll
            for (int i = 0; i < SIZE; i++) {
                left[i] = real_factor(tf32, left_at[i][k * a_inner]);
                right[i] = real_factor(tf32, right_at[i][k * b_inner]);
            }
#pragma unroll
            for (int i = 0; i < SIZE; i++)
#pragma unroll
                for (int j = 0; j < SIZE; j++)
                    sums[i][j] = real_fma(left[i], right[j], sums[i][j]);
        }
#pragma unroll
        for (int i = 0; i < SIZE; i++)
#pragma unroll
            for (int j = 0; j < SIZE; j++) {
                int64_t row = r + i * down, col = s + j * across;
                if (row < rows && col < cols)
                    take(row, col, sums[i][j]);
            }
    }
    __syncthreads();
}

/* Calls take(i, j, sum) for every entry of the product op(A) op(B) (rows x cols), once each and by
 * one thread; inner is the shared size. tf32: the factors are rounded to it. */
template <class F>
static __device__ void block_gemm_each(bool tf32, int trans_a, int trans_b, int64_t rows,
                                       int64_t cols, int64_t inner, const real *a, int64_t lda,
                                       const real *b, int64_t ldb, F take)
{
    int64_t a_row = trans_a ? 1 : lda, a_inner = trans_a ? lda : 1;
    int64_t b_inner = trans_b ? 1 : ldb, b_col = trans_b ? ldb : 1;
    if (rows * cols >= 16 * BLOCK_THREADS)
        gemm_tiles<4>(tf32, rows, cols, inner, a, a_row, a_inner, b, b_inner, b_col, take);
    else
        gemm_tiles<2>(tf32, rows, cols, inner, a, a_row, a_inner, b, b_inner, b_col, take);
}

/* C = op(A) op(B), or C += with `add`. C must not overlap A or B. */
static __device__ void block_gemm(bool tf32, int trans_a, int trans_b, int64_t rows, int64_t cols,
                                  int64_t inner, const real *a, int64_t lda, const real *b,
                                  int64_t ldb, bool add, real *c, int64_t ldc)
{
    block_gemm_each(
        tf32, trans_a, trans_b, rows, cols, inner, a, lda, b, ldb,
        [&](int64_t i, int64_t j, real sum) { c[i * ldc + j] = (add ? c[i * ldc + j] : 0) + sum; });
}

/* The sum over a warp's lanes, returned to all of them; likewise the maximum, NaN if any is. */
template <class T> static __device__ __forceinline__ T warp_sum(T x)
{
    for (int away = 16; away > 0; away /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, away);
    return x;
}

template <class T> static __device__ __forceinline__ T larger(T a, T b)
{
    return a > b || a != a ? a : b;
}

template <class T> static __device__ __forceinline__ T warp_max(T x)
{
    for (int away = 16; away > 0; away /= 2)
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, away));
    return x;
}

/* The sum of the threads' x, returned to all of them. */
template <class T> static __device__ T block_sum(T x)
{
    __shared__ T parts[BLOCK_WARPS];
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < BLOCK_WARPS; i++)
        x += parts[i];
    __syncthreads();
    return x;
}

/* The largest x; NaN if any is. */
template <class T> static __device__ T block_max(T x)
{
    __shared__ T parts[BLOCK_WARPS];
    x = warp_max(x);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int i = 1; i < BLOCK_WARPS; i++)
        x = larger(x, parts[i]);
    __syncthreads();
    return x;
}

/* sums[c] = sum over the tile's rows of f(entry), or += with `add`; each thread sums a column. */
template <class F>
static __device__ void block_columns(int64_t rows, int64_t cols, const real *tile, int64_t stride,
                                     bool add, double *sums, F f)
{
    BLOCK_EACH (c, cols) {
        double sum = add ? sums[c] : 0;
        for (int64_t i = 0; i < rows; i++)
            sum += f(tile[i * stride + c]);
        sums[c] = sum;
    }
    __syncthreads();
}

#endif
