/* SPDX-License-Identifier: BSD-3-Clause */
/* The spectral experiments: their numbers against closed forms and dense references, and their
 * CSVs against what can be recomputed from them. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linear_algebra.h>
#include <matrices.h>
#include <newton.h>
#include <soft.h>

#include "common/report.h"
#include "registry.h"
#include "scratch.h"
#include "spectral/landmarks.h"
#include "spectral/norm_growth.h"
#include "spectral/operator_norms.h"

TestSuite(spectral, .init = scratch_begin, .fini = scratch_end);

static const double u = 0x1p-53;

/* ---- Running experiments ---- */

/* Runs e with options, words separated by blanks. */
static int run_experiment(const experiment *e, const char *options)
{
    char *words[64], *text = must_format("%s", options);
    int count = 0;
    for (char *word = strtok(text, " "); word && count < 64; word = strtok(NULL, " "))
        words[count++] = word;
    settings s;
    int code = settings_parse(&s, e->options, count, words);
    if (code == EXIT_PASS) {
        cr_assert(freopen("/dev/null", "w", stdout));
        code = experiment_run(e, &s);
        settings_free(&s);
    }
    free(text);
    return code;
}

/* The rows of an experiment's output number `output` in folder out. */
static table *read_output(const experiment *e, const char *out, int output)
{
    size_t size;
    char *path = must_format("%s/spectral/%s.csv", out, e->outputs[output].name);
    char *text = (char *)scratch_read(path, &size), *rows = strchr(text, '\n') + 1;
    table *t = table_create(e->outputs[output].columns, e->outputs[output].column_count);
    cr_assert(table_read_rows(t, rows), "%s", path);
    free(text);
    free(path);
    return t;
}

static double get_real(const table *t, int64_t row, const char *name)
{
    return table_get_real(t, row, table_column(t, name));
}

static int64_t get_integer(const table *t, int64_t row, const char *name)
{
    return table_get_integer(t, row, table_column(t, name));
}

static const char *get_text(const table *t, int64_t row, const char *name)
{
    return table_get_text(t, row, table_column(t, name));
}

static bool get_boolean(const table *t, int64_t row, const char *name)
{
    return table_get_boolean(t, row, table_column(t, name));
}

static atn_context *make_context(void)
{
    atn_context *context = NULL;
    atn_context_options options = {.device = ATN_CPU, .threads = 1};
    cr_assert(atn_context_create(&options, &context) == ATN_OK);
    return context;
}

static double *make_matrix(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

/* |got - want| <= tolerance |want|, false for NaN. */
static bool near(double got, double want, double tolerance)
{
    return fabs(got - want) <= tolerance * fabs(want);
}

/* ---- Landmarks ---- */

Test(spectral, photographs_give_the_numbers_of_landmarks_that_pooling_has)
{
    static const int64_t sides[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 21, 32};
    settings s = {.inputs = {1, (const char *[]){"photos"}}};
    input_set set;
    token_grid grid;
    int64_t nearest;
    cr_assert(input_set_open(&s, &set) == EXIT_PASS);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        int64_t p = sides[i];
        bool found = landmark_grid(set.items[0], p * p, &grid, &nearest);
        cr_expect(found && grid.stride == 64 / p && grid_landmarks(&grid) == p * p &&
                      grid.height == 64 && grid.width == 64 && grid.patch == 4,
                  "p=%" PRId64 " found=%d stride=%" PRId64, p, found, grid.stride);
    }
    cr_expect(!landmark_grid(set.items[0], 121, &grid, &nearest) && nearest == 100,
              "nearest to 121: %" PRId64, nearest);
    input_set_free(&set);
}

Test(spectral, synthetic_inputs_give_squares)
{
    static const int64_t nearest_squares[][2] = {{1, 1},   {2, 1},   {3, 4},      {16, 16},
                                                 {56, 49}, {57, 64}, {1024, 1024}};
    settings s = {.inputs = {1, (const char *[]){"iid"}}};
    input_set set;
    cr_assert(input_set_open(&s, &set) == EXIT_PASS);
    for (size_t i = 0; i < sizeof nearest_squares / sizeof *nearest_squares; i++) {
        token_grid grid;
        int64_t m = nearest_squares[i][0], nearest;
        bool found = landmark_grid(set.items[0], m, &grid, &nearest);
        cr_expect(found == (m == nearest_squares[i][1]) && nearest == nearest_squares[i][1] &&
                      grid.height * grid.width == nearest && grid.stride == 1,
                  "m=%" PRId64 " found=%d nearest=%" PRId64, m, found, nearest);
    }
    input_set_free(&set);
}

Test(spectral, landmarks_are_pooled_tokens)
{
    settings s = {.inputs = {1, (const char *[]){"photos"}}};
    atn_context *context = make_context();
    input_set set;
    token_grid grid = {14, 14, 16, 3}; /* 3 does not divide 14 */
    double *tokens = make_matrix(196, TOKEN_DIM), *landmarks = make_matrix(16, TOKEN_DIM);
    double *want = make_matrix(16, TOKEN_DIM);
    cr_assert(input_set_open(&s, &set) == EXIT_PASS);
    cr_assert(make_landmarks(set.items[0], &grid, 3, 2, context, tokens, landmarks) == EXIT_PASS);
    ref_pool(14, 14, TOKEN_DIM, 3, tokens, want);
    for (int64_t i = 0; i < 16 * TOKEN_DIM; i++)
        cr_expect(fabs(landmarks[i] - want[i]) <= 1e-13, "(%" PRId64 ",%" PRId64 ") %g, want %g",
                  i / TOKEN_DIM, i % TOKEN_DIM, landmarks[i], want[i]);
    free(want);
    free(landmarks);
    free(tokens);
    input_set_free(&set);
    atn_context_free(context);
}

/* Two matrices of 14 x 14 tokens of width 3. */
static void write_file(void)
{
    enum { COUNT = 2 * 196 * 3 };
    unsigned char bytes[128 + COUNT * sizeof(double)];
    double values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = sin(i * 1.7);
    memset(bytes, ' ', 128);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 196, 3), }", 64);
    bytes[127] = '\n';
    memcpy(bytes + 128, values, sizeof values);
    scratch_write("tokens.npy", bytes, sizeof bytes);
}

Test(spectral, a_file_gives_what_its_grid_pools_to)
{
    static const int64_t want[] = {4, 9, 16, 49};
    write_file();
    cr_assert(run_experiment(&spectral_norm_growth, "--input tokens.npy --out out") == EXIT_PASS);
    table *t = read_output(&spectral_norm_growth, "out", 0);
    cr_assert(table_rows(t) == 8, "%" PRId64 " rows", table_rows(t));
    for (int64_t row = 0; row < 8; row++)
        cr_expect(get_integer(t, row, "m") == want[row / 2] &&
                      get_integer(t, row, "sample") == row % 2 &&
                      strcmp(get_text(t, row, "input"), "tokens.npy") == 0,
                  "row %" PRId64 " m=%" PRId64, row, get_integer(t, row, "m"));
    table_free(t);
}

Test(spectral, what_an_input_cannot_give_is_a_usage_error)
{
    static const struct {
        const experiment *e;
        const char *options, *line;
    } cases[] = {
        {&spectral_norm_growth, "--input photos --m 4,50", "--m 50: photos cannot give"},
        {&spectral_norm_growth, "--input photos --m 50", "nearest it can give is 49"},
        {&spectral_eigenvalues, "--input iid --m 57", "nearest it can give is 64"},
        {&spectral_eigenvalues, "--input tokens.npy", "--m 1024: tokens.npy cannot give"},
        {&spectral_eigenvalues, "--input tokens.npy --m 5", "nearest it can give is 4"},
        {&spectral_eigenvalues, "--input tokens.npy --grid 98x2 --m 49 --samples 3",
         "tokens.npy has 2 matrices"},
        {&spectral_bounds, "--input smooth --m 48", "nearest it can give is 49"},
        {&spectral_bounds, "--input tokens.npy --samples 3", "tokens.npy has 2 matrices"},
        {&spectral_eigenvalues, "--input iid --m 16641", "expected at most 16384"},
        {&spectral_bounds, "--input smoth", "smooth"},
    };
    write_file();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        capture();
        int code = run_experiment(cases[i].e, cases[i].options);
        const char *line = captured();
        cr_expect(code == EXIT_USAGE && is_one_line_with(line, cases[i].line), "%s %s: %d, %s",
                  cases[i].e->name, cases[i].options, code, line);
    }
}

/* ---- Eigenvalues ---- */

Test(spectral, eigenvalues_are_a_spectrum)
{
    cr_assert(run_experiment(&spectral_eigenvalues,
                             "--input smooth,constant --m 49,4 --out out --seed 5") == EXIT_PASS);
    table *t = read_output(&spectral_eigenvalues, "out", 0);
    cr_assert(table_rows(t) == 2 * (49 + 4), "%" PRId64 " rows", table_rows(t));
    double trace = 0, largest = 0, before = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        int64_t index = get_integer(t, row, "index"), m = get_integer(t, row, "m");
        double lambda = get_real(t, row, "eigenvalue");
        bool constant = strcmp(get_text(t, row, "input"), "constant") == 0;
        largest = index == 1 ? lambda : largest;
        trace = index == 1 ? lambda : trace + lambda;
        cr_expect(index == 1 || lambda <= before, "row %" PRId64 ": not descending", row);
        cr_expect(get_boolean(t, row, "below_floor") == (fabs(lambda) < (double)m * u * largest),
                  "row %" PRId64 " lambda=%g", row, lambda);
        cr_expect(!constant || get_boolean(t, row, "below_floor") == (index > 1), "row %" PRId64,
                  row);
        cr_expect(index < m || near(trace, (double)m, 1e-13), "m=%" PRId64 " trace=%.17g", m,
                  trace);
        before = lambda;
    }
    cr_expect(get_integer(t, 0, "seed") == 5);
    table_free(t);
}

/* Photographs have eigenvalues on both sides of the floor, some close to it. */
Test(spectral, the_floor_is_m_u_lambda_1)
{
    int64_t close = 0;
    cr_assert(run_experiment(&spectral_eigenvalues, "--input photos --m 441 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_eigenvalues, "out", 0);
    double floor = 441 * u * get_real(t, 0, "eigenvalue");
    for (int64_t row = 0; row < table_rows(t); row++) {
        double lambda = get_real(t, row, "eigenvalue");
        close += fabs(lambda) > floor / 2 && fabs(lambda) < 2 * floor;
        cr_expect(get_boolean(t, row, "below_floor") == (fabs(lambda) < floor), "row %" PRId64,
                  row);
    }
    cr_expect(close > 4, "%" PRId64 " eigenvalues near the floor", close);
    table_free(t);
}

/* ---- Norms of Fig. 6b ---- */

/* Matrices whose rows all have the sum lambda_max: D = lambda_max I, and X_20 has the eigenvalues
 * f_20(lambda_i). */
Test(spectral, norms_of_matrices_with_equal_row_sums)
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
        cr_expect(code == EXIT_PASS && !got.below_floor &&
                      near(got.lambda_min, lowest, tolerance) &&
                      near(got.lambda_max, d, tolerance) && near(got.d_min, d, tolerance) &&
                      near(got.d_max, d, tolerance),
                  "%s m=%" PRId64 ": %g, want %g; d %g..%g", ref_matrix_name(cases[i].matrix), m,
                  got.lambda_min, lowest, got.d_min, got.d_max);
        cr_expect(near(got.pinv_norm, 1 / lowest, tolerance) &&
                      near(got.normalised_norm, 1 / (d * lowest), tolerance),
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
Test(spectral, norms_of_near_duplicates)
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
        cr_expect(code == EXIT_PASS && !got.below_floor &&
                      near(got.pinv_norm, 1 / gap, tolerance) &&
                      near(got.normalised_norm, fmax(1, 1 / (d * gap)), tolerance),
                  "delta=%g: %g, want %g; normalised %g", deltas[i], got.pinv_norm, 1 / gap,
                  got.normalised_norm);
        cr_expect(near(got.d_min, 1, u) && near(got.d_max, d, 4 * u), "delta=%g: d %g..%g",
                  deltas[i], got.d_min, got.d_max);
        cr_expect(near(got.iterate_norm, fmax(pair, single), 1e-7 + tolerance) &&
                      near(got.normalised_iterate_norm, fmax(pair / d, single), 1e-7 + tolerance),
                  "delta=%g: iterate %g, want %g; normalised %g", deltas[i], got.iterate_norm,
                  fmax(pair, single), got.normalised_iterate_norm);
    }
    atn_context_free(context);
}

Test(spectral, below_the_floor_norms_are_lower_bounds)
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
        cr_expect(code == EXIT_PASS && got.below_floor &&
                      near(got.pinv_norm, 1 / (2 * M * u * got.lambda_max), 4 * u) &&
                      near(got.normalised_norm, 1 / (2 * M * u * got.normalised_lambda_max), 4 * u),
                  "%s: %g at lambda_max=%g", ref_matrix_name(cases[i].matrix), got.pinv_norm,
                  got.lambda_max);
        cr_expect(got.pinv_norm * cases[i].lambda_min <= 1, "%s: above the norm",
                  ref_matrix_name(cases[i].matrix));
    }
    atn_context_free(context);
    double floor = 8 * u * 3;
    cr_expect(!growth_below_floor(8, floor, 3) && growth_below_floor(8, nextafter(floor, 0), 3) &&
              growth_below_floor(8, -1, 3) && growth_below_floor(8, NAN, 3));
    cr_expect(near(growth_inverse_norm(8, floor, 3), 1 / floor, u) &&
              near(growth_inverse_norm(8, nextafter(floor, 0), 3), 0.5 / floor, 2 * u));
}

/* A block of 8 with 1/2 off the diagonal (row sums 4.5) and two tokens nearly alike: D stretches
 * the block's eigenvalue 4.5 to 20.25, but the pair's 1 - c only to about twice itself. */
Test(spectral, normalisation_may_put_a_row_below_the_floor)
{
    enum { COUNT = 10 };
    double a[COUNT * COUNT], gap = 70 * u;
    growth_norms got;
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++)
            a[i * COUNT + j] = i == j ? 1 : i < 8 && j < 8 ? 0.5 : i >= 8 && j >= 8 ? 1 - gap : 0;
    atn_context *context = make_context();
    int code = growth_measure(context, COUNT, a, &got);
    cr_expect(code == EXIT_PASS && !growth_below_floor(COUNT, got.lambda_min, got.lambda_max) &&
                  got.below_floor && near(got.pinv_norm, 1 / gap, 0.2) &&
                  near(got.normalised_norm, 1 / (2 * COUNT * u * 20.25), 1e-13),
              "lambda_min=%g, normalised %g; norms %g, %g", got.lambda_min,
              got.normalised_lambda_min, got.pinv_norm, got.normalised_norm);
    atn_context_free(context);
}

/* An equicorrelated matrix whose smallest eigenvalue sits where f_20 is largest attains the cap:
 * with delta = 1 - value, 2^20 alpha delta^2 = t for alpha = 2/(m - (m - 1) delta)^2. */
Test(spectral, the_cap_of_the_iterate_is_attained)
{
    enum { M = 16 };
    double best = 0, best_t = 0;
    for (double t = 1.2; t < 1.3; t += 1e-6)
        if (-expm1(-t) / sqrt(t) > best) {
            best = -expm1(-t) / sqrt(t);
            best_t = t;
        }
    cr_expect(near(growth_iterate_cap(3) * 3 / sqrt(0x1p21), best, 1e-9), "c=%.12f", best);
    double root = sqrt(best_t / 0x1p21), delta = M * root / (1 + (M - 1) * root);
    double a[M * M], lambda[M];
    growth_norms got;
    atn_context *context = make_context();
    cr_assert(ref_matrix_make(REF_EQUICORRELATED, M, 1 - delta, a, lambda) == ATN_OK);
    int code = growth_measure(context, M, a, &got);
    cr_expect(code == EXIT_PASS && near(got.iterate_norm, got.iterate_cap, 1e-6),
              "|X|=%.12g cap=%.12g", got.iterate_norm, got.iterate_cap);
    atn_context_free(context);
}

/* ---- Growth ---- */

/* The mean over the samples of log10 of a column at one m. */
static double mean_log(const table *t, const char *name, int64_t m, const char *quantity)
{
    double sum = 0, count = 0;
    for (int64_t row = 0; row < table_rows(t); row++)
        if (strcmp(get_text(t, row, "input"), name) == 0 && get_integer(t, row, "m") == m) {
            sum += log10(get_real(t, row, quantity));
            count++;
        }
    return sum / count;
}

/* S22, S23: on a smooth field the local exponents grow past 2 and, normalised, past 1; on i.i.d.
 * tokens the norm grows slower than m. */
Test(spectral, smooth_fields_outgrow_any_power_and_iid_tokens_do_not)
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

/* A straight line through the points of one input and quantity that are above the floor. */
static line fit_line(const table *t, const char *name, const char *quantity, bool power)
{
    double n = 0, x_sum = 0, y_sum = 0, xx = 0, xy = 0, squares = 0;
    line fit = {.m_min = INT64_MAX};
    for (int pass = 0; pass < 3; pass++)
        for (int64_t row = 0; row < table_rows(t); row++) {
            if (strcmp(get_text(t, row, "input"), name) != 0 || get_boolean(t, row, "below_floor"))
                continue;
            int64_t m = get_integer(t, row, "m");
            double x = power ? log((double)m) : sqrt((double)m);
            double y = log(get_real(t, row, quantity)), dx = x - x_sum / n, dy = y - y_sum / n;
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

Test(spectral, fits_are_those_of_the_points_above_the_floor)
{
    cr_assert(run_experiment(&spectral_norm_growth,
                             "--input smooth,iid,constant --m 4,9,16,25,49,64 --scale 1e-7 "
                             "--out out --samples 2") == EXIT_PASS);
    table *t = read_output(&spectral_norm_growth, "out", 0);
    table *fits = read_output(&spectral_norm_growth, "out", 1);
    cr_assert(table_rows(t) == 36 && table_rows(fits) == 3 * 4 * 2, "%" PRId64 " %" PRId64,
              table_rows(t), table_rows(fits));
    for (int64_t row = 0; row < table_rows(fits); row++) {
        const char *name = get_text(fits, row, "input"), *law = get_text(fits, row, "law");
        line want = fit_line(t, name, get_text(fits, row, "quantity"), strcmp(law, "power") == 0);
        cr_expect(get_integer(fits, row, "points") == want.points, "%s: %" PRId64 " points", name,
                  want.points);
        if (strcmp(name, "constant") == 0) {
            cr_expect(want.points == 0 && isnan(get_real(fits, row, "exponent")) &&
                      table_is_missing(fits, row, table_column(fits, "m_min")));
            continue;
        }
        cr_expect(strcmp(name, "smooth") != 0 || (want.points > 3 && want.points < 12),
                  "%s: %" PRId64 " of 12 points are above the floor", name, want.points);
        cr_expect(near(get_real(fits, row, "exponent"), want.exponent, 1e-9) &&
                      near(get_real(fits, row, "std_error"), want.std_error, 1e-7) &&
                      near(get_real(fits, row, "residual"), want.residual, 1e-7) &&
                      get_integer(fits, row, "m_min") == want.m_min &&
                      get_integer(fits, row, "m_max") == want.m_max,
                  "%s %s %s: %g, want %g", name, get_text(fits, row, "quantity"), law,
                  get_real(fits, row, "exponent"), want.exponent);
    }
    table_free(fits);
    table_free(t);
}

/* ---- Norms of attention matrices ---- */

/* Dense matrices of an input: n = 196 tokens, m = 49 landmarks. */
enum { N = 196, M = 49 };
typedef struct {
    double tokens[N * TOKEN_DIM], landmarks[M * TOKEN_DIM], a[M * M], p[M * N], x[M * M];
    double s_hat[N * N];
} dense;

static dense *make_dense(atn_context *context, const char *name, double scale)
{
    settings s = {.inputs = {1, &name}};
    dense *made = must_allocate(1, sizeof *made);
    token_grid grid = {14, 14, 16, 2};
    input_set set;
    cr_assert(input_set_open(&s, &set) == EXIT_PASS);
    cr_assert(make_landmarks(set.items[0], &grid, 1, 0, context, made->tokens, made->landmarks) ==
              EXIT_PASS);
    input_set_free(&set);
    ref_gaussian(M, M, TOKEN_DIM, made->landmarks, made->landmarks, scale, made->a);
    ref_gaussian(M, N, TOKEN_DIM, made->landmarks, made->tokens, scale, made->p);
    return made;
}

static double dense_norm(dense *d, double scale, const double *inverse, bool normalise)
{
    double norm = NAN;
    cr_assert(ref_soft(N, M, TOKEN_DIM, 0, d->tokens, d->landmarks, NULL, scale, inverse, normalise,
                       d->s_hat, NULL) == ATN_OK);
    cr_assert(ref_spectral_norm(N, N, d->s_hat, &norm) == ATN_OK);
    return norm;
}

/* |A+|_inf, the largest absolute row sum. x is overwritten. */
static double pinv_norm_inf(const double *a, double *x)
{
    double largest = 0;
    cr_assert(ref_symmetric_pinv(M, a, -1, x, NULL, NULL, NULL) == ATN_OK);
    for (int i = 0; i < M; i++) {
        double row = 0;
        for (int j = 0; j < M; j++)
            row += fabs(x[i * M + j]);
        largest = fmax(largest, row);
    }
    return largest;
}

Test(spectral, small_norms_are_those_of_the_dense_matrices)
{
    static const char *const names[] = {"smooth", "iid:0.3", "photos", "clusters", "constant"};
    double scale = 1 / (2 * sqrt(TOKEN_DIM));
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dense *d = make_dense(context, names[i], scale);
        attention_norms got;
        double lambda[M], p_norm;
        int code = attention_norms_measure(context, M, N, d->a, d->p, &got);
        cr_assert(code == EXIT_PASS && make_iterate(context, M, d->a, d->x) == EXIT_PASS);
        cr_assert(ref_eigenvalues(M, d->a, lambda, NULL, NULL) == ATN_OK);
        cr_assert(ref_spectral_norm(M, N, d->p, &p_norm) == ATN_OK);
        double soft = dense_norm(d, scale, NULL, false), softpp = dense_norm(d, scale, NULL, true);
        double iterate = dense_norm(d, scale, d->x, false);
        double tolerance = 10 * u * (N + M * lambda[0] * got.pinv_norm);
        cr_expect(near(got.soft, soft, tolerance) && near(got.softpp, softpp, tolerance) &&
                      near(got.iterate, iterate, tolerance) && near(got.p_norm, p_norm, 1e-13),
                  "%s: soft %.12g, want %.12g; softpp %.12g, want %.12g; iterate %.12g, want %.12g "
                  "(tolerance %.2g)",
                  names[i], got.soft, soft, got.softpp, softpp, got.iterate, iterate, tolerance);
        double largest = pinv_norm_inf(d->a, d->x);
        cr_expect(near(got.pinv_norm_inf, largest, 1e-12) &&
                      (largest > 1.01 * got.pinv_norm) == (strcmp(names[i], "constant") != 0),
                  "%s: |A+|_inf %.12g, want %.12g", names[i], got.pinv_norm_inf, largest);
        free(d);
    }
    atn_context_free(context);
}

Test(spectral, softmax_norms_are_those_of_the_dense_matrix)
{
    enum { COUNT = 60 };
    double tokens[COUNT * 3], s[COUNT * COUNT], eigenvalue, norm, want;
    for (int i = 0; i < COUNT * 3; i++)
        tokens[i] = 4 * sin(i * 1.3) / (1 + i % 7);
    for (int i = 0; i < COUNT; i++) {
        double sum = 0;
        for (int j = 0; j < COUNT; j++) {
            double dot = 0;
            for (int k = 0; k < 3; k++)
                dot += tokens[i * 3 + k] * tokens[j * 3 + k];
            sum += s[i * COUNT + j] = exp(dot / sqrt(3));
        }
        for (int j = 0; j < COUNT; j++)
            s[i * COUNT + j] /= sum;
    }
    cr_assert(ref_spectral_norm(COUNT, COUNT, s, &want) == ATN_OK);
    cr_assert(softmax_norms(COUNT, 3, tokens, &eigenvalue, &norm) == EXIT_PASS);
    cr_expect(near(eigenvalue, 1, 1e-13) && near(norm, want, 1e-13) && norm > 1.3,
              "lambda_1=%.17g |S|=%.17g, want %.17g", eigenvalue, norm, want);
}

/* One token so large that all rows pick it: S has one column of ones, |S|_2 = sqrt(n), and the
 * exponentials overflow unless they are shifted. */
Test(spectral, softmax_norm_reaches_the_root_of_n)
{
    enum { COUNT = 25 };
    double tokens[COUNT], eigenvalue, norm;
    for (int i = 0; i < COUNT; i++)
        tokens[i] = i ? 1 : 1e5;
    cr_assert(softmax_norms(COUNT, 1, tokens, &eigenvalue, &norm) == EXIT_PASS);
    cr_expect(near(norm, 5, 1e-13) && near(eigenvalue, 1, 1e-13), "lambda_1=%.17g |S|=%.17g",
              eigenvalue, norm);
}

/* ---- Bounds ---- */

/* S06, S21: |S^|_2 <= lambda_1(S) <= n, whatever the input. */
Test(spectral, attention_never_exceeds_the_kernel_nor_n)
{
    static const char *const names[] = {"photos",    "smooth",    "smooth:8", "noisy",
                                        "iid",       "iid:0.3",   "clusters", "constant",
                                        "circulant", "duplicates"};
    enum { NAMES = sizeof names / sizeof *names };
    int corrected[NAMES] = {0}, iterate[NAMES] = {0}, kernel[NAMES] = {0};
    cr_assert(run_experiment(&spectral_bounds,
                             "--input photos,smooth,smooth:8,noisy,iid,iid:0.3,clusters,constant,"
                             "circulant,duplicates --samples 1 --out out") == EXIT_PASS);
    table *t = read_output(&spectral_bounds, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++) {
        const char *statement = get_text(t, row, "statement");
        double measured = get_real(t, row, "measured"), bound = get_real(t, row, "bound");
        bool above = !(measured <= bound * (1 + 1e-9));
        for (int i = 0; i < NAMES; i++) {
            if (strcmp(get_text(t, row, "input"), names[i]) != 0)
                continue;
            corrected[i] += strcmp(statement, "S06-corrected") == 0;
            iterate[i] += strcmp(statement, "S06-iterate") == 0;
            kernel[i] +=
                strcmp(statement, "S21-printed") == 0 && bound == (double)get_integer(t, row, "n");
            cr_expect(!get_boolean(t, row, "proved") || !above,
                      "%s %s n=%" PRId64 ": %.12g > %.12g", statement, names[i],
                      get_integer(t, row, "n"), measured, bound);
        }
        cr_expect(get_real(t, row, "ratio") == measured / bound, "row %" PRId64, row);
        cr_expect(strncmp(statement, "S22", 3) != 0 ||
                      strcmp(get_text(t, row, "input"), "constant") != 0,
                  "%s of a singular matrix", statement);
        cr_expect(get_boolean(t, row, "within") ==
                      (measured <= bound * (1 + get_real(t, row, "allowance"))),
                  "row %" PRId64, row);
    }
    for (int i = 0; i < NAMES; i++)
        cr_expect(corrected[i] == 2 && iterate[i] == 2 && kernel[i] == 2, "%s: %d %d %d rows",
                  names[i], corrected[i], iterate[i], kernel[i]);
    table_free(t);
}

/* S22: |A^-1|_2 = 1/(1 - exp(-s delta^2)) for two tokens, not O(m^2); Varah's bound is attained. */
Test(spectral, two_tokens_break_the_bound)
{
    int pairs = 0, varah = 0, norms = 0;
    cr_assert(run_experiment(&spectral_bounds,
                             "--input iid --stage 3 --samples 1 --scale 0.3 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_bounds, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++) {
        const char *statement = get_text(t, row, "statement");
        double delta = 0, measured = get_real(t, row, "measured");
        norms += strcmp(get_text(t, row, "input"), "iid-norms") == 0;
        if (sscanf(get_text(t, row, "input"), "pair:%lf", &delta) != 1)
            continue;
        double gap = -expm1(-0.3 * delta * delta);
        if (strcmp(statement, "S22-pair") == 0) {
            pairs++;
            cr_expect(near(measured, 1 / gap, 20 * u / gap) && get_real(t, row, "bound") == 4 &&
                          !get_boolean(t, row, "within") && get_integer(t, row, "m") == 2,
                      "delta=%g: %.12g, want %.12g", delta, measured, 1 / gap);
        }
        if (strcmp(statement, "S22-corrected") == 0) {
            varah++;
            cr_expect(near(get_real(t, row, "ratio"), 1, 20 * u / gap) &&
                          near(measured, 1 / gap, 20 * u / gap),
                      "delta=%g: ratio %.12g", delta, get_real(t, row, "ratio"));
        }
    }
    cr_expect(pairs == 2 && varah == 2 && norms == 3, "%d, %d, %d rows", pairs, varah, norms);
    table_free(t);
}

/* ---- Threads ---- */

static void expect_same(const experiment *e, const char *name)
{
    size_t size[2];
    unsigned char *bytes[2];
    for (int i = 0; i < 2; i++) {
        char *path = must_format("out%d/spectral/%s.csv", i + 1, name);
        bytes[i] = scratch_read(path, &size[i]);
        free(path);
    }
    cr_expect(size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0 && size[0] > 200,
              "%s: %s.csv depends on the number of threads", e->name, name);
    free(bytes[0]);
    free(bytes[1]);
}

Test(spectral, results_do_not_depend_on_threads)
{
    static const struct {
        const experiment *e;
        const char *options;
    } cases[] = {
        {&spectral_eigenvalues, "--input photos,smooth --m 16,49"},
        {&spectral_norm_growth, "--input photos,smooth,iid --m 4,16,100 --samples 3"},
        {&spectral_bounds, "--input photos,smooth --stage 3 --samples 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 2; threads++) {
            char *options =
                must_format("%s --threads %d --out out%d", cases[i].options, threads, threads);
            cr_assert(run_experiment(cases[i].e, options) == EXIT_PASS, "%s", options);
            free(options);
        }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int j = 0; j < cases[i].e->output_count; j++)
            expect_same(cases[i].e, cases[i].e->outputs[j].name);
}
