/* SPDX-License-Identifier: BSD-3-Clause */
/* cuSOLVER over LAPACK: the same column-major conventions, checks and refusals. */
#include <vector>

#include <lapacke.h>

#include "cusolverDn.h"
#include "library.h"

struct cusolverDnContext : handle_base {
};

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle)
{
    return create(handle, CUSOLVER_STATUS_NOT_INITIALIZED, CUSOLVER_STATUS_ALLOC_FAILED,
                  CUSOLVER_STATUS_SUCCESS);
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle)
{
    delete handle;
    return handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream)
{
    return handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}

/* The settings of Jacobi's method, which LAPACK's methods do not need; order is always ascending
 * (values) or descending (singular values). */
struct syevjInfo {
};

struct gesvdjInfo {
};

cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t *info)
{
    *info = new syevjInfo();
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroySyevjInfo(syevjInfo_t info)
{
    delete info;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXsyevjSetTolerance(syevjInfo_t info, double tolerance)
{
    return info ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnXsyevjSetMaxSweeps(syevjInfo_t info, int max_sweeps)
{
    return info ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnXsyevjSetSortEig(syevjInfo_t info, int sort_eig)
{
    return info ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t *info)
{
    *info = new gesvdjInfo();
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info)
{
    delete info;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXgesvdjSetTolerance(gesvdjInfo_t info, double tolerance)
{
    return info ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnXgesvdjSetMaxSweeps(gesvdjInfo_t info, int max_sweeps)
{
    return info ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnXgesvdjSetSortEig(gesvdjInfo_t info, int sort_svd)
{
    return info ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

} /* extern "C" */

static char letter(cublasFillMode_t uplo)
{
    return uplo == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U';
}

/* Divide and conquer, each with the workspace it asks for. */
static int eigen(char job, char triangle, int n, float *a, int lda, float *w)
{
    int whole;
    float size;
    LAPACKE_ssyevd_work(LAPACK_COL_MAJOR, job, triangle, n, a, lda, w, &size, -1, &whole, -1);
    std::vector<float> work((size_t)size);
    std::vector<int> integers((size_t)whole);
    return LAPACKE_ssyevd_work(LAPACK_COL_MAJOR, job, triangle, n, a, lda, w, work.data(),
                               (int)work.size(), integers.data(), whole);
}

static int eigen(char job, char triangle, int n, double *a, int lda, double *w)
{
    int whole;
    double size;
    LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, job, triangle, n, a, lda, w, &size, -1, &whole, -1);
    std::vector<double> work((size_t)size);
    std::vector<int> integers((size_t)whole);
    return LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, job, triangle, n, a, lda, w, work.data(),
                               (int)work.size(), integers.data(), whole);
}

/* Workspace in numbers; what the real ones ask for is not documented. */
static int workspace_of(int rows, int cols)
{
    return 32 + 2 * rows * cols;
}

static cusolverStatus_t set_workspace(bool valid, int rows, int cols, int *lwork)
{
    if (!valid)
        return CUSOLVER_STATUS_INVALID_VALUE;
    *lwork = workspace_of(rows, cols);
    return CUSOLVER_STATUS_SUCCESS;
}

template <class T>
static cusolverStatus_t syev(cusolverDnHandle_t handle, cusolverEigMode_t jobz,
                             cublasFillMode_t uplo, int n, T *a, int lda, T *w, T *work, int lwork,
                             int *info, int count)
{
    if (!handle)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (n < 0 || count < 0 || lda < max(1, n) || lwork < workspace_of(n, n))
        return CUSOLVER_STATUS_INVALID_VALUE;
    long long stride = (long long)lda * n;
    if (!enqueue() || !reachable("syev's A", {a, sizeof(T), n, n, lda, stride, count}) ||
        !reachable_array("syev's W", w, (long long)n * count) ||
        !reachable_array("syev's workspace", work, lwork) ||
        !reachable_array("syev's info", info, count))
        return CUSOLVER_STATUS_EXECUTION_FAILED;
    emulator_access access;
    for (int i = 0; i < count; i++)
        info[i] = n == 0 ? 0
                         : eigen(jobz == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N', letter(uplo), n,
                                 a + i * stride, lda, w + (long long)i * n);
    return CUSOLVER_STATUS_SUCCESS;
}

/* U, S, V^T of one matrix; `job` as LAPACK's. */
static int decompose(char left, char right, int m, int n, double *a, int lda, double *s, double *u,
                     int ldu, double *vt, int ldvt)
{
    double size;
    LAPACKE_dgesvd_work(LAPACK_COL_MAJOR, left, right, m, n, a, lda, s, u, ldu, vt, ldvt, &size,
                        -1);
    std::vector<double> work((size_t)size);
    return LAPACKE_dgesvd_work(LAPACK_COL_MAJOR, left, right, m, n, a, lda, s, u, ldu, vt, ldvt,
                               work.data(), (int)work.size());
}

template <class T> static int cholesky(char triangle, int n, T *a, int lda);

template <> int cholesky(char triangle, int n, float *a, int lda)
{
    return LAPACKE_spotrf_work(LAPACK_COL_MAJOR, triangle, n, a, lda);
}

template <> int cholesky(char triangle, int n, double *a, int lda)
{
    return LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, triangle, n, a, lda);
}

template <class T>
static cusolverStatus_t potrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T **a,
                              int lda, int *info, int count)
{
    if (!handle)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (n < 0 || count < 0 || lda < max(1, n))
        return CUSOLVER_STATUS_INVALID_VALUE;
    if (!enqueue() || !reachable_array("potrf's list of A", a, count) ||
        !reachable_array("potrf's info", info, count))
        return CUSOLVER_STATUS_EXECUTION_FAILED;
    emulator_access access;
    for (int i = 0; i < count; i++) {
        if (!reachable("potrf's A", {a[i], sizeof(T), n, n, lda, 0, 1}))
            return CUSOLVER_STATUS_EXECUTION_FAILED;
        info[i] = n == 0 ? 0 : cholesky<T>(letter(uplo), n, a[i], lda);
    }
    return CUSOLVER_STATUS_SUCCESS;
}

extern "C" {

cusolverStatus_t cusolverDnSsyevjBatched_bufferSize(cusolverDnHandle_t handle,
                                                    cusolverEigMode_t jobz, cublasFillMode_t uplo,
                                                    int n, const float *A, int lda, const float *W,
                                                    int *lwork, syevjInfo_t params, int batchSize)
{
    return set_workspace(handle && params && n >= 0 && lda >= max(1, n), n, n, lwork);
}

cusolverStatus_t cusolverDnDsyevjBatched_bufferSize(cusolverDnHandle_t handle,
                                                    cusolverEigMode_t jobz, cublasFillMode_t uplo,
                                                    int n, const double *A, int lda,
                                                    const double *W, int *lwork, syevjInfo_t params,
                                                    int batchSize)
{
    return set_workspace(handle && params && n >= 0 && lda >= max(1, n), n, n, lwork);
}

cusolverStatus_t cusolverDnSsyevjBatched(cusolverDnHandle_t handle, cusolverEigMode_t jobz,
                                         cublasFillMode_t uplo, int n, float *A, int lda, float *W,
                                         float *work, int lwork, int *info, syevjInfo_t params,
                                         int batchSize)
{
    return syev(params ? handle : nullptr, jobz, uplo, n, A, lda, W, work, lwork, info, batchSize);
}

cusolverStatus_t cusolverDnDsyevjBatched(cusolverDnHandle_t handle, cusolverEigMode_t jobz,
                                         cublasFillMode_t uplo, int n, double *A, int lda,
                                         double *W, double *work, int lwork, int *info,
                                         syevjInfo_t params, int batchSize)
{
    return syev(params ? handle : nullptr, jobz, uplo, n, A, lda, W, work, lwork, info, batchSize);
}

cusolverStatus_t cusolverDnDsyevd_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t jobz,
                                             cublasFillMode_t uplo, int n, const double *A, int lda,
                                             const double *W, int *lwork)
{
    return set_workspace(handle && n >= 0 && lda >= max(1, n), n, n, lwork);
}

cusolverStatus_t cusolverDnDsyevd(cusolverDnHandle_t handle, cusolverEigMode_t jobz,
                                  cublasFillMode_t uplo, int n, double *A, int lda, double *W,
                                  double *work, int lwork, int *info)
{
    return syev(handle, jobz, uplo, n, A, lda, W, work, lwork, info, 1);
}

cusolverStatus_t cusolverDnDgesvd_bufferSize(cusolverDnHandle_t handle, int m, int n, int *lwork)
{
    return set_workspace(handle && n >= 0 && m >= n, m, n, lwork);
}

cusolverStatus_t cusolverDnDgesvd(cusolverDnHandle_t handle, signed char jobu, signed char jobvt,
                                  int m, int n, double *A, int lda, double *S, double *U, int ldu,
                                  double *VT, int ldvt, double *work, int lwork, double *rwork,
                                  int *info)
{
    bool left = jobu == 'A' || jobu == 'S', right = jobvt == 'A' || jobvt == 'S';
    if (!handle)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (n < 0 || m < n || lda < max(1, m) || (left && ldu < max(1, m)) ||
        (right && ldvt < max(1, n)) || lwork < workspace_of(m, n) || (jobu == 'O' && jobvt == 'O'))
        return CUSOLVER_STATUS_INVALID_VALUE;
    if (!enqueue() || !reachable("gesvd's A", {A, sizeof *A, m, n, lda, 0, 1}) ||
        !reachable_array("gesvd's S", S, n) || !reachable_array("gesvd's info", info, 1) ||
        !reachable_array("gesvd's workspace", work, lwork) ||
        !reachable("gesvd's U", {U, sizeof *U, left ? m : 0, jobu == 'A' ? m : n, ldu, 0, 1}) ||
        !reachable("gesvd's VT", {VT, sizeof *VT, right ? n : 0, n, ldvt, 0, 1}))
        return CUSOLVER_STATUS_EXECUTION_FAILED;
    emulator_access access;
    *info = n == 0 ? 0
                   : decompose((char)jobu, (char)jobvt, m, n, A, lda, S, U, max(1, ldu), VT,
                               max(1, ldvt));
    return CUSOLVER_STATUS_SUCCESS;
}

enum { GESVDJ_MOST = 32 };

static bool gesvdj_sizes(cusolverDnHandle_t handle, int m, int n, int lda, int ldu, int ldv,
                         gesvdjInfo_t params, int batchSize)
{
    return handle && params && m > 0 && n > 0 && m <= GESVDJ_MOST && n <= GESVDJ_MOST && lda >= m &&
           ldu >= m && ldv >= n && batchSize > 0;
}

cusolverStatus_t cusolverDnDgesvdjBatched_bufferSize(cusolverDnHandle_t handle,
                                                     cusolverEigMode_t jobz, int m, int n,
                                                     const double *A, int lda, const double *S,
                                                     const double *U, int ldu, const double *V,
                                                     int ldv, int *lwork, gesvdjInfo_t params,
                                                     int batchSize)
{
    return set_workspace(gesvdj_sizes(handle, m, n, lda, ldu, ldv, params, batchSize), m, n, lwork);
}

cusolverStatus_t cusolverDnDgesvdjBatched(cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m,
                                          int n, double *A, int lda, double *S, double *U, int ldu,
                                          double *V, int ldv, double *work, int lwork, int *info,
                                          gesvdjInfo_t params, int batchSize)
{
    bool vectors = jobz == CUSOLVER_EIG_MODE_VECTOR;
    int few = min(m, n);
    if (!gesvdj_sizes(handle, m, n, lda, ldu, ldv, params, batchSize) || lwork < workspace_of(m, n))
        return CUSOLVER_STATUS_INVALID_VALUE;
    long long each = (long long)lda * n, left = (long long)ldu * m, right = (long long)ldv * n;
    if (!enqueue() || !reachable("gesvdj's A", {A, sizeof *A, m, n, lda, each, batchSize}) ||
        !reachable_array("gesvdj's S", S, (long long)few * batchSize) ||
        !reachable_array("gesvdj's info", info, batchSize) ||
        !reachable_array("gesvdj's workspace", work, lwork) ||
        !reachable("gesvdj's U", {U, sizeof *U, vectors ? m : 0, m, ldu, left, batchSize}) ||
        !reachable("gesvdj's V", {V, sizeof *V, vectors ? n : 0, n, ldv, right, batchSize}))
        return CUSOLVER_STATUS_EXECUTION_FAILED;
    emulator_access access;
    char job = vectors ? 'A' : 'N';
    for (int i = 0; i < batchSize; i++) {
        std::vector<double> vt((size_t)(n * n));
        info[i] = decompose(job, job, m, n, A + i * each, lda, S + (long long)few * i,
                            vectors ? U + i * left : nullptr, ldu, vt.data(), n);
        for (int row = 0; vectors && row < n; row++)
            for (int col = 0; col < n; col++)
                V[i * right + (long long)col * ldv + row] = vt[(size_t)(row * n + col)];
    }
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnSpotrfBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,
                                         float *Aarray[], int lda, int *infoArray, int batchSize)
{
    return potrf(handle, uplo, n, Aarray, lda, infoArray, batchSize);
}

cusolverStatus_t cusolverDnDpotrfBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,
                                         double *Aarray[], int lda, int *infoArray, int batchSize)
{
    return potrf(handle, uplo, n, Aarray, lda, infoArray, batchSize);
}

} /* extern "C" */
