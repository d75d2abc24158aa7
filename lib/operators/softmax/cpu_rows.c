/* SPDX-License-Identifier: BSD-3-Clause */
/* The softmax of one row. Sums are in double: a row may be as long as a sequence. */
#include "operators/softmax/cpu.h"

#include <string.h>

#include "cpu/simd.h"

void R(softmax_row)(int64_t count, double c, const real *x, real *weights)
{
    const simd *kernels = &R(simd);
    if (c < 0)
        for (int64_t j = 0; j < count; j++)
            weights[j] = -x[j];
    else if (weights != x)
        memcpy(weights, x, (size_t)count * sizeof *x);
    kernels->exponentials(count, (real)fabs(c), kernels->largest(count, weights, -INFINITY),
                          weights);
    double sum = R(sum)(count, weights), reciprocal = 1 / sum;
    for (int64_t j = 0; j < count; j++)
        weights[j] = (real)(sizeof(real) < sizeof(double) ? (double)weights[j] * reciprocal
                                                          : (double)weights[j] / sum);
}

/* dP is taken relative to its value where P is largest: where P is nearly 1, the difference of dP
 * and its mean would be all rounding error. */
void R(softmax_row_backward)(int64_t count, double c, const real *weights, real *slopes)
{
    enum { LANES = 8 }; /* partial sums that a vector unit adds in parallel */
    double sums[LANES] = {0}, mean = 0;
    int64_t whole = count - count % LANES;
    real largest = R(simd).largest(count, weights, -INFINITY);
    double pivot = (double)slopes[R(find)(count, weights, largest)];
    for (int64_t j = 0; j < whole; j += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += (double)weights[j + lane] * ((double)slopes[j + lane] - pivot);
    for (int64_t j = whole; j < count; j++)
        mean += (double)weights[j] * ((double)slopes[j] - pivot);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++)
            sums[lane] += sums[lane + half];
    mean += sums[0];
    for (int64_t j = 0; j < count; j++)
        slopes[j] = (real)(c * (double)weights[j] * ((double)slopes[j] - pivot - mean));
}

double R(softmax_raise)(int64_t keys, double c, const real *logits, real *largest, int64_t *at)
{
    real before = *largest, highest = R(simd).largest(keys, logits, before);
    if (!(highest > before))
        return 1;
    if (at)
        *at = R(find)(keys, logits, highest);
    *largest = highest;
    return exp(c * ((double)before - (double)highest));
}

double R(softmax_weigh)(int64_t keys, double c, real largest, real *logits)
{
    R(simd).exponentials(keys, (real)c, largest, logits);
    return R(sum)(keys, logits);
}

void R(scale_row)(int64_t count, double factor, real *x)
{
    if (factor == 1)
        return;
    for (int64_t c = 0; c < count; c++)
        x[c] = (real)((double)x[c] * factor);
}
