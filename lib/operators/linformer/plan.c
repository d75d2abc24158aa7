/* SPDX-License-Identifier: BSD-3-Clause */
/* Linformer for the registry; the arithmetic is in operators/linformer/cpu.c. */
#include <inttypes.h>
#include <limits.h>

#include "operators/checks.h"

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    const atn_tensor *e = &desc->linformer.e, *f = &desc->linformer.f;
    atn_status status = core_check_logit_scale(context, desc);
    if (status == ATN_OK)
        status = core_check_parameter(context, "linformer.e", e, desc, shape->heads, -1, -1);
    if (status != ATN_OK)
        return status;
    if (e->rows < shape->key_tokens)
        return core_fail(context, ATN_ERR_SHAPE,
                         "linformer.e has %" PRId64 " rows, expected at least key_tokens, %" PRId64,
                         e->rows, shape->key_tokens);
    if (e->cols < 1 || e->cols > INT_MAX / 64)
        return core_fail(context, ATN_ERR_SHAPE,
                         "linformer.e has %" PRId64 " columns, expected 1 to %d", e->cols,
                         INT_MAX / 64);
    return f->data ? core_check_dense(context, "linformer.f", f, (int)desc->dtype, 1, e->heads,
                                      e->rows, e->cols)
                   : ATN_OK;
}

/* Counts K' and V', then softmax attention to r keys. */
static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    const atn_tensor *e = &desc->linformer.e;
    double n = (double)shape->tokens, keys = (double)shape->key_tokens, r = (double)e->cols;
    double width = (double)shape->dim + (double)shape->value_dim;
    double size = (double)atn_dtype_size(desc->dtype);
    cost->flops = 2 * keys * r * width;
    cost->backward_flops = 2 * cost->flops;
    core_count_softmax(n, r, (double)shape->dim, (double)shape->value_dim, cost);
    cost->state_bytes = size * r * width;
    cost->bytes = size * (double)e->heads * keys * r * (desc->linformer.f.data ? 2 : 1);
}

static const atn_variant variants[] = {
    {.name = "projected",
     .description = "E and F as given; without F, F = E (Wang et al. 2020)",
     .properties = ATN_IS_LINEAR},
};

const operator_row core_linformer = {
    .info = {.op = ATN_LINFORMER,
             .name = "linformer",
             .formula = "Y = softmax(c Q (E^T K)^T) F^T V",
             .source = "Wang et al. 2020",
             .parameters = "linformer.e, linformer.f, logit_scale",
             .capabilities = OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_LENGTHS,
             .differentiable = 1u << ATN_PARAMETER_E | 1u << ATN_PARAMETER_F,
             .unsupported = "E^T K and F^T V mix all tokens",
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
