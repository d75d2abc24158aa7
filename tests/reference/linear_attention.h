/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of the linear operators' references. */
#ifndef TESTS_REFERENCE_LINEAR_ATTENTION_H
#define TESTS_REFERENCE_LINEAR_ATTENTION_H

#include <stdbool.h>

#include "attention.h"

/* Expects |got_i - want_i| <= operations u max |want|. The references sum in long double and round
 * once, so the expected error is that of computing `want`. */
void expect_within(const char *what, int64_t count, const double *got, const double *want,
                   int operations);

/* The largest |x_i|; NaN if one is. */
double largest(int64_t count, const double *x);

/* A dense f64 tensor 1 x heads x rows x cols. */
atn_tensor constant(double *data, int64_t heads, int64_t rows, int64_t cols);

#endif
