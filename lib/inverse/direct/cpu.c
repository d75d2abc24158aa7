/* SPDX-License-Identifier: BSD-3-Clause */
/* The exact inverses: eigendecomposition, Cholesky, pivoted Cholesky. A symmetric matrix is the
 * same in row-major and column-major order, so LAPACK's calls need no transposes. */
#include <string.h>

#include "cpu/blocks.h"
#include "inverse/direct/cpu_pivoted.h"
#include "inverse/trace.h"

/* Up to this m LAPACK's pivoted Cholesky, which calls BLAS on short vectors, is hardly faster than
 * our loops (bench/NOTES.md). */
enum { OWN_PIVOTED_MOST = 400 };

static void record(const inverse_problem *p)
{
    p->info->stop = ATN_STOP_DIRECT;
    core_trace_record(p->trace, REAL_DTYPE, p->m, p->a, p->x, p->trace_work);
}

static double relative_cut(const inverse_problem *p)
{
    return p->desc->rcond >= 0 ? p->desc->rcond : (double)p->m * atn_dtype_roundoff(REAL_DTYPE);
}

/* work: W (m x m), W / lambda (m x m), lambda (m), LAPACK's 1 + 6 m + 2 m^2. */
atn_status R(eig)(const inverse_problem *p)
{
    int64_t m = p->m, size = m * m;
    real *w = p->work, *scaled = w + size, *lambda = scaled + size, *lapack_work = lambda + m;
    memcpy(w, p->a, (size_t)size * sizeof *w);
    lapack_int code = lapack_syevd(LAPACK_COL_MAJOR, 'V', 'L', (lapack_int)m, w, (lapack_int)m,
                                   lambda, lapack_work, (lapack_int)(1 + 6 * m + 2 * size), p->ints,
                                   (lapack_int)(3 + 5 * m));
    if (code != 0)
        return ATN_ERR_LIBRARY;
    real largest = real_abs(lambda[0]) > real_abs(lambda[m - 1]) ? real_abs(lambda[0])
                                                                 : real_abs(lambda[m - 1]);
    real cut = (real)relative_cut(p) * largest;
    for (int64_t i = 0; i < m; i++) { /* eigenvector i is row i of w */
        bool kept = real_abs(lambda[i]) > cut;
        p->info->rank += kept;
        for (int64_t j = 0; j < m; j++)
            scaled[i * m + j] = kept ? w[i * m + j] / lambda[i] : 0;
    }
    real_gemm(CblasTrans, CblasNoTrans, m, m, m, w, m, scaled, m, 0, p->x, m);
    R(symmetrise)(m, p->x);
    R(store)(p->desc->storage, m, m, p->x, m);
    p->info->residual = R(first_penrose)(m, p->a, p->x, w, scaled);
    record(p);
    return ATN_OK;
}

/* One attempt: work = L^T, L the Cholesky factor of A + jitter I. */
static bool factorise(const inverse_problem *p, real jitter)
{
    int64_t m = p->m, stride = R(cholesky_stride)(m);
    for (int64_t i = 0; i < m; i++) {
        real *row = p->work + i * stride;
        memcpy(row, p->a + i * m, (size_t)m * sizeof *row);
        memset(row + m, 0, (size_t)(whole_vectors(m) - m) * sizeof *row);
        row[i] += jitter;
    }
    return R(cholesky_factor)(&R(simd), m, p->work);
}

/* work: cholesky_work, of which the residual takes three m x m matrices. It is that of A + jitter I
 * if the caller gave the jitter, and of A otherwise. */
atn_status R(cholesky)(const inverse_problem *p)
{
    int64_t m = p->m;
    double norm = R(norm1)(m, p->a), u = atn_dtype_roundoff(REAL_DTYPE);
    bool given = p->desc->jitter >= 0;
    double jitter = (given ? p->desc->jitter : u * sqrt((double)m)) * norm;
    bool done = factorise(p, (real)jitter);
    while (!done && !given && jitter > 0 && jitter < norm) {
        jitter *= 10;
        done = factorise(p, (real)jitter);
    }
    p->info->jitter = jitter;
    if (!done) {
        memset(p->x, 0, (size_t)(m * m) * sizeof(real));
        p->info->residual = 1;
        record(p);
        return ATN_SINGULAR;
    }
    int64_t stride = R(cholesky_stride)(m);
    R(factor_inverse)(&R(simd), m, p->work, 1, stride, m, p->x, p->work + m * stride);
    R(mirror_lower)(m, p->x, m);
    R(store)(p->desc->storage, m, m, p->x, m);
    real *judged = p->work + 2 * m * m;
    memcpy(judged, p->a, (size_t)(m * m) * sizeof *judged);
    for (int64_t i = 0; given && i < m; i++)
        judged[i * m + i] += (real)jitter;
    p->info->residual = R(first_penrose)(m, judged, p->x, p->work, p->work + m * m);
    record(p);
    return ATN_OK;
}

/* From the factor L (lower triangular, r x r, row stride m) in `factor`: sets x to the inverse of
 * the pivot block, in the pivots' rows and columns. */
static void scatter_inverse(const inverse_problem *p, real *factor, real *work)
{
    int64_t m = p->m, r = p->info->rank;
    memset(p->x, 0, (size_t)(m * m) * sizeof(real));
    R(factor_inverse)(&R(simd), r, factor, m, 1, m, factor, work);
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j <= i; j++)
            p->x[p->pivots[i] * m + p->pivots[j]] = p->x[p->pivots[j] * m + p->pivots[i]] =
                factor[i * m + j];
    R(store)(p->desc->storage, m, m, p->x, m);
}

int64_t R(cholesky_work)(int64_t m)
{
    int64_t scratch = 2 * m * m + 2 * m, own = R(pivoted_factor_work)(m);
    int64_t unpivoted = m * R(cholesky_stride)(m) + own;
    int64_t pivoted = whole_vectors(m * m) + (own > scratch ? own : scratch);
    return pivoted > unpivoted ? pivoted : unpivoted;
}

/* LAPACK's pivots and rank, or -1. work: 2 m. */
static int64_t lapack_factor(const inverse_problem *p, real cut, real *factor, real *work)
{
    lapack_int m = (lapack_int)p->m, rank = 0;
    memcpy(factor, p->a, (size_t)(p->m * p->m) * sizeof(real));
    if (lapack_pstrf(LAPACK_COL_MAJOR, 'U', m, factor, m, p->pivots, &rank, cut, work) < 0)
        return -1;
    for (int64_t i = 0; i < m; i++)
        p->pivots[i]--; /* LAPACK counts from 1 */
    return rank;
}

/* Rank-revealing Cholesky: A[piv, piv] = L L^T up to the cut. work: the factor (m x m), then
 * scratch: two matrices and LAPACK's 2 m, or the work of pivoted_factor. */
atn_status R(pivoted_cholesky)(const inverse_problem *p)
{
    int64_t m = p->m, size = m * m, rank = 0;
    real *factor = p->keep_factor ? p->x : p->work;
    real *scratch = p->work + whole_vectors(size), largest = 0;
    for (int64_t i = 0; i < m; i++)
        largest = p->a[i * m + i] > largest ? p->a[i * m + i] : largest;
    real cut = (real)relative_cut(p) * largest;
    if (m <= OWN_PIVOTED_MOST || !(largest > 0))
        rank = R(pivoted_factor)(&R(simd), m, p->a, cut, p->pivots, factor, scratch);
    else
        rank = lapack_factor(p, cut, factor, scratch);
    if (rank < 0)
        return ATN_ERR_LIBRARY;
    p->info->rank = rank;
    R(store)(p->desc->storage, m, m, factor, m);
    if (p->keep_factor) {
        p->info->stop = ATN_STOP_DIRECT;
        return rank > 0 ? ATN_OK : ATN_SINGULAR;
    }
    scatter_inverse(p, factor, scratch);
    p->info->residual = R(first_penrose)(m, p->a, p->x, scratch, scratch + size);
    record(p);
    return rank > 0 ? ATN_OK : ATN_SINGULAR;
}
