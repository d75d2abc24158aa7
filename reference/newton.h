/* SPDX-License-Identifier: BSD-3-Clause */
/* The Newton-Raphson iteration in exact arithmetic, which is a spectral filter.
 *
 * From X_0 = alpha B, B = A + ridge I, the iterate X_k has on an eigenvalue l of A, with
 * m = l + ridge, the eigenvalue f_k(m) = (1 - (1 - alpha m^2)^(2^k)) / m (Eq. 10, by induction:
 * 1 - m f_{k+1} = (1 - m f_k)^2). */
#ifndef REFERENCE_NEWTON_H
#define REFERENCE_NEWTON_H

#include <stdint.h>

#include <attnum/status.h>

/* f_k at mu for k >= 0, to a few u for every alpha mu^2: tiny, near 1, near 2 and beyond;
 * f_k(0) = 0. May be infinite (|1 - alpha mu^2| > 1). NaN for arguments that are not finite or
 * k < 0. */
double ref_filter(double alpha, int k, double mu);

/* The papers' metric that f_k predicts: max_i |l_i^2 f_k(l_i + ridge) - l_i| / max_i |l_i| over
 * the m eigenvalues l of A, without cancellation; 0 if all l are 0. NaN as above. */
double ref_filter_residual(int64_t m, const double *lambda, double alpha, double ridge, int k);

/* The matrix f_k(A + ridge I) from A's eigendecomposition (dsyevd), exactly symmetric. Statuses as
 * in linear_algebra.h, and ATN_ERR_VALUE for k < 0 or parameters that are not finite,
 * ATN_NOT_CONVERGED if f_k overflows (x is NaN). */
atn_status ref_filter_matrix(int64_t m, const double *a, double alpha, double ridge, int k,
                             double *x);

/* The derivative of X_k along a symmetric change E of A, at fixed alpha, for k = 0 .. count - 1
 * into tangents (count of m x m), by differentiating each step in long double:
 *
 *   dX_0 = alpha E,   dX_{k+1} = 2 dX - dX B X - X E X - X B dX.
 *
 * In A's eigenbasis dX_k has the entries f_k[m_i, m_j] E_ij, f_k[,] the divided difference; so the
 * map E -> dX_k is its own adjoint. Statuses as for ref_filter_matrix, except that overflow is no
 * failure: the results are then infinite or NaN. */
atn_status ref_newton_tangents(int64_t m, const double *a, double alpha, double ridge, int count,
                               const double *e, double *tangents);

/* |A|_1, the largest absolute column sum; NaN if an entry is. */
double ref_norm1(int64_t m, const double *a);

#endif
