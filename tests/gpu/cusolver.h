/* SPDX-License-Identifier: BSD-3-Clause */
/* Singular values and eigenvalues by cuSOLVER, in f64 on a CUDA device, for arrays of the host: a
 * further result to compare with LAPACK's (linear_algebra.h), from another library on another
 * machine. No result is trusted: every decomposition is multiplied out on the host, and returned
 * with its residual.
 *
 * Statuses as in linear_algebra.h; ATN_ERR_DEVICE: no device, or it failed; ATN_ERR_UNSUPPORTED: a
 * build without CUDA. Conventions as ref_svd and ref_eigen have them: row-major, descending. */
#ifndef TESTS_GPU_CUSOLVER_H
#define TESTS_GPU_CUSOLVER_H

#include <stdint.h>

#include <attnum/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cuSOLVER's Jacobi SVD refuses larger matrices in a batch. */
enum { REF_DEVICE_BATCHED_SVD = 32 };

/* Jacobi's method, which the batches take, fails if it has not converged after so many. */
enum { REF_DEVICE_SWEEPS = 15 };

/* In units of rounding, n u with n the larger size: |A - U S V^T|_F / (n u |A|_F), and the largest
 * of |U^T U - I|_F, |V^T V - I|_F over n u. Healthy below 10, for
 * Jacobi's method below 10 times the root of its sweeps. */
typedef struct {
    double residual, orthogonality;
} ref_device_check;

/* A = U diag(sigma) V^T by gesvd, k = min(rows, cols): u rows x k, vt k x cols. */
atn_status ref_device_svd(int64_t rows, int64_t cols, const double *a, double *u, double *sigma,
                          double *vt, ref_device_check *check);

/* `count` n x n matrices at once by gesvdjBatched; n <= REF_DEVICE_BATCHED_SVD, ATN_ERR_SHAPE
 * beyond. check: the worst of all. */
atn_status ref_device_svd_batch(int64_t count, int64_t n, const double *a, double *u, double *sigma,
                                double *vt, ref_device_check *check);

/* A = W diag(lambda) W^T by syevd; `count` at once by syevjBatched. Eigenvectors are columns of w.
 */
atn_status ref_device_eigen(int64_t n, const double *a, double *lambda, double *w,
                            ref_device_check *check);
atn_status ref_device_eigen_batch(int64_t count, int64_t n, const double *a, double *lambda,
                                  double *w, ref_device_check *check);

#ifdef __cplusplus
}
#endif
#endif
