/* SPDX-License-Identifier: BSD-3-Clause */
/* Nystromformer for the registry; the arithmetic is in operators/nystromformer/cpu.c. */
#include <inttypes.h>
#include <limits.h>

#include "operators/checks.h"

static atn_status check_residual(atn_context *context, const atn_attention_desc *desc,
                                 const atn_attention_shape *shape)
{
    const atn_tensor *filter = &desc->residual;
    if (!filter->data)
        return ATN_OK;
    atn_status status =
        core_check_dense(context, "residual", filter, (int)desc->dtype, 1, shape->heads, -1, 1);
    if (status != ATN_OK)
        return status;
    if (filter->rows % 2 == 0)
        return core_fail(context, ATN_ERR_SHAPE,
                         "residual: a window of odd length is expected, not %" PRId64,
                         filter->rows);
    if (shape->tokens != shape->key_tokens)
        return core_fail(context, ATN_ERR_SHAPE,
                         "residual: %" PRId64 " queries, %" PRId64 " keys; expected as many",
                         shape->tokens, shape->key_tokens);
    return ATN_OK;
}

static atn_status check_landmarks(atn_context *context, const atn_attention_desc *desc,
                                  const atn_attention_shape *shape)
{
    const atn_nystromformer_options *options = &desc->nystromformer;
    int64_t m = options->landmarks;
    if (m < 1)
        return core_fail(context, ATN_ERR_VALUE, "landmarks is %" PRId64 ", expected at least 1",
                         m);
    if (m > shape->tokens || m > shape->key_tokens || m > INT_MAX / 256)
        return core_fail(context, ATN_ERR_SHAPE,
                         "landmarks is %" PRId64 ", expected at most %d and no more than the "
                         "queries, %" PRId64 ", and the keys, %" PRId64,
                         m, INT_MAX / 256, shape->tokens, shape->key_tokens);
    double width = 4 * ((double)m + (double)shape->dim + (double)shape->value_dim) + 256;
    if (core_too_large((double)m * (width + (double)m * options->iterations)))
        return core_fail(context, ATN_ERR_SHAPE, "the workspace does not fit into memory");
    return ATN_OK;
}

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    const atn_nystromformer_options *options = &desc->nystromformer;
    atn_status status = core_check_logit_scale(context, desc);
    if (status == ATN_OK)
        status = core_check_choice(context, "nystromformer.inverse", (int)options->inverse,
                                   ATN_NYSTROM_COUNT);
    if (status == ATN_OK && (options->iterations < 0 || options->iterations == INT_MAX))
        status = core_fail(context, ATN_ERR_VALUE, "iterations is %d, expected 0 to %d",
                           options->iterations, INT_MAX - 1);
    if (status == ATN_OK && options->rcond != options->rcond)
        status = core_fail(context, ATN_ERR_VALUE, "rcond is NaN");
    if (status == ATN_OK)
        status = check_landmarks(context, desc, shape);
    return status == ATN_OK ? check_residual(context, desc, shape) : status;
}

static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    const atn_nystromformer_options *options = &desc->nystromformer;
    double n = (double)shape->tokens, n_k = (double)shape->key_tokens;
    double d = (double)shape->dim, dv = (double)shape->value_dim;
    double m = (double)options->landmarks, element = (double)atn_dtype_size(desc->dtype);
    if (desc->residual.data) {
        cost->flops += 2 * n * dv * (double)desc->residual.rows;
        cost->backward_flops += 2 * n * dv * (double)desc->residual.rows;
        cost->bytes += (double)(desc->residual.heads * desc->residual.rows) * element;
    }
    if (m == n && n == n_k) {
        core_count_softmax(n, n, d, dv, cost);
        return;
    }
    bool iterated = options->inverse != ATN_NYSTROM_PINV;
    cost->flops += (n + n_k) * d;                                           /* means */
    cost->flops += m * m * (2 * d + 3);                                     /* A */
    cost->flops += m * m * m * (iterated ? 8.0 * options->iterations : 24); /* LAPACK's SVD: 22 */
    cost->flops += 2 * m * m * dv;                                          /* Z (B V) */
    cost->exps += m * m;
    cost->backward_flops += 2 * (n + n_k) * d + m * m * (2 * d + 3 + 5 + 4 * d);
    /* of a step's 4 products 8; of a singular value decomposition 4 */
    cost->backward_flops += m * m * m * (iterated ? 24.0 * options->iterations : 24 + 8);
    cost->backward_flops += 3 * (2 * m * m * dv) + 2 * m * n_k * dv + m * dv; /* and B V */
    cost->backward_exps += m * m;
    core_count_softmax(m, n_k, d, dv, cost);
    core_count_softmax(n, m, d, dv, cost);
    cost->state_bytes = m * (m + 2 * d + dv) * element; /* A, both means, B V */
}

static const atn_variant variants[] = {
    {.name = "original",
     .description = "6 steps, all matrices started from the batch's largest norm (published code)",
     .properties = ATN_IS_LINEAR | ATN_IS_COUPLED,
     .desc = {.nystromformer = {.inverse = ATN_NYSTROM_ORIGINAL, .iterations = 6, .rcond = -1}}},
    {.name = "exact",
     .description = "6 steps, each matrix started from its own norm (published code's option)",
     .properties = ATN_IS_LINEAR,
     .desc = {.nystromformer = {.inverse = ATN_NYSTROM_EXACT, .iterations = 6, .rcond = -1}}},
    {.name = "pinv",
     .description = "the pseudo-inverse itself (Xiong et al. 2021)",
     .properties = ATN_IS_LINEAR,
     .desc = {.nystromformer = {.inverse = ATN_NYSTROM_PINV, .rcond = -1}}},
};

const operator_row core_nystromformer = {
    .info = {.op = ATN_NYSTROMFORMER,
             .name = "nystromformer",
             .formula = "Y = softmax(c Q K~^T) Z softmax(c Q~ K^T) V, Z for softmax(c Q~ K~^T)+",
             .source = "Xiong et al. 2021",
             .parameters = "nystromformer, logit_scale, residual",
             .capabilities = OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_LENGTHS,
             .differentiable = 1u << ATN_PARAMETER_RESIDUAL,
             .unsupported = "the segment means hold later tokens, so no causal form exists",
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
