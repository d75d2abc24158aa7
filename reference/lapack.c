/* SPDX-License-Identifier: BSD-3-Clause */
/* The LAPACK routes.
 *
 * A row-major A is a column-major A^T in the same memory, and A = U S V^T means A^T = V S U^T. So
 * LAPACK is called in column-major order on A^T, which avoids transposed copies: its left vectors,
 * column-major, are vt, and its V^T is u. */
#include "routes.h"

#include <stdlib.h>
#include <string.h>

#include <lapacke.h>

#include "ref_memory.h"

static atn_status from_info(lapack_int info)
{
    if (info == 0)
        return ATN_OK;
    if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
        return ATN_ERR_MEMORY;
    return ATN_ERR_LIBRARY;
}

atn_status ref_route_dgesvd(int64_t rows, int64_t cols, double *a, double *u, double *sigma,
                            double *vt)
{
    lapack_int m = (lapack_int)cols, n = (lapack_int)rows, k = m < n ? m : n;
    double *superdiagonal = ref_allocate(k);
    if (!superdiagonal)
        return ATN_ERR_MEMORY;
    char job = u ? 'S' : 'N';
    atn_status status = from_info(
        LAPACKE_dgesvd(LAPACK_COL_MAJOR, job, job, m, n, a, m, sigma, vt, m, u, k, superdiagonal));
    free(superdiagonal);
    return status;
}

atn_status ref_route_dgesdd(int64_t rows, int64_t cols, double *a, double *u, double *sigma,
                            double *vt)
{
    lapack_int m = (lapack_int)cols, n = (lapack_int)rows, k = m < n ? m : n;
    return from_info(
        LAPACKE_dgesdd(LAPACK_COL_MAJOR, u ? 'S' : 'N', m, n, a, m, sigma, vt, m, u, k));
}

/* One-sided Jacobi on A in column-major order, m x n with m >= n: left m x n, right n x n (both or
 * neither null). *nonzero counts the left vectors that were computed. */
static lapack_int jacobi(lapack_int m, lapack_int n, double *left, double *sigma, double *right,
                         int64_t *nonzero)
{
    double stat[6] = {0}, unused = 0;
    lapack_int info =
        LAPACKE_dgesvj(LAPACK_COL_MAJOR, 'G', right ? 'U' : 'N', right ? 'V' : 'N', m, n, left, m,
                       sigma, 0, right ? right : &unused, right ? n : 1, stat);
    /* If the values do not fit the range of double, LAPACK returns them divided by stat[0]. */
    for (lapack_int i = 0; i < n; i++)
        sigma[i] *= stat[0];
    *nonzero = (int64_t)stat[1];
    return info;
}

/* The same after a QR factorisation with pivoting, which saves sweeps. a is overwritten. */
static lapack_int preconditioned_jacobi(lapack_int m, lapack_int n, double *a, double *sigma,
                                        double *left, double *right, int64_t *nonzero)
{
    double stat[7] = {0}, unused[2] = {0};
    lapack_int counts[3] = {0};
    lapack_int info = LAPACKE_dgejsv(LAPACK_COL_MAJOR, 'C', right ? 'U' : 'N', right ? 'V' : 'N',
                                     'N', 'N', 'N', m, n, a, m, sigma, right ? left : unused, m,
                                     right ? right : unused + 1, n, stat, counts);
    for (lapack_int i = 0; i < n; i++)
        sigma[i] *= stat[0] / stat[1];
    *nonzero = n;
    return info;
}

/* Tries the first, then the second if that does not converge within its 30 sweeps, as for matrices
 * of low rank, whose columns that should vanish never become orthogonal. left holds A on entry. */
static atn_status robust_jacobi(lapack_int m, lapack_int n, double *left, double *sigma,
                                double *right, int64_t *nonzero)
{
    double *a = ref_allocate((int64_t)m * n);
    if (!a)
        return ATN_ERR_MEMORY;
    memcpy(a, left, (size_t)m * (size_t)n * sizeof *a);
    lapack_int info = jacobi(m, n, left, sigma, right, nonzero);
    if (info > 0)
        info = preconditioned_jacobi(m, n, a, sigma, left, right, nonzero);
    free(a);
    return from_info(info);
}

/* dgesvj requires rows >= cols: it gets A^T as it is in memory if A is wide, and A, transposed
 * explicitly, if A is tall. */
atn_status ref_route_dgesvj(int64_t rows, int64_t cols, double *a, double *u, double *sigma,
                            double *vt)
{
    bool tall = rows > cols;
    int64_t m = tall ? rows : cols, n = tall ? cols : rows, computed = 0;
    double *left = ref_allocate(m * n), *vectors = ref_allocate(m * n);
    double *right = u ? ref_allocate(n * n) : NULL;
    atn_status status = ATN_ERR_MEMORY;
    if (left && vectors && (right || !u)) {
        ref_fill(u ? n * n : 0, 0, right); /* LAPACKE checks it for NaN as if it were an input */
        if (tall)
            ref_transpose(rows, cols, a, left);
        else
            memcpy(left, a, (size_t)(m * n) * sizeof *a);
        status = robust_jacobi((lapack_int)m, (lapack_int)n, left, sigma, right, &computed);
    }
    if (status == ATN_OK && u) {
        ref_transpose(n, m, left, vectors); /* column-major to row-major */
        ref_complete_basis(m, n, computed, vectors);
        if (tall) {
            memcpy(u, vectors, (size_t)(m * n) * sizeof *u);
            memcpy(vt, right, (size_t)(n * n) * sizeof *vt);
        } else {
            ref_transpose(m, n, vectors, vt);
            ref_transpose(n, n, right, u);
        }
    }
    free(right);
    free(vectors);
    free(left);
    return status;
}

/* Reorders LAPACK's ascending values and column-major vectors z: descending, row-major. */
static void reverse_order(int64_t n, double *lambda, const double *z, double *w)
{
    for (int64_t i = 0; i < n / 2; i++) {
        double low = lambda[i];
        lambda[i] = lambda[n - 1 - i];
        lambda[n - 1 - i] = low;
    }
    for (int64_t i = 0; w && i < n; i++)
        for (int64_t j = 0; j < n; j++)
            w[j * n + i] = z[(n - 1 - i) * n + j];
}

atn_status ref_route_dsyevd(int64_t n, double *a, double *lambda, double *w)
{
    lapack_int order = (lapack_int)n;
    atn_status status =
        from_info(LAPACKE_dsyevd(LAPACK_COL_MAJOR, w ? 'V' : 'N', 'L', order, a, order, lambda));
    if (status == ATN_OK)
        reverse_order(n, lambda, a, w);
    return status;
}

atn_status ref_route_dsyevr(int64_t n, double *a, double *lambda, double *w)
{
    lapack_int order = (lapack_int)n, found = 0;
    double *z = ref_allocate(w ? n * n : 1);
    lapack_int *support = ref_take((size_t)(2 * n), sizeof *support);
    atn_status status = ATN_ERR_MEMORY;
    if (z && support) {
        status =
            from_info(LAPACKE_dsyevr(LAPACK_COL_MAJOR, w ? 'V' : 'N', 'A', 'L', order, a, order, 0,
                                     0, 0, 0, 0, &found, lambda, z, w ? order : 1, support));
        if (status == ATN_OK && found != order)
            status = ATN_ERR_LIBRARY;
    }
    if (status == ATN_OK)
        reverse_order(n, lambda, z, w);
    free(support);
    free(z);
    return status;
}
