/* SPDX-License-Identifier: BSD-3-Clause */
#include "operators/features/plan.h"

#include <inttypes.h>
#include <limits.h>

atn_status core_check_projection(atn_context *context, const atn_tensor *projection,
                                 const atn_attention_desc *desc, const atn_attention_shape *shape)
{
    atn_status status =
        core_check_parameter(context, "projection", projection, desc, shape->heads, -1, shape->dim);
    if (status != ATN_OK)
        return status;
    if (projection->rows < 1 || projection->rows > INT_MAX / 64)
        return core_fail(context, ATN_ERR_SHAPE,
                         "projection has %" PRId64 " rows, expected 1 to %d", projection->rows,
                         INT_MAX / 64);
    return ATN_OK;
}

double core_projection_bytes(const atn_tensor *projection)
{
    return (double)projection->heads * (double)projection->rows * (double)projection->cols *
           (double)atn_dtype_size(projection->dtype);
}

void core_count_linear(const atn_attention_desc *desc, const atn_attention_shape *shape,
                       double features, bool normalised, atn_cost *cost)
{
    double q = (double)shape->tokens, k = (double)shape->key_tokens;
    double dv = (double)shape->value_dim;
    cost->flops += 2 * (q + k) * features * dv;
    cost->backward_flops += core_context_backward_flops(q, k, features, dv);
    if (normalised) { /* sums of keys' features, products with them, divisions */
        cost->flops += k * features + 2 * q * features + q * dv;
        /* the same, of dY; D's derivative, and what it adds to those of features and of the sums */
        cost->backward_flops += 2 * k * features + (2 + 2 + 2 + 2) * q * features + q * dv;
    }
    cost->state_bytes += features * (dv + normalised) * (double)atn_dtype_size(desc->dtype);
}
