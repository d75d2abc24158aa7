/* SPDX-License-Identifier: BSD-3-Clause */
/* cost/time: of its rows only what does not depend on how fast the machine is. */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>

#include "common/report.h"
#include "cost/calls.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(cost_time, .init = scratch_begin, .fini = scratch_end);

static void check_row(const table *t, int64_t row)
{
    double median = cell_number(t, row, "ratio_median"), pairs = cell_number(t, row, "pairs");
    double m = cell_number(t, row, "m");
    cr_expect(cell_number(t, row, "ratio_min") > 0 && cell_number(t, row, "ratio_min") <= median &&
              median <= cell_number(t, row, "ratio_max"));
    cr_expect_eq(pairs, cell_is(t, row, "a_work", "forward-unstepped") ? 15 : 3, "%g pairs", pairs);
    cr_expect(cell_number(t, row, "a_seconds") > 0 && cell_number(t, row, "b_seconds") > 0);
    int col = table_column(t, "dirty");
    cr_expect(table_is_missing(t, row, col) ||
              (cell_number(t, row, "dirty") >= 0 && cell_number(t, row, "dirty") <= pairs));
    if (cell_is(t, row, "statement", "S17")) { /* all T iterates, in f32, in one plan alone */
        double more =
            cell_number(t, row, "a_workspace_bytes") - cell_number(t, row, "b_workspace_bytes");
        cr_expect(more >= 20 * m * m * 4 && more <= 24 * m * m * 4 + 4096, "m %g: %g", m, more);
        cr_expect(cell_is(t, row, "a_work", "backward-steps"));
        cr_expect(cell_is(t, row, "b_work", "backward-closed"));
    }
    double stage_heads = cell_number(t, row, "n") < 784 ? 10 : 4; /* SOFT-Tiny's stages 2, 3 */
    cr_expect_eq(cell_number(t, row, "heads"),
                 cell_is(t, row, "statement", "N05") ? stage_heads : 1);
    if (cell_is(t, row, "b_work", "exps"))
        cr_expect(cell_number(t, row, "exps") ==
                  pow(cell_number(t, row, cell_is(t, row, "a", "xca") ? "d" : "n"), 2));
    if (cell_is(t, row, "a_work", "forward-unstepped")) { /* 20 steps would be 80 m^3 more */
        cr_expect(cell_number(t, row, "b_flops") < 20 * pow(m, 3) + 1000 * pow(m, 2));
        cr_expect(cell_number(t, row, "a_flops") - cell_number(t, row, "b_flops") == 3 * pow(m, 2));
    }
}

Test(cost_time, rows_of_a_quick_run, .timeout = 240)
{
    cr_assert(run_experiment(&cost_time, "--quick --threads 2 --out out") == EXIT_PASS);
    table *t = read_output(&cost_time, "out", 0);
    static const char *const statements[] = {"S17", "S29", "M03", "M05", "N05"};
    int found[5] = {0};
    for (int64_t row = 0; row < table_rows(t); row++) {
        check_row(t, row);
        for (int i = 0; i < 5; i++)
            found[i] += cell_is(t, row, "statement", statements[i]);
    }
    cr_expect(found[0] == 2 && found[1] == 5 && found[2] == 12 && found[3] == 12 && found[4] == 38);
    cr_expect(found[0] + found[1] + found[2] + found[3] + found[4] == table_rows(t));
    table_free(t);
}

/* Whole blocks of 1024, and what is beyond. */
Test(cost_time, as_many_exps_as_are_asked_for)
{
    static const int64_t counts[] = {0, 1, 1023, 1024, 1025, 4096, 196 * 196};
    atn_context *context;
    cr_assert_eq(atn_context_create(&(atn_context_options){.threads = 1}, &context), ATN_OK);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        double done;
        cr_expect_eq(call_exps(context, counts[i], &done), ATN_OK);
        cr_expect_eq(done, (double)counts[i], "%d: %g", (int)counts[i], done);
    }
    atn_context_free(context);
}

static const column alone_columns[] = {{"threads", COLUMN_INTEGER, "", "at work"}};
static const output_spec alone_outputs[] = {{"alone", "", alone_columns, 1}};

static int alone_prepare(const program_options *s, void **state, int64_t *points)
{
    (void)s, (void)state;
    *points = 8;
    return EXIT_PASS;
}

static void alone_describe(const void *state, int64_t point, char *buffer, size_t size)
{
    (void)state, (void)point;
    buffer[0] = size ? '\0' : 'x';
}

static int alone_run(const void *state, int64_t point, atn_context *context, table *raw)
{
    (void)state, (void)point, (void)context;
    cr_expect(omp_get_num_threads() == 1, "%d", omp_get_num_threads());
    table_integer(raw, omp_get_num_threads());
    return EXIT_PASS;
}

Test(cost_time, points_that_measure_time_run_alone)
{
    static const experiment alone = {.name = "cost/alone",
                                     .alone = true,
                                     .outputs = alone_outputs,
                                     .output_count = 1,
                                     .prepare = alone_prepare,
                                     .describe = alone_describe,
                                     .run = alone_run};
    cr_expect(cost_time.alone);
    cr_expect(run_experiment(&alone, "--threads 4 --out out") == EXIT_PASS);
}
