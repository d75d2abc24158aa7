/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/plain.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

static void product(atn_dtype dtype, bool transpose_a, bool transpose_b, int64_t rows, int64_t cols,
                    int64_t inner, double alpha, const void *a, const void *b, double beta, void *c)
{
    CBLAS_TRANSPOSE ta = transpose_a ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = transpose_b ? CblasTrans : CblasNoTrans;
    int m = (int)rows, n = (int)cols, k = (int)inner;
    int lda = transpose_a ? m : k, ldb = transpose_b ? k : n;
    if (dtype == ATN_F32)
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, (float)alpha, a, lda, b, ldb, (float)beta, c,
                    n);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, n);
}

void plain_product(atn_dtype dtype, bool transpose_a, bool transpose_b, int64_t rows, int64_t cols,
                   int64_t inner, const void *a, const void *b, void *c)
{
    product(dtype, transpose_a, transpose_b, rows, cols, inner, 1, a, b, 0, c);
}

/* ---- Newton-Raphson ---- */

/* The largest row sum, which is |A|_1 because A is symmetric. */
static double norm1(atn_dtype dtype, int64_t m, const void *a)
{
    double largest = 0;
    for (int64_t i = 0; i < m; i++) {
        double sum = dtype == ATN_F32 ? (double)cblas_sasum((int)m, (const float *)a + i * m, 1)
                                      : cblas_dasum((int)m, (const double *)a + i * m, 1);
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

static void scale(atn_dtype dtype, int64_t count, double factor, void *x)
{
    if (dtype == ATN_F32)
        cblas_sscal((int)count, (float)factor, x, 1);
    else
        cblas_dscal((int)count, factor, x, 1);
}

void plain_newton(atn_dtype dtype, int64_t m, int64_t cols, const void *a, const void *w,
                  void *work, void *y)
{
    size_t bytes = (size_t)(m * m) * atn_dtype_size(dtype);
    char *x = work, *next = x + bytes, *ax = next + bytes;
    double norm = norm1(dtype, m, a);
    memcpy(x, a, bytes);
    scale(dtype, m * m, 2 / (norm * norm), x);
    for (int step = 0; step < PLAIN_STEPS; step++) {
        char *swap = x;
        product(dtype, false, false, m, m, m, 1, a, x, 0, ax);
        memcpy(next, x, bytes);
        product(dtype, false, false, m, m, m, -1, x, ax, 2, next);
        x = next;
        next = swap;
    }
    product(dtype, false, false, m, cols, m, 1, x, w, 0, y);
}

/* ---- Exponentials ---- */

static void exponentials_f32(int64_t count, float *x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = expf(-x[i]);
}

static void exponentials_f64(int64_t count, double *x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = exp(-x[i]);
}

void plain_exponentials(atn_dtype dtype, int64_t count, void *x)
{
    if (dtype == ATN_F32)
        exponentials_f32(count, x);
    else
        exponentials_f64(count, x);
}

/* ---- Kernels ---- */

static void norms_f32(int64_t n, int64_t d, const float *x, float *norms)
{
    for (int64_t i = 0; i < n; i++)
        norms[i] = cblas_sdot((int)d, x + i * d, 1, x + i * d, 1);
}

static void norms_f64(int64_t n, int64_t d, const double *x, double *norms)
{
    for (int64_t i = 0; i < n; i++)
        norms[i] = cblas_ddot((int)d, x + i * d, 1, x + i * d, 1);
}

static void finish_f32(float s, int64_t n, int64_t m, const float *rows, const float *cols,
                       float *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            out[i * m + j] = expf(-s * (rows[i] + cols[j] - 2 * out[i * m + j]));
}

static void finish_f64(double s, int64_t n, int64_t m, const double *rows, const double *cols,
                       double *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            out[i * m + j] = exp(-s * (rows[i] + cols[j] - 2 * out[i * m + j]));
}

void plain_kernel(atn_dtype dtype, double s, int64_t n, int64_t m, int64_t d, const void *x,
                  const void *l, void *work, void *out)
{
    product(dtype, false, true, n, m, d, 1, x, l, 0, out);
    if (dtype == ATN_F32) {
        norms_f32(n, d, x, work);
        norms_f32(m, d, l, (float *)work + n);
        finish_f32((float)s, n, m, work, (float *)work + n, out);
    } else {
        norms_f64(n, d, x, work);
        norms_f64(m, d, l, (double *)work + n);
        finish_f64(s, n, m, work, (double *)work + n, out);
    }
}
