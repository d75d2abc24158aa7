/* SPDX-License-Identifier: BSD-3-Clause */
/* Time on a device: a timer that the device itself reads, and work of known cost (copies,
 * arithmetic, exponentials, products), which shows what the device could do at most. */
#ifndef ATTNUM_TIMING_H
#define ATTNUM_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <attnum/context.h>
#include <attnum/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pair of timing events in the order of a context's work. CUDA: events on its stream, so that the
 * time between them is that of the device, without the host's and without that of earlier work.
 * CPU: readings of a monotonic clock. Must be freed before the context. */
typedef struct atn_timer atn_timer;

/* This and the functions below return ATN_ERR_NULL, ATN_ERR_MEMORY or ATN_ERR_DEVICE. */
atn_status atn_timer_create(atn_context *context, atn_timer **timer);
void atn_timer_free(atn_timer *timer); /* null is allowed */

/* Set the two events, after all work so far, without waiting. */
atn_status atn_timer_start(atn_timer *timer);
atn_status atn_timer_stop(atn_timer *timer);

/* Waits until the second event is reached; gives the seconds between the two. ATN_ERR_VALUE: one of
 * them is not set. */
atn_status atn_timer_elapsed(atn_timer *timer, double *seconds);

/* From now on atn_inverse, atn_inverse_apply and atn_inverse_backward set the timer's events
 * themselves, around their arithmetic alone: allocation, the checks of A and the copies of infos
 * are not timed. timer null ends this. The timer must belong to this context, and must not be freed
 * before this has ended. */
atn_status atn_timer_inverses(atn_context *context, atn_timer *timer);

/* Copies `bytes` within the memory of the context's device; the two ranges must not overlap. The
 * copy is enqueued, not waited for. */
atn_status atn_copy(atn_context *context, void *to, const void *from, size_t bytes);

/* Enqueues independent multiply-adds in registers, 16 `steps` in each of many chains, so many that
 * every unit of the device that does them is busy; on the CPU on all of the context's threads, in
 * its widest vectors. *flops is their number, two for each. f32 and f64: fused (on the CPU if it
 * can). scratch: 64 bytes of the device's memory, unchanged unless something overflows. Other
 * types: ATN_ERR_UNSUPPORTED. ATN_ERR_VALUE: steps < 1. */
atn_status atn_multiply_add(atn_context *context, atn_dtype dtype, int64_t steps, void *scratch,
                            double *flops);

/* x_i <- exp(-x_i) by the operators' exponential, `rounds` times over, where each of the context's
 * threads has `count` numbers of its own: x holds threads * count, which may stay in a cache. *exps
 * is the number of exponentials. f32 and f64, on the CPU; otherwise ATN_ERR_UNSUPPORTED.
 * ATN_ERR_VALUE: rounds or count < 0. */
atn_status atn_exponentials(atn_context *context, atn_dtype dtype, int64_t rounds, int64_t count,
                            void *x, double *exps);

/* C = op(A) op(B) or, with add, C += op(A) op(B), by the operators' product, in the calling thread:
 * C is rows x cols, `inner` the size that op(A) and op(B) share, op the transposition where asked
 * for; dense and row-major. Every entry is summed in order, 256 terms at a time. f32 and f64, on
 * the CPU; otherwise ATN_ERR_UNSUPPORTED. ATN_ERR_VALUE: a size < 0. */
typedef struct {
    bool transpose_a, transpose_b;
    int64_t rows, cols, inner;
    bool add;
} atn_product_shape;

atn_status atn_product(atn_context *context, atn_dtype dtype, const atn_product_shape *shape,
                       const void *a, const void *b, void *c);

#ifdef __cplusplus
}
#endif
#endif
