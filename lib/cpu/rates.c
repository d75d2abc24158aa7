/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of known cost (attnum/timing.h). */
#include "cpu/blocks.h"

double R(multiply_adds)(int threads, int64_t steps, void *scratch)
{
    const simd *kernels = &R(simd);
    double chains = 0;
    real sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : chains, sum)
    chains += (double)kernels->multiply_adds(16 * steps, &sum);
    if (!(sum - sum == 0)) /* never; but the compiler does not know */
        *(real *)scratch = sum;
    return 2 * 16 * (double)steps * chains;
}

void R(exponentials)(int threads, int64_t rounds, int64_t count, void *x)
{
    const simd *kernels = &R(simd);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int thread = 0; thread < threads; thread++)
        for (int64_t i = 0; i < rounds; i++)
            kernels->scaled_exponentials(count, -1, 0, (real *)x + thread * count);
}

void R(product)(const atn_product_shape *shape, const void *a, const void *b, void *c)
{
    real_gemm(shape->transpose_a ? CblasTrans : CblasNoTrans,
              shape->transpose_b ? CblasTrans : CblasNoTrans, shape->rows, shape->cols,
              shape->inner, a, shape->transpose_a ? shape->rows : shape->inner, b,
              shape->transpose_b ? shape->inner : shape->cols, shape->add, c, shape->cols);
}
