/* SPDX-License-Identifier: BSD-3-Clause */
/* spectral/resolution: its norms against dense references and closed forms, its fits against what
 * can be recomputed from its rows. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <linear_algebra.h>
#include <pseudo_inverse.h>
#include <soft.h>

#include "common/photographs.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "spectral/matrices.h"
#include "spectral/resolution.h"

TestSuite(spectral_resolution, .init = scratch_begin, .fini = scratch_end);

static double scale(void)
{
    return 1 / (2 * sqrt(TOKEN_DIM));
}

/* The row of one norm; -1 if there is none. */
static int64_t find_row(const table *t, const char *view, int64_t n, const char *landmarks,
                        const char *operator, const char * inverse)
{
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "view", view) && cell_integer(t, row, "n") == n &&
            cell_is(t, row, "landmarks", landmarks) && cell_is(t, row, "operator", operator) &&
            cell_is(t, row, "inverse", inverse))
            return row;
    return -1;
}

/* All tokens equal: S is of ones, |S|_2 = n = |S^|_2, and D = m I makes n/m of it: S27's laws to
 * the letter. Softmax averages. nr-paper is on its boundary of convergence: X_20 is rounding. */
Test(spectral_resolution, equal_tokens_follow_the_laws_exactly)
{
    static const struct {
        const char *landmarks, *operator, * inverse;
        double exponent;
    } laws[] = {{"none", "gaussian", "", 1},          {"none", "softmax", "", 0},
                {"m49", "soft", "exact", 1},          {"m49", "soft", "nr-soft", 1},
                {"m49", "softpp", "exact", 1},        {"m49", "softpp", "nr-softpp", 1},
                {"stride2", "soft", "exact", 1},      {"stride2", "softpp", "exact", 0},
                {"stride2", "softpp", "nr-softpp", 0}};
    static const char *const views[] = {"enlarged", "cropped"};
    static const int64_t counts[] = {196, 256, 484, 784};
    cr_assert(run_experiment(&spectral_resolution,
                             "--input constant --n 196,256,484,784 --out out") == EXIT_PASS);
    table *t = read_output(&spectral_resolution, "out", 0),
          *fits = read_output(&spectral_resolution, "out", 1);
    for (int k = 0; k < 2 * 9; k++) {
        const char *landmarks = laws[k / 2].landmarks, *operator= laws[k / 2].operator;
        const char *inverse = laws[k / 2].inverse, *view = views[k % 2];
        for (int i = 0; i < 4; i++) {
            int64_t row = find_row(t, view, counts[i], landmarks, operator, inverse);
            bool none = strcmp(landmarks, "m49") == 0 && counts[i] == 256; /* 8 x 8 or 5 x 5 */
            cr_assert((row < 0) == none, "%s %s n=%d", operator, landmarks, (int)counts[i]);
            if (none)
                continue;
            double n = (double)counts[i], m = (double)cell_integer(t, row, "m");
            double ridge = strcmp(inverse, "nr-soft") == 0 ? m / (m + 0.01) : 1;
            double want = strcmp(operator, "softmax") == 0  ? 1
                          : strcmp(operator, "softpp") == 0 ? n / m
                                                            : n * ridge;
            cr_expect(close_to(cell_real(t, row, "norm"), want, 1e-9),
                      "%s %s n=%g: %.15g, want %.15g", operator, inverse, n,
                      cell_real(t, row, "norm"), want);
        }
        int64_t line = 0;
        while (!(cell_is(fits, line, "view", view) && cell_is(fits, line, "operator", operator) &&
                 cell_is(fits, line, "landmarks", landmarks) &&
                 cell_is(fits, line, "inverse", inverse)))
            line++;
        double slack = strcmp(inverse, "nr-soft") == 0 ? 2e-4 : 1e-8;
        cr_expect(fabs(cell_real(fits, line, "exponent") - laws[k / 2].exponent) <= slack &&
                      cell_integer(fits, line, "points") ==
                          (laws[k / 2].landmarks[0] == 'm' ? 3 : 4),
                  "%s %s %s: exponent %g", operator, landmarks, inverse,
                  cell_real(fits, line, "exponent"));
    }
    table_free(fits);
    table_free(t);
}

/* |P^T A+ P|_2, of D^-1/2 A+ D^-1/2 if normalise, with A+ in long double: an explicit A+ in f64
 * would leave few digits where A is this ill-conditioned. */
static double long_norm(int n, int m, const double *tokens, const double *landmarks, bool normalise)
{
    double *a = make_matrix(m, m), *p = make_matrix(m, n), *s = make_matrix(n, n), norm;
    long double *wide = must_allocate((size_t)m, (size_t)m * sizeof *wide);
    long double *x = must_allocate((size_t)m, (size_t)m * sizeof *x);
    long double *xp = must_allocate((size_t)m, (size_t)n * sizeof *xp), *d = xp;
    ref_gaussian(m, m, TOKEN_DIM, landmarks, landmarks, scale(), a);
    ref_gaussian(m, n, TOKEN_DIM, landmarks, tokens, scale(), p);
    for (int i = 0; i < m * m; i++)
        wide[i] = a[i];
    cr_assert(ref_pseudo_inverse_long(m, wide, m * 0x1p-53L, x) > 0);
    for (int i = 0; i < m; i++) {
        d[i] = 0;
        for (int j = 0; j < m; j++)
            d[i] += normalise ? a[i * m + j] : 1.0L / m;
    }
    for (int i = 0; i < m * m; i++)
        x[i] /= sqrtl(d[i / m] * d[i % m]);
    memset(xp, 0, (size_t)m * (size_t)n * sizeof *xp);
    for (int i = 0; i < m; i++)
        for (int k = 0; k < m; k++)
            for (int j = 0; j < n; j++)
                xp[i * n + j] += x[i * m + k] * p[k * n + j];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            long double sum = 0;
            for (int k = 0; k < m; k++)
                sum += p[k * n + i] * xp[k * n + j];
            s[i * n + j] = (double)sum;
        }
    cr_assert(ref_spectral_norm(n, n, s, &norm) == ATN_OK);
    free(xp);
    free(x);
    free(wide);
    free(s);
    free(p);
    free(a);
    return norm;
}

/* The norms of a set of 22 x 22 tokens, densely, against the rows of the CSV. */
static void expect_dense_norms(const table *t, const char *view, const double *tokens)
{
    enum { SIDE = 22, COUNT = SIDE * SIDE };
    double *s = make_matrix(COUNT, COUNT), *landmarks = make_matrix(121, TOKEN_DIM), norm;
    int64_t row = find_row(t, view, COUNT, "none", "gaussian", "");
    ref_gaussian(COUNT, COUNT, TOKEN_DIM, tokens, tokens, scale(), s);
    cr_assert(ref_spectral_norm(COUNT, COUNT, s, &norm) == ATN_OK);
    double mean = 0;
    for (int i = 0; i < COUNT * COUNT; i++)
        mean += s[i] / COUNT;
    cr_expect(close_to(cell_real(t, row, "norm"), norm, 1e-10) &&
                  close_to(cell_real(t, row, "norm_upper"), norm, 2e-6) &&
                  close_to(cell_real(t, row, "row_sum_mean"), mean, 1e-12),
              "%s: gaussian %.12g, want %.12g", view, cell_real(t, row, "norm"), norm);
    for (int i = 0; i < COUNT; i++) {
        double total = 0;
        for (int j = 0; j < COUNT; j++) {
            double dot = 0;
            for (int k = 0; k < TOKEN_DIM; k++)
                dot += tokens[i * TOKEN_DIM + k] * tokens[j * TOKEN_DIM + k];
            total += s[i * COUNT + j] = exp(dot / sqrt(TOKEN_DIM) - 20);
        }
        for (int j = 0; j < COUNT; j++)
            s[i * COUNT + j] /= total;
    }
    cr_assert(ref_spectral_norm(COUNT, COUNT, s, &norm) == ATN_OK);
    row = find_row(t, view, COUNT, "none", "softmax", "");
    cr_expect(close_to(cell_real(t, row, "norm"), norm, 1e-10), "%s: softmax %.12g, want %.12g",
              view, cell_real(t, row, "norm"), norm);
    static const char *const rules[] = {"m49", "stride2"};
    /* 10 sqrt(u), check_soft's; of SOFT++ as much as hangs on eigenvalues near the cut */
    static const double tolerances[] = {1e-7, 1e-3};
    for (int k = 0; k < 4; k++) {
        int stride = k < 2 ? 3 : 2, m = k < 2 ? 49 : 121;
        ref_pool(SIDE, SIDE, TOKEN_DIM, stride, tokens, landmarks);
        norm = long_norm(COUNT, m, tokens, landmarks, k % 2);
        row = find_row(t, view, COUNT, rules[k / 2], k % 2 ? "softpp" : "soft", "exact");
        cr_expect(close_to(cell_real(t, row, "norm"), norm, tolerances[k % 2]) &&
                      cell_integer(t, row, "m") == m && cell_integer(t, row, "stride") == stride,
                  "%s %s %d: %.12g, want %.12g (cut %g)", view, rules[k / 2], k % 2,
                  cell_real(t, row, "norm"), norm, cell_real(t, row, "cut_change"));
    }
    free(landmarks);
    free(s);
}

/* Seed 5: cropped, the middle of the scene; enlarged, its pixels resampled.
 */
Test(spectral_resolution, rows_are_the_norms_of_the_scene)
{
    enum { SIDE = 22, SCENE = 64, PATCH = 4 };
    double *scene = make_matrix(SCENE * SCENE, TOKEN_DIM),
           *tokens = make_matrix(SIDE * SIDE, TOKEN_DIM);
    input *in;
    image pixels, resampled;
    const char *name;
    cr_assert(run_experiment(&spectral_resolution,
                             "--input photos --n 484 --seed 5 --samples 1 --out out") == EXIT_PASS);
    table *t = read_output(&spectral_resolution, "out", 0);
    cr_assert(input_open("photos", 0, 0, &in) == EXIT_PASS);
    cr_assert(input_tokens(in, SCENE, SCENE, PATCH, 5, 0, scene) == EXIT_PASS);
    for (int i = 0; i < SIDE * SIDE * TOKEN_DIM; i++) {
        int y = i / TOKEN_DIM / SIDE, x = i / TOKEN_DIM % SIDE;
        tokens[i] = scene[((y + 21) * SCENE + x + 21) * TOKEN_DIM + i % TOKEN_DIM];
    }
    expect_dense_norms(t, "cropped", tokens);
    cr_assert(input_crop(in, SCENE, SCENE, PATCH, 5, 0, &pixels, &name) == EXIT_PASS);
    image_resample(&pixels, SIDE * PATCH, SIDE * PATCH, &resampled);
    photographs_embed(&resampled, &(input_draw){SIDE, SIDE, PATCH, 5, 0}, tokens);
    expect_dense_norms(t, "enlarged", tokens);
    free(resampled.rgb);
    free(pixels.rgb);
    input_free(in);
    table_free(t);
    free(tokens);
    free(scene);
}

Test(spectral_resolution, strides_divide_the_grid_and_leave_at_most_1024_landmarks)
{
    static const struct {
        int64_t side, stride;
        bool taken;
    } grids[] = {{64, 2, true},  {66, 2, false}, {96, 3, true}, {99, 3, false}, {63, 2, false},
                 {14, 4, false}, {16, 4, true},  {32, 1, true}, {33, 1, false}};
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        const token_grid grid = {
            .height = grids[i].side, .width = grids[i].side, .stride = grids[i].stride};
        cr_expect_eq(resolution_takes(&grid), grids[i].taken, "%d tokens a side, stride %d",
                     (int)grids[i].side, (int)grids[i].stride);
    }
}

/* S06, S21, S20 on rows; the strides that divide; what is below the floor and out of the fits. */
Test(spectral_resolution, rows_keep_the_bounds_and_fits_leave_out_the_floor)
{
    int64_t floored = 0, left_out = 0, fitted = 0;
    cr_assert(run_experiment(&spectral_resolution,
                             "--input photos,iid --n 196,484,784 --samples 2 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_resolution, "out", 0),
          *fits = read_output(&spectral_resolution, "out", 1);
    double kernel = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        double norm = cell_real(t, row, "norm"), n = (double)cell_integer(t, row, "n");
        double change = cell_real(t, row, "cut_change");
        bool below = cell_boolean(t, row, "below_floor");
        kernel = cell_is(t, row, "operator", "gaussian") ? norm : kernel;
        floored += below;
        cr_expect(below == (change > 0.01) && isnan(change) == !cell_is(t, row, "inverse", "exact"),
                  "row %" PRId64, row);
        cr_expect(!cell_is(t, row, "operator", "soft") || norm <= kernel * (1 + 1e-6));
        cr_expect(!cell_is(t, row, "operator", "softmax") ||
                  (norm >= 1 - 1e-12 && norm <= sqrt(n)));
        cr_expect(!cell_is(t, row, "landmarks", "stride4") || n == 784);
        if (cell_is(t, row, "operator", "gaussian"))
            cr_expect(cell_real(t, row, "row_sum_mean") <= norm && norm < n &&
                      cell_real(t, row, "row_sum_max") >= norm &&
                      cell_real(t, row, "norm_upper") >= norm &&
                      cell_real(t, row, "norm_upper") <= norm * (1 + 1e-6));
    }
    for (int64_t row = 0; row < table_rows(fits); row++) {
        left_out += cell_integer(fits, row, "left_out");
        fitted += cell_integer(fits, row, "points");
    }
    cr_expect(floored > 0 && left_out == floored && fitted == table_rows(t) - floored,
              "%" PRId64 " below the floor, %" PRId64 " left out, %" PRId64 " fitted", floored,
              left_out, fitted);
    table_free(fits);
    table_free(t);
}

/* Tokens on a ring, too many to keep S: every row sums to |S|_2, and softmax's columns to 1. */
Test(spectral_resolution, large_inputs_have_the_norms_of_a_ring)
{
    enum { COUNT = 65 * 65 };
    double sum = 0, radius = 20;
    cr_assert(run_experiment(&spectral_resolution, "--input circulant --n 4225 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_resolution, "out", 0);
    for (int i = 0; i < COUNT; i++) {
        double distance = 2 * radius * sin(3.14159265358979323846 * i / COUNT);
        sum += exp(-scale() * distance * distance);
    }
    int64_t kernel = find_row(t, "enlarged", COUNT, "none", "gaussian", "");
    int64_t softmax = find_row(t, "enlarged", COUNT, "none", "softmax", "");
    cr_assert(kernel >= 0 && softmax >= 0 && table_rows(t) == 2 + 6);
    cr_expect(close_to(cell_real(t, kernel, "norm"), sum, 1e-12) &&
                  close_to(cell_real(t, kernel, "norm_upper"), sum, 1e-6),
              "%.15g .. %.15g, want %.15g", cell_real(t, kernel, "norm"),
              cell_real(t, kernel, "norm_upper"), sum);
    cr_expect(close_to(cell_real(t, softmax, "norm"), 1, 1e-12) &&
              close_to(cell_real(t, softmax, "norm_upper"), 1, 1e-6));
    table_free(t);
}

/* Tokens of a 12 x 9 grid, all equal but for those outside the middle 4 x 4, which are far away. */
static void write_grid(const char *name)
{
    static char header[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (108, 2), }";
    unsigned char bytes[128 + 108 * 2 * sizeof(double)];
    double tokens[108 * 2] = {0};
    for (int i = 0; i < 108; i++) {
        int y = i / 9, x = i % 9;
        bool middle = y >= 4 && y < 8 && x >= 2 && x < 6;
        tokens[2 * i] = middle ? 0 : 1000.0 * (i + 1);
    }
    memset(bytes, ' ', 128);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, header, strlen(header));
    bytes[127] = '\n';
    memcpy(bytes + 128, tokens, sizeof tokens);
    scratch_write(name, bytes, sizeof bytes);
}

Test(spectral_resolution, a_file_is_cropped_on_its_grid)
{
    write_grid("tokens.npy");
    cr_assert(run_experiment(&spectral_resolution,
                             "--input tokens.npy --grid 12x9 --n 16,36,81,100 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_resolution, "out", 0);
    static const double norms[][2] = {{16, 16}, {36, 16}, {81, 16}};
    for (int i = 0; i < 3; i++) {
        int64_t row = find_row(t, "cropped", (int64_t)norms[i][0], "none", "gaussian", "");
        cr_assert(row >= 0);
        cr_expect(close_to(cell_real(t, row, "norm"), norms[i][1], 1e-12), "n=%g: %g", norms[i][0],
                  cell_real(t, row, "norm"));
    }
    cr_expect(find_row(t, "cropped", 100, "none", "gaussian", "") < 0);
    for (int64_t row = 0; row < table_rows(t); row++)
        cr_expect(cell_is(t, row, "view", "cropped"));
    table_free(t);
}

/* The tokens are those of the picture resized to their grid. */
Test(spectral_resolution, a_trained_network_is_given_larger_pictures)
{
    cr_assert(run_experiment(&spectral_resolution,
                             "--input trained:softmax --n 196,441,784 --seed 3 --samples 1 --out "
                             "out") == EXIT_PASS);
    table *t = read_output(&spectral_resolution, "out", 0);
    input *in;
    cr_assert(input_open("trained:softmax", 0, 0, &in) == EXIT_PASS);
    for (int side = 14; side <= 28; side += 7) {
        int n = side * side;
        double *tokens = make_matrix(n, TOKEN_DIM), *s = make_matrix(n, n), mean = 0;
        int64_t row = find_row(t, "enlarged", n, "none", "gaussian", "");
        cr_assert(row >= 0 && input_tokens(in, side, side, 1, 3, 0, tokens) == EXIT_PASS);
        ref_gaussian(n, n, TOKEN_DIM, tokens, tokens, scale(), s);
        for (int i = 0; i < n * n; i++)
            mean += s[i] / n;
        cr_expect(close_to(cell_real(t, row, "row_sum_mean"), mean, 1e-12),
                  "n=%d: %.12g, not %.12g", n, cell_real(t, row, "row_sum_mean"), mean);
        cr_expect(find_row(t, "enlarged", n, "m49", "softpp", "exact") >= 0);
        free(s);
        free(tokens);
    }
    for (int64_t row = 0; row < table_rows(t); row++)
        cr_expect(cell_is(t, row, "view", "enlarged"));
    input_free(in);
    table_free(t);
}

Test(spectral_resolution, what_an_input_cannot_give_is_a_usage_error)
{
    static const struct {
        const experiment *e;
        const char *options, *line;
    } cases[] = {
        {&spectral_resolution, "--input iid --n 200", "--n 200: expected a square"},
        {&spectral_resolution, "--input iid --n 16641", "at most 16384"},
        {&spectral_resolution, "--input tokens.npy --n 16", "--grid"},
        {&spectral_resolution, "--input tokens.npy --grid 12x9 --n 100", "smaller --n"},
        {&spectral_resolution, "--input trained:soft --n 441", "one that the network takes"},
        {&spectral_resolution, "--input trained:linformer --n 784", "its own grid"},
        {&spectral_resolution, "--input iid --scale embed", "an input is one head here"},
        {&spectral_resolution, "--input iid,iid", "given twice"},
        {&spectral_softmax, "--input iid --n 200", "--n 200: expected a square"},
        {&spectral_softmax, "--input iid --n 1", "--n 1: expected a square"},
        {&spectral_softmax, "--input iid --n 4225", "from 4 to 4096"},
    };
    cr_expect(run_experiment(&spectral_resolution,
                             "--input trained:linformer --n 196,784 --dry-run") == EXIT_PASS);
    write_grid("tokens.npy");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        capture();
        int code = run_experiment(cases[i].e, cases[i].options);
        const char *line = captured();
        cr_expect(code == EXIT_USAGE && is_one_line_with(line, cases[i].line), "%s %s: %d, %s",
                  cases[i].e->name, cases[i].options, code, line);
    }
    cr_expect(run_experiment(&spectral_resolution, "--input iid --n 16384 --dry-run") == EXIT_PASS);
}

Test(spectral_resolution, a_point_can_be_replayed)
{
    expect_replay(&spectral_resolution, "--input iid,smooth --n 196,256 --seed 4 --samples 2", 15);
}
