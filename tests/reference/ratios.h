/* SPDX-License-Identifier: BSD-3-Clause */
/* LAPACK's test ratios, in long double and without BLAS, and a record of the worst seen. */
#ifndef TESTS_REFERENCE_RATIOS_H
#define TESTS_REFERENCE_RATIOS_H

#include <stdint.h>

#include "ruler.h"

#define UNIT_ROUNDOFF 0x1p-53

/* Allocations that end the test if they fail. */
double *new_numbers(int64_t count);

/* |A|_1 of a rows x cols matrix. */
double column_norm(int64_t rows, int64_t cols, const double *a);

/* |I - Q^T Q|_1 / (length u), Q length x count with orthonormal columns. */
double orthogonality_ratio(int64_t length, int64_t count, const double *q);

/* |A - U diag(s) V^T|_1 / (max(rows, cols) |A|_1 u); |A - U S V^T|_1 / u for A = 0. */
double reconstruction_ratio(int64_t rows, int64_t cols, int64_t k, const double *a, const double *u,
                            const double *s, const double *vt);

/* max |s_i - want_i| / (n u max |want|). */
double spectrum_ratio(int64_t n, int64_t count, const double *s, const double *want);

/* 0 if s is descending (and not negative, if asked), 1 if not: for REF_EXACT. */
double order_ratio(int64_t count, const double *s, bool nonnegative);

/* c (p x q) = a (p x r) b (r x q), summed in long double. */
void product(int64_t p, int64_t r, int64_t q, const double *a, const double *b, double *c);

/* Expects a pass of the rule (expect_ratio), or pass or marginal (expect_no_failure), and records
 * the ratio. The rest describes the case. */
typedef void expectation(ref_rule rule, double ratio, const char *format, ...);
expectation expect_ratio __attribute__((format(printf, 3, 4)));
expectation expect_no_failure __attribute__((format(printf, 3, 4)));

/* Logs the worst ratio per rule that expect_ratio has seen in this process (one test). */
void log_worst(const char *test);

#endif
