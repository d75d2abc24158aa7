/* SPDX-License-Identifier: BSD-3-Clause */
#include "runs.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "scratch.h"

atn_context *make_context(void)
{
    atn_context *context = NULL;
    atn_context_options options = {.device = ATN_CPU, .threads = 1};
    cr_assert(atn_context_create(&options, &context) == ATN_OK);
    return context;
}

int parse_options(program_options *s, const experiment *e, const char *options)
{
    static char text[1024], *words[64];
    int count = 0;
    cr_assert(snprintf(text, sizeof text, "%s", options) < (int)sizeof text, "%s", options);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        cr_assert(count < (int)(sizeof words / sizeof *words), "%s", options);
        words[count++] = word;
    }
    return options_parse(s, e->options, count, words);
}

int run_experiment(const experiment *e, const char *options)
{
    program_options s;
    int code = parse_options(&s, e, options);
    if (code == EXIT_PASS) {
        experiment unplotted = *e;
        unplotted.plot = NULL;
        cr_assert(freopen("/dev/null", "w", stdout));
        code = experiment_run(&unplotted, &s);
        options_free(&s);
    }
    return code;
}

table *run_first_points(const experiment *e, const char *options, int64_t most)
{
    program_options s;
    void *state = NULL;
    int64_t points;
    table *raw = table_create(e->outputs[0].columns, e->outputs[0].column_count);
    cr_assert_eq(parse_options(&s, e, options), EXIT_PASS);
    cr_assert_eq(e->prepare(&s, &state, &points), EXIT_PASS);
    atn_context *context = make_context();
    for (int64_t point = 0; point < points && point < most; point++)
        cr_expect_eq(e->run(state, point, context, raw), EXIT_PASS, "point %" PRId64, point);
    cr_assert(freopen("/dev/null", "w", stdout));
    cr_expect_eq(e->finish(&s, state, raw, &raw), EXIT_PASS);
    atn_context_free(context);
    e->release(state);
    options_free(&s);
    return raw;
}

char *read_csv(const experiment *e, const char *out, int output, size_t *size)
{
    int folder = (int)(strrchr(e->name, '/') - e->name);
    char *path = must_format("%s/%.*s/%s.csv", out, folder, e->name, e->outputs[output].name);
    char *text = (char *)scratch_read(path, size);
    free(path);
    return text;
}

table *read_output(const experiment *e, const char *out, int output)
{
    size_t size;
    const output_spec *spec = &e->outputs[output];
    char *text = read_csv(e, out, output, &size);
    table *t = table_create(spec->columns, spec->column_count);
    cr_assert(table_read_rows(t, strchr(text, '\n') + 1), "%s of %s", spec->name, e->name);
    free(text);
    return t;
}

double cell_number(const table *t, int64_t row, const char *name)
{
    const column *columns;
    int col = table_column(t, name);
    table_columns(t, &columns);
    if (table_is_missing(t, row, col))
        return NAN;
    return columns[col].type == COLUMN_REAL ? table_get_real(t, row, col)
                                            : (double)table_get_integer(t, row, col);
}
