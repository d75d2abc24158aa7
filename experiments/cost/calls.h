/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of an operator at a setting: their inputs, and memory for the outputs. */
#ifndef EXPERIMENTS_CALLS_H
#define EXPERIMENTS_CALLS_H

#include "cost/operators.h"

enum {
    CALL_Q,
    CALL_K,
    CALL_V,
    CALL_OUT,
    CALL_DOUT,
    CALL_GRAD_Q,
    CALL_GRAD_K,
    CALL_GRAD_V,
    CALL_ARRAYS
};

/* The arrays of a call: inputs and outputs. */
typedef struct {
    attention_case problem;
    atn_tensor arrays[CALL_ARRAYS]; /* null data: not part of this call */
    bool borrowed;                  /* the arrays belong to another call */
} prepared_call;

/* Whether a call has an array: K where the operator can take one, gradients with backward. */
bool call_has_array(atn_operator op, int array, bool backward);

/* "forward+backward", or "forward". */
const char *call_mode_name(bool backward);

/* Makes the inputs, numbers in [-1, 1), in huge pages where the system has them. False if memory
 * ran out; the call must be closed in any case. */
bool call_open(const cost_setting *setting, bool backward, prepared_call *call);

/* A call with at most as many tokens, heads and channels as another, whose arrays it shares, from
 * their start. */
void call_open_within(const cost_setting *setting, const prepared_call *other, prepared_call *call);
void call_close(prepared_call *call);

/* Run a plan that was made for the call's description and shape. */
atn_status call_forward(atn_plan *plan, prepared_call *call);
atn_status call_backward(atn_plan *plan, prepared_call *call);

/* Computes so many of the operators' exponentials in f32, in a block that stays in the cache; *done
 * is their number. On a context of one thread. */
atn_status call_exps(atn_context *context, int64_t exps, double *done);

#endif
