/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions for references that form their weights, n x n_k. */
#include "problem.h"

num NUM(ref_row_sum)(const ref_head *h, const num *weights, int64_t i)
{
    num sum = 0;
    for (int64_t j = 0; j < h->n_k; j++)
        if (ref_sees(h, i, j))
            sum += weights[i * h->n_k + j];
    return sum;
}

void NUM(ref_apply)(const ref_head *h, const num *weights, const num *divisors, num *out)
{
    for (int64_t i = 0; i < h->n; i++)
        for (int64_t c = 0; ref_query(h, i) && c < h->dv; c++) {
            num sum = 0;
            bool seen = false; /* an average over no keys is 0 */
            for (int64_t j = 0; j < h->n_k; j++)
                if (ref_sees(h, i, j)) {
                    sum += weights[i * h->n_k + j] * h->v[j * h->dv + c];
                    seen = true;
                }
            out[i * h->dv + c] = divisors && seen ? sum / divisors[i] : sum;
        }
}

void NUM(ref_soft_weights)(int64_t count, num *x)
{
    num largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        largest = num_max(largest, x[i]);
    for (int64_t i = 0; i < count; i++)
        sum += x[i] = num_exp(x[i] - largest);
    for (int64_t i = 0; i < count; i++)
        x[i] /= sum;
}
