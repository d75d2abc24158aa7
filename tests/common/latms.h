/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices with prescribed spectra, by LAPACK's dlatms. Row-major, f64. */
#ifndef TESTS_LATMS_H
#define TESTS_LATMS_H

#include <stdint.h>

#include <attnum/status.h>

/* A rows x cols matrix with singular values of the given mode (1 one large, 2 one small,
 * 3 geometric, 4 arithmetic, 5 log-uniform; negative: reversed) and condition number; seed > 0
 * makes the random orthogonal factors. sigma (min(rows, cols), descending, largest 1) receives the
 * prescribed values; the matrix has them up to rounding, a small multiple of n u. */
atn_status latms(int64_t rows, int64_t cols, int mode, double condition, int64_t seed, double *a,
                 double *sigma);

/* The same, symmetric positive semi-definite with prescribed eigenvalues; exactly symmetric. */
atn_status latms_symmetric(int64_t n, int mode, double condition, int64_t seed, double *a,
                           double *lambda);

#endif
