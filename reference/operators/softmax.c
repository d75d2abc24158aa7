/* SPDX-License-Identifier: BSD-3-Clause */
/* Y_i = sum_j softmax_j(c q_i.k_j) v_j (Vaswani et al. 2017, Eq. 1); causal: over j <= i. */
#include "dense.h"

atn_status NUM(ref_softmax)(const ref_head *h, num *out)
{
    if (h->desc->causal && h->n_k != h->n)
        return ATN_ERR_VALUE;
    long double c = NUM(ref_logit_scale)(h);
    num *weights = ref_zeros(h->n_k);
    for (int64_t i = 0; weights && i < h->n; i++) {
        for (int64_t j = 0; j < h->n_k; j++) {
            bool seen = ref_key(h, j) && !(h->desc->causal && j > i);
            num logit = c * NUM(ref_dot)(h->d, h->q + i * h->d, h->k + j * h->d);
            weights[j] = seen ? logit : -INFINITY;
        }
        NUM(ref_softmax_row)(h->n_k, weights);
        if (ref_query(h, i))
            NUM(ref_weigh)(h, weights, out + i * h->dv);
    }
    free(weights);
    return weights ? ATN_OK : ATN_ERR_MEMORY;
}
