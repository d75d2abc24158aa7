/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the results of what is timed, once for each case and before it is timed, by comparison
 * with the CPU in f64. An operator is checked on one sequence, with all of its tokens if that takes
 * the CPU seconds, otherwise with fewer; of a batch of matrices the first ones are checked. The
 * bound on rounding follows from the change of the f64 result when the inputs change by one
 * roundoff of f32. Cases of the CPU in f64 itself are compared with references, on few tokens:
 * outputs with the dense one, gradients with its derivatives, inverses with functions of the
 * eigenvalues. Kernel matrices, products and exponentials are compared with other code: ours with
 * the libraries', theirs with ours. Operators with an unpublished inverse, and factors of a rank
 * below m, are left open. */
#ifndef EXPERIMENTS_BENCH_CHECK_H
#define EXPERIMENTS_BENCH_CHECK_H

#include "bench/cases.h"

/* X(code, name, description) */
#define CHECK_LIST(X)                                                                              \
    X(CHECK_PASS, "pass", "within the bound")                                                      \
    X(CHECK_FAIL, "fail", "not within the bound, or not finite")                                   \
    X(CHECK_OPEN, "open", "too few digits for this problem, a bound over 1/2; or no other code")   \
    X(CHECK_LEFT_OUT, "left-out", "would take too long: not run")

#define CHECK_CODE(code, name, description) code,
typedef enum { CHECK_LIST(CHECK_CODE) CHECK_COUNT } check_kind;
#undef CHECK_CODE

const char *check_name(check_kind kind);

typedef struct {
    check_kind kind;
    double error; /* |result - f64|_F / |f64|_F, for the array whose error is largest relative to
                     its bound */
    double bound;
} check_result;

/* Checks a case. A negative status: a call failed, and the context in which it failed has the
 * reason. */
atn_status check_case(atn_context *context, const bench_case *c, check_result *result);

/* Judges an error: it passes up to 8 times the condition times the sum of the type's roundoff and
 * the rounding error of sums of so many terms in f32 or wider, sqrt(terms) roundoffs, as errors are
 * independent (Higham and Mary 2019). condition: the relative change of a result divided by that of
 * its inputs, measured with other code than the judged one, or in f64; NaN counts as infinite. */
check_result check_judge(atn_dtype dtype, double error, double condition, int64_t terms);

/* Keeps the worse of two: fail, then open, then pass; of equals the one with the larger ratio of
 * error to bound. worst: {0} at the start. */
void check_keep_worse(check_result *worst, check_result r);

#endif
