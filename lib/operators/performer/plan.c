/* SPDX-License-Identifier: BSD-3-Clause */
/* Performer for the registry; the arithmetic is in operators/performer/cpu.c. */
#include "operators/features/plan.h"
#include "operators/checks.h"

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    const atn_performer_options *o = &desc->performer;
    atn_status status = core_check_logit_scale(context, desc);
    if (status == ATN_OK)
        status = core_check_choice(context, "features", (int)o->features, ATN_FEATURES_COUNT);
    if (status == ATN_OK)
        status = core_check_epsilon(context, "feature_epsilon", o->feature_epsilon);
    if (status == ATN_OK)
        status = core_check_epsilon(context, "denominator_epsilon", o->denominator_epsilon);
    return status == ATN_OK ? core_check_projection(context, &o->projection, desc, shape) : status;
}

/* x' takes d, w.x' 2 d per feature, |x'|^2 / 2 another 2 d. */
static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    const atn_performer_options *o = &desc->performer;
    bool exponential = o->features == ATN_FEATURES_EXP, stabilised = exponential && o->stabilise;
    double m = (double)o->projection.rows, d = (double)shape->dim;
    double tokens = (double)shape->tokens + (double)shape->key_tokens;
    double elementwise = exponential ? 3 + stabilised : 1; /* -|x'|^2 / 2, -t, +, / sqrt(M) */
    cost->flops = tokens * (d + (exponential ? 2 * d : 0) + m * (2 * d + elementwise));
    /* slopes, their sum for |x'|^2 / 2, the projection, x' times that sum, the scale */
    double slopes = exponential ? 2 : 1;
    cost->backward_flops =
        cost->flops + tokens * (m * (2 * d + slopes) + (exponential ? 2 * d : 0) + d);
    cost->exps = cost->backward_exps = exponential ? tokens * m : 0;
    cost->bytes = core_projection_bytes(&o->projection);
    cost->state_bytes = stabilised * (double)atn_dtype_size(desc->dtype); /* t of the keys */
    core_count_linear(desc, shape, m, true, cost);
    if (o->denominator_epsilon > 0) {
        cost->flops += m;
        cost->backward_flops += m;
    }
}

static const atn_variant variants[] = {
    {.name = "favor",
     .description = "FAVOR+ with stabiliser and epsilon 1e-4 (the widest-used code)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .duplication = 1,
     .desc = {.performer = {.features = ATN_FEATURES_EXP,
                            .stabilise = true,
                            .feature_epsilon = 1e-4}}},
    {.name = "unbiased",
     .description = "FAVOR+ without epsilon: unbiased estimates of exp(c q.k)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .duplication = 1,
     .desc = {.performer = {.features = ATN_FEATURES_EXP, .stabilise = true}}},
    {.name = "relu",
     .description = "generalised kernel, ReLU, epsilon 1e-3 (the widest-used code)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .duplication = 1,
     .desc = {.performer = {.features = ATN_FEATURES_RELU, .feature_epsilon = 1e-3}}},
    {.name = "favor-causal",
     .description = "favor, causal, 1e-6 in the denominator (the widest-used code): later keys act "
                    "through the stabiliser",
     .properties = ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .desc = {.causal = true,
              .performer = {.features = ATN_FEATURES_EXP,
                            .stabilise = true,
                            .feature_epsilon = 1e-4,
                            .denominator_epsilon = 1e-6}}},
    {.name = "causal",
     .description = "causal, no stabiliser, no epsilon: later keys do not act",
     .properties = ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .desc = {.causal = true, .performer = {.features = ATN_FEATURES_EXP}}},
};

const operator_row core_performer = {
    .info = {.op = ATN_PERFORMER,
             .name = "performer",
             .formula = "Y = phi(Q) phi(K)^T V / phi(Q) phi(K)^T 1, positive random features",
             .source = "Choromanski et al. 2021",
             .parameters = "causal, logit_scale, performer",
             .capabilities =
                 OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_CAUSAL | ATN_CAN_LENGTHS,
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
