/* SPDX-License-Identifier: BSD-3-Clause */
/* The softmax of the rows of a matrix, as in cpu/softmax_rows.c: a warp to each row, sums in
 * double. */
#ifndef CUDA_SOFTMAX_ROWS_CUH
#define CUDA_SOFTMAX_ROWS_CUH

#include "cuda/block.cuh"

/* weights (may be x) = softmax(c x); c x is kept in double. By the lanes of a warp. */
static __device__ void softmax_row(int64_t count, double c, const real *x, real *weights)
{
    double largest = -HUGE_VAL, sum = 0;
    for (int64_t j = threadIdx.x % 32; j < count; j += 32)
        largest = larger(largest, c * (double)x[j]);
    largest = warp_max(largest);
    for (int64_t j = threadIdx.x % 32; j < count; j += 32) {
        weights[j] = real_exp((real)(c * (double)x[j] - largest));
        sum += (double)weights[j];
    }
    sum = warp_sum(sum);
    for (int64_t j = threadIdx.x % 32; j < count; j += 32)
        weights[j] = (real)((double)weights[j] / sum);
}

/* Where a row is largest, the first such place; for all lanes. */
static __device__ int64_t largest_place(int64_t count, const real *row)
{
    real most = -REAL_INFINITY;
    int64_t place = 0;
    for (int64_t j = threadIdx.x % 32; j < count; j += 32)
        if (row[j] > most) {
            most = row[j];
            place = j;
        }
    for (int away = 16; away > 0; away /= 2) {
        real other = __shfl_xor_sync(0xffffffffu, most, away);
        int64_t other_place = __shfl_xor_sync(0xffffffffu, place, away);
        if (other > most || (other == most && other_place < place)) {
            most = other;
            place = other_place;
        }
    }
    return place;
}

/* The other way: slopes, the derivative by the weights P, becomes that by x, c P (dP - P.dP);
 * relative to dP where P is largest, as where P is nearly 1, dP less the mean of dP would be the
 * rounding error of the mean. */
static __device__ void softmax_row_backward(int64_t count, double c, const real *weights,
                                            real *slopes)
{
    double pivot = (double)slopes[largest_place(count, weights)], mean = 0;
    __syncwarp(); /* a lane reads another's slope, which is about to change */
    for (int64_t j = threadIdx.x % 32; j < count; j += 32)
        mean += (double)weights[j] * ((double)slopes[j] - pivot);
    mean = warp_sum(mean);
    for (int64_t j = threadIdx.x % 32; j < count; j += 32)
        slopes[j] = (real)(c * (double)weights[j] * ((double)slopes[j] - pivot - mean));
}

/* The same for all rows of a dense matrix. */
static __device__ void block_softmax(int64_t rows, int64_t cols, double c, const real *x,
                                     real *weights)
{
    for (int64_t i = threadIdx.x / 32; i < rows; i += BLOCK_WARPS)
        softmax_row(cols, c, x + i * cols, weights + i * cols);
    __syncthreads();
}

static __device__ void block_softmax_backward(int64_t rows, int64_t cols, double c,
                                              const real *weights, real *slopes)
{
    for (int64_t i = threadIdx.x / 32; i < rows; i += BLOCK_WARPS)
        softmax_row_backward(cols, c, weights + i * cols, slopes + i * cols);
    __syncthreads();
}

#endif
