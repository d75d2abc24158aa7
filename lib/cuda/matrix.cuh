/* SPDX-License-Identifier: BSD-3-Clause */
/* m x m matrices in a block's work. Their rows are `stride` apart, and rows and columns m .. are 0
 * up to a multiple of 4, so that products read and write 4 x 4 tiles. As in block.cuh, every
 * function is called by all threads with the same arguments and ends with a __syncthreads. */
#ifndef CUDA_MATRIX_CUH
#define CUDA_MATRIX_CUH

#include "cuda/block.cuh"

enum { MATRIX_TILE = 4 };

typedef struct {
    int m;
    int64_t stride;
    bool tf32; /* products round their factors to it */
} matrix_shape;

static inline __host__ __device__ int64_t matrix_padded(int64_t m)
{
    return (m + MATRIX_TILE - 1) / MATRIX_TILE * MATRIX_TILE;
}

/* An odd number of tiles, so that a column is spread over the banks of shared memory. */
static inline __host__ __device__ int64_t matrix_stride(int64_t m)
{
    int64_t padded = matrix_padded(m);
    return padded / MATRIX_TILE % 2 ? padded : padded + MATRIX_TILE;
}

/* Elements of a matrix. */
static inline __host__ __device__ int64_t matrix_reals(int64_t m)
{
    return matrix_padded(m) * matrix_stride(m);
}

/* The block's threads share the entries, one row per warp. */
#define MATRIX_ENTRIES(i, j, shape)                                                                \
    for (int i = (int)threadIdx.x / 32; i < (shape).m; i += BLOCK_WARPS)                           \
        for (int j = (int)threadIdx.x % 32; j < (shape).m; j += 32)

static __device__ __forceinline__ real &entry(const matrix_shape &shape, real *a, int64_t i,
                                              int64_t j)
{
    return a[i * shape.stride + j];
}

static __device__ __forceinline__ real entry(const matrix_shape &shape, const real *a, int64_t i,
                                             int64_t j)
{
    return a[i * shape.stride + j];
}

/* ---- To and from dense matrices in device memory ---- */

static __device__ void matrix_load(const matrix_shape &shape, const real *from, real *a)
{
    MATRIX_ENTRIES (i, j, shape)
        entry(shape, a, i, j) = from[(int64_t)i * shape.m + j];
    __syncthreads();
}

static __device__ void matrix_save(const matrix_shape &shape, const real *a, real *to)
{
    MATRIX_ENTRIES (i, j, shape)
        to[(int64_t)i * shape.m + j] = entry(shape, a, i, j);
    __syncthreads();
}

static __device__ void matrix_copy(const matrix_shape &shape, const real *a, real *to)
{
    MATRIX_ENTRIES (i, j, shape)
        entry(shape, to, i, j) = entry(shape, a, i, j);
    __syncthreads();
}

static __device__ void matrix_transpose(const matrix_shape &shape, const real *a, real *to)
{
    MATRIX_ENTRIES (i, j, shape)
        entry(shape, to, i, j) = entry(shape, a, j, i);
    __syncthreads();
}

static __device__ void matrix_fill(const matrix_shape &shape, real value, real *a)
{
    MATRIX_ENTRIES (i, j, shape)
        entry(shape, a, i, j) = value;
    __syncthreads();
}

static __device__ void matrix_add_diagonal(const matrix_shape &shape, real value, real *a)
{
    BLOCK_EACH (i, shape.m)
        entry(shape, a, i, i) += value;
    __syncthreads();
}

/* ---- Products ---- */

/* Four neighbours in a row, one or two loads. */
typedef struct alignas(16) {
    real of[MATRIX_TILE];
} matrix_quad;

template <bool TF32>
static __device__ __forceinline__ void product_tile(const matrix_shape &shape, const real *left,
                                                    const real *right,
                                                    real sums[MATRIX_TILE][MATRIX_TILE])
{
    for (int k = 0; k < shape.m; k += MATRIX_TILE) {
        matrix_quad a[MATRIX_TILE];
#pragma unroll
        for (int i = 0; i < MATRIX_TILE; i++)
            a[i] = *(const matrix_quad *)(left + i * shape.stride + k);
#pragma unroll
        for (int n = 0; n < MATRIX_TILE; n++) {
            matrix_quad b = *(const matrix_quad *)(right + (k + n) * shape.stride);
#pragma unroll
            for (int i = 0; i < MATRIX_TILE; i++)
#pragma unroll
                for (int j = 0; j < MATRIX_TILE; j++)
                    sums[i][j] = real_fma(real_factor(TF32, a[i].of[n]), real_factor(TF32, b.of[j]),
                                          sums[i][j]);
        }
    }
}

/* C = A B, or C += A B; C is neither of them. */
static __device__ void matrix_multiply(const matrix_shape &shape, const real *a, const real *b,
                                       bool add, real *c)
{
    unsigned across = (unsigned)(matrix_padded(shape.m) / MATRIX_TILE);
    for (unsigned t = threadIdx.x; t < across * across; t += BLOCK_THREADS) {
        int64_t row = (int64_t)(t / across) * MATRIX_TILE, col = t % across * MATRIX_TILE;
        real sums[MATRIX_TILE][MATRIX_TILE] = {{0}};
        if (shape.tf32)
            product_tile<true>(shape, a + row * shape.stride, b + col, sums);
        else
            product_tile<false>(shape, a + row * shape.stride, b + col, sums);
        matrix_quad *out = (matrix_quad *)(c + row * shape.stride + col);
#pragma unroll
        for (int i = 0; i < MATRIX_TILE; i++) {
            matrix_quad quad;
            if (add)
                quad = out[i * (shape.stride / MATRIX_TILE)];
#pragma unroll
            for (int j = 0; j < MATRIX_TILE; j++)
                quad.of[j] = (add ? quad.of[j] : 0) + sums[i][j];
            out[i * (shape.stride / MATRIX_TILE)] = quad;
        }
    }
    __syncthreads();
}

/* ---- Norms, symmetry ---- */

/* The sums of the threads' a and of their b, returned to all of them. */
static __device__ void block_sum_pair(double *a, double *b)
{
    __shared__ double parts[2][BLOCK_WARPS];
    *a = warp_sum(*a);
    *b = warp_sum(*b);
    if (threadIdx.x % 32 == 0) {
        parts[0][threadIdx.x / 32] = *a;
        parts[1][threadIdx.x / 32] = *b;
    }
    __syncthreads();
    *a = *b = 0;
    for (int i = 0; i < BLOCK_WARPS; i++) {
        *a += parts[0][i];
        *b += parts[1][i];
    }
    __syncthreads();
}

/* Whether a sum of squares is finite and in the range where it is accurate. */
static __device__ __forceinline__ bool is_safe_square(double sum)
{
    return sum >= 0x1p-900 && sum <= 0x1p1000;
}

static __device__ double matrix_frobenius(const matrix_shape &shape, const real *a)
{
    double sum = 0, largest = 0;
    MATRIX_ENTRIES (i, j, shape)
        sum += (double)entry(shape, a, i, j) * (double)entry(shape, a, i, j);
    sum = block_sum(sum);
    if (is_safe_square(sum))
        return sqrt(sum);
    MATRIX_ENTRIES (i, j, shape)
        largest = larger(fabs((double)entry(shape, a, i, j)), largest);
    largest = block_max(largest);
    if (!(largest > 0 && largest < HUGE_VAL))
        return largest;
    int exponent;
    frexp(largest, &exponent);
    sum = 0;
    MATRIX_ENTRIES (i, j, shape) {
        double scaled = ldexp((double)entry(shape, a, i, j), -exponent);
        sum += scaled * scaled;
    }
    return ldexp(sqrt(block_sum(sum)), exponent);
}

/* The sum over |a_ij| of row i of a symmetric matrix, in order; rows `stride` apart. */
static __device__ __forceinline__ double absolute_row(int m, const real *a, int64_t stride,
                                                      int64_t i)
{
    double sum = 0;
    for (int64_t j = 0; j < m; j++)
        sum += (double)real_abs(a[j * stride + i]);
    return sum;
}

/* |A|_1 of a symmetric matrix. */
static __device__ double matrix_norm1(int m, const real *a, int64_t stride)
{
    double norm = 0;
    BLOCK_EACH (i, m)
        norm = larger(norm, absolute_row(m, a, stride, i));
    return block_max(norm);
}

/* The first row whose absolute sum is |A|_1. */
static __device__ int matrix_norm1_row(int m, const real *a, int64_t stride)
{
    double norm = matrix_norm1(m, a, stride);
    int row = m;
    BLOCK_EACH (i, m)
        if ((int)i < row && absolute_row(m, a, stride, i) == norm)
            row = (int)i;
    row = -block_max(-row);
    return row < m ? row : 0;
}

static __device__ bool matrix_finite(const matrix_shape &shape, const real *a)
{
    bool bad = false;
    MATRIX_ENTRIES (i, j, shape)
        bad |= !isfinite(entry(shape, a, i, j));
    return !__syncthreads_or(bad);
}

static __device__ void matrix_symmetrise(const matrix_shape &shape, real *a)
{
    MATRIX_ENTRIES (i, j, shape)
        if (j < i)
            entry(shape, a, i, j) = entry(shape, a, j, i) =
                (entry(shape, a, i, j) + entry(shape, a, j, i)) / 2;
    __syncthreads();
}

/* A -= B */
static __device__ void matrix_subtract(const matrix_shape &shape, const real *b, real *a)
{
    MATRIX_ENTRIES (i, j, shape)
        entry(shape, a, i, j) -= entry(shape, b, i, j);
    __syncthreads();
}

/* |A X A - A|_F / |A|_F from A X, 0 for A = 0; its products do not round their factors. */
static __device__ double matrix_penrose_of_product(matrix_shape shape, const real *a,
                                                   const real *a_x, real *scratch)
{
    shape.tf32 = false;
    matrix_multiply(shape, a_x, a, false, scratch);
    matrix_subtract(shape, a, scratch);
    double norm = matrix_frobenius(shape, a);
    return norm > 0 ? matrix_frobenius(shape, scratch) / norm : 0;
}

static __device__ double matrix_penrose(matrix_shape shape, const real *a, const real *x,
                                        real *scratch1, real *scratch2)
{
    shape.tf32 = false;
    matrix_multiply(shape, a, x, false, scratch1);
    return matrix_penrose_of_product(shape, a, scratch1, scratch2);
}

/* ---- Narrow types (attnum/storage.h) ---- */

static __device__ __forceinline__ real storage_round(atn_storage storage, real x)
{
#ifdef REAL_F32
    if (storage == ATN_STORAGE_BF16)
        return __bfloat162float(__float2bfloat16_rn(x));
    if (storage == ATN_STORAGE_F16)
        return __half2float(__float2half_rn(x));
    if (storage == ATN_STORAGE_TF32 && isfinite(x)) { /* to nearest, ties to even */
        unsigned bits = __float_as_uint(x);
        return __uint_as_float((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
    }
#else
    (void)storage;
#endif
    return x;
}

static __device__ void matrix_store(const matrix_shape &shape, atn_storage storage, real *a)
{
    if (storage == ATN_STORAGE_NATIVE)
        return;
    MATRIX_ENTRIES (i, j, shape)
        entry(shape, a, i, j) = storage_round(storage, entry(shape, a, i, j));
    __syncthreads();
}

#endif
