/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: the same for every operator; what differs stands in the registry's row. */
#include <inttypes.h>

#include "operators.h"

struct atn_plan {
    atn_context *context;
    const operator_row *row;
    atn_dtype dtype;
    atn_attention_shape shape;
    bool empty; /* no elements: nothing to do */
    void *state, *memory;
};

atn_attention_desc atn_attention_defaults(atn_operator op, atn_dtype dtype)
{
    return (atn_attention_desc){
        .op = op,
        .dtype = dtype,
        .scale = ATN_SCALE_HEAD,
        .distance = ATN_DISTANCE_DIRECT,
        .inverse =
            atn_inverse_defaults(op == ATN_SOFTPP ? ATN_INVERSE_NR_SOFTPP : ATN_INVERSE_NR_PAPER),
    };
}

static atn_status check_shape(atn_context *context, const atn_attention_shape *shape)
{
    const int64_t sizes[] = {shape->batch, shape->heads, shape->tokens, shape->dim,
                             shape->value_dim};
    static const char *const names[] = {"batch", "heads", "tokens", "dim", "value_dim"};
    int64_t width = shape->dim > shape->value_dim ? shape->dim : shape->value_dim, elements = 1;
    for (int i = 0; i < 5; i++)
        if (sizes[i] < 0)
            return core_fail(context, ATN_ERR_SHAPE, "%s is %" PRId64 ", expected at least 0",
                             names[i], sizes[i]);
    if (__builtin_mul_overflow(shape->batch, shape->heads, &elements) ||
        __builtin_mul_overflow(elements, shape->tokens, &elements) ||
        __builtin_mul_overflow(elements, width, &elements) ||
        __builtin_mul_overflow(elements, (int64_t)sizeof(double), &elements))
        return core_fail(context, ATN_ERR_SHAPE, "the shape does not fit into memory");
    return ATN_OK;
}

static bool is_empty(const atn_attention_shape *shape)
{
    return shape->batch == 0 || shape->heads == 0 || shape->tokens == 0 || shape->value_dim == 0;
}

/* Runs the operator's layout twice: to add up, then over memory. */
static atn_status take_memory(atn_context *context, atn_plan *plan)
{
    core_arena arena = {0};
    plan->row->layout(&arena, plan->state);
    atn_status status = core_arena_allocate(context, &arena, &plan->memory);
    if (status != ATN_OK)
        return status;
    plan->row->layout(&arena, plan->state);
    return ATN_OK;
}

atn_status atn_attention_plan(atn_context *context, const atn_attention_desc *desc,
                              const atn_attention_shape *shape, atn_plan **plan)
{
    if (!context || !desc || !shape || !plan)
        return core_fail(context, ATN_ERR_NULL, "context, desc, shape or plan is null");
    *plan = NULL;
    const operator_row *row = operator_row_get(desc->op);
    if (!row)
        return core_fail(context, ATN_ERR_VALUE, "unknown operator %d", (int)desc->op);
    if (!atn_dtype_size(desc->dtype))
        return core_fail(context, ATN_ERR_DTYPE, "unknown dtype %d", (int)desc->dtype);
    atn_status status = check_shape(context, shape);
    void *made = NULL;
    if (status == ATN_OK)
        status = core_allocate(context, sizeof **plan, &made);
    if (status != ATN_OK)
        return status;
    *plan = made;
    **plan = (atn_plan){.context = context, .row = row, .dtype = desc->dtype, .shape = *shape};
    (*plan)->empty = is_empty(shape);
    if (!(*plan)->empty) {
        status = core_allocate(context, row->state_size, &(*plan)->state);
        if (status == ATN_OK)
            status = row->prepare(context, desc, shape, (*plan)->state);
        if (status == ATN_OK)
            status = take_memory(context, *plan);
    }
    if (status != ATN_OK) {
        atn_plan_free(*plan);
        *plan = NULL;
    }
    return status;
}

void atn_plan_free(atn_plan *plan)
{
    if (!plan)
        return;
    core_release(plan->context, plan->memory);
    core_release(plan->context, plan->state);
    core_release(plan->context, plan);
}

/* q, v and out; k is the operator's to check. */
static atn_status check_tensors(const atn_plan *plan, const atn_tensor *q, const atn_tensor *v,
                                const atn_tensor *out)
{
    atn_context *c = plan->context;
    const atn_attention_shape *s = &plan->shape;
    int dtype = (int)plan->dtype;
    atn_status status;
    if ((status = core_check_tensor(c, "q", q, dtype, s->batch, s->heads, s->tokens, s->dim)) !=
            ATN_OK ||
        (status = core_check_tensor(c, "v", v, dtype, s->batch, s->heads, s->tokens,
                                    s->value_dim)) != ATN_OK ||
        (status = core_check_tensor(c, "out", out, dtype, s->batch, s->heads, s->tokens,
                                    s->value_dim)) != ATN_OK ||
        (status = core_check_alias(c, "out", out, "q", q)) != ATN_OK ||
        (status = core_check_alias(c, "out", out, "v", v)) != ATN_OK)
        return status;
    return ATN_OK;
}

atn_status atn_attention_forward(atn_plan *plan, const atn_tensor *q, const atn_tensor *k,
                                 const atn_tensor *v, atn_tensor *out, atn_attention_info *info)
{
    if (!plan)
        return ATN_ERR_NULL;
    atn_status status = check_tensors(plan, q, v, out);
    if (status != ATN_OK)
        return status;
    if (plan->empty) {
        if (info)
            info->landmarks = info->failures = 0;
        return ATN_OK;
    }
    return plan->row->forward(plan->context, plan->state, q, k, v, out, info);
}
