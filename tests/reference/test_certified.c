/* SPDX-License-Identifier: BSD-3-Clause */
/* Certified references: against closed forms in long double, against exact rational arithmetic
 * (Sylvester's inertia says on which side of a rational an eigenvalue lies), against LAPACK where
 * it is accurate; and what must be refused. */
#include <criterion/criterion.h>

#include <flint/fmpq.h>
#include <flint/fmpq_mat.h>
#include <flint/fmpq_vec.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balls.h"
#include "certified.h"
#include "data.h"
#include "dense_soft.h"
#include "latms.h"
#include "linear_algebra.h"
#include "matrices.h"
#include "ratios.h"

enum { BITS = 2048 };

/* Closed forms in long double are right to this. */
static const long double allowance = 0x1p-60L;

/* Certified, around the truth, and as narrow as the eigendecomposition of m x m allows: its
 * residual and loss of orthogonality are a few u per entry, or m u in the Frobenius norm, and count
 * twice; the worst measured is 156 u at m = 12. */
static void expect_around(ref_enclosure e, int64_t m, long double truth, const char *what)
{
    long double slack = allowance * fabsl(truth);
    cr_expect(e.certified && e.lower <= truth + slack && truth - slack <= e.upper,
              "%s, m=%d: [%.17g, %.17g] (%d bits), truth %.20Lg", what, (int)m, e.lower, e.upper,
              e.bits, truth);
    cr_expect(e.upper - e.lower <= (64 + 16 * (double)m) * UNIT_ROUNDOFF * fabs(e.lower),
              "%s, m=%d: width %.3g u", what, (int)m,
              (e.upper - e.lower) / fabs(e.lower) / UNIT_ROUNDOFF);
}

static void expect_nothing(ref_enclosure e, const char *what)
{
    cr_expect(!e.certified && isnan(e.lower) && isnan(e.upper), "%s: [%g, %g]", what, e.lower,
              e.upper);
}

/* A kernel or matrix with these extreme eigenvalues and equal row sums lambda_max. */
static void expect_spectrum(const ref_exact_matrix *a, long double lowest, long double highest,
                            const char *what)
{
    ref_certified_spectrum s;
    atn_status status = ref_certify_spectrum(a, BITS, &s);
    cr_expect(status == ATN_OK, "%s: %s", what, atn_status_name(status));
    expect_around(s.lambda_min, a->m, lowest, what);
    expect_around(s.lambda_max, a->m, highest, what);
    expect_around(s.inverse_norm, a->m, 1 / lowest, what);
    expect_around(s.normalised_norm, a->m, 1 / (lowest * highest), what);
}

/* ---- Kernels of tokens ---- */

/* 1 +- exp(-s delta^2), down to where f64 sees two equal tokens. */
Test(certified, kernel_of_two_tokens)
{
    static const double deltas[] = {3, 1, 0.1, 1e-4, 1e-9, 1e-17, 1e-40};
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++)
        for (int d = 1; d <= 3; d++)
            for (int given = 0; given < 2; given++) {
                double tokens[6] = {0}, scale = given ? 0.7 : 0;
                for (int k = 0; k < d; k++)
                    tokens[d + k] = deltas[i];
                long double s = given ? (long double)scale : 1 / (2 * sqrtl(d));
                long double gap = -expm1l(-s * d * deltas[i] * (long double)deltas[i]);
                ref_exact_matrix a = {.m = 2, .d = d, .tokens = tokens, .scale = scale};
                expect_spectrum(&a, gap, 2 - gap, "two tokens");
            }
}

/* The corners of the unit cube: A is the d-fold Kronecker product of [1, a; a, 1], so that
 * lambda_min = (1 - a)^d, of multiplicity 1, next to a cluster of d. */
Test(certified, kernel_of_a_cube)
{
    static const struct {
        int d;
        double s;
    } cases[] = {{2, 1}, {3, 0.25}, {4, 0x1p-6}, {6, 0x1p-10}, {6, 3}, {7, 0.125}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int d = cases[i].d, m = 1 << d;
        double *tokens = new_numbers(m * d);
        for (int j = 0; j < m * d; j++)
            tokens[j] = j / d >> j % d & 1;
        long double gap = -expm1l(-(long double)cases[i].s);
        ref_exact_matrix a = {.m = m, .d = d, .tokens = tokens, .scale = cases[i].s};
        expect_spectrum(&a, powl(gap, d), powl(2 - gap, d), "cube");
        free(tokens);
    }
}

Test(certified, kernel_of_one_token)
{
    double token = 5;
    ref_exact_matrix a = {.m = 1, .d = 1, .tokens = &token};
    expect_spectrum(&a, 1, 1, "one token");
}

/* Unequal row sums, and the scale 1/(2 sqrt(d)): LAPACK is right to a few m u kappa here. */
Test(certified, kernel_of_random_tokens)
{
    enum { M = 40, D = 5 };
    double tokens[M * D], k[M * M], scaled[M * M], root[M], lambda[M], normalised[M];
    data_normal(3, M * D, tokens);
    ref_gaussian(M, M, D, tokens, tokens, 1 / (2 * sqrt(D)), k);
    for (int i = 0; i < M; i++) {
        root[i] = 0;
        for (int j = 0; j < M; j++)
            root[i] += k[i * M + j];
        root[i] = sqrt(root[i]);
    }
    for (int i = 0; i < M * M; i++)
        scaled[i] = k[i] * root[i / M] * root[i % M];
    cr_assert(ref_eigenvalues(M, k, lambda, NULL, NULL) == ATN_OK);
    cr_assert(ref_eigenvalues(M, scaled, normalised, NULL, NULL) == ATN_OK);
    ref_exact_matrix a = {.m = M, .d = D, .tokens = tokens};
    ref_certified_spectrum s;
    cr_assert(ref_certify_spectrum(&a, BITS, &s) == ATN_OK);
    double tolerance = 4 * M * UNIT_ROUNDOFF;
    const struct {
        ref_enclosure got;
        double want, kappa;
    } rows[] = {{s.lambda_min, lambda[M - 1], lambda[0] / lambda[M - 1]},
                {s.lambda_max, lambda[0], 1},
                {s.inverse_norm, 1 / lambda[M - 1], lambda[0] / lambda[M - 1]},
                {s.normalised_norm, 1 / normalised[M - 1], normalised[0] / normalised[M - 1]}};
    for (int i = 0; i < 4; i++) {
        double slack = tolerance * rows[i].kappa * rows[i].want;
        cr_expect(rows[i].got.certified && rows[i].got.lower <= rows[i].want + slack &&
                      rows[i].want - slack <= rows[i].got.upper && slack < 1e-9 * rows[i].want &&
                      rows[i].got.bits == REF_CERTIFY_BITS,
                  "%d: [%.17g, %.17g], f64 %.17g", i, rows[i].got.lower, rows[i].got.upper,
                  rows[i].want);
    }
    cr_expect(!(fabs(s.normalised_norm.lower * lambda[0] - s.inverse_norm.lower) <
                0.01 * s.inverse_norm.lower),
              "row sums are too equal to tell D from lambda_max");
}

/* ---- Matrices of doubles ---- */

/* Dyadic values: the closed forms hold for the entries exactly. */
Test(certified, matrices_with_closed_forms)
{
    static const struct {
        ref_matrix matrix;
        int m;
        double value;
    } cases[] = {{REF_TWO, 2, 0.25},
                 {REF_TWO, 2, 1 - 0x1p-53},
                 {REF_EQUICORRELATED, 10, 0.5},
                 {REF_EQUICORRELATED, 33, 1 - 0x1p-30},
                 {REF_EQUICORRELATED, 12, 1 - 0x1p-53},
                 {REF_BLOCKS, 9, 0.75},
                 {REF_IDENTITY, 7, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int m = cases[i].m;
        double *a = new_numbers(m * m), *lambda = new_numbers(m);
        cr_assert(ref_matrix_make(cases[i].matrix, m, cases[i].value, a, lambda) == ATN_OK);
        long double highest = 0, v = cases[i].value;
        for (int j = 0; j < m; j++)
            highest += a[j];
        ref_exact_matrix exact = {.m = m, .matrix = a};
        expect_spectrum(&exact, 1 - v, highest, ref_matrix_name(cases[i].matrix));
        free(lambda);
        free(a);
    }
}

/* The closed form of a circulant holds for exact cosines; its entries are doubles. */
Test(certified, circulants)
{
    static const int sizes[] = {5, 16, 49};
    for (int i = 0; i < 3; i++) {
        int m = sizes[i];
        double *a = new_numbers(m * m), *lambda = new_numbers(m);
        cr_assert(ref_matrix_make(REF_CIRCULANT, m, 1.5, a, lambda) == ATN_OK);
        ref_exact_matrix exact = {.m = m, .matrix = a};
        ref_certified_spectrum s;
        atn_status status = ref_certify_spectrum(&exact, BITS, &s);
        cr_expect(status == ATN_OK, "m=%d: %s", m, atn_status_name(status));
        double slack = 4 * m * UNIT_ROUNDOFF * lambda[0];
        cr_expect(
            s.lambda_max.lower <= lambda[0] + slack && lambda[0] - slack <= s.lambda_max.upper &&
                s.lambda_min.lower <= lambda[m - 1] + slack &&
                lambda[m - 1] - slack <= s.lambda_min.upper,
            "m=%d: [%.17g, %.17g] %.17g, [%.17g, %.17g] %.17g", m, s.lambda_min.lower,
            s.lambda_min.upper, lambda[m - 1], s.lambda_max.lower, s.lambda_max.upper, lambda[0]);
        free(lambda);
        free(a);
    }
}

/* How many eigenvalues of A - mu diag(w) are negative, exactly, by the signs of the pivots of
 * elimination (Sylvester); w null: all 1. */
static int negative_eigenvalues(int m, const double *a, const fmpq_t mu, const fmpq *w)
{
    fmpq_mat_t e;
    fmpq_t t;
    arf_t number;
    int negative = 0;
    fmpq_mat_init(e, m, m);
    fmpq_init(t);
    arf_init(number);
    for (int i = 0; i < m * m; i++) {
        arf_set_d(number, a[i]);
        arf_get_fmpq(fmpq_mat_entry(e, i / m, i % m), number);
    }
    for (int i = 0; i < m; i++) {
        fmpq_set(t, mu);
        if (w)
            fmpq_mul(t, t, w + i);
        fmpq_sub(fmpq_mat_entry(e, i, i), fmpq_mat_entry(e, i, i), t);
    }
    for (int k = 0; k < m; k++) {
        fmpq *pivot = fmpq_mat_entry(e, k, k);
        cr_assert(!fmpq_is_zero(pivot));
        negative += fmpq_sgn(pivot) < 0;
        for (int i = k + 1; i < m; i++) {
            fmpq_div(t, fmpq_mat_entry(e, i, k), pivot);
            for (int j = k + 1; j < m; j++)
                fmpq_submul(fmpq_mat_entry(e, i, j), t, fmpq_mat_entry(e, k, j));
        }
    }
    arf_clear(number);
    fmpq_clear(t);
    fmpq_mat_clear(e);
    return negative;
}

static void set_rational(fmpq_t to, double value, bool inverse)
{
    arf_t number;
    arf_init(number);
    arf_set_d(number, value);
    arf_get_fmpq(to, number);
    if (inverse)
        fmpq_inv(to, to);
    arf_clear(number);
}

/* Exactly: as many eigenvalues of the pencil (A, diag(w)) are below the lower end of e (of 1/e) as
 * there should be, `below`, and more below its upper end. */
static void expect_inertia(int m, const double *a, const fmpq *w, ref_enclosure e, bool inverse,
                           int below, const char *what)
{
    fmpq_t low, high;
    fmpq_init(low);
    fmpq_init(high);
    cr_assert(e.certified, "%s", what);
    set_rational(low, inverse ? e.upper : e.lower, inverse);
    set_rational(high, inverse ? e.lower : e.upper, inverse);
    int under = negative_eigenvalues(m, a, low, w), over = negative_eigenvalues(m, a, high, w);
    cr_expect(under == below && over > below, "%s, m=%d: %d and %d below, expected %d and more",
              what, m, under, over, below);
    cr_expect(e.upper - e.lower <= (64 + 16 * m) * UNIT_ROUNDOFF * e.lower, "%s: width %.3g", what,
              e.upper / e.lower - 1);
    fmpq_clear(high);
    fmpq_clear(low);
}

static void check_against_rationals(int m, const double *a, const char *what)
{
    ref_exact_matrix exact = {.m = m, .matrix = a};
    ref_certified_spectrum s;
    atn_status status = ref_certify_spectrum(&exact, BITS, &s);
    cr_assert(status == ATN_OK, "%s: %s", what, atn_status_name(status));
    expect_inertia(m, a, NULL, s.lambda_min, false, 0, what);
    expect_inertia(m, a, NULL, s.inverse_norm, true, 0, what);
    expect_inertia(m, a, NULL, s.lambda_max, false, m - 1, what);
    /* D^1/2 A D^1/2 - mu I is congruent to A - mu D^-1 */
    fmpq *w = _fmpq_vec_init(m);
    fmpq_t entry;
    fmpq_init(entry);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++) {
            set_rational(entry, a[i * m + j], false);
            fmpq_add(w + i, w + i, entry);
        }
        fmpq_inv(w + i, w + i);
    }
    expect_inertia(m, a, w, s.normalised_norm, true, 0, what);
    fmpq_clear(entry);
    _fmpq_vec_clear(w, m);
}

Test(certified, against_exact_inertia)
{
    double a[144], lambda[12], tokens[24];
    for (int m = 2; m <= 10; m += 4) {
        for (int i = 0; i < m * m; i++)
            a[i] = ldexp(round(ldexp(1.0 / (i / m + i % m + 1), 50)), -50);
        check_against_rationals(m, a, "hilbert");
    }
    for (int i = 0; i < 24; i++)
        tokens[i] = i / 2 % 4 + i % 2 * (i / 8) * 0.5;
    ref_gaussian(12, 12, 2, tokens, tokens, 0.125, a);
    check_against_rationals(12, a, "kernel");
    for (int i = 0; i < 144; i++)
        a[i] += i % 13 == 0 ? 0 : 0x1p-8 * ((i / 12 * (i % 12)) % 5);
    for (int i = 0; i < 144; i++)
        a[i] += i % 13 == 0 ? 4 : 0;
    check_against_rationals(12, a, "diagonal");
    cr_assert(latms_symmetric(12, 3, 1e15, 7, a, lambda) == ATN_OK);
    for (int i = 0; i < 12; i++) { /* entries so large that row sums are positive */
        double sum = 0;
        for (int j = 0; j < 12; j++)
            sum += a[i * 12 + j];
        if (sum <= 0)
            for (int j = 0; j < 12; j++) {
                a[i * 12 + j] = -a[i * 12 + j];
                a[j * 12 + i] = -a[j * 12 + i];
            }
    }
    ref_exact_matrix exact = {.m = 12, .matrix = a};
    ref_certified_spectrum s;
    atn_status status = ref_certify_spectrum(&exact, BITS, &s);
    cr_expect(status >= 0 && s.lambda_min.certified, "%s", atn_status_name(status));
    expect_inertia(12, a, NULL, s.lambda_min, false, 0, "latms");
    expect_inertia(12, a, NULL, s.inverse_norm, true, 0, "latms");
    expect_inertia(12, a, NULL, s.lambda_max, false, 11, "latms");
}

/* Extreme exponents: 2^+-1000 times a matrix. */
Test(certified, powers_of_two)
{
    double a[4] = {ldexp(1, 1000), ldexp(3, 998), ldexp(3, 998), ldexp(1, 1000)};
    ref_certified_spectrum s;
    ref_exact_matrix exact = {.m = 2, .matrix = a};
    cr_expect(ref_certify_spectrum(&exact, BITS, &s) == ATN_BELOW_FLOOR);
    expect_around(s.lambda_min, 2, ldexpl(1, 998), "large");
    expect_around(s.inverse_norm, 2, ldexpl(1, -998), "large");
    expect_nothing(s.normalised_norm, "2^-1998 is no double");
    for (int i = 0; i < 4; i++)
        a[i] = ldexp(a[i], -2000);
    cr_expect(ref_certify_spectrum(&exact, BITS, &s) == ATN_BELOW_FLOOR);
    expect_around(s.lambda_max, 2, ldexpl(7, -1002), "small");
    expect_around(s.inverse_norm, 2, ldexpl(1, 1002), "small");
    expect_nothing(s.normalised_norm, "2^2004 is no double");
}

/* ---- What every enclosure rests on ---- */

/* The bounds must hold however bad the approximations are: these are as bad as can be told by
 * hand. */
static void set_balls(arb_mat_t to, int m, const double *values, double radius)
{
    arb_mat_init(to, m, m);
    balls_doubles(to, values);
    for (int i = 0; i < m * m; i++)
        mag_set_d(arb_radref(arb_mat_entry(to, i / m, i % m)), radius);
}

Test(certified, top_of_bad_decompositions)
{
    static const struct {
        double s[4], radius, lambda[2], w[4];
        balls_quantity quantity;
        double low, high; /* truths to be enclosed */
    } cases[] = {
        {{2, 1, 1, 2}, 0, {2, 2}, {1, 0, 0, 1}, BALLS_SPECTRAL_NORM, 3, 3}, /* not diagonalised */
        {{1, 0, 0, 1}, 0, {1.21, 1.21}, {1.1, 0, 0, 1.1}, BALLS_SPECTRAL_NORM, 1, 1},
        {{1, 0, 0, 1}, 0.1, {1, 1}, {1, 0, 0, 1}, BALLS_SPECTRAL_NORM, 0.9, 1.1}, /* radii */
        {{-3, 0, 0, 1}, 0, {1, -3}, {0, 1, 1, 0}, BALLS_SPECTRAL_NORM, 3, 3},
        {{-3, 0, 0, 1}, 0, {1, -3}, {0, 1, 1, 0}, BALLS_LARGEST_EIGENVALUE, 1, 1},
        {{2, 0, 0, 1}, 0, {2.5, 0.5}, {1, 0, 0, 1}, BALLS_LARGEST_EIGENVALUE, 2, 2},
        {{2, 0, 0, 1}, 0, {1, 2}, {0, 1, 1, 0}, BALLS_LARGEST_EIGENVALUE, 2, 2}, /* out of order */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arb_mat_t s;
        arb_t top;
        double lower, upper;
        arb_init(top);
        set_balls(s, 2, cases[i].s, cases[i].radius);
        balls_top_from(top, cases[i].quantity, s, cases[i].lambda, cases[i].w);
        balls_bounds(top, &lower, &upper);
        cr_expect(lower <= cases[i].low && cases[i].high <= upper && upper - lower < 3,
                  "%d: %g, %g", (int)i, lower, upper);
        static const double singular[] = {1, 1, 1, 1};
        balls_top_from(top, cases[i].quantity, s, cases[i].lambda, singular);
        cr_expect(!arb_is_finite(top), "%d", (int)i);
        arb_mat_clear(s);
        arb_clear(top);
    }
}

/* X = 0.9 A^-1 and 1.1 A^-1: |R| = 0.1; X = 0: |R| = 1. */
Test(certified, bad_inverses)
{
    static const double a[] = {2, 1, 1, 2}, right[] = {1, 0, 0, 1};
    static const double factors[] = {0.9, 1.1, 0};
    for (int i = 0; i < 3; i++) {
        double third = factors[i] / 3, values[] = {2 * third, -third, -third, 2 * third};
        arb_mat_t matrix, x, r, w, c;
        arb_t norm;
        double lower, upper;
        arb_init(norm);
        set_balls(matrix, 2, a, 0);
        set_balls(x, 2, values, 0);
        set_balls(w, 2, right, 0);
        arb_mat_init(r, 2, 2);
        arb_mat_init(c, 2, 2);
        arb_mat_mul(r, x, matrix, 128);
        arb_mat_sub(r, w, r, 128);
        cr_assert(balls_inverse_norm(norm, x, r) == ATN_OK);
        balls_bounds(norm, &lower, &upper);
        bool finite = factors[i] > 0;
        cr_expect(finite ? lower <= 1 && 1 <= upper && upper < 1.4 : !arb_is_finite(norm),
                  "%g: [%g, %g]", factors[i], lower, upper);
        balls_solve(c, x, r, w, 128);
        for (int j = 0; j < 4; j++) {
            double want = j == 0 || j == 3 ? 2 / 3.0 : -1 / 3.0;
            arb_ptr entry = arb_mat_entry(c, j / 2, j % 2);
            balls_bounds(entry, &lower, &upper);
            cr_expect(finite ? lower <= want && want <= upper && upper - lower < 0.4
                             : !arb_is_finite(entry),
                      "%g, %d: [%g, %g]", factors[i], j, lower, upper);
        }
        arb_mat_clear(c), arb_mat_clear(w), arb_mat_clear(r), arb_mat_clear(x);
        arb_mat_clear(matrix);
        arb_clear(norm);
    }
}

/* D = diag(1, 4): Y_ij = X_ij / sqrt(d_i d_j), and R_ij grows by sqrt(d_j / d_i). */
Test(certified, normalised_residuals)
{
    static const double values[] = {8, 4, 4, 16};
    static const double want_x[] = {8, 2, 2, 4}, want_r[] = {8, 8, 2, 16};
    arb_mat_t x, r;
    arb_ptr root = _arb_vec_init(2), inverse_root = _arb_vec_init(2);
    set_balls(x, 2, values, 0);
    set_balls(r, 2, values, 0);
    for (int i = 0; i < 2; i++) {
        arb_set_d(root + i, i + 1);
        arb_inv(inverse_root + i, root + i, 128);
    }
    balls_normalise(x, r, root, inverse_root, 128);
    for (int i = 0; i < 4; i++) {
        double lower[2], upper[2];
        balls_bounds(arb_mat_entry(x, i / 2, i % 2), lower, upper);
        balls_bounds(arb_mat_entry(r, i / 2, i % 2), lower + 1, upper + 1);
        cr_expect(lower[0] == want_x[i] && upper[0] == want_x[i] && lower[1] == want_r[i] &&
                      upper[1] == want_r[i],
                  "%d: %g %g", i, lower[0], lower[1]);
    }
    _arb_vec_clear(inverse_root, 2);
    _arb_vec_clear(root, 2);
    arb_mat_clear(r);
    arb_mat_clear(x);
}

/* The rounding of a Cholesky factor (sqrt(3)) proves no more than it is worth. */
Test(certified, definiteness_needs_the_norm)
{
    static const double definite[] = {3, 1, 1, 3}, indefinite[] = {1, 2, 2, 1};
    arb_mat_t a, b;
    arb_t norm;
    arb_init(norm);
    set_balls(a, 2, definite, 0);
    set_balls(b, 2, indefinite, 0);
    arb_set_d(norm, 0.5);
    cr_expect(balls_positive_definite(a, norm, 128) && !balls_positive_definite(b, norm, 128));
    arb_set_d(norm, 0x1p140);
    cr_expect(!balls_positive_definite(a, norm, 128));
    arb_mat_clear(b);
    arb_mat_clear(a);
    arb_clear(norm);
}

/* Bit by bit, from where nothing is certified to where everything is: what is certified is as
 * narrow as promised and right. */
Test(certified, every_precision_keeps_its_promise)
{
    enum { D = 4, M = 1 << D };
    double tokens[M * D], values[M], lower[M], upper[M];
    int some[2] = {0}, outputs[2] = {0};
    long double gap = -expm1l(-0x1p-9L), lowest = powl(gap, D), want[M];
    for (int j = 0; j < M * D; j++)
        tokens[j] = j / D >> j % D & 1;
    for (int i = 0; i < M; i++)
        values[i] = i % 3 - 1;
    for (int i = 0; i < M; i++) {
        want[i] = 0;
        for (int j = 0; j < M; j++)
            want[i] += expl(-0x1p-9L * __builtin_popcount((unsigned)(i ^ j))) * values[j];
    }
    ref_exact_matrix a = {.m = M, .d = D, .tokens = tokens, .scale = 0x1p-9};
    ref_certified_soft soft = {M, M, D, 1, tokens, tokens, values, a.scale, false};
    for (int bits = 53; bits < 128; bits++) {
        ref_certified_spectrum s;
        ref_certify_spectrum(&a, bits, &s);
        const ref_enclosure *e = &s.inverse_norm;
        some[e->certified]++;
        cr_expect(!e->certified || (e->lower <= 1 / lowest && 1 / lowest <= e->upper &&
                                    e->upper - e->lower <= 1e-6 * e->lower),
                  "%d bits: [%.17g, %.17g]", bits, e->lower, e->upper);
        bool found = ref_certify_soft(&soft, bits, lower, upper, NULL) == ATN_OK;
        outputs[found]++;
        for (int i = 0; i < M && found; i++)
            cr_expect(lower[i] <= want[i] + 1e-17L && want[i] - 1e-17L <= upper[i] &&
                          upper[i] - lower[i] <= 1e-9 * 10,
                      "%d bits, %d: [%.17g, %.17g]", bits, i, lower[i], upper[i]);
    }
    cr_expect(some[0] > 5 && some[1] > 5 && outputs[0] > 5 && outputs[1] > 5, "%d %d, %d %d",
              some[0], some[1], outputs[0], outputs[1]);
}

/* ---- Refusals: spectra ---- */

Test(certified, indefinite_matrices)
{
    double a[] = {1, 2, 2, 1}, b[] = {1, -2, -2, 1}; /* eigenvalues 3, -1 */
    ref_exact_matrix exact = {.m = 2, .matrix = a};
    ref_certified_spectrum s;
    cr_expect(ref_certify_spectrum(&exact, 512, &s) == ATN_BELOW_FLOOR);
    expect_nothing(s.lambda_min, "lambda_min");
    expect_around(s.lambda_max, 2, 3, "lambda_max");
    expect_around(s.inverse_norm, 2, 1, "inverse_norm");
    expect_around(s.normalised_norm, 2, 1 / 3.0L, "normalised_norm");
    exact.matrix = b;
    cr_expect(ref_certify_spectrum(&exact, 512, &s) == ATN_BELOW_FLOOR);
    expect_around(s.inverse_norm, 2, 1, "inverse_norm");
    expect_nothing(s.normalised_norm, "row sums -1");
    double c[] = {-1, 0, 0, -3}; /* the largest eigenvalue is not the norm */
    exact.matrix = c;
    cr_expect(ref_certify_spectrum(&exact, 512, &s) == ATN_BELOW_FLOOR);
    expect_around(s.lambda_max, 2, -1, "lambda_max");
    expect_around(s.inverse_norm, 2, 1, "inverse_norm");
    expect_nothing(s.lambda_min, "lambda_min");
}

/* Barely indefinite: eigenvalues 2 - 2^-52 and -2^-52, where a floating Cholesky may succeed. */
Test(certified, barely_indefinite_matrices)
{
    double off = 1, on = 1 - 0x1p-52, a[] = {on, off, off, on};
    ref_exact_matrix exact = {.m = 2, .matrix = a};
    ref_certified_spectrum s;
    cr_expect(ref_certify_spectrum(&exact, 512, &s) == ATN_BELOW_FLOOR);
    expect_nothing(s.lambda_min, "lambda_min");
    expect_around(s.inverse_norm, 2, 0x1p52L, "inverse_norm");
}

Test(certified, coincident_tokens)
{
    double tokens[] = {1, 2, 3, 4, 1, 2};
    ref_exact_matrix a = {.m = 3, .d = 2, .tokens = tokens};
    ref_certified_spectrum s;
    cr_expect(ref_certify_spectrum(&a, BITS, &s) == ATN_SINGULAR);
    long double k = expl(-8 / (2 * sqrtl(2))), highest = (3 + sqrtl(1 + 8 * k * k)) / 2;
    cr_expect(s.lambda_min.certified && s.lambda_min.lower == 0 && s.lambda_min.upper == 0);
    expect_around(s.lambda_max, 3, highest, "lambda_max");
    expect_nothing(s.inverse_norm, "inverse_norm");
    expect_nothing(s.normalised_norm, "normalised_norm");
}

Test(certified, singular_matrices)
{
    double a[25];
    cr_assert(ref_matrix_make(REF_ONES, 5, 0, a, NULL) == ATN_OK);
    ref_exact_matrix exact = {.m = 5, .matrix = a};
    ref_certified_spectrum s;
    for (int turn = 0; turn < 2; turn++) {
        cr_expect(ref_certify_spectrum(&exact, 1024, &s) == ATN_BELOW_FLOOR);
        expect_nothing(s.lambda_min, "lambda_min");
        expect_nothing(s.inverse_norm, "inverse_norm");
        expect_nothing(s.normalised_norm, "normalised_norm");
        cr_expect(s.lambda_max.certified && s.inverse_norm.bits == 1024);
        a[0] = 1.5, a[1] = a[5] = 0.75; /* rows 2 to 4 still agree */
    }
}

/* The cube of 64 corners has lambda_min = 2^-66: 64 bits cannot tell, 128 can. */
Test(certified, precision_too_low)
{
    enum { D = 6, M = 1 << D };
    double tokens[M * D], output[2][M], values[M];
    for (int j = 0; j < M * D; j++)
        tokens[j] = j / D >> j % D & 1;
    for (int j = 0; j < M; j++)
        values[j] = j % 3;
    ref_exact_matrix a = {.m = M, .d = D, .tokens = tokens, .scale = 0x1p-10};
    ref_certified_soft soft = {M, M, D, 1, tokens, tokens, values, a.scale, false};
    ref_certified_spectrum s;
    int bits = 0;
    cr_expect(ref_certify_spectrum(&a, 64, &s) == ATN_BELOW_FLOOR);
    expect_nothing(s.lambda_min, "lambda_min");
    expect_nothing(s.inverse_norm, "inverse_norm");
    expect_nothing(s.normalised_norm, "normalised_norm");
    cr_expect(s.lambda_max.certified && s.inverse_norm.bits == 64);
    cr_expect(ref_certify_spectrum(&a, 255, &s) == ATN_OK && s.inverse_norm.bits == 128);
    cr_expect(ref_certify_soft(&soft, 64, output[0], output[1], &bits) == ATN_BELOW_FLOOR);
    cr_expect(isnan(output[0][0]) && isnan(output[1][M - 1]) && bits == 64);
    cr_expect(ref_certify_soft(&soft, 255, output[0], output[1], &bits) == ATN_OK && bits == 128);
}

Test(certified, spectra_of_what_is_not_finite)
{
    static const double poisons[] = {NAN, INFINITY, -INFINITY};
    for (int p = 0; p < 3; p++)
        for (int at = 0; at < 7; at++) {
            double tokens[6] = {0, 1, 2, 3, 4, 5}, scale = 0.5;
            (at < 6 ? tokens + at : &scale)[0] = poisons[p];
            ref_exact_matrix a = {.m = 3, .d = 2, .tokens = tokens, .scale = scale};
            ref_certified_spectrum s;
            cr_expect(ref_certify_spectrum(&a, BITS, &s) == ATN_NONFINITE, "at %d", at);
            expect_nothing(s.lambda_min, "lambda_min");
            expect_nothing(s.lambda_max, "lambda_max");
            expect_nothing(s.inverse_norm, "inverse_norm");
            expect_nothing(s.normalised_norm, "normalised_norm");
        }
    double matrix[] = {1, NAN, NAN, 1};
    ref_exact_matrix a = {.m = 2, .matrix = matrix};
    ref_certified_spectrum s;
    cr_expect(ref_certify_spectrum(&a, BITS, &s) == ATN_NONFINITE);
}

Test(certified, spectra_of_bad_arguments)
{
    double numbers[] = {1, 0.5, 0.25, 1};
    const struct {
        ref_exact_matrix a;
        int bits;
        atn_status want;
    } cases[] = {
        {{.m = 2, .d = 2}, BITS, ATN_ERR_NULL},
        {{.m = 0, .d = 2, .tokens = numbers}, BITS, ATN_ERR_SHAPE},
        {{.m = -1, .d = 2, .tokens = numbers}, BITS, ATN_ERR_SHAPE},
        {{.m = 2, .d = 0, .tokens = numbers}, BITS, ATN_ERR_SHAPE},
        {{.m = 2, .d = INT64_MAX, .tokens = numbers}, BITS, ATN_ERR_SHAPE},
        {{.m = REF_CERTIFY_MOST + 1, .d = 1, .tokens = numbers}, BITS, ATN_ERR_SHAPE},
        {{.m = 2, .matrix = numbers}, BITS, ATN_ERR_VALUE}, /* not symmetric */
        {{.m = 2, .d = 2, .tokens = numbers, .scale = -1}, BITS, ATN_ERR_VALUE},
        {{.m = 2, .d = 2, .tokens = numbers}, 52, ATN_ERR_VALUE},
        {{.m = 2, .d = 2, .tokens = numbers}, (1 << 16) + 1, ATN_ERR_VALUE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ref_certified_spectrum s = {.lambda_min.lower = 7};
        atn_status status = ref_certify_spectrum(&cases[i].a, cases[i].bits, &s);
        cr_expect(status == cases[i].want && s.lambda_min.lower == 7, "%d: %s", (int)i,
                  atn_status_name(status));
    }
    ref_certified_spectrum s;
    ref_exact_matrix good = {.m = 2, .d = 2, .tokens = numbers};
    cr_expect(ref_certify_spectrum(NULL, BITS, &s) == ATN_ERR_NULL);
    cr_expect(ref_certify_spectrum(&good, BITS, NULL) == ATN_ERR_NULL);
    cr_expect(ref_certify_spectrum(&good, BITS, &s) == ATN_OK);
}

/* ---- Outputs ---- */

static void expect_output(const double *lower, const double *upper, int count,
                          const long double *want, const char *what)
{
    long double largest = 0;
    for (int i = 0; i < count; i++)
        largest = fmaxl(largest, fabsl(want[i]));
    for (int i = 0; i < count; i++) {
        long double slack = 16 * allowance * largest;
        cr_expect(lower[i] <= want[i] + slack && want[i] - slack <= upper[i] &&
                      upper[i] - lower[i] <= 4 * UNIT_ROUNDOFF * largest,
                  "%s %d: [%.17g, %.17g], want %.20Lg", what, i, lower[i], upper[i], want[i]);
    }
}

/* Where every token is a landmark, S^ = A, whatever its condition (2^66 here); on a cube D is
 * (1 + a)^d I, so that SOFT++ is A/(1 + a)^d. */
Test(certified, outputs_where_every_token_is_a_landmark)
{
    enum { D = 6, M = 1 << D, DV = 3 };
    double tokens[M * D], values[M * DV], lower[M * DV], upper[M * DV];
    data_normal(5, M * DV, values);
    for (int j = 0; j < M * D; j++)
        tokens[j] = j / D >> j % D & 1;
    for (int normalise = 0; normalise < 2; normalise++) {
        long double want[M * DV], s = 0x1p-10L, d = normalise ? powl(1 + expl(-s), D) : 1;
        for (int i = 0; i < M; i++)
            for (int c = 0; c < DV; c++) {
                want[i * DV + c] = 0;
                for (int j = 0; j < M; j++)
                    want[i * DV + c] +=
                        expl(-s * __builtin_popcount((unsigned)(i ^ j))) * values[j * DV + c] / d;
            }
        ref_certified_soft p = {M, M, D, DV, tokens, tokens, values, 0x1p-10, normalise};
        cr_assert(ref_certify_soft(&p, BITS, lower, upper, NULL) == ATN_OK);
        expect_output(lower, upper, M * DV, want, normalise ? "softpp" : "soft");
    }
}

/* One landmark: S^ V = k(q, l) sum_j k(l, q_j) v_j; D = 1. */
Test(certified, outputs_of_one_landmark)
{
    double tokens[] = {0, 1, 3}, landmark = 1, values[] = {1, 2, -4}, lower[3], upper[3];
    long double want[3], s = 0.5L, inner = expl(-s) + 2 - 4 * expl(-4 * s);
    for (int i = 0; i < 3; i++)
        want[i] = expl(-s * (tokens[i] - 1) * (tokens[i] - 1)) * inner;
    for (int normalise = 0; normalise < 2; normalise++) {
        ref_certified_soft p = {3, 1, 1, 1, tokens, &landmark, values, 0, normalise};
        cr_assert(ref_certify_soft(&p, BITS, lower, upper, NULL) == ATN_OK);
        expect_output(lower, upper, 3, want, "one landmark");
    }
}

/* Unequal row sums, n > m, in f64 from the equations, with A+ well conditioned. */
Test(certified, outputs_against_the_dense_reference)
{
    enum { N = 30, M = 7, D = 3, DV = 2 };
    double tokens[N * D], landmarks[M * D], values[N * DV], want[N * DV];
    double lower[N * DV], upper[N * DV];
    data_normal(1, N * D, tokens);
    data_normal(2, M * D, landmarks);
    data_normal(3, N * DV, values);
    for (int normalise = 0; normalise < 2; normalise++) {
        ref_certified_soft p = {N, M, D, DV, tokens, landmarks, values, 0, normalise};
        cr_assert(ref_certify_soft(&p, BITS, lower, upper, NULL) == ATN_OK);
        cr_assert(ref_soft(N, M, D, DV, tokens, landmarks, values, 1 / (2 * sqrt(D)), NULL,
                           normalise, NULL, want) == ATN_OK);
        for (int i = 0; i < N * DV; i++)
            cr_expect(lower[i] <= want[i] + 1e-12 && want[i] - 1e-12 <= upper[i] &&
                          upper[i] - lower[i] <= 1e-14,
                      "%d %d: [%.17g, %.17g], f64 %.17g", normalise, i, lower[i], upper[i],
                      want[i]);
    }
}

Test(certified, outputs_that_are_refused)
{
    double q[] = {0, 1, 3}, l[] = {1, 2}, v[] = {1, 2, 3}, lower[3] = {7, 7, 7}, upper[3];
    ref_certified_soft good = {3, 2, 1, 1, q, l, v, 0, false}, p = good;
    int bits = 0;
    cr_expect(ref_certify_soft(NULL, BITS, lower, upper, &bits) == ATN_ERR_NULL);
    cr_expect(ref_certify_soft(&p, BITS, NULL, upper, &bits) == ATN_ERR_NULL);
    cr_expect(ref_certify_soft(&p, 52, lower, upper, &bits) == ATN_ERR_VALUE);
    p.n = 0;
    cr_expect(ref_certify_soft(&p, BITS, lower, upper, &bits) == ATN_ERR_SHAPE);
    p.n = INT64_MAX / 2;
    cr_expect(ref_certify_soft(&p, BITS, lower, upper, &bits) == ATN_ERR_SHAPE);
    p = good, p.scale = -1;
    cr_expect(ref_certify_soft(&p, BITS, lower, upper, &bits) == ATN_ERR_VALUE);
    p = good, p.values = NULL;
    cr_expect(ref_certify_soft(&p, BITS, lower, upper, &bits) == ATN_ERR_NULL);
    cr_expect(lower[0] == 7);
    double *places[] = {q + 2, l + 1, v};
    for (int i = 0; i < 3; i++) {
        double kept = *places[i];
        *places[i] = NAN;
        cr_expect(ref_certify_soft(&good, BITS, lower, upper, &bits) == ATN_NONFINITE, "%d", i);
        cr_expect(isnan(lower[0]) && isnan(upper[2]));
        *places[i] = kept;
    }
    l[1] = 1;
    cr_expect(ref_certify_soft(&good, BITS, lower, upper, &bits) == ATN_SINGULAR);
    cr_expect(isnan(lower[0]) && isnan(upper[2]));
}

/* ---- Newton-Raphson over the rationals ---- */

/* Whether A 1 is one number, and what X_k does to 1 from alpha = c/|A|_1^2. */
static ref_exact_newton steps_on_ones(int m, const double *a, int64_t numerator,
                                      int64_t denominator, int k, double *lower, double *upper)
{
    ref_exact_newton result;
    double ones[64];
    for (int i = 0; i < m; i++)
        ones[i] = 1;
    cr_assert(ref_exact_newton_steps(m, a, (ref_rational_start){numerator, denominator, true}, k,
                                     ones, &result, lower, upper) == ATN_OK);
    return result;
}

/* S11: alpha = 2/|A|_1^2 on equal row sums; 1.8/|A|_1^2 repairs it: there the residual along 1 is
 * -r (-0.8)^(2^k). */
Test(certified, paper_start_fails_on_equal_row_sums)
{
    static const struct {
        ref_matrix matrix;
        int m;
        double value, row_sum;
    } cases[] = {{REF_IDENTITY, 4, 0, 1},
                 {REF_ONES, 5, 0, 5},
                 {REF_TWO, 2, 0.25, 1.25},
                 {REF_EQUICORRELATED, 6, 0.125, 1.625}};
    double a[64], lower[8], upper[8];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k <= 5; k++) {
            int m = cases[i].m;
            double r = cases[i].row_sum;
            cr_assert(ref_matrix_make(cases[i].matrix, m, cases[i].value, a, NULL) == ATN_OK);
            ref_exact_newton paper = steps_on_ones(m, a, 2, 1, k, lower, upper);
            double want = k == 0 ? r : -r; /* A (2/r^2 A) A 1 - A 1 = 2 r - r */
            cr_expect(paper.equal_row_sums && paper.iterate_is_zero == (k > 0) &&
                          paper.residual_is_full == (k > 0) && !paper.residual_is_zero &&
                          lower[m - 1] == want && upper[m - 1] == want,
                      "%s k=%d: %d %d %d, [%.17g, %.17g]", ref_matrix_name(cases[i].matrix), k,
                      paper.equal_row_sums, paper.iterate_is_zero, paper.residual_is_full,
                      lower[m - 1], upper[m - 1]);
            ref_exact_newton repaired = steps_on_ones(m, a, 9, 5, k, lower, upper);
            long double e = -r * powl(-0.8L, 1 << k);
            cr_expect(!repaired.iterate_is_zero && !repaired.residual_is_full &&
                          lower[0] <= e + 1e-18L && e - 1e-18L <= upper[0] &&
                          upper[0] <= nextafter(lower[0], INFINITY),
                      "%s k=%d: [%.17g, %.17g], want %.20Lg", ref_matrix_name(cases[i].matrix), k,
                      lower[0], upper[0], e);
        }
}

Test(certified, newton_of_other_matrices)
{
    double unequal[] = {1, 0.5, 0.25, 0.5, 1, 0.5, 0.25, 0.5, 1}, lower[3], upper[3];
    ref_exact_newton result = steps_on_ones(3, unequal, 2, 1, 3, lower, upper);
    cr_expect(!result.equal_row_sums && !result.iterate_is_zero && !result.residual_is_full);
    double falling[] = {1, 0.5, 0.5, 0.75}; /* the first row is |A|_1 */
    cr_expect(!steps_on_ones(2, falling, 2, 1, 0, lower, upper).equal_row_sums);
    double negative[] = {-1, 0, 0, -1}; /* equal row sums, but not |A|_1 */
    cr_expect(!steps_on_ones(2, negative, 2, 1, 0, lower, upper).equal_row_sums);
    double mixed[] = {3, -1, -1, 3};
    cr_expect(!steps_on_ones(2, mixed, 2, 1, 0, lower, upper).equal_row_sums);

    /* a plain alpha, exact in doubles: A = I, residual -(1 - 1/2)^(2^k) v */
    double identity[] = {1, 0, 0, 1}, v[] = {1, -3}, av[] = {1, -1};
    cr_expect(ref_exact_newton_steps(2, identity, (ref_rational_start){1, 2, false}, 3, v, &result,
                                     lower, upper) == ATN_OK);
    cr_expect(lower[0] == -0x1p-8 && upper[0] == -0x1p-8 && lower[1] == 3 * 0x1p-8 &&
                  upper[1] == 3 * 0x1p-8,
              "%g %g", lower[0], lower[1]);
    cr_expect(ref_exact_newton_steps(2, identity, (ref_rational_start){3, 3, false}, 0, v, &result,
                                     NULL, NULL) == ATN_OK);
    cr_expect(result.residual_is_zero && !result.residual_is_full);
    double ones[] = {1, 1, 1, 1}; /* A v = 0: nothing to invert */
    cr_expect(ref_exact_newton_steps(2, ones, (ref_rational_start){2, 1, true}, 2, av, &result,
                                     NULL, NULL) == ATN_OK);
    cr_expect(result.iterate_is_zero && result.residual_is_zero && result.residual_is_full);
}

/* An eigenvector of a diagonal matrix shows -l (1 - alpha l^2)^(2^k) for its own l. */
Test(certified, newton_of_a_diagonal)
{
    double a[] = {2, 0, 0, 0.5}, v[] = {0, 1}, lower[2], upper[2];
    ref_exact_newton result;
    cr_assert(ref_exact_newton_steps(2, a, (ref_rational_start){1, 1, true}, 2, v, &result, lower,
                                     upper) == ATN_OK);
    long double want = -0.5L * powl(1 - 0.25L / 4, 4); /* dyadic */
    cr_expect(lower[0] == 0 && upper[0] == 0 && lower[1] == want && upper[1] == want, "%.17g %.17g",
              lower[1], upper[1]);
}

Test(certified, newton_that_is_refused)
{
    double a[] = {1, 0.5, 0.5, 1}, bad[] = {1, 0.5, 0.25, 1}, zero[4] = {0}, v[] = {1, 1};
    double lower[2], upper[2];
    ref_rational_start paper = {2, 1, true};
    ref_exact_newton result;
    cr_expect(ref_exact_newton_steps(2, bad, paper, 1, v, &result, NULL, NULL) == ATN_ERR_VALUE);
    cr_expect(ref_exact_newton_steps(2, zero, paper, 1, v, &result, NULL, NULL) == ATN_ERR_VALUE);
    cr_expect(ref_exact_newton_steps(2, a, paper, -1, v, &result, NULL, NULL) == ATN_ERR_VALUE);
    cr_expect(ref_exact_newton_steps(2, a, paper, 11, v, &result, NULL, NULL) == ATN_ERR_VALUE);
    cr_expect(ref_exact_newton_steps(2, a, (ref_rational_start){2, 0, true}, 1, v, &result, NULL,
                                     NULL) == ATN_ERR_VALUE);
    cr_expect(ref_exact_newton_steps(0, a, paper, 1, v, &result, NULL, NULL) == ATN_ERR_SHAPE);
    cr_expect(ref_exact_newton_steps(-2, a, paper, 1, v, &result, NULL, NULL) == ATN_ERR_SHAPE);
    cr_expect(ref_exact_newton_steps(2, NULL, paper, 1, v, &result, NULL, NULL) == ATN_ERR_NULL);
    cr_expect(ref_exact_newton_steps(2, a, paper, 1, NULL, &result, NULL, NULL) == ATN_ERR_NULL);
    cr_expect(ref_exact_newton_steps(2, a, paper, 1, v, NULL, NULL, NULL) == ATN_ERR_NULL);
    cr_expect(ref_exact_newton_steps(2, a, paper, 1, v, &result, lower, NULL) == ATN_ERR_NULL);
    a[0] = NAN;
    result.iterate_is_zero = true;
    cr_expect(ref_exact_newton_steps(2, a, paper, 1, v, &result, lower, upper) == ATN_NONFINITE);
    cr_expect(!result.iterate_is_zero && isnan(lower[0]) && isnan(upper[1]));
    a[0] = 1, v[1] = INFINITY;
    cr_expect(ref_exact_newton_steps(2, a, paper, 1, v, &result, NULL, NULL) == ATN_NONFINITE);
}

Test(certified, library_is_named)
{
    cr_expect(strncmp(ref_certify_library(), "FLINT ", 6) == 0);
}
