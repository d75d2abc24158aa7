/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA backend. */
#include "core/backend.h"

#include "cuda/device.h"
#include "cuda/heads.h"
#include "cuda/timing.h"
#include "inverse/cuda.h"
#include "kernel/cuda.h"
#include "operators/soft/cuda.h"
#include "sampling/cuda.h"

/* ---- Calls with the context's device as the current one ---- */

#define ENTERED(call)                                                                              \
    int before;                                                                                    \
    atn_status status = device_enter(context, &before);                                            \
    if (status == ATN_OK)                                                                          \
        status = call;                                                                             \
    device_leave(before);                                                                          \
    return status

static atn_status allocate(atn_context *context, size_t bytes, void **memory)
{
    *memory = NULL;
    ENTERED(device_allocate(context, bytes, memory));
}

static void release(atn_context *context, void *memory)
{
    int before;
    if (!memory)
        return;
    device_enter(context, &before);
    device_release(context, memory);
    device_leave(before);
}

static atn_status upload(atn_context *context, void *to, const void *from, size_t bytes)
{
    ENTERED(device_upload(context, to, from, bytes));
}

static atn_status download(atn_context *context, void *to, const void *from, size_t bytes)
{
    ENTERED(device_download(context, to, from, bytes));
}

static atn_status copy(atn_context *context, void *to, const void *from, size_t bytes)
{
    ENTERED(device_copy(context, to, from, bytes));
}

static atn_status clear(atn_context *context, const atn_tensor *tensor)
{
    ENTERED(device_clear_tensor(context, tensor));
}

static atn_status synchronise(atn_context *context)
{
    ENTERED(device_synchronise(context));
}

static atn_status check_memory(atn_context *context, const char *name, const void *memory)
{
    ENTERED(device_check_memory(context, name, memory));
}

static atn_status find_asymmetric(atn_context *context, const atn_tensor *a, int64_t *index)
{
    ENTERED(cuda_find_asymmetric(context, a, index));
}

static atn_status find_unstored(atn_context *context, atn_storage storage, const atn_tensor *a,
                                int64_t *index)
{
    ENTERED(cuda_find_unstored(context, storage, a, index));
}

static atn_status inverse(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                          atn_tensor *x, atn_inverse_info *infos, atn_trace *traces)
{
    ENTERED(cuda_inverse_forward(context, desc, a, x, infos, traces));
}

static atn_status inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                   atn_gradient gradient, const atn_tensor *a, const atn_tensor *dx,
                                   atn_tensor *da, atn_inverse_info *infos)
{
    ENTERED(cuda_inverse_backward(context, desc, gradient, a, dx, da, infos));
}

static atn_status gaussian(atn_context *context, atn_distance distance, double s,
                           const atn_tensor *x, const atn_tensor *y, const atn_tensor *out)
{
    bool wide = out->dtype == ATN_F64;
    ENTERED((wide ? cuda_gaussian_f64 : cuda_gaussian_f32)(context, distance, s, x, y, out));
}

static atn_status sample(atn_context *context, const atn_sampling *sampling, int64_t m,
                         const atn_tensor *tokens, const atn_tensor *landmarks)
{
    ENTERED(cuda_sample(context, sampling, m, tokens, landmarks));
}

static atn_status mark(atn_context *context, void **mark)
{
    ENTERED(device_mark(context, mark));
}

static void free_mark(atn_context *context, void *mark)
{
    int before;
    device_enter(context, &before);
    device_free_mark(context, mark);
    device_leave(before);
}

static atn_status between(atn_context *context, const void *from, const void *to, double *seconds)
{
    ENTERED(device_between(context, from, to, seconds));
}

static atn_status multiply_add(atn_context *context, atn_dtype dtype, int64_t steps, void *scratch,
                               double *flops)
{
    ENTERED(cuda_multiply_add(context, dtype, steps, scratch, flops));
}

const core_backend cuda_backend = {
    .count = device_count,
    .describe = device_describe,
    .open = device_open,
    .close = device_close,
    .check = device_check,
    .allocate = allocate,
    .release = release,
    .upload = upload,
    .download = download,
    .synchronise = synchronise,
    .check_memory = check_memory,
    .clear = clear,
    .find_asymmetric = find_asymmetric,
    .find_unstored = find_unstored,
    .inverse = inverse,
    .inverse_backward = inverse_backward,
    .mark = mark,
    .free_mark = free_mark,
    .between = between,
    .copy = copy,
    .multiply_add = multiply_add,
    .dtypes = ATN_DTYPE_COUNT,
    .gaussian = gaussian,
    .sample = sample,
    .families = {[OPERATOR_SOFT] = &cuda_soft_family, [OPERATOR_HEADS] = &cuda_heads_family},
};
