/* SPDX-License-Identifier: BSD-3-Clause */
/* f_k(mu) = (1 - r^N) / mu with r = 1 - alpha mu^2, N = 2^k.
 *
 * For k >= 1, r^N = exp(N log |r|), and N up to 2^70 multiplies every error of log |r|. So the
 * distance of alpha mu^2 from 0 or 2, where |r| is near 1, is summed without rounding error from
 * exact products; log1p and expm1 of it are in long double. */
#include "newton.h"

#include <math.h>
#include <stdlib.h>

#include "linear_algebra.h"
#define NUM_REAL
#include "operators/dense.h"
#include "ref_memory.h"
#include "routes.h"

enum { TERMS = 5 };

/* The sum of the terms to the accuracy of long double, whatever cancels: TERMS - 1 passes of
 * error-free two-term sums leave terms that no longer overlap. */
static long double sum_exactly(double term[TERMS])
{
    for (int pass = 1; pass < TERMS; pass++) {
        for (int i = 1; i < TERMS; i++) {
            double low = term[i - 1], high = term[i], sum = low + high;
            double part = sum - low;
            term[i - 1] = (low - (sum - part)) + (high - part);
            term[i] = sum;
        }
    }
    long double total = 0;
    for (int i = 0; i < TERMS; i++)
        total += term[i];
    return total;
}

/* alpha mu^2 - c. The mantissas' triple product is four doubles exactly (fma gives the rounding
 * error of a product); the exponents are restored at the end, so nothing underflows in between. */
static long double start_offset(double alpha, double mu, double c)
{
    int alpha_exponent, mu_exponent;
    double x = frexp(alpha, &alpha_exponent), y = frexp(mu, &mu_exponent);
    int exponent = alpha_exponent + 2 * mu_exponent;
    double square = y * y, square_error = fma(y, y, -square);
    double high = x * square, middle = x * square_error;
    double term[TERMS] = {fma(x, square_error, -middle), middle, fma(x, square, -high),
                          -ldexp(c, -exponent), high};
    return ldexpl(sum_exactly(term), exponent);
}

/* log |r|, r = 1 - alpha mu^2, to the accuracy of long double, also for |r| near 0 and 1. */
static long double log_abs_r(double alpha, double mu)
{
    long double start = start_offset(alpha, mu, 0);
    if (start <= 0.5L)
        return log1pl(-start);
    if (start >= 1.5L)
        return log1pl(start_offset(alpha, mu, 2));
    return logl(fabsl(start_offset(alpha, mu, 1)));
}

/* r^N - 1. */
static long double power_minus_1(double alpha, int k, double mu)
{
    if (k == 0)
        return -start_offset(alpha, mu, 0);
    long double log_r = log_abs_r(alpha, mu);
    return log_r == 0 ? 0 : expm1l(ldexpl(log_r, k));
}

/* r^N itself; not from r^N - 1 where it is small. */
static long double power(double alpha, int k, double mu)
{
    if (k == 0)
        return -start_offset(alpha, mu, 1);
    long double log_r = log_abs_r(alpha, mu);
    return log_r == 0 ? 1 : expl(ldexpl(log_r, k));
}

double ref_filter(double alpha, int k, double mu)
{
    if (!isfinite(alpha) || !isfinite(mu) || k < 0)
        return NAN;
    return mu == 0 ? 0 : (double)(-power_minus_1(alpha, k, mu) / mu);
}

/* l^2 f_k(mu) - l with mu = l + ridge is -(l / mu) (ridge + l r^N): no cancellation. */
static double eigenvalue_residual(double l, double alpha, double ridge, int k)
{
    double mu = l + ridge;
    if (l == 0 || mu == 0) /* f_k(0) = 0 */
        return fabs(l);
    return (double)fabsl(l / (long double)mu * (ridge + l * power(alpha, k, mu)));
}

double ref_filter_residual(int64_t m, const double *lambda, double alpha, double ridge, int k)
{
    double worst = 0, largest = 0;
    if (!isfinite(alpha) || !isfinite(ridge) || k < 0)
        return NAN;
    for (int64_t i = 0; i < m; i++) {
        if (!isfinite(lambda[i]))
            return NAN;
        double residual = eigenvalue_residual(lambda[i], alpha, ridge, k);
        if (!(residual <= worst))
            worst = residual;
        largest = fmax(largest, fabs(lambda[i]));
    }
    return largest > 0 ? worst / largest : 0;
}

atn_status ref_filter_matrix(int64_t m, const double *a, double alpha, double ridge, int k,
                             double *x)
{
    atn_status status = ref_check_matrix(m, m, a);
    if (status != ATN_OK)
        return status;
    if (m > 0 && !x)
        return ATN_ERR_NULL;
    if (k < 0 || !isfinite(alpha) || !isfinite(ridge))
        return ATN_ERR_VALUE;
    double *w = ref_allocate(m * m), *lambda = ref_allocate(m);
    status = w && lambda ? ref_eigen(REF_DSYEVD, m, a, lambda, w) : ATN_ERR_MEMORY;
    if (status == ATN_OK) {
        for (int64_t i = 0; i < m; i++)
            lambda[i] = ref_filter(alpha, k, lambda[i] + ridge);
        if (ref_all_finite(m, lambda))
            status = ref_spectral_matrix(m, w, lambda, x);
        else
            status = ATN_NOT_CONVERGED;
    }
    if (status > 0)
        ref_fill(m * m, NAN, x);
    free(lambda);
    free(w);
    return status;
}

/* The m x m matrices of ref_newton_tangents. */
typedef struct {
    long double *b, *e, *x, *d; /* d = dX */
    long double *bx, *xbx, *dbx, *ex, *xex;
} tangent_work;

/* x and d, both symmetric, from one step to the next. */
static void tangent_step(int64_t m, const tangent_work *w)
{
    ref_multiply_real(m, m, m, w->b, w->x, w->bx);
    ref_multiply_real(m, m, m, w->x, w->bx, w->xbx);
    ref_multiply_real(m, m, m, w->d, w->bx, w->dbx);
    ref_multiply_real(m, m, m, w->e, w->x, w->ex);
    ref_multiply_real(m, m, m, w->x, w->ex, w->xex);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i; j++) {
            int64_t at = i * m + j, other = j * m + i;
            long double xex = (w->xex[at] + w->xex[other]) / 2;
            w->d[at] = w->d[other] = 2 * w->d[at] - (w->dbx[at] + w->dbx[other]) - xex;
            w->x[at] = w->x[other] = 2 * w->x[at] - (w->xbx[at] + w->xbx[other]) / 2;
        }
}

atn_status ref_newton_tangents(int64_t m, const double *a, double alpha, double ridge, int count,
                               const double *e, double *tangents)
{
    enum { MATRICES = 9 };
    atn_status status = ref_check_matrix(m, m, a);
    if (status == ATN_OK)
        status = ref_check_matrix(m, m, e);
    if (status != ATN_OK)
        return status;
    if (m > 0 && count > 0 && !tangents)
        return ATN_ERR_NULL;
    if (count < 0 || !isfinite(alpha) || !isfinite(ridge))
        return ATN_ERR_VALUE;
    int64_t size = m * m;
    long double *memory = ref_take((size_t)size * MATRICES + 1, sizeof *memory);
    if (!memory)
        return ATN_ERR_MEMORY;
    tangent_work w = {
        .b = memory,
        .e = memory + size,
        .x = memory + 2 * size,
        .d = memory + 3 * size,
        .bx = memory + 4 * size,
        .xbx = memory + 5 * size,
        .dbx = memory + 6 * size,
        .ex = memory + 7 * size,
        .xex = memory + 8 * size,
    };
    for (int64_t i = 0; i < size; i++) {
        w.b[i] = a[i] + (i % (m + 1) == 0 ? (long double)ridge : 0);
        w.e[i] = ((long double)e[i] + e[i % m * m + i / m]) / 2;
        w.x[i] = alpha * w.b[i];
        w.d[i] = alpha * w.e[i];
    }
    for (int k = 0; k < count; k++) {
        for (int64_t i = 0; i < size; i++)
            tangents[k * size + i] = (double)w.d[i];
        if (k + 1 < count)
            tangent_step(m, &w);
    }
    free(memory);
    return ATN_OK;
}

double ref_norm1(int64_t m, const double *a)
{
    double largest = 0;
    for (int64_t j = 0; j < m; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += fabs(a[i * m + j]);
        if (!((double)sum <= largest))
            largest = (double)sum;
        if (isnan(largest))
            break;
    }
    return largest;
}
