/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear attention's features (Katharopoulos et al. 2020), for features/cpu.c:
 * phi(x) = 1 + elu(x), channel by channel. */
#include "operators/features/cpu.h"

#include "cpu/simd.h"

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    *thread_reals = R(linear_reals)(shape->dim, shape->dim, desc, shape);
    *head_reals = R(linear_state)(shape->dim, desc, shape);
}

/* kept = phi' = exp(min(x, 0)), and phi is kept + max(x, 0), where one of the terms is 1 or 0.
 * Published code stores elu(x), which is rounded in a narrow type, and adds 1 to it. */
static void map(const void *own, const token_block *b)
{
    const head *h = own;
    bool naive = h->desc->elu.form == ATN_ELU_NAIVE;
    real *restrict slopes = b->kept, *restrict phi = b->phi;
    bool dense = b->stride == h->d; /* rows that follow one another count as one */
    int64_t count = dense ? b->rows * h->d : h->d;
    for (int64_t i = 0; i < (dense ? 1 : b->rows); i++)
        R(simd).elu(count, naive, b->x + i * b->stride, slopes + i * h->d, phi + i * h->d);
    if (!naive)
        return;
    R(store)(h->desc->storage, b->rows, h->d, phi, h->d);
    for (int64_t e = 0; e < b->rows * h->d; e++)
        phi[e] += 1;
}

static void map_backward(const void *own, const token_block *b, real *slopes, bool add, real *grad,
                         int64_t grad_stride)
{
    const head *h = own;
    bool dense = grad_stride == h->d;
    int64_t count = dense ? b->rows * h->d : h->d;
    for (int64_t i = 0; i < (dense ? 1 : b->rows); i++) {
        const real *of = slopes + i * h->d, *kept = b->kept + i * h->d;
        real *restrict to = grad + i * grad_stride;
        for (int64_t c = 0; c < count; c++)
            to[c] = (add ? to[c] : 0) + of[c] * kept[c];
    }
}

static feature_map map_of(head *h)
{
    return (feature_map){.features = h->d,
                         .kept = h->d,
                         .denominator = LINEAR_ADDED,
                         .epsilon = h->desc->elu.epsilon,
                         .own = h,
                         .map = map,
                         .map_backward = map_backward};
}

static void run(const head *h, void (*pass)(const head *, const feature_map *))
{
    head own = *h;
    feature_map features = map_of(&own);
    pass(h, &features);
}

static void before(const head *h)
{
    run(h, R(linear_before));
}

static void forward(const head *h)
{
    run(h, R(linear_forward));
}

static void backward(const head *h)
{
    run(h, R(linear_backward));
}

const head_operator R(cpu_operator_elu) = {
    .sizes = sizes,
    .before = before,
    .forward = forward,
    .backward = backward,
    .shares = HEAD_SHARED,
    .overwrites = true,
    .searches = true,
    .searches_gradients = true,
};
