/* SPDX-License-Identifier: BSD-3-Clause */
/* Closed forms against computed spectra, entries against their definitions, dlatms against its
 * prescription. */
#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "latms.h"
#include "linear_algebra.h"
#include "matrices.h"
#include "ratios.h"

static const struct {
    ref_matrix matrix;
    double values[5];
    int sizes[8]; /* 0 ends the list; 0 x 0 has its own test */
} cases[] = {
    {REF_IDENTITY, {0, 1, -1, 2, 3}, {1, 2, 3, 10, 49, 64}},
    {REF_ONES, {0, 1, -1, 2, 3}, {1, 2, 3, 10, 49, 64}},
    {REF_EQUICORRELATED, {0, 0.5, 0.999999, -0.01, 1}, {1, 2, 3, 10, 49, 64}},
    {REF_CIRCULANT, {0, 0.01, 0.5, 3, 1e4}, {1, 2, 3, 4, 5, 49, 64, 100}},
    {REF_TORUS, {0, 0.01, 0.5, 3, 1e4}, {1, 4, 9, 16, 49, 64, 100}},
    {REF_TWO, {0, 0.5, -0.5, 1, 1 - 0x1p-53}, {2}},
    {REF_BLOCKS, {0, 0.5, -0.2, 0.999, 1}, {3, 4, 5, 10, 49, 64}},
    {REF_DUPLICATES, {0, 1e-9, 1e-3, 0.5, 10}, {2, 3, 10, 49, 64}},
};
enum { CASES = sizeof cases / sizeof *cases };

Test(matrices, closed_forms_are_the_spectra)
{
    cr_assert((int)CASES == (int)REF_MATRIX_COUNT);
    for (int c = 0; c < CASES; c++) {
        for (int v = 0; v < 5; v++) {
            for (int s = 0; s < 8 && cases[c].sizes[s]; s++) {
                int m = cases[c].sizes[s];
                double *a = new_numbers(m * m), *lambda = new_numbers(m), *have = new_numbers(m);
                const char *name = ref_matrix_name(cases[c].matrix);
                atn_status status =
                    ref_matrix_make(cases[c].matrix, m, cases[c].values[v], a, lambda);
                cr_expect(status == ATN_OK, "%s m=%d %s", name, m, atn_status_name(status));
                expect_ratio(REF_EXACT, order_ratio(m, lambda, false), "order %s m=%d", name, m);
                for (int route = 0; route < REF_EIGEN_COUNT; route++) {
                    cr_expect(ref_eigen((ref_eigen_route)route, m, a, have, NULL) == ATN_OK);
                    expect_ratio(REF_SPECTRUM, spectrum_ratio(m, m, have, lambda),
                                 "%s value=%g m=%d %s", name, cases[c].values[v], m,
                                 ref_eigen_name((ref_eigen_route)route));
                }
                free(have);
                free(lambda);
                free(a);
            }
        }
    }
    log_worst("matrices/closed forms");
}

/* Entry (i, j) again, from the words of the header. */
static double entry(ref_matrix matrix, int m, double value, int i, int j)
{
    const double pi = 3.14159265358979323846;
    int q = (int)lround(sqrt(m)), third = m / 3, more = m % 3;
    int first = third + (more > 0), second = first + third + (more > 1);
    double ring = 4 * pow(sin(pi * (i - j) / m), 2);
    double rows = 4 * pow(sin(pi * (i / q - j / q) / q), 2);
    double columns = 4 * pow(sin(pi * (i % q - j % q) / q), 2);
    switch (matrix) {
    case REF_IDENTITY:
        return i == j;
    case REF_ONES:
        return 1;
    case REF_CIRCULANT:
        return exp(-value * ring);
    case REF_TORUS:
        return exp(-value * (rows + columns));
    case REF_BLOCKS:
        if ((i < first) != (j < first) || (i < second) != (j < second))
            return 0;
        return i == j ? 1 : value;
    case REF_DUPLICATES:
        if (i + j == 1)
            return exp(-value * value / 2);
        return i == j;
    default:
        return i == j ? 1 : value;
    }
}

static void check_entries(ref_matrix matrix, int m, double value)
{
    double *a = new_numbers(m * m);
    cr_expect(ref_matrix_make(matrix, m, value, a, NULL) == ATN_OK);
    for (int i = 0; i < m * m; i++) {
        double want = entry(matrix, m, value, i / m, i % m);
        cr_expect(fabs(a[i] - want) <= 8 * DBL_EPSILON && a[i] == a[i % m * m + i / m],
                  "%s m=%d value=%g (%d,%d) got=%.17g want=%.17g", ref_matrix_name(matrix), m,
                  value, i / m, i % m, a[i], want);
    }
    free(a);
}

Test(matrices, entries_and_symmetry)
{
    for (int c = 0; c < CASES; c++)
        for (int v = 0; v < 5; v++)
            for (int s = 0; s < 8 && cases[c].sizes[s]; s++)
                check_entries(cases[c].matrix, cases[c].sizes[s], cases[c].values[v]);
}

/* By hand: m = 5 in blocks of 2, 2, 1; two tokens at distance delta; four points on a ring. */
Test(matrices, known_spectra)
{
    static const struct {
        ref_matrix matrix;
        double value, want[5];
        int m;
    } known[] = {
        {REF_IDENTITY, 0, {1, 1, 1}, 3},
        {REF_ONES, 0, {4, 0, 0, 0}, 4},
        {REF_EQUICORRELATED, 0.25, {1.5, 0.75, 0.75}, 3},
        {REF_EQUICORRELATED, -0.25, {1.25, 1.25, 0.5}, 3},
        {REF_TWO, -0.75, {1.75, 0.25}, 2},
        {REF_BLOCKS, 0.5, {1.5, 1.5, 1, 0.5, 0.5}, 5},
        {REF_DUPLICATES, 0, {2, 1, 1, 0}, 4},
        {REF_CIRCULANT, 0, {4, 0, 0, 0}, 4},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double lambda[5];
        int m = known[i].m;
        cr_expect(ref_matrix_make(known[i].matrix, m, known[i].value, NULL, lambda) == ATN_OK);
        for (int j = 0; j < m; j++)
            cr_expect(fabs(lambda[j] - known[i].want[j]) <= 1e-18, "%s m=%d lambda_%d=%.17g",
                      ref_matrix_name(known[i].matrix), m, j, lambda[j]);
    }
    double lambda[4], a = exp(-2 * 0.7), b = exp(-4 * 0.7); /* chords^2 2 and 4 */
    cr_expect(ref_matrix_make(REF_CIRCULANT, 4, 0.7, NULL, lambda) == ATN_OK);
    const double want[] = {1 + 2 * a + b, 1 - b, 1 - b, 1 - 2 * a + b};
    for (int j = 0; j < 4; j++)
        cr_expect(fabs(lambda[j] - want[j]) <= 4e-16, "ring lambda_%d=%.17g want=%.17g", j,
                  lambda[j], want[j]);
    cr_expect(ref_matrix_make(REF_DUPLICATES, 3, 1e-3, NULL, lambda) == ATN_OK);
    cr_expect(fabs(lambda[2] - 5e-7) <= 1e-12 && lambda[1] == 1, "lambda_min=%g", lambda[2]);
}

Test(matrices, statuses)
{
    static const struct {
        int matrix;
        int64_t m;
        double value;
        atn_status want;
    } table[] = {
        {REF_IDENTITY, 0, 0, ATN_OK},
        {REF_CIRCULANT, 0, 1, ATN_OK},
        {REF_TORUS, 0, 1, ATN_OK},
        {REF_IDENTITY, -1, 0, ATN_ERR_SHAPE},
        {REF_ONES, INT64_MAX, 0, ATN_ERR_SHAPE},
        {REF_ONES, 16385, 0, ATN_ERR_SHAPE},
        {REF_TWO, 1, 0, ATN_ERR_SHAPE},
        {REF_TWO, 3, 0, ATN_ERR_SHAPE},
        {REF_TORUS, 8, 1, ATN_ERR_SHAPE},
        {REF_TORUS, 15, 1, ATN_ERR_SHAPE},
        {REF_BLOCKS, 2, 0, ATN_ERR_SHAPE},
        {REF_DUPLICATES, 1, 0, ATN_ERR_SHAPE},
        {REF_CIRCULANT, 4, -1, ATN_ERR_VALUE},
        {REF_TORUS, 4, -1, ATN_ERR_VALUE},
        {REF_DUPLICATES, 4, -1, ATN_ERR_VALUE},
        {REF_EQUICORRELATED, 4, NAN, ATN_ERR_VALUE},
        {REF_EQUICORRELATED, 4, INFINITY, ATN_ERR_VALUE},
        {REF_MATRIX_COUNT, 4, 0, ATN_ERR_VALUE},
        {-1, 4, 0, ATN_ERR_VALUE},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double a[16] = {-7}, lambda[4] = {-7};
        atn_status status =
            ref_matrix_make((ref_matrix)table[i].matrix, table[i].m, table[i].value, a, lambda);
        cr_expect(status == table[i].want, "case %zu %s want %s", i, atn_status_name(status),
                  atn_status_name(table[i].want));
        cr_expect(a[0] == -7 && lambda[0] == -7, "case %zu touched its output", i);
    }
    double one[4];
    cr_expect(ref_matrix_make(REF_ONES, 2, 0, NULL, NULL) == ATN_OK);
    cr_expect(ref_matrix_make(REF_ONES, 2, 0, one, NULL) == ATN_OK && one[3] == 1);
}

Test(matrices, names)
{
    for (int i = 0; i < REF_MATRIX_COUNT; i++) {
        cr_expect(strlen(ref_matrix_name((ref_matrix)i)) > 0, "%d", i);
    }
    cr_expect(strcmp(ref_matrix_name(REF_DUPLICATES), "duplicates") == 0);
    cr_expect(!ref_matrix_name(REF_MATRIX_COUNT) && !ref_matrix_name((ref_matrix)-1));
}

/* dlatms' modes (dlatm1.f), descending: what index i of n carries. Mode 5 is random. */
static double prescribed(int mode, int i, int n, double condition)
{
    switch (abs(mode)) {
    case 1:
        return i == 0 ? 1 : 1 / condition;
    case 2:
        return i < n - 1 ? 1 : 1 / condition;
    case 3:
        return pow(condition, -(double)i / (n - 1));
    default:
        return 1 - (double)i / (n - 1) * (1 - 1 / condition);
    }
}

Test(matrices, latms_prescription)
{
    enum { N = 6 };
    for (int mode = -5; mode <= 5; mode++) {
        if (mode == 0)
            continue;
        double a[N * 9], sigma[N], square[N * N], lambda[N];
        for (int i = 0; i < N; i++)
            a[i] = square[i] = sigma[i] = lambda[i] = NAN; /* only written, never read */
        cr_expect(latms(N, 9, mode, 1e4, 1, a, sigma) == ATN_OK);
        cr_expect(latms_symmetric(N, mode, 1e4, 1, square, lambda) == ATN_OK);
        cr_expect(order_ratio(N, sigma, true) == 0 && order_ratio(N, lambda, true) == 0, "mode %d",
                  mode);
        for (int i = 0; i < N && abs(mode) < 5; i++) {
            double want = prescribed(mode, i, N, 1e4);
            cr_expect(fabs(sigma[i] - want) <= 1e-15 && fabs(lambda[i] - want) <= 1e-15,
                      "mode=%d i=%d sigma=%g lambda=%g want=%g", mode, i, sigma[i], lambda[i],
                      want);
        }
        cr_expect(sigma[0] <= 1 && sigma[N - 1] >= 0.99e-4, "mode %d: %g .. %g", mode, sigma[0],
                  sigma[N - 1]);
        for (int i = 0; i < N * N; i++)
            cr_expect(square[i] == square[i % N * N + i / N], "mode=%d (%d,%d)", mode, i / N,
                      i % N);
    }
}

Test(matrices, latms_seeds)
{
    double a[25], b[25], s[5];
    cr_assert(latms(5, 5, 3, 100, 1, a, s) == ATN_OK);
    cr_assert(latms(5, 5, 3, 100, 1, b, s) == ATN_OK);
    cr_expect(memcmp(a, b, sizeof a) == 0, "one seed, two matrices");
    for (int64_t seed = 2; seed < 50; seed++) {
        cr_assert(latms(5, 5, 3, 100, seed, b, s) == ATN_OK);
        cr_expect(fabs(a[0] - b[0]) > 1e-6, "seeds 1 and %d give one matrix", (int)seed);
    }
    cr_expect(latms(5, 5, 3, 100, INT64_MAX, b, s) == ATN_OK);
}
