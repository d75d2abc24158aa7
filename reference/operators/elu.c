/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights phi(q).phi(k) over their sum, phi = 1 + elu: Katharopoulos et al. 2020, Eq. 4 and 7. */
#include "problem.h"

/* Both forms of the description are this function. */
static void features(int64_t count, const num *x, num *phi)
{
    for (int64_t i = 0; i < count; i++)
        phi[i] = num_value(x[i]) >= 0 ? x[i] + 1 : num_exp(x[i]);
}

atn_status NUM(ref_elu)(const ref_head *h, num *out)
{
    num *q = ref_zeros(h->n * h->d), *k = ref_zeros(h->n_k * h->d);
    num *weights = ref_zeros(h->n * h->n_k), *sums = ref_zeros(h->n);
    atn_status status = q && k && weights && sums ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK) {
        features(h->n * h->d, h->q, q);
        features(h->n_k * h->d, h->k, k);
    }
    for (int64_t i = 0; status == ATN_OK && i < h->n; i++) {
        for (int64_t j = 0; j < h->n_k; j++)
            weights[i * h->n_k + j] = NUM(ref_dot)(h->d, q + i * h->d, k + j * h->d);
        sums[i] = NUM(ref_row_sum)(h, weights, i) + h->desc->elu.epsilon;
    }
    if (status == ATN_OK)
        NUM(ref_apply)(h, weights, sums, out);
    free(q), free(k), free(weights), free(sums);
    return status;
}
