/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU as a backend. */
#include "cpu/backend.h"

#include <string.h>

#include "core/backend.h"

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

const core_backend cpu_backend = {
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
    .find_asymmetric = cpu_find_asymmetric,
    .find_unstored = cpu_find_unstored,
    .inverse = cpu_inverse,
    .inverse_backward = cpu_inverse_backward,
    .inverse_apply = cpu_inverse_apply,
    .gaussian = cpu_gaussian,
    .sample = cpu_sample,
    .mark = cpu_mark,
    .free_mark = cpu_free_mark,
    .between = cpu_between,
    .copy = copy_bytes,
    .multiply_add = cpu_multiply_add,
    .dtypes = ATN_CPU_DTYPE_COUNT,
    .families = {[OPERATOR_SOFT] = &cpu_soft_family, [OPERATOR_HEADS] = &cpu_heads_family},
    .clears = true,
};
