/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CUDA_TIMING_H
#define CUDA_TIMING_H

#include "core/internal.h"

/* atn_multiply_add (core/backend.h). */
atn_status cuda_multiply_add(atn_context *context, atn_dtype dtype, int64_t steps, void *scratch,
                             double *flops);

#endif
