/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact linear algebra for small dense f64 matrices, by two routes each.
 *
 * Matrices are row-major and dense: a[i * cols + j]. Every route has a name and can be called alone
 * (ref_svd, ref_eigen); the functions that other code relies on (ref_singular_values and below) run
 * two routes and report how far they disagree. A singular value below n u sigma_1 has no
 * floating-point reference: a result that depends on one (rank, condition, pseudo-inverse) is
 * returned with ATN_BELOW_FLOOR. A list of singular values or eigenvalues is not: its absolute
 * error is at most about n u sigma_1.
 *
 * All functions return ATN_OK, a negative status (ATN_ERR_NULL; ATN_ERR_SHAPE for negative sizes or
 * more than 2^28 elements; ATN_ERR_VALUE for an unknown route; ATN_ERR_MEMORY; ATN_ERR_LIBRARY for
 * a LAPACK or GSL failure or a result that is not finite), ATN_NONFINITE for NaN or infinity in the
 * input (outputs are NaN, ranks 0), or what they document. After ATN_ERR_MEMORY and ATN_ERR_LIBRARY
 * outputs are undefined. 0 x 0 is allowed everywhere. No input may overlap an output. */
#ifndef REFERENCE_LINEAR_ALGEBRA_H
#define REFERENCE_LINEAR_ALGEBRA_H

#include <stdint.h>

#include <attnum/status.h>

/* X(code, name, description) */
#define REF_SVD_LIST(X)                                                                            \
    X(REF_DGESVD, "dgesvd", "LAPACK QR iteration: the reference")                                  \
    X(REF_DGESVJ, "dgesvj",                                                                        \
      "LAPACK one-sided Jacobi: the check (dgejsv where its sweeps do not converge)")              \
    X(REF_DGESDD, "dgesdd", "LAPACK divide and conquer: loses small sigma of graded matrices")     \
    X(REF_GSL_GOLUB_REINSCH, "gsl-golub-reinsch",                                                  \
      "GSL bidiagonalisation: second opinion; fails on some matrices of rank 1")
#define REF_EIGEN_LIST(X)                                                                             \
    X(REF_DSYEVD, "dsyevd", "LAPACK divide and conquer: the reference")                               \
    X(REF_DSYEVR, "dsyevr",                                                                           \
      "LAPACK relatively robust representations: the check, by eigenvalues; its vectors may be less " \
      "orthogonal")                                                                                   \
    X(REF_GSL_SYMMV, "gsl-symmv", "GSL symmetric QR: second opinion")

#define REF_NAMED_ENTRY(code, name, description) code,
typedef enum { REF_SVD_LIST(REF_NAMED_ENTRY) REF_SVD_COUNT } ref_svd_route;
typedef enum { REF_EIGEN_LIST(REF_NAMED_ENTRY) REF_EIGEN_COUNT } ref_eigen_route;
#undef REF_NAMED_ENTRY

const char *ref_svd_name(ref_svd_route route);     /* null if out of range */
const char *ref_eigen_name(ref_eigen_route route); /* null if out of range */

/* A = U diag(sigma) V^T with k = min(rows, cols): u rows x k, sigma k descending, vt k x cols.
 * u and vt may both be null: singular values only. Columns of u and rows of vt are orthonormal also
 * where sigma is 0. */
atn_status ref_svd(ref_svd_route route, int64_t rows, int64_t cols, const double *a, double *u,
                   double *sigma, double *vt);

/* A = W diag(lambda) W^T for symmetric A (the lower triangle is read): lambda n descending, w n x n
 * with eigenvector i in column i, or null. */
atn_status ref_eigen(ref_eigen_route route, int64_t n, const double *a, double *lambda, double *w);

/* The disagreement of the two routes, in units of the rounding error that either may have: max
 * |first_i - second_i| / (n u largest), n = max(rows, cols). It should be below 10. `disagreement`
 * may be null: singular values, eigenvalues and condition then skip the second route, which is
 * slower (dgesvj at n = 1024 takes seconds). */

/* sigma by dgesvd, checked by dgesvj. */
atn_status ref_singular_values(int64_t rows, int64_t cols, const double *a, double *sigma,
                               double *disagreement);

/* lambda (and w, or null) by dsyevd, checked by dsyevr. */
atn_status ref_eigenvalues(int64_t n, const double *a, double *lambda, double *w,
                           double *disagreement);

/* |A|_2 = sigma_1 by dgesvd; 0 for an empty matrix. */
atn_status ref_spectral_norm(int64_t rows, int64_t cols, const double *a, double *norm);

/* A+ (cols x rows), singular values <= rcond sigma_1 dropped; rcond < 0: max(rows, cols) u. rank
 * (or null) receives the number kept. Two routes (dgesvd, dgesvj); disagreement is max |first -
 * second| / (n u kappa |A+|_2), kappa the condition number of what was kept. ATN_BELOW_FLOOR if the
 * routes keep different numbers of singular values or keep one under n u sigma_1; A+ and rank are
 * then dgesvd's, and not reliable. ATN_SINGULAR if A+ overflows. */
atn_status ref_pinv(int64_t rows, int64_t cols, const double *a, double rcond, double *pinv,
                    int64_t *rank, double *disagreement);

/* The same for symmetric A (the lower triangle is read) by eigendecomposition (dsyevd, dsyevr): A+
 * is exactly symmetric. The projector on the range kept (n x n) goes to projector, or null. */
atn_status ref_symmetric_pinv(int64_t n, const double *a, double rcond, double *pinv,
                              double *projector, int64_t *rank, double *disagreement);

/* sigma_1 / sigma_min, infinity for sigma_min = 0, 0 for an empty matrix. ATN_BELOW_FLOOR if
 * sigma_min < n u sigma_1: the number is then only a lower bound's order of magnitude. */
atn_status ref_condition(int64_t rows, int64_t cols, const double *a, double *condition,
                         double *disagreement);

#endif
