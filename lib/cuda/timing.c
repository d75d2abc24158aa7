/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of attnum/timing.h for CUDA that contains no CUDA code. */
#include "cuda/timing.h"

#include "cuda/device.h"
#include "cuda/rates.h"

atn_status cuda_multiply_add(atn_context *context, atn_dtype dtype, int64_t steps, void *scratch,
                             double *flops)
{
    int multiprocessors = device_multiprocessors(context);
    switch (dtype) {
    case ATN_F32:
        return cuda_multiply_add_f32(context, multiprocessors, steps, scratch, flops);
    case ATN_F64:
        return cuda_multiply_add_f64(context, multiprocessors, steps, scratch, flops);
    default:
        return core_fail(context, ATN_ERR_UNSUPPORTED, "%s: its arithmetic is not measured",
                         atn_dtype_name(dtype));
    }
}
