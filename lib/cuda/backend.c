/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's table. */
#include "core/backend.h"

#include "cuda/device.h"
#include "cuda/heads.h"
#include "cuda/inverse.h"
#include "cuda/timing.h"

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
    .families = {[OPERATOR_HEADS] = &cuda_heads_family},
};
