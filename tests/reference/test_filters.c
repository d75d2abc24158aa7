/* SPDX-License-Identifier: BSD-3-Clause */
/* The closed forms of the polynomial iterations against their steps on one eigenvalue. */
#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "filters.h"
#include "linear_algebra.h"

typedef struct {
    const char *name;
    ref_iteration_kind kind;
    int order, steps;
} row;

static const row rows[] = {
    {"newton-schulz", REF_POWER, 2, 24},   {"hyperpower-3", REF_POWER, 3, 15},
    {"hyperpower-7", REF_POWER, 7, 8},     {"hyperpower-9", REF_POWER, 9, 7},
    {"chebyshev-2", REF_CHEBYSHEV, 2, 20}, {"chebyshev-3", REF_CHEBYSHEV, 3, 12},
    {"chebyshev-9", REF_CHEBYSHEV, 9, 6},  {"nystromformer", REF_NYSTROMFORMER, 3, 15},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const double low = 1e-3, high = 4;

static ref_iteration make(const row *r, bool from_matrix)
{
    return (ref_iteration){.kind = r->kind,
                           .order = r->order,
                           .from_matrix = from_matrix,
                           .alpha = from_matrix ? 1.7 / (high * high) : 1.7 / high,
                           .low = low,
                           .high = high};
}

/* T_p(x) as printed in any table. */
static long double chebyshev(int p, long double x)
{
    long double z = x * x;
    return p == 2   ? 2 * z - 1
           : p == 3 ? x * (4 * z - 3)
                    : x * ((((256 * z - 576) * z + 432) * z - 120) * z + 9);
}

/* e_k by steps. *d is the half width. */
static long double step(const row *r, long double e, long double *d)
{
    long double half = *d;
    switch (r->kind) {
    case REF_POWER:
        return powl(e, r->order);
    case REF_NYSTROMFORMER: {
        long double y = 1 - e;
        return 1 - y * (13 - y * (15 - y * (7 - y))) / 4;
    }
    default:
        if (r->order == 2) { /* Pan and Schreiber: x rho (2 - mu x), rho = 1 / (1 - d^2 / 2) */
            *d = half * half / (2 - half * half);
            return 1 - (1 - e) * (1 + e) / (1 - half * half / 2);
        }
        *d = 1 / chebyshev(r->order, 1 / half);
        return chebyshev(r->order, e / half) * *d;
    }
}

/* Each step's rounding grows by |r'| <= p^2 per step: N^2 in all for Chebyshev at the ends, N
 * elsewhere; f is as far off as y = mu f. */
Test(filters, steps_on_one_eigenvalue)
{
    for (int i = 0; i < ROWS; i++)
        for (int from_matrix = 0; from_matrix < 2; from_matrix++)
            for (double mu = 1e-5; mu <= high * 1.0001; mu *= 1.1) {
                ref_iteration it = make(&rows[i], from_matrix);
                long double z = from_matrix ? (long double)mu * mu : mu;
                long double l = from_matrix ? (long double)low * low : low;
                long double h = from_matrix ? high * high : high;
                long double alpha = rows[i].kind == REF_CHEBYSHEV ? 2 / (l + h) : it.alpha;
                long double e = 1 - alpha * z, d = (h - l) / (h + l), scale = 1;
                for (int k = 0; k <= rows[i].steps && d > 1e-300L; k++) {
                    double got = ref_iteration_error(&it, k, mu);
                    double f = ref_iteration_filter(&it, k, mu);
                    long double bound = 40 * scale * LDBL_EPSILON + 2 * DBL_EPSILON * fabsl(e);
                    cr_expect(fabsl(got - e) <= bound, "%s %d mu=%g k=%d: e = %.17g, %.17Lg",
                              rows[i].name, from_matrix, mu, k, got, e);
                    cr_expect(fabsl(mu * f - (1 - e)) <= bound + 2 * DBL_EPSILON * fabsl(1 - e),
                              "%s %d mu=%g k=%d: y = %.17g, %.17Lg", rows[i].name, from_matrix, mu,
                              k, mu * f, 1 - e);
                    e = step(&rows[i], e, &d);
                    scale *= rows[i].kind == REF_CHEBYSHEV ? rows[i].order * rows[i].order
                                                           : rows[i].order * 1.1L;
                }
            }
}

/* f tends to its limit at 0, with all its digits: y does not come from 1 - e. */
Test(filters, small_eigenvalues)
{
    for (int i = 0; i < ROWS; i++)
        for (int from_matrix = 0; from_matrix < 2; from_matrix++)
            for (int k = 0; k <= 4; k++) {
                ref_iteration it = make(&rows[i], from_matrix);
                double limit = ref_iteration_filter(&it, k, 0);
                double near = ref_iteration_filter(&it, k, 1e-30);
                double half = ref_iteration_filter(&it, k, 5e-31);
                cr_expect(limit == 0 ? from_matrix && fabs(near / half - 2) < 1e-14
                                     : !from_matrix && fabs(near / limit - 1) < 1e-14,
                          "%s %d k=%d: %.17g at 0, %.17g near it", rows[i].name, from_matrix, k,
                          limit, near);
            }
}

/* So many steps that cosh N a overflows: e is 0 within the interval, and f the inverse. */
Test(filters, any_degree_within_the_interval)
{
    for (int i = 4; i < 7; i++)
        for (int from_matrix = 0; from_matrix < 2; from_matrix++)
            for (double mu = 2 * low; mu < high; mu *= 1.7) {
                ref_iteration it = make(&rows[i], from_matrix);
                double e = ref_iteration_error(&it, 40, mu), f = ref_iteration_filter(&it, 40, mu);
                cr_expect(e == 0 && fabs(mu * f - 1) <= 2 * DBL_EPSILON,
                          "%s %d mu=%g: e = %g, y = %.17g", rows[i].name, from_matrix, mu, e,
                          mu * f);
            }
}

/* On [low, high] Chebyshev stays within 1 / T_N(1 / d) and reaches it at both ends; no power of the
 * same degree does. */
Test(filters, chebyshev_is_minimax)
{
    for (int i = 4; i < 7; i++)
        for (int k = 1; k <= 3; k++) {
            ref_iteration it = make(&rows[i], false), other = it;
            other.kind = REF_POWER;
            other.alpha = 2 / (low + high);
            double end = fabs(ref_iteration_error(&it, k, low)), worst = 0;
            for (double mu = low; mu <= high; mu += 1e-3)
                worst = fmax(worst, fabs(ref_iteration_error(&it, k, mu)));
            cr_expect(worst <= end * (1 + 1e-12) &&
                          fabs(fabs(ref_iteration_error(&it, k, high)) - end) <= 1e-12 * end &&
                          fabs(ref_iteration_error(&other, k, low)) > end,
                      "%s k=%d: %g inside, %g at the end", rows[i].name, k, worst, end);
        }
}

/* Above the interval e grows, with the sign of T_N. */
Test(filters, beyond_the_interval)
{
    for (int i = 4; i < 7; i++) {
        ref_iteration it = make(&rows[i], false);
        long double width = high - low, t = (high + low - 2 * 4.5L) / width;
        double want =
            (double)(chebyshev(rows[i].order, t) / chebyshev(rows[i].order, (high + low) / width));
        double got = ref_iteration_error(&it, 1, 4.5);
        cr_expect(fabs(got - want) <= 1e-14 * fabs(want), "%s: %.17g, %.17g", rows[i].name, got,
                  want);
        cr_expect_float_eq(4.5 * ref_iteration_filter(&it, 1, 4.5), 1 - want, 1e-13 * fabs(want));
    }
}

/* An interval of one point inverts it at once; then all is a power. */
Test(filters, an_interval_without_width)
{
    ref_iteration it = make(&rows[4], false);
    it.low = it.high = 2;
    cr_expect_eq(ref_iteration_filter(&it, 3, 2), 0.5);
    cr_expect_float_eq(ref_iteration_error(&it, 3, 1), pow(0.5, 8), 1e-17);
}

Test(filters, metrics)
{
    double lambda[] = {2, 1, 0.01, 0}, worst = 0, identity = 0;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k <= 5; k++)
            for (double ridge = 0; ridge <= 0.1; ridge += 0.1) {
                ref_iteration it = make(&rows[i], k % 2);
                it.ridge = ridge;
                worst = identity = 0;
                for (int j = 0; j < 4; j++) {
                    double f = ref_iteration_filter(&it, k, lambda[j] + ridge);
                    worst = fmax(worst, fabs(lambda[j] * f * lambda[j] - lambda[j]) / 2);
                    identity = fmax(identity, fabs(1 - lambda[j] * f));
                }
                cr_expect_float_eq(ref_iteration_residual(&it, k, 4, lambda), worst, 1e-13);
                cr_expect_float_eq(ref_iteration_identity_residual(&it, k, 4, lambda), identity,
                                   1e-13);
            }
}

Test(filters, matrices)
{
    double a[4] = {1.5, 0.5, 0.5, 1.5}, x[4]; /* eigenvalues 2 and 1 */
    for (int i = 0; i < ROWS; i++) {
        ref_iteration it = make(&rows[i], false);
        double two = ref_iteration_filter(&it, 2, 2), one = ref_iteration_filter(&it, 2, 1);
        cr_assert_eq(ref_iteration_matrix(2, a, &it, 2, x), ATN_OK);
        cr_expect(fabs(x[0] - (two + one) / 2) < 1e-13 && fabs(x[1] - (two - one) / 2) < 1e-13 &&
                      x[1] == x[2] && x[0] == x[3],
                  "%s: %g %g", rows[i].name, x[0], x[1]);
    }
}

Test(filters, what_is_not_a_number)
{
    ref_iteration good = make(&rows[5], false), bad = good;
    double a = 1, x = 0;
    cr_expect(isnan(ref_iteration_filter(&good, -1, 1)) &&
              isnan(ref_iteration_error(&good, 1, NAN)));
    cr_expect_eq(ref_iteration_matrix(1, &a, &good, -1, &x), ATN_ERR_VALUE);
    cr_expect_eq(ref_iteration_matrix(1, &a, &good, 1, NULL), ATN_ERR_NULL);
    bad.low = 5; /* above high */
    cr_expect(isnan(ref_iteration_filter(&bad, 1, 1)) && isnan(ref_iteration_filter(&bad, 1, 0)));
    bad.low = 0;
    cr_expect(isnan(ref_iteration_residual(&bad, 1, 1, &a)) &&
              isnan(ref_iteration_identity_residual(&bad, 1, 1, &a)));
    bad = make(&rows[0], false);
    bad.alpha = INFINITY;
    cr_expect(isnan(ref_iteration_error(&bad, 1, 1)));
    bad.alpha = 4; /* e = -3, overflows */
    cr_expect_eq(ref_iteration_matrix(1, &a, &bad, 20, &x), ATN_NOT_CONVERGED);
    cr_expect(isnan(x));
}

/* The description of a method of the library. */
Test(filters, descriptions)
{
    double a[4] = {1, 0.5, 0.5, 1};
    ref_iteration it;
    atn_inverse_desc desc = {.method = ATN_INVERSE_NR_PAPER, .numerator = 2};
    cr_expect_not(ref_iteration_of(&desc, 2, a, &it));
    desc = (atn_inverse_desc){.method = ATN_INVERSE_HYPERPOWER_7,
                              .numerator = 1.8,
                              .ridge = 0.5,
                              .start = ATN_START_IDENTITY};
    cr_expect(ref_iteration_of(&desc, 2, a, &it) && it.kind == REF_POWER && it.order == 7 &&
              !it.from_matrix && it.alpha == 0.9 && it.ridge == 0.5);
    desc.start = ATN_START_MATRIX;
    cr_expect(ref_iteration_of(&desc, 2, a, &it) && it.from_matrix && it.alpha == 0.45);
    desc =
        (atn_inverse_desc){.method = ATN_INVERSE_CHEBYSHEV_9, .numerator = 1, .interval_low = 0.25};
    cr_expect(ref_iteration_of(&desc, 2, a, &it) && it.kind == REF_CHEBYSHEV && it.order == 9 &&
              it.low == 0.25 && it.high == 1.5);
}
