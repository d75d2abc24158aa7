/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks and counts of the Gaussian kernel for the operators that use it. */
#ifndef KERNEL_PLAN_H
#define KERNEL_PLAN_H

#include "core/internal.h"

/* Scale and distance are known choices, s is positive and finite. */
atn_status core_check_kernel(atn_context *context, const atn_attention_desc *desc, double s);

/* Additions and multiplications of one distance. */
double core_pair_flops(atn_distance distance, double d);

#endif
