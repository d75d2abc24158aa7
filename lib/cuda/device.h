/* SPDX-License-Identifier: BSD-3-Clause */
/* The seam between the library and the CUDA runtime: opening a device, its memory, copies, waiting,
 * and every error turned into a status with a reason in the context (core/backend.h). */
#ifndef CUDA_DEVICE_H
#define CUDA_DEVICE_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Devices there are, and if there are none why. */
int device_count(const char **reason);
atn_status device_describe(int ordinal, atn_device_info *info);

/* What a context for ATN_CUDA has in addition. */
typedef struct device device; /* context->device */
atn_status device_open(atn_context *context, int ordinal, void *stream);
void device_close(atn_context *context);

/* Every call of the library may come from another thread than the last, and leaves that thread's
 * current device as it was. device_enter makes the context's device the current one and sets
 * *before to the one that device_leave makes it again, whatever is returned. All below but
 * device_blas are called in between, by backend.c or heads.c. */
atn_status device_enter(atn_context *context, int *before);
void device_leave(int before);

/* Device memory; bytes 0 gives null. */
atn_status device_allocate(atn_context *context, size_t bytes, void **memory);
void device_release(atn_context *context, void *memory);

/* Copies that have finished on return, after all work on the stream. */
atn_status device_upload(atn_context *context, void *to, const void *from, size_t bytes);
atn_status device_download(atn_context *context, void *to, const void *from, size_t bytes);

/* Enqueued. */
atn_status device_copy(atn_context *context, void *to, const void *from, size_t bytes);
atn_status device_clear(atn_context *context, void *memory, size_t bytes);
atn_status device_clear_tensor(atn_context *context, const atn_tensor *tensor);

atn_status device_synchronise(atn_context *context);

/* An event on the stream, made first if *mark is null; and the time between two. */
atn_status device_mark(atn_context *context, void **mark);
void device_free_mark(atn_context *context, void *mark);
atn_status device_between(atn_context *context, const void *from, const void *to, double *seconds);

/* ATN_ERR_VALUE unless the memory is this device's. */
atn_status device_check_memory(atn_context *context, const char *name, const void *memory);

/* ATN_ERR_DEVICE once something has failed, with the first failure as the reason. */
atn_status device_check(atn_context *context);

int device_multiprocessors(const atn_context *context); /* 1 if it does not say */

/* Bytes of shared memory that a block can ask for; 48 KiB if the device does not say. */
size_t device_shared(const atn_context *context);

/* The context's cudaStream_t. */
void *device_stream(const atn_context *context);

/* The context's cublasHandle_t, made when it is first asked for. It has one stream and a workspace
 * of its own for as long as it lives, so that its products allocate nothing and are the same bits
 * from run to run, for one version of cuBLAS on devices of one architecture and as many
 * multiprocessors. */
atn_status device_blas(atn_context *context, void **handle);

/* What a call of the CUDA runtime returned, as a status; `what` says which. Anything but success
 * and want of memory poisons the context. */
atn_status device_result(atn_context *context, int error, const char *what);

#ifdef __cplusplus
}
#endif
#endif
