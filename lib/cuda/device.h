/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface to the CUDA runtime: opening a device, its memory, copies, waiting. Every error
 * becomes a status with a reason in the context (core/backend.h). */
#ifndef CUDA_DEVICE_H
#define CUDA_DEVICE_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of devices; if it is 0, *reason says why. */
int device_count(const char **reason);
atn_status device_describe(int ordinal, atn_device_info *info);

/* The state of a context for ATN_CUDA. */
typedef struct device device; /* context->device */
atn_status device_open(atn_context *context, int ordinal, void *stream);
void device_close(atn_context *context);

/* Calls of the library may come from different threads, and must leave the calling thread's current
 * device unchanged. device_enter makes the context's device the current one and stores the previous
 * one in *before, whatever it returns; device_leave restores that. All functions below except
 * device_blas are called between the two. */
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

/* Records an event on the stream, created if *mark is null; the time between two events. */
atn_status device_mark(atn_context *context, void **mark);
void device_free_mark(atn_context *context, void *mark);
atn_status device_between(atn_context *context, const void *from, const void *to, double *seconds);

/* ATN_ERR_VALUE unless the memory is this device's. */
atn_status device_check_memory(atn_context *context, const char *name, const void *memory);

/* ATN_ERR_DEVICE once something has failed, with the first failure as the reason. */
atn_status device_check(atn_context *context);

int device_multiprocessors(const atn_context *context); /* 1 if the device does not say */

/* Bytes of shared memory that a block can ask for; 48 KiB if the device does not say. */
size_t device_shared(const atn_context *context);

/* The context's cudaStream_t. */
void *device_stream(const atn_context *context);

/* The context's cublasHandle_t, created when it is first needed. It keeps one stream and its own
 * workspace, so that its products allocate nothing and are the same bits from run to run, for one
 * version of cuBLAS on devices of one architecture and number of multiprocessors. */
atn_status device_blas(atn_context *context, void **handle);

/* Turns what a call of the CUDA runtime returned into a status; `what` names the call. Any error
 * except lack of memory poisons the context. */
atn_status device_result(atn_context *context, int error, const char *what);

#ifdef __cplusplus
}
#endif
#endif
