/* SPDX-License-Identifier: BSD-3-Clause */
/* spectral/norm-growth: norms against closed forms, fits against what can be recomputed from the
 * rows, certified values. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <matrices.h>
#include <newton.h>

#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "spectral/norm_growth.h"

TestSuite(spectral_norm_growth, .init = scratch_begin, .fini = scratch_end);

static const double u = 0x1p-53;

/* ---- Norms of Fig. 6b ---- */

/* Matrices whose rows all have the sum lambda_max: D = lambda_max I, and X_20 has the eigenvalues
 * f_20(lambda_i). */
Test(spectral_norm_growth, norms_of_matrices_with_equal_row_sums)
{
    static const struct {
        ref_matrix matrix;
        int64_t m;
        double value;
    } cases[] = {{REF_IDENTITY, 5, 0},
                 {REF_EQUICORRELATED, 16, 0.9},
                 {REF_EQUICORRELATED, 2, 0.5},
                 {REF_CIRCULANT, 49, 20},
                 {REF_TORUS, 36, 3},
                 {REF_TWO, 2, 0.999},
                 {REF_EQUICORRELATED, 64, 1e-3}};
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t m = cases[i].m;
        double *a = make_matrix(m, m), *lambda = make_matrix(m, 1), filter = 0;
        growth_norms got;
        cr_assert(ref_matrix_make(cases[i].matrix, m, cases[i].value, a, lambda) == ATN_OK);
        double d = lambda[0], lowest = lambda[m - 1], tolerance = 20 * (double)m * u * d / lowest;
        for (int64_t k = 0; k < m; k++)
            filter = fmax(filter, fabs(ref_filter(2 / (d * d), 20, lambda[k])));
        int code = growth_measure(context, m, a, &got);
        cr_expect(code == EXIT_PASS && !got.pinv_below_floor && !got.normalised_below_floor &&
                      close_to(got.lambda_min, lowest, tolerance) &&
                      close_to(got.lambda_max, d, tolerance) && close_to(got.d_min, d, tolerance) &&
                      close_to(got.d_max, d, tolerance),
                  "%s m=%" PRId64 ": %g, want %g; d %g..%g", ref_matrix_name(cases[i].matrix), m,
                  got.lambda_min, lowest, got.d_min, got.d_max);
        cr_expect(close_to(got.pinv_norm, 1 / lowest, tolerance) &&
                      close_to(got.normalised_norm, 1 / (d * lowest), tolerance),
                  "%s m=%" PRId64 ": %g, want %g; normalised %g", ref_matrix_name(cases[i].matrix),
                  m, got.pinv_norm, 1 / lowest, got.normalised_norm);
        /* alpha lambda_max^2 = 2 but for rounding, which 20 steps magnify 2^20 times */
        double slack = 1e-8 / d + tolerance * filter;
        cr_expect(fabs(got.iterate_norm - filter) <= slack &&
                      fabs(got.normalised_iterate_norm - filter / d) <= slack / d,
                  "%s m=%" PRId64 ": iterate %g, want %g; normalised %g",
                  ref_matrix_name(cases[i].matrix), m, got.iterate_norm, filter,
                  got.normalised_iterate_norm);
        free(lambda);
        free(a);
    }
    atn_context_free(context);
}

/* Two tokens at distance delta among others far away, c = exp(-delta^2/2): rows sum to 1 + c and 1,
 * so that D^1/2 A D^1/2 has the eigenvalues (1 + c)(1 +- c) and 1, and D^-1/2 X D^-1/2 has
 * f(1 +- c)/(1 + c) and f(1). */
Test(spectral_norm_growth, norms_of_near_duplicates)
{
    static const double deltas[] = {2, 0.5, 1e-2, 1e-4};
    enum { M = 6 };
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++) {
        double a[M * M], lambda[M], gap = -expm1(-deltas[i] * deltas[i] / 2), d = 2 - gap;
        double pair = ref_filter(2 / (d * d), 20, gap), single = ref_filter(2 / (d * d), 20, 1);
        double tolerance = 20 * M * u / gap;
        growth_norms got;
        cr_assert(ref_matrix_make(REF_DUPLICATES, M, deltas[i], a, lambda) == ATN_OK);
        int code = growth_measure(context, M, a, &got);
        cr_expect(code == EXIT_PASS && !got.pinv_below_floor && !got.normalised_below_floor &&
                      close_to(got.pinv_norm, 1 / gap, tolerance) &&
                      close_to(got.normalised_norm, fmax(1, 1 / (d * gap)), tolerance),
                  "delta=%g: %g, want %g; normalised %g", deltas[i], got.pinv_norm, 1 / gap,
                  got.normalised_norm);
        cr_expect(close_to(got.d_min, 1, u) && close_to(got.d_max, d, 4 * u), "delta=%g: d %g..%g",
                  deltas[i], got.d_min, got.d_max);
        cr_expect(
            close_to(got.iterate_norm, fmax(pair, single), 1e-7 + tolerance) &&
                close_to(got.normalised_iterate_norm, fmax(pair / d, single), 1e-7 + tolerance),
            "delta=%g: iterate %g, want %g; normalised %g", deltas[i], got.iterate_norm,
            fmax(pair, single), got.normalised_iterate_norm);
    }
    atn_context_free(context);
}

Test(spectral_norm_growth, below_the_floor_norms_are_lower_bounds)
{
    static const struct {
        ref_matrix matrix;
        double value, lambda_min;
    } cases[] = {{REF_ONES, 0, 0}, {REF_DUPLICATES, 0, 0}, {REF_DUPLICATES, 1e-9, 5e-19}};
    enum { M = 8 };
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double a[M * M], lambda[M];
        growth_norms got;
        cr_assert(ref_matrix_make(cases[i].matrix, M, cases[i].value, a, lambda) == ATN_OK);
        int code = growth_measure(context, M, a, &got);
        cr_expect(
            code == EXIT_PASS && got.pinv_below_floor && got.normalised_below_floor &&
                close_to(got.pinv_norm, 1 / (2 * M * u * got.lambda_max), 4 * u) &&
                close_to(got.normalised_norm, 1 / (2 * M * u * got.normalised_lambda_max), 4 * u),
            "%s: %g at lambda_max=%g", ref_matrix_name(cases[i].matrix), got.pinv_norm,
            got.lambda_max);
        cr_expect(got.pinv_norm * cases[i].lambda_min <= 1, "%s: above the norm",
                  ref_matrix_name(cases[i].matrix));
    }
    atn_context_free(context);
    double floor = 8 * u * 3;
    cr_expect(!growth_below_floor(8, floor, 3) && growth_below_floor(8, nextafter(floor, 0), 3) &&
              growth_below_floor(8, -1, 3) && growth_below_floor(8, NAN, 3));
    cr_expect(close_to(growth_inverse_norm(8, floor, 3), 1 / floor, u) &&
              close_to(growth_inverse_norm(8, nextafter(floor, 0), 3), 0.5 / floor, 2 * u));
}

/* A block of 8 with 1/2 off the diagonal (row sums 4.5) and two nearly equal tokens: D stretches
 * the block's eigenvalue 4.5 to 20.25, but the pair's 1 - c only to about twice itself. */
Test(spectral_norm_growth, normalisation_may_put_a_row_below_the_floor)
{
    enum { COUNT = 10 };
    double a[COUNT * COUNT], gap = 70 * u;
    growth_norms got;
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++)
            a[i * COUNT + j] = i == j ? 1 : i < 8 && j < 8 ? 0.5 : i >= 8 && j >= 8 ? 1 - gap : 0;
    atn_context *context = make_context();
    int code = growth_measure(context, COUNT, a, &got);
    cr_expect(code == EXIT_PASS && !got.pinv_below_floor && got.normalised_below_floor &&
                  close_to(got.pinv_norm, 1 / gap, 0.2) &&
                  close_to(got.normalised_norm, 1 / (2 * COUNT * u * 20.25), 1e-13),
              "lambda_min=%g, normalised %g; norms %g, %g", got.lambda_min,
              got.normalised_lambda_min, got.pinv_norm, got.normalised_norm);
    atn_context_free(context);
}

/* An equicorrelated matrix whose smallest eigenvalue sits where f_20 is largest attains the cap:
 * with delta = 1 - value, 2^20 alpha delta^2 = t for alpha = 2/(m - (m - 1) delta)^2. */
Test(spectral_norm_growth, the_cap_of_the_iterate_is_attained)
{
    enum { M = 16 };
    double best = 0, best_t = 0;
    for (double t = 1.2; t < 1.3; t += 1e-6)
        if (-expm1(-t) / sqrt(t) > best) {
            best = -expm1(-t) / sqrt(t);
            best_t = t;
        }
    cr_expect(close_to(growth_iterate_cap(3) * 3 / sqrt(0x1p21), best, 1e-9), "c=%.12f", best);
    double root = sqrt(best_t / 0x1p21), delta = M * root / (1 + (M - 1) * root);
    double a[M * M], lambda[M];
    growth_norms got;
    atn_context *context = make_context();
    cr_assert(ref_matrix_make(REF_EQUICORRELATED, M, 1 - delta, a, lambda) == ATN_OK);
    int code = growth_measure(context, M, a, &got);
    cr_expect(code == EXIT_PASS && close_to(got.iterate_norm, got.iterate_cap, 1e-6),
              "|X|=%.12g cap=%.12g", got.iterate_norm, got.iterate_cap);
    atn_context_free(context);
}

/* Default samples of iid, in one sampling. */
Test(spectral_norm_growth, large_matrices_have_one_sample)
{
    static const struct {
        const char *options;
        int64_t points;
    } cases[] = {{"--m 256", 5},         {"--m 289", 1},          {"--quick --m 256", 2},
                 {"--quick --m 289", 1}, {"--full --m 256", 100}, {"--full --m 289", 100}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        partial_run r;
        char options[80];
        snprintf(options, sizeof options, "--input iid --sampling pool %s", cases[i].options);
        prepare_run(&r, &spectral_norm_growth, options);
        cr_expect_eq(r.points, cases[i].points, "%s: %" PRId64, options, r.points);
        end_run(&r);
    }
}

/* ---- Growth ---- */

/* The mean over the samples of log10 of a column at one m. */
static double mean_log(const table *t, const char *name, int64_t m, const char *quantity)
{
    double sum = 0, count = 0;
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "input", name) && cell_integer(t, row, "m") == m) {
            sum += log10(cell_real(t, row, quantity));
            count++;
        }
    return sum / count;
}

/* S22, S23: on a smooth field the local exponents grow past 2 and, normalised, past 1; on i.i.d.
 * tokens the norm grows slower than m. */
Test(spectral_norm_growth, smooth_fields_outgrow_any_power_and_iid_tokens_do_not)
{
    static const int64_t m[] = {49, 100, 196, 324};
    cr_assert(run_experiment(&spectral_norm_growth,
                             "--input smooth,iid --m 49,100,196,324 --samples 2 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_norm_growth, "out", 0);
    double before = 0, normalised = 0;
    for (int i = 1; i < 4; i++) {
        double step = log10((double)m[i] / (double)m[i - 1]);
        double exponent = (mean_log(t, "smooth", m[i], "pinv_norm") -
                           mean_log(t, "smooth", m[i - 1], "pinv_norm")) /
                          step;
        normalised = (mean_log(t, "smooth", m[i], "normalised_norm") -
                      mean_log(t, "smooth", m[i - 1], "normalised_norm")) /
                     step;
        double iid =
            (mean_log(t, "iid", m[i], "pinv_norm") - mean_log(t, "iid", m[i - 1], "pinv_norm")) /
            step;
        cr_expect(exponent > before, "smooth to m=%" PRId64 ": %.2f after %.2f", m[i], exponent,
                  before);
        cr_expect(iid > 0.02 && iid < 1, "iid to m=%" PRId64 ": %.2f", m[i], iid);
        before = exponent;
    }
    cr_expect(before > 2 && normalised > 1, "smooth: %.2f, normalised %.2f", before, normalised);
    table_free(t);
}

typedef struct {
    int64_t points, m_min, m_max;
    double exponent, std_error, residual;
} line;

static const char *const certified_columns[] = {"pinv_lower", "pinv_upper", "normalised_lower",
                                                "normalised_upper", "certified_bits"};

/* Whether f64 gives a value to be fitted: norms of the inverse above the floor of their own matrix,
 * iterates always. */
static bool counts(const table *t, int64_t row, const char *quantity)
{
    static const char *const ends[][3] = {
        {"pinv_norm", "lambda_min", "lambda_max"},
        {"normalised_norm", "normalised_lambda_min", "normalised_lambda_max"}};
    for (int i = 0; i < 2; i++)
        if (strcmp(quantity, ends[i][0]) == 0)
            return cell_real(t, row, ends[i][1]) >=
                   (double)cell_integer(t, row, "m") * u * cell_real(t, row, ends[i][2]);
    return cell_real(t, row, quantity) > 0;
}

/* A straight line through the points of one input and quantity that count. */
static line fit_line(const table *t, const char *name, const char *quantity, bool power)
{
    double n = 0, x_sum = 0, y_sum = 0, xx = 0, xy = 0, squares = 0;
    line fit = {.m_min = INT64_MAX};
    for (int pass = 0; pass < 3; pass++)
        for (int64_t row = 0; row < table_rows(t); row++) {
            if (!cell_is(t, row, "input", name) || !counts(t, row, quantity))
                continue;
            int64_t m = cell_integer(t, row, "m");
            double x = power ? log((double)m) : sqrt((double)m);
            double y = log(cell_real(t, row, quantity)), dx = x - x_sum / n, dy = y - y_sum / n;
            if (pass == 0) {
                n++;
                x_sum += x;
                y_sum += y;
                fit.m_min = m < fit.m_min ? m : fit.m_min;
                fit.m_max = m > fit.m_max ? m : fit.m_max;
            } else if (pass == 1) {
                xx += dx * dx;
                xy += dx * dy;
            } else {
                squares += (dy - xy / xx * dx) * (dy - xy / xx * dx);
            }
        }
    fit.points = (int64_t)n;
    fit.exponent = xy / xx;
    fit.std_error = sqrt(squares / (n - 2) / xx);
    fit.residual = sqrt(squares / n) / log(10);
    return fit;
}

Test(spectral_norm_growth, fits_leave_out_lower_bounds_only)
{
    cr_assert(run_experiment(&spectral_norm_growth,
                             "--input smooth,iid,constant --m 4,9,16,25,49,64 --scale 1e-7 "
                             "--out out --samples 2 --certify 0 --sampling pool") == EXIT_PASS);
    table *t = read_output(&spectral_norm_growth, "out", 0);
    table *fits = read_output(&spectral_norm_growth, "out", 1);
    cr_assert(table_rows(t) == 36 && table_rows(fits) == 3 * 4 * 2, "%" PRId64 " %" PRId64,
              table_rows(t), table_rows(fits));
    for (int64_t row = 0; row < table_rows(fits); row++) {
        const char *name = cell_text(fits, row, "input"), *law = cell_text(fits, row, "law");
        const char *quantity = cell_text(fits, row, "quantity");
        bool iterate = strstr(quantity, "iterate"), smooth = strcmp(name, "smooth") == 0;
        line want = fit_line(t, name, quantity, strcmp(law, "power") == 0);
        cr_expect(cell_integer(fits, row, "points") == want.points, "%s %s: %" PRId64 " points",
                  name, quantity, want.points);
        if (strcmp(name, "constant") == 0) {
            /* A is of ones: X_20 is 0 but for rounding */
            cr_expect(iterate || (want.points == 0 && isnan(cell_real(fits, row, "exponent")) &&
                                  cell_missing(fits, row, "m_min")));
            continue;
        }
        cr_expect(!smooth || (iterate ? want.points == 12 : want.points > 3 && want.points < 12),
                  "%s %s: %" PRId64 " of 12 points", name, quantity, want.points);
        cr_expect(close_to(cell_real(fits, row, "exponent"), want.exponent, 1e-9) &&
                      close_to(cell_real(fits, row, "std_error"), want.std_error, 1e-7) &&
                      close_to(cell_real(fits, row, "residual"), want.residual, 1e-7) &&
                      cell_integer(fits, row, "m_min") == want.m_min &&
                      cell_integer(fits, row, "m_max") == want.m_max,
                  "%s %s %s: %g, want %g", name, cell_text(fits, row, "quantity"), law,
                  cell_real(fits, row, "exponent"), want.exponent);
    }
    for (int64_t row = 0; row < table_rows(t); row++) {
        bool pinv = cell_boolean(t, row, "pinv_below_floor");
        bool normalised = cell_boolean(t, row, "normalised_below_floor");
        cr_expect(pinv != counts(t, row, "pinv_norm") &&
                      normalised != counts(t, row, "normalised_norm") &&
                      cell_boolean(t, row, "below_floor") == (pinv || normalised),
                  "row %" PRId64, row);
        for (int i = 0; i < 5; i++)
            cr_expect(cell_missing(t, row, certified_columns[i]));
    }
    table_free(fits);
    table_free(t);
}

/* Two tokens delta apart: norms 1/gap and 1/(gap (2 - gap)), gap = 1 - exp(-s delta^2). */
Test(spectral_norm_growth, certified_norms_of_two_tokens)
{
    static const double deltas[] = {1, 1e-3, 1e-12, 1e-60};
    for (int i = 0; i < 4 && ref_certify_library(); i++) {
        double tokens[] = {1, 0, 1, deltas[i]}, gap = -expm1(-0.3 * deltas[i] * deltas[i]);
        growth_norms got = {.pinv_below_floor = true, .normalised_below_floor = true, .d_min = 7};
        cr_assert(growth_certify(2, 2, tokens, 0.3, &got) == EXIT_PASS);
        cr_expect(!got.pinv_below_floor && !got.normalised_below_floor && got.d_min == 7 &&
                      close_to(got.pinv_norm, 1 / gap, 1e-12) && got.pinv.lower <= got.pinv_norm &&
                      got.pinv_norm <= got.pinv.upper,
                  "delta=%g: %.17g in [%.17g, %.17g]", deltas[i], got.pinv_norm, got.pinv.lower,
                  got.pinv.upper);
        cr_expect(!got.singular && close_to(got.normalised_norm, 1 / (gap * (2 - gap)), 1e-12) &&
                      got.normalised.lower <= got.normalised_norm &&
                      got.normalised_norm <= got.normalised.upper,
                  "delta=%g: %.17g", deltas[i], got.normalised_norm);
    }
    double twins[] = {1, 2, 1, 2};
    growth_norms got = {.pinv_below_floor = true, .pinv_norm = 5, .normalised_norm = 6};
    cr_assert(!ref_certify_library() || growth_certify(2, 2, twins, 0, &got) == EXIT_PASS);
    cr_expect(got.singular == !!ref_certify_library());
    cr_expect(got.pinv_below_floor && got.pinv_norm == 5 && got.normalised_norm == 6 &&
              !got.pinv.certified && !got.normalised.certified);
}

/* One norm of a row below the floor: in its enclosure, which is narrow and above the lower bound
 * that f64 gave; lambda_min of f64 is off by less than m u lambda_max (Weyl). */
static void expect_enclosed(const table *t, int64_t row, const char *const names[6])
{
    double norm = cell_real(t, row, names[0]), lower = cell_real(t, row, names[1]);
    double upper = cell_real(t, row, names[2]), lowest = cell_real(t, row, names[3]);
    double floor = (double)cell_integer(t, row, "m") * u * cell_real(t, row, names[4]);
    cr_expect(lower <= norm && norm <= upper && upper - lower <= 1e-6 * lower &&
                  !cell_boolean(t, row, names[5]),
              "row %" PRId64 ": %s %.17g, [%.17g, %.17g]", row, names[0], norm, lower, upper);
    cr_expect(fabs(1 / norm - lowest) <= floor, "row %" PRId64 ": %s %g, f64 %g, floor %g", row,
              names[0], 1 / norm, lowest, floor);
}

/* photos at m = 100 has rows on both sides of the floor; smooth fields at s = 1e-7 are below it
 * from m = 49; constant has no inverse. */
Test(spectral_norm_growth, rows_below_the_floor_are_certified)
{
    static const char *const names[2][6] = {
        {"pinv_norm", "pinv_lower", "pinv_upper", "lambda_min", "lambda_max", "pinv_below_floor"},
        {"normalised_norm", "normalised_lower", "normalised_upper", "normalised_lambda_min",
         "normalised_lambda_max", "normalised_below_floor"}};
    static const char *const options[] = {"--input photos --m 100 --samples 5 --out out",
                                          "--input smooth,constant --m 4,49,64 --scale 1e-7 "
                                          "--certify 49 --samples 1 --out out"};
    int certified[2] = {0}, bounds[2] = {0}, plain[2] = {0};
    for (int i = 0; i < 2 && ref_certify_library(); i++) {
        cr_assert(run_experiment(&spectral_norm_growth, options[i]) == EXIT_PASS);
        table *t = read_output(&spectral_norm_growth, "out", 0);
        table *fits = read_output(&spectral_norm_growth, "out", 1);
        for (int64_t row = 0; row < table_rows(t); row++) {
            bool below = !counts(t, row, "pinv_norm") || !counts(t, row, "normalised_norm");
            bool possible = !cell_is(t, row, "input", "constant") &&
                            (i == 0 || cell_integer(t, row, "m") <= 49);
            for (int j = 0; j < 5; j++)
                cr_expect(cell_missing(t, row, certified_columns[j]) == !(below && possible),
                          "%s: row %" PRId64 " %s", options[i], row, certified_columns[j]);
            cr_expect(cell_boolean(t, row, "singular") ==
                          (cell_is(t, row, "input", "constant") && cell_integer(t, row, "m") <= 49),
                      "%s: row %" PRId64, options[i], row);
            cr_expect(cell_boolean(t, row, "below_floor") == (below && !possible),
                      "%s: row %" PRId64, options[i], row);
            for (int j = 0; j < 2 && below && possible; j++)
                expect_enclosed(t, row, names[j]);
            certified[i] += below && possible;
            bounds[i] += below && !possible;
            plain[i] += !below;
        }
        for (int64_t row = 0; row < table_rows(fits); row++)
            cr_expect(i == 1 || cell_integer(fits, row, "points") == 5,
                      "certified rows are fitted");
        table_free(fits);
        table_free(t);
    }
    cr_expect(!ref_certify_library() || (certified[0] > 0 && plain[0] > 0 && bounds[0] == 0 &&
                                         certified[1] > 0 && bounds[1] >= 4 && plain[1] > 0),
              "%d %d %d, %d %d %d", certified[0], plain[0], bounds[0], certified[1], plain[1],
              bounds[1]);
}
