/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear attention's features (Katharopoulos et al. 2020), for linear.c:
 * phi(x) = 1 + elu(x), channel by channel. */
#include "cpu/linear.h"

#include "cpu/simd.h"

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    *thread_reals = R(linear_reals)(shape->dim, 0, desc, shape);
    *head_reals = 0;
}

/* Published code makes an array of elu(x), which a narrow type rounds, and adds 1 to it. */
static void map(const void *own, const token_block *b)
{
    const head *h = own;
    bool naive = h->desc->elu.form == ATN_ELU_NAIVE;
    for (int64_t i = 0; i < b->rows; i++) {
        const real *x = b->x + i * b->stride;
        real *phi = b->phi + i * h->d;
        for (int64_t c = 0; c < h->d; c++)
            phi[c] = x[c] < 0 ? x[c] : 0;
        R(simd).exponentials(h->d, 1, 0, phi);
        for (int64_t c = 0; c < h->d; c++)
            phi[c] = x[c] < 0 ? phi[c] - (real)naive : x[c] + (real)!naive;
        if (!naive)
            continue;
        R(store)(h->desc->storage, 1, h->d, phi, h->d);
        for (int64_t c = 0; c < h->d; c++)
            phi[c] += 1;
    }
}

static void pull(void *own, const token_block *b, real *slopes, real *grad, int64_t grad_stride)
{
    const head *h = own;
    for (int64_t i = 0; i < b->rows; i++) {
        const real *x = b->x + i * b->stride;
        for (int64_t c = 0; c < h->d; c++)
            grad[i * grad_stride + c] += slopes[i * h->d + c] * (x[c] < 0 ? real_exp(x[c]) : 1);
    }
}

static feature_map map_of(head *h)
{
    return (feature_map){.features = h->d,
                         .denominator = LINEAR_ADDED,
                         .epsilon = h->desc->elu.epsilon,
                         .own = h,
                         .map = map,
                         .pull = pull};
}

static void forward(const head *h)
{
    head own = *h;
    feature_map features = map_of(&own);
    R(linear_forward)(h, &features);
}

static void backward(const head *h)
{
    head own = *h;
    feature_map features = map_of(&own);
    R(linear_backward)(h, &features);
}

const head_operator R(elu) = {.sizes = sizes, .forward = forward, .backward = backward};
