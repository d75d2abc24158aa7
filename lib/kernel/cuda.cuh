/* SPDX-License-Identifier: BSD-3-Clause */
/* Gaussian kernel matrices, SOFT (IJCV) Eq. 4, 5, 8, a tile at a time, as in kernel/cpu.c, and
 * their derivative. Under the rules of cuda/block.cuh. */
#ifndef KERNEL_CUDA_CUH
#define KERNEL_CUDA_CUH

#include "cuda/block.cuh"

/* K(x,y) = exp(-s |x-y|^2) on d channels. */
typedef struct {
    atn_distance distance;
    bool tf32;
    int64_t d;
    double s;
} gaussian;

/* Points prepared for gaussian_tile: row j starts at rows + j * stride. */
typedef struct {
    int64_t count, stride;
    const real *rows;
    const real *norms; /* |x|^2; not used by the direct distance */
} point_set;

/* The kernel of a description for heads of width d, with s by atn_kernel_scale. */
static __device__ gaussian gaussian_of(const atn_attention_desc &desc, int64_t heads, int64_t d)
{
    double width = desc.scale == ATN_SCALE_EMBED ? (double)heads * (double)d : (double)d;
    double s = desc.scale == ATN_SCALE_VALUE ? desc.scale_value : 1 / (2 * sqrt(width));
    gaussian k = {desc.distance, desc.dtype == ATN_TF32, d, s};
    return k;
}

/* Prepares the rows; norms: count elements. */
static __device__ point_set gaussian_points(const gaussian &k, int64_t count, const real *rows,
                                            int64_t stride, real *norms)
{
    if (k.distance != ATN_DISTANCE_DIRECT)
        BLOCK_EACH (i, count) {
            real sum = 0;
            for (int64_t c = 0; c < k.d; c++)
                sum = real_fma(rows[i * stride + c], rows[i * stride + c], sum);
            norms[i] = sum;
        }
    __syncthreads();
    point_set set = {count, stride, rows, norms};
    return set;
}

/* |x - y|^2, every one a sum over the channels in order; threads share the tile as in gemm_tiles.
 */
template <int SIZE>
static __device__ void gaussian_distances(int64_t d, const point_set &x, const point_set &y,
                                          real *out, int64_t out_stride)
{
    unsigned down = (unsigned)((x.count + SIZE - 1) / SIZE);
    unsigned across = (unsigned)((y.count + SIZE - 1) / SIZE);
    for (unsigned t = threadIdx.x; t < down * across; t += BLOCK_THREADS) {
        unsigned r = t / across, s = t % across;
        const real *left_at[SIZE], *right_at[SIZE]; /* beyond the end: the last one, not used */
        real sums[SIZE][SIZE] = {{0}};
#pragma unroll
        for (int i = 0; i < SIZE; i++) {
            int64_t row = r + i * down, col = s + i * across;
            left_at[i] = x.rows + (row < x.count ? row : x.count - 1) * x.stride;
            right_at[i] = y.rows + (col < y.count ? col : y.count - 1) * y.stride;
        }
#pragma unroll 2
        for (int64_t c = 0; c < d; c++) {
            real left[SIZE], right[SIZE];
#pragma unroll
            for (int i = 0; i < SIZE; i++) {
                left[i] = left_at[i][c];
                right[i] = right_at[i][c];
            }
#pragma unroll
            for (int i = 0; i < SIZE; i++)
#pragma unroll
                for (int j = 0; j < SIZE; j++) {
                    real away = left[i] - right[j];
                    sums[i][j] = real_fma(away, away, sums[i][j]);
                }
        }
#pragma unroll
        for (int i = 0; i < SIZE; i++)
#pragma unroll
            for (int j = 0; j < SIZE; j++) {
                int64_t row = r + i * down, col = s + j * across;
                if (row < x.count && col < y.count)
                    out[row * out_stride + col] = sums[i][j];
            }
    }
    __syncthreads();
}

/* out (x.count x y.count, row stride out_stride) = K(X, Y). */
static __device__ void gaussian_tile(const gaussian &k, const point_set &x, const point_set &y,
                                     real *out, int64_t out_stride)
{
    bool direct = k.distance == ATN_DISTANCE_DIRECT, clamp = k.distance == ATN_DISTANCE_CLAMPED;
    if (!direct) /* x.y */
        block_gemm(k.tf32, AS_IT_IS, TRANSPOSED, x.count, y.count, k.d, x.rows, x.stride, y.rows,
                   y.stride, false, out, out_stride);
    else if (x.count * y.count >= 16 * BLOCK_THREADS)
        gaussian_distances<4>(k.d, x, y, out, out_stride);
    else
        gaussian_distances<2>(k.d, x, y, out, out_stride);
    real minus_s = (real)-k.s;
    BLOCK_ENTRIES (i, j, x.count, y.count) {
        real squared = out[i * out_stride + j];
        if (!direct) /* |x|^2 + |y|^2 - 2 x.y, as the published torch kernel evaluates it */
            squared = x.norms[i] + y.norms[j] - 2 * squared;
        out[i * out_stride + j] = real_exp(minus_s * (clamp && squared < 0 ? 0 : squared));
    }
    __syncthreads();
}

/* Makes K(L, L), m x m, exactly symmetric: the lower triangle is copied onto the upper. The clamped
 * distance sets the diagonal to 1. */
static __device__ void gaussian_mirror(const gaussian &k, int64_t m, real *a, int64_t stride)
{
    BLOCK_ENTRIES (i, j, m, m) {
        if (j > i)
            a[i * stride + j] = a[j * stride + i];
        else if (i == j && k.distance == ATN_DISTANCE_CLAMPED)
            a[i * stride + j] = 1;
    }
    __syncthreads();
}

/* grad_i -= sum_j W_ij (x_i - y_j), which with W = 2 s K dK is the derivative by x. It uses
 * differences, so points that are far from 0 and near each other lose no accuracy. */
template <int SIZE>
static __device__ void gaussian_backward_tiles(int64_t d, const real *w, int64_t w_row,
                                               int64_t w_col, const point_set &x,
                                               const point_set &y, real *grad, int64_t grad_stride)
{
    unsigned down = (unsigned)((x.count + SIZE - 1) / SIZE);
    unsigned across = (unsigned)((d + SIZE - 1) / SIZE);
    for (unsigned t = threadIdx.x; t < down * across; t += BLOCK_THREADS) {
        unsigned r = t / across, s = t % across;
        int64_t rows[SIZE], cols[SIZE]; /* beyond the end: the last one, not used */
        real sums[SIZE][SIZE] = {{0}}, left[SIZE][SIZE];
#pragma unroll
        for (int i = 0; i < SIZE; i++) {
            rows[i] = r + i * down < x.count ? r + i * down : x.count - 1;
            cols[i] = s + i * across < d ? s + i * across : d - 1;
        }
#pragma unroll
        for (int i = 0; i < SIZE; i++)
#pragma unroll
            for (int c = 0; c < SIZE; c++)
                left[i][c] = x.rows[rows[i] * x.stride + cols[c]];
#pragma unroll 1
        for (int64_t j = 0; j < y.count; j++)
#pragma unroll
            for (int i = 0; i < SIZE; i++) {
                real weight = w[rows[i] * w_row + j * w_col];
#pragma unroll
                for (int c = 0; c < SIZE; c++)
                    sums[i][c] =
                        real_fma(weight, left[i][c] - y.rows[j * y.stride + cols[c]], sums[i][c]);
            }
#pragma unroll
        for (int i = 0; i < SIZE; i++)
#pragma unroll
            for (int c = 0; c < SIZE; c++)
                if (r + i * down < x.count && s + c * across < d)
                    grad[rows[i] * grad_stride + cols[c]] -= sums[i][c];
    }
    __syncthreads();
}

/* W is x.count x y.count, or the transpose of w. */
static __device__ void gaussian_backward(const gaussian &k, int trans_w, const real *w,
                                         int64_t w_stride, const point_set &x, const point_set &y,
                                         real *grad, int64_t grad_stride)
{
    int64_t w_row = trans_w ? 1 : w_stride, w_col = trans_w ? w_stride : 1;
    if (x.count * k.d >= 16 * BLOCK_THREADS)
        gaussian_backward_tiles<4>(k.d, w, w_row, w_col, x, y, grad, grad_stride);
    else
        gaussian_backward_tiles<2>(k.d, w, w_row, w_col, x, y, grad, grad_stride);
}

#endif
