/* SPDX-License-Identifier: BSD-3-Clause */
#include "soft.h"

#include <math.h>

void ref_gaussian(int64_t p, int64_t q, int64_t d, const double *x, const double *y, double s,
                  double *k)
{
    for (int64_t i = 0; i < p; i++) {
        for (int64_t j = 0; j < q; j++) {
            long double distance = 0;
            for (int64_t c = 0; c < d; c++) {
                long double step = (long double)x[i * d + c] - y[j * d + c];
                distance += step * step;
            }
            k[i * q + j] = (double)expl(-s * distance);
        }
    }
}

void ref_pool(int64_t height, int64_t width, int64_t d, int64_t k, const double *tokens,
              double *landmarks)
{
    if (k < 1)
        return;
    int64_t across = width / k;
    for (int64_t window = 0; window < height / k * across; window++) {
        for (int64_t c = 0; c < d; c++) {
            long double sum = 0;
            for (int64_t i = 0; i < k * k; i++) {
                int64_t y = window / across * k + i / k, x = window % across * k + i % k;
                sum += tokens[(y * width + x) * d + c];
            }
            landmarks[window * d + c] = (double)(sum / (long double)(k * k));
        }
    }
}
