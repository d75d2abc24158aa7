/* SPDX-License-Identifier: BSD-3-Clause */
/* ReLU linear attention (Cai et al. 2023, EfficientViT) for the registry. */
#include "operators/features/plan.h"

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    (void)shape;
    return core_check_epsilon(context, "relu epsilon", desc->relu.epsilon);
}

/* A comparison counts as an addition; one addition of epsilon a query. Its derivative keeps what
 * the comparison keeps. */
static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    double n = (double)shape->tokens, d = (double)shape->dim;
    cost->flops = cost->backward_flops = (n + (double)shape->key_tokens) * d + n;
    core_count_linear(desc, shape, d, true, cost);
}

/* Not stochastic, and no law for doubled tokens: a query without positive channels has Y = 0, and
 * epsilon does not double. */
static const atn_variant variants[] = {
    {.name = "code",
     .description = "epsilon 1e-15 added to the sum (published code)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR,
     .desc = {.relu = {.epsilon = 1e-15}}},
};

const operator_row core_relu = {
    .info = {.op = ATN_RELU,
             .name = "relu",
             .formula = "Y = phi(Q) phi(K)^T V / phi(Q) phi(K)^T 1, phi = ReLU",
             .source = "Cai et al. 2023 (EfficientViT)",
             .parameters = "relu.epsilon",
             .capabilities = ATN_CAN_F32 | ATN_CAN_F64 | ATN_CAN_CPU | ATN_CAN_CUDA |
                             ATN_CAN_BACKWARD | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_LENGTHS,
             .unsupported = "no causal form is published",
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
