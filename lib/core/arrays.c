/* SPDX-License-Identifier: BSD-3-Clause */
/* The arrays of a description: where they stand, whether a device can read them, and copies of them
 * on a device. */
#include <stddef.h>

#include "core/arrays.h"
#include "core/backend.h"

typedef struct {
    const char *name;
    size_t offset;
} entry;

static const entry tensors[] = {
    {"sampling weights", offsetof(atn_attention_desc, sampling.weights)},
    {"norm_weight", offsetof(atn_attention_desc, sampling.norm_weight)},
    {"norm_bias", offsetof(atn_attention_desc, sampling.norm_bias)},
    {"residual", offsetof(atn_attention_desc, residual)},
    {"xnorm.gamma", offsetof(atn_attention_desc, xnorm.gamma)},
    {"linformer.e", offsetof(atn_attention_desc, linformer.e)},
    {"linformer.f", offsetof(atn_attention_desc, linformer.f)},
    {"performer.projection", offsetof(atn_attention_desc, performer.projection)},
    {"rff.projection", offsetof(atn_attention_desc, rff.projection)},
    {"xca.temperature", offsetof(atn_attention_desc, xca.temperature)},
    {"lsh.rotations", offsetof(atn_attention_desc, lsh.rotations)},
};

enum { TENSORS = sizeof tensors / sizeof *tensors, ARRAYS = TENSORS + 3 };

/* An array of a description: its pointer there, its bytes. */
typedef struct {
    const char *name;
    void **pointer;
    int64_t count;
    size_t size;
} array;

/* Elements from a view's first to its last, whatever lies between its heads (residual). */
static int64_t span(const atn_tensor *t)
{
    if (t->batch == 0 || t->heads == 0 || t->rows == 0 || t->cols == 0)
        return 0;
    return (t->batch - 1) * t->batch_stride + (t->heads - 1) * t->head_stride +
           (t->rows - 1) * t->row_stride + t->cols;
}

static array tensor_array(atn_attention_desc *desc, const entry *e)
{
    atn_tensor *t = (atn_tensor *)((char *)desc + e->offset);
    int64_t count = 0;
    if (t->data && atn_tensor_check(t) == ATN_OK)
        count = span(t);
    return (array){e->name, &t->data, count, atn_dtype_size(t->dtype)};
}

/* -1, which fits no memory, where the product overflows. */
static int64_t bucket_count(const atn_lsh_options *l, const atn_attention_shape *shape)
{
    int64_t count;
    if (__builtin_mul_overflow(shape->batch, shape->heads, &count) ||
        __builtin_mul_overflow(count, l->rounds, &count) ||
        __builtin_mul_overflow(count, shape->tokens, &count))
        return -1;
    return count;
}

/* Of operator desc->op or not: what is not null is there. */
static void list_arrays(atn_attention_desc *desc, const atn_attention_shape *shape,
                        array all[ARRAYS])
{
    atn_sampling *s = &desc->sampling;
    atn_lsh_options *l = &desc->lsh;
    for (int i = 0; i < TENSORS; i++)
        all[i] = tensor_array(desc, &tensors[i]);
    all[TENSORS] = (array){"sampling indices", (void **)&s->indices, s->count, sizeof(int64_t)};
    all[TENSORS + 1] =
        (array){"sampling uniforms", (void **)&s->uniforms, s->uniform_count, sizeof(double)};
    all[TENSORS + 2] =
        (array){"lsh.buckets", (void **)&l->buckets, bucket_count(l, shape), sizeof(int64_t)};
}

atn_status core_check_arrays(atn_context *context, const atn_attention_desc *desc,
                             const atn_attention_shape *shape)
{
    atn_attention_desc copy = *desc;
    array all[ARRAYS];
    list_arrays(&copy, shape, all);
    for (int i = 0; i < ARRAYS; i++)
        if (*all[i].pointer) {
            atn_status status =
                context->backend->check_memory(context, all[i].name, *all[i].pointer);
            if (status != ATN_OK)
                return status;
        }
    return ATN_OK;
}

/* Hands out the arrays' places in base; null: only adds up. */
static void lay_out(core_arena *arena, const array all[ARRAYS], void *places[ARRAYS])
{
    for (int i = 0; i < ARRAYS; i++)
        places[i] = *all[i].pointer ? core_take(arena, all[i].count, all[i].size) : NULL;
}

atn_status atn_attention_upload(atn_context *context, const atn_attention_desc *host,
                                const atn_attention_shape *shape, atn_attention_desc *device,
                                void **memory)
{
    if (!context || !host || !shape || !device || !memory)
        return core_fail(context, ATN_ERR_NULL, "host, shape, device or memory is null");
    array all[ARRAYS];
    void *places[ARRAYS];
    core_arena arena = {0};
    *device = *host;
    *memory = NULL;
    list_arrays(device, shape, all);
    lay_out(&arena, all, places);
    if (arena.overflow)
        return core_fail(context, ATN_ERR_SHAPE, "the description's arrays do not fit into memory");
    for (int i = TENSORS; i < ARRAYS; i++)
        if (all[i].count == 0) /* a pointer to nothing must not stay one to the host's memory */
            *all[i].pointer = NULL;
    atn_status status = atn_allocate(context, arena.used, memory);
    if (status != ATN_OK)
        return status;
    arena = (core_arena){.base = *memory};
    lay_out(&arena, all, places);
    for (int i = 0; i < ARRAYS && status == ATN_OK; i++)
        if (places[i]) {
            status =
                atn_upload(context, places[i], *all[i].pointer, (size_t)all[i].count * all[i].size);
            *all[i].pointer = places[i];
        }
    if (status != ATN_OK) {
        atn_release(context, *memory);
        *memory = NULL;
    }
    return status;
}
