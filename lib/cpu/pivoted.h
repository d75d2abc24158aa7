/* SPDX-License-Identifier: BSD-3-Clause */
/* Pivoted Cholesky by the loops of simd.h: the same bits in all of their instruction sets. */
#ifndef CPU_PIVOTED_H
#define CPU_PIVOTED_H

#include "cpu/simd.h"

/* A[pivots, pivots] = L L^T up to the cut, A dense m x m. What LAPACK's pstrf does: each pivot is
 * the first of the largest that are left of the diagonal, the first has to be above 0, the others
 * above cut. Returns their number r; pivots has all m rows in the order of the factor, whose first
 * r columns are L's, everything else of it 0. */
int64_t R(pivoted_factor)(const simd *kernels, int64_t m, const real *a, real cut, int *pivots,
                          real *factor, real *work);
/* The lower triangle of (L L^T)^-1 in place of L's, r x r. */
void R(factor_inverse)(const simd *kernels, int64_t r, int64_t factor_stride, real *factor,
                       real *work);
/* Of both, for m or r. */
int64_t R(pivoted_factor_work)(int64_t m);

#endif
