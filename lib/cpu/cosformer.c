/* SPDX-License-Identifier: BSD-3-Clause */
/* cosFormer's features (Qin et al. 2022), for linear.c: ReLU(x) times the factors that
 * make the cosine of a difference a sum of products,
 *
 *   cos(a - b) = sin a sin b + cos a cos b,
 *
 * for one angle, or the four products of two. All lie in [0, pi/2]: no factor is negative, so
 * nothing cancels. */
#include "cpu/linear.h"

enum { MOST_FACTORS = 4 };

static int64_t factor_count(const atn_attention_desc *desc)
{
    static const int counts[ATN_COSINE_COUNT] = {
        [ATN_COSINE_1D] = 2, [ATN_COSINE_2D] = 4, [ATN_COSINE_NONE] = 1};
    return counts[desc->cosformer.weighting];
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    *thread_reals = R(linear_reals)(factor_count(desc) * shape->dim, 0, desc, shape);
    *head_reals = 0;
}

/* The sine and cosine of pi/2 at / length. */
static void wave(int64_t at, int64_t length, double factors[2])
{
    double angle = acos(0.0) * ((double)at / (double)length);
    factors[0] = sin(angle);
    factors[1] = cos(angle);
}

/* What row i of a block has ReLU(x) multiplied by. Padded tokens keep their place. */
static void factors_of(const head *h, const token_block *b, int64_t i, double factors[MOST_FACTORS])
{
    const atn_cosformer_options *o = &h->desc->cosformer;
    int64_t position = core_position(b->keys ? h->key_positions : h->positions, b->first + i);
    int64_t longer = h->length > h->key_length ? h->length : h->key_length;
    double rows[2], columns[2];
    switch (o->weighting) {
    case ATN_COSINE_1D:
        wave(position + 1, o->length ? o->length : longer, factors);
        return;
    case ATN_COSINE_2D:
        wave(position / o->width, o->height, rows);
        wave(position % o->width, o->width, columns);
        for (int f = 0; f < MOST_FACTORS; f++)
            factors[f] = rows[f / 2] * columns[f % 2];
        return;
    default:
        factors[0] = 1;
    }
}

static void map(const void *own, const token_block *b)
{
    const head *h = own;
    int64_t d = h->d, count = factor_count(h->desc);
    double factors[MOST_FACTORS];
    for (int64_t i = 0; i < b->rows; i++) {
        const real *x = b->x + i * b->stride;
        factors_of(h, b, i, factors);
        for (int64_t f = 0; f < count; f++)
            for (int64_t c = 0; c < d; c++)
                b->phi[(i * count + f) * d + c] = x[c] > 0 ? (real)factors[f] * x[c] : 0;
    }
}

static void pull(void *own, const token_block *b, real *slopes, real *grad, int64_t grad_stride)
{
    const head *h = own;
    int64_t d = h->d, count = factor_count(h->desc);
    double factors[MOST_FACTORS];
    for (int64_t i = 0; i < b->rows; i++) {
        const real *x = b->x + i * b->stride;
        factors_of(h, b, i, factors);
        for (int64_t f = 0; f < count; f++)
            for (int64_t c = 0; c < d; c++)
                if (x[c] > 0)
                    grad[i * grad_stride + c] += (real)factors[f] * slopes[(i * count + f) * d + c];
    }
}

static feature_map map_of(head *h)
{
    return (feature_map){.features = factor_count(h->desc) * h->d,
                         .denominator = LINEAR_CLAMPED,
                         .epsilon = h->desc->cosformer.epsilon,
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

const head_operator R(cosformer) = {.sizes = sizes, .forward = forward, .backward = backward};
