/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices whose eigenvalues are known in closed form. Row-major, f64. Eigenvalues come in
 * descending order. */
#ifndef REFERENCE_MATRICES_H
#define REFERENCE_MATRICES_H

#include <stdint.h>

#include <attnum/status.h>

/* Named symmetric kernel-like matrices with closed-form spectra. `value` is the parameter.
 * X(code, name, description) */
#define REF_MATRIX_LIST(X)                                                                         \
    X(REF_IDENTITY, "identity", "I: well-separated tokens")                                        \
    X(REF_ONES, "ones", "all ones: a constant image")                                              \
    X(REF_EQUICORRELATED, "equicorrelated", "1 on the diagonal, value elsewhere")                  \
    X(REF_CIRCULANT, "circulant",                                                                  \
      "Gaussian kernel of m points on a ring: exp(-value 4 sin^2(pi (i-j)/m))")                    \
    X(REF_TORUS, "torus", "Kronecker product of two circulants of size sqrt(m)")                   \
    X(REF_TWO, "two", "2 x 2, value off the diagonal; m must be 2")                                \
    X(REF_BLOCKS, "blocks",                                                                        \
      "block diagonal: 3 equicorrelated blocks of sizes as equal as can be, value inside")         \
    X(REF_DUPLICATES, "duplicates",                                                                \
      "well-separated tokens (I) but for two at distance delta = value: off-diagonal "             \
      "exp(-delta^2/2), lambda_min = 1 - exp(-delta^2/2); value 0: exact duplicates")

#define REF_NAMED_ENTRY(code, name, description) code,
typedef enum { REF_MATRIX_LIST(REF_NAMED_ENTRY) REF_MATRIX_COUNT } ref_matrix;
#undef REF_NAMED_ENTRY

const char *ref_matrix_name(ref_matrix matrix); /* null if out of range */

/* The matrix (m x m) and its eigenvalues from the closed form (m, descending); either may be null.
 * The closed form is applied to the entries as stored, rounded to f64: exp(-delta^2/2) = 1 - u
 * makes lambda_min = u exactly. value is ignored by identity and ones. ATN_ERR_SHAPE if the matrix
 * does not exist for m (two: m = 2; duplicates: m >= 2; torus: a square; blocks: m >= 3);
 * ATN_ERR_VALUE if value is not finite, or negative where it is a distance or a scale (circulant,
 * torus, duplicates). */
atn_status ref_matrix_make(ref_matrix matrix, int64_t m, double value, double *a, double *lambda);

#endif
