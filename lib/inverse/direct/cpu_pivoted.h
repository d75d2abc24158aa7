/* SPDX-License-Identifier: BSD-3-Clause */
/* Cholesky factors, with and without pivots, and their inverses by the loops of simd.h: the same
 * bits in all instruction sets with fused multiply-adds. */
#ifndef INVERSE_DIRECT_CPU_PIVOTED_H
#define INVERSE_DIRECT_CPU_PIVOTED_H

#include "cpu/simd.h"

/* A[pivots, pivots] = L L^T up to the cut, A dense m x m. As LAPACK's pstrf: each pivot is the
 * first of the largest entries of the downdated diagonal; the first pivot must be above 0, the
 * others above cut. Returns their number r; pivots lists all m rows in the order of the factor,
 * whose first r columns are L and whose other entries are 0. */
int64_t R(pivoted_factor)(const simd *kernels, int64_t m, const real *a, real cut, int *pivots,
                          real *factor, real *work);
/* Replaces the upper triangle of A = L L^T by L^T; entries below the diagonal are undefined. Rows
 * are cholesky_stride apart and padded to whole vectors. False: a pivot is not above 0. */
bool R(cholesky_factor)(const simd *kernels, int64_t m, real *rows);
int64_t R(cholesky_stride)(int64_t m);
/* Stores the lower triangle of (L L^T)^-1, r x r, in x; entries above the diagonal are undefined. L
 * has elements l[i l_row + k l_step], and may lie in x. */
void R(factor_inverse)(const simd *kernels, int64_t r, const real *l, int64_t l_row, int64_t l_step,
                       int64_t x_stride, real *x, real *work);
/* The elements of work of pivoted_factor and factor_inverse, for m or r. */
int64_t R(pivoted_factor_work)(int64_t m);

#endif
