/* SPDX-License-Identifier: BSD-3-Clause */
/* atn_multiply_add on CUDA, for f32 and f64. */
#ifndef CUDA_RATES_H
#define CUDA_RATES_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

atn_status cuda_multiply_add_f32(atn_context *context, int multiprocessors, int64_t steps,
                                 void *scratch, double *flops);
atn_status cuda_multiply_add_f64(atn_context *context, int multiprocessors, int64_t steps,
                                 void *scratch, double *flops);

#ifdef __cplusplus
}
#endif
#endif
