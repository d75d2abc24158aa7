/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU's part of attnum/timing.h (core/backend.h). */
#ifndef CORE_TIMING_H
#define CORE_TIMING_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the marks of atn_timer_inside, if there are any: before and after the arithmetic. */
atn_status core_inside_start(atn_context *context);
atn_status core_inside_stop(atn_context *context);

atn_status core_cpu_mark(atn_context *context, void **mark);
void core_cpu_free_mark(atn_context *context, void *mark);
atn_status core_cpu_between(atn_context *context, const void *from, const void *to,
                            double *seconds);
atn_status core_cpu_multiply_add(atn_context *context, atn_dtype dtype, int64_t steps,
                                 void *scratch, double *flops);

#ifdef __cplusplus
}
#endif
#endif
