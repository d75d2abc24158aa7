/* SPDX-License-Identifier: BSD-3-Clause */
/* Every symmetric eigenvalue route: reconstruction, orthogonality, order, values alone against
 * values with vectors, prescribed eigenvalues. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "latms.h"
#include "linear_algebra.h"
#include "ratios.h"

static const int sizes[] = {1, 2, 3, 5, 10, 50, 64, 128};
static const double conditions[] = {1e2, 1e6, 1e12};

static void transpose_square(int n, const double *from, double *to)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            to[j * n + i] = from[i * n + j];
}

/* The reference must pass; the routes that only check it may be marginal: LAPACK grants vectors 60
 * in units of 2 u and calls 170 the empirical limit (sep.in). dsyevr's vectors have no proved
 * bound, and how far from orthogonal they are depends on the BLAS kernels: its eigenvalues are
 * held. */
static void check_eigen(ref_eigen_route route, int n, const double *a, const double *want,
                        const char *what)
{
    double *w = new_numbers(n * n), *wt = new_numbers(n * n);
    double *lambda = new_numbers(n), *alone = new_numbers(n);
    const char *name = ref_eigen_name(route);
    atn_status full = ref_eigen(route, n, a, lambda, w);
    atn_status values = ref_eigen(route, n, a, alone, NULL);
    cr_expect(full == ATN_OK && values == ATN_OK, "%s n=%d %s: %s, %s", name, n, what,
              atn_status_name(full), atn_status_name(values));
    transpose_square(n, w, wt);
    expectation *expect = route == REF_DSYEVD ? expect_ratio : expect_no_failure;
    if (route != REF_DSYEVR) {
        expect(REF_BACKWARD, reconstruction_ratio(n, n, n, a, w, lambda, wt),
               "reconstruction %s n=%d %s", name, n, what);
        expect(REF_ORTHOGONALITY, orthogonality_ratio(n, n, w), "W %s n=%d %s", name, n, what);
        expect(REF_ORTHOGONALITY, orthogonality_ratio(n, n, wt), "W^T %s n=%d %s", name, n, what);
    }
    expect(REF_EXACT, order_ratio(n, lambda, false), "order %s n=%d %s", name, n, what);
    expect(REF_EXACT, order_ratio(n, alone, false), "order, alone %s n=%d %s", name, n, what);
    expect(REF_SPECTRUM, spectrum_ratio(n, n, alone, lambda), "values alone %s n=%d %s", name, n,
           what);
    if (want)
        expect(REF_SPECTRUM, spectrum_ratio(n, n, lambda, want), "lambda %s n=%d %s", name, n,
               what);
    free(alone);
    free(lambda);
    free(wt);
    free(w);
}

/* scale (A - shift I), A from dlatms: a shift inside the spectrum makes it indefinite. */
static void check_latms(int n, int mode, double condition, double shift, double scale)
{
    double *a = new_numbers(n * n), *want = new_numbers(n);
    char what[80];
    snprintf(what, sizeof what, "mode=%d cond=%.0e shift=%g scale=%.0e", mode, condition, shift,
             scale);
    cr_assert(latms_symmetric(n, mode, condition, 3 + n, a, want) == ATN_OK, "%s", what);
    for (int i = 0; i < n; i++) {
        a[i * n + i] -= shift;
        want[i] = (want[i] - shift) * scale;
    }
    for (int i = 0; i < n * n; i++)
        a[i] *= scale;
    for (int route = 0; route < REF_EIGEN_COUNT; route++)
        check_eigen((ref_eigen_route)route, n, a, want, what);
    free(want);
    free(a);
}

Test(linear_algebra_eigen, ratios_on_prescribed_spectra)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int mode = -5; mode <= 5; mode++)
            for (int c = 0; c < 3 && mode != 0; c++)
                for (int shifted = 0; shifted < 2; shifted++)
                    if (c == abs(mode) % 3 || sizes[s] <= 50)
                        check_latms(sizes[s], mode, conditions[c], shifted ? 0.375 : 0, 1);
    log_worst("linear_algebra_eigen/prescribed");
}

Test(linear_algebra_eigen, ratios_near_underflow_and_overflow)
{
    static const double scales[] = {0x1p-1022, 1e-300, 1e-160, 1e160, 1e300, 0x1p1023};
    for (int i = 0; i < 6; i++)
        for (size_t s = 0; s < 6; s++)
            check_latms(sizes[s], 3, 1e6, 0, scales[i]);
    log_worst("linear_algebra_eigen/scaled");
}

Test(linear_algebra_eigen, ratios_on_special_matrices)
{
    static const char *const kinds[] = {"zero", "minus identity", "ones", "zero lines", "graded"};
    for (int kind = 0; kind < 5; kind++) {
        for (size_t s = 0; s < 7; s++) {
            int n = sizes[s];
            double *a = new_numbers(n * n);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++) {
                    const double entries[] = {0, i == j ? -1 : 0, 1,
                                              i % 2 || j % 2 ? 0 : cos(1 + i + j),
                                              cos(1 + i + j) * pow(10, -(i + j) / 4.)};
                    a[i * n + j] = entries[kind];
                }
            for (int route = 0; route < REF_EIGEN_COUNT; route++)
                check_eigen((ref_eigen_route)route, n, a, NULL, kinds[kind]);
            free(a);
        }
    }
    log_worst("linear_algebra_eigen/special");
}

/* (2 1; 1 2) has 3 along (1, 1) and 1 along (1, -1). */
Test(linear_algebra_eigen, known_pairs)
{
    static const double a[4] = {2, 1, 1, 2}, want[2] = {3, 1};
    for (int route = 0; route < REF_EIGEN_COUNT; route++) {
        double w[4], lambda[2];
        check_eigen((ref_eigen_route)route, 2, a, want, "by hand");
        cr_assert(ref_eigen((ref_eigen_route)route, 2, a, lambda, w) == ATN_OK);
        cr_expect(fabs(w[0] - w[2]) <= 4e-16 && fabs(w[1] + w[3]) <= 4e-16,
                  "%s: vectors are not in the columns: %g %g; %g %g",
                  ref_eigen_name((ref_eigen_route)route), w[0], w[1], w[2], w[3]);
    }
}

/* Entries above the diagonal must not matter, not even NaN. */
Test(linear_algebra_eigen, only_the_lower_triangle_is_read)
{
    enum { N = 10 };
    double a[N * N], lambda[N], clean[N], w[N * N], pinv[N * N], clean_pinv[N * N], x[N * N];
    cr_assert(latms_symmetric(N, 3, 100, 1, a, clean) == ATN_OK);
    cr_assert(ref_symmetric_pinv(N, a, -1, clean_pinv, NULL, NULL, NULL) == ATN_OK);
    double before[REF_EIGEN_COUNT][N];
    for (int route = 0; route < REF_EIGEN_COUNT; route++)
        cr_assert(ref_eigen((ref_eigen_route)route, N, a, before[route], w) == ATN_OK);
    for (int i = 0; i < N; i++)
        for (int j = i + 1; j < N; j++)
            a[i * N + j] = NAN;
    for (int route = 0; route < REF_EIGEN_COUNT; route++) {
        cr_assert(ref_eigen((ref_eigen_route)route, N, a, lambda, w) == ATN_OK);
        expect_ratio(REF_SPECTRUM, spectrum_ratio(N, N, lambda, before[route]), "%s",
                     ref_eigen_name((ref_eigen_route)route));
    }
    cr_expect(ref_symmetric_pinv(N, a, -1, pinv, x, NULL, NULL) == ATN_OK);
    expect_ratio(REF_SPECTRUM, spectrum_ratio(N, N * N, pinv, clean_pinv) / 100, "pinv");
}

Test(linear_algebra_eigen, library_failures)
{
    double a[100], lambda[10], pinv[100];
    for (int i = 0; i < 100; i++)
        a[i] = 1.7e308;
    for (int route = 0; route < REF_EIGEN_COUNT; route++) {
        atn_status status = ref_eigen((ref_eigen_route)route, 10, a, lambda, NULL);
        cr_expect(status == ATN_ERR_LIBRARY, "%s %s", ref_eigen_name((ref_eigen_route)route),
                  atn_status_name(status));
    }
    cr_expect(ref_eigenvalues(10, a, lambda, NULL, NULL) == ATN_ERR_LIBRARY);
    cr_expect(ref_symmetric_pinv(10, a, -1, pinv, NULL, NULL, NULL) == ATN_ERR_LIBRARY);
}

Test(linear_algebra_eigen, bad_arguments)
{
    static const double a[4] = {1, 0, 0, 1}, bad[4] = {1, 0, NAN, 1};
    double lambda[2], w[4];
    const struct {
        int route;
        int64_t n;
        const double *a;
        double *lambda;
        atn_status want;
    } cases[] = {
        {0, -1, a, lambda, ATN_ERR_SHAPE},
        {0, INT64_MAX, a, lambda, ATN_ERR_SHAPE},
        {0, 16385, a, lambda, ATN_ERR_SHAPE},
        {0, 2, NULL, lambda, ATN_ERR_NULL},
        {0, 2, a, NULL, ATN_ERR_NULL},
        {REF_EIGEN_COUNT, 2, a, lambda, ATN_ERR_VALUE},
        {-1, 2, a, lambda, ATN_ERR_VALUE},
        {0, 0, NULL, NULL, ATN_OK},
        {REF_DSYEVD, 2, bad, lambda, ATN_NONFINITE},
        {REF_DSYEVR, 2, bad, lambda, ATN_NONFINITE},
        {REF_GSL_SYMMV, 2, bad, lambda, ATN_NONFINITE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lambda[0] = w[0] = -7;
        atn_status status =
            ref_eigen((ref_eigen_route)cases[i].route, cases[i].n, cases[i].a, cases[i].lambda, w);
        cr_expect(status == cases[i].want, "case %zu %s want %s", i, atn_status_name(status),
                  atn_status_name(cases[i].want));
        bool nan = isnan(lambda[0]) && isnan(w[0]);
        cr_expect(status == ATN_NONFINITE ? nan : lambda[0] == -7, "case %zu lambda=%g", i,
                  lambda[0]);
    }
}

Test(linear_algebra_eigen, names)
{
    for (int i = 0; i < REF_EIGEN_COUNT; i++) {
        cr_expect(strlen(ref_eigen_name((ref_eigen_route)i)) > 0, "%d", i);
    }
    cr_expect(strcmp(ref_eigen_name(REF_DSYEVR), "dsyevr") == 0);
    cr_expect(!ref_eigen_name(REF_EIGEN_COUNT) && !ref_eigen_name((ref_eigen_route)-1));
}
