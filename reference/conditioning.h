/* SPDX-License-Identifier: BSD-3-Clause */
/* The factor by which an operator magnifies rounding errors, and the verdict on its output. */
#ifndef REFERENCE_CONDITIONING_H
#define REFERENCE_CONDITIONING_H

#include "cases.h"
#include "ruler.h"

/* The factor by which the inverse of A (m x m, symmetric) magnifies rounding: A's condition number
 * or, for the Newton-Raphson variants, the sensitivity of their filter to relative changes of A or
 * alpha, if that is larger. */
double ref_inverse_condition(const atn_inverse_desc *inverse, int64_t m, const double *a,
                             double alpha);

/* kappa of each head (b x h): 1 plus the relative change of its output under random relative
 * changes of all inputs and parameters, |dY| / |Y|, the largest over `directions` random ones; or
 * the factor of the inverse, if that is larger: ref_inverse_condition (soft, softpp), the condition
 * of A (nystromformer's pinv). Infinite if a change makes the output not finite.
 *
 * want is ref_attention's answer. Costs one ref_attention per direction, with relative changes of
 * 2^-40; f64 keeps 3 digits of their effect, which are enough. */
void ref_attention_conditions(const attention_case *c, const double *want, int directions,
                              double *kappa);

/* The forward ratio of one head's output and its verdict (ref_judge_forward), for rounding errors
 * of relative size `rounding`: terms times u, say. *trivial (or null): whether rows of zeros, the
 * mean row of want or the mean of V would not have FAILed either, so that a pass proves nothing.
 * One token, or one key, is never called trivial. */
ref_verdict ref_judge_head(const attention_case *c, int64_t head, const ref_difference *difference,
                           const double *want, double kappa, double rounding, double *ratio,
                           bool *trivial);

#endif
