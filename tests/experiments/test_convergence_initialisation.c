/* SPDX-License-Identifier: BSD-3-Clause */
/* convergence/initialisation: each start against what theory says of it. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/npy.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(convergence_initialisation, .init = scratch_begin, .fini = scratch_end);

static partial_run initialisation;

static void run_initialisation(void)
{
    prepare_run(&initialisation, &convergence_initialisation, "--input smooth,iid");
    run_points(&initialisation);
}

/* Walks over the rows of a rule. */
static int64_t next_row(const table *t, int64_t row, const char *rule)
{
    for (row++; row < table_rows(t); row++)
        if (cell_is(t, row, "rule", rule))
            return row;
    return -1;
}

static const char *row_name(const table *t, int64_t row)
{
    static char name[128];
    snprintf(name, sizeof name, "%s m=%" PRId64 " %s %s", cell_text(t, row, "matrix"),
             cell_integer(t, row, "m"), cell_text(t, row, "rule"), cell_text(t, row, "dtype"));
    return name;
}

/* Known matrices have all row sums equal, or their largest eigenvalue in a block of that kind. */
static bool is_known(const table *t, int64_t row)
{
    return cell_missing(t, row, "stage");
}

Test(convergence_initialisation, paper_start_annihilates_the_leading_eigenvector)
{
    run_initialisation();
    const table *t = initialisation.raw;
    int count = 0;
    for (int64_t row = -1; (row = next_row(t, row, "paper")) >= 0;) {
        bool f64 = cell_is(t, row, "dtype", "f64");
        if (!is_known(t, row))
            continue;
        count++;
        cr_expect(fabs(cell_real(t, row, "margin") + 1) <= (f64 ? 1e-13 : 1e-5), "%s: margin %.17g",
                  row_name(t, row), cell_real(t, row, "margin"));
        /* in f32 some u of rounding, doubled 20 times, have come near 1 */
        cr_expect(cell_real(t, row, "residual_t20") >= (f64 ? 0.999999 : 0.2), "%s: %g",
                  row_name(t, row), cell_real(t, row, "residual_t20"));
        cr_expect(cell_is(t, row, "status_t20", "not converged"), "%s", row_name(t, row));
        if (cell_is(t, row, "matrix", "identity")) {
            cr_expect_eq(cell_real(t, row, "residual_t20"), 1, "%s", row_name(t, row));
            cr_expect_eq(cell_real(t, row, "residual_t60"), 1, "%s", row_name(t, row));
        }
    }
    cr_expect_eq(count, 20);
    end_run(&initialisation);
}

Test(convergence_initialisation, safe_start_repairs_it)
{
    run_initialisation();
    const table *t = initialisation.raw;
    for (int64_t row = -1; (row = next_row(t, row, "safe")) >= 0;) {
        if (is_known(t, row))
            cr_expect(fabs(cell_real(t, row, "margin") + 0.8) <= 1e-5, "%s: %g", row_name(t, row),
                      cell_real(t, row, "margin"));
        cr_expect(cell_real(t, row, "residual_t20") < 1e-3, "%s: %g", row_name(t, row),
                  cell_real(t, row, "residual_t20"));
        if (cell_is(t, row, "matrix", "identity")) {
            cr_expect(cell_real(t, row, "residual_t20") <= 1e-7, "%s", row_name(t, row));
            cr_expect(cell_is(t, row, "status_t20", "converged"), "%s", row_name(t, row));
        }
    }
    end_run(&initialisation);
}

/* As README has it: the circulant matrix, singular to f32, overflows by step 60 there; and not in
 * f64, nor the matrix of ones, whose entries are all sums of the same numbers in the same order. */
Test(convergence_initialisation, noise_overflows_a_singular_matrix_in_f32)
{
    run_initialisation();
    const table *t = initialisation.raw;
    for (int64_t row = -1; (row = next_row(t, row, "safe")) >= 0;) {
        if (!is_known(t, row))
            continue;
        bool overflows =
            cell_is(t, row, "matrix", "circulant:5") && cell_is(t, row, "dtype", "f32");
        cr_expect_eq(cell_is(t, row, "status_t60", "overflowed"), overflows, "%s",
                     row_name(t, row));
        cr_expect_eq(cell_real(t, row, "residual_t60") == INFINITY, overflows, "%s",
                     row_name(t, row));
    }
    end_run(&initialisation);
}

/* In exact arithmetic the printed search ends at n = 0 if |A|_1 <= 2 and never otherwise; in
 * floating point it ends where c (r - 2) drowns in 1, and alpha is lost. */
/* The printed sentence names the matrices of the run that overflow from the safe start, and no
 * other: which they are depends on the instruction set. */
Test(convergence_initialisation, later_overflows_are_those_of_the_rows)
{
    size_t size;
    prepare_run(&initialisation, &convergence_initialisation, "--input photos,smooth --samples 2");
    run_points(&initialisation);
    finish_run(&initialisation);
    fflush(stdout);
    char *text = (char *)scratch_read("stdout.txt", &size);
    const char *list = strstr(text, "these overflow by step 60: ");
    cr_assert(list, "circulant:5 does in every instruction set");
    const table *t = initialisation.raw;
    for (int64_t row = -1; (row = next_row(t, row, "safe")) >= 0;) {
        char name[64];
        snprintf(name, sizeof name, " %s m=%" PRId64 " (%s)", cell_text(t, row, "matrix"),
                 cell_integer(t, row, "m"), cell_text(t, row, "dtype"));
        bool overflows = false; /* of its samples */
        for (int64_t other = -1; (other = next_row(t, other, "safe")) >= 0;)
            overflows |= cell_is(t, other, "status_t60", "overflowed") &&
                         cell_is(t, other, "matrix", cell_text(t, row, "matrix")) &&
                         cell_is(t, other, "dtype", cell_text(t, row, "dtype")) &&
                         cell_integer(t, other, "m") == cell_integer(t, row, "m");
        const char *named = strstr(list, name);
        cr_expect((named != NULL) == overflows, "%s", name);
        cr_expect(!named || !strstr(named + 1, name), "%s twice", name);
    }
    free(text);
    end_run(&initialisation);
}

Test(convergence_initialisation, adaptive_start_exists_only_by_rounding)
{
    run_initialisation();
    const table *t = initialisation.raw;
    int by_rounding = 0;
    for (int64_t row = -1; (row = next_row(t, row, "adaptive")) >= 0;) {
        bool f64 = cell_is(t, row, "dtype", "f64");
        bool exists = cell_boolean(t, row, "search_exact");
        int64_t n = cell_integer(t, row, "search_n");
        cr_expect_eq(exists, cell_real(t, row, "norm1") <= 2, "%s", row_name(t, row));
        cr_expect(cell_boolean(t, row, "search_found"), "%s", row_name(t, row));
        cr_expect(exists ? n == 0 : n >= (f64 ? 47 : 18) && n <= (f64 ? 54 : 25), "%s: n %" PRId64,
                  row_name(t, row), n);
        if (exists)
            continue;
        by_rounding++;
        cr_expect(cell_real(t, row, "residual_t20") > (f64 ? 0.999 : 0.1), "%s: %g",
                  row_name(t, row), cell_real(t, row, "residual_t20"));
    }
    cr_expect_eq(by_rounding, 16);
    for (int64_t row = -1; (row = next_row(t, row, "adaptive-squared")) >= 0;)
        if (!is_known(t, row))
            cr_expect(!cell_boolean(t, row, "search_exact") &&
                          cell_real(t, row, "residual_t20") > 0.9,
                      "%s", row_name(t, row));
    end_run(&initialisation);
}

/* Three tokens at equal distances: A has 1 and a, and columns that sum to 1 + 2 a; A^2 has 1 + 2
 * a^2 and 2 a + a^2. The search through A has an answer if a <= 1/2, that through A^2 if a <= 1/4.
 */
Test(convergence_initialisation, adaptive_start_exists_on_one_side_of_its_limits)
{
    static const double off_diagonal[] = {0.2499, 0.2501, 0.4999, 0.5001};
    for (int i = 0; i < 4; i++) {
        partial_run r;
        double a = off_diagonal[i], tokens[9] = {0};
        int64_t shape[] = {3, 3};
        int seen = 0;
        tokens[0] = tokens[4] = tokens[8] = sqrt(-log(a) / 2);
        cr_assert_eq(npy_write(".", "simplex.npy", ATN_F64, 2, shape, tokens), EXIT_PASS);
        prepare_run(&r, &convergence_initialisation, "--input simplex.npy --scale 1 --dtype f64");
        run_points(&r);
        for (int64_t row = 0; row < table_rows(r.raw); row++) {
            bool square = cell_is(r.raw, row, "rule", "adaptive-squared");
            if (!cell_is(r.raw, row, "matrix", "simplex.npy") ||
                !(square || cell_is(r.raw, row, "rule", "adaptive")))
                continue;
            cr_expect_eq(cell_boolean(r.raw, row, "search_exact"), a <= (square ? 0.25 : 0.5),
                         "%s, a = %g", cell_text(r.raw, row, "rule"), a);
            seen++;
        }
        cr_expect_eq(seen, 2);
        end_run(&r);
    }
}

/* 2/(1 + 4) where f32 cannot tell the smallest eigenvalue from 0, 2/(0 + 4) in f64. */
Test(convergence_initialisation, optimal_start_is_that_of_the_numerical_range)
{
    partial_run r;
    int seen = 0;
    write_pair_tokens("pair.npy");
    prepare_run(&r, &convergence_initialisation, "--input pair.npy --scale 1");
    run_points(&r);
    for (int64_t row = -1; (row = next_row(r.raw, row, "optimal")) >= 0;)
        if (!is_known(r.raw, row)) {
            bool f64 = cell_is(r.raw, row, "dtype", "f64");
            cr_expect(close_to(cell_real(r.raw, row, "alpha"), f64 ? 0.5 : 0.4, 1e-5), "%s: %g",
                      row_name(r.raw, row), cell_real(r.raw, row, "alpha"));
            seen++;
        }
    cr_expect_eq(seen, 2);
    end_run(&r);
}

/* margin is what its description says, and the codes' starts behave as published. */
Test(convergence_initialisation, starts_of_the_published_codes)
{
    run_initialisation();
    const table *t = initialisation.raw;
    for (int64_t row = 0; row < table_rows(t); row++) {
        double largest = cell_real(t, row, "lambda_max");
        cr_expect_eq(cell_real(t, row, "margin"),
                     1 - cell_real(t, row, "alpha") * largest * largest, "%s", row_name(t, row));
        bool diverges = !(cell_real(t, row, "margin") > -1 + 1e-5);
        cr_expect(!diverges || cell_is(t, row, "status_t20", "not converged"), "%s",
                  row_name(t, row));
        cr_expect_eq(cell_missing(t, row, "search_found"),
                     cell_is(t, row, "rule", "paper") || cell_is(t, row, "rule", "safe") ||
                         cell_is(t, row, "rule", "soft") || cell_is(t, row, "rule", "optimal"),
                     "%s", row_name(t, row));
    }
    for (int64_t row = -1; (row = next_row(t, row, "softpp")) >= 0;) {
        cr_expect(cell_integer(t, row, "search_n") <= 8, "%s", row_name(t, row));
        if (cell_is(t, row, "matrix", "identity"))
            cr_expect_eq(cell_real(t, row, "residual_t60"), 1, "%s", row_name(t, row));
    }
    for (int64_t row = -1; (row = next_row(t, row, "soft")) >= 0;) {
        if (!cell_is(t, row, "matrix", "identity"))
            continue;
        cr_expect(fabs(cell_real(t, row, "lambda_max") - 1.01) < 1e-6, "%s", row_name(t, row));
        cr_expect(fabs(cell_real(t, row, "residual_t20") - 0.01 / 1.01) < 1e-6, "%s: 1 - 1 / 1.01",
                  row_name(t, row));
    }
    end_run(&initialisation);
}

/* Tokens that overflow f32 make an A of NaN: no test was met on it, and nothing converged. */
Test(convergence_initialisation, no_search_succeeds_on_an_a_that_is_not_finite)
{
    partial_run r;
    write_sine_tokens("huge.npy", 1, 64, 2, 1e39);
    prepare_run(&r, &convergence_initialisation, "--input huge.npy --dtype f32");
    run_points(&r);
    int searches = 0;
    for (int64_t row = 0; row < table_rows(r.raw); row++) {
        if (!cell_is(r.raw, row, "matrix", "huge.npy"))
            continue;
        bool searched = !cell_missing(r.raw, row, "search_found");
        searches += searched;
        cr_expect(isnan(cell_real(r.raw, row, "margin")), "%s", row_name(r.raw, row));
        cr_expect(cell_is(r.raw, row, "status_t20", "overflowed"), "%s", row_name(r.raw, row));
        cr_expect(cell_missing(r.raw, row, "search_n"), "%s", row_name(r.raw, row));
        cr_expect(!searched || !cell_boolean(r.raw, row, "search_found"), "%s: found",
                  row_name(r.raw, row));
    }
    cr_expect_eq(searches, 3);
    end_run(&r);
}
