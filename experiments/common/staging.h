/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's calls on arrays of the host, whatever the context's device: on CUDA inputs are
 * copied to the device and outputs back; on the CPU nothing is copied. Tensors are dense. Statuses
 * are the library's.
 *
 * desc->storage, which the CPU emulates, becomes the dtype on CUDA: the arrays are f32 on the host
 * and of that type on the device. */
#ifndef EXPERIMENTS_STAGING_H
#define EXPERIMENTS_STAGING_H

#include <attnum/attnum.h>

/* Makes a plan, calls it once and frees it. Masks are on the host, too. */
atn_status staged_forward(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, const atn_attention_inputs *inputs,
                          atn_tensor *out, atn_attention_info *info);
atn_status staged_backward(atn_context *context, const atn_attention_desc *desc,
                           const atn_attention_shape *shape, const atn_attention_inputs *inputs,
                           const atn_tensor *dout, atn_gradients *gradients,
                           atn_attention_info *info);

atn_status staged_sample(atn_context *context, const atn_sampling *sampling,
                         const atn_tensor *tokens, atn_tensor *landmarks);
atn_status staged_gaussian_self(atn_context *context, atn_distance distance, double s,
                                const atn_tensor *l, atn_tensor *a);
atn_status staged_gaussian_cross(atn_context *context, atn_distance distance, double s,
                                 const atn_tensor *x, const atn_tensor *y, atn_tensor *kernel);
atn_status staged_inverse(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                          atn_tensor *x, atn_inverse_info *infos, atn_trace *traces);
atn_status staged_inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                   atn_gradient gradient, const atn_tensor *a, const atn_tensor *dx,
                                   atn_tensor *da, atn_inverse_info *infos);

#endif
