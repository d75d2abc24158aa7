/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's table. */
#include "core/backend.h"

#include "cuda/device.h"
#include "cuda/gaussian.h"
#include "cuda/heads.h"
#include "cuda/inverse.h"
#include "cuda/sampling.h"
#include "cuda/soft.h"
#include "cuda/timing.h"

static atn_status gaussian(atn_context *context, atn_distance distance, double s,
                           const atn_tensor *x, const atn_tensor *y, const atn_tensor *out)
{
    return (out->dtype == ATN_F64 ? cuda_gaussian_f64 : cuda_gaussian_f32)(context, distance, s, x,
                                                                           y, out);
}

const core_backend core_cuda_backend = {
    .count = device_count,
    .describe = device_describe,
    .open = device_open,
    .close = device_close,
    .check = device_check,
    .allocate = device_allocate,
    .release = device_release,
    .upload = device_upload,
    .download = device_download,
    .synchronise = device_synchronise,
    .check_memory = device_check_memory,
    .clear = device_clear_tensor,
    .find_asymmetric = cuda_find_asymmetric,
    .find_unstored = cuda_find_unstored,
    .inverse = cuda_inverse_forward,
    .inverse_backward = cuda_inverse_backward,
    .mark = device_mark,
    .free_mark = device_free_mark,
    .between = device_between,
    .copy = device_copy,
    .multiply_add = cuda_multiply_add,
    .dtypes = ATN_DTYPE_COUNT,
    .gaussian = gaussian,
    .sample = cuda_sample,
    .families = {[OPERATOR_SOFT] = &cuda_soft_family, [OPERATOR_HEADS] = &cuda_heads_family},
};
