/* SPDX-License-Identifier: BSD-3-Clause */
/* Y = XN(q) XN(k^T v): UFO-ViT Eq. 4-8. */
#include "problem.h"

/* gamma x / max(|x|, epsilon) for count numbers `stride` apart, in place. */
static void cross_normalise(num gamma, double epsilon, int64_t count, int64_t stride, num *x)
{
    num squared = 0;
    for (int64_t i = 0; i < count; i++)
        squared += x[i * stride] * x[i * stride];
    num norm = num_max(num_sqrt(squared), epsilon);
    for (int64_t i = 0; i < count; i++)
        x[i * stride] = gamma * x[i * stride] / norm;
}

/* T = k^T v over the keys that are not masked (Eq. 5), its columns or rows normalised (Eq. 8). */
static void clusters(const ref_head *h, num gamma, num *t)
{
    const atn_xnorm_options *o = &h->desc->xnorm;
    for (int64_t j = 0; j < h->n_k; j++)
        for (int64_t r = 0; ref_key(h, j) && r < h->d; r++)
            for (int64_t c = 0; c < h->dv; c++)
                t[r * h->dv + c] += h->k[j * h->d + r] * h->v[j * h->dv + c];
    if (o->axis == ATN_XNORM_COLUMNS)
        for (int64_t c = 0; c < h->dv; c++)
            cross_normalise(gamma, o->epsilon, h->d, h->dv, t + c);
    else
        for (int64_t r = 0; r < h->d; r++)
            cross_normalise(gamma, o->epsilon, h->dv, 1, t + r * h->dv);
}

atn_status NUM(ref_xnorm)(const ref_head *h, num *out)
{
    if (h->desc->causal)
        return ATN_ERR_VALUE; /* the norms of T depend on every key */
    const num *given = NUM(ref_parameter)(h, ATN_PARAMETER_GAMMA);
    num gamma = given ? given[0] : 1;
    num *t = ref_zeros(h->d * h->dv), *q = ref_zeros(h->d);
    atn_status status = t && q ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK)
        clusters(h, gamma, t);
    for (int64_t i = 0; status == ATN_OK && i < h->n; i++) {
        for (int64_t r = 0; r < h->d; r++)
            q[r] = h->q[i * h->d + r];
        cross_normalise(gamma, h->desc->xnorm.epsilon, h->d, 1, q);
        for (int64_t c = 0; ref_query(h, i) && c < h->dv; c++)
            for (int64_t r = 0; r < h->d; r++)
                out[i * h->dv + c] += q[r] * t[r * h->dv + c];
    }
    free(t), free(q);
    return status;
}
