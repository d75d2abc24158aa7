/* SPDX-License-Identifier: BSD-3-Clause */
#include "operators/checks.h"

#include <math.h>

atn_status core_check_parameter(atn_context *context, const char *name, const atn_tensor *tensor,
                                const atn_attention_desc *desc, int64_t heads, int64_t rows,
                                int64_t cols)
{
    if (!tensor->data)
        return core_fail(context, ATN_ERR_NULL, "%s: the description gives none", name);
    int64_t expected = tensor->heads == 1 ? 1 : heads;
    return core_check_dense(context, name, tensor, (int)desc->dtype, 1, expected, rows, cols);
}

atn_status core_check_epsilon(atn_context *context, const char *name, double epsilon)
{
    if (epsilon >= 0 && epsilon < INFINITY)
        return ATN_OK;
    return core_fail(context, ATN_ERR_VALUE, "%s is %g, expected finite and at least 0", name,
                     epsilon);
}

double core_logit_scale(const atn_attention_desc *desc, int64_t dim)
{
    return desc->logit_scale != 0 ? desc->logit_scale : 1 / sqrt((double)dim);
}

atn_status core_check_logit_scale(atn_context *context, const atn_attention_desc *desc)
{
    return core_check_epsilon(context, "logit_scale", desc->logit_scale);
}

void core_count_softmax(double rows, double keys, double d, double dv, atn_cost *cost)
{
    cost->flops += rows * keys * (2 * d + 2 + 2 * dv) + rows * dv;
    cost->exps += rows * keys;
    cost->backward_flops += rows * keys * (6 * d + 4 * dv + 7) + rows * dv;
    cost->backward_exps += rows * keys;
}

double core_context_backward_flops(double n, double n_k, double d, double dv)
{
    return 2 * (2 * n + 3 * n_k) * d * dv;
}

double core_kernel_backward_flops(double n, double n_k, double d)
{
    return n * n_k * (1 + 2 * (2 * d + 1)) + 2 * d * (n + n_k);
}

atn_status core_check_choice(atn_context *context, const char *name, int value, int count)
{
    if (value >= 0 && value < count)
        return ATN_OK;
    return core_fail(context, ATN_ERR_VALUE, "%s: unknown choice %d", name, value);
}
