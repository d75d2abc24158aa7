/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention for the registry; the arithmetic is in operators/softmax/cpu.c. */
#include "operators/checks.h"

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    (void)shape;
    return core_check_logit_scale(context, desc);
}

/* Causal: row i has i keys, (n + 1) / 2 on average. */
static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    double n = (double)shape->tokens, keys = desc->causal ? (n + 1) / 2 : (double)shape->key_tokens;
    core_count_softmax(n, keys, (double)shape->dim, (double)shape->value_dim, cost);
}

static const atn_variant variants[] = {
    {.name = "attention",
     .description = "scaled dot products, every pair of tokens (Vaswani et al. 2017, Eq. 1)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .duplication = 1},
    {.name = "causal",
     .description = "token i sees tokens 1 to i (Vaswani et al. 2017, section 3.2.3)",
     .properties = ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .desc = {.causal = true}},
};

const operator_row core_softmax = {
    .info = {.op = ATN_SOFTMAX,
             .name = "softmax",
             .formula = "Y = softmax(c Q K^T) V",
             .source = "Vaswani et al. 2017, Eq. 1",
             .parameters = "logit_scale, causal",
             .capabilities = OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_CAUSAL |
                             ATN_CAN_LENGTHS | ATN_CAN_CPU_BF16,
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
