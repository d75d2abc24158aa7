/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights w(i,j) ReLU(q_i).ReLU(k_j) over their sum: cosFormer (Qin et al. 2022), Eq. 9-11; on a
 * grid SimA, appendix. i and j are positions in the padded sequence. */
#include "problem.h"

static const long double half_pi = 1.57079632679489661923132169163975144L;

/* w(i,j). It depends on differences of positions only, so counting may start anywhere. */
static long double locality(const ref_head *h, int64_t i, int64_t j)
{
    const atn_cosformer_options *o = &h->desc->cosformer;
    int64_t length = h->n > h->n_k ? h->n : h->n_k;
    if (o->length > 0)
        length = o->length;
    if (o->weighting == ATN_COSINE_1D)
        return cosl(half_pi * (long double)(i - j) / (long double)length);
    if (o->weighting == ATN_COSINE_NONE)
        return 1;
    int64_t down = i / o->width - j / o->width, across = i % o->width - j % o->width;
    return cosl(half_pi * (long double)down / (long double)o->height) *
           cosl(half_pi * (long double)across / (long double)o->width);
}

static bool on_grid(const ref_head *h)
{
    int64_t height = h->desc->cosformer.height, width = h->desc->cosformer.width;
    return height > 0 && width > 0 && height * width == h->n && h->n_k == h->n;
}

/* ReLU, with slope 0 at 0. */
static void relu(int64_t count, const num *x, num *phi)
{
    for (int64_t i = 0; i < count; i++)
        phi[i] = num_max(0, x[i]);
}

atn_status NUM(ref_cosformer)(const ref_head *h, num *out)
{
    if (h->desc->cosformer.weighting == ATN_COSINE_2D && !on_grid(h))
        return ATN_ERR_SHAPE;
    num *q = ref_zeros(h->n * h->d), *k = ref_zeros(h->n_k * h->d);
    num *weights = ref_zeros(h->n * h->n_k), *sums = ref_zeros(h->n);
    atn_status status = q && k && weights && sums ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK) {
        relu(h->n * h->d, h->q, q);
        relu(h->n_k * h->d, h->k, k);
    }
    for (int64_t i = 0; status == ATN_OK && i < h->n; i++) {
        for (int64_t j = 0; j < h->n_k; j++)
            weights[i * h->n_k + j] =
                locality(h, i, j) * NUM(ref_dot)(h->d, q + i * h->d, k + j * h->d);
        sums[i] = num_max(NUM(ref_row_sum)(h, weights, i), h->desc->cosformer.epsilon);
    }
    if (status == ATN_OK)
        NUM(ref_apply)(h, weights, sums, out);
    free(q), free(k), free(weights), free(sums);
    return status;
}
