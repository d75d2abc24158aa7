/* SPDX-License-Identifier: BSD-3-Clause */
/* cuSOLVER's decompositions. As for LAPACK (reference/lapack.c), a row-major A is a column-major
 * A^T. */
#include <cuda_runtime.h>
#include <cusolverDn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cusolver.h"

/* What a call has on the device; the first failure sticks. */
typedef struct {
    cusolverDnHandle_t handle;
    atn_status status;
    void *owned[8];
    int count;
} session;

static void note_cuda(session *s, cudaError_t error)
{
    if (s->status == ATN_OK && error != cudaSuccess)
        s->status = error == cudaErrorMemoryAllocation ? ATN_ERR_MEMORY : ATN_ERR_DEVICE;
    if (error != cudaSuccess)
        cudaGetLastError();
}

static void note(session *s, cusolverStatus_t status)
{
    if (s->status == ATN_OK && status != CUSOLVER_STATUS_SUCCESS)
        s->status = status == CUSOLVER_STATUS_ALLOC_FAILED ? ATN_ERR_MEMORY : ATN_ERR_LIBRARY;
}

static session open_session(void)
{
    session s = {};
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        cudaGetLastError();
        s.status = ATN_ERR_DEVICE;
        return s;
    }
    note(&s, cusolverDnCreate(&s.handle));
    return s;
}

static atn_status close_session(session *s)
{
    for (int i = 0; i < s->count; i++)
        cudaFree(s->owned[i]);
    if (s->handle)
        cusolverDnDestroy(s->handle);
    return s->status;
}

static void *take(session *s, size_t bytes)
{
    void *memory = NULL;
    if (s->status != ATN_OK)
        return NULL;
    note_cuda(s, cudaMalloc(&memory, bytes > 0 ? bytes : 1));
    if (memory)
        s->owned[s->count++] = memory;
    return memory;
}

static double *upload(session *s, int64_t count, const double *from)
{
    double *memory = (double *)take(s, (size_t)count * sizeof *memory);
    if (s->status == ATN_OK)
        note_cuda(s,
                  cudaMemcpy(memory, from, (size_t)count * sizeof *memory, cudaMemcpyHostToDevice));
    return memory;
}

static void download(session *s, int64_t count, const double *from, double *to)
{
    if (s->status == ATN_OK)
        note_cuda(s, cudaMemcpy(to, from, (size_t)count * sizeof *to, cudaMemcpyDeviceToHost));
}

/* cuSOLVER's info of every matrix: 0, or it did not converge. */
static void check_infos(session *s, int64_t count, const int *device_infos)
{
    for (int64_t i = 0; i < count && s->status == ATN_OK; i++) {
        int info = 0;
        note_cuda(s, cudaMemcpy(&info, device_infos + i, sizeof info, cudaMemcpyDeviceToHost));
        if (info != 0)
            s->status = ATN_ERR_LIBRARY;
    }
}

/* ---- What the host makes of it ---- */

static double unit(int64_t n)
{
    return (double)n * 0x1p-53;
}

/* |X^T X - I|_F for the columns (stride 1 apart) or rows of X: vector i, entry e at x[i * step + e
 * * apart]. */
static double defect(int64_t vectors, int64_t length, const double *x, int64_t step, int64_t apart)
{
    double sum = 0;
    for (int64_t i = 0; i < vectors; i++)
        for (int64_t j = 0; j < vectors; j++) {
            double product = i == j ? -1 : 0;
            for (int64_t e = 0; e < length; e++)
                product += x[i * step + e * apart] * x[j * step + e * apart];
            sum += product * product;
        }
    return sqrt(sum);
}

static void keep_larger(double *into, double value)
{
    if (!(value <= *into))
        *into = value;
}

/* A = U diag(values) V^T with k values; check is made worse where this is. */
static void multiply_out(int64_t rows, int64_t cols, int64_t k, const double *a, const double *u,
                         const double *values, const double *vt, int64_t vt_row, int64_t vt_col,
                         ref_device_check *check)
{
    double difference = 0, size = 0;
    int64_t larger = rows > cols ? rows : cols;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double sum = -a[i * cols + j];
            for (int64_t l = 0; l < k; l++)
                sum += u[i * k + l] * values[l] * vt[l * vt_row + j * vt_col];
            difference += sum * sum;
            size += a[i * cols + j] * a[i * cols + j];
        }
    keep_larger(&check->residual,
                size > 0 ? sqrt(difference / size) / unit(larger) : sqrt(difference));
    keep_larger(&check->orthogonality, defect(k, rows, u, 1, k) / unit(larger));
    keep_larger(&check->orthogonality, defect(k, cols, vt, vt_row, vt_col) / unit(larger));
}

static atn_status check_sizes(int64_t count, int64_t rows, int64_t cols, const double *a)
{
    enum { MOST = 1 << 14 };
    if (count < 1 || rows < 1 || cols < 1 || rows > MOST || cols > MOST ||
        (double)count * (double)rows * (double)cols > (double)(1 << 28))
        return ATN_ERR_SHAPE;
    for (int64_t i = 0; a && i < count * rows * cols; i++)
        if (!isfinite(a[i]))
            return ATN_NONFINITE;
    return a ? ATN_OK : ATN_ERR_NULL;
}

static void transpose(int64_t rows, int64_t cols, const double *from, double *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            to[j * rows + i] = from[i * cols + j];
}

/* ---- Singular values ---- */

/* cols >= rows: A^T, column-major as our memory has it, is cols x rows, as gesvd wants: tall. Its
 * left vectors, cols x rows, are our vt; its V^T, rows x rows, column-major, is our u. */
static atn_status wide_svd(int64_t rows, int64_t cols, const double *a, double *u, double *sigma,
                           double *vt)
{
    session s = open_session();
    int m = (int)cols, n = (int)rows, size = 0;
    double *matrix = upload(&s, rows * cols, a);
    double *left = (double *)take(&s, (size_t)(rows * cols) * sizeof(double));
    double *right = (double *)take(&s, (size_t)(rows * rows) * sizeof(double));
    double *values = (double *)take(&s, (size_t)rows * sizeof(double));
    int *info = (int *)take(&s, sizeof(int));
    if (s.status == ATN_OK)
        note(&s, cusolverDnDgesvd_bufferSize(s.handle, m, n, &size));
    double *work = (double *)take(&s, (size_t)size * sizeof(double));
    if (s.status == ATN_OK)
        note(&s, cusolverDnDgesvd(s.handle, 'S', 'S', m, n, matrix, m, values, left, m, right, n,
                                  work, size, NULL, info));
    check_infos(&s, 1, info);
    download(&s, rows, values, sigma);
    download(&s, rows * cols, left, vt);
    download(&s, rows * rows, right, u);
    return close_session(&s);
}

/* The other way round: A^T = V S U^T. */
static atn_status tall_svd(int64_t rows, int64_t cols, const double *a, double *u, double *sigma,
                           double *vt)
{
    double *transposed = (double *)malloc((size_t)(3 * rows * cols) * sizeof(double));
    if (!transposed)
        return ATN_ERR_MEMORY;
    double *ut = transposed + rows * cols, *v = ut + rows * cols;
    transpose(rows, cols, a, transposed);
    atn_status status = wide_svd(cols, rows, transposed, v, sigma, ut);
    if (status == ATN_OK) {
        transpose(cols, rows, ut, u);
        transpose(cols, cols, v, vt);
    }
    free(transposed);
    return status;
}

extern "C" atn_status ref_device_svd(int64_t rows, int64_t cols, const double *a, double *u,
                                     double *sigma, double *vt, ref_device_check *check)
{
    atn_status status = check_sizes(1, rows, cols, a);
    if (status == ATN_OK)
        status = cols >= rows ? wide_svd(rows, cols, a, u, sigma, vt)
                              : tall_svd(rows, cols, a, u, sigma, vt);
    *check = ref_device_check{0, 0};
    if (status == ATN_OK)
        multiply_out(rows, cols, rows < cols ? rows : cols, a, u, sigma, vt, cols, 1, check);
    return status;
}

extern "C" atn_status ref_device_svd_batch(int64_t count, int64_t n, const double *a, double *u,
                                           double *sigma, double *vt, ref_device_check *check)
{
    atn_status checked = n > REF_DEVICE_BATCHED_SVD ? ATN_ERR_SHAPE : check_sizes(count, n, n, a);
    *check = ref_device_check{0, 0};
    if (checked != ATN_OK)
        return checked;
    session s = open_session();
    gesvdjInfo_t options = NULL;
    int m = (int)n, matrices = (int)count, size = 0;
    int64_t all = count * n * n;
    double *matrix = upload(&s, all, a);
    double *left = (double *)take(&s, (size_t)all * sizeof(double));
    double *right = (double *)take(&s, (size_t)all * sizeof(double));
    double *values = (double *)take(&s, (size_t)(count * n) * sizeof(double));
    int *infos = (int *)take(&s, (size_t)count * sizeof(int));
    if (s.status == ATN_OK)
        note(&s, cusolverDnCreateGesvdjInfo(&options));
    if (s.status == ATN_OK)
        note(&s, cusolverDnXgesvdjSetMaxSweeps(options, REF_DEVICE_SWEEPS));
    if (s.status == ATN_OK)
        note(&s, cusolverDnDgesvdjBatched_bufferSize(s.handle, CUSOLVER_EIG_MODE_VECTOR, m, m,
                                                     matrix, m, values, left, m, right, m, &size,
                                                     options, matrices));
    double *work = (double *)take(&s, (size_t)size * sizeof(double));
    if (s.status == ATN_OK)
        note(&s,
             cusolverDnDgesvdjBatched(s.handle, CUSOLVER_EIG_MODE_VECTOR, m, m, matrix, m, values,
                                      left, m, right, m, work, size, infos, options, matrices));
    check_infos(&s, count, infos);
    download(&s, count * n, values, sigma);
    download(&s, all, left, vt); /* column-major left vectors of A^T: rows of V^T */
    download(&s, all, right, u); /* column-major V of A^T, which is U^T row-major */
    if (options)
        cusolverDnDestroyGesvdjInfo(options);
    atn_status status = close_session(&s);
    double transposed[REF_DEVICE_BATCHED_SVD * REF_DEVICE_BATCHED_SVD];
    for (int64_t i = 0; i < count && status == ATN_OK; i++) {
        double *own = u + i * n * n;
        memcpy(transposed, own, (size_t)(n * n) * sizeof *own);
        transpose(n, n, transposed, own);
        multiply_out(n, n, n, a + i * n * n, own, sigma + i * n, vt + i * n * n, n, 1, check);
    }
    return status;
}

/* ---- Eigenvalues ---- */

/* From ascending values and vectors in rows to descending ones in columns. */
static void turn_around(int64_t n, double *lambda, double *w, double *scratch)
{
    memcpy(scratch, w, (size_t)(n * n) * sizeof *w);
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = 0; e < n; e++)
            w[e * n + i] = scratch[(n - 1 - i) * n + e];
    for (int64_t i = 0; i < n / 2; i++) {
        double low = lambda[i];
        lambda[i] = lambda[n - 1 - i];
        lambda[n - 1 - i] = low;
    }
}

/* The eigenvectors of all matrices take their place on the device. */
static void solve_one(session *s, int n, double *matrices, double *values, int *infos)
{
    int size = 0;
    if (s->status == ATN_OK)
        note(s, cusolverDnDsyevd_bufferSize(s->handle, CUSOLVER_EIG_MODE_VECTOR,
                                            CUBLAS_FILL_MODE_UPPER, n, matrices, n, values, &size));
    double *work = (double *)take(s, (size_t)size * sizeof(double));
    if (s->status == ATN_OK)
        note(s, cusolverDnDsyevd(s->handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n,
                                 matrices, n, values, work, size, infos));
}

static void solve_batch(session *s, int count, int n, double *matrices, double *values, int *infos)
{
    syevjInfo_t options = NULL;
    int size = 0;
    if (s->status == ATN_OK)
        note(s, cusolverDnCreateSyevjInfo(&options));
    if (s->status == ATN_OK)
        note(s, cusolverDnXsyevjSetMaxSweeps(options, REF_DEVICE_SWEEPS));
    if (s->status == ATN_OK)
        note(s, cusolverDnDsyevjBatched_bufferSize(s->handle, CUSOLVER_EIG_MODE_VECTOR,
                                                   CUBLAS_FILL_MODE_UPPER, n, matrices, n, values,
                                                   &size, options, count));
    double *work = (double *)take(s, (size_t)size * sizeof(double));
    if (s->status == ATN_OK)
        note(s, cusolverDnDsyevjBatched(s->handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER,
                                        n, matrices, n, values, work, size, infos, options, count));
    if (options)
        cusolverDnDestroySyevjInfo(options);
}

static atn_status find_eigen(bool batched, int64_t count, int64_t n, const double *a,
                             double *lambda, double *w, ref_device_check *check)
{
    atn_status status = check_sizes(count, n, n, a);
    *check = ref_device_check{0, 0};
    if (status != ATN_OK)
        return status;
    session s = open_session();
    double *matrices = upload(&s, count * n * n, a);
    double *values = (double *)take(&s, (size_t)(count * n) * sizeof(double));
    int *infos = (int *)take(&s, (size_t)count * sizeof(int));
    if (batched)
        solve_batch(&s, (int)count, (int)n, matrices, values, infos);
    else
        solve_one(&s, (int)n, matrices, values, infos);
    check_infos(&s, count, infos);
    download(&s, count * n, values, lambda);
    download(&s, count * n * n, matrices, w);
    status = close_session(&s);
    double *scratch = (double *)malloc((size_t)(n * n) * sizeof *scratch);
    for (int64_t i = 0; scratch && i < count && status == ATN_OK; i++) {
        turn_around(n, lambda + i * n, w + i * n * n, scratch);
        multiply_out(n, n, n, a + i * n * n, w + i * n * n, lambda + i * n, w + i * n * n, 1, n,
                     check);
    }
    status = scratch ? status : ATN_ERR_MEMORY;
    free(scratch);
    return status;
}

extern "C" atn_status ref_device_eigen(int64_t n, const double *a, double *lambda, double *w,
                                       ref_device_check *check)
{
    return find_eigen(false, 1, n, a, lambda, w, check);
}

extern "C" atn_status ref_device_eigen_batch(int64_t count, int64_t n, const double *a,
                                             double *lambda, double *w, ref_device_check *check)
{
    return find_eigen(true, count, n, a, lambda, w, check);
}
