/* SPDX-License-Identifier: BSD-3-Clause */
#include "spectral/nystrom.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include <attnum/tensor.h>

#include "common/report.h"

typedef struct {
    int64_t n, m, d, kept;
    const double *tokens, *landmarks;
    double s, farthest; /* the largest s |x - y|^2 of those whose kernel value is not 0 */
    long double *a;     /* m x m: K(L,L), overwritten by G below the diagonal */
    long double *f;     /* m x n */
    int64_t *pivots;    /* m: the landmark at each place */
} nystrom_factors;

static long double kernel(nystrom_factors *k, const double *x, const double *y)
{
    long double distance = 0;
    for (int64_t c = 0; c < k->d; c++) {
        long double step = (long double)x[c] - y[c];
        distance += step * step;
    }
    distance *= k->s;
    long double value = expl(-distance);
    if (value > 0)
        k->farthest = fmax(k->farthest, (double)distance);
    return value;
}

static const double *landmark_at(const nystrom_factors *k, int64_t place)
{
    return k->landmarks + k->pivots[place] * k->d;
}

static void swap_rows(nystrom_factors *k, int64_t p, int64_t q)
{
    int64_t m = k->m, pivot = k->pivots[p];
    for (int64_t j = 0; j < m; j++) {
        long double entry = k->a[p * m + j];
        k->a[p * m + j] = k->a[q * m + j];
        k->a[q * m + j] = entry;
    }
    for (int64_t i = 0; i < m; i++) {
        long double entry = k->a[i * m + p];
        k->a[i * m + p] = k->a[i * m + q];
        k->a[i * m + q] = entry;
    }
    k->pivots[p] = k->pivots[q];
    k->pivots[q] = pivot;
}

/* Computes column p of G below its diagonal, and updates the rest of A. */
static void eliminate(nystrom_factors *k, int64_t p)
{
    int64_t m = k->m;
    long double root = sqrtl(k->a[p * m + p]);
    k->a[p * m + p] = root;
    for (int64_t i = p + 1; i < m; i++)
        k->a[i * m + p] /= root;
    for (int64_t i = p + 1; i < m; i++)
        for (int64_t j = p + 1; j < m; j++)
            k->a[i * m + j] -= k->a[i * m + p] * k->a[j * m + p];
}

static void factorise(nystrom_factors *k)
{
    int64_t m = k->m;
    for (int64_t i = 0; i < m; i++)
        k->pivots[i] = i;
    for (int64_t i = 0; i < m * m; i++)
        k->a[i] = kernel(k, k->landmarks + i / m * k->d, k->landmarks + i % m * k->d);
    for (k->kept = 0; k->kept < m; k->kept++) {
        int64_t largest = k->kept;
        for (int64_t i = k->kept; i < m; i++)
            largest = k->a[i * m + i] > k->a[largest * m + largest] ? i : largest;
        if (!(k->a[largest * m + largest] > (double)m * atn_dtype_roundoff(ATN_F64)))
            return;
        swap_rows(k, k->kept, largest);
        eliminate(k, k->kept);
    }
}

static void solve(nystrom_factors *k)
{
    int64_t n = k->n, m = k->m;
    for (int64_t p = 0; p < k->kept; p++) {
        long double *row = k->f + p * n;
        for (int64_t i = 0; i < n; i++)
            row[i] = kernel(k, landmark_at(k, p), k->tokens + i * k->d);
        for (int64_t q = 0; q < p; q++)
            for (int64_t i = 0; i < n; i++)
                row[i] -= k->a[p * m + q] * k->f[q * n + i];
        for (int64_t i = 0; i < n; i++)
            row[i] /= k->a[p * m + p];
    }
}

/* out = |G^-1| |G|, r x r, in f64, since only a bound uses it. work: r x r. */
static void skeel(const nystrom_factors *k, double *work, double *out)
{
    int64_t r = k->kept, m = k->m;
    memset(work, 0, (size_t)(r * r) * sizeof *work);
    memset(out, 0, (size_t)(r * r) * sizeof *out);
    for (int64_t j = 0; j < r; j++)
        for (int64_t i = j; i < r; i++) { /* column j of G^-1 */
            double sum = i == j;
            for (int64_t q = j; q < i; q++)
                sum -= (double)k->a[i * m + q] * work[q * r + j];
            work[i * r + j] = sum / (double)k->a[i * m + i];
        }
    for (int64_t i = 0; i < r; i++)
        for (int64_t q = 0; q <= i; q++)
            for (int64_t j = 0; j <= q; j++)
                out[i * r + j] += fabs(work[i * r + q]) * fabs((double)k->a[q * m + j]);
}

/* |B |F||_F with B or B^T, r x r; f is |F|, r x n. */
static double product_norm(int64_t r, int64_t n, CBLAS_TRANSPOSE side, const double *b,
                           const double *f, double *work)
{
    cblas_dgemm(CblasRowMajor, side, CblasNoTrans, (int)r, (int)n, (int)r, 1, b, (int)r, f, (int)n,
                0, work, (int)n);
    return cblas_dnrm2((int)(r * n), work, 1);
}

/* A bound on the rounding error of S^. By Higham 2002, Theorems 8.5 and 10.3, with long double's u,
 * the computed G and F are the exact ones of A + dA and P + dP, |dA| <= q |G| |G^T|, |dP| <= q |G|
 * |F|; q also covers the kernels' own errors of (d + 4) s |x - y|^2 + 3 units. To first order in q
 * this changes F^T F by 4 |F|_F q |H |F||_F + q |H^T |F||_F^2, H = |G^-1| |G|. Rounding F to f64
 * and adding `kept` products there contributes (kept + 4) u |F|_F^2. */
static double bound_rounding(const nystrom_factors *k, const double *f)
{
    int64_t r = k->kept, n = k->n;
    double *h = must_allocate((size_t)(r * r) + 1, sizeof *h);
    double *work = must_allocate((size_t)(r * (r > n ? r : n)) + 1, sizeof *work);
    double *size = must_allocate((size_t)(r * n) + 1, sizeof *size);
    double units = (double)k->m + ((double)k->d + 4) * k->farthest + 3;
    double q = units * (double)LDBL_EPSILON / 2, norm = cblas_dnrm2((int)(r * n), f, 1);
    for (int64_t i = 0; i < r * n; i++)
        size[i] = fabs(f[i]);
    skeel(k, work, h);
    double along = product_norm(r, n, CblasNoTrans, h, size, work);
    double across = product_norm(r, n, CblasTrans, h, size, work);
    free(size);
    free(work);
    free(h);
    return 4 * norm * q * along + q * across * across +
           ((double)r + 4) * atn_dtype_roundoff(ATN_F64) * norm * norm;
}

static void multiply(const nystrom_factors *k, const double *f, double *s_hat)
{
    int64_t n = k->n;
    memset(s_hat, 0, (size_t)(n * n) * sizeof *s_hat);
    if (k->kept > 0)
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, (int)n, (int)k->kept, 1, f, (int)n, 0,
                    s_hat, (int)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            s_hat[j * n + i] = s_hat[i * n + j];
}

void nystrom_make(int64_t n, int64_t m, int64_t d, const double *tokens, const double *landmarks,
                  double s, double *s_hat, nystrom_approximation *result)
{
    nystrom_factors k = {.n = n, .m = m, .d = d, .tokens = tokens, .landmarks = landmarks, .s = s};
    double *f = must_allocate((size_t)m, (size_t)n * sizeof *f);
    long double shortfall = (long double)n;
    k.a = must_allocate((size_t)m, (size_t)m * sizeof *k.a);
    k.f = must_allocate((size_t)m, (size_t)n * sizeof *k.f);
    k.pivots = result->pivots;
    factorise(&k);
    solve(&k);
    for (int64_t i = 0; i < k.kept * n; i++) {
        f[i] = (double)k.f[i];
        shortfall -= k.f[i] * k.f[i];
    }
    multiply(&k, f, s_hat);
    result->kept = k.kept;
    result->shortfall = (double)shortfall;
    result->rounding = bound_rounding(&k, f);
    free(k.f);
    free(k.a);
    free(f);
}

int nystrom_judge(const char *what, const nystrom_errors *errors)
{
    const struct {
        const char *name;
        double left, right;
    } checks[] = {
        {"-lambda_min(S - S^)", -errors->lowest, errors->rounding},
        {"|S - S^| on a landmark", errors->exact, errors->rounding},
        {"the trace of the best matrix", errors->least_trace, errors->trace},
        {"the norm of the best matrix", errors->least_norm, errors->norm},
    };
    int code = EXIT_PASS;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!(checks[i].left <= checks[i].right)) {
            report_error("%s: %s is %.17g, expected at most %.17g", what, checks[i].name,
                         checks[i].left, checks[i].right);
            code = EXIT_CHECK;
        }
    return code;
}
