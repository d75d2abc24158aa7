/* SPDX-License-Identifier: BSD-3-Clause */
/* The closed-form filter against the iteration itself. */
#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "latms.h"
#include "linear_algebra.h"
#include "newton.h"
#include "ratios.h"

/* hi + lo = a + b exactly. */
static long double two_sum(long double a, long double b, long double *lo)
{
    long double sum = a + b, part = sum - a;
    *lo = (a - (sum - part)) + (b - part);
    return sum;
}

/* The part of x above 2^-bits |x|; the rest stays in *x. */
static double take_bits(double *x, int bits)
{
    int exponent;
    double unit, fraction = frexp(*x, &exponent);
    unit = ldexp(trunc(ldexp(fraction, bits)), exponent - bits);
    *x -= unit;
    return unit;
}

/* alpha mu^2 - c by long multiplication: mu in two halves, alpha in pieces of 10 bits, so that
 * every product fits 64 bits, summed with a running error term. */
static long double exact_offset(double alpha, double mu, double c)
{
    double low = mu, high = take_bits(&low, 26);
    const long double squares[3] = {(long double)high * high, 2 * (long double)high * low,
                                    (long double)low * low};
    long double sum = -c, error = 0, lost;
    while (alpha != 0) {
        double piece = take_bits(&alpha, 10);
        for (int i = 0; i < 3; i++) {
            sum = two_sum(sum, piece * squares[i], &lost);
            error += lost;
        }
    }
    return sum + error;
}

/* f_k(mu) from e_{k+1} = e_k^2, e_0 = 1 - alpha mu^2, carried as g = 1 - e so that nothing cancels:
 * g_{k+1} = g_k (2 - g_k). */
static long double iterated_filter(double alpha, int k, double mu)
{
    long double g = exact_offset(alpha, mu, 0);
    for (int i = 0; i < k; i++)
        g *= i == 0 ? -exact_offset(alpha, mu, 2) : 2 - g;
    return g / mu;
}

/* 4 u is what "a few u" means here. Beyond alpha mu^2 = 2 each step of the recurrence doubles the
 * relative error it has so far: its own error adds k log(1 + |g|) units of long double. */
static void check_filter(double alpha, int k, double mu)
{
    long double want = iterated_filter(alpha, k, mu);
    double got = ref_filter(alpha, k, mu);
    if (fabsl(want) > 1e308L) {
        cr_expect(isinf(got) || fabs(got) >= 1e308, "alpha=%.17g k=%d mu=%.17g got=%g", alpha, k,
                  mu, got);
        return;
    }
    long double growth = log1pl(fabsl(want * mu));
    long double bound = 4 * UNIT_ROUNDOFF + 2 * k * growth * LDBL_EPSILON;
    long double error = fabsl(got - want);
    double ratio = error == 0 ? 0 : (double)(error / (bound * fabsl(want)));
    expect_ratio(REF_ROUNDING, ratio, "alpha=%.17g k=%d mu=%.17g got=%.17g want=%.17Lg", alpha, k,
                 mu, got, want);
}

Test(newton, filter_against_the_recurrence)
{
    static const double starts[] = {1e-30, 1e-16, 1e-8,  1e-3,  0.01, 0.1, 0.3,  0.49, 0.5,  0.51,
                                    0.7,   0.9,   0.99,  1,     1.01, 1.2, 1.49, 1.5,  1.51, 1.8,
                                    1.9,   1.99,  1.999, 2.001, 2.1,  3,   10,   1e5};
    static const double mus[] = {1, 0.1, 3.7, 1e-5, 12345.6789, -0.3};
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++)
        for (size_t i = 0; i < sizeof mus / sizeof *mus; i++)
            for (int k = 0; k <= 70; k++)
                check_filter(starts[s] / (mus[i] * mus[i]), k, mus[i]);
    log_worst("newton/grid");
}

/* Next to alpha mu^2 = 1 and 2 one unit in the last place of alpha decides; 2^k u is what it
 * becomes. mu has all its 53 bits. */
Test(newton, filter_next_to_one_and_two)
{
    static const double mus[] = {1, 0.1, 1 / 3., 0.7182818284590452, 49.123456789012345};
    for (int target = 1; target <= 2; target++) {
        for (size_t i = 0; i < sizeof mus / sizeof *mus; i++) {
            double alpha = target / (mus[i] * mus[i]);
            for (int step = 0; step < 4; step++)
                alpha = nextafter(alpha, 0);
            for (int step = -4; step <= 4; step++) {
                for (int k = 0; k <= 70; k++)
                    check_filter(alpha, k, mus[i]);
                alpha = nextafter(alpha, INFINITY);
            }
        }
    }
    log_worst("newton/edges");
}

/* Values from 80-digit arithmetic: no long double of ours is in the way. */
Test(newton, filter_against_80_digits)
{
    static const struct {
        double alpha;
        int k;
        double mu, want;
    } cases[] = {
        {200.00000000000009, 59, 0.1, -1.132706593892813407313556e+270},
        {0.0008288046044569885, 1, 49.123456789012344, -3.921593433568069334950608e-18},
        {0.0008288046044569885, 56, 49.123456789012344, -2.101765702371408528146307e+1},
        {0.0008288046044569885, 60, 49.123456789012344, -3.446748588716487684076849e+46},
        {0.0008288046044569885, 62, 49.123456789012344, -1.673035616369309466909790e+191},
        {17.999999999999996, 50, 0.3333333333333333, 1.501944634202171808482083e0},
        {17.999999999999996, 53, 0.3333333333333333, 2.988402239581581760302020e0},
        {1e-12, 38, 1.0, 2.403351326317662462407835e-1},
        {1e-12, 45, 1.0, 9.999999999999994756499031e-1},
        {3.3e-17, 55, -0.7, -6.307820905762867919697440e-1},
        {2.5, 9, 1.1, -7.050524414392296662541800e+156},
        {1.9999, 12, 1.0, 3.360978344266130795123806e-1},
        {0.3, 4, 1.7, 5.882352941176414355114260e-1},
        {1e-21, 70, 0.9, 6.840886637159912192569916e-1},
        {7.7, 3, 0.37, 2.702702702503496699542023e0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = ref_filter(cases[i].alpha, cases[i].k, cases[i].mu);
        double ratio = fabs(got - cases[i].want) / (2 * UNIT_ROUNDOFF * fabs(cases[i].want));
        cr_expect(ratio <= 1, "alpha=%.17g k=%d mu=%.17g got=%.17g want=%.17g: %g u",
                  cases[i].alpha, cases[i].k, cases[i].mu, got, cases[i].want, 2 * ratio);
    }
}

/* The recurrence as the papers have it, squaring e itself, where that loses nothing. */
Test(newton, filter_against_squaring)
{
    for (double start = 0.25; start <= 1.75; start += 0.125) {
        long double e = 1 - (long double)start; /* exact */
        for (int k = 0; k <= 70; k++) {
            double got = ref_filter(start, k, 1), want = (double)(1 - e);
            cr_expect(fabs(got - want) <= 4 * UNIT_ROUNDOFF * want, "start=%g k=%d %.17g %.17g",
                      start, k, got, want);
            e *= e;
        }
    }
}

Test(newton, filter_at_exact_points)
{
    static const struct {
        double alpha;
        int k;
        double mu, want;
    } cases[] = {
        {1, 5, 0, 0},
        {1, 0, -0.0, 0},
        {0, 7, 3, 0},
        {1, 0, 1, 1},
        {1, 40, 1, 1},
        {0.25, 3, 2, 0.5}, /* alpha mu^2 = 1: exact after any number of steps */
        {2, 0, 1, 2},      /* alpha mu^2 = 2: I with alpha = 2 / |I|_1^2 ... */
        {2, 1, 1, 0},      /* ... dies in one step */
        {2, 70, 1, 0},
        {0.5, 20, -2, 0},
        {3, 1, 1, -3}, /* 1 - (1 - 3)^2 */
        {3, 2, 1, -15},
        {-1, 1, 1, -3}, /* 1 - (1 + 1)^2 */
        {0.5, 1, 1, 0.75},
        {0.5, 2, 1, 0.9375},
        {0.5, 2, -1, -0.9375},
        {3, 20, 1, -INFINITY},
        {3, 20, -1, INFINITY},
        {1, 10, 0x1p-600, 0x1p-590}, /* alpha mu^2 = 2^-1200: f = 2^k alpha mu */
        {1, 70, 0x1p-600, 0x1p-530},
        {0x1p-1000, 70, 1, 0x1p-930},
        {0x1p1000, 70, 0x1p-600, 0x1p470}, /* tiny once more, with a large alpha */
        {1e-300, 1 << 20, 1, 1},           /* 2^k beyond every range */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = ref_filter(cases[i].alpha, cases[i].k, cases[i].mu);
        cr_expect(got == cases[i].want, "alpha=%g k=%d mu=%g got=%.17g want=%.17g", cases[i].alpha,
                  cases[i].k, cases[i].mu, got, cases[i].want);
    }
    cr_expect(isnan(ref_filter(NAN, 1, 1)) && isnan(ref_filter(1, 1, NAN)) &&
              isnan(ref_filter(INFINITY, 1, 1)) && isnan(ref_filter(1, 1, INFINITY)) &&
              isnan(ref_filter(1, -1, 1)));
}

/* |l^2 f - l| / max |l| in long double, from the recurrence. */
static double iterated_residual(int m, const double *lambda, double alpha, double ridge, int k)
{
    long double worst = 0, largest = 0;
    for (int i = 0; i < m; i++) {
        long double l = lambda[i], mu = l + ridge, e = 1 - alpha * mu * mu;
        for (int j = 0; j < k; j++)
            e *= e;
        long double f = mu == 0 ? 0 : (1 - e) / mu;
        worst = fmaxl(worst, fabsl(l * l * f - l));
        largest = fmaxl(largest, fabsl(l));
    }
    return (double)(worst / largest);
}

Test(newton, residual_against_the_recurrence)
{
    static const double lambda[] = {7.5, 2.25, 1, 0.5, 0.01, 1e-4, 0};
    static const double ridges[] = {0, 0.01, 0.5};
    for (int r = 0; r < 3; r++) {
        for (int k = 0; k <= 20; k++) {
            double alpha = 1.5 / ((7.5 + ridges[r]) * (7.5 + ridges[r]));
            double want = iterated_residual(7, lambda, alpha, ridges[r], k);
            double got = ref_filter_residual(7, lambda, alpha, ridges[r], k);
            cr_expect(fabs(got - want) <= 1e-12 * want + 1e-18, "ridge=%g k=%d %.17g want %.17g",
                      ridges[r], k, got, want);
        }
    }
}

/* Where l^2 f - l itself would cancel: l = 1 alone has residual |1 - alpha|^(2^k). */
Test(newton, residual_far_below_rounding)
{
    const double one = 1, zeros[2] = {0, 0}, negative[2] = {-1, 0.5}, bad[2] = {1, NAN};
    const double overflowing[2] = {-0.9, 0};
    double got = ref_filter_residual(1, &one, 0.75, 0, 6), want = pow(0.25, 64);
    cr_expect(fabs(got - want) <= 1e-15 * want, "got=%g want=%g", got, want);
    /* with a ridge the limit is l ridge / (l + ridge), not 0 */
    got = ref_filter_residual(1, &one, 0.5, 0.25, 50);
    cr_expect(fabs(got - 0.2) <= 1e-16, "got=%.17g", got);
    cr_expect(ref_filter_residual(0, NULL, 1, 0, 3) == 0);
    cr_expect(ref_filter_residual(2, zeros, 1, 0, 3) == 0);
    /* f overflows at l = 0 (mu = 1), l^2 f does not; l = -0.9 (mu = 0.1) leaves 0.9 / 0.1 */
    got = ref_filter_residual(2, overflowing, 8, 1, 20);
    cr_expect(fabs(got - 10) <= 1e-13, "got=%.17g", got);
    cr_expect(fabs(ref_filter_residual(2, negative, 1, 0, 0) - 0.375) <= 1e-16);
    cr_expect(ref_filter_residual(1, &one, 1, -1, 4) == 1, "f_k(0) = 0 leaves -l");
    cr_expect(isnan(ref_filter_residual(2, bad, 1, 0, 3)));
    cr_expect(isnan(ref_filter_residual(1, &one, NAN, 0, 3)));
    cr_expect(isnan(ref_filter_residual(1, &one, 1, INFINITY, 3)));
    cr_expect(isnan(ref_filter_residual(1, &one, 1, 0, -1)));
    cr_expect(isinf(ref_filter_residual(1, &one, 9, 0, 20)));
}

enum { MOST = 8 };

/* X_{k+1} = 2 X_k - X_k B X_k in long double. */
static void iterate(int m, const double *a, double alpha, double ridge, int k, double *out)
{
    long double b[MOST * MOST], x[MOST * MOST], bx[MOST * MOST], next[MOST * MOST];
    for (int i = 0; i < m * m; i++) {
        b[i] = a[i] + (i % (m + 1) == 0 ? (long double)ridge : 0);
        x[i] = alpha * b[i];
    }
    for (int step = 0; step < k; step++) {
        for (int i = 0; i < m * m; i++) {
            bx[i] = 0;
            for (int c = 0; c < m; c++)
                bx[i] += b[i / m * m + c] * x[c * m + i % m];
        }
        for (int i = 0; i < m * m; i++) {
            next[i] = 2 * x[i];
            for (int c = 0; c < m; c++)
                next[i] -= x[i / m * m + c] * bx[c * m + i % m];
        }
        memcpy(x, next, sizeof next);
    }
    for (int i = 0; i < m * m; i++)
        out[i] = (double)x[i];
}

Test(newton, matrix_against_the_iteration)
{
    static const int sizes[] = {1, 2, 3, 5, 8};
    for (int s = 0; s < 5; s++) {
        for (int r = 0; r < 2; r++) {
            int m = sizes[s];
            double a[MOST * MOST], lambda[MOST], want[MOST * MOST], x[MOST * MOST];
            double ridge = r ? 0.01 : 0, condition = 100, ratio;
            cr_assert(latms_symmetric(m, 3, condition, 11, a, lambda) == ATN_OK);
            double norm = ref_norm1(m, a), alpha = 1.8 / (norm * norm);
            for (int k = 0; k <= 20; k++) {
                iterate(m, a, alpha, ridge, k, want);
                cr_expect(ref_filter_matrix(m, a, alpha, ridge, k, x) == ATN_OK);
                ref_difference d = ref_compare_f64(m, m, x, m, want, m);
                cr_expect(ref_judge_forward(&d, condition, m, UNIT_ROUNDOFF, &ratio) == REF_PASS,
                          "m=%d ridge=%g k=%d ratio=%g", m, ridge, k, ratio);
                expect_ratio(REF_FORWARD, ratio, "m=%d ridge=%g k=%d", m, ridge, k);
                for (int i = 0; i < m * m; i++)
                    cr_expect(x[i] == x[i % m * m + i / m], "m=%d k=%d (%d,%d)", m, k, i / m,
                              i % m);
            }
            cr_expect(ref_discriminates(m, m, want, 1e-3) == (m > 1), "m=%d", m);
        }
    }
    log_worst("newton/matrix");
}

/* f_k[x, y]: the mean of f_k' over an interval shorter than it resolves, else the quotient. */
static double divided_difference(double alpha, int k, double x, double y)
{
    if (fabs(x - y) > 1e-3 * x)
        return (ref_filter(alpha, k, x) - ref_filter(alpha, k, y)) / (x - y);
    double r = 1 - alpha * x * x, steps = ldexp(1, k);
    return 2 * alpha * steps * pow(r, steps - 1) - ref_filter(alpha, k, x) / x;
}

/* How much f_k[,] magnifies an error of u l_1 in an eigenvalue: the steepest slope of f_k' between
 * the smallest and the largest, relative to the largest |f_k'| of an eigenvalue. */
static double slope_condition(const double *lambda, double alpha, double ridge, int k)
{
    double steepest = 0, largest = 0, range = lambda[0] / lambda[MOST - 1];
    for (int i = 0; i <= 1000; i++) {
        double mu = lambda[MOST - 1] * pow(range, i / 1000.0) + ridge, h = 1e-4 * mu;
        double slope = divided_difference(alpha, k, mu, mu);
        double next = divided_difference(alpha, k, mu + h, mu + h);
        steepest = fmax(steepest, lambda[0] * fabs(next - slope) / h);
    }
    for (int i = 0; i < MOST; i++)
        largest =
            fmax(largest, fabs(divided_difference(alpha, k, lambda[i] + ridge, lambda[i] + ridge)));
    return 1 + steepest / largest;
}

/* dX_k along E: f_k[m_i, m_j] E_ij in A's eigenbasis. */
Test(newton, tangents_against_divided_differences)
{
    enum { SIZE = MOST * MOST, COUNT = 21 };
    double a[SIZE], e[SIZE], lambda[MOST], w[SIZE], rotated[SIZE], want[SIZE];
    static double tangents[COUNT * SIZE];
    double kappa, ratio;
    cr_assert(latms_symmetric(MOST, 3, 100, 11, a, lambda) == ATN_OK);
    cr_assert(latms_symmetric(MOST, 3, 4, 12, e, lambda) == ATN_OK);
    cr_assert(ref_eigenvalues(MOST, a, lambda, w, NULL) == ATN_OK);
    double norm = ref_norm1(MOST, a), alpha = 1.8 / (norm * norm);
    for (int r = 0; r < 2; r++) {
        double ridge = r ? 0.01 : 0;
        cr_assert(ref_newton_tangents(MOST, a, alpha, ridge, COUNT, e, tangents) == ATN_OK);
        for (int k = 0; k < COUNT; k++) {
            kappa = slope_condition(lambda, alpha, ridge, k);
            for (int i = 0; i < SIZE; i++) {
                rotated[i] = 0;
                for (int j = 0; j < SIZE; j++)
                    rotated[i] +=
                        w[j / MOST * MOST + i / MOST] * e[j] * w[j % MOST * MOST + i % MOST];
                rotated[i] *= divided_difference(alpha, k, lambda[i / MOST] + ridge,
                                                 lambda[i % MOST] + ridge);
            }
            for (int i = 0; i < SIZE; i++) {
                want[i] = 0;
                for (int j = 0; j < SIZE; j++)
                    want[i] +=
                        w[i / MOST * MOST + j / MOST] * rotated[j] * w[i % MOST * MOST + j % MOST];
            }
            ref_difference d = ref_compare_f64(MOST, MOST, tangents + k * SIZE, MOST, want, MOST);
            cr_expect(ref_judge_forward(&d, kappa, MOST, UNIT_ROUNDOFF, &ratio) == REF_PASS,
                      "ridge=%g k=%d ratio=%g", ridge, k, ratio);
            expect_ratio(REF_FORWARD, ratio, "ridge=%g k=%d", ridge, k);
        }
    }
    cr_expect(ref_newton_tangents(MOST, a, NAN, 0, 1, e, tangents) == ATN_ERR_VALUE);
    cr_expect(ref_newton_tangents(MOST, a, 1, 0, -1, e, tangents) == ATN_ERR_VALUE);
    cr_expect(ref_newton_tangents(MOST, NULL, 1, 0, 1, e, tangents) == ATN_ERR_NULL);
    log_worst("newton/tangents");
}

Test(newton, matrix_statuses)
{
    static const double identity[4] = {1, 0, 0, 1}, bad[4] = {1, 0, NAN, 1};
    static const double huge[4] = {1.7e308, 1.7e308, 1.7e308, 1.7e308};
    double x[4] = {-7, -7, -7, -7};
    cr_expect(ref_filter_matrix(0, NULL, 1, 0, 3, NULL) == ATN_OK);
    cr_expect(ref_filter_matrix(-1, identity, 1, 0, 3, x) == ATN_ERR_SHAPE);
    cr_expect(ref_filter_matrix(INT64_MAX, identity, 1, 0, 3, x) == ATN_ERR_SHAPE);
    cr_expect(ref_filter_matrix(2, NULL, 1, 0, 3, x) == ATN_ERR_NULL);
    cr_expect(ref_filter_matrix(2, identity, 1, 0, 3, NULL) == ATN_ERR_NULL);
    cr_expect(ref_filter_matrix(2, identity, 1, 0, -1, x) == ATN_ERR_VALUE);
    cr_expect(ref_filter_matrix(2, identity, NAN, 0, 1, x) == ATN_ERR_VALUE);
    cr_expect(ref_filter_matrix(2, identity, 1, INFINITY, 1, x) == ATN_ERR_VALUE);
    cr_expect(ref_filter_matrix(2, huge, 1, 0, 1, x) == ATN_ERR_LIBRARY);
    for (int i = 0; i < 4; i++)
        cr_expect(x[i] == -7, "touched on error");
    cr_expect(ref_filter_matrix(2, bad, 1, 0, 3, x) == ATN_NONFINITE && isnan(x[0]) && isnan(x[3]));
    x[0] = x[3] = 0;
    cr_expect(ref_filter_matrix(2, identity, 9, 0, 20, x) == ATN_NOT_CONVERGED && isnan(x[0]) &&
              isnan(x[3]));
    /* S11: under alpha = 2 / |A|_1^2 the identity's X is 0 from the first step on */
    cr_expect(ref_filter_matrix(2, identity, 2, 0, 20, x) == ATN_OK && x[0] == 0 && x[3] == 0);
}

Test(newton, norm1)
{
    static const double a[9] = {1, -2, 3, -4, 5, -6, 7, -8, 1.5}, bad[4] = {1, 2, NAN, 4};
    static const double last[4] = {9, NAN, 1, 1};
    cr_expect(ref_norm1(3, a) == 15, "%g: columns, not rows", ref_norm1(3, a));
    cr_expect(ref_norm1(0, NULL) == 0 && ref_norm1(1, a) == 1);
    cr_expect(isnan(ref_norm1(2, bad)) && isnan(ref_norm1(2, last)));
}
