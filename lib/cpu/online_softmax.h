/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax over keys that come block by block, and its derivative's inner products. */
#ifndef CPU_ONLINE_SOFTMAX_H
#define CPU_ONLINE_SOFTMAX_H

#include "cpu/real.h"

/* A row of logits becomes exp(logit - peak), peak the largest so far (-infinity at first). If it
 * rises, what was summed up before shrinks: sum, and the row of out. */
static inline void online_softmax_row(int64_t keys, real *row, real *peak, double *sum, int64_t dv,
                                      real *out)
{
    real highest = *peak;
    for (int64_t j = 0; j < keys; j++)
        highest = row[j] > highest ? row[j] : highest;
    if (highest > *peak) {
        real shrink = real_exp(*peak - highest);
        *peak = highest;
        *sum *= (double)shrink;
        for (int64_t c = 0; c < dv; c++)
            out[c] *= shrink;
    }
    for (int64_t j = 0; j < keys; j++) {
        row[j] = real_exp(row[j] - highest);
        *sum += (double)row[j];
    }
}

static inline double row_dot(int64_t count, const real *x, const real *y)
{
    double sum = 0;
    for (int64_t c = 0; c < count; c++)
        sum += (double)x[c] * (double)y[c];
    return sum;
}

#endif
