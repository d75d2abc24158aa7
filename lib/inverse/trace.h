/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INVERSE_TRACE_H
#define INVERSE_TRACE_H

#include "core/internal.h"

/* The f64 elements of work for one matrix's trace. */
int64_t core_trace_work(int64_t m);

/* ATN_OK, or what is missing for recording `entries` iterates; no array may overlap x. */
atn_status core_trace_check(atn_context *context, const atn_trace *trace, int entries,
                            const atn_tensor *x);

/* Appends the chosen metrics of X (of the given dtype) against A, working in f64. Null trace: does
 * nothing. Reads X, never writes it. work must stay the same for all iterates of a matrix. */
void core_trace_record(atn_trace *trace, atn_dtype dtype, int64_t m, const void *a, const void *x,
                       double *work);

#endif
