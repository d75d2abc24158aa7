/* SPDX-License-Identifier: BSD-3-Clause */
/* The answers made from two routes: singular values, eigenvalues, pseudo-inverse, rank, condition.
 */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "latms.h"
#include "linear_algebra.h"
#include "matrices.h"
#include "ratios.h"

static void transpose(int rows, int cols, const double *from, double *to)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            to[j * rows + i] = from[i * cols + j];
}

/* |got - want|_1 / (n u scale). */
static double difference_ratio(int rows, int cols, const double *got, const double *want, int n,
                               double scale)
{
    ref_difference d = ref_compare_f64(rows, cols, got, cols, want, cols);
    return d.norm1 == 0 ? 0 : d.norm1 / scale / (n * UNIT_ROUNDOFF);
}

/* The four Penrose conditions. Forming X from its factors costs n u |X|, and A X A passes that on
 * magnified by |A|^2; so the errors are compared with |A|^2 |X|, |A| |X|^2 and |A| |X|. */
static void check_penrose(int rows, int cols, const double *a, const double *x, const char *what)
{
    int n = rows > cols ? rows : cols;
    double *ax = new_numbers(rows * rows), *xa = new_numbers(cols * cols);
    double *square = new_numbers(n * n), *axa = new_numbers(rows * cols);
    double *xax = new_numbers(rows * cols);
    double norm_a = column_norm(rows, cols, a), norm_x = column_norm(cols, rows, x);
    product(rows, cols, rows, a, x, ax);
    product(cols, rows, cols, x, a, xa);
    product(rows, rows, cols, ax, a, axa);
    product(cols, cols, rows, xa, x, xax);
    double kappa = norm_a * norm_x;
    expect_ratio(REF_BACKWARD, difference_ratio(rows, cols, axa, a, n, norm_a * kappa),
                 "AXA=A %s %dx%d", what, rows, cols);
    expect_ratio(REF_BACKWARD, difference_ratio(cols, rows, xax, x, n, norm_x * kappa),
                 "XAX=X %s %dx%d", what, rows, cols);
    transpose(rows, rows, ax, square);
    expect_ratio(REF_BACKWARD, difference_ratio(rows, rows, square, ax, n, kappa),
                 "AX=(AX)^T %s %dx%d", what, rows, cols);
    transpose(cols, cols, xa, square);
    expect_ratio(REF_BACKWARD, difference_ratio(cols, cols, square, xa, n, kappa),
                 "XA=(XA)^T %s %dx%d", what, rows, cols);
    free(xax);
    free(axa);
    free(square);
    free(xa);
    free(ax);
}

/* A = B C of the given rank and condition about 100: B rows x rank, C rank x cols. */
static void make_of_rank(int rows, int cols, int rank, double *a)
{
    double *b = new_numbers(rows * rank), *c = new_numbers(rank * cols), *s = new_numbers(rank);
    if (rank > 0) {
        cr_assert(latms(rows, rank, 3, 10, 5, b, s) == ATN_OK);
        cr_assert(latms(rank, cols, 3, 10, 6, c, s) == ATN_OK);
    }
    product(rows, rank, cols, b, c, a);
    free(s);
    free(c);
    free(b);
}

static const struct {
    int rows, cols, rank;
} ranks[] = {{1, 1, 0},    {1, 1, 1}, {3, 3, 0}, {3, 3, 1},    {3, 3, 2},
             {3, 3, 3},    {5, 3, 2}, {3, 5, 2}, {10, 10, 4},  {50, 10, 7},
             {10, 50, 10}, {1, 7, 1}, {7, 1, 1}, {64, 64, 63}, {50, 50, 50}};

Test(linear_algebra, pinv_of_every_rank)
{
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        int rows = ranks[i].rows, cols = ranks[i].cols;
        double *a = new_numbers(rows * cols), *x = new_numbers(cols * rows), apart = -1;
        int64_t rank = -1;
        make_of_rank(rows, cols, ranks[i].rank, a);
        /* not the default cut: the small singular values are what rounding made of 0 */
        atn_status status = ref_pinv(rows, cols, a, 1e-10, x, &rank, &apart);
        cr_expect(status == ATN_OK && rank == ranks[i].rank, "%dx%d rank=%d want %d %s", rows, cols,
                  (int)rank, ranks[i].rank, atn_status_name(status));
        cr_expect(apart >= 0 && apart < 10, "%dx%d rank %d disagreement=%g", rows, cols,
                  ranks[i].rank, apart);
        check_penrose(rows, cols, a, x, "rank deficient");
        free(x);
        free(a);
    }
    log_worst("linear_algebra/rank");
}

Test(linear_algebra, pinv_of_prescribed_spectra)
{
    static const int shapes[][2] = {{2, 2}, {5, 5}, {10, 10}, {50, 50}, {10, 3}, {3, 10}, {50, 20}};
    for (int s = 0; s < 7; s++) {
        for (int mode = -5; mode <= 5; mode++) {
            for (double condition = 1e2; condition < 1e13 && mode != 0; condition *= 1e5) {
                int rows = shapes[s][0], cols = shapes[s][1], k = rows < cols ? rows : cols;
                double *a = new_numbers(rows * cols), *x = new_numbers(cols * rows);
                double *sigma = new_numbers(k), apart;
                char what[48];
                snprintf(what, sizeof what, "mode=%d cond=%.0e", mode, condition);
                cr_assert(latms(rows, cols, mode, condition, 4, a, sigma) == ATN_OK);
                atn_status status = ref_pinv(rows, cols, a, -1, x, NULL, &apart);
                cr_expect(status == ATN_OK && apart < 10, "%dx%d %s %s disagreement=%g", rows, cols,
                          what, atn_status_name(status), apart);
                expect_ratio(REF_SPECTRUM, apart, "pinv routes %dx%d %s", rows, cols, what);
                check_penrose(rows, cols, a, x, what);
                free(sigma);
                free(x);
                free(a);
            }
        }
    }
    log_worst("linear_algebra/pinv");
}

/* max |got - want| / (n u kappa |A+|_2), as ref_pinv measures its own routes. */
static double pinv_ratio(int m, const double *got, const double *want, double kappa, double norm)
{
    ref_difference d = ref_compare_f64(m, m, got, m, want, m);
    return d.max_abs / (m * UNIT_ROUNDOFF * kappa * norm);
}

/* A+ worked out by hand: entries on and off the diagonal; for equicorrelated
 * (I - c / (1 + (m - 1) c) J) / (1 - c), for ones J / m^2. */
Test(linear_algebra, pinv_closed_forms)
{
    enum { M = 7 };
    static const struct {
        const char *name;
        ref_matrix matrix;
        double value, diagonal, other, kappa, norm;
        int rank;
    } cases[] = {
        {"identity", REF_IDENTITY, 0, 1, 0, 1, 1, M},
        {"ones", REF_ONES, 0, 1. / 49, 1. / 49, 1, 1. / 7, 1},
        {"equicorrelated 0.5", REF_EQUICORRELATED, 0.5, 1.75, -0.25, 8, 2, M},
        {"equicorrelated -0.125", REF_EQUICORRELATED, -0.125, 4. / 3, 4. / 9, 4.5, 4, M},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double a[M * M], want[M * M], x[M * M], projector[M * M], apart;
        int64_t rank;
        cr_assert(ref_matrix_make(cases[i].matrix, M, cases[i].value, a, NULL) == ATN_OK);
        for (int j = 0; j < M * M; j++)
            want[j] = j % (M + 1) == 0 ? cases[i].diagonal : cases[i].other;
        cr_expect(ref_pinv(M, M, a, -1, x, &rank, &apart) == ATN_OK && rank == cases[i].rank &&
                      apart < 10,
                  "%s rank=%d disagreement=%g", cases[i].name, (int)rank, apart);
        expect_ratio(REF_SPECTRUM, pinv_ratio(M, x, want, cases[i].kappa, cases[i].norm), "pinv %s",
                     cases[i].name);
        cr_expect(ref_symmetric_pinv(M, a, -1, x, projector, &rank, &apart) == ATN_OK &&
                      rank == cases[i].rank && apart < 10,
                  "%s rank=%d disagreement=%g", cases[i].name, (int)rank, apart);
        expect_ratio(REF_SPECTRUM, pinv_ratio(M, x, want, cases[i].kappa, cases[i].norm),
                     "symmetric pinv %s", cases[i].name);
        /* Pi = I, or J / m for the ones */
        for (int j = 0; j < M * M; j++)
            want[j] = cases[i].rank == M ? j % (M + 1) == 0 : 1. / M;
        expect_ratio(REF_SPECTRUM, pinv_ratio(M, projector, want, 1, 1), "projector %s",
                     cases[i].name);
    }
    log_worst("linear_algebra/closed");
}

/* Two equal tokens: A = (1 1; 1 1) + I on the rest, A+ = (1/4 1/4; 1/4 1/4) + I. */
Test(linear_algebra, pinv_of_exact_duplicates)
{
    double a[16], x[16], projector[16];
    int64_t rank;
    cr_assert(ref_matrix_make(REF_DUPLICATES, 4, 0, a, NULL) == ATN_OK);
    cr_expect(ref_symmetric_pinv(4, a, -1, x, projector, &rank, NULL) == ATN_OK && rank == 3);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            double want = i < 2 && j < 2 ? 0.25 : i == j;
            cr_expect(fabs(x[i * 4 + j] - want) <= 1e-15, "(%d,%d) %g want %g", i, j, x[i * 4 + j],
                      want);
            want = i < 2 && j < 2 ? 0.5 : i == j;
            cr_expect(fabs(projector[i * 4 + j] - want) <= 1e-15, "Pi (%d,%d) %g", i, j,
                      projector[i * 4 + j]);
        }
}

/* Indefinite, singular, symmetric: the two pseudo-inverses agree and A+ is symmetric to the bit. */
Test(linear_algebra, symmetric_pinv)
{
    static const int sizes[] = {1, 2, 3, 10, 50};
    for (int s = 0; s < 5; s++) {
        int n = sizes[s];
        double *a = new_numbers(n * n), *w = new_numbers(n * n), *lambda = new_numbers(n);
        double *x = new_numbers(n * n), *y = new_numbers(n * n), *pi = new_numbers(n * n), apart;
        int64_t rank;
        cr_assert(latms_symmetric(n, 4, 100, 9, a, lambda) == ATN_OK);
        cr_assert(ref_eigen(REF_DSYEVD, n, a, lambda, w) == ATN_OK);
        for (int i = 0; i < n * n; i++) { /* drop the last mode, turn every other one around */
            long double sum = 0;
            for (int k = 0; k < n - 1; k++)
                sum +=
                    (k % 2 ? -1 : 1) * (long double)w[i / n * n + k] * lambda[k] * w[i % n * n + k];
            a[i] = (double)sum;
        }
        /* not the default cut: the last eigenvalue is what rounding made of 0 */
        atn_status status = ref_symmetric_pinv(n, a, 1e-10, x, pi, &rank, &apart);
        cr_expect(status == ATN_OK && rank == n - 1 && apart < 10,
                  "n=%d %s rank=%d disagreement=%g", n, atn_status_name(status), (int)rank, apart);
        transpose(n, n, x, y);
        expect_ratio(REF_EXACT, memcmp(x, y, sizeof *x * (size_t)(n * n)) != 0, "X^T n=%d", n);
        transpose(n, n, pi, y);
        expect_ratio(REF_EXACT, memcmp(pi, y, sizeof *x * (size_t)(n * n)) != 0, "Pi^T n=%d", n);
        check_penrose(n, n, a, x, "symmetric");
        product(n, n, n, a, x, y);
        expect_ratio(REF_BACKWARD,
                     difference_ratio(n, n, y, pi, n,
                                      column_norm(n, n, a) * (column_norm(n, n, x) + 1e-300)),
                     "AX=Pi n=%d", n);
        cr_expect(ref_pinv(n, n, a, 1e-10, y, NULL, NULL) == ATN_OK);
        expect_ratio(REF_SPECTRUM, n > 1 ? pinv_ratio(n, x, y, 100, 100) : fabs(x[0] - y[0]),
                     "pinv against symmetric n=%d", n);
        free(pi);
        free(y);
        free(x);
        free(lambda);
        free(w);
        free(a);
    }
    log_worst("linear_algebra/symmetric");
}

/* rcond decides what is kept: sigma = 1, 0.1, 0.01. */
Test(linear_algebra, rcond)
{
    static const double a[9] = {0, 0.1, 0, 0.01, 0, 0, 0, 0, 1};
    static const double diagonal[9] = {0.1, 0, 0, 0, 0.01, 0, 0, 0, 1};
    static const struct {
        double rcond;
        int rank;
    } cases[] = {{0, 3}, {0.005, 3}, {0.05, 2}, {0.5, 1}, {1, 0}, {2, 0}, {-1, 3}, {NAN, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double x[9];
        int64_t rank = -1;
        cr_expect(ref_pinv(3, 3, a, cases[i].rcond, x, &rank, NULL) == ATN_OK &&
                      rank == cases[i].rank,
                  "rcond=%g pinv rank=%d", cases[i].rcond, (int)rank);
        cr_expect(fabs(x[1] - (cases[i].rank > 2 ? 100 : 0)) <= 1e-12 &&
                      fabs(x[3] - (cases[i].rank > 1 ? 10 : 0)) <= 1e-13 &&
                      fabs(x[8] - (cases[i].rank > 0 ? 1 : 0)) <= 1e-14,
                  "rcond=%g A+ = %g %g %g", cases[i].rcond, x[1], x[3], x[8]);
        cr_expect(ref_symmetric_pinv(3, diagonal, cases[i].rcond, x, NULL, &rank, NULL) == ATN_OK &&
                      rank == cases[i].rank,
                  "rcond=%g symmetric rank=%d", cases[i].rcond, (int)rank);
    }
}

/* Both routes keep an eigenvalue of 2^-60 where nothing is to be dropped. */
Test(linear_algebra, pinv_of_what_rounding_hides)
{
    static const double a[4] = {1, 0, 0, 0x1p-60};
    double x[4];
    int64_t rank = -1;
    cr_expect(ref_pinv(2, 2, a, 0, x, &rank, NULL) == ATN_BELOW_FLOOR && rank == 2, "rank=%d",
              (int)rank);
    cr_expect(ref_symmetric_pinv(2, a, 0, x, NULL, &rank, NULL) == ATN_BELOW_FLOOR && rank == 2,
              "symmetric rank=%d", (int)rank);
    double four[16] = {[0] = 1, [5] = 1, [10] = 1, [15] = 3 * UNIT_ROUNDOFF}, inverse[16];
    cr_expect(ref_pinv(4, 4, four, 0, inverse, &rank, NULL) == ATN_BELOW_FLOOR && rank == 4,
              "3 u of n = 4: rank=%d", (int)rank);
}

/* Far above the floor, but with a cut between what two routes find. */
Test(linear_algebra, pinv_where_routes_keep_different_ranks)
{
    enum { N = 30 };
    double b[N * N], bt[N * N], a[N * N], u[N * N], vt[N * N], x[N * N], first[N], second[N];
    cr_assert(latms(N, N, 3, 1e4, 2, b, first) == ATN_OK);
    transpose(N, N, b, bt);
    product(N, N, N, bt, b, a);
    cr_assert(ref_svd(REF_DGESVD, N, N, a, u, first, vt) == ATN_OK &&
              ref_svd(REF_DGESVJ, N, N, a, u, second, vt) == ATN_OK);
    double low = first[N - 1] / first[0], high = second[N - 1] / second[0];
    cr_assert(low > 1e-9 && fabs(low - high) > 1e-13 * low, "%.17g, %.17g", low, high);
    cr_expect(ref_pinv(N, N, a, (low + high) / 2, x, NULL, NULL) == ATN_BELOW_FLOOR);
    cr_assert(ref_eigen(REF_DSYEVD, N, a, first, u) == ATN_OK &&
              ref_eigen(REF_DSYEVR, N, a, second, NULL) == ATN_OK);
    low = first[N - 1] / first[0], high = second[N - 1] / second[0];
    cr_assert(low > 1e-9 && fabs(low - high) > 1e-13 * low, "%.17g, %.17g", low, high);
    cr_expect(ref_symmetric_pinv(N, a, (low + high) / 2, x, NULL, NULL, NULL) == ATN_BELOW_FLOOR);
}

Test(linear_algebra, condition_and_norm)
{
    static const double zero[4] = {0}, singular[4] = {1, 1, 1, 1}, wide[2] = {3, 4};
    double a[100 * 100], sigma[100], condition = -1, norm = -1, apart = -1;
    cr_expect(ref_condition(0, 0, NULL, &condition, &apart) == ATN_OK && condition == 0, "0x0: %g",
              condition);
    cr_expect(ref_spectral_norm(0, 3, NULL, &norm) == ATN_OK && norm == 0, "0x3: %g", norm);
    cr_expect(ref_condition(2, 2, zero, &condition, NULL) == ATN_OK && isinf(condition), "zero: %g",
              condition);
    cr_expect(ref_condition(2, 2, singular, &condition, NULL) == ATN_BELOW_FLOOR &&
                  condition > 1e15,
              "singular: %g", condition);
    cr_expect(ref_spectral_norm(2, 2, singular, &norm) == ATN_OK && fabs(norm - 2) <= 1e-15,
              "ones: %g", norm);
    cr_expect(ref_spectral_norm(1, 2, wide, &norm) == ATN_OK && fabs(norm - 5) <= 1e-15,
              "(3 4): %g", norm);
    cr_expect(ref_condition(1, 2, wide, &condition, &apart) == ATN_OK && condition == 1,
              "(3 4): %g", condition);
    /* n u is relative to the longer side */
    double second[3], third[3], tall[3 * 40];
    cr_assert(latms(40, 3, 3, 10, 2, tall, sigma) == ATN_OK);
    cr_assert(ref_singular_values(40, 3, tall, third, &apart) == ATN_OK);
    cr_assert(ref_svd(REF_DGESVJ, 40, 3, tall, NULL, second, NULL) == ATN_OK);
    double most = 0;
    for (int i = 0; i < 3; i++)
        most = fmax(most, fabs(third[i] - second[i]));
    cr_expect(most > 0 && fabs(apart / (most / third[0] / (40 * UNIT_ROUNDOFF)) - 1) < 1e-12,
              "%g of %g", apart, most);
    for (double want = 1; want < 1e13; want *= 1e3) {
        cr_assert(latms(100, 100, 3, want, 2, a, sigma) == ATN_OK);
        atn_status status = ref_condition(100, 100, a, &condition, &apart);
        cr_expect(status == ATN_OK && apart < 10, "%s disagreement=%g", atn_status_name(status),
                  apart);
        expect_ratio(REF_SPECTRUM, fabs(condition - want) / (100 * UNIT_ROUNDOFF * want * want),
                     "condition %g", want);
    }
    cr_assert(latms(100, 100, 3, 1e15, 2, a, sigma) == ATN_OK);
    cr_expect(ref_condition(100, 100, a, &condition, &apart) == ATN_BELOW_FLOOR, "condition=%g",
              condition);
}

/* LAPACK's answers against GSL's, on the matrices this suite is about. */
Test(linear_algebra, lapack_and_gsl_agree)
{
    static const double widths[] = {0.05, 0.5, 5, 50};
    enum { M = 64 };
    double a[M * M], lambda[M], sigma[M], gsl_lambda[M], gsl_sigma[M], w[M * M], apart[2];
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < M * M; j++) {
            double x = (j / M - j % M) / (double)M;
            a[j] = exp(-widths[i] * x * x);
        }
        cr_expect(ref_eigenvalues(M, a, lambda, w, &apart[0]) == ATN_OK);
        cr_expect(ref_singular_values(M, M, a, sigma, &apart[1]) == ATN_OK);
        cr_expect(ref_eigen(REF_GSL_SYMMV, M, a, gsl_lambda, NULL) == ATN_OK);
        cr_expect(ref_svd(REF_GSL_GOLUB_REINSCH, M, M, a, NULL, gsl_sigma, NULL) == ATN_OK);
        expect_ratio(REF_SPECTRUM, apart[0], "dsyevd and dsyevr, width %g", widths[i]);
        expect_ratio(REF_SPECTRUM, apart[1], "dgesvd and dgesvj, width %g", widths[i]);
        expect_ratio(REF_SPECTRUM, spectrum_ratio(M, M, gsl_lambda, lambda), "eigen, width %g",
                     widths[i]);
        expect_ratio(REF_SPECTRUM, spectrum_ratio(M, M, gsl_sigma, sigma), "svd, width %g",
                     widths[i]);
        /* positive semi-definite: the two spectra are the same */
        expect_ratio(REF_SPECTRUM, spectrum_ratio(M, M, lambda, sigma), "eigen = svd, width %g",
                     widths[i]);
        expect_ratio(REF_ORTHOGONALITY, orthogonality_ratio(M, M, w), "W, width %g", widths[i]);
    }
    log_worst("linear_algebra/gsl");
}

Test(linear_algebra, empty)
{
    double unused = -7, apart = -7;
    int64_t rank = -7;
    cr_expect(ref_singular_values(0, 0, NULL, NULL, &apart) == ATN_OK && apart == 0);
    cr_expect(ref_singular_values(3, 0, NULL, NULL, NULL) == ATN_OK);
    cr_expect(ref_eigenvalues(0, NULL, NULL, NULL, &apart) == ATN_OK && apart == 0);
    cr_expect(ref_pinv(0, 0, NULL, -1, NULL, &rank, &apart) == ATN_OK && rank == 0 && apart == 0);
    cr_expect(ref_pinv(0, 3, NULL, -1, NULL, &rank, NULL) == ATN_OK);
    cr_expect(ref_symmetric_pinv(0, NULL, -1, NULL, NULL, &rank, &apart) == ATN_OK && rank == 0);
    cr_expect(unused == -7);
}

Test(linear_algebra, nonfinite)
{
    static const double a[4] = {1, 0, INFINITY, 1};
    double x[4], y[4], s[2], norm, condition, apart = 0;
    int64_t rank = -1;
    cr_expect(ref_singular_values(2, 2, a, s, &apart) == ATN_NONFINITE && isnan(s[1]) &&
              isnan(apart));
    cr_expect(ref_eigenvalues(2, a, s, x, &apart) == ATN_NONFINITE && isnan(s[0]) && isnan(x[3]));
    cr_expect(ref_spectral_norm(2, 2, a, &norm) == ATN_NONFINITE && isnan(norm));
    cr_expect(ref_condition(2, 2, a, &condition, &apart) == ATN_NONFINITE && isnan(condition));
    cr_expect(ref_pinv(2, 2, a, -1, x, &rank, &apart) == ATN_NONFINITE && isnan(x[0]) &&
              rank == 0 && isnan(apart));
    rank = -1;
    cr_expect(ref_symmetric_pinv(2, a, -1, x, y, &rank, &apart) == ATN_NONFINITE && isnan(x[3]) &&
              isnan(y[0]) && rank == 0 && isnan(apart));
}

Test(linear_algebra, bad_arguments)
{
    static const double a[4] = {1, 0, 0, 1};
    double x[4], value;
    const atn_status shape[] = {
        ref_singular_values(-1, 2, a, x, NULL),
        ref_eigenvalues(-1, a, x, NULL, NULL),
        ref_spectral_norm(2, -1, a, &value),
        ref_pinv(-1, 2, a, -1, x, NULL, NULL),
        ref_pinv(INT64_MAX, 2, a, -1, x, NULL, NULL),
        ref_symmetric_pinv(-1, a, -1, x, NULL, NULL, NULL),
        ref_condition(2, -1, a, &value, NULL),
        ref_condition(INT64_MAX, INT64_MAX, a, &value, NULL),
    };
    const atn_status null[] = {
        ref_singular_values(2, 2, NULL, x, NULL),
        ref_singular_values(2, 2, a, NULL, NULL),
        ref_eigenvalues(2, NULL, x, NULL, NULL),
        ref_eigenvalues(2, a, NULL, NULL, NULL),
        ref_spectral_norm(2, 2, NULL, &value),
        ref_spectral_norm(2, 2, a, NULL),
        ref_pinv(2, 2, NULL, -1, x, NULL, NULL),
        ref_pinv(2, 2, a, -1, NULL, NULL, NULL),
        ref_symmetric_pinv(2, NULL, -1, x, NULL, NULL, NULL),
        ref_symmetric_pinv(2, a, -1, NULL, x, NULL, NULL),
        ref_condition(2, 2, NULL, &value, NULL),
        ref_condition(2, 2, a, NULL, NULL),
    };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        cr_expect(shape[i] == ATN_ERR_SHAPE, "case %zu %s", i, atn_status_name(shape[i]));
    for (size_t i = 0; i < sizeof null / sizeof *null; i++)
        cr_expect(null[i] == ATN_ERR_NULL, "case %zu %s", i, atn_status_name(null[i]));
}

/* 1 / 5e-324 is no double. */
Test(linear_algebra, overflowing_pinv_is_singular)
{
    static const double a[4] = {5e-324, 0, 0, 5e-324};
    double x[4];
    cr_expect(ref_pinv(2, 2, a, -1, x, NULL, NULL) == ATN_SINGULAR);
    cr_expect(ref_symmetric_pinv(2, a, -1, x, NULL, NULL, NULL) == ATN_SINGULAR);
}
