/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact Gaussian kernel attention for the registry; the arithmetic is in operators/gaussian/cpu.c.
 */
#include "kernel/plan.h"
#include "operators/checks.h"

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    double s = atn_kernel_scale(desc->scale, desc->scale_value, shape->heads, shape->dim);
    return core_check_kernel(context, desc, s);
}

static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    double pairs = (double)shape->tokens * (double)shape->key_tokens;
    cost->flops = pairs * (core_pair_flops(desc->distance, (double)shape->dim) +
                           2 * (double)shape->value_dim);
    cost->exps = cost->backward_exps = pairs;
    cost->backward_flops =
        pairs *
            (core_pair_flops(desc->distance, (double)shape->dim) + 4 * (double)shape->value_dim) +
        core_kernel_backward_flops((double)shape->tokens, (double)shape->key_tokens,
                                   (double)shape->dim);
}

static const atn_variant variants[] = {
    {.name = "exact",
     .description = "every pair of tokens (SOFT IJCV Appendix D)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR,
     .duplication = 2,
     .desc = {.scale = ATN_SCALE_HEAD}},
};

const operator_row core_gaussian = {
    .info = {.op = ATN_GAUSSIAN,
             .name = "gaussian",
             .formula = "Y = K(Q,K) V, K(x,y) = exp(-s |x-y|^2)",
             .source = "SOFT (IJCV) Eq. 4, Appendix D",
             .parameters = "scale, distance",
             .capabilities = OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_LENGTHS,
             .unsupported = "no causal form is published",
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
