/* SPDX-License-Identifier: BSD-3-Clause */
/* What soft and gaussian share: the Gaussian kernel's choices. */
#ifndef CORE_SOFT_H
#define CORE_SOFT_H

#include "operators.h"

extern const operator_family core_soft_family;

/* Scale and distance are known choices, s is positive and finite. */
atn_status core_check_kernel(atn_context *context, const atn_attention_desc *desc, double s);

/* Additions and multiplications of one distance. */
double core_pair_flops(atn_distance distance, double d);

#endif
