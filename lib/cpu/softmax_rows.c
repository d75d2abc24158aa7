/* SPDX-License-Identifier: BSD-3-Clause */
/* The softmax of one row. Sums are in double: a row may be as long as a sequence. */
#include "cpu/softmax.h"

#include "cpu/simd.h"

void R(softmax_row)(int64_t count, double c, const real *x, real *weights)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++)
        largest = core_max(largest, c * (double)x[j]);
    for (int64_t j = 0; j < count; j++)
        weights[j] = (real)(c * (double)x[j] - largest);
    R(simd).exponentials(count, 1, 0, weights);
    for (int64_t j = 0; j < count; j++)
        sum += (double)weights[j];
    for (int64_t j = 0; j < count; j++)
        weights[j] = (real)((double)weights[j] / sum);
}

/* Relative to dP where P is largest: where P is nearly 1, dP less the mean of dP would be the
 * rounding error of the mean. */
void R(softmax_row_backward)(int64_t count, double c, const real *weights, real *slopes)
{
    int64_t largest = 0;
    double mean = 0;
    for (int64_t j = 1; j < count; j++)
        if (weights[j] > weights[largest])
            largest = j;
    double pivot = (double)slopes[largest];
    for (int64_t j = 0; j < count; j++)
        mean += (double)weights[j] * ((double)slopes[j] - pivot);
    for (int64_t j = 0; j < count; j++)
        slopes[j] = (real)(c * (double)weights[j] * ((double)slopes[j] - pivot - mean));
}

double R(softmax_advance)(int64_t keys, real *logits, real *largest, double *sum, int64_t *at)
{
    const simd *kernels = &R(simd);
    real before = *largest, highest = kernels->largest(keys, logits, before);
    if (highest > before)
        for (*at = 0; logits[*at] != highest; ++*at)
            ;
    double shrink = highest > before ? exp((double)before - (double)highest) : 1;
    kernels->exponentials(keys, 1, highest, logits);
    *sum = *sum * shrink + R(sum)(keys, logits);
    *largest = highest;
    return shrink;
}

void R(scale_row)(int64_t count, double factor, real *x)
{
    if (factor == 1)
        return;
    for (int64_t c = 0; c < count; c++)
        x[c] = (real)((double)x[c] * factor);
}
