/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum bench memory: which calls are fitted, the fits of exact power laws, and the rows of a
 * small run.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/growth.h"
#include "common/report.h"
#include "runs.h"
#include "scratch.h"

TestSuite(bench_growth, .init = scratch_begin, .fini = scratch_end);

/* Call i took i seconds: after warm-ups, and where the calls that are kept begin anew. */
Test(bench_growth, warm_ups_are_not_in_the_median)
{
    static const struct {
        int calls, rounds;
        double median;
    } cases[] = {{7, 5, 4}, {5, 5, 2}, {130, 5, 127}, {400, 101, 349}, {128, 1, 127}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double ring[GROWTH_KEPT];
        for (int i = 0; i < cases[c].calls; i++)
            ring[i % GROWTH_KEPT] = i;
        double got = growth_median_of_last(ring, cases[c].calls, cases[c].rounds);
        cr_expect_eq(got, cases[c].median, "%d of %d calls: %g", cases[c].rounds, cases[c].calls,
                     got);
    }
}

/* 5000 + 7 n. */
Test(bench_growth, the_constant_part_of_the_work)
{
    for (double n = 100; n < 1e8; n *= 10)
        for (double x = -0.5; x < 100; x = 2 * x + 2) {
            double share = growth_constant_share(5000 + 7 * n, 7 * n, x);
            double want = 5000 / (5000 + 7 * n * (1 + x));
            cr_expect(fabs(share - want) <= 1e-12, "n=%g x=%g: %g, want %g", n, x, share, want);
        }
    cr_expect(growth_constant_share(1e4, 3e4, 5) == 0, "n^2 has none");
}

Test(bench_growth, what_is_fitted)
{
    cr_expect(growth_is_fitted(0.01, 401, 100) && growth_is_fitted(0, 401, 100));
    cr_expect(!growth_is_fitted(0.0101, 401, 100), "the constant part");
    cr_expect(!growth_is_fitted(0, 400, 100), "a quarter of what fits into the cache");
    cr_expect(!growth_is_fitted(NAN, 401, 100) && !growth_is_fitted(0, NAN, 100));
}

Test(bench_growth, turns_with_the_shortest_fitted)
{
    static const struct {
        int64_t tokens[4];
        bool fitted[4];
        int64_t with[4];
    } lines[] = {{{1, 2, 4, 8}, {false, true, true, true}, {0, 0, 2, 2}},
                 {{8, 4, 2, 1}, {true, true, false, false}, {4, 0, 0, 0}},
                 {{3, 5, 3, 5}, {true, true, true, false}, {0, 3, 0, 0}},
                 {{1, 2, 4, 8}, {false}, {0}}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        int64_t with[4] = {-1, -1, -1, -1};
        growth_alternate(4, lines[i].tokens, lines[i].fitted, with);
        for (int k = 0; k < 4; k++)
            cr_expect(with[k] == lines[i].with[k], "line %zu, %d: %" PRId64, i, k, with[k]);
    }
}

/* ---- Fits ---- */

typedef struct {
    const char *operator, * inverse, *over;
    int64_t n, m, threads;
    double seconds, share;
    int64_t workspace;
    bool fitted;
    int64_t by_turns_with;
    double ratio;
} made_row;

/* The columns from one to before another. */
static void miss(table *t, const char *from, const char *to)
{
    for (int i = table_column(t, from); i < table_column(t, to); i++)
        table_missing(t);
}

static void put_row(table *t, const made_row *r)
{
    table_text(t, r->operator);
    table_text(t, "paper");
    *r->inverse ? table_text(t, r->inverse) : table_missing(t);
    table_text(t, r->over);
    table_text(t, "f32");
    table_integer(t, 1);
    table_integer(t, 2);
    table_integer(t, r->n);
    r->m ? table_integer(t, r->m) : table_missing(t);
    table_integer(t, 32);
    table_integer(t, r->threads);
    miss(t, "device", "repeats");
    table_integer(t, 5);
    for (int i = 0; i < 3; i++)
        table_real_if(t, r->seconds > 0, r->seconds);
    table_real(t, 0);
    table_missing(t);
    r->by_turns_with ? table_integer(t, r->by_turns_with) : table_missing(t);
    table_real_if(t, r->by_turns_with > 0, r->ratio);
    table_real_if(t, r->by_turns_with > 0, 0);
    miss(t, "idle_ticks", "bytes_workspace");
    table_integer(t, r->workspace);
    table_integer(t, 512 * r->n);
    table_real(t, 1);
    table_real(t, 1);
    table_real(t, r->share);
    table_boolean(t, r->fitted);
}

static table *made_table(void)
{
    return table_create(bench_growth.outputs[0].columns, bench_growth.outputs[0].column_count);
}

/* To be freed. */
static table *fit(const table *raw, int want)
{
    program_options s;
    table *tables[2] = {
        NULL, table_create(bench_growth.outputs[1].columns, bench_growth.outputs[1].column_count)};
    cr_assert_eq(parse_options(&s, &bench_growth, "--quick"), EXIT_PASS);
    cr_expect_eq(bench_growth.finish(&s, NULL, raw, tables), want);
    options_free(&s);
    return tables[1];
}

static int64_t find(const table *t, const char *quantity, int64_t threads)
{
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "quantity", quantity) && cell_integer(t, row, "threads") == threads)
            return row;
    cr_assert(false, "no %s", quantity);
    return -1;
}

/* Rows that are not fitted have times of another law, and the machine gets slower from row to row,
 * which ratios do not see. */
static table *made_line_in(const int order[8], double exponent, int fitted, double bytes_power)
{
    table *raw = made_table();
    for (int threads = 1; threads <= 2; threads++)
        for (int k = 0; k < 8; k++) {
            int i = order[k];
            int64_t n = 784 << i;
            bool counts = i >= 8 - fitted;
            int64_t shortest = 784 << (8 - fitted);
            put_row(raw, &(made_row){.operator= "sima",
                                     .inverse = "",
                                     .over = "n",
                                     .n = n,
                                     .threads = threads,
                                     .seconds = 3e-7 * (1 + 0.1 * i) *
                                                pow((double)n, counts ? exponent : 0.3),
                                     .workspace = 1000 + (int64_t)(8 * pow((double)n, bytes_power)),
                                     .fitted = counts,
                                     .by_turns_with = counts && n > shortest ? shortest : 0,
                                     .ratio = pow((double)n / (double)shortest, exponent)});
        }
    return raw;
}

static table *made_line(double exponent, int fitted, double bytes_power)
{
    static const int rising[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    return made_line_in(rising, exponent, fitted, bytes_power);
}

Test(bench_growth, exact_laws_of_n)
{
    static const struct {
        double exponent;
        bool holds;
    } laws[] = {{1, true},      {0.971, true}, {1.029, true}, {0.969, false},
                {1.031, false}, {2, false},    {-1, false}};
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++)
        for (int threads = 1; threads <= 2; threads++) {
            table *raw = made_line(laws[i].exponent, 5, 1), *t = fit(raw, EXIT_PASS);
            int64_t row = find(t, "seconds", threads), all = find(t, "seconds_all", threads);
            double p = cell_real(t, row, "exponent");
            cr_expect(fabs(p - laws[i].exponent) <= 1e-12, "%.17g", p);
            cr_expect(cell_boolean(t, row, "holds") == laws[i].holds, "%g", p);
            cr_expect(cell_integer(t, row, "from") == 784 << 3);
            cr_expect(cell_integer(t, row, "to") == 784 << 7);
            cr_expect(cell_integer(t, row, "points") == 5);
            double per_token = 1.7 * 3e-7 * pow(784 << 7, laws[i].exponent - 1);
            cr_expect(fabs(cell_real(t, row, "per_token") / per_token - 1) <= 1e-12);
            cr_expect(cell_integer(t, all, "points") == 8 && cell_missing(t, all, "holds"));
            cr_expect(cell_integer(t, all, "from") == 784);
            cr_expect(fabs(cell_real(t, all, "exponent") - laws[i].exponent) > 0.01, "another law");
            table_free(t);
            table_free(raw);
        }
}

/* To be freed. */
static char *text_of(const table *t)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    cr_assert(file && table_write_csv(t, file));
    fclose(file);
    return text;
}

/* The order of --n changes no number. */
Test(bench_growth, any_order_of_n)
{
    static const int orders[][8] = {{7, 6, 5, 4, 3, 2, 1, 0}, {3, 7, 0, 5, 1, 6, 2, 4}};
    for (int power = 1; power <= 2; power++) {
        int code = power == 1 ? EXIT_PASS : EXIT_CHECK;
        table *raw = made_line(1, 5, power), *want = fit(raw, code);
        table_free(raw);
        for (int i = 0; i < 2; i++) {
            raw = made_line_in(orders[i], 1, 5, power);
            table *t = fit(raw, code);
            char *texts[2] = {text_of(want), text_of(t)};
            cr_expect_str_eq(texts[1], texts[0]);
            free(texts[0]);
            free(texts[1]);
            table_free(t);
            table_free(raw);
        }
        table_free(want);
    }
}

/* As many n as --n has are fitted. */
Test(bench_growth, many_points)
{
    table *raw = made_table();
    for (int i = 1; i <= 100; i++)
        put_row(raw, &(made_row){.operator= "sima",
                                 .inverse = "",
                                 .over = "n",
                                 .n = 784 * i,
                                 .threads = 1,
                                 .seconds = 1e-6 * i,
                                 .workspace = 1000});
    table *t = fit(raw, EXIT_PASS);
    int64_t row = find(t, "seconds_all", 1);
    cr_expect(cell_integer(t, row, "points") == 100 && cell_integer(t, row, "to") == 78400);
    table_free(t);
    table_free(raw);
}

Test(bench_growth, two_points_are_no_fit)
{
    table *raw = made_line(1, 2, 1), *t = fit(raw, EXIT_PASS);
    int64_t row = find(t, "seconds", 1);
    cr_expect(cell_missing(t, row, "exponent") && cell_missing(t, row, "std_error"));
    cr_expect(cell_missing(t, row, "holds") && cell_integer(t, row, "points") == 2);
    table_free(t);
    table_free(raw);
}

/* 1000 + 8 n^p bytes: constant (8 in addition to the 1000), linear, more. */
Test(bench_growth, bytes)
{
    static const struct {
        double power, per_token, constant;
        bool holds;
    } laws[] = {{0, 0, 1008, true}, {1, 8, 1000, true}, {2, NAN, NAN, false}};
    for (int i = 0; i < 3; i++) {
        table *raw = made_line(1, 5, laws[i].power);
        table *t = fit(raw, laws[i].holds ? EXIT_PASS : EXIT_CHECK);
        int64_t row = find(t, "bytes_workspace", 2);
        cr_expect(cell_boolean(t, row, "holds") == laws[i].holds, "n^%g", laws[i].power);
        if (laws[i].holds) {
            cr_expect(cell_real(t, row, "per_token") == laws[i].per_token);
            cr_expect(cell_real(t, row, "constant") == laws[i].constant);
        }
        table_free(t);
        table_free(raw);
    }
}

/* n m + m^3: each part is fitted where it is large enough by the counts; of 12288 tokens, m = 64
 * has a quarter of the one, and m = 192 of the other. */
Test(bench_growth, parts_over_m)
{
    static const int64_t landmarks[] = {16, 32, 64, 128, 192, 256, 512, 1024};
    table *raw = made_table();
    for (size_t i = 0; i < sizeof landmarks / sizeof *landmarks; i++)
        for (int64_t n = 12288; n <= 24576; n *= 2) {
            int64_t m = landmarks[i];
            double growing = 0x1p-30 * (double)n * (double)m;
            double constant = 0x1p-30 * pow((double)m, 3), half = 0x1p-30 * 12288 * (double)m;
            double ratio = (2 * half + constant) / (half + constant);
            put_row(raw, &(made_row){.operator= "soft",
                                     .inverse = "nr-paper",
                                     .over = "m",
                                     .n = n,
                                     .m = m,
                                     .threads = 1,
                                     .seconds = (n > 12288 ? 1.3 : 1) * (growing + constant),
                                     .by_turns_with = n > 12288 ? 12288 : 0,
                                     .ratio = ratio,
                                     .share = constant / (growing + constant)});
        }
    table *t = fit(raw, EXIT_PASS);
    static const struct {
        const char *quantity;
        double exponent;
        int64_t from, to;
    } parts[] = {{"seconds_growing", 1, 16, 192}, {"seconds_constant", 3, 64, 1024}};
    for (int i = 0; i < 2; i++) {
        int64_t row = find(t, parts[i].quantity, 1);
        double p = cell_real(t, row, "exponent");
        cr_expect(fabs(p - parts[i].exponent) <= 1e-9, "%s: %.17g", parts[i].quantity, p);
        cr_expect(cell_real(t, row, "expected") == parts[i].exponent);
        cr_expect(cell_integer(t, row, "from") == parts[i].from, "%s", parts[i].quantity);
        cr_expect(cell_integer(t, row, "to") == parts[i].to, "%s", parts[i].quantity);
    }
    table_free(t);
    table_free(raw);
}

/* ---- A run ---- */

Test(bench_growth, rows_of_a_small_run, .timeout = 120)
{
    const char *options =
        "--quick --operator sima,soft,lsh,gaussian,softmax --n 784,1568 --m 16 --threads 1,2 --out "
        "out";
    cr_assert_eq(run_experiment(&bench_growth, options), EXIT_PASS);
    const output_spec *rows = &bench_growth.outputs[0];
    table *t = table_read_file("out/bench_growth.csv", rows->columns, rows->column_count);
    cr_assert(t);
    int64_t found[2] = {0}, over_m = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        double measured = cell_number(t, row, "bytes_measured");
        bool over = cell_is(t, row, "over", "m");
        cr_expect(cell_number(t, row, "seconds") > 0 && cell_number(t, row, "cpu_seconds") > 0);
        cr_expect(cell_number(t, row, "seconds_least") <= cell_number(t, row, "seconds") &&
                  cell_number(t, row, "seconds") <= cell_number(t, row, "seconds_largest"));
        cr_expect(isnan(measured) || measured <= cell_number(t, row, "bytes_workspace") + 65536);
        cr_expect(isnan(measured) || cell_integer(t, row, "threads") == 1);
        cr_expect(cell_is(t, row, "operator", "sima") || cell_is(t, row, "operator", "soft"));
        cr_expect(!cell_boolean(t, row, "fitted"), "n is small");
        bool second = over && cell_integer(t, row, "n") == 24576;
        cr_expect(cell_missing(t, row, "by_turns_with") == !second);
        if (second) /* a busy machine may take any time */
            cr_expect(cell_integer(t, row, "by_turns_with") == 12288 &&
                      cell_number(t, row, "ratio") > 0);
        over_m += over;
        if (!over)
            found[cell_is(t, row, "operator", "soft")]++;
        if (!over && cell_is(t, row, "operator", "sima"))
            cr_expect(cell_number(t, row, "constant_share") == 0);
        if (!over && cell_is(t, row, "operator", "soft"))
            cr_expect(cell_number(t, row, "constant_share") > 0.2);
    }
    cr_expect(found[0] == 4 && found[1] == 4, "%" PRId64 " %" PRId64, found[0], found[1]);
    cr_expect(over_m == 8, "two inverses, two n, two numbers of threads: %" PRId64, over_m);
    table_free(t);
}
