/* SPDX-License-Identifier: BSD-3-Clause */
/* attention/half: norms in narrow types against known sums, and its rows against laws they obey. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/products.h"
#include "common/inputs.h"
#include "common/random.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(attention_half, .init = scratch_begin, .fini = scratch_end);

/* ---- Norms and numbers ---- */

/* Columns of `count` equal values; column 1 of 2, next to one of 7777. */
static const struct {
    half_norm form;
    atn_storage storage;
    atn_sima_norm norm;
    double value, epsilon;
    int64_t count;
    double want;
} divisors[] = {
    {HALF_WIDE, ATN_STORAGE_F16, ATN_SIMA_L1, -3, 0, 5000, 15000},
    {HALF_WIDE, ATN_STORAGE_F16, ATN_SIMA_L2, -3, 0, 2500, 150},
    {HALF_WIDE, ATN_STORAGE_F16, ATN_SIMA_NONE, -3, 9, 5000, 1},
    {HALF_WIDE, ATN_STORAGE_F16, ATN_SIMA_L1, 1000, 0, 1000, 1e6},
    /* 65520 and more is infinite in f16; spacing 8 below 16384 */
    {HALF_STORED, ATN_STORAGE_F16, ATN_SIMA_L1, 1000, 0, 66, INFINITY},
    {HALF_STORED, ATN_STORAGE_F16, ATN_SIMA_L1, 1000, 0, 65, 64992},
    {HALF_STORED, ATN_STORAGE_F16, ATN_SIMA_L1, 1, 0, 12345, 12344},
    {HALF_STORED, ATN_STORAGE_BF16, ATN_SIMA_L1, 1000, 0, 66, 66048},
    /* the sum of squares is not stored */
    {HALF_STORED, ATN_STORAGE_F16, ATN_SIMA_L2, 1000, 0, 100, 10000},
    {HALF_SUMMED, ATN_STORAGE_F16, ATN_SIMA_L2, 1000, 0, 100, INFINITY},
    /* 2048 + 1 is a tie in f16 and goes to 2048, 256 + 1 the same in bf16 */
    {HALF_SUMMED, ATN_STORAGE_F16, ATN_SIMA_L1, -1, 0, 5000, 2048},
    {HALF_SUMMED, ATN_STORAGE_BF16, ATN_SIMA_L1, 1, 0, 5000, 256},
    {HALF_SUMMED, ATN_STORAGE_F16, ATN_SIMA_L1, 1, 0, 1500, 1500},
    /* a dead channel: epsilon is 0 in f16 */
    {HALF_WIDE, ATN_STORAGE_F16, ATN_SIMA_L1, 0, 1e-12, 10, 1e-12},
    {HALF_STORED, ATN_STORAGE_F16, ATN_SIMA_L1, 0, 1e-12, 10, 0},
    {HALF_SUMMED, ATN_STORAGE_F16, ATN_SIMA_L2, 0, 1e-12, 10, 0},
    {HALF_STORED, ATN_STORAGE_F16, ATN_SIMA_L1, 0, 1e-6, 10, 0x1.1p-20},
    {HALF_WIDE, ATN_STORAGE_NATIVE, ATN_SIMA_L1, 1, 100, 10, 100},
};

Test(attention_half, norms_in_narrow_types)
{
    static double x[2 * 12345];
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        for (int64_t j = 0; j < divisors[i].count; j++) {
            x[2 * j] = 7777;
            x[2 * j + 1] = divisors[i].value;
        }
        double got = half_divisor(divisors[i].form, divisors[i].storage, divisors[i].norm,
                                  divisors[i].epsilon, divisors[i].count, 2, x + 1);
        cr_expect(got == divisors[i].want, "%zu: %.17g, want %.17g", i, got, divisors[i].want);
    }
}

static const struct {
    atn_dtype dtype;
    atn_storage storage;
    double x;
    int nonfinite, subnormal, vanished;
} numbers[] = {
    {ATN_F32, ATN_STORAGE_F16, 65519, 0, 0, 0},    {ATN_F32, ATN_STORAGE_F16, -65520, 1, 0, 0},
    {ATN_F32, ATN_STORAGE_F16, 0x1p-14, 0, 0, 0},  {ATN_F32, ATN_STORAGE_F16, -0x1p-15, 0, 1, 0},
    {ATN_F32, ATN_STORAGE_F16, 0x1p-25, 0, 0, 1},  {ATN_F32, ATN_STORAGE_F16, 0, 0, 0, 0},
    {ATN_F32, ATN_STORAGE_F16, NAN, 1, 0, 0},      {ATN_F32, ATN_STORAGE_BF16, 1e-9, 0, 0, 0},
    {ATN_F32, ATN_STORAGE_BF16, 1e6, 0, 0, 0},     {ATN_F32, ATN_STORAGE_NATIVE, 1e-40, 0, 1, 0},
    {ATN_F32, ATN_STORAGE_NATIVE, 1e-50, 0, 0, 1}, {ATN_F64, ATN_STORAGE_NATIVE, 1e-50, 0, 0, 0},
    {ATN_F64, ATN_STORAGE_NATIVE, 1e300, 0, 0, 0}, {ATN_F64, ATN_STORAGE_NATIVE, 1e-310, 0, 1, 0},
};

Test(attention_half, numbers_are_counted)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        half_census c = {0};
        half_count(&c, numbers[i].dtype, numbers[i].storage, numbers[i].x);
        cr_expect(c.count == 1 && c.nonfinite == numbers[i].nonfinite &&
                      c.subnormal == numbers[i].subnormal && c.vanished == numbers[i].vanished,
                  "%zu: %g", i, numbers[i].x);
        cr_expect(c.largest == (isfinite(numbers[i].x) ? fabs(numbers[i].x) : 0), "%zu", i);
    }
}

/* ---- Running it ---- */

typedef struct {
    const char *input, *norm, *storage, *form, *order;
    int64_t n;
} key;

/* The one row of a key; d = 32. */
static int64_t find_row(const table *t, key k)
{
    int64_t found = -1;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "input", k.input) || !cell_is(t, row, "norm", k.norm) ||
            !cell_is(t, row, "storage", k.storage) || !cell_is(t, row, "norm_form", k.form) ||
            !cell_is(t, row, "order", k.order) || cell_integer(t, row, "n") != k.n ||
            cell_integer(t, row, "d") != TOKEN_DIM)
            continue;
        cr_expect(found < 0, "%s %s %s %s %s twice", k.input, k.norm, k.storage, k.form, k.order);
        found = row;
    }
    cr_assert(found >= 0, "%s %s %s %s %s %" PRId64, k.input, k.norm, k.storage, k.form, k.order,
              k.n);
    return found;
}

static double cell(const table *t, key k, const char *name)
{
    return cell_real(t, find_row(t, k), name);
}

static bool is_finite(const table *t, key k)
{
    return cell_is(t, find_row(t, k), "outcome", "ATN_OK");
}

/* ---- Against the formulas ---- */

enum { N = 196, D = TOKEN_DIM, QUERIES = 128 };

/* Q = K = V of `aligned`: its tokens, rotated. */
static void make_aligned(double *x)
{
    static double tokens[N * D], rotation[D * D];
    random_stream *r = random_create(1, "half tokens", N);
    for (int i = 0; i < N * D; i++)
        tokens[i] = random_normal(r);
    random_free(r);
    r = random_create(1, "half", 0);
    random_orthonormal(r, D, D, rotation);
    random_free(r);
    memset(x, 0, N * D * sizeof *x);
    for (int i = 0; i < N; i++)
        for (int c = 0; c < D; c++)
            for (int k = 0; k < D; k++)
                x[i * D + c] += tokens[i * D + k] * rotation[k * D + c];
}

/* Of X^ X^^T, X^^T X and X^ X^^T X, X^ with the rows of every query: the largest |entries|; and
 * | |X^| (|X^|^T |X|) |_F / |X^ X^^T X|_F. */
static void find_measures(const double *x, const double *normalised, double measures[4])
{
    static double state[D * D], sizes[D * D];
    double total = 0, bound = 0;
    memset(measures, 0, 4 * sizeof *measures);
    for (int i = 0; i < D * D; i++) {
        for (int j = 0; j < N; j++) {
            double term = normalised[j * D + i / D] * x[j * D + i % D];
            state[i] += term;
            sizes[i] += fabs(term);
        }
        measures[1] = fmax(measures[1], fabs(state[i]));
    }
    for (int i = 0; i < QUERIES; i++) {
        const double *query = normalised + i * N / QUERIES * D;
        for (int j = 0; j < N; j++) {
            double weight = 0;
            for (int c = 0; c < D; c++)
                weight += query[c] * normalised[j * D + c];
            measures[0] = fmax(measures[0], fabs(weight));
        }
        for (int e = 0; e < D; e++) {
            double sum = 0, size = 0;
            for (int c = 0; c < D; c++) {
                sum += query[c] * state[c * D + e];
                size += fabs(query[c]) * sizes[c * D + e];
            }
            measures[2] = fmax(measures[2], fabs(sum));
            total += sum * sum;
            bound += size * size;
        }
    }
    measures[3] = sqrt(bound / total);
}

/* Sums of 196 or 32 terms in f64 in another order. */
static bool is_near(double x, double want)
{
    return fabs(x - want) <= 1e-13 * fabs(want);
}

Test(attention_half, ranges_are_those_of_the_formulas)
{
    static double x[N * D], normalised[N * D];
    double measures[4], norm_largest = 0;
    cr_assert(run_experiment(&attention_half, "--n 196 --out out") == EXIT_PASS);
    table *t = read_output(&attention_half, "out", 0);
    make_aligned(x);
    for (int c = 0; c < D; c++) {
        double sum = 0;
        for (int i = 0; i < N; i++)
            sum += fabs(x[i * D + c]);
        for (int i = 0; i < N; i++)
            normalised[i * D + c] = x[i * D + c] / sum;
        norm_largest = fmax(norm_largest, sum);
    }
    find_measures(x, normalised, measures);
    key tokens = {"aligned", "l1", "f64", "wide", "tokens", N}, channels = tokens;
    channels.order = "channels";
    cr_expect(is_near(cell(t, tokens, "first_largest"), measures[0]));
    cr_expect(is_near(cell(t, channels, "first_largest"), measures[1]));
    cr_expect(is_near(cell(t, channels, "output_largest"), measures[2]));
    cr_expect(is_near(cell(t, tokens, "norm_largest"), norm_largest));
    cr_expect(cell_integer(t, find_row(t, tokens), "queries") == QUERIES);
    cr_expect(is_near(cell(t, tokens, "kappa"), measures[3]));
    table_free(t);
}

/* ---- Laws ---- */

static const char *const orders[] = {"tokens", "channels"};

/* Tokens 2^k times as large: without norms products grow by 4^k to the bit, with norms nothing
 * changes except at the ends of the range. */
static void check_scaling(const table *t)
{
    for (int i = 0; i < 2; i++) {
        key one = {"normal", "none", "f64", "wide", orders[i], 784}, eight = one;
        eight.input = "normal-x8";
        cr_expect(cell(t, eight, "first_largest") == 64 * cell(t, one, "first_largest"));
        cr_expect(cell(t, eight, "output_largest") == 512 * cell(t, one, "output_largest"));
        key f32 = {"normal", "l1", "f32", "wide", orders[i], 784}, large = f32;
        large.input = "normal-x64";
        cr_expect(cell(t, large, "relative_error") == cell(t, f32, "relative_error"));
    }
    key none = {"normal-x64", "none", "f16", "wide", "tokens", 784};
    cr_expect(!is_finite(t, none) && cell(t, none, "first_nonfinite") > 0);
    none.storage = "bf16";
    cr_expect(is_finite(t, none) && cell(t, none, "first_nonfinite") == 0);
}

/* The orders agree to rounding; in f16 tokens first loses digits to subnormal weights. */
static void check_orders(const table *t)
{
    static const struct {
        const char *storage;
        double roundoff;
    } types[] = {{"f64", 0x1p-53}, {"f32", 0x1p-24}, {"bf16", 0x1p-8}, {"f16", 0x1p-11}};
    for (int i = 0; i < 4; i++) {
        key k = {"normal", "l1", types[i].storage, "wide", "tokens", 49};
        double difference = cell(t, k, "order_difference");
        cr_expect(difference > types[i].roundoff / 4 && difference < 16 * types[i].roundoff,
                  "%s: %g", types[i].storage, difference);
    }
    key tokens = {"normal", "l1", "f16", "wide", "tokens", 3136}, channels = tokens;
    channels.order = "channels";
    cr_expect(cell(t, channels, "digits") > cell(t, tokens, "digits") + 0.5);
    cr_expect(cell(t, tokens, "first_subnormal") + cell(t, tokens, "first_vanished") > 0.99);
    cr_expect(cell(t, channels, "first_subnormal") + cell(t, channels, "first_vanished") < 0.01);
    cr_expect(cell(t, tokens, "ratio") > 4 * cell(t, channels, "ratio"));
}

/* K^T V is of the size of V if both are rotations of one matrix, and a sum of random signs if not:
 * outputs are smaller, and more of the digits are below f16's normal numbers. */
static void check_independent(const table *t)
{
    key same = {"normal", "l1", "f64", "wide", "channels", 3136}, own = same;
    own.input = "independent";
    double smaller = cell(t, own, "output_largest") / cell(t, same, "output_largest");
    cr_expect(smaller > 0.01 && smaller < 0.5, "%g", smaller);
    same.storage = own.storage = "f16";
    cr_expect(cell(t, own, "digits") < cell(t, same, "digits"));
    cr_expect(cell(t, own, "digits") > 2);
}

/* A norm beyond f16 silently makes everything 0; a channel of zeros makes NaN, as epsilon is 0. */
static void check_norms(const table *t)
{
    key overflow = {"normal-x64", "l1", "f16", "stored", "channels", 3136};
    cr_expect(is_finite(t, overflow) && cell(t, overflow, "norm_largest") == INFINITY);
    cr_expect(cell(t, overflow, "factors_vanished") == 1 && cell(t, overflow, "digits") == 0);
    cr_expect(cell(t, overflow, "order_difference") == 0, "no output, but a reference");
    overflow.form = "wide";
    cr_expect(cell(t, overflow, "digits") > 3);
    key dead = {"dead-channel", "l1", "f16", "stored", "channels", 784};
    cr_expect(!is_finite(t, dead) && cell(t, dead, "factors_nonfinite") == 1.0 / D);
    dead.form = "wide";
    cr_expect(is_finite(t, dead) && cell(t, dead, "digits") > 3);
    dead.form = "stored", dead.storage = "bf16";
    cr_expect(is_finite(t, dead) && cell(t, dead, "factors_nonfinite") == 0);
    key summed = {"normal", "l1", "f16", "summed", "channels", 3136};
    cr_expect(cell(t, summed, "norm_error") > 0.01 && cell(t, summed, "digits") < 2);
    summed.form = "stored";
    cr_expect(cell(t, summed, "norm_error") <= 0x1p-11 && cell(t, summed, "norm_error") > 0);
}

/* SimA section 2.2: weights are in [-D, D]; the state in that of the values. */
static void check_bounds(const table *t)
{
    for (int64_t row = 0; row < table_rows(t); row++) {
        bool l1 = cell_is(t, row, "norm", "l1") && cell_is(t, row, "storage", "f64");
        double largest = cell_real(t, row, "first_largest");
        cr_expect(!l1 || !cell_is(t, row, "order", "tokens") || largest <= D);
        bool native = cell_is(t, row, "storage", "f64") || cell_is(t, row, "storage", "f32");
        double ratio = cell_real(t, row, "ratio"), n = cell_number(t, row, "n");
        double u = cell_is(t, row, "storage", "f64")    ? 0x1p-53
                   : cell_is(t, row, "storage", "f32")  ? 0x1p-24
                   : cell_is(t, row, "storage", "bf16") ? 0x1p-8
                                                        : 0x1p-11;
        double terms = (u == 0x1p-53 ? 3 : 1) * n + cell_number(t, row, "d") + 8;
        cr_expect_eq(cell_real(t, row, "rounding"), native ? terms * u : terms * 0x1p-24 + 4 * u,
                     "row %" PRId64, row);
        cr_expect(!native || ratio <= 1, "row %" PRId64 ": %g", row, ratio);
        cr_expect(!cell_missing(t, row, "norm_largest") ^ cell_is(t, row, "norm", "none"));
    }
}

/* The exponents of n, and what is fitted. */
static const struct {
    const char *quantity, *order, *norm;
    double exponent;
} laws[] = {{"first_largest", "channels", "none", 1}, {"first_largest", "channels", "l1", 0},
            {"first_largest", "tokens", "none", 0},   {"first_largest", "tokens", "l1", -2},
            {"first_largest", "channels", "l2", 0.5}, {"output_largest", "", "l1", -1},
            {"output_largest", "", "none", 1},        {"order_difference", "", "l1", 0}};
enum { LAWS = sizeof laws / sizeof *laws };

static void check_fits(const table *t)
{
    int found[LAWS] = {0};
    for (int64_t row = 0; row < table_rows(t); row++) {
        bool widths = cell_is(t, row, "against", "d");
        cr_expect(cell_integer(t, row, "points") == (widths ? 3 : 4));
        cr_expect(cell_integer(t, row, "from") == (widths ? 16 : 49));
        cr_expect(cell_integer(t, row, "to") == (widths ? 64 : 3136));
        for (int i = 0; i < LAWS; i++) {
            if (widths || !cell_is(t, row, "storage", "f64") ||
                !cell_is(t, row, "input", "normal") ||
                !cell_is(t, row, "quantity", laws[i].quantity) ||
                !cell_is(t, row, "order", laws[i].order) || !cell_is(t, row, "norm", laws[i].norm))
                continue;
            double exponent = cell_real(t, row, "exponent");
            cr_expect(fabs(exponent - laws[i].exponent) < 0.2, "%d: %g", i, exponent);
            found[i]++;
        }
    }
    for (int i = 0; i < LAWS; i++)
        cr_expect(found[i] == 1, "%d: %d", i, found[i]);
}

Test(attention_half, rows_obey_the_laws, .timeout = 120)
{
    cr_assert(run_experiment(&attention_half, "--quick --out out") == EXIT_PASS);
    table *t = read_output(&attention_half, "out", 0);
    cr_expect(table_rows(t) == (7 * 4 + 2 * 2) * (2 * 16 + 8));
    check_scaling(t);
    check_orders(t);
    check_norms(t);
    check_independent(t);
    check_bounds(t);
    table_free(t);
    t = read_output(&attention_half, "out", 1);
    check_fits(t);
    table_free(t);
}

Test(attention_half, threads_change_no_bit)
{
    cr_assert(run_experiment(&attention_half, "--n 49,196 --threads 1 --out out") == EXIT_PASS);
    size_t sizes[2];
    char *one = read_csv(&attention_half, "out", 0, &sizes[0]);
    cr_assert(run_experiment(&attention_half, "--n 49,196 --threads 2 --out out") == EXIT_PASS);
    char *two = read_csv(&attention_half, "out", 0, &sizes[1]);
    cr_expect(sizes[0] == sizes[1] && memcmp(one, two, sizes[0]) == 0);
    free(one);
    free(two);
}

/* In any order of --n, a line for each seed. */
Test(attention_half, the_largest_n_is_printed)
{
    partial_run r;
    size_t size;
    prepare_run(&r, &attention_half, "--n 49,16 --seed 7,6");
    run_points(&r);
    finish_run(&r);
    fflush(stdout);
    char *text = (char *)scratch_read("stdout.txt", &size);
    int lines = 0, seventh = 0, n, seed;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (sscanf(line, "%*s %*s %*s %d %d", &n, &seed) == 2) {
            cr_expect(n == 49, "%s", line);
            lines++;
            seventh += seed == 7;
        }
    cr_expect(lines == 2 * 7 * 7 && seventh == 7 * 7, "%d, %d", lines, seventh);
    free(text);
    end_run(&r);
}

Test(attention_half, tokens_stand_on_a_square_grid)
{
    capture();
    cr_expect(run_experiment(&attention_half, "--n 50 --out out") == EXIT_USAGE);
    const char *text = captured();
    cr_expect(is_one_line_with(text, "--n 50"), "%s", text);
}
