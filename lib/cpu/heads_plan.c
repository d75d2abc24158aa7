/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans the operators that work head by head on the CPU (heads.c runs them). */
#include <inttypes.h>

#include "cpu/backend.h"
#include "cpu/table.h"

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

atn_status cpu_check_backward_dtype(atn_context *context, const atn_attention_desc *desc)
{
    if (desc->dtype == ATN_BF16)
        return core_fail(context, ATN_ERR_UNSUPPORTED,
                         "backward in bf16: the CPU computes forward in it only");
    return ATN_OK;
}

const operator_family cpu_heads_family = {
    sizeof(cpu_heads), prepare, layout, forward, backward, outcome, cpu_check_backward_dtype};
