/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and their memory: the calls that go to a context's backend. */
#include "core/backend.h"

const core_backend *core_backend_get(atn_device device)
{
    static const core_backend *const backends[] = {&cpu_backend, &cuda_backend};
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
