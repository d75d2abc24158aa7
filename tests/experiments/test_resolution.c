/* SPDX-License-Identifier: BSD-3-Clause */
/* spectral/resolution and spectral/softmax: their norms against dense references and closed forms,
 * their fits against what can be recomputed from their rows. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <data.h>
#include <dominant.h>
#include <linear_algebra.h>
#include <newton.h>
#include <pseudo_inverse.h>
#include <soft.h>

#include "common/photographs.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "spectral/landmarks.h"
#include "spectral/nonnegative.h"
#include "spectral/operator_norms.h"

TestSuite(resolution, .init = scratch_begin, .fini = scratch_end);

static const double u = 0x1p-53;

/* |got - want| <= tolerance |want|, false for NaN. */
static bool near(double got, double want, double tolerance)
{
    return fabs(got - want) <= tolerance * fabs(want);
}

static double *make_matrix(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

/* ---- Norms between two bounds ---- */

typedef struct {
    int64_t n;
    const double *values; /* n x n, or (outer) x and y, each n: M = x y^T */
    bool outer;
    int64_t calls;
} source_state;

static int give_rows(void *state, int64_t first, int64_t count, double *out)
{
    source_state *s = state;
    s->calls++;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < s->n; j++)
            out[i * s->n + j] = s->outer ? s->values[first + i] * s->values[s->n + j]
                                         : s->values[(first + i) * s->n + j];
    return EXIT_PASS;
}

static int refuse_rows(void *state, int64_t first, int64_t count, double *out)
{
    return EXIT_ENVIRONMENT;
}

/* Neither symmetric nor a whole number of blocks. */
Test(resolution, two_bounds_hold_the_dense_norm)
{
    static const int sizes[] = {1, 2, 5, 64, 65, 150};
    for (int k = 0; k < 6; k++) {
        int n = sizes[k];
        double *a = make_matrix(n, n), norm, total = 0, largest = 0;
        norm_bracket got;
        data_uniform(7, n * n, a);
        for (int i = 0; i < n; i++) {
            double row = 0;
            for (int j = 0; j < n; j++)
                row += a[i * n + j] = pow(a[i * n + j], 8) * (i == j ? 30 : 1);
            total += row;
            largest = fmax(largest, row);
        }
        cr_assert(ref_spectral_norm(n, n, a, &norm) == ATN_OK);
        source_state state = {n, a, false, 0};
        cr_assert(nonnegative_norm(&(row_source){n, give_rows, &state}, &got) == EXIT_PASS);
        double slack = 10 * n * u;
        cr_expect(got.lower <= norm * (1 + slack) && got.upper >= norm * (1 - slack) &&
                      got.upper <= got.lower * (1 + 1e-6),
                  "n=%d: %.17g in %.17g .. %.17g", n, norm, got.lower, got.upper);
        cr_expect(near(got.lower, norm, 1e-9), "n=%d: %.17g, want %.17g", n, got.lower, norm);
        cr_expect(near(got.row_sum_mean, total / n, slack) && near(got.row_sum_max, largest, slack),
                  "n=%d: rows %g %g, want %g %g", n, got.row_sum_mean, got.row_sum_max, total / n,
                  largest);
        cr_expect(state.calls == 1, "n=%d: made %" PRId64 " times", n, state.calls);
        free(a);
    }
}

/* Where the matrix falls apart later vectors may have zeros: the upper bound is an earlier one's.
 */
Test(resolution, two_bounds_hold_for_reducible_matrices)
{
    double a[9] = {1, 0, 0, 0, 3, 0, 0, 0, 2}, zero[4] = {0, 0, 1, 0};
    norm_bracket got;
    source_state state = {3, a, false, 0};
    cr_assert(nonnegative_norm(&(row_source){3, give_rows, &state}, &got) == EXIT_PASS);
    cr_expect(near(got.lower, 3, 1e-13) && near(got.upper, 3, 1e-13), "%g .. %g", got.lower,
              got.upper);
    state = (source_state){2, zero, false, 0};
    cr_assert(nonnegative_norm(&(row_source){2, give_rows, &state}, &got) == EXIT_PASS);
    cr_expect(near(got.lower, 1, 1e-13) && near(got.upper, 1, 1e-13), "%g .. %g", got.lower,
              got.upper);
}

/* Small and full of zeros: Ritz vectors on the way have entries of either sign. */
Test(resolution, two_bounds_hold_for_sparse_matrices)
{
    int64_t wide = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        int n = 3 + (int)(seed % 6);
        double *a = make_matrix(n, n), norm;
        norm_bracket got;
        data_uniform(seed, n * n, a);
        for (int i = 0; i < n * n; i++)
            a[i] = a[i] < 0.7 ? 0 : floor(40 * (a[i] - 0.7)) + 1;
        cr_assert(ref_spectral_norm(n, n, a, &norm) == ATN_OK);
        source_state state = {n, a, false, 0};
        cr_assert(nonnegative_norm(&(row_source){n, give_rows, &state}, &got) == EXIT_PASS);
        cr_expect(got.lower <= norm * (1 + 1e-14) && got.upper >= norm * (1 - 1e-14) &&
                      near(got.lower, norm, 1e-6),
                  "seed %d: %.17g in %.17g .. %.17g", (int)seed, norm, got.lower, got.upper);
        wide += got.upper > got.lower * (1 + 1e-6);
        free(a);
    }
    cr_expect(wide > 0 && wide < 2000, "%" PRId64 " without a tight upper bound", wide);
}

/* Too large to be kept: |x y^T|_2 = |x| |y|. */
Test(resolution, large_matrices_are_made_again_in_every_step)
{
    enum { COUNT = 4100 };
    double *xy = make_matrix(2, COUNT), x = 0, y = 0, total = 0;
    norm_bracket got;
    data_uniform(3, 2 * COUNT, xy);
    for (int i = 0; i < COUNT; i++) {
        x += xy[i] * xy[i];
        y += xy[COUNT + i] * xy[COUNT + i];
        total += xy[COUNT + i];
    }
    source_state state = {COUNT, xy, true, 0};
    cr_assert(nonnegative_norm(&(row_source){COUNT, give_rows, &state}, &got) == EXIT_PASS);
    cr_expect(near(got.lower, sqrt(x * y), 1e-12) && near(got.upper, sqrt(x * y), 1e-6),
              "%g .. %g, want %g", got.lower, got.upper, sqrt(x * y));
    cr_expect(got.row_sum_max <= total * (1 + 1e-12) && got.row_sum_max > 0.9 * total);
    cr_expect(got.steps > 1 && state.calls == got.steps * ((COUNT + 63) / 64),
              "%d steps, %" PRId64 " calls", got.steps, state.calls);
    cr_expect(nonnegative_norm(&(row_source){3, refuse_rows, NULL}, &got) == EXIT_ENVIRONMENT);
    cr_expect(nonnegative_norm(&(row_source){5000, refuse_rows, NULL}, &got) == EXIT_ENVIRONMENT);
    free(xy);
}

/* ---- SOFT's norms ---- */

enum { N = 196, M = 49 };
typedef struct {
    double tokens[N * TOKEN_DIM], landmarks[M * TOKEN_DIM], a[M * M], p[M * N], x[M * M];
    double s_hat[N * N];
} dense;

static double scale(void)
{
    return 1 / (2 * sqrt(TOKEN_DIM));
}

static dense *make_dense(atn_context *context, const char *name)
{
    program_options s = {.inputs = {1, &name}};
    dense *made = must_allocate(1, sizeof *made);
    token_grid grid = {14, 14, 16, 2, false};
    input_set set;
    cr_assert(input_set_open(&s, NULL, &set) == EXIT_PASS);
    cr_assert(make_landmarks(set.items[0], &grid, 1, 0, context, made->tokens, made->landmarks) ==
              EXIT_PASS);
    input_set_free(&set);
    ref_gaussian(M, M, TOKEN_DIM, made->landmarks, made->landmarks, scale(), made->a);
    ref_gaussian(M, N, TOKEN_DIM, made->landmarks, made->tokens, scale(), made->p);
    return made;
}

static double dense_norm(dense *d, const double *inverse, bool normalise)
{
    double norm = NAN;
    cr_assert(ref_soft(N, M, TOKEN_DIM, 0, d->tokens, d->landmarks, NULL, scale(), inverse,
                       normalise, d->s_hat, NULL) == ATN_OK);
    cr_assert(ref_spectral_norm(N, N, d->s_hat, &norm) == ATN_OK);
    return norm;
}

Test(resolution, norms_without_an_inverse_are_those_of_the_dense_matrices)
{
    static const char *const names[] = {"smooth", "iid", "photos", "clusters"};
    atn_context *context = make_context();
    for (int i = 0; i < 4; i++) {
        dense *d = make_dense(context, names[i]);
        form_norms got;
        double lambda[M], n1 = ref_norm1(M, d->a);
        cr_assert(form_norms_measure(context, M, N, d->a, d->p, &got) == EXIT_PASS);
        cr_assert(ref_eigenvalues(M, d->a, lambda, NULL, NULL) == ATN_OK);
        double exact = 10 * u * (N + M * lambda[0] / lambda[M - 1]), iterate = 1e-7;
        double want[6] = {dense_norm(d, NULL, false), dense_norm(d, NULL, true)};
        cr_assert(ref_filter_matrix(M, d->a, 2 / (n1 * n1), 0, 20, d->x) == ATN_OK);
        want[2] = dense_norm(d, d->x, false);
        want[3] = dense_norm(d, d->x, true);
        cr_assert(ref_filter_matrix(M, d->a, 1.8 / (n1 * n1), 0.01, 20, d->x) == ATN_OK);
        want[4] = dense_norm(d, d->x, false);
        cr_assert(make_iterate_of(context, ATN_INVERSE_NR_SOFTPP, M, d->a, d->x) == EXIT_PASS);
        want[5] = dense_norm(d, d->x, true);
        const double have[6] = {got.soft.exact,   got.softpp.exact,   got.soft.paper,
                                got.softpp.paper, got.soft.published, got.softpp.published};
        for (int k = 0; k < 6; k++)
            cr_expect(near(have[k], want[k], k < 2 ? exact : iterate), "%s %d: %.15g, want %.15g",
                      names[i], k, have[k], want[k]);
        cr_expect(got.rank == M && got.soft.coarse == got.soft.exact &&
                      got.softpp.coarse == got.softpp.exact,
                  "%s: rank %" PRId64, names[i], got.rank);
        free(d);
    }
    atn_context_free(context);
}

/* A = diag(l), P = A B: P^T A+ P = B^T A B in what is kept. With B of orthogonal rows |b_i|^2 = b_i
 * the norm is max l_i b_i, so that one row at a time shows which cut drops it. */
Test(resolution, the_cuts_are_m_u_and_1000_m_u)
{
    enum { SIZE = 4, COLS = 8 };
    static const double lowest[] = {1e-2, 500 * SIZE * 0x1p-53, 2 * SIZE * 0x1p-53,
                                    0.5 * SIZE * 0x1p-53};
    static const int64_t ranks[] = {4, 4, 4, 3};
    atn_context *context = make_context();
    for (int k = 0; k < 4; k++) {
        double a[SIZE * SIZE] = {0}, p[SIZE * COLS] = {0}, l = lowest[k];
        for (int i = 0; i < SIZE; i++) {
            a[i * SIZE + i] = i < 3 ? 1 : l;
            p[i * COLS + 2 * i] = i < 3 ? 1 : l * sqrt(10 / l);
        }
        form_norms got;
        cr_assert(form_norms_measure(context, SIZE, COLS, a, p, &got) == EXIT_PASS);
        /* the last direction has norm 10, of SOFT++ 10/l: d = l there */
        bool kept = ranks[k] == 4, kept_by_coarse = k == 0;
        cr_expect(got.rank == ranks[k] && near(got.soft.exact, kept ? 10 : 1, 1e-12) &&
                      near(got.soft.coarse, kept_by_coarse ? 10 : 1, 1e-12),
                  "l=%g: rank %" PRId64 " %g %g", l, got.rank, got.soft.exact, got.soft.coarse);
        cr_expect(near(got.softpp.exact, kept ? 10 / l : 1, 1e-12) &&
                      near(got.softpp.coarse, kept_by_coarse ? 10 / l : 1, 1e-12),
                  "l=%g: %g %g", l, got.softpp.exact, got.softpp.coarse);
    }
    atn_context_free(context);
}

/* ---- resolution.csv ---- */

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
 * the letter. Softmax averages. nr-paper stands on its boundary: X_20 is rounding. */
Test(resolution, equal_tokens_follow_the_laws_exactly)
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
            cr_expect(near(cell_real(t, row, "norm"), want, 1e-9),
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
    cr_expect(near(cell_real(t, row, "norm"), norm, 1e-10) &&
                  near(cell_real(t, row, "norm_upper"), norm, 2e-6) &&
                  near(cell_real(t, row, "row_sum_mean"), mean, 1e-12),
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
    cr_expect(near(cell_real(t, row, "norm"), norm, 1e-10), "%s: softmax %.12g, want %.12g", view,
              cell_real(t, row, "norm"), norm);
    static const char *const rules[] = {"m49", "stride2"};
    /* 10 sqrt(u), check_soft's; of SOFT++ as much as hangs on eigenvalues near the cut */
    static const double tolerances[] = {1e-7, 1e-3};
    for (int k = 0; k < 4; k++) {
        int stride = k < 2 ? 3 : 2, m = k < 2 ? 49 : 121;
        ref_pool(SIDE, SIDE, TOKEN_DIM, stride, tokens, landmarks);
        norm = long_norm(COUNT, m, tokens, landmarks, k % 2);
        row = find_row(t, view, COUNT, rules[k / 2], k % 2 ? "softpp" : "soft", "exact");
        cr_expect(near(cell_real(t, row, "norm"), norm, tolerances[k % 2]) &&
                      cell_integer(t, row, "m") == m && cell_integer(t, row, "stride") == stride,
                  "%s %s %d: %.12g, want %.12g (cut %g)", view, rules[k / 2], k % 2,
                  cell_real(t, row, "norm"), norm, cell_real(t, row, "cut_change"));
    }
    free(landmarks);
    free(s);
}

/* Seed 5: cropped, the middle of the scene; enlarged, its pixels resampled.
 */
Test(resolution, rows_are_the_norms_of_the_scene)
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

/* S06, S21, S20 on rows; the strides that divide; what is below the floor and out of the fits. */
Test(resolution, rows_keep_the_bounds_and_fits_leave_out_the_floor)
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
Test(resolution, large_inputs_have_the_norms_of_a_ring)
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
    cr_expect(near(cell_real(t, kernel, "norm"), sum, 1e-12) &&
                  near(cell_real(t, kernel, "norm_upper"), sum, 1e-6),
              "%.15g .. %.15g, want %.15g", cell_real(t, kernel, "norm"),
              cell_real(t, kernel, "norm_upper"), sum);
    cr_expect(near(cell_real(t, softmax, "norm"), 1, 1e-12) &&
              near(cell_real(t, softmax, "norm_upper"), 1, 1e-6));
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

Test(resolution, a_file_is_cropped_on_its_grid)
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
        cr_expect(near(cell_real(t, row, "norm"), norms[i][1], 1e-12), "n=%g: %g", norms[i][0],
                  cell_real(t, row, "norm"));
    }
    cr_expect(find_row(t, "cropped", 100, "none", "gaussian", "") < 0);
    for (int64_t row = 0; row < table_rows(t); row++)
        cr_expect(cell_is(t, row, "view", "cropped"));
    table_free(t);
}

Test(resolution, what_an_input_cannot_give_is_a_usage_error)
{
    static const struct {
        const experiment *e;
        const char *options, *line;
    } cases[] = {
        {&spectral_resolution, "--input iid --n 200", "--n 200: expected a square"},
        {&spectral_resolution, "--input iid --n 16641", "at most 16384"},
        {&spectral_resolution, "--input tokens.npy --n 16", "--grid"},
        {&spectral_resolution, "--input tokens.npy --grid 12x9 --n 100", "smaller --n"},
        {&spectral_resolution, "--input iid --scale embed", "an input is one head here"},
        {&spectral_resolution, "--input iid,iid", "given twice"},
        {&spectral_softmax, "--input iid --n 200", "--n 200: expected a square"},
        {&spectral_softmax, "--input iid --n 1", "--n 1: expected a square"},
        {&spectral_softmax, "--input iid --n 4225", "from 4 to 4096"},
    };
    write_grid("tokens.npy");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        capture();
        int code = run_experiment(cases[i].e, cases[i].options);
        const char *line = captured();
        cr_expect(code == EXIT_USAGE && is_one_line_with(line, cases[i].line), "%s %s: %d, %s",
                  cases[i].e->name, cases[i].options, code, line);
    }
}

/* The command that a failed check prints makes the same rows. */
static void expect_replay(const experiment *e, const char *options, int64_t at)
{
    program_options s;
    void *state = NULL;
    int64_t points;
    atn_context *context = make_context();
    table *want = table_create(e->outputs[0].columns, e->outputs[0].column_count);
    cr_assert(parse_options(&s, e, options) == EXIT_PASS);
    cr_assert(e->prepare(&s, &state, &points) == EXIT_PASS && at < points);
    cr_assert(e->run(state, at, context, want) == EXIT_PASS);
    options_point point;
    e->replay(state, at, &point);
    char *line = options_replay(&s, e->name, e->options, &point);
    char *start = must_format("attnum run %s ", e->name), *command = strstr(line, start);
    cr_assert(command, "%s", line);
    command = must_format("%s --out out", command + strlen(start));
    char *folder = strstr(command, "--out "); /* one of its own, and then ours */
    cr_assert(folder);
    memset(folder, ' ', strcspn(folder + 6, " ") + 6);
    cr_assert(run_experiment(e, command) == EXIT_PASS, "%s", command);
    table *got = read_output(e, "out", 0);
    for (int64_t row = 0; row < table_rows(want); row++) {
        bool found = false;
        for (int64_t i = 0; i < table_rows(got); i++)
            found |= cell_real(got, i, "norm") == cell_real(want, row, "norm") &&
                     cell_integer(got, i, "sample") == cell_integer(want, row, "sample") &&
                     cell_integer(got, i, "n") == cell_integer(want, row, "n");
        cr_expect(found, "%s: row %" PRId64, line, row);
    }
    table_free(got);
    free(command);
    free(start);
    free(line);
    table_free(want);
    atn_context_free(context);
    e->release(state);
    options_free(&s);
}

Test(resolution, a_point_can_be_replayed)
{
    expect_replay(&spectral_resolution, "--input iid,smooth --n 196,256 --seed 4 --samples 2", 15);
}

/* ---- softmax.csv ---- */

Test(resolution, softmax_points_can_be_replayed)
{
    expect_replay(&spectral_softmax, "--input iid,smooth --n 16,64 --seed 4 --samples 2", 3);
    expect_replay(&spectral_softmax, "--input iid,smooth --n 16,64 --seed 4 --samples 2", 14);
}

/* Keys that are the queries, moved on by one: S is the permutation, with cube roots of unity. */
Test(resolution, keys_of_their_own_have_complex_eigenvalues)
{
    double queries[9] = {0}, keys[9] = {0};
    cross_norms got;
    for (int i = 0; i < 3; i++)
        queries[4 * i] = keys[3 * i + (i + 1) % 3] = 40;
    cr_assert(softmax_cross_measure(3, 3, queries, keys, &got) == EXIT_PASS);
    cr_expect(near(got.radius, 1, 1e-14) && near(got.lowest, -0.5, 1e-14) &&
                  near(got.largest_imaginary, sqrt(0.75), 1e-14) && near(got.norm, 1, 1e-14) &&
                  near(got.logit, 1600 / sqrt(3), 1e-14),
              "%g %g %g %g", got.radius, got.lowest, got.largest_imaginary, got.norm);
    keys[0] = 1e200;
    queries[0] = 1e200;
    cr_assert(softmax_cross_measure(3, 3, queries, keys, &got) == EXIT_PASS);
    cr_expect(isnan(got.radius) && isnan(got.norm) && isinf(got.logit));
}

/* S = [x 1-x; y 1-y]: eigenvalues 1 and x - y. */
Test(resolution, two_queries_and_two_keys)
{
    double queries[2] = {-1, 2}, keys[2] = {0.5, 1.5};
    double x = 1 / (1 + exp(-1)), y = 1 / (1 + exp(2)), d = x - y;
    double f = x * x + (1 - x) * (1 - x) + y * y + (1 - y) * (1 - y);
    cross_norms got;
    cr_assert(softmax_cross_measure(2, 1, queries, keys, &got) == EXIT_PASS);
    cr_expect(near(got.radius, 1, 1e-14) && near(got.lowest, d, 1e-14) &&
                  got.largest_imaginary == 0 &&
                  near(got.norm, sqrt((f + sqrt(f * f - 4 * d * d)) / 2), 1e-14),
              "%g %g %g", got.radius, got.lowest, got.norm);
    queries[0] = 2;
    queries[1] = -1; /* S's rows exchanged: the eigenvalue is y - x */
    cr_assert(softmax_cross_measure(2, 1, queries, keys, &got) == EXIT_PASS);
    cr_expect(near(got.radius, 1, 1e-14) && near(got.lowest, -d, 1e-14));
}

Test(resolution, softmax_has_the_eigenvalues_of_prop_3_and_norms_to_the_root_of_n)
{
    int64_t dominant = 0, other = 0, above = 0;
    double negative = 0, complex_part = 0;
    cr_assert(run_experiment(&spectral_softmax,
                             "--input iid,smooth --n 4,16,64 --samples 3 --out out") == EXIT_PASS);
    table *t = read_output(&spectral_softmax, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++) {
        double n = (double)cell_integer(t, row, "n"), norm = cell_real(t, row, "norm");
        double r = cell_real(t, row, "r"), lowest = cell_real(t, row, "lowest");
        bool same = cell_is(t, row, "keys", "tokens");
        cr_expect(near(cell_real(t, row, "radius"), 1, 1e-12) && norm >= 1 - 1e-13 &&
                      norm <= sqrt(n) * (1 + 1e-13) &&
                      near(cell_real(t, row, "norm_over_root"), norm / sqrt(n), 4 * u),
                  "row %" PRId64, row);
        cr_expect(!same || (lowest >= -1e-13 && cell_real(t, row, "largest_imaginary") == 0));
        cr_expect(isnan(r) == !cell_is(t, row, "input", "dominant"));
        other += !same;
        negative = fmin(negative, lowest);
        complex_part = fmax(complex_part, cell_real(t, row, "largest_imaginary"));
        if (isnan(r))
            continue;
        dominant++;
        above += norm > 1 + 1e-9;
        double want = (double)ref_dominant_softmax((int64_t)n, 1, r).norm;
        cr_expect(cell_real(t, row, "closed_form") == want && near(norm, want, 1e-12) &&
                      cell_real(t, row, "closed_form_ratio") <= 1,
                  "n=%g r=%g: %.15g, want %.15g", n, r, norm, want);
        cr_expect(r != 48 || near(norm, sqrt(n), 1e-9), "n=%g: %g", n, norm);
    }
    cr_expect(dominant == 4 * 12 && above == 4 * 11, "%" PRId64 " rows, %" PRId64 " above 1",
              dominant, above);
    cr_expect(other == 3 * 3 * 3 && negative < -0.01 && complex_part > 0.01,
              "%" PRId64 " rows with other keys, %g, %g", other, negative, complex_part);
    table_free(t);
    t = read_output(&spectral_softmax, "out", 1);
    for (int64_t row = 0; row < table_rows(t); row++) {
        double r = cell_real(t, row, "r"), exponent = cell_real(t, row, "exponent");
        bool far = r == 48;
        cr_expect(!far || (fabs(exponent - 0.5) < 1e-9 && cell_integer(t, row, "points") == 4 &&
                           near(cell_real(t, row, "norm_max"), 8, 1e-9) &&
                           near(cell_real(t, row, "root_share_max"), 1, 1e-9)),
                  "r=48: %g", exponent);
        cr_expect(r != 1 || fabs(exponent) < 1e-12, "r=1: %g", exponent);
    }
    cr_expect(table_rows(t) == 3 * 2 + 12, "%" PRId64 " fits", table_rows(t));
    table_free(t);
}
