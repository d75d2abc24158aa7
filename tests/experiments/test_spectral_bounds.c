/* SPDX-License-Identifier: BSD-3-Clause */
/* spectral/bounds: measured norms against printed and corrected bounds. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/npy.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(spectral_bounds, .init = scratch_begin, .fini = scratch_end);

static const double u = 0x1p-53;

/* S06, S21: |S^|_2 <= lambda_1(S) <= n, whatever the input. */
Test(spectral_bounds, attention_never_exceeds_the_kernel_nor_n)
{
    static const char *const names[] = {"photos",   "trained:soft", "smooth",    "smooth:8",
                                        "noisy",    "iid",          "iid:0.3",   "clusters",
                                        "constant", "circulant",    "duplicates"};
    enum { NAMES = sizeof names / sizeof *names };
    int corrected[NAMES] = {0}, iterate[NAMES] = {0}, kernel[NAMES] = {0}, lower = 0;
    cr_assert(run_experiment(&spectral_bounds, "--samples 1 --out out") == EXIT_PASS);
    table *t = read_output(&spectral_bounds, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++) {
        const char *statement = cell_text(t, row, "statement");
        double measured = cell_real(t, row, "measured"), bound = cell_real(t, row, "bound");
        bool above = !(measured <= bound * (1 + 1e-9));
        for (int i = 0; i < NAMES; i++) {
            if (!cell_is(t, row, "input", names[i]))
                continue;
            corrected[i] += strcmp(statement, "S06-corrected") == 0;
            iterate[i] += strcmp(statement, "S06-iterate") == 0;
            kernel[i] +=
                strcmp(statement, "S21-printed") == 0 && bound == (double)cell_integer(t, row, "n");
            cr_expect(!cell_boolean(t, row, "proved") || !above,
                      "%s %s n=%" PRId64 ": %.12g > %.12g", statement, names[i],
                      cell_integer(t, row, "n"), measured, bound);
        }
        cr_expect(cell_real(t, row, "ratio") == measured / bound, "row %" PRId64, row);
        lower += strcmp(statement, "S20-lower") == 0;
        cr_expect(strcmp(statement, "S20-lower") != 0 || bound == 1, "row %" PRId64, row);
        cr_expect((strncmp(statement, "S22", 3) != 0 && strncmp(statement, "S23", 3) != 0) ||
                      !cell_is(t, row, "input", "constant"),
                  "%s of a singular matrix", statement);
        cr_expect(cell_boolean(t, row, "within") ==
                      (measured <= bound * (1 + cell_real(t, row, "allowance"))),
                  "row %" PRId64, row);
    }
    for (int i = 0; i < NAMES; i++)
        cr_expect(corrected[i] == 2 && iterate[i] == 2 && kernel[i] == 2, "%s: %d %d %d rows",
                  names[i], corrected[i], iterate[i], kernel[i]);
    cr_expect(lower == 2 * NAMES + 2, "%d rows of S20-lower", lower);
    table_free(t);
}

/* S22, S23: with gap = 1 - exp(-s delta^2), two tokens have |A^-1|_2 = 1/gap, not O(m^2), and
 * |D^-1/2 A^-1 D^-1/2|_2 = 1/(gap (2 - gap)), not O(m); the bounds that hold are attained. */
Test(spectral_bounds, two_tokens_break_the_bounds)
{
    static const struct {
        const char *statement;
        bool holds;
        double bound; /* 0: attained */
    } want[] = {{"S22-pair", false, 4},
                {"S22-corrected", true, 0},
                {"S23-pair", false, 2},
                {"S23-corrected", true, 0},
                {"S23-lower", true, 0}};
    int rows[5] = {0}, norms = 0;
    cr_assert(run_experiment(&spectral_bounds,
                             "--input iid --stage 3 --samples 1 --scale 0.3 --seed 1,2 "
                             "--out out") == EXIT_PASS);
    table *t = read_output(&spectral_bounds, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++) {
        double delta = 0, measured = cell_real(t, row, "measured"), bound = 0;
        norms += cell_is(t, row, "input", "iid-norms");
        if (sscanf(cell_text(t, row, "input"), "pair:%lf", &delta) != 1)
            continue;
        double gap = -expm1(-0.3 * delta * delta);
        for (int i = 0; i < 5; i++) {
            if (!cell_is(t, row, "statement", want[i].statement))
                continue;
            double norm = i < 2 ? 1 / gap : 1 / (gap * (2 - gap));
            bound = want[i].bound > 0 ? want[i].bound : norm;
            rows[i]++;
            cr_expect(close_to(measured, norm, 20 * u / gap) &&
                          close_to(cell_real(t, row, "bound"), bound, 20 * u / gap) &&
                          cell_boolean(t, row, "within") == want[i].holds &&
                          !cell_boolean(t, row, "below_floor") && cell_integer(t, row, "m") == 2,
                      "%s delta=%g: %.12g, want %.12g", want[i].statement, delta, measured, norm);
        }
    }
    for (int i = 0; i < 5; i++)
        cr_expect(rows[i] == 4, "%s: %d rows", want[i].statement, rows[i]);
    cr_expect(norms == 8, "%d rows of iid-norms", norms);
    table_free(t);
}

/* With s = 1e-10, s delta^2 is 1e-16 at delta = 1e-3: A is below the floor, and the pair has a
 * lower bound of the norm only; at 1e-4 the two tokens are equal to rounding, and there is no row.
 */
Test(spectral_bounds, pairs_below_the_floor_are_bounded_from_below)
{
    int rows = 0;
    cr_assert(run_experiment(&spectral_bounds,
                             "--input iid --stage 3 --samples 1 --scale 1e-10 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_bounds, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++) {
        const char *name = cell_text(t, row, "input"), *statement = cell_text(t, row, "statement");
        cr_expect(strcmp(name, "pair:0.0001") != 0, "%s of twins", statement);
        if (strcmp(name, "pair:0.001") != 0)
            continue;
        rows++;
        cr_expect(strstr(statement, "-pair") && cell_boolean(t, row, "below_floor") &&
                      cell_real(t, row, "measured") < 1e16 && cell_real(t, row, "measured") > 1e14,
                  "%s: %g", statement, cell_real(t, row, "measured"));
    }
    cr_expect(rows == 2, "%d rows below the floor", rows);
    table_free(t);
}

/* The same matrix as in normalisation_may_put_a_row_below_the_floor, of tokens: eight at distances
 * with exp(-d^2) = 1/2, two nearly alike far away. What depends on the normalised matrix alone is
 * below the floor; what depends on A or on neither is not. */
Test(spectral_bounds, a_row_of_bounds_is_below_the_floor_for_its_own_sake)
{
    enum { COUNT = 10 };
    static const struct {
        const char *statement;
        bool below;
    } want[] = {{"S06-printed", false}, {"S06-iterate", false}, {"S20-corrected", false},
                {"S21-printed", false}, {"S22-printed", false}, {"S23-printed", true}};
    enum { WANTED = sizeof want / sizeof *want };
    double tokens[COUNT * COUNT] = {0};
    int found[WANTED] = {0};
    const int64_t shape[] = {COUNT, COUNT};
    for (int i = 0; i < 8; i++)
        tokens[i * COUNT + i] = sqrt(log(2) / 2), tokens[i * COUNT + 8] = 100;
    tokens[9 * COUNT + 9] = sqrt(70 * u);
    cr_assert_eq(npy_write(".", "tokens.npy", ATN_F64, 2, shape, tokens), EXIT_PASS);
    cr_assert(run_experiment(&spectral_bounds, "--input tokens.npy --m 10 --scale 1 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_bounds, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++)
        for (int i = 0; i < WANTED; i++)
            if (cell_is(t, row, "input", "tokens.npy") &&
                cell_is(t, row, "statement", want[i].statement)) {
                found[i]++;
                cr_expect(cell_boolean(t, row, "below_floor") == want[i].below, "%s: %.12g",
                          want[i].statement, cell_real(t, row, "measured"));
            }
    for (int i = 0; i < WANTED; i++)
        cr_expect(found[i] == 1, "%s: %d rows", want[i].statement, found[i]);
    table_free(t);
}
