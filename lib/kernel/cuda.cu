/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole Gaussian kernel matrices, SOFT (IJCV) Eq. 4, 5, 8, one thread for each entry. */
#include "cuda/heads.cuh"
#include "kernel/cuda.h"

typedef struct {
    atn_distance distance;
    bool tf32, self;
    double s;
    atn_tensor x, y, out;
} kernel_job;

/* |x - y|^2 as in gaussian_tile: sums over the channels in order. */
static __device__ real squared_distance(const kernel_job &job, const token_rows &x, int64_t i,
                                        const token_rows &y, int64_t j)
{
    real direct = 0, x_norm = 0, y_norm = 0, product = 0;
    for (int64_t c = 0; c < job.x.cols; c++) {
        real a = rows_get(x, i, c), b = rows_get(y, j, c);
        direct = real_fma(a - b, a - b, direct);
        x_norm = real_fma(a, a, x_norm);
        y_norm = real_fma(b, b, y_norm);
        product = real_fma(real_factor(job.tf32, a), real_factor(job.tf32, b), product);
    }
    if (job.distance == ATN_DISTANCE_DIRECT)
        return direct;
    real squared = x_norm + y_norm - 2 * product;
    return job.distance == ATN_DISTANCE_CLAMPED && squared < 0 ? 0 : squared;
}

/* For K(L, L) the lower triangle is computed and copied to the upper one; the clamped distance sets
 * the diagonal to 1. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
    fill_kernel(const __grid_constant__ kernel_job job)
{
    int64_t rows = job.out.rows, cols = job.out.cols;
    THREAD_EACH (e, job.out.batch * job.out.heads * rows * cols) {
        int64_t piece = e / (rows * cols), i = e / cols % rows, j = e % cols;
        if (job.self && j > i)
            continue;
        token_rows to = rows_of(job.out, piece, NULL);
        real squared =
            squared_distance(job, rows_of(job.x, piece, NULL), i, rows_of(job.y, piece, NULL), j);
        if (job.self && i == j && job.distance == ATN_DISTANCE_CLAMPED)
            squared = 0;
        real entry = real_exp((real)-job.s * squared);
        rows_set(to, i, j, entry);
        if (job.self && j < i)
            rows_set(to, j, i, entry);
    }
}

atn_status R(cuda_gaussian)(atn_context *context, atn_distance distance, double s,
                            const atn_tensor *x, const atn_tensor *y, const atn_tensor *out)
{
    kernel_job job = {distance, x->dtype == ATN_TF32, !y, s, *x, y ? *y : *x, *out};
    int64_t count = out->batch * out->heads * out->rows * out->cols;
    return device_result(context,
                         cuda_launch(fill_kernel, blocks_for(count), dim3(BLOCK_THREADS), 0,
                                     (cudaStream_t)device_stream(context), job),
                         "the kernel matrix");
}
