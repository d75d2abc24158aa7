/* SPDX-License-Identifier: BSD-3-Clause */
/* UFO-ViT's cross-normalisation for the registry; the arithmetic is in operators/xnorm/cpu.c. */
#include "operators/checks.h"

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    const atn_xnorm_options *o = &desc->xnorm;
    atn_status status =
        core_check_choice(context, "xnorm.axis", (int)o->axis, ATN_XNORM_AXIS_COUNT);
    if (status == ATN_OK)
        status = core_check_epsilon(context, "xnorm.epsilon", o->epsilon);
    if (status == ATN_OK && o->gamma.data)
        status = core_check_parameter(context, "xnorm.gamma", &o->gamma, desc, shape->heads, 1, 1);
    return status;
}

static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    const atn_tensor *gamma = &desc->xnorm.gamma;
    double n = (double)shape->tokens, n_k = (double)shape->key_tokens;
    double d = (double)shape->dim, dv = (double)shape->value_dim;
    double size = (double)atn_dtype_size(desc->dtype);
    cost->flops = 2 * (n + n_k) * d * dv + 3 * d * (n + dv); /* norms: squares, sums and scaling */
    cost->backward_flops = core_context_backward_flops(n, n_k, d, dv) + (3 + 5) * d * (n + dv);
    cost->state_bytes = size * d * dv;
    cost->bytes = gamma->data ? size * (double)gamma->heads : 0;
}

/* If every token is given twice, K^T V doubles, and its norms cancel that: 1. They also make the
 * operator nonlinear in V. */
static const atn_variant variants[] = {
    {.name = "paper",
     .description = "columns of K^T V, no epsilon (UFO-ViT Eq. 7-8)",
     .properties = ATN_IS_PERMUTABLE,
     .duplication = 1,
     .desc = {.xnorm = {.axis = ATN_XNORM_COLUMNS}}},
    {.name = "port",
     .description = "rows of K^T V, no epsilon (the popular port)",
     .properties = ATN_IS_PERMUTABLE,
     .duplication = 1,
     .desc = {.xnorm = {.axis = ATN_XNORM_ROWS}}},
};

const operator_row core_xnorm = {
    .info = {.op = ATN_XNORM,
             .name = "xnorm",
             .formula = "Y = XN(Q) XN(K^T V), XN(x) = gamma x / |x|",
             .source = "UFO-ViT Eq. 4-8",
             .parameters = "xnorm.axis, xnorm.epsilon, xnorm.gamma",
             .capabilities = OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_LENGTHS,
             .differentiable = 1u << ATN_PARAMETER_GAMMA,
             .unsupported = "no causal form is published: the norms of K^T V are of all tokens",
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
