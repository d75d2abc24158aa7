/* SPDX-License-Identifier: BSD-3-Clause */
/* The polynomial iterations for the inverse in exact arithmetic, which are spectral filters.
 *
 * From X_0 = alpha I or alpha B, B = A + ridge I, X_k has on an eigenvalue mu of B the eigenvalue
 * f = (1 - e_k) / mu, where e_0 = 1 - alpha mu or 1 - alpha mu^2, and
 *
 *   Newton-Schulz, hyperpower of order p   e_k = e_0^(p^k)
 *   Chebyshev of order p                   e_k = T_N(e_0 / d) / T_N(1 / d), N = p^k, where e_0 runs
 *                                          over [-d, d] as mu does over [low, high]
 *   Nystromformer                          e_{k+1} = (3 e_k^3 + e_k^4) / 4
 *
 * Here e_k is computed from powers, cosines and hyperbolic cosines, not by steps (except
 * Nystromformer's, which has no closed form). */
#ifndef REFERENCE_FILTERS_H
#define REFERENCE_FILTERS_H

#include <stdbool.h>
#include <stdint.h>

#include <attnum/inverse.h>

typedef enum { REF_POWER, REF_CHEBYSHEV, REF_NYSTROMFORMER } ref_iteration_kind;

typedef struct {
    ref_iteration_kind kind;
    int order;        /* p; not used for Nystromformer */
    bool from_matrix; /* X_0 = alpha B */
    double alpha;     /* Chebyshev: not used, 2 / (low + high) or 2 / (low^2 + high^2) */
    double low, high; /* Chebyshev: 0 < low <= high */
    double ridge;
} ref_iteration;

/* The iteration that a description of the library names, on a matrix A >= 0 of size m; false for
 * methods that are not polynomial iterations. If the library estimates `low`, it stays 0: set it to
 * what the library reports. */
bool ref_iteration_of(const atn_inverse_desc *desc, int64_t m, const double *a,
                      ref_iteration *iteration);

/* e_k and f at mu, an eigenvalue of B, for k >= 0. f at mu = 0 is its limit, 0 from alpha B. May be
 * infinite. NaN for arguments that are not finite, k < 0, or low > high. */
double ref_iteration_error(const ref_iteration *iteration, int k, double mu);
double ref_iteration_filter(const ref_iteration *iteration, int k, double mu);

/* The two metrics on the m eigenvalues l of A, without cancellation: max |l^2 f(l + ridge) - l| /
 * max |l|, which is |A X A - A|_2 / |A|_2 (0 if all l are 0), and max |1 - l f(l + ridge)|, which
 * is |I - A X|_2. */
double ref_iteration_residual(const ref_iteration *iteration, int k, int64_t m,
                              const double *lambda);
double ref_iteration_identity_residual(const ref_iteration *iteration, int k, int64_t m,
                                       const double *lambda);

/* The matrix f(A + ridge I) from A's eigendecomposition, as ref_filter_matrix (newton.h). */
atn_status ref_iteration_matrix(int64_t m, const double *a, const ref_iteration *iteration, int k,
                                double *x);

#endif
