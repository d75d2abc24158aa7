/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases that --emit-case writes: every combination of the given sizes, seeds and masks, and the
 * inputs of each. */
#ifndef EXPERIMENTS_CHECK_PLAN_H
#define EXPERIMENTS_CHECK_PLAN_H

#include "check/check.h"

/* The sizes and settings that may be lists. */
typedef enum { AXIS_N, AXIS_D, AXIS_BATCH, AXIS_M, AXIS_SEED, AXIS_MASKS, AXES } case_axis;

typedef struct {
    const program_options *s;
    subject given;    /* --tokens, --keys, --values, masks; its case has only what was given */
    atn_dtype inputs; /* type whose numbers the inputs are */
    int64_t heads, key_heads;
    layout layout; /* of the written files */
    int64_t counts[AXES];
    const int64_t *values[AXES];
} case_plan;

/* A case's value on each axis. */
typedef struct {
    int64_t of[AXES];
} case_point;

/* Returns an exit code; the plan is to be freed in any case. */
int case_plan_read(const program_options *s, case_plan *plan);
void case_plan_free(case_plan *plan);

int64_t case_plan_count(const case_plan *plan);
case_point case_plan_point(const case_plan *plan, int64_t index);
/* "softmax-attention-n72-causal": it contains the axes that have several values. To be freed. */
char *case_plan_name(const case_plan *plan, const atn_operator_info *info, int variant,
                     const case_point *point);

/* The case, as near to the plan as the operator allows. Its q, k, v and masks may be the plan's. */
attention_case case_plan_make(const case_plan *plan, const case_point *point, atn_operator op,
                              int variant);
/* What the operator lacks for the case that was asked for; null: nothing. */
const char *case_plan_misfit(const case_plan *plan, const case_point *point,
                             const attention_case *c);

/* Whether several heads of the tokens share a head of keys and values. */
bool case_plan_is_grouped(const case_plan *plan);

#endif
