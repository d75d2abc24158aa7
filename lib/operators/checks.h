/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks and counts that the operators' rows share. */
#ifndef OPERATORS_CHECKS_H
#define OPERATORS_CHECKS_H

#include "operators/operator.h"

/* A tensor of the description: dense, of the plan's dtype, 1 x (1 or h) x rows x cols; -1 means
 * for any number. */
atn_status core_check_parameter(atn_context *context, const char *name, const atn_tensor *tensor,
                                const atn_attention_desc *desc, int64_t heads, int64_t rows,
                                int64_t cols);

/* epsilon and its like: finite and at least 0. */
atn_status core_check_epsilon(atn_context *context, const char *name, double epsilon);

/* The factor on q.k: logit_scale, or 1/sqrt(d) where that is 0; and its check. */
double core_logit_scale(const atn_attention_desc *desc, int64_t dim);
atn_status core_check_logit_scale(atn_context *context, const atn_attention_desc *desc);

/* Adds softmax(c X K^T) V for `rows` rows of X: for each of rows x keys a logit (2 d), its scale,
 * its part of the row's sum and of the product (2 dv), and one exp; for each output one division.
 * Backward: the same but for the product (dY is divided, not Y), then dP and dV (2 dv each), the
 * softmax (4), the scale, dX and dK (2 d each). */
void core_count_softmax(double rows, double keys, double d, double dv, atn_cost *cost);

/* Flops of the derivative of Q (K^T V) for n x d Q and n_k x d K: K^T V, dY (K^T V)^T, Q^T dY, V
 * times that and K times that, 2 d dv for each token. */
double core_context_backward_flops(double n, double n_k, double d, double dv);

/* Flops of the derivative of n x n_k kernel values by their tokens (attention.h). */
double core_kernel_backward_flops(double n, double n_k, double d);

/* ATN_ERR_VALUE unless 0 <= value < count; for enumerations. */
atn_status core_check_choice(atn_context *context, const char *name, int value, int count);

#endif
