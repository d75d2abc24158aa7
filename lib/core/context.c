/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"

enum { ALIGNMENT = 64, MOST_THREADS = 1024 };

static void *allocate_aligned(void *user, size_t bytes)
{
    (void)user;
    return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static void release_aligned(void *user, void *memory)
{
    (void)user;
    free(memory);
}

atn_status atn_context_create(const atn_context_options *options, atn_context **context)
{
    static const atn_context_options defaults;
    if (!context)
        return ATN_ERR_NULL;
    *context = NULL;
    if (!options)
        options = &defaults;
    atn_allocator allocator = options->allocator;
    if (options->threads < 0 || options->threads > MOST_THREADS ||
        !allocator.allocate != !allocator.release)
        return ATN_ERR_VALUE;
    const core_backend *backend = core_backend_get(options->device);
    if (!backend || options->ordinal < 0 || options->ordinal >= backend->count(NULL))
        return ATN_ERR_DEVICE;
    atn_isa isa;
    atn_status status = atn_isa_choose(options->isa, &isa, NULL);
    if (status != ATN_OK)
        return status;
    if (!allocator.allocate)
        allocator = (atn_allocator){allocate_aligned, release_aligned, NULL};
    atn_context *made = allocator.allocate(allocator.user, sizeof *made);
    if (!made)
        return ATN_ERR_MEMORY;
    *made = (atn_context){
        .backend = backend,
        .kind = options->device,
        .threads = options->threads ? options->threads : omp_get_max_threads(),
        .isa = isa,
        .allocator = allocator,
    };
    status = backend->open(made, options->ordinal, options->stream);
    if (status != ATN_OK) {
        allocator.release(allocator.user, made);
        return status;
    }
    *context = made;
    return ATN_OK;
}

void atn_context_free(atn_context *context)
{
    if (!context)
        return;
    context->backend->close(context);
    context->allocator.release(context->allocator.user, context);
}

atn_device atn_context_device(const atn_context *context)
{
    return context ? context->kind : ATN_CPU;
}

atn_isa atn_context_isa(const atn_context *context)
{
    return context ? context->isa : ATN_ISA_AUTO;
}

const char *atn_last_error(const atn_context *context)
{
    return context ? context->error : "";
}

int atn_context_threads(const atn_context *context)
{
    return context ? context->threads : 0;
}

atn_status core_fail(atn_context *context, atn_status status, const char *format, ...)
{
    if (context) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(context->error, sizeof context->error, format, arguments);
        va_end(arguments);
    }
    return status;
}

atn_status core_check_tensor(atn_context *context, const char *name, const atn_tensor *tensor,
                             int dtype, int64_t batch, int64_t heads, int64_t rows, int64_t cols)
{
    atn_status status = atn_tensor_check(tensor);
    if (status != ATN_OK)
        return core_fail(context, status, "%s: %s", name, atn_status_message(status));
    if (dtype < 0 && context && (int)tensor->dtype >= context->backend->dtypes)
        return core_fail(context, ATN_ERR_DTYPE, "%s is %s: the %s computes in f32 and f64 only",
                         name, atn_dtype_name(tensor->dtype), atn_device_name(context->kind));
    if (dtype >= 0 && tensor->dtype != (atn_dtype)dtype)
        return core_fail(context, ATN_ERR_DTYPE, "%s is %s, expected %s", name,
                         atn_dtype_name(tensor->dtype), atn_dtype_name((atn_dtype)dtype));
    if ((uintptr_t)tensor->data % atn_dtype_size(tensor->dtype) != 0)
        return core_fail(context, ATN_ERR_VALUE, "%s: data lies between two elements of %s", name,
                         atn_dtype_name(tensor->dtype));
    if (core_too_large((double)tensor->batch * (double)tensor->heads))
        return core_fail(context, ATN_ERR_SHAPE, "%s: %" PRId64 " batches of %" PRId64 " heads",
                         name, tensor->batch, tensor->heads);
    const int64_t got[] = {tensor->batch, tensor->heads, tensor->rows, tensor->cols};
    const int64_t want[] = {batch, heads, rows, cols};
    static const char *const axes[] = {"batch", "heads", "rows", "cols"};
    for (int i = 0; i < 4; i++)
        if (want[i] >= 0 && got[i] != want[i])
            return core_fail(context, ATN_ERR_SHAPE, "%s: %s is %" PRId64 ", expected %" PRId64,
                             name, axes[i], got[i], want[i]);
    return ATN_OK;
}

atn_status core_check_dense(atn_context *context, const char *name, const atn_tensor *tensor,
                            int dtype, int64_t batch, int64_t heads, int64_t rows, int64_t cols)
{
    atn_status status = core_check_tensor(context, name, tensor, dtype, batch, heads, rows, cols);
    if (status != ATN_OK)
        return status;
    bool rows_touch = tensor->rows <= 1 || tensor->row_stride == tensor->cols;
    bool heads_touch = tensor->heads <= 1 || tensor->head_stride == tensor->rows * tensor->cols;
    bool batches_touch =
        tensor->batch <= 1 || tensor->batch_stride == tensor->heads * tensor->rows * tensor->cols;
    if (rows_touch && heads_touch && batches_touch)
        return ATN_OK;
    return core_fail(context, ATN_ERR_STRIDE, "%s: a dense tensor is expected", name);
}

/* The bytes a checked view spans; empty views span none. */
static void span(const atn_tensor *t, const char **begin, const char **end)
{
    *begin = *end = t->data;
    if (t->batch == 0 || t->heads == 0 || t->rows == 0 || t->cols == 0)
        return;
    int64_t last = (t->batch - 1) * t->batch_stride + (t->heads - 1) * t->head_stride +
                   (t->rows - 1) * t->row_stride + t->cols;
    *end = *begin + last * (int64_t)atn_dtype_size(t->dtype);
}

atn_status core_check_overlap(atn_context *context, const char *out_name, const atn_tensor *out,
                              const char *name, const void *memory, int64_t bytes)
{
    const char *a, *a_end, *b = memory;
    span(out, &a, &a_end);
    if (bytes > 0 && a < b + bytes && b < a_end)
        return core_fail(context, ATN_ERR_ALIAS, "%s overlaps %s", out_name, name);
    return ATN_OK;
}

atn_status core_check_alias(atn_context *context, const char *out_name, const atn_tensor *out,
                            const char *name, const atn_tensor *other)
{
    const char *begin, *end;
    span(other, &begin, &end);
    return core_check_overlap(context, out_name, out, name, begin, end - begin);
}

atn_status core_allocate(atn_context *context, size_t bytes, void **memory)
{
    *memory = NULL;
    if (bytes == 0)
        return ATN_OK;
    if (bytes <= PTRDIFF_MAX - ALIGNMENT) /* an allocator may round up */
        *memory = context->allocator.allocate(context->allocator.user, bytes);
    if (!*memory)
        return core_fail(context, ATN_ERR_MEMORY, "out of memory: %zu bytes", bytes);
    return ATN_OK;
}

atn_status core_arena_allocate(atn_context *context, core_arena *arena, void **memory)
{
    *memory = NULL;
    if (arena->overflow)
        return core_fail(context, ATN_ERR_SHAPE, "the workspace does not fit into memory");
    atn_status status = core_allocate(context, arena->used, memory);
    *arena = (core_arena){.base = *memory};
    return status;
}

void core_release(atn_context *context, void *memory)
{
    if (memory)
        context->allocator.release(context->allocator.user, memory);
}

bool core_too_large(double elements)
{
    return !(elements <= 1e17);
}

void *core_take(core_arena *arena, int64_t count, size_t size)
{
    size_t bytes, next;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) ||
        __builtin_add_overflow(arena->used, bytes, &next) || next > PTRDIFF_MAX - ALIGNMENT) {
        arena->overflow = true;
        return NULL;
    }
    void *piece = arena->base ? arena->base + arena->used : NULL;
    arena->used = (next + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return piece;
}
