/* SPDX-License-Identifier: BSD-3-Clause */
/* Used in reference/ only: declarations shared by the files, one for each library.
 *
 * A route gets sizes of at least 1 and a copy of A that it may destroy: finite, symmetric where it
 * should be, and scaled by a power of 2 to a largest entry in [1/2, 1) (or all 0). u and vt are
 * both given or both null. */
#ifndef REFERENCE_ROUTES_H
#define REFERENCE_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include <attnum/status.h>

typedef atn_status ref_svd_function(int64_t rows, int64_t cols, double *a, double *u, double *sigma,
                                    double *vt);
typedef atn_status ref_eigen_function(int64_t n, double *a, double *lambda, double *w);

/* lapack.c */
ref_svd_function ref_route_dgesvd, ref_route_dgesvj, ref_route_dgesdd;
ref_eigen_function ref_route_dsyevd, ref_route_dsyevr;

/* gsl.c */
ref_svd_function ref_route_gsl_golub_reinsch;
ref_eigen_function ref_route_gsl_symmv;

/* linear_algebra.c */

/* ATN_ERR_SHAPE, ATN_ERR_NULL or ATN_OK. */
atn_status ref_check_matrix(int64_t rows, int64_t cols, const double *a);

/* to (cols x rows) = from^T (rows x cols). */
void ref_transpose(int64_t rows, int64_t cols, const double *from, double *to);

/* One-sided Jacobi leaves no vector for a singular value of exactly 0. Fills columns first .. k-1
 * of q (length x k, row-major) so that all k <= length columns are orthonormal. */
void ref_complete_basis(int64_t length, int64_t k, int64_t first, double *q);

/* X = W diag(f) W^T, n x n, exactly symmetric. */
atn_status ref_spectral_matrix(int64_t n, const double *w, const double *f, double *x);

bool ref_all_finite(int64_t count, const double *values);
void ref_fill(int64_t count, double value, double *values);

/* Allocates count doubles, at least one; null if out of memory or if the size overflows. */
double *ref_allocate(int64_t count);

#endif
