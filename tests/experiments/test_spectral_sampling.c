/* SPDX-License-Identifier: BSD-3-Clause */
/* spectral/sampling: its errors against dense matrices, and the order it puts samplers in. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "dense_soft.h"
#include <linear_algebra.h>

#include "common/npy.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "spectral/matrices.h"
#include "spectral/samplers.h"

TestSuite(spectral_sampling, .init = scratch_begin, .fini = scratch_end);

static int sampling_row(const table *t, const char *name, int64_t m, const char *by)
{
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "input", name) && cell_integer(t, row, "m") == m &&
            cell_is(t, row, "sampler", by))
            return (int)row;
    cr_assert_fail("no row of %s, m = %" PRId64 ", %s", name, m, by);
    return -1;
}

/* Of the tokens themselves, by the dense references alone: pooled landmarks and the best matrix. */
Test(spectral_sampling, sampling_errors_are_those_of_the_dense_matrix)
{
    enum { SIDE = 14, TOKENS_N = SIDE * SIDE, POOLED = 16, WIDTH = TOKEN_DIM };
    input *in;
    const double scale = 1 / (2 * sqrt(WIDTH));
    token_grid grid = {.height = SIDE, .width = SIDE, .patch = 16};
    atn_context *context = make_context();
    double *tokens = make_matrix(TOKENS_N, WIDTH), *landmarks = make_matrix(POOLED, WIDTH);
    double *s = make_matrix(TOKENS_N, TOKENS_N), *s_hat = make_matrix(TOKENS_N, TOKENS_N);
    double lambda[TOKENS_N], rest[TOKENS_N], best = 0, trace = 0, a[POOLED * POOLED], kappa;
    cr_assert(run_experiment(&spectral_sampling,
                             "--input smooth --m 16 --stage 3 --samples 1 --out out") == EXIT_PASS);
    table *t = read_output(&spectral_sampling, "out", 0);
    cr_assert(choose_stride(&grid, POOLED) == POOLED);
    cr_assert(input_open("smooth", 0, 0, &in) == EXIT_PASS);
    cr_assert(make_landmarks(in, &grid, 1, 0, context, tokens, landmarks) == EXIT_PASS);
    ref_gaussian(TOKENS_N, TOKENS_N, WIDTH, tokens, tokens, scale, s);
    cr_assert(ref_soft(TOKENS_N, POOLED, WIDTH, 0, tokens, landmarks, NULL, scale, NULL, false,
                       s_hat, NULL) == ATN_OK);
    cr_assert(ref_eigenvalues(TOKENS_N, s, lambda, NULL, NULL) == ATN_OK);
    for (int i = 0; i < TOKENS_N * TOKENS_N; i++)
        s_hat[i] = s[i] - s_hat[i];
    cr_assert(ref_eigenvalues(TOKENS_N, s_hat, rest, NULL, NULL) == ATN_OK);
    for (int i = 0; i < TOKENS_N; i++) {
        best += i < POOLED ? 0 : lambda[i];
        trace += s_hat[i * (TOKENS_N + 1)];
    }
    ref_gaussian(POOLED, POOLED, WIDTH, landmarks, landmarks, scale, a);
    cr_assert(ref_condition(POOLED, POOLED, a, &kappa, NULL) == ATN_OK);
    cr_expect(close_to(cell_real(t, 0, "kappa"), kappa, 1e-12));
    /* 32 random columns see the Frobenius norms, with a deviation of about 1 / sqrt(32) each where
     * one eigenvalue is all */
    double seen =
        cblas_dnrm2(TOKENS_N * TOKENS_N, s_hat, 1) / cblas_dnrm2(TOKENS_N * TOKENS_N, s, 1);
    cr_expect(close_to(cell_real(t, 0, "value_error"), seen, 0.3), "%g, %g",
              cell_real(t, 0, "value_error"), seen);
    cr_expect(cell_is(t, 0, "sampler", "pool"));
    cr_expect(close_to(cell_real(t, 0, "trace_error"), trace / TOKENS_N, 1e-12) &&
              close_to(cell_real(t, 0, "spectral_error"), rest[0] / lambda[0], 1e-12) &&
              close_to(cell_real(t, 0, "kernel_norm"), lambda[0], 1e-12) &&
              close_to(cell_real(t, 0, "best_trace_error"), best / TOKENS_N, 1e-12) &&
              close_to(cell_real(t, 0, "best_spectral_error"), lambda[POOLED] / lambda[0], 1e-12));
    input_free(in);
    table_free(t);
    free(s_hat);
    free(s);
    free(landmarks);
    free(tokens);
    atn_context_free(context);
}

/* S04 in every row: semi-definite, exact on landmarks, never better than the best. S05: what is
 * seen at 196 tokens by a wide margin. */
Test(spectral_sampling, sampling_keeps_what_is_proved)
{
    static const char *const with[] = {"pool",   "conv",     "random",     "first", "kmeans++",
                                       "kmeans", "leverage", "rpcholesky", "greedy"};
    static const int draws[] = {1, 3, 3, 1, 3, 3, 3, 3, 1};
    cr_assert(run_experiment(&spectral_sampling, "--quick --out out") == EXIT_PASS);
    table *t = read_output(&spectral_sampling, "out", 0);
    table *summary = read_output(&spectral_sampling, "out", 1);
    cr_expect_eq(table_rows(t), 7 * 2 * 21);
    cr_expect_eq(table_rows(summary), 7 * 2 * 9);
    for (int64_t row = 0; row < table_rows(t); row++) {
        double trace = cell_real(t, row, "trace_error"), norm = cell_real(t, row, "spectral_error");
        bool subset = !cell_missing(t, row, "exact_error");
        const char *name = cell_text(t, row, "sampler");
        cr_expect(cell_real(t, row, "rounding") < 1e-10 &&
                      cell_real(t, row, "lowest_eigenvalue") >= -cell_real(t, row, "rounding"),
                  "row %" PRId64, row);
        double one = 1 + cell_real(t, row, "rounding");
        cr_expect(trace >= cell_real(t, row, "best_trace_error") && trace <= one &&
                      norm >= cell_real(t, row, "best_spectral_error") && norm <= one,
                  "row %" PRId64 ": %.17g %.17g", row, trace, norm);
        cr_expect(close_to(cell_real(t, row, "trace_ratio"),
                           trace / cell_real(t, row, "best_trace_error"), 1e-12) &&
                      close_to(cell_real(t, row, "spectral_ratio"),
                               norm / cell_real(t, row, "best_spectral_error"), 1e-12),
                  "row %" PRId64, row);
        cr_expect_eq(subset,
                     strcmp(name, "pool") != 0 && strcmp(name, "conv") != 0 &&
                         strcmp(name, "kmeans") != 0,
                     "%s", name);
        cr_expect(!subset || cell_real(t, row, "exact_error") <= cell_real(t, row, "rounding"),
                  "row %" PRId64, row);
        cr_expect(cell_integer(t, row, "rank_f32") <= cell_integer(t, row, "rank_f64") &&
                      cell_integer(t, row, "pivots") <= cell_integer(t, row, "m"),
                  "row %" PRId64, row);
    }
    for (int64_t row = 0; row < table_rows(summary); row++)
        cr_expect(cell_integer(summary, row, "draws") == draws[row % 9] &&
                      cell_is(summary, row, "sampler", with[row % 9]) &&
                      (cell_real(summary, row, "draw_spread") > 1) == (draws[row % 9] > 1),
                  "row %" PRId64, row);
    int first = sampling_row(t, "smooth", 16, "first");
    cr_expect(cell_real(t, sampling_row(t, "smooth", 16, "random"), "trace_error") <
              cell_real(t, first, "trace_error"));
    cr_expect(cell_real(t, first, "exact_error") > 0, "S^ cannot be S to the last bit in 16 rows");
    cr_expect(cell_integer(t, sampling_row(t, "photos", 49, "pool"), "rank_f32") < 49);
    int pooled = sampling_row(summary, "clusters", 49, "pool");
    int drawn = sampling_row(summary, "clusters", 49, "random");
    cr_expect(cell_real(summary, pooled, "trace_error_median") >
              5 * cell_real(summary, drawn, "trace_error_median"));
    pooled = sampling_row(summary, "smooth", 49, "pool");
    drawn = sampling_row(summary, "smooth", 49, "random");
    cr_expect(cell_real(summary, drawn, "trace_error_median") >
              1.2 * cell_real(summary, pooled, "trace_error_median"));
    table_free(summary);
    table_free(t);
}

/* Of two samples with the same tokens, V differs, and what samplers draw. The first two tokens are
 * one: A of the first tokens is singular, and the floor stands for its smallest eigenvalue. */
Test(spectral_sampling, samples_have_their_own_values)
{
    static const int64_t shape[] = {2, 49, 4};
    double tokens[2 * 49 * 4];
    for (int i = 0; i < 2 * 49 * 4; i++)
        tokens[i] = sin(i % (49 * 4) < 4 ? i % 4 : i % (49 * 4) - 4);
    cr_assert(npy_write(".", "twice.npy", ATN_F64, 3, shape, tokens) == EXIT_PASS);
    cr_assert(run_experiment(&spectral_sampling, "--input twice.npy --grid 7x7 --m 9 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_sampling, "out", 0);
    for (int k = 0; k < SAMPLERS; k++) {
        int64_t rows[2], found = 0;
        for (int64_t row = 0; row < table_rows(t); row++)
            if (cell_is(t, row, "sampler", samplers[k].name) && cell_integer(t, row, "draw") == 0)
                rows[found++ % 2] = row;
        cr_assert(found == 2, "%s: %" PRId64, samplers[k].name, found);
        bool same = cell_real(t, rows[0], "trace_error") == cell_real(t, rows[1], "trace_error");
        if (samplers[k].steps == 0) /* Lloyd's steps may end at the same landmarks */
            cr_expect(same == !samplers[k].random, "%s", samplers[k].name);
        cr_expect(cell_real(t, rows[0], "value_error") != cell_real(t, rows[1], "value_error"));
        if (strcmp(samplers[k].name, "first") == 0)
            cr_expect(cell_boolean(t, rows[0], "below_floor") &&
                      close_to(cell_real(t, rows[0], "kappa"), 0x1p53 / 9, 1e-12));
    }
    table_free(t);
}

/* With all tokens as landmarks nothing is missed, and rounding does not make it less. */
Test(spectral_sampling, what_is_missed_is_not_negative)
{
    static const int64_t shape[] = {1, 36, 4};
    double tokens[36 * 4];
    for (int i = 0; i < 36 * 4; i++)
        tokens[i] = 3 * sin(i * i);
    cr_assert(npy_write(".", "all.npy", ATN_F64, 3, shape, tokens) == EXIT_PASS);
    cr_assert(run_experiment(&spectral_sampling, "--input all.npy --grid 6x6 --m 36 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_sampling, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++) {
        double error = cell_real(t, row, "trace_error");
        cr_expect(error >= 0 && error < 1, "%s: %g", cell_text(t, row, "sampler"), error);
    }
    table_free(t);
}

/* From the rows: medians, extremes, the spread of draws of the same tokens, places. */
Test(spectral_sampling, sampling_is_summed_up)
{
    cr_assert(
        run_experiment(&spectral_sampling,
                       "--input clusters --m 16 --stage 3 --samples 2 --seed 1,2 --out out") ==
        EXIT_PASS);
    table *t = read_output(&spectral_sampling, "out", 0);
    table *summary = read_output(&spectral_sampling, "out", 1);
    cr_assert_eq(table_rows(summary), 9);
    for (int64_t row = 0; row < 9; row++) {
        double least = INFINITY, most = 0, spread = 1;
        double middle = cell_real(summary, row, "trace_error_median");
        int below = 0, above = 0, draws = 0, better = 0;
        const char *name = cell_text(summary, row, "sampler");
        for (int64_t i = 0; i < table_rows(t); i++) {
            double error = cell_real(t, i, "trace_error");
            if (!cell_is(t, i, "sampler", name))
                continue;
            draws++;
            below += error <= middle;
            above += error >= middle;
            least = fmin(least, error);
            most = fmax(most, error);
            for (int64_t j = i; j < table_rows(t) && j < i + 3; j++)
                if (cell_is(t, j, "sampler", name) &&
                    cell_integer(t, j, "sample") == cell_integer(t, i, "sample") &&
                    cell_integer(t, j, "seed") == cell_integer(t, i, "seed"))
                    spread = fmax(spread, fmax(error / cell_real(t, j, "trace_error"),
                                               cell_real(t, j, "trace_error") / error));
        }
        for (int64_t other = 0; other < 9; other++)
            better += cell_real(summary, other, "trace_error_median") < middle;
        cr_expect(cell_integer(summary, row, "draws") == draws && 2 * below >= draws &&
                      2 * above >= draws,
                  "%s: %d %d of %d", name, below, above, draws);
        cr_expect(cell_real(summary, row, "trace_error_min") == least &&
                      cell_real(summary, row, "trace_error_max") == most,
                  "%s: %g %g", name, least, most);
        cr_expect(close_to(cell_real(summary, row, "draw_spread"), spread, 1e-12), "%s: %g", name,
                  spread);
        cr_expect_eq(cell_integer(summary, row, "place"), better + 1, "%s", name);
    }
    table_free(summary);
    table_free(t);
}
