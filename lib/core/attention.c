/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans, alike for every operator: what differs is in its row of the registry. */
#include <inttypes.h>
#include <limits.h>

#include "core/arrays.h"
#include "core/backend.h"

struct atn_plan {
    atn_context *context;
    const operator_row *row;
    const operator_family *family;
    atn_attention_desc desc;
    atn_attention_shape shape; /* key_tokens filled in */
    bool empty;                /* no elements: nothing to do */
    bool called;
    bool forwarded; /* the last call was forward */
    void *state, *memory;
};

atn_attention_desc atn_attention_variant(atn_operator op, int variant, atn_dtype dtype)
{
    const atn_operator_info *info = atn_operator_get(op);
    if (!info)
        return (atn_attention_desc){.op = op, .dtype = dtype};
    bool known = variant >= 0 && variant < info->variant_count;
    atn_attention_desc desc = info->variants[known ? variant : 0].desc;
    desc.op = op;
    desc.dtype = dtype;
    desc.inverse = atn_inverse_defaults(desc.inverse.method);
    return desc;
}

atn_attention_desc atn_attention_defaults(atn_operator op, atn_dtype dtype)
{
    return atn_attention_variant(op, 0, dtype);
}

static atn_status check_shape(atn_context *context, const atn_attention_shape *shape)
{
    const int64_t sizes[] = {shape->batch, shape->heads,     shape->tokens,
                             shape->dim,   shape->value_dim, shape->key_tokens};
    static const char *const names[] = {"batch", "heads",     "tokens",
                                        "dim",   "value_dim", "key_tokens"};
    int64_t width = shape->dim > shape->value_dim ? shape->dim : shape->value_dim, elements = 1;
    int64_t length = shape->tokens > shape->key_tokens ? shape->tokens : shape->key_tokens;
    for (int i = 0; i < 6; i++)
        if (sizes[i] < 0)
            return core_fail(context, ATN_ERR_SHAPE, "%s is %" PRId64 ", expected at least 0",
                             names[i], sizes[i]);
    if (shape->dim > INT_MAX / 64 || shape->value_dim > INT_MAX / 64)
        return core_fail(context, ATN_ERR_SHAPE,
                         "dim %" PRId64 ", value_dim %" PRId64 ": expected at most %d each",
                         shape->dim, shape->value_dim, INT_MAX / 64);
    if (__builtin_mul_overflow(shape->batch, shape->heads, &elements) ||
        __builtin_mul_overflow(elements, length, &elements) ||
        __builtin_mul_overflow(elements, width, &elements) ||
        __builtin_mul_overflow(elements, (int64_t)sizeof(double), &elements))
        return core_fail(context, ATN_ERR_SHAPE, "the shape does not fit into memory");
    return ATN_OK;
}

/* ATN_ERR_UNSUPPORTED if the description needs a capability that the operator lacks. */
static atn_status check_capability(atn_context *context, const operator_row *row, bool asked,
                                   unsigned capability, const char *what)
{
    if (!asked || (row->info.capabilities & capability))
        return ATN_OK;
    return core_fail(context, ATN_ERR_UNSUPPORTED, "%s has no %s: %s", row->info.name, what,
                     row->info.unsupported);
}

static atn_status check_desc(atn_context *context, const operator_row *row,
                             const atn_attention_desc *desc, const atn_attention_shape *shape)
{
    atn_status status;
    if (!atn_dtype_size(desc->dtype))
        return core_fail(context, ATN_ERR_DTYPE, "unknown dtype %d", (int)desc->dtype);
    bool narrow = desc->dtype == ATN_BF16 && context->kind == ATN_CPU &&
                  row->info.capabilities & ATN_CAN_CPU_BF16;
    if ((int)desc->dtype >= context->backend->dtypes && !narrow)
        return core_fail(
            context, ATN_ERR_DTYPE, "%s: the %s computes %s in f32 and f64%s",
            atn_dtype_name(desc->dtype), atn_device_name(context->kind), row->info.name,
            row->info.capabilities & ATN_CAN_CPU_BF16 ? ", and forward in bf16" : " only");
    if (context->kind == ATN_CUDA && !(row->info.capabilities & ATN_CAN_CUDA))
        return core_fail(context, ATN_ERR_UNSUPPORTED, "%s has no CUDA form", row->info.name);
    if (!atn_storage_name(desc->storage))
        return core_fail(context, ATN_ERR_VALUE, "storage: unknown choice %d", (int)desc->storage);
    if (desc->storage != ATN_STORAGE_NATIVE && context->kind != ATN_CPU)
        return core_fail(context, ATN_ERR_UNSUPPORTED,
                         "storage %s: the CPU emulates narrow types, CUDA has them as dtypes",
                         atn_storage_name(desc->storage));
    if (desc->storage != ATN_STORAGE_NATIVE && desc->dtype != ATN_F32)
        return core_fail(context, ATN_ERR_DTYPE, "storage %s needs dtype f32",
                         atn_storage_name(desc->storage));
    bool lengths = shape->key_tokens != shape->tokens;
    if ((status = check_capability(context, row, desc->padding, ATN_CAN_MASK, "padding mask")) !=
            ATN_OK ||
        (status = check_capability(context, row, desc->causal, ATN_CAN_CAUSAL, "causal form")) !=
            ATN_OK ||
        (status = check_capability(context, row, lengths, ATN_CAN_LENGTHS,
                                   "form for other numbers of keys than queries")) != ATN_OK)
        return status;
    if (desc->causal && lengths)
        return core_fail(context, ATN_ERR_SHAPE,
                         "causal: key_tokens is %" PRId64 ", expected tokens, %" PRId64,
                         shape->key_tokens, shape->tokens);
    return ATN_OK;
}

static bool is_empty(const atn_attention_shape *shape)
{
    return shape->batch == 0 || shape->heads == 0 || shape->tokens == 0 || shape->value_dim == 0;
}

/* All checks that need no memory; *full is the shape with key_tokens filled in. */
static atn_status check_plan(atn_context *context, const atn_attention_desc *desc,
                             const atn_attention_shape *shape, atn_attention_shape *full)
{
    const operator_row *row = operator_row_get(desc->op);
    if (!row)
        return core_fail(context, ATN_ERR_VALUE, "unknown operator %d", (int)desc->op);
    *full = *shape;
    if (full->key_tokens == 0)
        full->key_tokens = full->tokens;
    atn_status status = check_shape(context, full);
    return status == ATN_OK ? check_desc(context, row, desc, full) : status;
}

/* Adds up the memory of a prepared state. */
static atn_status measure_memory(atn_context *context, const operator_family *family, void *state,
                                 core_arena *arena)
{
    *arena = (core_arena){0};
    family->layout(arena, state);
    if (arena->overflow)
        return core_fail(context, ATN_ERR_SHAPE, "the workspace does not fit into memory");
    return ATN_OK;
}

/* Runs the operator's layout twice: first to add up the sizes, then over the memory. */
static atn_status take_memory(atn_context *context, atn_plan *plan)
{
    core_arena arena;
    atn_status status = measure_memory(context, plan->family, plan->state, &arena);
    if (status == ATN_OK)
        status = context->backend->allocate(context, arena.used, &plan->memory);
    if (status != ATN_OK)
        return status;
    arena = (core_arena){.base = plan->memory};
    plan->family->layout(&arena, plan->state);
    return ATN_OK;
}

atn_status atn_attention_plan(atn_context *context, const atn_attention_desc *desc,
                              const atn_attention_shape *shape, atn_plan **plan)
{
    if (!context || !desc || !shape || !plan)
        return core_fail(context, ATN_ERR_NULL, "context, desc, shape or plan is null");
    *plan = NULL;
    atn_attention_shape full;
    void *made = NULL;
    atn_status status = check_plan(context, desc, shape, &full);
    if (status == ATN_OK)
        status = core_allocate(context, sizeof **plan, &made);
    if (status != ATN_OK)
        return status;
    *plan = made;
    const operator_row *row = operator_row_get(desc->op);
    const operator_family *family = context->backend->families[operator_kind_get(desc->op)];
    **plan = (atn_plan){.context = context,
                        .row = row,
                        .family = family,
                        .desc = core_read_tensors(desc),
                        .shape = full};
    (*plan)->empty = is_empty(&full);
    if (!(*plan)->empty) {
        status = core_check_arrays(context, desc, &full);
        if (status == ATN_OK)
            status = core_allocate(context, family->state_size, &(*plan)->state);
        if (status == ATN_OK)
            status = family->prepare(context, &(*plan)->desc, &full, (*plan)->state);
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
    plan->context->backend->release(plan->context, plan->memory);
    core_release(plan->context, plan->state);
    core_release(plan->context, plan);
}

atn_status atn_attention_cost(atn_context *context, const atn_attention_desc *desc,
                              const atn_attention_shape *shape, atn_cost *cost)
{
    if (!context || !desc || !shape || !cost)
        return core_fail(context, ATN_ERR_NULL, "context, desc, shape or cost is null");
    atn_attention_shape full;
    void *state;
    atn_cost counted = {0};
    atn_status status = check_plan(context, desc, shape, &full);
    if (status != ATN_OK)
        return status;
    if (is_empty(&full)) {
        *cost = counted;
        return ATN_OK;
    }
    const operator_row *row = operator_row_get(desc->op);
    const operator_family *family = context->backend->families[operator_kind_get(desc->op)];
    atn_attention_desc read = core_read_tensors(desc);
    if ((status = core_allocate(context, family->state_size, &state)) != ATN_OK)
        return status;
    status = family->prepare(context, &read, &full, state);
    core_arena arena;
    if (status == ATN_OK)
        status = measure_memory(context, family, state, &arena);
    if (status == ATN_OK) {
        row->count(context, desc, &full, &counted);
        double heads = (double)full.batch * (double)full.heads, q = (double)full.tokens;
        double k = row->info.capabilities & ATN_CAN_CROSS ? (double)full.key_tokens : 0;
        double d = (double)full.dim, dv = (double)full.value_dim;
        counted.flops *= heads;
        counted.exps *= heads;
        counted.state_bytes *= heads;
        counted.backward_flops *= heads;
        counted.backward_exps *= heads;
        double size = (double)atn_dtype_size(desc->dtype);
        double inputs = heads * (q * d + k * d + (double)full.key_tokens * dv);
        counted.bytes += size * (inputs + heads * q * dv);
        counted.backward_bytes = counted.bytes + size * inputs; /* each has a gradient */
        counted.workspace_bytes = (double)arena.used;
        *cost = counted;
    }
    core_release(context, state);
    return status;
}

/* ---- Calls ---- */

/* An argument of a call, a view of it whose strides BLAS accepts, and the shape it should have. */
typedef struct {
    const char *name;
    const atn_tensor *tensor;
    int64_t rows, cols;
    atn_tensor view;
} argument;

/* BLAS has strides of 32 bits, and checks them even where there is only one row. */
static atn_status check_argument(const atn_plan *plan, argument *a)
{
    const atn_attention_shape *s = &plan->shape;
    atn_status status = core_check_tensor(plan->context, a->name, a->tensor, (int)plan->desc.dtype,
                                          s->batch, s->heads, a->rows, a->cols);
    if (status != ATN_OK)
        return status;
    a->view = *a->tensor;
    if (a->view.rows == 1)
        a->view.row_stride = a->view.cols;
    if (a->tensor->data && (status = plan->context->backend->check_memory(
                                plan->context, a->name, a->tensor->data)) != ATN_OK)
        return status;
    if (a->view.row_stride > INT_MAX)
        return core_fail(plan->context, ATN_ERR_STRIDE,
                         "%s: row_stride is %" PRId64 ", expected at most %d", a->name,
                         a->view.row_stride, INT_MAX);
    return ATN_OK;
}

enum { IN_Q, IN_K, IN_V, IN_DOUT, IN_Y, IN_COUNT };

/* Fills in[]; tensors that are null and need not be given stay null. gradients: backward's. */
static atn_status check_inputs(const atn_plan *plan, const atn_attention_inputs *inputs,
                               const atn_tensor *dout, bool backward,
                               const atn_gradients *gradients, argument in[IN_COUNT])
{
    atn_context *c = plan->context;
    const atn_attention_shape *s = &plan->shape;
    if (!inputs)
        return core_fail(c, ATN_ERR_NULL, "inputs is null");
    in[IN_Q] = (argument){"q", inputs->q, s->tokens, s->dim, {0}};
    in[IN_K] = (argument){"k", inputs->k, s->key_tokens, s->dim, {0}};
    in[IN_V] = (argument){"v", inputs->v, s->key_tokens, s->value_dim, {0}};
    in[IN_DOUT] = (argument){"dout", dout, s->tokens, s->value_dim, {0}};
    in[IN_Y] = (argument){"y", gradients ? gradients->y : NULL, s->tokens, s->value_dim, {0}};
    const bool given[IN_COUNT] = {true, inputs->k != NULL, true, backward, in[IN_Y].tensor};
    atn_status status = check_capability(c, plan->row, inputs->k != NULL, ATN_CAN_CROSS,
                                         "K different from Q (k must be null)");
    for (int i = 0; status == ATN_OK && i < IN_COUNT; i++)
        if (given[i])
            status = check_argument(plan, &in[i]);
    if (status != ATN_OK)
        return status;
    if (!inputs->k && s->key_tokens != s->tokens)
        return core_fail(c, ATN_ERR_NULL, "k is null, but there are %" PRId64 " keys",
                         s->key_tokens);
    if ((inputs->query_mask || inputs->key_mask) && !plan->desc.padding)
        return core_fail(c, ATN_ERR_VALUE, "a mask was given to a plan made without padding");
    if (inputs->query_mask)
        status = c->backend->check_memory(c, "query_mask", inputs->query_mask);
    if (status == ATN_OK && inputs->key_mask)
        status = c->backend->check_memory(c, "key_mask", inputs->key_mask);
    return status;
}

/* What a call reads besides its tensors: masks, and the arrays of the description. */
static atn_status check_overlap(const atn_plan *plan, const atn_attention_inputs *inputs,
                                const char *name, const atn_tensor *out)
{
    atn_context *c = plan->context;
    const atn_attention_shape *s = &plan->shape;
    atn_status status = ATN_OK;
    if (plan->empty)
        return ATN_OK;
    if (inputs->query_mask)
        status = core_check_overlap(c, name, out, "query_mask", inputs->query_mask,
                                    s->batch * s->tokens);
    if (status == ATN_OK && inputs->key_mask)
        status = core_check_overlap(c, name, out, "key_mask", inputs->key_mask,
                                    s->batch * s->key_tokens);
    return status == ATN_OK ? core_check_arrays_overlap(c, name, out, &plan->desc, s) : status;
}

/* An output must not overlap anything that is read, nor an earlier output. */
static atn_status check_output(const atn_plan *plan, argument *out,
                               const atn_attention_inputs *inputs, const argument in[IN_COUNT],
                               const argument *earlier, int count)
{
    atn_status status = check_argument(plan, out);
    if (status == ATN_OK)
        status = check_overlap(plan, inputs, out->name, &out->view);
    for (int i = 0; status == ATN_OK && i < IN_COUNT; i++)
        if (in[i].view.data)
            status =
                core_check_alias(plan->context, out->name, &out->view, in[i].name, &in[i].view);
    for (int i = 0; status == ATN_OK && i < count; i++)
        if (earlier[i].view.data)
            status = core_check_alias(plan->context, out->name, &out->view, earlier[i].name,
                                      &earlier[i].view);
    return status;
}

static atn_attention_inputs views_of(const atn_attention_inputs *inputs, argument in[IN_COUNT])
{
    return (atn_attention_inputs){
        .q = &in[IN_Q].view,
        .k = inputs->k ? &in[IN_K].view : NULL,
        .v = &in[IN_V].view,
        .query_mask = !inputs->k && !inputs->query_mask ? inputs->key_mask : inputs->query_mask,
        .key_mask = !inputs->k && !inputs->key_mask ? inputs->query_mask : inputs->key_mask,
    };
}

/* The values of the description's arrays may have changed since the plan was made. Those in a
 * device's memory cannot be read without waiting for it. */
static atn_status check_values(const atn_plan *plan)
{
    if (plan->empty || plan->context->kind != ATN_CPU || !plan->row->check_values)
        return ATN_OK;
    return plan->row->check_values(plan->context, &plan->desc, &plan->shape);
}

static void nothing_done(atn_attention_info *info)
{
    if (info)
        info->landmarks = info->failures = 0;
}

atn_status atn_attention_forward(atn_plan *plan, const atn_attention_inputs *inputs,
                                 atn_tensor *out, atn_attention_info *info)
{
    if (!plan)
        return ATN_ERR_NULL;
    argument in[IN_COUNT] = {0};
    argument result = {"out", out, plan->shape.tokens, plan->shape.value_dim, {0}};
    atn_status status = check_inputs(plan, inputs, NULL, false, NULL, in);
    if (status == ATN_OK)
        status = check_output(plan, &result, inputs, in, NULL, 0);
    if (status == ATN_OK)
        status = check_values(plan);
    if (status != ATN_OK)
        return status;
    if (plan->empty) {
        nothing_done(info);
        return ATN_OK;
    }
    atn_attention_inputs views = views_of(inputs, in);
    plan->called = plan->forwarded = true;
    return plan->family->forward(plan->context, plan->state, &views, &result.view, info);
}

atn_status atn_attention_outcome(atn_plan *plan, atn_attention_info *info)
{
    if (!plan)
        return ATN_ERR_NULL;
    atn_status status = plan->context->backend->synchronise(plan->context);
    if (status != ATN_OK || plan->empty || !plan->called) {
        nothing_done(info);
        return status;
    }
    return plan->family->outcome(plan->context, plan->state, info);
}

/* Checks the gradient of parameter p: of the parameter's shape, dense, overlapping nothing. */
static atn_status check_parameter_gradient(const atn_plan *plan, int p,
                                           const atn_attention_inputs *inputs,
                                           atn_tensor *const *earlier, const argument *others,
                                           int count)
{
    const atn_tensor *gradient = earlier[p];
    atn_context *c = plan->context;
    const char *name = atn_parameter_name((atn_parameter)p);
    atn_attention_desc desc = plan->desc;
    const atn_tensor *parameter = atn_attention_parameter(&desc, (atn_parameter)p);
    if (!(plan->row->info.differentiable & 1u << p))
        return core_fail(c, ATN_ERR_UNSUPPORTED, "%s has no parameter %s to differentiate by",
                         plan->row->info.name, name);
    if (!parameter->data)
        return core_fail(c, ATN_ERR_UNSUPPORTED,
                         "gradient of %s: the description has no %s, or its sampling ignores it",
                         name, name);
    atn_status status = core_check_dense(c, name, gradient, (int)plan->desc.dtype, parameter->batch,
                                         parameter->heads, parameter->rows, parameter->cols);
    if (status == ATN_OK && gradient->data)
        status = c->backend->check_memory(c, name, gradient->data);
    for (int i = 0; status == ATN_OK && i < count; i++)
        if (others[i].view.data)
            status = core_check_alias(c, name, gradient, others[i].name, &others[i].view);
    for (int i = 0; status == ATN_OK && i < p; i++)
        if (earlier[i])
            status = core_check_alias(c, name, gradient, atn_parameter_name((atn_parameter)i),
                                      earlier[i]);
    return status == ATN_OK ? check_overlap(plan, inputs, name, gradient) : status;
}

/* Checks a backward call, all but its output tensors; fills in[]. */
static atn_status check_backward(const atn_plan *plan, const atn_attention_inputs *inputs,
                                 const atn_tensor *dout, const atn_gradients *gradients,
                                 argument in[IN_COUNT])
{
    atn_status status = check_inputs(plan, inputs, dout, true, gradients, in);
    if (status == ATN_OK && plan->desc.storage != ATN_STORAGE_NATIVE)
        status = core_fail(plan->context, ATN_ERR_UNSUPPORTED,
                           "backward in storage %s: only forward calls emulate narrow types",
                           atn_storage_name(plan->desc.storage));
    if (status == ATN_OK && plan->family->check_backward)
        status = plan->family->check_backward(plan->context, &plan->desc);
    if (status == ATN_OK && !gradients)
        status = core_fail(plan->context, ATN_ERR_NULL, "gradients is null");
    if (status == ATN_OK && !inputs->k && gradients->k)
        status = core_fail(plan->context, ATN_ERR_VALUE,
                           "a gradient of k was asked for, but k is null: it is part of q's");
    return status;
}

enum { OUT_Q, OUT_K, OUT_V, OUT_COUNT };

/* Checks the gradients against each other and the inputs; fills in all[], the gradients of the
 * inputs and then the inputs. */
static atn_status check_gradients(const atn_plan *plan, const atn_attention_inputs *inputs,
                                  const argument in[IN_COUNT], const atn_gradients *gradients,
                                  argument all[OUT_COUNT + IN_COUNT])
{
    const atn_attention_shape *s = &plan->shape;
    atn_status status = ATN_OK;
    all[OUT_Q] = (argument){"gradient of q", gradients->q, s->tokens, s->dim, {0}};
    all[OUT_K] = (argument){"gradient of k", gradients->k, s->key_tokens, s->dim, {0}};
    all[OUT_V] = (argument){"gradient of v", gradients->v, s->key_tokens, s->value_dim, {0}};
    for (int i = 0; status == ATN_OK && i < OUT_COUNT; i++)
        if (i != OUT_K || in[IN_K].tensor)
            status = check_output(plan, &all[i], inputs, in, all, i);
    for (int i = 0; i < IN_COUNT; i++)
        all[OUT_COUNT + i] = in[i];
    for (int p = 0; status == ATN_OK && p < ATN_PARAMETER_COUNT; p++)
        if (gradients->parameters[p])
            status = check_parameter_gradient(plan, p, inputs, gradients->parameters, all,
                                              OUT_COUNT + IN_COUNT);
    return status;
}

static atn_status clear_gradients(const atn_plan *plan, const atn_gradients *gradients)
{
    atn_context *context = plan->context;
    const atn_tensor *all[3 + ATN_PARAMETER_COUNT] = {gradients->q, gradients->k, gradients->v};
    atn_status status = ATN_OK;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        all[3 + p] = gradients->parameters[p];
    bool cleared = context->backend->clears && !plan->empty;
    for (int i = cleared ? 3 : 0; status == ATN_OK && i < 3 + ATN_PARAMETER_COUNT; i++)
        if (all[i])
            status = context->backend->clear(context, all[i]);
    return status;
}

atn_status atn_attention_backward(atn_plan *plan, const atn_attention_inputs *inputs,
                                  const atn_tensor *dout, atn_gradients *gradients,
                                  atn_attention_info *info)
{
    if (!plan)
        return ATN_ERR_NULL;
    argument in[IN_COUNT] = {0}, all[OUT_COUNT + IN_COUNT] = {0};
    atn_status status = check_backward(plan, inputs, dout, gradients, in);
    if (status == ATN_OK)
        status = check_gradients(plan, inputs, in, gradients, all);
    if (status == ATN_OK)
        status = check_values(plan);
    if (status != ATN_OK)
        return status;
    atn_gradients views = *gradients;
    views.q = &all[OUT_Q].view;
    views.k = inputs->k ? &all[OUT_K].view : NULL;
    views.v = &all[OUT_V].view;
    status = clear_gradients(plan, &views);
    if (status != ATN_OK || plan->empty) {
        nothing_done(info);
        return status;
    }
    atn_attention_inputs seen = views_of(inputs, in);
    views.after_forward = gradients->after_forward && plan->forwarded;
    views.y = views.after_forward && gradients->y ? &in[IN_Y].view : NULL;
    plan->called = true;
    plan->forwarded = false;
    return plan->family->backward(plan->context, plan->state, &seen, &in[IN_DOUT].view, &views,
                                  info);
}
