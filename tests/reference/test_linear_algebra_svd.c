/* SPDX-License-Identifier: BSD-3-Clause */
/* Every SVD route against LAPACK's ratios (reconstruction, both orthogonalities, order, values
 * alone against values with vectors) and against prescribed singular values. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "latms.h"
#include "linear_algebra.h"
#include "ratios.h"

static const struct {
    int rows, cols;
} shapes[] = {{1, 1},     {2, 2},   {3, 3},   {5, 5},   {10, 10}, {50, 50}, {64, 64},
              {128, 128}, {1, 5},   {5, 1},   {3, 2},   {2, 3},   {10, 3},  {3, 10},
              {50, 10},   {10, 50}, {128, 5}, {5, 128}, {64, 50}, {50, 64}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const double conditions[] = {1e2, 1e6, 1e12};

/* All ratios of one route on A. The reference must pass; the routes that only check it may be
 * marginal: LAPACK's own limit is 50 in units of 2 u (svd.in). GSL's may also say that it failed
 * (reference/gsl.c). want: its singular values, or null. */
static void check_svd(ref_svd_route route, int rows, int cols, const double *a, const double *want,
                      const char *what)
{
    int k = rows < cols ? rows : cols, n = rows < cols ? cols : rows;
    double *u = new_numbers(rows * k), *vt = new_numbers(k * cols), *v = new_numbers(k * cols);
    double *sigma = new_numbers(k), *alone = new_numbers(k);
    const char *name = ref_svd_name(route);
    expectation *expect = route == REF_DGESVD ? expect_ratio : expect_no_failure;
    atn_status full = ref_svd(route, rows, cols, a, u, sigma, vt);
    atn_status values = ref_svd(route, rows, cols, a, NULL, alone, NULL);
    bool failed = route == REF_GSL_GOLUB_REINSCH && full == ATN_ERR_LIBRARY;
    cr_expect(values == full && (full == ATN_OK || failed), "%s %dx%d %s: %s, %s", name, rows, cols,
              what, atn_status_name(full), atn_status_name(values));
    if (failed)
        goto done;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < cols; j++)
            v[j * k + i] = vt[i * cols + j];
    expect(REF_BACKWARD, reconstruction_ratio(rows, cols, k, a, u, sigma, vt),
           "reconstruction %s %dx%d %s", name, rows, cols, what);
    expect(REF_ORTHOGONALITY, orthogonality_ratio(rows, k, u), "U %s %dx%d %s", name, rows, cols,
           what);
    expect(REF_ORTHOGONALITY, orthogonality_ratio(cols, k, v), "V %s %dx%d %s", name, rows, cols,
           what);
    expect(REF_EXACT, order_ratio(k, sigma, true), "order %s %dx%d %s", name, rows, cols, what);
    expect(REF_EXACT, order_ratio(k, alone, true), "order, values alone %s %dx%d %s", name, rows,
           cols, what);
    expect(REF_SPECTRUM, spectrum_ratio(n, k, alone, sigma), "values alone %s %dx%d %s", name, rows,
           cols, what);
    if (want)
        expect(REF_SPECTRUM, spectrum_ratio(n, k, sigma, want), "sigma %s %dx%d %s", name, rows,
               cols, what);
done:
    free(alone);
    free(sigma);
    free(v);
    free(vt);
    free(u);
}

/* One dlatms matrix, times scale, through every route. */
static void check_latms(int rows, int cols, int mode, double condition, double scale)
{
    int k = rows < cols ? rows : cols;
    double *a = new_numbers(rows * cols), *want = new_numbers(k);
    char what[64];
    snprintf(what, sizeof what, "mode=%d cond=%.0e scale=%.0e", mode, condition, scale);
    cr_assert(latms(rows, cols, mode, condition, 1 + rows + 7 * cols, a, want) == ATN_OK, "%s",
              what);
    for (int i = 0; i < rows * cols; i++)
        a[i] *= scale;
    for (int i = 0; i < k; i++)
        want[i] *= scale;
    for (int route = 0; route < REF_SVD_COUNT; route++)
        check_svd((ref_svd_route)route, rows, cols, a, want, what);
    free(want);
    free(a);
}

/* Every mode with every condition; the larger sizes, with one condition per mode. */
Test(linear_algebra_svd, ratios_on_prescribed_spectra)
{
    for (int s = 0; s < SHAPES; s++)
        for (int mode = -5; mode <= 5; mode++)
            for (int c = 0; c < 3 && mode != 0; c++)
                if (c == abs(mode) % 3 || (shapes[s].rows <= 50 && shapes[s].cols <= 50))
                    check_latms(shapes[s].rows, shapes[s].cols, mode, conditions[c], 1);
    log_worst("linear_algebra_svd/prescribed");
}

/* The largest entry stays under 1 in size, so 2^1023 does not overflow; 2^-1022 is where numbers
 * become subnormal, so most entries are. */
Test(linear_algebra_svd, ratios_near_underflow_and_overflow)
{
    static const double scales[] = {0x1p-1022, 1e-300, 1e-160, 1e160, 1e300, 0x1p1023};
    for (int i = 0; i < 6; i++)
        for (int s = 0; s < SHAPES; s++)
            if (shapes[s].rows <= 50 && shapes[s].cols <= 50)
                check_latms(shapes[s].rows, shapes[s].cols, 3, 1e6, scales[i]);
    log_worst("linear_algebra_svd/scaled");
}

/* Kinds of matrix that leave Jacobi methods without vectors. */
static double special_entry(int kind, int i, int j)
{
    switch (kind) {
    case 0:
        return 0;
    case 1:
        return i == j;
    case 2:
        return 1;
    case 3: /* zero rows and columns between others */
        return i % 2 || j % 2 ? 0 : sin(1 + i + 3.7 * j);
    case 4: /* equal columns */
        return cos(2.385 * (i + 1));
    case 5: /* one entry */
        return i == 0 && j == 0 ? -3 : 0;
    case 6: /* diagonal, ascending, signs alternating */
        return i == j ? (i % 2 ? -1 : 1) * (i + 1) : 0;
    default: /* graded */
        return sin(1 + i + 3.7 * j) * pow(10, -i);
    }
}

Test(linear_algebra_svd, ratios_on_special_matrices)
{
    static const char *const kinds[] = {"zero",          "identity",  "ones",     "zero lines",
                                        "equal columns", "one entry", "diagonal", "graded"};
    for (int kind = 0; kind < 8; kind++) {
        for (int s = 0; s < SHAPES; s++) {
            int rows = shapes[s].rows, cols = shapes[s].cols;
            if (rows > 64 || cols > 64)
                continue;
            double *a = new_numbers(rows * cols);
            for (int i = 0; i < rows * cols; i++)
                a[i] = special_entry(kind, i / cols, i % cols);
            for (int route = 0; route < REF_SVD_COUNT; route++)
                check_svd((ref_svd_route)route, rows, cols, a, NULL, kinds[kind]);
            free(a);
        }
    }
    log_worst("linear_algebra_svd/special");
}

/* 2 x 3, A A^T = diag(25, 4): sigma = 5, 2, worked out by hand. */
Test(linear_algebra_svd, known_values)
{
    static const double a[6] = {3, 0, 4, 0, 2, 0}, want[2] = {5, 2};
    for (int route = 0; route < REF_SVD_COUNT; route++)
        check_svd((ref_svd_route)route, 2, 3, a, want, "by hand");
}

/* The companion matrix of a polynomial with the given roots, coefficients in the first column or
 * first row. Its singular values are known: n - 2 of them are 1, sigma_1^2 + sigma_n^2 = 1 + |c|^2
 * and sigma_1 sigma_n = |c_n| (A^T A is the identity but for one row and column). */
static void make_companion(int n, const double *roots, bool column, double *a)
{
    double c[64] = {1};
    cr_assert(n < 64);
    for (int r = 0; r < n; r++)
        for (int i = r + 1; i >= 1; i--)
            c[i] -= roots[r] * c[i - 1];
    for (int i = 0; i < n; i++) {
        a[column ? i * n : i] = -c[i + 1];
        if (i > 0)
            a[column ? (i - 1) * n + i : i * n + i - 1] = 1;
    }
}

enum { COMPANION = 26 };

/* The polynomial with roots 1 .. 26: coefficients up to 1e27. */
static void make_wilkinson_companion(double *a)
{
    double roots[COMPANION];
    for (int i = 0; i < COMPANION; i++)
        roots[i] = i + 1;
    make_companion(COMPANION, roots, true, a);
}

/* Three backward stable routines may give three smallest singular values, all with info = 0 (LAPACK
 * issue 316 is of this kind), and which of them is right depends on the BLAS kernels. Nobody can
 * tell from the numbers alone, hence ATN_BELOW_FLOOR; relative to sigma_1 all are right. */
Test(linear_algebra_svd, below_the_floor_routes_need_not_agree)
{
    enum { N = COMPANION };
    static const ref_svd_route routes[] = {REF_DGESVD, REF_DGESVJ, REF_DGESDD};
    double a[N * N] = {0}, u[N * N], vt[N * N], sigma[3][N], condition, apart;
    make_wilkinson_companion(a);
    for (int i = 0; i < 3; i++) {
        atn_status status = ref_svd(routes[i], N, N, a, u, sigma[i], vt);
        cr_expect(status == ATN_OK, "%s %s", ref_svd_name(routes[i]), atn_status_name(status));
        expect_ratio(REF_BACKWARD, reconstruction_ratio(N, N, N, a, u, sigma[i], vt),
                     "companion %s", ref_svd_name(routes[i]));
        expect_ratio(REF_SPECTRUM, spectrum_ratio(N, N, sigma[i], sigma[0]), "companion %s",
                     ref_svd_name(routes[i]));
        cr_expect(sigma[i][N - 1] < N * UNIT_ROUNDOFF * sigma[i][0], "%s sigma_min=%g",
                  ref_svd_name(routes[i]), sigma[i][N - 1]);
    }
    atn_status status = ref_condition(N, N, a, &condition, &apart);
    cr_expect(status == ATN_BELOW_FLOOR, "%s condition=%g", atn_status_name(status), condition);
    cr_expect(apart < 10, "disagreement=%g: relative to sigma_1 the routes do agree", apart);
    log_worst("linear_algebra_svd/companion");
}

/* Rank and pseudo-inverse of the same matrix, asked to keep what nobody can know. */
Test(linear_algebra_svd, answers_below_the_floor_say_so)
{
    enum { N = COMPANION };
    double a[N * N] = {0}, pinv[N * N];
    int64_t rank = -1;
    make_wilkinson_companion(a);
    /* rounding decides whether sigma_26 is counted */
    cr_expect(ref_pinv(N, N, a, 1e-33, pinv, &rank, NULL) == ATN_BELOW_FLOOR && rank >= N - 1,
              "rank=%d", (int)rank);
}

/* Routes that cannot answer say so instead of answering. */
Test(linear_algebra_svd, library_failures)
{
    enum { N = 26 };
    double a[N * N] = {0}, roots[N], sigma[N], second[N];
    /* sigma_1 = n 1.7e308 overflows */
    for (int i = 0; i < 100; i++)
        a[i] = 1.7e308;
    for (int route = 0; route < REF_SVD_COUNT; route++) {
        atn_status status = ref_svd((ref_svd_route)route, 10, 10, a, NULL, sigma, NULL);
        cr_expect(status == ATN_ERR_LIBRARY, "%s %s", ref_svd_name((ref_svd_route)route),
                  atn_status_name(status));
    }
    double norm, condition, pinv[100];
    cr_expect(ref_spectral_norm(10, 10, a, &norm) == ATN_ERR_LIBRARY);
    cr_expect(ref_condition(10, 10, a, &condition, NULL) == ATN_ERR_LIBRARY);
    cr_expect(ref_pinv(10, 10, a, -1, pinv, NULL, NULL) == ATN_ERR_LIBRARY);
    cr_expect(ref_singular_values(10, 10, a, sigma, NULL) == ATN_ERR_LIBRARY);
    /* Graded over 80 orders of magnitude: with some BLAS kernels GSL's QR iteration gives up, which
     * must not abort; with others it succeeds, and then its answer must be right. */
    memset(a, 0, sizeof a);
    for (int i = 0; i < N; i++)
        roots[i] = (i % 2 ? -1 : 1) * pow(10, i / 4.);
    make_companion(N, roots, false, a);
    cr_assert(ref_svd(REF_DGESVD, N, N, a, NULL, sigma, NULL) == ATN_OK);
    atn_status status = ref_svd(REF_GSL_GOLUB_REINSCH, N, N, a, NULL, second, NULL);
    cr_expect(status == ATN_ERR_LIBRARY || status == ATN_OK, "gsl on a graded companion: %s",
              atn_status_name(status));
    if (status == ATN_OK)
        expect_ratio(REF_SPECTRUM, spectrum_ratio(N, N, second, sigma),
                     "gsl on a graded companion");
}

Test(linear_algebra_svd, bad_arguments)
{
    static const double a[6] = {1, 2, 3, 4, 5, 6};
    double u[6], s[6], vt[6];
    const int64_t huge = (int64_t)1 << 40;
    const struct {
        int route;
        int64_t rows, cols;
        const double *a;
        double *u, *s, *vt;
        atn_status want;
    } cases[] = {
        {0, -1, 2, a, u, s, vt, ATN_ERR_SHAPE},
        {0, 2, -1, a, u, s, vt, ATN_ERR_SHAPE},
        {0, 0, -1, a, u, s, vt, ATN_ERR_SHAPE},
        {0, huge, 1, a, u, s, vt, ATN_ERR_SHAPE},
        {0, 1, huge, a, u, s, vt, ATN_ERR_SHAPE},
        {0, INT64_MAX, INT64_MAX, a, u, s, vt, ATN_ERR_SHAPE},
        {0, 16385, 16385, a, u, s, vt, ATN_ERR_SHAPE},
        {0, 2, 3, NULL, u, s, vt, ATN_ERR_NULL},
        {0, 2, 3, a, u, NULL, vt, ATN_ERR_NULL},
        {0, 2, 3, a, NULL, s, vt, ATN_ERR_NULL},
        {0, 2, 3, a, u, s, NULL, ATN_ERR_NULL},
        {REF_SVD_COUNT, 2, 3, a, u, s, vt, ATN_ERR_VALUE},
        {-1, 2, 3, a, u, s, vt, ATN_ERR_VALUE},
        {0, 2, 3, a, u, s, vt, ATN_OK},
        {0, 0, 0, NULL, NULL, NULL, NULL, ATN_OK},
        {0, 0, 3, NULL, u, s, vt, ATN_OK},
        {0, 3, 0, NULL, NULL, NULL, NULL, ATN_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s[0] = -7;
        atn_status status = ref_svd((ref_svd_route)cases[i].route, cases[i].rows, cases[i].cols,
                                    cases[i].a, cases[i].u, cases[i].s, cases[i].vt);
        cr_expect(status == cases[i].want, "case %zu %s want %s", i, atn_status_name(status),
                  atn_status_name(cases[i].want));
        cr_expect(status == ATN_OK || s[0] == -7, "case %zu touched its output", i);
    }
}

/* What freed memory held is no input. */
Test(linear_algebra_svd, nan_in_old_memory)
{
    enum { N = 8, BLOCKS = 7 };
    double a[N * N], u[N * N], sigma[N], vt[N * N], *blocks[BLOCKS];
    for (int i = 0; i < N * N; i++)
        a[i] = cos(i * i);
    for (int route = 0; route < REF_SVD_COUNT; route++) {
        for (int b = 0; b < BLOCKS; b++) {
            blocks[b] = malloc(sizeof a);
            cr_assert(blocks[b]);
            for (int i = 0; i < N * N; i++)
                blocks[b][i] = NAN;
        }
        for (int b = 0; b < BLOCKS; b++)
            free(blocks[b]);
        atn_status status = ref_svd((ref_svd_route)route, N, N, a, u, sigma, vt);
        cr_expect(status == ATN_OK, "%s: %s", ref_svd_name((ref_svd_route)route),
                  atn_status_name(status));
    }
}

Test(linear_algebra_svd, nonfinite_input_makes_nan)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int route = 0; route < REF_SVD_COUNT; route++) {
        for (int i = 0; i < 3; i++) {
            double a[6] = {1, 2, 3, 4, bad[i], 6}, u[4], s[2], vt[6];
            atn_status status = ref_svd((ref_svd_route)route, 2, 3, a, u, s, vt);
            cr_expect(status == ATN_NONFINITE && isnan(s[0]) && isnan(s[1]) && isnan(u[0]) &&
                          isnan(u[3]) && isnan(vt[0]) && isnan(vt[5]),
                      "%s %s", ref_svd_name((ref_svd_route)route), atn_status_name(status));
        }
    }
}

Test(linear_algebra_svd, names)
{
    for (int i = 0; i < REF_SVD_COUNT; i++) {
        cr_expect(strlen(ref_svd_name((ref_svd_route)i)) > 0, "%d", i);
    }
    cr_expect(strcmp(ref_svd_name(REF_GSL_GOLUB_REINSCH), "gsl-golub-reinsch") == 0);
    cr_expect(!ref_svd_name(REF_SVD_COUNT) && !ref_svd_name((ref_svd_route)-1));
}
