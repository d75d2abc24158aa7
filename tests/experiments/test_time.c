/* SPDX-License-Identifier: BSD-3-Clause */
/* cost/time: the statistics of pairs on a clock and ticks made up here; of the experiment itself
 * only what does not depend on how fast anything is. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "cost/pairs.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(time, .init = scratch_begin, .fini = scratch_end);

/* ---- Statistics ---- */

Test(time, medians)
{
    double odd[] = {5, 1, 9}, even[] = {4, 1, 3, 10}, one[] = {7}, bad[] = {1, NAN, 2};
    pair_statistics s = pair_statistics_of(3, odd);
    cr_expect(s.median == 5 && s.least == 1 && s.largest == 9);
    s = pair_statistics_of(4, even);
    cr_expect(s.median == 3.5 && s.least == 1 && s.largest == 10);
    s = pair_statistics_of(1, one);
    cr_expect(s.median == 7 && s.least == 7 && s.largest == 7);
    s = pair_statistics_of(3, bad);
    cr_expect(isnan(s.median) && isnan(s.least) && isnan(s.largest));
    cr_expect(isnan(pair_statistics_of(0, NULL).median));
}

Test(time, crossovers)
{
    const double x[] = {1, 2, 4, 8};
    const double power[] = {0.25, 0.5, 2, 4}, never[] = {0.1, 0.2, 0.3, 0.4};
    const double back[] = {0.5, 2, 0.5, 0.25}, down[] = {4, 2, 0.5, 0.25};
    const double touch[] = {0.25, 1, 2, 4}, uneven[] = {0.25, 0.5, 1.5, 4};
    cr_expect(fabs(pair_crossover(4, x, power) - sqrt(8)) < 1e-12);
    cr_expect(isnan(pair_crossover(4, x, never)) && isnan(pair_crossover(4, x, back)));
    cr_expect(isnan(pair_crossover(4, x, down)));
    cr_expect(fabs(pair_crossover(4, x, touch) - 2) < 1e-12);
    double want = 2 * pow(2, log(2) / log(3)); /* 0.5 to 1.5 is a factor of 3 */
    cr_expect(fabs(pair_crossover(4, x, uneven) - want) < 1e-12);
}

/* ---- The machine's ticks ---- */

Test(time, ticks_are_read)
{
    machine_ticks t = {.own = 77};
    cr_expect(machine_ticks_parse("cpu  10 2 3 100 5 1 6 7 9 9\ncpu0 1 1 1 1 1 1 1 1\n", &t));
    cr_expect(t.all == 134 && t.idle == 105 && t.steal == 7 && t.own == 77);
    static const char *const bad[] = {"", "cpu0 10 2 3 100 5 1 6 7", "cpu 10 2 3", "intr 1 2 3"};
    for (int i = 0; i < 4; i++)
        cr_expect(!machine_ticks_parse(bad[i], &t), "%s", bad[i]);
}

Test(time, others_make_a_pair_dirty)
{
    /* Since zero: all, idle, steal, own. Of 200, 2 + 20 may be others', 2 + 4 stolen. */
    static const struct {
        machine_ticks after;
        bool dirty;
    } cases[] = {
        {{200, 100, 0, 100}, false}, {{200, 78, 0, 100}, false}, {{200, 77, 0, 100}, true},
        {{200, 100, 6, 94}, false},  {{200, 100, 7, 93}, true},  {{8, 3, 0, 4}, false},
        {{8, 1, 0, 4}, true},        {{8, 4, 0, 4}, false},      {{0, 0, 0, 0}, false},
    };
    static const machine_ticks starts[] = {{0, 0, 0, 0}, {1000, 300, 50, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int j = 0; j < 2; j++) {
            machine_ticks after = cases[i].after;
            after.all += starts[j].all;
            after.idle += starts[j].idle;
            after.steal += starts[j].steal;
            after.own += starts[j].own;
            cr_expect(machine_is_dirty(&starts[j], &after) == cases[i].dirty, "%zu", i);
        }
}

/* ---- Pairs on a made-up clock ---- */

typedef struct {
    double now, slow;          /* seconds; what work takes is multiplied by slow */
    double growth;             /* slow changes by this after every piece */
    int64_t ticks;             /* of others, so far */
    int readings, dirty_pairs; /* so many pairs have others at work, from the first on */
    bool silent;               /* says nothing about ticks */
    char log[4096];            /* "A" or "B" a piece */
    double outlier;            /* added to the piece number outlier_at */
    int outlier_at;
} toy;

typedef struct {
    toy *machine;
    char name;
    double seconds;
} toy_work;

static double toy_seconds(void *state)
{
    return ((toy *)state)->now;
}

/* Read twice a pair. */
static bool toy_ticks(void *state, machine_ticks *ticks)
{
    toy *m = state;
    if (m->readings % 2 == 1 && m->readings / 2 < m->dirty_pairs)
        m->ticks += 50;
    m->readings++;
    *ticks = (machine_ticks){.all = 1000 + m->ticks, .idle = 1000};
    return !m->silent;
}

static void toy_piece(void *state, int64_t times)
{
    toy_work *w = state;
    toy *m = w->machine;
    size_t length = strlen(m->log);
    cr_assert(length + 1 < sizeof m->log);
    m->log[length] = w->name;
    m->now += w->seconds * m->slow * (double)times;
    if ((int)length == m->outlier_at)
        m->now += m->outlier;
    m->slow *= m->growth;
}

static pair_result time_toy(toy *m, double a, double b, const pair_plan *plan)
{
    toy_work works[2] = {{m, 'A', a}, {m, 'B', b}};
    pair_side sides[2] = {{toy_piece, &works[0]}, {toy_piece, &works[1]}};
    pair_meter meter = {toy_seconds, toy_ticks, m};
    return pair_time(&meter, &sides[0], &sides[1], plan);
}

static const pair_plan five = {.pairs = 5, .again = 4, .least = 0, .most_once = 100};

Test(time, pairs_are_interleaved)
{
    toy m = {.slow = 1, .growth = 1, .outlier_at = -1};
    pair_result r = time_toy(&m, 3, 2, &five);
    cr_expect_str_eq(m.log, "AABBABABABABAB"); /* two of each to warm up */
    cr_expect(r.pairs == 5 && r.dirty == 0 && r.repeated == 0);
    cr_expect(r.ratio.median == 1.5 && r.ratio.least == 1.5 && r.ratio.largest == 1.5);
    cr_expect(r.difference.median == 1 && r.seconds[0] == 3 && r.seconds[1] == 2);
    cr_expect(r.times[0] == 1 && r.times[1] == 1);
}

/* A machine that becomes a fifth slower with every piece: times grow, ratios of neighbours do not.
 */
Test(time, ratios_outlive_a_slow_machine)
{
    toy m = {.slow = 1, .growth = 1.2, .outlier_at = -1};
    pair_result r = time_toy(&m, 3, 2, &five);
    cr_expect(fabs(r.ratio.median - 3 / 2.4) < 1e-12 && fabs(r.ratio.largest - 3 / 2.4) < 1e-12);
    toy hit = {.slow = 1, .growth = 1, .outlier_at = 6, .outlier = 27}; /* the second pair's A */
    r = time_toy(&hit, 3, 2, &five);
    cr_expect(r.ratio.median == 1.5 && r.ratio.least == 1.5 && r.ratio.largest == 15);
    cr_expect(r.seconds[0] == 3);
}

Test(time, short_work_is_repeated)
{
    toy m = {.slow = 1, .growth = 1, .outlier_at = -1};
    pair_plan plan = five;
    plan.least = 10;
    pair_result r = time_toy(&m, 3, 0.5, &plan);
    cr_expect(r.times[0] == 4 && r.times[1] == 32, "%" PRId64 " %" PRId64, r.times[0], r.times[1]);
    cr_expect(r.seconds[0] == 3 && r.seconds[1] == 0.5 && r.ratio.median == 6);
}

Test(time, long_work_gets_fewer_pairs)
{
    pair_plan plan = {.pairs = 9, .most_once = 2.5};
    toy m = {.slow = 1, .growth = 1, .outlier_at = -1};
    cr_expect(time_toy(&m, 2, 3, &plan).pairs == 4);
    toy other = {.slow = 1, .growth = 1, .outlier_at = -1};
    cr_expect(time_toy(&other, 2, 2.4, &plan).pairs == 9);
    plan.pairs = 5;
    toy third = {.slow = 1, .growth = 1, .outlier_at = -1};
    cr_expect(time_toy(&third, 2, 3, &plan).pairs == 3);
    plan.pairs = 2;
    toy fourth = {.slow = 1, .growth = 1, .outlier_at = -1};
    cr_expect(time_toy(&fourth, 2, 3, &plan).pairs == 2);
}

Test(time, dirty_pairs_are_timed_again_up_to_a_limit)
{
    toy few = {.slow = 1, .growth = 1, .outlier_at = -1, .dirty_pairs = 3};
    pair_result r = time_toy(&few, 3, 2, &five);
    cr_expect(r.pairs == 5 && r.dirty == 0 && r.repeated == 3);
    cr_expect(strlen(few.log) == 4 + 2 * (5 + 3));
    toy busy = {.slow = 1, .growth = 1, .outlier_at = -1, .dirty_pairs = 1000};
    r = time_toy(&busy, 3, 2, &five);
    cr_expect(r.pairs == 5 && r.dirty == 5 && r.repeated == 4 && r.ratio.median == 1.5);
    cr_expect(strlen(busy.log) == 4 + 2 * (5 + 4));
    toy some = {.slow = 1, .growth = 1, .outlier_at = -1, .dirty_pairs = 6};
    r = time_toy(&some, 3, 2, &five);
    cr_expect(r.dirty == 2 && r.repeated == 4, "%d %d", r.dirty, r.repeated);
    toy silent = {.slow = 1, .growth = 1, .outlier_at = -1, .dirty_pairs = 6, .silent = true};
    r = time_toy(&silent, 3, 2, &five);
    cr_expect(r.dirty == -1 && r.repeated == 0 && r.ratio.median == 1.5);
}

/* Time goes forward, and more work takes more of it. */
Test(time, the_machine_has_a_clock)
{
    double start = pair_machine.seconds(pair_machine.state);
    volatile double x = 1;
    while (pair_machine.seconds(pair_machine.state) == start)
        x = x * 1.0000001;
    cr_expect(pair_machine.seconds(pair_machine.state) > start);
    machine_ticks a, b;
    if (pair_machine.ticks(pair_machine.state, &a) && pair_machine.ticks(pair_machine.state, &b))
        cr_expect(b.own >= a.own && a.all >= a.idle && a.idle >= 0 && a.own >= 0);
}

/* ---- The experiment ---- */

static void check_row(const table *t, int64_t row)
{
    double median = cell_number(t, row, "ratio_median"), pairs = cell_number(t, row, "pairs");
    double m = cell_number(t, row, "m");
    cr_expect(cell_number(t, row, "ratio_min") > 0 && cell_number(t, row, "ratio_min") <= median &&
              median <= cell_number(t, row, "ratio_max"));
    cr_expect(pairs >= 3 && cell_number(t, row, "a_seconds") > 0 &&
              cell_number(t, row, "b_seconds") > 0);
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
    if (cell_is(t, row, "b_work", "exps"))
        cr_expect(cell_number(t, row, "exps") ==
                  pow(cell_number(t, row, cell_is(t, row, "a", "xca") ? "d" : "n"), 2));
    if (cell_is(t, row, "a_work", "forward-unstepped")) { /* 20 steps would be 80 m^3 more */
        cr_expect(cell_number(t, row, "b_flops") < 20 * pow(m, 3) + 1000 * pow(m, 2));
        cr_expect(cell_number(t, row, "a_flops") - cell_number(t, row, "b_flops") == 3 * pow(m, 2));
    }
}

Test(time, rows_of_a_quick_run, .timeout = 240)
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

/* ---- Alone ---- */

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

Test(time, points_that_measure_time_run_alone)
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
