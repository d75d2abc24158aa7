/* SPDX-License-Identifier: BSD-3-Clause */
/* Efficient attention for the registry; the arithmetic is in operators/efficient/cpu.c. */
#include "operators/checks.h"

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    (void)context, (void)desc, (void)shape;
    return ATN_OK;
}

static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    double n = (double)shape->tokens, n_k = (double)shape->key_tokens;
    double d = (double)shape->dim, dv = (double)shape->value_dim;
    cost->flops = (n + n_k) * (2 * d * dv + 2 * d); /* products; sums and scaling */
    /* The softmax over tokens has its sums of p dp from K^T V and its derivative. */
    cost->backward_flops = core_context_backward_flops(n, n_k, d, dv) + n * (2 + 4) * d +
                           n_k * (2 + 2) * d + 2 * d * dv;
    cost->exps = cost->backward_exps = (n + n_k) * d;
    cost->state_bytes = (double)atn_dtype_size(desc->dtype) * (d * dv + 2 * d);
}

/* If every token is given twice, rho_k is halved and the sum over tokens has twice the terms: 1. */
static const atn_variant variants[] = {
    {.name = "paper",
     .description = "softmax normalisation of both (Shen et al. 2021; published code, per head)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .duplication = 1},
};

const operator_row core_efficient = {
    .info = {.op = ATN_EFFICIENT,
             .name = "efficient",
             .formula = "Y = softmax_channels(Q) (softmax_tokens(K)^T V)",
             .source = "Shen et al. 2021 (Efficient Attention), softmax normalisation",
             .parameters = "none",
             .capabilities = OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_LENGTHS,
             .unsupported = "no causal form is published: the softmax of K is over all tokens",
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
