/* SPDX-License-Identifier: BSD-3-Clause */
/* e_k and y = 1 - e_k in long double, each by a form without cancellation: f = y / mu needs a small
 * y to full relative accuracy, the metrics a small e. */
#include "filters.h"

#include <math.h>
#include <stdlib.h>

#include "linear_algebra.h"
#include "newton.h"
#include "routes.h"

bool ref_iteration_of(const atn_inverse_desc *desc, int64_t m, const double *a,
                      ref_iteration *iteration)
{
    static const struct {
        ref_iteration_kind kind;
        int order;
    } kinds[ATN_INVERSE_COUNT] = {
        [ATN_INVERSE_NEWTON_SCHULZ] = {REF_POWER, 2},
        [ATN_INVERSE_HYPERPOWER_3] = {REF_POWER, 3},
        [ATN_INVERSE_HYPERPOWER_7] = {REF_POWER, 7},
        [ATN_INVERSE_HYPERPOWER_9] = {REF_POWER, 9},
        [ATN_INVERSE_NYSTROMFORMER] = {REF_NYSTROMFORMER, 3},
        [ATN_INVERSE_CHEBYSHEV_2] = {REF_CHEBYSHEV, 2},
        [ATN_INVERSE_CHEBYSHEV_3] = {REF_CHEBYSHEV, 3},
        [ATN_INVERSE_CHEBYSHEV_9] = {REF_CHEBYSHEV, 9},
    };
    *iteration = (ref_iteration){
        .kind = kinds[desc->method].kind,
        .order = kinds[desc->method].order,
        .from_matrix = desc->start == ATN_START_MATRIX,
        .alpha = desc->alpha,
        .low = desc->interval_low,
        .high = desc->interval_high,
        .ridge = desc->ridge,
    };
    double norm = ref_norm1(m, a) + desc->ridge; /* the diagonal is not negative */
    if (iteration->alpha == 0)
        iteration->alpha = desc->numerator / norm / (iteration->from_matrix ? norm : 1);
    if (iteration->high == 0)
        iteration->high = norm;
    return iteration->order > 0;
}

typedef struct {
    long double e, y;
} mapped;

static long double degree(const ref_iteration *iteration, int k)
{
    return powl(iteration->order, k);
}

/* e^n, where n is a whole number and z = 1 - e. */
static mapped power(long double z, long double n)
{
    long double log_e = z <= 0.5L ? log1pl(-z) : logl(fabsl(1 - z));
    bool negative = z > 1 && fmodl(n, 2) == 1;
    long double e = expl(n * log_e);
    return negative ? (mapped){-e, 1 + e} : (mapped){e, -expm1l(n * log_e)};
}

/* acosh(1 + x) */
static long double acosh1p(long double x)
{
    return log1pl(x + sqrtl(x * (2 + x)));
}

/* T_n(t) / T_n(s) for s = (high + low) / (high - low), t = s - 2 mu / (high - low), with mu, low
 * and high already squared from alpha B. With s = cosh a: t beyond 1 is cosh b, and
 *
 *   s - t = 2 sinh((a + b) / 2) sinh((a - b) / 2),   cosh na - cosh nb likewise;
 *
 * t within is cos theta, and cosh na - cos n theta = 2 sinh(na / 2)^2 + 2 sin(n theta / 2)^2. */
static mapped chebyshev(long double low, long double high, long double mu, long double n)
{
    long double width = high - low, a = acosh1p(2 * low / width);
    if (mu < low) {
        long double b = acosh1p(2 * (low - mu) / width), sum = (a + b) / 2;
        long double half = asinhl(mu / width / sinhl(sum));
        long double scale = 1 + expl(-2 * n * a);
        return (mapped){expl(-2 * n * half) * (1 + expl(-2 * n * b)) / scale,
                        expm1l(-2 * n * sum) * expm1l(-2 * n * half) / scale};
    }
    if (mu > high) {
        long double b = acosh1p(2 * (mu - high) / width);
        long double e = expl(n * (b - a)) * (1 + expl(-2 * n * b)) / (1 + expl(-2 * n * a));
        e = fmodl(n, 2) == 1 ? -e : e;
        return (mapped){e, 1 - e};
    }
    long double theta = 2 * asinl(fminl(1, sqrtl((mu - low) / width)));
    long double e = cosl(n * theta) / coshl(n * a);
    long double growth = sinhl(n * a / 2), turn = sinl(n * theta / 2);
    if (n * a > 100)
        return (mapped){e, 1 - e};
    return (mapped){e, 2 * (growth * growth + turn * turn) / coshl(n * a)};
}

/* y_{k+1} = y (13 - y (15 - y (7 - y))) / 4 */
static mapped nystromformer(long double y, int k)
{
    long double e = 1 - y;
    for (int i = 0; i < k; i++) {
        y = y * (13 - y * (15 - y * (7 - y))) / 4;
        e = e * e * e * (3 + e) / 4;
    }
    return (mapped){e, y};
}

static mapped map(const ref_iteration *it, int k, double value)
{
    long double mu = it->from_matrix ? (long double)value * value : value;
    long double low = it->from_matrix ? (long double)it->low * it->low : it->low;
    long double high = it->from_matrix ? (long double)it->high * it->high : it->high;
    const mapped unknown = {NAN, NAN};
    if (!isfinite(value) || !isfinite(it->ridge) || k < 0)
        return unknown;
    if (it->kind == REF_CHEBYSHEV) {
        if (!(it->low > 0 && it->low <= it->high && isfinite(it->high)))
            return unknown;
        return low == high ? power(mu / low, degree(it, k))
                           : chebyshev(low, high, mu, degree(it, k));
    }
    if (!isfinite(it->alpha))
        return unknown;
    return it->kind == REF_POWER ? power(it->alpha * mu, degree(it, k))
                                 : nystromformer(it->alpha * mu, k);
}

/* dy / dmu at 0. */
static double slope_at_0(const ref_iteration *it, int k)
{
    if (isnan(map(it, k, 0).y) || it->from_matrix)
        return isnan(map(it, k, 0).y) ? NAN : 0;
    if (it->kind == REF_NYSTROMFORMER)
        return (double)(it->alpha * powl(3.25L, k));
    long double n = degree(it, k), width = (long double)it->high - it->low;
    if (it->kind == REF_POWER || width == 0)
        return (double)(n * (it->kind == REF_POWER ? it->alpha : 1 / (long double)it->low));
    long double a = acosh1p(2 * it->low / width);
    return (double)(2 / width * n * tanhl(n * a) /
                    sinhl(a)); /* T_n'(cosh a) = n sinh na / sinh a */
}

double ref_iteration_error(const ref_iteration *iteration, int k, double mu)
{
    return (double)map(iteration, k, mu).e;
}

double ref_iteration_filter(const ref_iteration *iteration, int k, double mu)
{
    return mu == 0 ? slope_at_0(iteration, k) : (double)(map(iteration, k, mu).y / mu);
}

/* 1 - l f(l + ridge) = (ridge + l e) / (l + ridge) */
static long double identity_residual(const ref_iteration *it, int k, double l)
{
    double mu = l + it->ridge;
    mapped at = map(it, k, mu);
    if (isnan(at.e))
        return NAN;
    return l == 0 || mu == 0 ? 1 : fabsl((it->ridge + l * at.e) / mu);
}

/* The larger of two; NaN if either is. */
static double greater(double a, double b)
{
    return isnan(a) || a >= b ? a : b;
}

double ref_iteration_residual(const ref_iteration *iteration, int k, int64_t m,
                              const double *lambda)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < m; i++) {
        long double residual = identity_residual(iteration, k, lambda[i]);
        worst = greater(worst, (double)(fabsl(lambda[i]) * residual));
        largest = greater(largest, fabs(lambda[i]));
    }
    return largest == 0 ? 0 : worst / largest;
}

double ref_iteration_identity_residual(const ref_iteration *iteration, int k, int64_t m,
                                       const double *lambda)
{
    double worst = 0;
    for (int64_t i = 0; i < m; i++)
        worst = greater(worst, (double)identity_residual(iteration, k, lambda[i]));
    return worst;
}

atn_status ref_iteration_matrix(int64_t m, const double *a, const ref_iteration *iteration, int k,
                                double *x)
{
    atn_status status = ref_check_matrix(m, m, a);
    if (status != ATN_OK)
        return status;
    if (m > 0 && !x)
        return ATN_ERR_NULL;
    if (isnan(map(iteration, k, 1).y))
        return ATN_ERR_VALUE;
    double *w = ref_allocate(m * m), *lambda = ref_allocate(m);
    status = w && lambda ? ref_eigen(REF_DSYEVD, m, a, lambda, w) : ATN_ERR_MEMORY;
    for (int64_t i = 0; status == ATN_OK && i < m; i++) {
        lambda[i] = ref_iteration_filter(iteration, k, lambda[i] + iteration->ridge);
        if (!isfinite(lambda[i]))
            status = ATN_NOT_CONVERGED;
    }
    if (status == ATN_OK)
        status = ref_spectral_matrix(m, w, lambda, x);
    else if (status > 0)
        ref_fill(m * m, NAN, x);
    free(lambda);
    free(w);
    return status;
}
