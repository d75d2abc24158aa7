/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights phi(q).phi(k), phi the random Fourier features of exp(-s |q - k|^2): Rahimi and Recht
 * 2007, Algorithm 1. cos a cos b + sin a sin b = cos(a - b), so the weights are
 *
 *   (1/M) sum_r cos(sqrt(2 s) w_r.(q_i - k_j)) */
#include "problem.h"

atn_status NUM(ref_rff)(const ref_head *h, num *out)
{
    const atn_tensor *projection = &h->desc->rff.projection;
    const double *w = NUM(ref_constant)(h, projection);
    long double root = sqrtl(2 * NUM(ref_kernel_scale)(h));
    num *weights = ref_zeros(h->n * h->n_k);
    if (!weights)
        return ATN_ERR_MEMORY;
    for (int64_t i = 0; i < h->n; i++)
        for (int64_t j = 0; j < h->n_k; j++)
            for (int64_t r = 0; ref_sees(h, i, j) && r < projection->rows; r++) {
                num angle = 0;
                for (int64_t c = 0; c < h->d; c++)
                    angle += w[r * h->d + c] * (h->q[i * h->d + c] - h->k[j * h->d + c]);
                weights[i * h->n_k + j] += num_cos(root * angle) / (long double)projection->rows;
            }
    NUM(ref_apply)(h, weights, NULL, out);
    free(weights);
    return ATN_OK;
}
