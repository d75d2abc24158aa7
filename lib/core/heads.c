/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/heads.h"

#include <inttypes.h>
#include <math.h>

#include "cpu/table.h"

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
}

atn_status core_check_choice(atn_context *context, const char *name, int value, int count)
{
    if (value >= 0 && value < count)
        return ATN_OK;
    return core_fail(context, ATN_ERR_VALUE, "%s: unknown choice %d", name, value);
}

static atn_status prepare(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, void *state)
{
    cpu_heads *heads = state;
    *heads = (cpu_heads){.cpu = cpu_table_get(context, desc->dtype),
                         .desc = *desc,
                         .shape = *shape,
                         .threads = context->threads};
    if (shape->dim < 1)
        return core_fail(context, ATN_ERR_SHAPE, "dim is %" PRId64 ", expected at least 1",
                         shape->dim);
    const operator_row *row = operator_row_get(desc->op);
    atn_status status = row->check(context, desc, shape);
    if (status != ATN_OK)
        return status;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        const atn_tensor *t = atn_attention_parameter(&heads->desc, (atn_parameter)p);
        if (t->data && (row->info.differentiable & 1u << p))
            heads->parameters[p] = t;
    }
    return ATN_OK;
}

static void layout(core_arena *arena, void *state)
{
    cpu_heads *heads = state;
    heads->cpu->heads_layout(arena, heads);
}

static atn_status outcome(atn_context *context, void *state, atn_attention_info *info)
{
    (void)context;
    const cpu_heads *heads = state;
    int64_t failures = 0;
    for (int64_t i = 0; i < heads->shape.batch * heads->shape.heads; i++)
        failures += heads->nonfinite[i];
    if (info) {
        info->landmarks = 0;
        info->failures = failures;
    }
    return failures > 0 ? ATN_NONFINITE : ATN_OK;
}

static atn_status forward(atn_context *context, void *state, const atn_attention_inputs *inputs,
                          atn_tensor *out, atn_attention_info *info)
{
    cpu_heads *heads = state;
    heads->cpu->heads_forward(heads, inputs, out);
    return outcome(context, heads, info);
}

static atn_status backward(atn_context *context, void *state, const atn_attention_inputs *inputs,
                           const atn_tensor *dout, atn_gradients *gradients,
                           atn_attention_info *info)
{
    cpu_heads *heads = state;
    heads->cpu->heads_backward(heads, inputs, dout, gradients);
    return outcome(context, heads, info);
}

const operator_family core_heads_family = {sizeof(cpu_heads), prepare, layout, forward,
                                           backward,          outcome, NULL};
