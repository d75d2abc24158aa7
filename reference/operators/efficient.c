/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights rho(q).rho(k), rho the softmax over a query's channels and over a channel's keys: Shen et
 * al. 2021, softmax normalisation. Their rows sum to 1. */
#include "problem.h"

/* Each channel's softmax over the keys that are not masked. */
static void over_tokens(const ref_head *h, num *column, num *k)
{
    for (int64_t c = 0; c < h->d; c++) {
        int64_t count = 0;
        for (int64_t j = 0; j < h->n_k; j++)
            if (ref_key(h, j))
                column[count++] = h->k[j * h->d + c];
        NUM(ref_soft_weights)(count, column);
        count = 0;
        for (int64_t j = 0; j < h->n_k; j++)
            if (ref_key(h, j))
                k[j * h->d + c] = column[count++];
    }
}

atn_status NUM(ref_efficient)(const ref_head *h, num *out)
{
    if (h->desc->causal)
        return ATN_ERR_VALUE; /* the softmax over tokens depends on every key */
    num *q = ref_zeros(h->d), *k = ref_zeros(h->n_k * h->d), *column = ref_zeros(h->n_k);
    num *weights = ref_zeros(h->n * h->n_k);
    atn_status status = q && k && column && weights ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK)
        over_tokens(h, column, k);
    for (int64_t i = 0; status == ATN_OK && i < h->n; i++) {
        for (int64_t c = 0; c < h->d; c++)
            q[c] = h->q[i * h->d + c];
        NUM(ref_soft_weights)(h->d, q);
        for (int64_t j = 0; j < h->n_k; j++)
            weights[i * h->n_k + j] = NUM(ref_dot)(h->d, q, k + j * h->d);
    }
    if (status == ATN_OK)
        NUM(ref_apply)(h, weights, NULL, out);
    free(q), free(k), free(column), free(weights);
    return status;
}
