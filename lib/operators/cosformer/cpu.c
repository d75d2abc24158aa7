/* SPDX-License-Identifier: BSD-3-Clause */
/* cosFormer's features (Qin et al. 2022), for features/cpu.c: ReLU(x) times the factors that
 * make the cosine of a difference a sum of products,
 *
 *   cos(a - b) = sin a sin b + cos a cos b,
 *
 * for one angle, or the four products of two. All lie in [0, pi/2]: no factor is negative, so
 * nothing cancels. */
#include "operators/features/cpu.h"

static int64_t factor_count(const atn_attention_desc *desc)
{
    static const int counts[ATN_COSINE_COUNT] = {
        [ATN_COSINE_1D] = 2, [ATN_COSINE_2D] = 4, [ATN_COSINE_NONE] = 1};
    return counts[desc->cosformer.weighting];
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    int64_t count = factor_count(desc);
    *thread_reals = R(linear_reals)(count * shape->dim, count, desc, shape);
    *head_reals = R(linear_state)(count * shape->dim, desc, shape);
}

static int64_t position_of(const head *h, const token_block *b, int64_t i)
{
    return core_position(b->keys ? h->key_positions : h->positions, b->first + i);
}

/* Sines and cosines of pi/2 at / length for a block's rows. Padding does not shift other tokens. */
typedef struct {
    double sines[HEAD_BLOCK], cosines[HEAD_BLOCK];
} waves;

static void find_waves(const int64_t *at, int64_t rows, int64_t length, waves *w)
{
    double quarter = acos(0.0);
    for (int64_t i = 0; i < rows; i++)
        w->cosines[i] = quarter * ((double)at[i] / (double)length);
    R(simd).sincos_f64(rows, w->cosines, w->sines);
}

static void factors_along(const head *h, const token_block *b)
{
    int64_t longer = h->length > h->key_length ? h->length : h->key_length;
    int64_t length = h->desc->cosformer.length, at[HEAD_BLOCK];
    waves w;
    for (int64_t i = 0; i < b->rows; i++)
        at[i] = position_of(h, b, i) + 1;
    find_waves(at, b->rows, length ? length : longer, &w);
    for (int64_t i = 0; i < b->rows; i++) {
        b->kept[2 * i] = (real)w.sines[i];
        b->kept[2 * i + 1] = (real)w.cosines[i];
    }
}

static void factors_on_grid(const head *h, const token_block *b)
{
    const atn_cosformer_options *o = &h->desc->cosformer;
    int64_t row[HEAD_BLOCK], column[HEAD_BLOCK];
    waves y, x;
    for (int64_t i = 0; i < b->rows; i++) {
        row[i] = position_of(h, b, i) / o->width;
        column[i] = position_of(h, b, i) % o->width;
    }
    find_waves(row, b->rows, o->height, &y);
    find_waves(column, b->rows, o->width, &x);
    for (int64_t i = 0; i < b->rows; i++) {
        real *factors = b->kept + 4 * i;
        factors[0] = (real)(y.sines[i] * x.sines[i]);
        factors[1] = (real)(y.sines[i] * x.cosines[i]);
        factors[2] = (real)(y.cosines[i] * x.sines[i]);
        factors[3] = (real)(y.cosines[i] * x.cosines[i]);
    }
}

/* Fills kept with the factors of ReLU(x). */
static void find_factors(const head *h, const token_block *b)
{
    switch (h->desc->cosformer.weighting) {
    case ATN_COSINE_1D:
        factors_along(h, b);
        return;
    case ATN_COSINE_2D:
        factors_on_grid(h, b);
        return;
    default:
        for (int64_t i = 0; i < b->rows; i++)
            b->kept[i] = 1;
    }
}

static void map(const void *own, const token_block *b)
{
    const head *h = own;
    find_factors(h, b);
    R(simd).relu(b->rows, factor_count(h->desc), b->kept, h->d, b->x, b->stride, b->phi);
}

static void map_backward(const void *own, const token_block *b, real *slopes, bool add, real *grad,
                         int64_t grad_stride)
{
    const head *h = own;
    R(simd).relu_backward(b->rows, factor_count(h->desc), b->kept, h->d, b->x, b->stride, slopes,
                          add, grad, grad_stride);
}

static feature_map map_of(head *h)
{
    return (feature_map){.features = factor_count(h->desc) * h->d,
                         .kept = factor_count(h->desc),
                         .denominator = LINEAR_CLAMPED,
                         .epsilon = h->desc->cosformer.epsilon,
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

const head_operator R(cpu_operator_cosformer) = {
    .sizes = sizes,
    .before = before,
    .forward = forward,
    .backward = backward,
    .shares = HEAD_SHARED,
    .overwrites = true,
    .searches = true,
    .searches_gradients = true,
};
