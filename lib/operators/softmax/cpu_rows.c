/* SPDX-License-Identifier: BSD-3-Clause */
/* The softmax of rows. Sums of more than eight numbers are in double: a row may be as long as a
 * sequence. */
#include "operators/softmax/cpu.h"

#include <string.h>

#include "cpu/simd.h"

/* weights = -x */
static void negate(int64_t rows, int64_t count, const real *x, int64_t x_stride, real *weights,
                   int64_t stride)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < count; j++)
            weights[i * stride + j] = -x[i * x_stride + j];
}

void R(softmax_rows)(int64_t rows, int64_t count, double c, const real *x, int64_t x_stride,
                     real *weights, int64_t stride)
{
    const simd *kernels = &R(simd);
    int64_t counts[SOFTMAX_GROUP];
    for (int i = 0; i < SOFTMAX_GROUP; i++)
        counts[i] = count;
    if (c < 0) {
        negate(rows, count, x, x_stride, weights, stride);
        x = weights;
        x_stride = stride;
    }
    for (int64_t some; rows > 0; rows -= some, x += some * x_stride, weights += some * stride) {
        real largest[SOFTMAX_GROUP], factors[SOFTMAX_GROUP];
        double sums[SOFTMAX_GROUP];
        some = rows < SOFTMAX_GROUP ? rows : SOFTMAX_GROUP;
        for (int64_t i = 0; i < some; i++)
            largest[i] = -(real)INFINITY;
        kernels->largest_of_rows(some, counts, x, x_stride, largest);
        kernels->exponential_rows(some, counts, fabs(c), largest, x, x_stride, weights, stride,
                                  sums);
        for (int64_t i = 0; i < some; i++)
            factors[i] = sizeof(real) < sizeof(double) ? (real)(1 / sums[i]) : (real)sums[i];
        for (int64_t i = 0; i < some; i++) {
            real factor = factors[i], *row = weights + i * stride;
            for (int64_t j = 0; j < count; j++)
                row[j] = sizeof(real) < sizeof(double) ? row[j] * factor : row[j] / factor;
        }
    }
}

double R(softmax_pivot)(double largest_weight, double largest_slope)
{
    return largest_weight >= 0.5 ? largest_slope : 0;
}

void R(softmax_rows_backward)(int64_t rows, int64_t count, double c, const real *weights,
                              int64_t stride, real *slopes, int64_t slope_stride)
{
    const simd *kernels = &R(simd);
    real scale = (real)c;
    int64_t counts[SOFTMAX_GROUP];
    for (int i = 0; i < SOFTMAX_GROUP; i++)
        counts[i] = count;
    for (int64_t group; rows > 0;
         rows -= group, weights += group * stride, slopes += group * slope_stride) {
        real pivots[SOFTMAX_GROUP];
        double means[SOFTMAX_GROUP];
        group = rows < SOFTMAX_GROUP ? rows : SOFTMAX_GROUP;
        kernels->softmax_peaks(group, count, weights, stride, slopes, slope_stride, pivots);
        kernels->weighted_rows(group, counts, weights, stride, slopes, slope_stride, pivots, means);
        for (int64_t i = 0; i < group; i++) {
            const real *of = weights + i * stride;
            real *row = slopes + i * slope_stride, pivot = pivots[i], mean = (real)means[i];
            for (int64_t j = 0; j < count; j++)
                row[j] = scale * of[j] * (row[j] - pivot - mean);
        }
    }
}

void R(softmax_raise)(int64_t rows, const int64_t *keys, double c, const real *logits,
                      int64_t stride, real *largest, double *shrink)
{
    real before[SOFTMAX_GROUP];
    memcpy(before, largest, (size_t)rows * sizeof *before);
    R(simd).largest_of_rows(rows, keys, logits, stride, largest);
    for (int64_t i = 0; i < rows; i++) {
        bool raised = largest[i] > before[i], first = before[i] == -(real)INFINITY;
        double fall = (double)before[i] - (double)largest[i];
        shrink[i] = !raised ? 1 : first ? 0 : exp(c * fall);
    }
}

void R(scale_row)(int64_t count, double factor, real *x)
{
    if (factor == 1)
        return;
    for (int64_t c = 0; c < count; c++)
        x[c] = (real)((double)x[c] * factor);
}
