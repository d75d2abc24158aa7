/* SPDX-License-Identifier: BSD-3-Clause */
/* What soft and gaussian share: the Gaussian kernel's choices. */
#ifndef CORE_SOFT_H
#define CORE_SOFT_H

#include "operators.h"

extern const operator_family core_soft_family;

/* What a plan of SOFT or SOFT++ comes to on every device. */
typedef struct {
    atn_attention_desc desc; /* inverse.storage filled in */
    double s;
    int64_t m;     /* landmarks */
    bool backward; /* the inverse can be differentiated as the description says */
} core_soft_plan;

atn_status core_check_soft(atn_context *context, const atn_attention_desc *desc,
                           const atn_attention_shape *shape, core_soft_plan *plan);

/* A description that only runs forward may name a gradient that its inverse does not have. */
atn_status core_check_soft_backward(atn_context *context, const atn_attention_desc *desc);

/* A call's outcome from its heads': the worst positive status, and how many are not ATN_OK. */
typedef struct {
    atn_status worst;
    int64_t failures;
} core_soft_outcome;

void core_soft_count(core_soft_outcome *outcome, atn_status head);

/* Scale and distance are known choices, s is positive and finite. */
atn_status core_check_kernel(atn_context *context, const atn_attention_desc *desc, double s);

/* Additions and multiplications of one distance. */
double core_pair_flops(atn_distance distance, double d);

#endif
