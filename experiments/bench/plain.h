/* SPDX-License-Identifier: BSD-3-Clause */
/* Code that users would write without the library, timed for comparison: products through OpenBLAS,
 * exponentials through the C library, one matrix or one head per call. f32 and f64; everything is
 * dense and row-major. */
#ifndef EXPERIMENTS_BENCH_PLAIN_H
#define EXPERIMENTS_BENCH_PLAIN_H

#include <attnum/attnum.h>

/* C = op(A) op(B). */
void plain_product(atn_dtype dtype, bool transpose_a, bool transpose_b, int64_t rows, int64_t cols,
                   int64_t inner, const void *a, const void *b, void *c);

/* Y = X_20 W (m x cols) by the published iteration, SOFT (IJCV) Eq. 10 and Alg. 2: X <- 2X - X(AX)
 * from 2/|A|_1^2 A. work: 3 m^2 elements. */
enum { PLAIN_STEPS = 20 };
void plain_newton(atn_dtype dtype, int64_t m, int64_t cols, const void *a, const void *w,
                  void *work, void *y);

/* x <- exp(-x), one call of the C library for each number. */
void plain_exponentials(atn_dtype dtype, int64_t count, void *x);

/* exp(-s |x_i - l_j|^2), n x m, with distances expanded into one product. work: n + m elements. */
void plain_kernel(atn_dtype dtype, double s, int64_t n, int64_t m, int64_t d, const void *x,
                  const void *l, void *work, void *out);

#endif
