/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear attention with 1 + elu for the registry; the arithmetic is in operators/elu/cpu.c. */
#include "operators/features/plan.h"
#include "operators/checks.h"

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    (void)shape;
    atn_status status = core_check_choice(context, "elu form", (int)desc->elu.form, ATN_ELU_COUNT);
    return status == ATN_OK ? core_check_epsilon(context, "elu epsilon", desc->elu.epsilon)
                            : status;
}

/* Every element counts as one addition and one exp, although its sign decides which it takes. */
static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    double d = (double)shape->dim;
    double elements = ((double)shape->tokens + (double)shape->key_tokens) * d;
    cost->flops = elements + (double)shape->tokens; /* and epsilon, once a query */
    cost->backward_flops = cost->flops + elements;  /* slopes */
    cost->exps = cost->backward_exps = elements;
    core_count_linear(desc, shape, d, true, cost);
}

/* No law for repeated tokens: epsilon does not double. */
static const atn_variant variants[] = {
    {.name = "stable",
     .description = "exp(x) for x < 0",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .desc = {.elu = {.form = ATN_ELU_STABLE, .epsilon = 1e-6}}},
    {.name = "naive",
     .description = "(exp(x) - 1) + 1 for x < 0, as in the published code",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .desc = {.elu = {.form = ATN_ELU_NAIVE, .epsilon = 1e-6}}},
    {.name = "causal",
     .description = "stable, causal (Katharopoulos et al. 2020)",
     .properties = ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .desc = {.causal = true, .elu = {.form = ATN_ELU_STABLE, .epsilon = 1e-6}}},
};

const operator_row core_elu = {
    .info = {.op = ATN_ELU,
             .name = "elu",
             .formula = "Y = phi(Q) phi(K)^T V / phi(Q) phi(K)^T 1, phi = 1 + elu",
             .source = "Katharopoulos et al. 2020",
             .parameters = "causal, elu",
             .capabilities =
                 OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_CAUSAL | ATN_CAN_LENGTHS,
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
