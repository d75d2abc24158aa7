/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights ReLU(q).ReLU(k) over their sum (Cai et al. 2023). */
#include "problem.h"

static num relu(num x)
{
    return num_value(x) > 0 ? x : 0;
}

atn_status NUM(ref_relu)(const ref_head *h, num *out)
{
    num *weights = ref_zeros(h->n * h->n_k), *sums = ref_zeros(h->n);
    atn_status status = weights && sums ? ATN_OK : ATN_ERR_MEMORY;
    for (int64_t i = 0; status == ATN_OK && i < h->n; i++) {
        for (int64_t j = 0; j < h->n_k; j++)
            for (int64_t c = 0; c < h->d; c++)
                weights[i * h->n_k + j] += relu(h->q[i * h->d + c]) * relu(h->k[j * h->d + c]);
        sums[i] = NUM(ref_row_sum)(h, weights, i) + h->desc->relu.epsilon;
    }
    if (status == ATN_OK)
        NUM(ref_apply)(h, weights, sums, out);
    free(weights), free(sums);
    return status;
}
