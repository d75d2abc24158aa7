/* SPDX-License-Identifier: BSD-3-Clause */
/* Linformer (Wang et al. 2020, Eq. 7): Y = softmax(c Q K'^T) V', K' = E^T K, V' = F^T V. */
#include "dense.h"

/* to (r x cols) = E^T from, over the tokens that are not masked. */
static void compress(const ref_head *h, int64_t r, int64_t cols, const num *e, const num *from,
                     num *to)
{
    for (int64_t j = 0; j < h->n_k; j++)
        for (int64_t l = 0; ref_key(h, j) && l < r; l++)
            for (int64_t c = 0; c < cols; c++)
                to[l * cols + c] += e[j * r + l] * from[j * cols + c];
}

atn_status NUM(ref_linformer)(const ref_head *h, num *out)
{
    const num *e = NUM(ref_parameter)(h, ATN_PARAMETER_E);
    const num *f = NUM(ref_parameter)(h, ATN_PARAMETER_F);
    int64_t r = h->desc->linformer.e.cols;
    if (!e || h->desc->linformer.e.rows < h->n_k || h->desc->causal)
        return ATN_ERR_VALUE;
    long double scale = NUM(ref_logit_scale)(h);
    num *keys = ref_zeros(r * h->d), *values = ref_zeros(r * h->dv), *weights = ref_zeros(r);
    bool room = keys && values && weights;
    if (room) {
        compress(h, r, h->d, e, h->k, keys);
        compress(h, r, h->dv, f ? f : e, h->v, values);
    }
    for (int64_t i = 0; room && i < h->n; i++) {
        for (int64_t l = 0; l < r; l++)
            weights[l] = scale * NUM(ref_dot)(h->d, h->q + i * h->d, keys + l * h->d);
        NUM(ref_softmax_row)(r, weights);
        if (ref_query(h, i))
            NUM(ref_multiply)(1, r, h->dv, weights, values, out + i * h->dv);
    }
    free(keys), free(values), free(weights);
    return room ? ATN_OK : ATN_ERR_MEMORY;
}
