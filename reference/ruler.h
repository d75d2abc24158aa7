/* SPDX-License-Identifier: BSD-3-Clause */
/* The ruler: one comparator, one verdict, one table of thresholds. It is tested before the code
 * that it judges.
 *
 * ref_compare measures and does not judge; ref_judge compares a ratio with the table. A ratio is an
 * error divided by the rounding error that was to be expected, so 1 is what a good algorithm
 * reaches. NaN and infinity fail whatever the threshold. */
#ifndef REFERENCE_RULER_H
#define REFERENCE_RULER_H

#include <stdbool.h>
#include <stdint.h>

/* got against want, both rows x cols, row-major with the given row strides; got in its own type,
 * want in f64. */
typedef struct {
    /* of got - want; infinity if either holds NaN or infinity, even at the same place */
    double norm1, norm_inf, frobenius, max_abs;
    double want_norm1, want_inf, want_frobenius, want_max;
    double relative_frobenius; /* frobenius / want_frobenius; 0/0 = 0 */
    double digits;             /* agreeing digits: -log10(relative_frobenius), within 0 .. 15.95 */
    int64_t worst_row, worst_col; /* of the largest |got - want|; a NaN is worst; -1: no element */
    double worst_got, worst_want;
    int64_t nonfinite; /* NaN or infinity in got where want is finite, or the other way round */
} ref_difference;

/* Negative sizes, null data or a stride < cols give a difference that is infinite throughout. */
ref_difference ref_compare_f64(int64_t rows, int64_t cols, const double *got, int64_t got_stride,
                               const double *want, int64_t want_stride);
ref_difference ref_compare_f32(int64_t rows, int64_t cols, const float *got, int64_t got_stride,
                               const double *want, int64_t want_stride);

typedef enum { REF_PASS, REF_MARGINAL, REF_FAIL, REF_SKIPPED } ref_verdict;
const char *ref_verdict_name(ref_verdict verdict); /* "pass", "marginal", "FAIL", "skipped" */

/* What is compared with a threshold. X(code, name, pass, fail, statistic, reason):
 * ratio < pass: pass; < fail: marginal; otherwise FAIL. The one table of thresholds. */
#define REF_RULE_LIST(X)                                                                           \
    X(REF_BACKWARD, "backward", 30, 100, "residual / (n |A|_1 u)",                                 \
      "LAPACK's own threshold for factorisations and inverses (dtest.in 30, svd.in 50)")           \
    X(REF_ORTHOGONALITY, "orthogonality", 30, 100, "|I - U^T U|_1 / (n u)",                        \
      "LAPACK's limit for its own vectors: 50 or 60 in units of 2 u (svd.in, sep.in)")             \
    X(REF_FORWARD, "forward", 10, 30, "|x - want| / (kappa n u |want|)",                           \
      "first-order perturbation theory; skipped where kappa n u > 0.1")                            \
    X(REF_SPECTRUM, "spectrum", 10, 30, "|s_i - want_i| / (n u s_1)",                              \
      "Weyl: backward stable solvers are within a small multiple of n u s_1")                      \
    X(REF_ROUNDING, "rounding", 1, 3, "|x - want| / a rounding bound derived for the case",        \
      "a bound that holds for every input: crossing it is a finding")                              \
    X(REF_BASELINE, "baseline", 1, 1.5, "max |got - want| / (2 max |plain - want| + 2 ulp)",       \
      "another order of the same sums may be twice as unlucky as the plain one, not more")         \
    X(REF_REACH, "reachable", 1, 1.5, "error / (2 error that good kernels reach + w |want|)",      \
      "as above, of several good kernels; w: one rounding, and those of a sum that is shared")     \
    X(REF_REGRESSION, "regression", 1, 1, "error / (2 kept error + 2 kappa u)",                    \
      "as above; below two roundings of every stored number luck decides")                         \
    X(REF_EXACT, "exact", 0.5, 0.5, "0 if equal, 1 if not", "identities that hold to the last bit")

#define REF_RULE_ENTRY(code, name, pass, fail, statistic, reason) code,
typedef enum { REF_RULE_LIST(REF_RULE_ENTRY) REF_RULE_COUNT } ref_rule;
#undef REF_RULE_ENTRY

typedef struct {
    const char *name;
    double pass, fail;
    const char *statistic, *reason;
} ref_threshold;

const ref_threshold *ref_threshold_get(ref_rule rule); /* null if out of range */

/* The verdict on a ratio. NaN, infinity and negative ratios FAIL. */
ref_verdict ref_judge(ref_rule rule, double ratio);

/* The forward ratio |got - want|_F / (kappa n u |want|_F), and its verdict: REF_SKIPPED if
 * kappa n u > 0.1 (nothing can be said) or kappa is not finite; ratio (or null) is then NaN. NaN or
 * infinity in got FAILs whatever kappa. want = 0 demands got = 0. u is the roundoff of got's type.
 */
ref_verdict ref_judge_forward(const ref_difference *difference, double kappa, int64_t n, double u,
                              double *ratio);

/* The same-precision rule: compares two answers in one type with the same want, by the differences
 * of got and of the plain version. The ratio is max |got - want| over twice max |plain - want| and
 * two units in the last place of max |want| in a type of roundoff u. NaN or infinity in got FAILs;
 * in plain alone they give REF_SKIPPED, and ratio (or null) is NaN. */
ref_verdict ref_judge_baseline(const ref_difference *difference, const ref_difference *plain,
                               double u, double *ratio);

/* The regression rule: compares an error with the recorded one of the same problem, both in units
 * of kappa u, the effect on the output of rounding every stored number once. Errors are near 1 in
 * this unit whatever the operator and its conditioning, and the order of sums decides on which side
 * of 1: hence the 2 in addition to the recorded error's. If the recorded error is infinite, every
 * error passes; NaN and negative numbers FAIL. */
ref_verdict ref_judge_regression(double error, double kept, double *ratio);

/* Whether a trivial answer of the same shape, all zeros or the column means of want, would be
 * distinguished from want at this relative Frobenius tolerance: a test with a tolerance that either
 * passes proves nothing. A single row is its own column mean and never discriminates. */
bool ref_discriminates(int64_t rows, int64_t cols, const double *want, double tolerance);

#endif
