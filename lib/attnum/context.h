/* SPDX-License-Identifier: BSD-3-Clause */
/* A context: the device, the threads, the allocator and the detail of the last error.
 *
 * There is no global state. Two contexts in two threads do not disturb each other; one context must
 * not be used by two threads at a time.
 *
 * attnum spreads work over batch, heads and token blocks with OpenMP and calls BLAS from inside
 * those threads, one small product per call. Let BLAS itself run on one thread
 * (OPENBLAS_NUM_THREADS=1 or openblas_set_num_threads(1)): it is faster, and results are then the
 * same bits whatever the number of threads. The library does not set this, because it is a setting
 * of the whole process. */
#ifndef ATTNUM_CONTEXT_H
#define ATTNUM_CONTEXT_H

#include <stddef.h>

#include <attnum/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { ATN_CPU, ATN_CUDA } atn_device;

/* allocate returns memory aligned to 64 bytes, or null. release takes what allocate returned. */
typedef struct {
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *memory);
    void *user;
} atn_allocator;

typedef struct {
    atn_device device;       /* ATN_CPU by default */
    int ordinal;             /* which device; 0 on the CPU */
    int threads;             /* at most 1024; 0: as many as OpenMP would use */
    atn_allocator allocator; /* both functions null: aligned_alloc and free */
} atn_context_options;

typedef struct atn_context atn_context;

/* Makes a context. options may be null: CPU, all threads, the C allocator.
 * Returns ATN_ERR_NULL (context), ATN_ERR_VALUE (threads out of range, one allocator function
 * without the other), ATN_ERR_DEVICE (a device this build or machine does not have),
 * ATN_ERR_MEMORY. */
atn_status atn_context_create(const atn_context_options *options, atn_context **context);

/* Frees a context; null is allowed. Plans made with it must be freed first. */
void atn_context_free(atn_context *context);

/* One line about the last negative status, "" if there was none. Valid until the next call with
 * this context. Never null, also for a null context. */
const char *atn_last_error(const atn_context *context);

/* The number of OpenMP threads this context uses. */
int atn_context_threads(const atn_context *context);

#ifdef __cplusplus
}
#endif
#endif
