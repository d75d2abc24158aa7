/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_KERNEL_H
#define CORE_KERNEL_H

#include "core/internal.h"

/* core_backend's gaussian on the CPU. */
atn_status core_cpu_gaussian(atn_context *context, atn_distance distance, double s,
                             const atn_tensor *x, const atn_tensor *y, const atn_tensor *out);

#endif
