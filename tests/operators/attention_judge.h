/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditioning, tolerances and verdicts for the tests of all operators. */
#ifndef TESTS_ATTENTION_JUDGE_H
#define TESTS_ATTENTION_JUDGE_H

#include "attention_run.h"
#include "ruler.h"

/* The tolerances that are not ratios of the ruler's table, each with its reason. */

/* f64 gradients, |g - reference|_2 / |reference|_2. At most 300 terms and a conditioning of 1e4
 * give N kappa u = 3e-10; a wrong term is off by 1e-3 at least. */
static const double JUDGE_GRADIENT = 1e-9;
static const double JUDGE_MOST_CONDITION = 1e4;

/* A gradient that cancels to (almost) nothing, as that of q under softmax over one key, is compared
 * with this part of the size it would have without cancellation, |dY| |Y| / |x|: in f32, where the
 * tolerance is a few u, all of it, because that is what rounding is relative to. */
static const double JUDGE_FLOOR[ATN_DTYPE_COUNT] = {[ATN_F32] = 1, [ATN_F64] = 1e-3};

/* The error of a law of exact arithmetic in f64, relative to the output: 1e4 u times the
 * conditioning of these shapes; and the least change if it is broken. */
static const double JUDGE_LAW = 1e-10;
static const double JUDGE_BROKEN = 1e-5;

/* kappa of each head by ref_attention_conditions, in three directions. */
void judge_conditions(const attention_case *c, const double *want, double *kappa);

/* The worst forward ratio |out - want|_F / (kappa N u |want|_F) of all heads and its verdict. Where
 * two tokens or more are averaged, zeros, the mean row of want and the mean of V must have failed
 * the same judge, or the verdict is REF_SKIPPED. */
ref_verdict judge_forward(const attention_run *run, const double *want, const double *kappa,
                          double *ratio);

/* ---- Largest errors, for ref_judge_baseline ---- */

/* The inputs of one case to another: those of a narrow type are rounded once, of a storage twice.
 */
void judge_give_inputs(const attention_case *from, attention_case *to);

/* Merges the errors of all heads of an output into what ref_judge_baseline looks at. */
void judge_merge_heads(const attention_case *c, const guarded *out, const double *want,
                       ref_difference *into);

/* Runs the case forward and merges its errors; the call must succeed. */
void judge_errors(atn_context *context, const attention_case *c, int layout, const double *want,
                  ref_difference *into);

/* The errors of zeros, as an answer. */
void judge_zeros(const attention_case *c, const double *want, ref_difference *into);

/* ---- Gradients ---- */

/* |got - want|_2 over |want|_2 or, where that is less, JUDGE_FLOOR of its natural size. */
double judge_gradient_error(const attention_case *c, const double *output, int slot,
                            const double *got, const double *want);

/* The worst of all slots that exist, and its slot. */
double judge_gradients(const attention_case *c, const double *output, const attention_slots *got,
                       const attention_slots *want, int *worst_slot);

double judge_norm(int64_t count, const double *x);

/* max |x_i|; NaN if any x_i is NaN. */
double judge_largest(int64_t count, const double *x);

/* |x - y|_2 / |y|_2; 0/0 = 0. */
double judge_relative(int64_t count, const double *x, const double *y);

#endif
