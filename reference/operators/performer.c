/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights phi(q).phi(k) over their sum, phi the positive random features of exp(c q.k): Choromanski
 * et al. 2021, Lemma 1; stabiliser and both epsilons as in attnum/operators.h. */
#include "problem.h"

/* w_r.x'_i, tokens x M, with x' = sqrt(c) x. */
static void project(const ref_head *h, int64_t tokens, const num *x, num *wx)
{
    int64_t m = h->desc->performer.projection.rows;
    const double *w = NUM(ref_constant)(h, &h->desc->performer.projection);
    long double root = sqrtl(NUM(ref_logit_scale)(h));
    for (int64_t i = 0; i < tokens; i++)
        for (int64_t r = 0; r < m; r++)
            for (int64_t c = 0; c < h->d; c++)
                wx[i * m + r] += w[r * h->d + c] * root * x[i * h->d + c];
}

static num largest(int64_t tokens, int64_t m, const unsigned char *mask, const num *wx)
{
    num t = -INFINITY;
    for (int64_t i = 0; i < tokens; i++)
        for (int64_t r = 0; (!mask || mask[i]) && r < m; r++)
            t = num_max(t, wx[i * m + r]);
    return t;
}

/* phi(x), in place of w.x'. */
static void features(const ref_head *h, num t, const num *x, num *wx)
{
    const atn_performer_options *o = &h->desc->performer;
    int64_t m = o->projection.rows;
    num half = NUM(ref_logit_scale)(h) * NUM(ref_dot)(h->d, x, x) / 2;
    for (int64_t r = 0; r < m; r++)
        if (o->features == ATN_FEATURES_RELU)
            wx[r] = num_max(0, wx[r]) + o->feature_epsilon;
        else
            wx[r] = (num_exp(wx[r] - half - t) + o->feature_epsilon) / sqrtl((long double)m);
}

/* phi(q) and phi(k): t is each query's own, but one for all keys. */
static void all_features(const ref_head *h, num *q, num *k)
{
    int64_t m = h->desc->performer.projection.rows;
    bool stabilise = h->desc->performer.stabilise;
    project(h, h->n, h->q, q);
    project(h, h->n_k, h->k, k);
    for (int64_t i = 0; i < h->n; i++)
        features(h, stabilise ? largest(1, m, NULL, q + i * m) : 0, h->q + i * h->d, q + i * m);
    num t = stabilise ? largest(h->n_k, m, h->key_mask, k) : 0;
    for (int64_t j = 0; j < h->n_k; j++)
        features(h, t, h->k + j * h->d, k + j * m);
}

atn_status NUM(ref_performer)(const ref_head *h, num *out)
{
    int64_t m = h->desc->performer.projection.rows;
    num *q = ref_zeros(h->n * m), *k = ref_zeros(h->n_k * m);
    num *weights = ref_zeros(h->n * h->n_k), *sums = ref_zeros(h->n);
    atn_status status = q && k && weights && sums ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK)
        all_features(h, q, k);
    for (int64_t i = 0; status == ATN_OK && i < h->n; i++) {
        for (int64_t j = 0; j < h->n_k; j++)
            weights[i * h->n_k + j] = NUM(ref_dot)(m, q + i * m, k + j * m);
        sums[i] = NUM(ref_row_sum)(h, weights, i);
        for (int64_t r = 0; r < m; r++)
            sums[i] += q[i * m + r] * h->desc->performer.denominator_epsilon;
    }
    if (status == ATN_OK)
        NUM(ref_apply)(h, weights, sums, out);
    free(q), free(k), free(weights), free(sums);
    return status;
}
