/* SPDX-License-Identifier: BSD-3-Clause */
/* cosFormer for the registry; the arithmetic is in operators/cosformer/cpu.c. */
#include <inttypes.h>

#include "operators/checks.h"
#include "operators/features/plan.h"

static atn_status check_grid(atn_context *context, const atn_cosformer_options *o,
                             const atn_attention_shape *shape)
{
    int64_t cells;
    if (o->height >= 1 && o->width >= 1 && !__builtin_mul_overflow(o->height, o->width, &cells) &&
        cells == shape->tokens && cells == shape->key_tokens)
        return ATN_OK;
    return core_fail(context, ATN_ERR_SHAPE,
                     "cosformer: grid %" PRId64 "x%" PRId64 " does not hold %" PRId64
                     " queries and %" PRId64 " keys",
                     o->height, o->width, shape->tokens, shape->key_tokens);
}

static atn_status check_length(atn_context *context, const atn_cosformer_options *o,
                               const atn_attention_shape *shape)
{
    int64_t longer = shape->tokens > shape->key_tokens ? shape->tokens : shape->key_tokens;
    if (o->length == 0 || o->length >= longer)
        return ATN_OK;
    return core_fail(context, ATN_ERR_SHAPE,
                     "cosformer: length is %" PRId64 ", expected 0 or at least %" PRId64, o->length,
                     longer);
}

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    const atn_cosformer_options *o = &desc->cosformer;
    atn_status status =
        core_check_choice(context, "weighting", (int)o->weighting, ATN_COSINE_COUNT);
    if (status == ATN_OK)
        status = core_check_epsilon(context, "cosformer epsilon", o->epsilon);
    if (status == ATN_OK && o->weighting == ATN_COSINE_1D)
        status = check_length(context, o, shape);
    if (status == ATN_OK && o->weighting == ATN_COSINE_2D)
        status = check_grid(context, o, shape);
    return status;
}

/* Per token: a sine and a cosine for each angle, in 2-D their four products, and the factors on
 * ReLU(x). */
static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    static const struct {
        double waves, products, features;
    } sizes[ATN_COSINE_COUNT] = {
        [ATN_COSINE_1D] = {2, 0, 2}, [ATN_COSINE_2D] = {4, 4, 4}, [ATN_COSINE_NONE] = {0, 0, 1}};
    atn_cosine weighting = desc->cosformer.weighting;
    double tokens = (double)shape->tokens + (double)shape->key_tokens;
    double features = sizes[weighting].features * (double)shape->dim;
    cost->exps = cost->backward_exps = tokens * sizes[weighting].waves;
    cost->flops = tokens * sizes[weighting].products;
    if (weighting != ATN_COSINE_NONE)
        cost->flops += tokens * features;
    cost->backward_flops = cost->flops;
    if (weighting != ATN_COSINE_NONE) /* weights, and the sum over a channel's features */
        cost->backward_flops += tokens * (2 * features - (double)shape->dim);
    core_count_linear(desc, shape, features, true, cost);
}

/* Not ATN_IS_STOCHASTIC: weights are nonnegative, and a row sums to 1 if its denominator exceeds
 * epsilon, but the row of a query without a positive channel sums to 0. */
static const atn_variant variants[] = {
    {.name = "1d",
     .description = "cosine of the distance along the sequence (Qin et al. 2022)",
     .properties = ATN_IS_LINEAR,
     .desc = {.cosformer = {.weighting = ATN_COSINE_1D, .epsilon = 1e-6}}},
    {.name = "2d",
     .description = "cosines of the distances along rows and columns of a grid (SimA appendix)",
     .properties = ATN_IS_LINEAR,
     .desc = {.cosformer = {.weighting = ATN_COSINE_2D, .epsilon = 1e-6}}},
    {.name = "none",
     .description = "ReLU alone, no re-weighting (cosFormer's ablation)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR,
     .duplication = 1,
     .desc = {.cosformer = {.weighting = ATN_COSINE_NONE, .epsilon = 1e-6}}},
    {.name = "causal",
     .description = "1d, causal (published code)",
     .properties = ATN_IS_LINEAR,
     .desc = {.causal = true, .cosformer = {.weighting = ATN_COSINE_1D, .epsilon = 1e-6}}},
};

const operator_row core_cosformer = {
    .info = {.op = ATN_COSFORMER,
             .name = "cosformer",
             .formula = "Y_i = sum_j w(i,j) ReLU(q_i).ReLU(k_j) v_j / max(the sum, epsilon)",
             .source = "Qin et al. 2022; SimA appendix (2-D)",
             .parameters = "causal, cosformer",
             .capabilities =
                 OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_CAUSAL | ATN_CAN_LENGTHS,
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
