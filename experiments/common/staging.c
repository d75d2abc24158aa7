/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/staging.h"

#include <stdlib.h>

#include "common/report.h"

enum { MOST_PIECES = 16 };

/* The device memory of a call. */
typedef struct {
    atn_context *context;
    bool direct;      /* the device is the host */
    atn_dtype narrow; /* the type on the device of what is f32 on the host */
    atn_status status;
    void *owned[MOST_PIECES];
    int count;
    struct {
        atn_tensor *host, device;
    } outputs[MOST_PIECES];
    int output_count;
} staging;

static staging begin(atn_context *context, atn_storage storage)
{
    static const atn_dtype types[ATN_STORAGE_COUNT] = {[ATN_STORAGE_NATIVE] = ATN_F32,
                                                       [ATN_STORAGE_BF16] = ATN_BF16,
                                                       [ATN_STORAGE_F16] = ATN_F16,
                                                       [ATN_STORAGE_TF32] = ATN_TF32};
    return (staging){.context = context,
                     .direct = atn_context_device(context) == ATN_CPU,
                     .narrow = types[storage]};
}

static int64_t element_count(const atn_tensor *t)
{
    return t->batch * t->heads * t->rows * t->cols;
}

/* Device memory; null once something has failed. */
static void *take(staging *s, size_t bytes)
{
    void *memory = NULL;
    if (s->status == ATN_OK)
        s->status = atn_allocate(s->context, bytes, &memory);
    if (s->status == ATN_OK)
        s->owned[s->count++] = memory;
    return memory;
}

/* A copy of host bytes; null stays null. */
static const void *copy_bytes(staging *s, const void *host, size_t bytes)
{
    if (!host || s->direct)
        return host;
    void *memory = take(s, bytes);
    if (s->status == ATN_OK)
        s->status = atn_upload(s->context, memory, host, bytes);
    return memory;
}

/* A tensor's type on the device. */
static atn_dtype type_there(const staging *s, atn_dtype dtype)
{
    return dtype == ATN_F32 && !s->direct ? s->narrow : dtype;
}

/* Values converted to another type, in memory to be freed; copied if the types are the same. */
static void *converted(const atn_tensor *from, atn_dtype type)
{
    int64_t count = element_count(from);
    void *to = must_allocate((size_t)count + 1, atn_dtype_size(type));
    atn_convert(type, to, from->dtype, from->data, count);
    return to;
}

/* The view of an input on the device; null stays null. */
static const atn_tensor *in(staging *s, const atn_tensor *host, atn_tensor *view)
{
    if (!host || s->direct)
        return host;
    *view = *host;
    view->dtype = type_there(s, host->dtype);
    void *values = converted(host, view->dtype);
    view->data =
        (void *)copy_bytes(s, values, (size_t)element_count(host) * atn_dtype_size(view->dtype));
    free(values);
    return view;
}

/* The view of an output, which `finish` copies back; null stays null. */
static atn_tensor *out(staging *s, atn_tensor *host, atn_tensor *view)
{
    if (!host || s->direct)
        return host;
    *view = *host;
    view->dtype = type_there(s, host->dtype);
    view->data = take(s, (size_t)element_count(host) * atn_dtype_size(view->dtype));
    s->outputs[s->output_count].host = host;
    s->outputs[s->output_count++].device = *view;
    return view;
}

/* Copies outputs back unless the call failed, frees everything, and returns the status. */
static atn_status finish(staging *s)
{
    for (int i = 0; i < s->output_count; i++) {
        const atn_tensor *from = &s->outputs[i].device;
        atn_tensor *to = s->outputs[i].host, fetched = *from;
        size_t bytes = (size_t)element_count(from) * atn_dtype_size(from->dtype);
        if (s->status < 0)
            break;
        fetched.data = must_allocate(bytes + 1, 1);
        atn_status status = atn_download(s->context, fetched.data, from->data, bytes);
        if (status == ATN_OK)
            atn_convert(to->dtype, to->data, from->dtype, fetched.data, element_count(from));
        else
            s->status = status;
        free(fetched.data);
    }
    for (int i = 0; i < s->count; i++)
        atn_release(s->context, s->owned[i]);
    return s->status;
}

/* ---- Attention ---- */

/* The description for the device: its arrays are in device memory, and its dtype is the storage. */
static atn_attention_desc place_desc(staging *s, const atn_attention_desc *host,
                                     const atn_attention_shape *shape)
{
    atn_attention_desc desc = *host, device;
    void *narrowed[ATN_PARAMETER_COUNT + MOST_PIECES] = {NULL}, *memory = NULL;
    int count = 0;
    if (s->direct)
        return desc;
    desc.dtype = type_there(s, desc.dtype);
    desc.storage = desc.inverse.storage = ATN_STORAGE_NATIVE;
    atn_tensor *const tensors[] = {
        &desc.sampling.weights, &desc.sampling.norm_weight, &desc.sampling.norm_bias,
        &desc.residual,         &desc.xnorm.gamma,          &desc.linformer.e,
        &desc.linformer.f,      &desc.performer.projection, &desc.rff.projection,
        &desc.xca.temperature,  &desc.lsh.rotations};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (tensors[i]->data && tensors[i]->dtype != desc.dtype) {
            tensors[i]->data = narrowed[count++] = converted(tensors[i], desc.dtype);
            tensors[i]->dtype = desc.dtype;
        }
    device = desc;
    if (s->status == ATN_OK)
        s->status = atn_attention_upload(s->context, &desc, shape, &device, &memory);
    if (s->status == ATN_OK)
        s->owned[s->count++] = memory;
    for (int i = 0; i < count; i++)
        free(narrowed[i]);
    return device;
}

typedef struct {
    atn_tensor q, k, v;
    atn_attention_inputs inputs;
} placed_inputs;

static void place_inputs(staging *s, const atn_attention_shape *shape,
                         const atn_attention_inputs *host, placed_inputs *p)
{
    int64_t keys = shape->key_tokens ? shape->key_tokens : shape->tokens;
    p->inputs = (atn_attention_inputs){
        .q = in(s, host->q, &p->q),
        .k = in(s, host->k, &p->k),
        .v = in(s, host->v, &p->v),
        .query_mask = copy_bytes(s, host->query_mask, (size_t)(shape->batch * shape->tokens)),
        .key_mask = copy_bytes(s, host->key_mask, (size_t)(shape->batch * keys)),
    };
}

atn_status staged_forward(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, const atn_attention_inputs *inputs,
                          atn_tensor *y, atn_attention_info *info)
{
    staging s = begin(context, desc->storage);
    placed_inputs p;
    atn_tensor view;
    atn_plan *plan = NULL;
    atn_attention_desc there = place_desc(&s, desc, shape);
    place_inputs(&s, shape, inputs, &p);
    atn_tensor *to = out(&s, y, &view);
    if (s.status == ATN_OK)
        s.status = atn_attention_plan(context, &there, shape, &plan);
    if (s.status == ATN_OK)
        s.status = atn_attention_forward(plan, &p.inputs, to, info);
    if (s.status == ATN_OK)
        s.status = atn_attention_outcome(plan, NULL);
    atn_plan_free(plan);
    return finish(&s);
}

atn_status staged_backward(atn_context *context, const atn_attention_desc *desc,
                           const atn_attention_shape *shape, const atn_attention_inputs *inputs,
                           const atn_tensor *dout, atn_gradients *gradients,
                           atn_attention_info *info)
{
    staging s = begin(context, desc->storage);
    placed_inputs p;
    atn_tensor dy, dq, dk, dv, parameters[ATN_PARAMETER_COUNT];
    atn_plan *plan = NULL;
    atn_attention_desc there = place_desc(&s, desc, shape);
    place_inputs(&s, shape, inputs, &p);
    const atn_tensor *from = in(&s, dout, &dy);
    atn_gradients to = {.q = out(&s, gradients->q, &dq),
                        .v = out(&s, gradients->v, &dv),
                        .k = out(&s, gradients->k, &dk)};
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++)
        to.parameters[i] = out(&s, gradients->parameters[i], &parameters[i]);
    if (s.status == ATN_OK)
        s.status = atn_attention_plan(context, &there, shape, &plan);
    if (s.status == ATN_OK)
        s.status = atn_attention_backward(plan, &p.inputs, from, &to, info);
    if (s.status == ATN_OK)
        s.status = atn_attention_outcome(plan, NULL);
    atn_plan_free(plan);
    return finish(&s);
}

/* ---- Building blocks ---- */

atn_status staged_sample(atn_context *context, const atn_sampling *sampling,
                         const atn_tensor *tokens, atn_tensor *landmarks)
{
    staging s = begin(context, ATN_STORAGE_NATIVE);
    atn_attention_desc desc = {.dtype = tokens->dtype, .sampling = *sampling};
    atn_tensor q, l;
    atn_attention_desc there = place_desc(&s, &desc, &(atn_attention_shape){0});
    const atn_tensor *from = in(&s, tokens, &q);
    atn_tensor *to = out(&s, landmarks, &l);
    if (s.status == ATN_OK)
        s.status = atn_sample(context, &there.sampling, from, to);
    return finish(&s);
}

atn_status staged_gaussian_self(atn_context *context, atn_distance distance, double scale,
                                const atn_tensor *l, atn_tensor *a)
{
    staging s = begin(context, ATN_STORAGE_NATIVE);
    atn_tensor points, kernel;
    const atn_tensor *from = in(&s, l, &points);
    atn_tensor *to = out(&s, a, &kernel);
    if (s.status == ATN_OK)
        s.status = atn_gaussian_self(context, distance, scale, from, to);
    return finish(&s);
}

atn_status staged_gaussian_cross(atn_context *context, atn_distance distance, double scale,
                                 const atn_tensor *x, const atn_tensor *y, atn_tensor *kernel)
{
    staging s = begin(context, ATN_STORAGE_NATIVE);
    atn_tensor left, right, result;
    const atn_tensor *rows = in(&s, x, &left), *cols = in(&s, y, &right);
    atn_tensor *to = out(&s, kernel, &result);
    if (s.status == ATN_OK)
        s.status = atn_gaussian_cross(context, distance, scale, rows, cols, to);
    return finish(&s);
}

atn_status staged_inverse(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                          atn_tensor *x, atn_inverse_info *infos, atn_trace *traces)
{
    staging s = begin(context, ATN_STORAGE_NATIVE);
    atn_tensor matrices, inverses;
    const atn_tensor *from = in(&s, a, &matrices);
    atn_tensor *to = out(&s, x, &inverses);
    if (s.status == ATN_OK)
        s.status = atn_inverse(context, desc, from, to, infos, traces);
    return finish(&s);
}

atn_status staged_inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                   atn_gradient gradient, const atn_tensor *a, const atn_tensor *dx,
                                   atn_tensor *da, atn_inverse_info *infos)
{
    staging s = begin(context, ATN_STORAGE_NATIVE);
    atn_tensor matrices, slopes, gradients;
    const atn_tensor *from = in(&s, a, &matrices), *by = in(&s, dx, &slopes);
    atn_tensor *to = out(&s, da, &gradients);
    if (s.status == ATN_OK)
        s.status = atn_inverse_backward(context, desc, gradient, from, by, to, infos);
    return finish(&s);
}
