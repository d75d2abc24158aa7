/* SPDX-License-Identifier: BSD-3-Clause */
/* Y = (q^ k^^T) v, columns of q and k divided by their norm over the tokens: SimA Eq. 1-2. */
#include "problem.h"

/* |x_:c| over the tokens that are not masked. */
static num column_norm(atn_sima_norm norm, int64_t tokens, int64_t d, const unsigned char *mask,
                       const num *x, int64_t c)
{
    num sum = 0;
    for (int64_t i = 0; i < tokens; i++)
        if (!mask || mask[i])
            sum += norm == ATN_SIMA_L1 ? num_abs(x[i * d + c]) : x[i * d + c] * x[i * d + c];
    return norm == ATN_SIMA_L1 ? sum : num_sqrt(sum);
}

static void normalise(const ref_head *h, int64_t tokens, const unsigned char *mask, const num *x,
                      num *normal)
{
    const atn_sima_options *o = &h->desc->sima;
    for (int64_t c = 0; c < h->d; c++) {
        num divisor = 1;
        if (o->norm != ATN_SIMA_NONE)
            divisor = num_max(column_norm(o->norm, tokens, h->d, mask, x, c), o->epsilon);
        for (int64_t i = 0; i < tokens; i++)
            normal[i * h->d + c] = x[i * h->d + c] / divisor;
    }
}

atn_status NUM(ref_sima)(const ref_head *h, num *out)
{
    if (h->desc->causal)
        return ATN_ERR_VALUE; /* the norms depend on every token */
    num *q = ref_zeros(h->n * h->d), *k = ref_zeros(h->n_k * h->d);
    num *weights = ref_zeros(h->n * h->n_k);
    atn_status status = q && k && weights ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK) {
        normalise(h, h->n, h->query_mask, h->q, q);
        normalise(h, h->n_k, h->key_mask, h->k, k);
        for (int64_t i = 0; i < h->n; i++)
            for (int64_t j = 0; j < h->n_k; j++)
                weights[i * h->n_k + j] = NUM(ref_dot)(h->d, q + i * h->d, k + j * h->d);
        NUM(ref_apply)(h, weights, NULL, out);
    }
    free(q), free(k), free(weights);
    return status;
}
