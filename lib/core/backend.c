/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and their memory; the CPU's table. */
#include "core/backend.h"

#include <string.h>

#include "core/heads.h"
#include "core/inverse.h"
#include "core/kernel.h"
#include "core/sampling.h"
#include "core/soft.h"
#include "core/timing.h"

const core_backend *core_backend_get(atn_device device)
{
    static const core_backend *const backends[] = {&core_cpu_backend, &core_cuda_backend};
    return (unsigned)device < 2 ? backends[device] : NULL;
}

const char *atn_device_name(atn_device device)
{
    static const char *const names[] = {"cpu", "cuda"};
    return (unsigned)device < 2 ? names[device] : NULL;
}

int atn_device_count(atn_device device, const char **reason)
{
    const core_backend *backend = core_backend_get(device);
    if (backend)
        return backend->count(reason);
    if (reason)
        *reason = "there is no such kind of device";
    return 0;
}

atn_status atn_device_describe(atn_device device, int ordinal, atn_device_info *info)
{
    const core_backend *backend = core_backend_get(device);
    if (!info)
        return ATN_ERR_NULL;
    if (!backend)
        return ATN_ERR_VALUE;
    if (ordinal < 0 || ordinal >= backend->count(NULL))
        return ATN_ERR_DEVICE;
    return backend->describe(ordinal, info);
}

atn_status core_check_device(atn_context *context, const char *name, const atn_tensor *t)
{
    if ((int)t->dtype >= context->backend->dtypes)
        return core_fail(context, ATN_ERR_DTYPE, "%s is %s: the %s computes in f32 and f64 only",
                         name, atn_dtype_name(t->dtype), atn_device_name(context->kind));
    bool empty = t->batch * t->heads == 0 || t->rows * t->cols == 0;
    return empty ? ATN_OK : context->backend->check_memory(context, name, t->data);
}

/* ---- Memory ---- */

atn_status atn_allocate(atn_context *context, size_t bytes, void **memory)
{
    if (!context || !memory)
        return core_fail(context, ATN_ERR_NULL, "context or memory is null");
    return context->backend->allocate(context, bytes, memory);
}

void atn_release(atn_context *context, void *memory)
{
    if (context)
        context->backend->release(context, memory);
}

static atn_status copy(atn_context *context, void *to, const void *from, size_t bytes,
                       atn_status (*how)(atn_context *, void *, const void *, size_t))
{
    if (bytes > 0 && (!to || !from))
        return core_fail(context, ATN_ERR_NULL, "%zu bytes to copy, but an end is null", bytes);
    return how(context, to, from, bytes);
}

atn_status atn_upload(atn_context *context, void *device, const void *host, size_t bytes)
{
    return context ? copy(context, device, host, bytes, context->backend->upload) : ATN_ERR_NULL;
}

atn_status atn_download(atn_context *context, void *host, const void *device, size_t bytes)
{
    return context ? copy(context, host, device, bytes, context->backend->download) : ATN_ERR_NULL;
}

atn_status atn_synchronise(atn_context *context)
{
    return context ? context->backend->synchronise(context) : ATN_ERR_NULL;
}

/* ---- The CPU ---- */

static int count(const char **reason)
{
    if (reason)
        *reason = "";
    return 1;
}

static atn_status describe(int ordinal, atn_device_info *info)
{
    (void)ordinal;
    *info = (atn_device_info){.name = "cpu"};
    return ATN_OK;
}

static atn_status open(atn_context *context, int ordinal, void *stream)
{
    (void)context, (void)ordinal, (void)stream;
    return ATN_OK;
}

static void close(atn_context *context)
{
    (void)context;
}

static atn_status check(atn_context *context)
{
    (void)context;
    return ATN_OK;
}

static atn_status copy_bytes(atn_context *context, void *to, const void *from, size_t bytes)
{
    (void)context;
    if (bytes > 0)
        memcpy(to, from, bytes);
    return ATN_OK;
}

static atn_status check_memory(atn_context *context, const char *name, const void *memory)
{
    (void)context, (void)name, (void)memory;
    return ATN_OK;
}

static atn_status clear(atn_context *context, const atn_tensor *t)
{
    (void)context;
    size_t size = atn_dtype_size(t->dtype);
    for (int64_t i = 0; i < t->batch * t->heads; i++) {
        char *row = atn_tensor_matrix(t, i / t->heads, i % t->heads);
        for (int64_t r = 0; r < t->rows; r++)
            memset(row + (size_t)(r * t->row_stride) * size, 0, (size_t)t->cols * size);
    }
    return ATN_OK;
}

const core_backend core_cpu_backend = {
    .count = count,
    .describe = describe,
    .open = open,
    .close = close,
    .check = check,
    .allocate = core_allocate,
    .release = core_release,
    .upload = copy_bytes,
    .download = copy_bytes,
    .synchronise = check,
    .check_memory = check_memory,
    .clear = clear,
    .find_asymmetric = core_cpu_asymmetric,
    .find_unstored = core_cpu_unstored,
    .inverse = core_cpu_inverse,
    .inverse_backward = core_cpu_inverse_backward,
    .gaussian = core_cpu_gaussian,
    .sample = core_cpu_sample,
    .mark = core_cpu_mark,
    .free_mark = core_cpu_free_mark,
    .between = core_cpu_between,
    .copy = copy_bytes,
    .multiply_add = core_cpu_multiply_add,
    .dtypes = ATN_CPU_DTYPE_COUNT,
    .families = {[OPERATOR_SOFT] = &core_soft_family, [OPERATOR_HEADS] = &core_heads_family},
    .clears = {[OPERATOR_HEADS] = true},
};
