/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights phi(q).phi(k), phi(x) = [cos(sqrt(2 s) w_r.x), sin(sqrt(2 s) w_r.x)] / sqrt(M), the
 * random Fourier features of exp(-s |q - k|^2): Rahimi and Recht 2007, Algorithm 1. */
#include "problem.h"

/* phi of tokens x d, tokens x 2 M. */
static void features(const ref_head *h, int64_t tokens, const num *x, num *phi)
{
    int64_t m = h->desc->rff.projection.rows;
    const double *w = NUM(ref_constant)(h, &h->desc->rff.projection);
    long double root = sqrtl(2 * NUM(ref_kernel_scale)(h)), size = sqrtl((long double)m);
    for (int64_t i = 0; i < tokens; i++)
        for (int64_t r = 0; r < m; r++) {
            num angle = 0;
            for (int64_t c = 0; c < h->d; c++)
                angle += w[r * h->d + c] * x[i * h->d + c];
            phi[i * 2 * m + r] = num_cos(root * angle) / size;
            phi[i * 2 * m + m + r] = num_sin(root * angle) / size;
        }
}

atn_status NUM(ref_rff)(const ref_head *h, num *out)
{
    int64_t width = 2 * h->desc->rff.projection.rows;
    num *q = ref_zeros(h->n * width), *k = ref_zeros(h->n_k * width);
    num *weights = ref_zeros(h->n * h->n_k);
    atn_status status = q && k && weights ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK) {
        features(h, h->n, h->q, q);
        features(h, h->n_k, h->k, k);
        for (int64_t i = 0; i < h->n; i++)
            for (int64_t j = 0; j < h->n_k; j++)
                weights[i * h->n_k + j] = NUM(ref_dot)(width, q + i * width, k + j * width);
        NUM(ref_apply)(h, weights, NULL, out);
    }
    free(q), free(k), free(weights);
    return status;
}
