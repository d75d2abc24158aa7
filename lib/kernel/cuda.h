/* SPDX-License-Identifier: BSD-3-Clause */
/* Gaussian kernel matrices on CUDA. */
#ifndef KERNEL_CUDA_H
#define KERNEL_CUDA_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = K(X, Y), or K(X, X) exactly symmetric if y is null; enqueued. */
atn_status cuda_gaussian_f32(atn_context *context, atn_distance distance, double s,
                             const atn_tensor *x, const atn_tensor *y, const atn_tensor *out);
atn_status cuda_gaussian_f64(atn_context *context, atn_distance distance, double s,
                             const atn_tensor *x, const atn_tensor *y, const atn_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
