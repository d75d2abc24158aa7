/* SPDX-License-Identifier: BSD-3-Clause */
/* The features of ReLU linear attention, phi(x) = max(x, 0), channel by channel; what is done with
 * them is in operators/features/cpu.c. */
#include "operators/features/cpu.h"

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    *thread_reals = R(linear_reals)(shape->dim, 0, desc, shape);
    *head_reals = R(linear_state)(shape->dim, desc, shape);
}

static void map(const void *own, const token_block *b)
{
    const head *h = own;
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t c = 0; c < h->d; c++) {
            real x = b->x[i * b->stride + c];
            b->phi[i * h->d + c] = x > 0 ? x : 0;
        }
}

static void map_backward(const void *own, const token_block *b, real *slopes, bool add, real *grad,
                         int64_t grad_stride)
{
    const head *h = own;
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t c = 0; c < h->d; c++) {
            real slope = b->x[i * b->stride + c] > 0 ? slopes[i * h->d + c] : 0;
            grad[i * grad_stride + c] = (add ? grad[i * grad_stride + c] : 0) + slope;
        }
}

static feature_map map_of(head *h)
{
    return (feature_map){.features = h->d,
                         .denominator = LINEAR_ADDED,
                         .epsilon = h->desc->relu.epsilon,
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

const head_operator R(cpu_operator_relu) = {
    .sizes = sizes,
    .before = before,
    .forward = forward,
    .backward = backward,
    .shares = HEAD_SHARED,
    .overwrites = true,
    .searches = true,
    .searches_gradients = true,
};
