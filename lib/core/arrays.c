/* SPDX-License-Identifier: BSD-3-Clause */
/* The arrays of a description: where they are, which operators read them, whether a device can, and
 * copies of them on a device. */
#include <stddef.h>

#include "core/arrays.h"
#include "core/backend.h"
#include "sampling/plan.h"

enum {
    SOFT = 1 << ATN_SOFT | 1 << ATN_SOFTPP,
    CONV = 1 << ATN_SAMPLING_CONV,
    CONV_CODE = 1 << ATN_SAMPLING_CONV_CODE,
};

typedef struct {
    const char *name;
    size_t offset;
    unsigned readers;   /* bit op: operator op reads it, */
    unsigned samplings; /* with a sampling whose bit is set here; 0: with any */
} entry;

static const entry tensors[] = {
    {"sampling weights", offsetof(atn_attention_desc, sampling.weights), SOFT, CONV | CONV_CODE},
    {"norm_weight", offsetof(atn_attention_desc, sampling.norm_weight), SOFT, CONV_CODE},
    {"norm_bias", offsetof(atn_attention_desc, sampling.norm_bias), SOFT, CONV_CODE},
    {"residual", offsetof(atn_attention_desc, residual), SOFT | 1 << ATN_NYSTROMFORMER, 0},
    {"xnorm.gamma", offsetof(atn_attention_desc, xnorm.gamma), 1 << ATN_XNORM, 0},
    {"linformer.e", offsetof(atn_attention_desc, linformer.e), 1 << ATN_LINFORMER, 0},
    {"linformer.f", offsetof(atn_attention_desc, linformer.f), 1 << ATN_LINFORMER, 0},
    {"performer.projection", offsetof(atn_attention_desc, performer.projection), 1 << ATN_PERFORMER,
     0},
    {"rff.projection", offsetof(atn_attention_desc, rff.projection), 1 << ATN_RFF, 0},
    {"xca.temperature", offsetof(atn_attention_desc, xca.temperature), 1 << ATN_XCA, 0},
    {"lsh.rotations", offsetof(atn_attention_desc, lsh.rotations), 1 << ATN_LSH, 0},
};

enum { TENSORS = sizeof tensors / sizeof *tensors, ARRAYS = TENSORS + 3 };

/* An array of a description: the field that points to it, its elements and their size, and how many
 * of them the operator reads. */
typedef struct {
    const char *name;
    void **pointer;
    int64_t count;
    size_t size;
    int64_t read;
} array;

/* Whether bit `value` is set; values that are no operator or sampling have none. */
static bool has(unsigned set, int value)
{
    return value >= 0 && value < 32 && (set >> value & 1);
}

/* Elements from a view's first to its last, whatever lies between its heads (residual). */
static int64_t span(const atn_tensor *t)
{
    if (t->batch == 0 || t->heads == 0 || t->rows == 0 || t->cols == 0)
        return 0;
    return (t->batch - 1) * t->batch_stride + (t->heads - 1) * t->head_stride +
           (t->rows - 1) * t->row_stride + t->cols;
}

static atn_tensor *tensor_of(atn_attention_desc *desc, const entry *e)
{
    return (atn_tensor *)((char *)desc + e->offset);
}

static bool is_read(const atn_attention_desc *desc, const entry *e)
{
    if (desc->lsh.buckets && e->offset == offsetof(atn_attention_desc, lsh.rotations))
        return false; /* given buckets replace them */
    return has(e->readers, (int)desc->op) &&
           (e->samplings == 0 || has(e->samplings, (int)desc->sampling.kind));
}

atn_attention_desc core_read_tensors(const atn_attention_desc *desc)
{
    atn_attention_desc read = *desc;
    for (int i = 0; i < TENSORS; i++)
        if (!is_read(desc, &tensors[i]))
            tensor_of(&read, &tensors[i])->data = NULL;
    return read;
}

static array tensor_array(atn_attention_desc *desc, const entry *e)
{
    atn_tensor *t = tensor_of(desc, e);
    int64_t count = 0;
    if (t->data && atn_tensor_check(t) == ATN_OK)
        count = span(t);
    return (array){e->name, &t->data, count, atn_dtype_size(t->dtype),
                   is_read(desc, e) ? count : 0};
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

/* Lists all arrays, also those that desc->op does not read; one is given if its pointer is not
 * null. `read` is correct only for a description that has been checked. */
static void list_arrays(atn_attention_desc *desc, const atn_attention_shape *shape,
                        array all[ARRAYS])
{
    atn_sampling *s = &desc->sampling;
    atn_lsh_options *l = &desc->lsh;
    for (int i = 0; i < TENSORS; i++)
        all[i] = tensor_array(desc, &tensors[i]);
    bool samples = has(SOFT, (int)desc->op);
    bool named = samples && s->kind == ATN_SAMPLING_INDICES;
    int64_t buckets = bucket_count(l, shape);
    all[TENSORS] = (array){"sampling indices", (void **)&s->indices, s->count, sizeof(int64_t),
                           named ? s->count : 0};
    all[TENSORS + 1] = (array){"sampling uniforms", (void **)&s->uniforms, s->uniform_count,
                               sizeof(double), samples ? core_sampling_uniforms(s) : 0};
    all[TENSORS + 2] = (array){"lsh.buckets", (void **)&l->buckets, buckets, sizeof(int64_t),
                               desc->op == ATN_LSH ? buckets : 0};
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

atn_status core_check_arrays_overlap(atn_context *context, const char *out_name,
                                     const atn_tensor *out, const atn_attention_desc *desc,
                                     const atn_attention_shape *shape)
{
    atn_attention_desc copy = *desc;
    array all[ARRAYS];
    atn_status status = ATN_OK;
    list_arrays(&copy, shape, all);
    for (int i = 0; status == ATN_OK && i < ARRAYS; i++)
        if (*all[i].pointer)
            status = core_check_overlap(context, out_name, out, all[i].name, *all[i].pointer,
                                        all[i].read * (int64_t)all[i].size);
    return status;
}

/* Assigns each array its place in the arena's memory, or only adds up sizes (core_arena). */
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
        if (all[i].count == 0) /* an empty array must not keep its pointer to host memory */
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
