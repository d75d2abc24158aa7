/* SPDX-License-Identifier: BSD-3-Clause */
/* Every option that an experiment takes changes its numbers: one that is read, listed and forgotten
 * does not. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/npy.h"
#include "common/report.h"
#include "pairs.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(options, .init = scratch_begin, .fini = scratch_end);

/* Two values of an option, and an option that goes with both where it is taken; `small`: all other
 * options are tried with the first value, which makes points small. */
static const struct {
    unsigned used;
    const char *first, *second;
    bool small;
    unsigned with_used;
    const char *with;
} rows[] = {
    {USES_INPUT, "--input smooth", "--input iid:0.3", true, 0, NULL},
    {USES_GRID, "--grid 28x28", "--grid 14x56", false, USES_INPUT, "--input tokens.npy"},
    {USES_DTYPE, "--dtype f32", "--dtype f64", false, 0, NULL},
    {USES_SAMPLES, "--samples 1", "--samples 2", true, 0, NULL},
    {USES_ITERATIONS, "--iterations 3", "--iterations 4", false, 0, NULL},
    {USES_VARIANT, "--variant nr-soft", "--variant nr-paper", false, 0, NULL},
    {USES_ALPHA, "--alpha 0.01", "--alpha 0.02", false, USES_VARIANT, "--variant nr"},
    {USES_STAGE, "--stage 3", "--stage 2", true, 0, NULL},
    {USES_LANDMARKS, "--m 16", "--m 4", false, USES_OPERATOR, "--operator soft"},
    {USES_SCALE, "--scale head", "--scale 0.3", false, 0, NULL},
    {USES_SAMPLING, "--sampling pool", "--sampling published", false, 0, NULL},
    {USES_DISTANCE, "--distance direct", "--distance expanded", false, 0, NULL},
    {USES_QUERY, "--query 3x4", "--query 5x6", false, 0, NULL},
    {USES_OPERATOR, "--operator sima", "--operator efficient", false, 0, NULL},
    {USES_STORAGE, "--storage f16", "--storage bf16", false, USES_DTYPE, "--dtype f32"},
    {USES_TOKENS, "--n 784", "--n 196", false, 0, NULL},
    {USES_CERTIFY, "--certify 0", "--certify 100", false, USES_INPUT, "--input line.npy --m 49"},
    {USES_SEED, "--seed 1", "--seed 2", false, 0, NULL},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* What an experiment takes although none of its numbers depends on it, and why. */
static const struct {
    const experiment *e;
    unsigned used;
} exempt[] = {
    {&cost_counts, USES_SEED},     /* counted, not run */
    {&networks_counts, USES_SEED}, /* the same */
    {&cost_memory, USES_SEED},     /* bytes */
};

static bool is_exempt(const experiment *e, unsigned used)
{
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++)
        if (exempt[i].e == e && exempt[i].used == used)
            return true;
    return false;
}

enum { PARTS = 3 };

/* The real numbers in the raw rows of the last point, the first or the middle one; to be freed. */
static double *numbers_of(const experiment *e, const char *options, int part, int *count)
{
    program_options s;
    void *state = NULL;
    int64_t points;
    const column *columns;
    bool raw_is_output = !e->raw_columns;
    table *raw = table_create(raw_is_output ? e->outputs[0].columns : e->raw_columns,
                              raw_is_output ? e->outputs[0].column_count : e->raw_column_count);
    cr_assert_eq(parse_options(&s, e, options), EXIT_PASS, "%s %s", e->name, options);
    cr_assert_eq(e->prepare(&s, &state, &points), EXIT_PASS, "%s %s", e->name, options);
    atn_context *context = make_context();
    int64_t chosen[PARTS] = {points - 1, 0, points / 2};
    int code = e->run(state, chosen[part], context, raw);
    cr_expect(code == EXIT_PASS || code == EXIT_SKIPPED, "%s %s: %d", e->name, options, code);
    atn_context_free(context);
    int width = table_columns(raw, &columns);
    double *numbers = must_allocate((size_t)(table_rows(raw) * width) + 1, sizeof *numbers);
    *count = 0;
    for (int64_t row = 0; row < table_rows(raw); row++)
        for (int col = 0; col < width; col++)
            if (columns[col].type == COLUMN_REAL && !table_is_missing(raw, row, col))
                numbers[(*count)++] = table_get_real(raw, row, col);
    if (state)
        e->release(state);
    options_free(&s);
    table_free(raw);
    return numbers;
}

static bool same_numbers(int count, const double *a, const double *b)
{
    for (int i = 0; i < count; i++)
        if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))))
            return false;
    return true;
}

/* The options of a run with one of a row's values; to be freed. */
static char *words_of(const experiment *e, int row, const char *value)
{
    bool with = e->options & rows[row].with_used;
    char *words = must_format("--quick %s %s", value, with ? rows[row].with : "");
    for (int i = 0; i < ROWS; i++)
        if (rows[i].small && e->options & rows[i].used && i != row &&
            !(rows[i].used & rows[row].with_used)) {
            char *longer = must_format("%s %s", words, rows[i].first);
            free(words);
            words = longer;
        }
    return words;
}

/* Whether a part of the points has other numbers with the second value. */
static bool changes(const experiment *e, int row, int part)
{
    const char *values[] = {rows[row].first, rows[row].second};
    double *numbers[2];
    int counts[2];
    for (int i = 0; i < 2; i++) {
        char *words = words_of(e, row, values[i]);
        numbers[i] = numbers_of(e, words, part, &counts[i]);
        free(words);
    }
    bool same = counts[0] == counts[1] && same_numbers(counts[0], numbers[0], numbers[1]);
    free(numbers[0]);
    free(numbers[1]);
    return !same;
}

static void check_option(const experiment *e, int row)
{
    bool changed = false;
    for (int part = 0; part < PARTS && !changed; part++)
        changed = changes(e, row, part);
    cr_expect_eq(changed, !is_exempt(e, rows[row].used), "%s: %s and %s give %s numbers", e->name,
                 rows[row].first, rows[row].second, changed ? "other" : "the same");
}

/* 28 x 28 tokens of width 4 without a pattern, and tokens of width 1 along a line, so near to each
 * other that f64 does not resolve the least eigenvalue of their kernel matrix. */
static void write_files(void)
{
    enum { TOKENS = 784, WIDTH = 4 };
    static double tokens[TOKENS * WIDTH];
    int64_t shape[] = {TOKENS, WIDTH}, line[] = {TOKENS, 1};
    for (int i = 0; i < TOKENS * WIDTH; i++)
        tokens[i] = sin(i * i);
    cr_assert_eq(npy_write(".", "tokens.npy", ATN_F64, 2, shape, tokens), EXIT_PASS);
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = i / (double)TOKENS;
    cr_assert_eq(npy_write(".", "line.npy", ATN_F64, 2, line, tokens), EXIT_PASS);
}

Test(options, each_changes_the_numbers)
{
    int tried[ROWS] = {0}, pair = 0;
    write_files();
    for (const experiment *const *e = experiments; *e; e++)
        for (int row = 0; row < ROWS && !(*e)->alone; row++)
            if (((*e)->options | USES_RUN) & rows[row].used) {
                /* by default every tenth, and each option once at least */
                bool chosen = pairs_all() || pair++ % 10 == 0 || tried[row] == 0;
                tried[row]++;
                if (chosen)
                    check_option(*e, row);
            }
    for (int row = 0; row < ROWS; row++)
        cr_expect(tried[row] > 0, "%s: no experiment takes it", rows[row].first);
}
