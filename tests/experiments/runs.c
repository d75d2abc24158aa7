/* SPDX-License-Identifier: BSD-3-Clause */
#include "runs.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/npy.h"
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

void prepare_run(partial_run *r, const experiment *e, const char *options)
{
    *r = (partial_run){.e = e};
    cr_assert_eq(parse_options(&r->s, e, options), EXIT_PASS);
    cr_assert_eq(e->prepare(&r->s, &r->state, &r->points), EXIT_PASS);
    r->raw = table_create(e->raw_columns ? e->raw_columns : e->outputs[0].columns,
                          e->raw_columns ? e->raw_column_count : e->outputs[0].column_count);
}

void run_points(partial_run *r)
{
    atn_context *context = make_context();
    for (int64_t point = 0; point < r->points; point++)
        cr_expect_eq(r->e->run(r->state, point, context, r->raw), EXIT_PASS, "point %" PRId64,
                     point);
    atn_context_free(context);
}

void finish_run(partial_run *r)
{
    cr_assert_leq(r->e->output_count, RUN_TABLES);
    for (int i = 0; i < r->e->output_count; i++)
        r->tables[i] = table_create(r->e->outputs[i].columns, r->e->outputs[i].column_count);
    r->published = r->tables[0];
    cr_assert(freopen("stdout.txt", "w", stdout));
    cr_assert_eq(r->e->finish(&r->s, r->state, r->raw, r->tables), EXIT_PASS);
}

void end_run(partial_run *r)
{
    r->e->release(r->state);
    options_free(&r->s);
    table_free(r->raw);
    for (int i = 0; i < r->e->output_count; i++)
        table_free(r->tables[i]);
}

void expect_replay(const experiment *e, const char *options, int64_t point)
{
    program_options s;
    void *state = NULL;
    int64_t points;
    atn_context *context = make_context();
    table *want = table_create(e->outputs[0].columns, e->outputs[0].column_count);
    cr_assert(parse_options(&s, e, options) == EXIT_PASS);
    cr_assert(e->prepare(&s, &state, &points) == EXIT_PASS && point < points);
    cr_assert(e->run(state, point, context, want) == EXIT_PASS);
    options_point replayed;
    e->replay(state, point, &replayed);
    char *line = options_replay(&s, e->name, e->options, &replayed);
    char *start = must_format("attnum run %s ", e->name), *command = strstr(line, start);
    cr_assert(command, "%s", line);
    command = must_format("%s --out out", command + strlen(start));
    char *folder = strstr(command, "--out "); /* the command names a folder; ours comes last */
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

void write_sine_tokens(const char *name, int64_t count, int64_t n, int64_t dim, double scale)
{
    const int64_t shape[] = {count, n, dim};
    double *tokens = make_matrix(count * n, dim);
    for (int64_t i = 0; i < count * n * dim; i++)
        tokens[i] = scale * sin((double)i * 1.7);
    cr_assert_eq(npy_write(".", name, ATN_F64, 3, shape, tokens), EXIT_PASS);
    free(tokens);
}

void write_pair_tokens(const char *name)
{
    const int64_t shape[] = {49, 2};
    double tokens[49][2] = {{0}};
    for (int i = 2; i < 49; i++)
        tokens[i][0] = 10 * i;
    tokens[1][1] = sqrt(-log1p(-1e-6));
    cr_assert_eq(npy_write(".", name, ATN_F64, 2, shape, tokens), EXIT_PASS);
}

double *make_matrix(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

bool close_to(double got, double want, double tolerance)
{
    return fabs(got - want) <= tolerance * fabs(want);
}
