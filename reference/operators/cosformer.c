/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights w(i,j) ReLU(q_i).ReLU(k_j) over their sum: cosFormer (Qin et al. 2022), Eq. 9-11; on a
 * grid SimA, appendix. i and j are positions in the padded sequence. */
#include "problem.h"

static const long double half_pi = 1.57079632679489661923132169163975144L;

/* cos(pi t / (2 length)) for t = 0 .. count - 1. */
static long double *cosines(int64_t count, long double length)
{
    long double *table = ref_take((size_t)count, sizeof(long double));
    for (int64_t t = 0; table && t < count; t++)
        table[t] = cosl(half_pi * (long double)t / length);
    return table;
}

/* w(i,j) depends on differences of positions only, so counting may start anywhere, and each cosine
 * is computed once. A sequence is a grid of one column; without weighting all cosines are 1. */
typedef struct {
    int64_t width;
    long double *down, *across;
} localities;

static localities make_localities(const ref_head *h)
{
    const atn_cosformer_options *o = &h->desc->cosformer;
    int64_t longest = h->n > h->n_k ? h->n : h->n_k;
    if (o->weighting == ATN_COSINE_2D)
        return (localities){o->width, cosines(o->height, (long double)o->height),
                            cosines(o->width, (long double)o->width)};
    long double length = (long double)(o->length > 0 ? o->length : longest);
    if (o->weighting == ATN_COSINE_NONE)
        length = INFINITY;
    return (localities){1, cosines(longest, length), cosines(1, 1)};
}

static long double locality(const localities *l, int64_t i, int64_t j)
{
    return l->down[llabs(i / l->width - j / l->width)] *
           l->across[llabs(i % l->width - j % l->width)];
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
    localities l = make_localities(h);
    atn_status status = q && k && weights && sums && l.down && l.across ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK) {
        relu(h->n * h->d, h->q, q);
        relu(h->n_k * h->d, h->k, k);
    }
    for (int64_t i = 0; status == ATN_OK && i < h->n; i++) {
        for (int64_t j = 0; j < h->n_k; j++)
            weights[i * h->n_k + j] =
                locality(&l, i, j) * NUM(ref_dot)(h->d, q + i * h->d, k + j * h->d);
        sums[i] = num_max(NUM(ref_row_sum)(h, weights, i), h->desc->cosformer.epsilon);
    }
    if (status == ATN_OK)
        NUM(ref_apply)(h, weights, sums, out);
    free(q), free(k), free(weights), free(sums), free(l.down), free(l.across);
    return status;
}
