/* SPDX-License-Identifier: BSD-3-Clause */
/* Fused multiply-adds and nothing else, to measure the device's peak rate. */
#include "cuda/rates.h"

#include "cuda/device.h"
#include "cuda/launch.cuh"
#include "cuda/real.cuh"

/* Several chains per thread, and several warps, hide the latency of a multiply-add. */
enum { CHAINS = 8, THREADS = 256, BLOCKS_EACH = 8, UNROLLED = 16 };

/* x <- a x + b stays between 0 and 1 for the factors it is called with, so nothing is ever stored;
 * the compiler cannot know. */
static __global__ void __launch_bounds__(THREADS)
    multiply_add_kernel(real a, real b, int64_t steps, real *scratch)
{
    real x[CHAINS], sum = 0;
    for (int i = 0; i < CHAINS; i++)
        x[i] = static_cast<real>(threadIdx.x) / THREADS / static_cast<real>(i + 1);
    for (int64_t step = 0; step < steps; step++)
#pragma unroll
        for (int i = 0; i < UNROLLED * CHAINS; i++)
            x[i % CHAINS] = fma(a, x[i % CHAINS], b);
    for (int i = 0; i < CHAINS; i++)
        sum += x[i];
    if (!(sum < 2 * CHAINS))
        *scratch = sum;
}

atn_status R(cuda_multiply_add)(atn_context *context, int multiprocessors, int64_t steps,
                                void *scratch, double *flops)
{
    unsigned blocks = static_cast<unsigned>(multiprocessors) * BLOCKS_EACH;
    *flops = 2.0 * UNROLLED * CHAINS * THREADS * blocks * static_cast<double>(steps);
    return device_result(context,
                         cuda_launch(multiply_add_kernel, dim3(blocks), dim3(THREADS), 0,
                                     static_cast<cudaStream_t>(device_stream(context)),
                                     static_cast<real>(0.5), static_cast<real>(0.25), steps,
                                     static_cast<real *>(scratch)),
                         "multiply-adds");
}
