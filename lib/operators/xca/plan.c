/* SPDX-License-Identifier: BSD-3-Clause */
/* XCiT's cross-covariance attention for the registry; the arithmetic is in operators/xca/cpu.c. */
#include <inttypes.h>

#include "operators/checks.h"

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    const atn_xca_options *o = &desc->xca;
    if (shape->value_dim != shape->dim)
        return core_fail(context, ATN_ERR_SHAPE,
                         "xca: value_dim is %" PRId64 ", expected dim, %" PRId64, shape->value_dim,
                         shape->dim);
    atn_status status = core_check_epsilon(context, "xca.epsilon", o->epsilon);
    if (status == ATN_OK && o->temperature.data)
        status = core_check_parameter(context, "xca.temperature", &o->temperature, desc,
                                      shape->heads, 1, 1);
    return status;
}

static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    const atn_tensor *tau = &desc->xca.temperature;
    double n = (double)shape->tokens, d = (double)shape->dim;
    double size = (double)atn_dtype_size(desc->dtype);
    /* Norms: squares, sums and scaling. For A: tau, row sums, scaling. */
    cost->flops = 2 * 3 * n * d + 2 * (2 * n * d * d) + 3 * d * d;
    /* Q^T K and four products more; A's softmax and its scale; sums over tokens from Q^T K and its
     * derivative; 3 per element of q and k. */
    cost->backward_flops = 2 * (3 + 3) * n * d + 5 * (2 * n * d * d) + (3 + 5 + 4) * d * d;
    cost->exps = cost->backward_exps = d * d;
    cost->state_bytes = size * (2 * d + d * d);
    cost->bytes = tau->data ? size * (double)tau->heads : 0;
}

/* If every token is given twice, l2 norms grow by sqrt(2), q^_:a.k^_:b does not change, and A acts
 * on each token: 1. */
static const atn_variant variants[] = {
    {.name = "code",
     .description = "norms of at least 1e-12, logits multiplied by tau (published code)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_COLUMN_FREE,
     .duplication = 1,
     .desc = {.xca = {.epsilon = 1e-12}}},
    {.name = "paper",
     .description = "no epsilon (El-Nouby et al. 2021; its tau is 1 over this one)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_COLUMN_FREE,
     .duplication = 1,
     .desc = {.xca = {.epsilon = 0}}},
};

const operator_row core_xca = {
    .info = {.op = ATN_XCA,
             .name = "xca",
             .formula = "Y = V A^T, A = softmax_rows(tau Q^^T K^), columns of l2 norm 1",
             .source = "El-Nouby et al. 2021 (XCiT)",
             .parameters = "xca.temperature, xca.epsilon",
             .capabilities = OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS,
             .differentiable = 1u << ATN_PARAMETER_TEMPERATURE,
             .unsupported = "Q^T K pairs query i with key i, and sums over all tokens",
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
