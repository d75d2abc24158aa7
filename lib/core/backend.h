/* SPDX-License-Identifier: BSD-3-Clause */
/* What a kind of device provides: its memory and its arithmetic. One table for the CPU
 * (cpu/backend.c), one for CUDA (cuda/backend.c; cuda/absent.c in a build without CUDA). */
#ifndef CORE_BACKEND_H
#define CORE_BACKEND_H

#include "operators/operator.h"

typedef struct core_backend {
    /* How many devices, and why there are none. */
    int (*count)(const char **reason);
    atn_status (*describe)(int ordinal, atn_device_info *info);
    /* Acquires what a context needs of the device, and releases it. */
    atn_status (*open)(atn_context *context, int ordinal, void *stream);
    void (*close)(atn_context *context);
    /* ATN_OK, or the failure that poisoned the context. */
    atn_status (*check)(atn_context *context);

    /* Memory; bytes 0 gives null. Copies have finished on return. */
    atn_status (*allocate)(atn_context *context, size_t bytes, void **memory);
    void (*release)(atn_context *context, void *memory);
    atn_status (*upload)(atn_context *context, void *to, const void *from, size_t bytes);
    atn_status (*download)(atn_context *context, void *to, const void *from, size_t bytes);
    atn_status (*synchronise)(atn_context *context);
    /* ATN_ERR_VALUE unless the memory can be the device's. */
    atn_status (*check_memory)(atn_context *context, const char *name, const void *memory);
    /* Sets every element of a view to 0. */
    atn_status (*clear)(atn_context *context, const atn_tensor *tensor);

    /* The first matrix of a that is not symmetric or has numbers that the storage type cannot hold
     * (NaN and infinity are found elsewhere); -1: none. */
    atn_status (*find_asymmetric)(atn_context *context, const atn_tensor *a, int64_t *index);
    atn_status (*find_unstored)(atn_context *context, atn_storage storage, const atn_tensor *a,
                                int64_t *index);
    /* atn_inverse and atn_inverse_backward for arguments that are checked and not empty; the
     * traces' lengths are 0. */
    atn_status (*inverse)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                          atn_tensor *x, atn_inverse_info *infos, atn_trace *traces);
    atn_status (*inverse_backward)(atn_context *context, const atn_inverse_desc *desc,
                                   atn_gradient gradient, const atn_tensor *a, const atn_tensor *dx,
                                   atn_tensor *da, atn_inverse_info *infos);
    /* atn_inverse_apply, likewise; null: the device has none. */
    atn_status (*inverse_apply)(atn_context *context, const atn_inverse_desc *desc,
                                const atn_tensor *a, const atn_tensor *w, atn_tensor *y,
                                atn_inverse_info *infos);
    /* atn_gaussian_cross, or atn_gaussian_self if y is null; arguments are checked. */
    atn_status (*gaussian)(atn_context *context, atn_distance distance, double s,
                           const atn_tensor *x, const atn_tensor *y, const atn_tensor *out);
    /* atn_sample, likewise. */
    atn_status (*sample)(atn_context *context, const atn_sampling *sampling, int64_t m,
                         const atn_tensor *tokens, const atn_tensor *landmarks);
    /* Timing events (attnum/timing.h). mark creates *mark if it is null and sets it after all work
     * so far; between waits for the second one. */
    atn_status (*mark)(atn_context *context, void **mark);
    void (*free_mark)(atn_context *context, void *mark);
    atn_status (*between)(atn_context *context, const void *from, const void *to, double *seconds);
    /* Copies within the device; enqueued. */
    atn_status (*copy)(atn_context *context, void *to, const void *from, size_t bytes);
    atn_status (*multiply_add)(atn_context *context, atn_dtype dtype, int64_t steps, void *scratch,
                               double *flops);

    /* The first dtypes it computes in. */
    int dtypes;
    const operator_family *families[OPERATOR_KIND_COUNT];
    /* Whether backward itself sets the gradients of q, k and v to 0 first. */
    bool clears;
} core_backend;

extern const core_backend cpu_backend, cuda_backend;

/* ATN_OK if the context's device computes in the tensor's type and can read its memory. */
atn_status core_check_device(atn_context *context, const char *name, const atn_tensor *tensor);

/* null if out of range */
const core_backend *core_backend_get(atn_device device);

#endif
