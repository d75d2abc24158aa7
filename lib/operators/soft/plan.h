/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks and counts of plans of SOFT and SOFT++ on every device. */
#ifndef SOFT_PLAN_H
#define SOFT_PLAN_H

#include "operators/operator.h"

/* The properties of a plan of SOFT or SOFT++ on every device. */
typedef struct {
    atn_attention_desc desc; /* inverse.storage filled in */
    double s;
    int64_t m;     /* landmarks */
    bool backward; /* the inverse can be differentiated as the description says */
} core_soft_plan;

atn_status core_check_soft(atn_context *context, const atn_attention_desc *desc,
                           const atn_attention_shape *shape, core_soft_plan *plan);

/* Checks that the inverse has the gradient that the description names; forward does not need it. */
atn_status core_check_soft_backward(atn_context *context, const atn_attention_desc *desc);

/* Collects a call's outcome: the worst positive status, and how many heads are not ATN_OK. */
typedef struct {
    atn_status worst;
    int64_t failures;
} core_soft_outcome;

void core_soft_count(core_soft_outcome *outcome, atn_status head);

/* For the operators' rows. */
atn_status core_check_soft_values(atn_context *context, const atn_attention_desc *desc,
                                  const atn_attention_shape *shape);
void core_count_soft(atn_context *context, const atn_attention_desc *desc,
                     const atn_attention_shape *shape, atn_cost *cost);
#define SOFT_DIFFERENTIABLE                                                                        \
    (1u << ATN_PARAMETER_CONV | 1u << ATN_PARAMETER_NORM_WEIGHT | 1u << ATN_PARAMETER_NORM_BIAS |  \
     1u << ATN_PARAMETER_RESIDUAL)
#define SOFT_UNSUPPORTED                                                                           \
    "SOFT has Q = K (IJCV Eq. 5); no mask, causal form or cross-attention is published"

#endif
