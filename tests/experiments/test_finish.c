/* SPDX-License-Identifier: BSD-3-Clause */
/* What experiments make of their raw rows: published tables, what they print, what they judge. The
 * raw rows are those of finish/NAME.csv, whose real numbers are made up, hardly any two the same,
 * so that a column, a row or a denominator taken for another shows in finish/NAME.txt. With
 * ATTNUM_TEST_WRITE=FOLDER the tests write those files there (NAME.csv if there is none) from what
 * the program does now: read what git diff then shows. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/growth.h"
#include "common/npy.h"
#include "common/report.h"
#include "cost/resident.h"
#include "inspect/inspect.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(finish, .init = scratch_begin, .fini = scratch_end);

/* Few points each. A real column that is kept because rows are found by it, and a text that all
 * rows have in some column, where a run would give too many; or null. */
static const struct {
    const experiment *e;
    const char *options, *kept, *only;
} rows[] = {
    {.e = &inspect, .options = "--m=9,4 --quick --certify=0 --html page.html"},
    {.e = &convergence_curves,
     .options = "--input smooth,iid:0.3 --stage 3 --samples 3 --iterations 4 --dtype "
                "f32,f64 --variant nr-paper,nr-soft,eig --sampling pool,published"},
    {.e = &convergence_initialisation,
     .options = "--input smooth --stage 3 --samples 2 --dtype f64"},
    {.e = &convergence_gradient,
     .options = "--input smooth,iid:0.3 --stage 3 --samples 2 --iterations 5 --sampling "
                "published-centred,pool"},
    {.e = &convergence_precision,
     .options = "--input smooth --m 16 --samples 2 --storage native,bf16"},
    {.e = &convergence_methods, .options = "--quick --input smooth --stage 3", .kept = "condition"},
    {.e = &spectral_eigenvalues, .options = "--input smooth,iid:0.3 --m 4,9 --samples 2"},
    {.e = &spectral_norm_growth,
     .options = "--input smooth,iid:0.3 --m 4,9,16,25 --samples 2 --sampling pool,published"},
    {.e = &spectral_bounds, .options = "--input smooth,iid:0.3 --m 9,16 --stage 3 --samples 2"},
    {.e = &spectral_softmax,
     .options = "--input smooth,iid:0.3 --n 16,64,196 --samples 2",
     .kept = "r"},
    {.e = &spectral_resolution, .options = "--input photos --n 196,784 --samples 2"},
    {.e = &spectral_sampling, .options = "--input smooth,iid:0.3 --m 9,16 --stage 3 --samples 2"},
    {.e = &accuracy_operators,
     .options = "--input smooth,iid --n 64 --m 16 --operator soft/paper,sima/paper "
                "--samples 2"},
    {.e = &attention_half, .options = "--quick", .only = "none"},
    {.e = &cost_counts, .options = "--quick --m 49,64"},
    {.e = &cost_memory, .options = "--quick"},
    {.e = &cost_time, .options = "--quick"},
    {.e = &bench_growth,
     .options = "--operator sima,soft --n 784,1568,3136,12544 --m 16,32,64 --threads 1,2"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *folder_to_write(void)
{
    return getenv("ATTNUM_TEST_WRITE");
}

/* The name, "/" as "_", with an extension, in the folder of the sources or in the one to write to.
 * To be freed. */
static char *path_of(const char *name, const char *extension)
{
    char *file = must_format("%s.%s", name, extension), *slash = strchr(file, '/');
    if (slash)
        *slash = '_';
    const char *folder = folder_to_write();
    char *path = must_format("%s/%s", folder ? folder : FINISH_FOLDER, file);
    free(file);
    return path;
}

/* Compares a text with NAME.txt, or writes that file. */
static void expect_kept(const char *name, const char *got)
{
    char *path = path_of(name, "txt");
    if (folder_to_write()) {
        FILE *file = fopen(path, "w");
        cr_assert(file && fputs(got, file) >= 0 && fclose(file) == 0, "%s", path);
    }
    size_t size;
    char *want = (char *)scratch_read(path, &size);
    int line = 1;
    const char *a = got, *b = want;
    while (*a && *a == *b) {
        line += *a == '\n';
        a++;
        b++;
    }
    while (a > got && a[-1] != '\n')
        a--;
    while (b > want && b[-1] != '\n')
        b--;
    cr_expect(strcmp(got, want) == 0, "%s, line %d: %.*s, expected %.*s", name, line,
              (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
    free(want);
    free(path);
}

/* Made up: a multiple of 1/64 from 1/64 to 128. */
static double invented(int64_t row, int col)
{
    uint64_t x = (uint64_t)row * 64 + (uint64_t)col + 1;
    x *= UINT64_C(0x9E3779B97F4A7C15);
    x ^= x >> 29;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    return (double)(1 + (x >> 32) % 8192) / 64;
}

static bool has_text(const table *t, int64_t row, const char *text)
{
    const column *columns;
    int width = table_columns(t, &columns);
    for (int col = 0; col < width; col++)
        if (columns[col].type == COLUMN_TEXT && strcmp(table_get_text(t, row, col), text) == 0)
            return true;
    return false;
}

/* The raw rows of a run, with other numbers. */
static table *invent(const experiment *e, const char *kept, const char *only, const void *state,
                     int64_t points)
{
    const column *columns;
    table *run = table_create(e->raw_columns ? e->raw_columns : e->outputs[0].columns,
                              e->raw_columns ? e->raw_column_count : e->outputs[0].column_count);
    atn_context *context = make_context();
    for (int64_t point = 0; point < points; point++)
        e->run(state, point, context, run);
    atn_context_free(context);
    int width = table_columns(run, &columns);
    table *raw = table_create(columns, width);
    for (int64_t row = 0; row < table_rows(run); row++)
        for (int col = 0; col < width && (!only || has_text(run, row, only)); col++)
            if (columns[col].type == COLUMN_REAL && !table_is_missing(run, row, col) &&
                isfinite(table_get_real(run, row, col)) &&
                !(kept && strcmp(columns[col].name, kept) == 0))
                table_real(raw, invented(row, col));
            else
                table_copy(raw, run, row, columns[col].name);
    table_free(run);
    return raw;
}

static bool same_numbers(const table *t, int a, int b)
{
    int64_t seen = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (table_is_missing(t, row, a) || table_is_missing(t, row, b))
            continue;
        seen++;
        if (table_get_real(t, row, a) != table_get_real(t, row, b))
            return false;
    }
    return seen > 0;
}

/* If two columns of reals held the same numbers, one taken for the other would not show. */
static void expect_distinct_columns(const char *name, const table *t)
{
    const column *columns;
    int width = table_columns(t, &columns);
    for (int a = 0; a < width; a++)
        for (int b = 0; b < a; b++)
            cr_expect(columns[a].type != COLUMN_REAL || columns[b].type != COLUMN_REAL ||
                          !same_numbers(t, a, b),
                      "%s.csv: %s and %s are equal", name, columns[b].name, columns[a].name);
}

/* As CSV, but for reals: ten digits, which no rounding error reaches. */
static void print_rounded(const table *t, FILE *file)
{
    const column *columns;
    int width = table_columns(t, &columns);
    for (int col = 0; col < width; col++)
        fprintf(file, "%s%s", col ? "," : "", columns[col].name);
    for (int64_t row = 0; row < table_rows(t); row++)
        for (int col = 0; col < width; col++) {
            fputc(col ? ',' : '\n', file);
            if (table_is_missing(t, row, col))
                continue;
            switch (columns[col].type) {
            case COLUMN_TEXT:
                fputs(table_get_text(t, row, col), file);
                break;
            case COLUMN_INTEGER:
                fprintf(file, "%" PRId64, table_get_integer(t, row, col));
                break;
            case COLUMN_REAL:
                fprintf(file, "%.10g", table_get_real(t, row, col));
                break;
            case COLUMN_BOOLEAN:
                fputs(table_get_boolean(t, row, col) ? "true" : "false", file);
                break;
            }
        }
    fputc('\n', file);
}

/* What finish leaves and says: stdout, stderr, the exit code, and the outputs but for raw rows that
 * are one. To be freed. */
static char *finished(const experiment *e, const program_options *s, const void *state, table *raw)
{
    char *text = NULL;
    size_t size;
    table *tables[MAX_OUTPUTS];
    for (int i = 0; i < e->output_count; i++)
        tables[i] = i == 0 && !e->raw_columns
                        ? raw
                        : table_create(e->outputs[i].columns, e->outputs[i].column_count);
    cr_assert(freopen("stdout.txt", "w", stdout));
    capture();
    int code = e->finish ? e->finish(s, state, raw, tables) : EXIT_PASS;
    const char *said = captured();
    fflush(stdout);
    char *printed = (char *)scratch_read("stdout.txt", &size);
    FILE *file = open_memstream(&text, &size);
    cr_assert(file);
    fprintf(file, "exit code %d\n\nstdout\n%s\nstderr\n%s", code, printed, said);
    for (int i = 0; i < e->output_count; i++)
        if (tables[i] != raw) {
            fprintf(file, "\n%s\n", e->outputs[i].name);
            print_rounded(tables[i], file);
            table_free(tables[i]);
        }
    fclose(file);
    free(printed);
    return text;
}

/* What the browser shows of a page: between its style and its foot, which names the version. */
static void expect_page(const char *name, const char *file)
{
    size_t size;
    char *page = (char *)scratch_read(file, &size);
    char *begin = strstr(page, "<body>"), *end = strstr(page, "<footer>");
    cr_assert(begin && end && begin < end, "%s", file);
    *end = '\0';
    expect_kept(name, begin);
    free(page);
}

static void check_finish(const experiment *e, const char *options, const char *kept,
                         const char *only)
{
    program_options s;
    void *state = NULL;
    int64_t points;
    char *path = path_of(e->name, "csv");
    cr_assert_eq(parse_options(&s, e, options), EXIT_PASS, "%s", e->name);
    const char *tokens = "tokens.npy";
    text_list inputs = s.inputs;
    if (e == &inspect) /* which takes its input as a word */
        s.inputs = (text_list){1, &tokens};
    cr_assert_eq(e->prepare(&s, &state, &points), EXIT_PASS, "%s", e->name);
    const column *columns = e->raw_columns ? e->raw_columns : e->outputs[0].columns;
    int width = e->raw_columns ? e->raw_column_count : e->outputs[0].column_count;
    if (folder_to_write() && access(path, F_OK) != 0) {
        table *made = invent(e, kept, only, state, points);
        FILE *file = fopen(path, "w");
        cr_assert(file && table_write_csv(made, file) && fclose(file) == 0, "%s", path);
        table_free(made);
    }
    table *raw = table_read_file(path, columns, width);
    cr_assert(raw, "%s", path);
    expect_distinct_columns(e->name, raw);
    char *got = finished(e, &s, state, raw);
    expect_kept(e->name, got);
    free(got);
    if (s.html)
        expect_page("inspect_page", s.html);
    table_free(raw);
    if (state)
        e->release(state);
    s.inputs = inputs;
    options_free(&s);
    free(path);
}

/* 3 heads of 36 tokens. */
static void write_tokens(void)
{
    enum { HEADS = 3, TOKENS = 36, WIDTH = 4 };
    double tokens[HEADS * TOKENS * WIDTH];
    int64_t shape[] = {HEADS, TOKENS, WIDTH};
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        tokens[i] = (1 + i / (TOKENS * WIDTH)) * sin(i * i);
    cr_assert_eq(npy_write(".", "tokens.npy", ATN_F64, 3, shape, tokens), EXIT_PASS);
}

Test(finish, every_number_goes_where_it_belongs)
{
    write_tokens();
    const char *obstacle = resident_obstacle(); /* what memory's finish then says is another text */
    for (int row = 0; row < ROWS; row++)
        if (!obstacle || (rows[row].e != &cost_memory && rows[row].e != &bench_growth))
            check_finish(rows[row].e, rows[row].options, rows[row].kept, rows[row].only);
}

/* ---- What an effort takes ---- */

/* "NAME OPTION: 12 points, FIRST ... LAST, CHECKSUM of all". */
static void print_points(const experiment *e, const char *option, FILE *file)
{
    program_options s;
    void *state = NULL;
    int64_t points;
    char text[256], first[256] = "";
    uint64_t checksum = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    cr_assert_eq(parse_options(&s, e, option), EXIT_PASS, "%s", e->name);
    cr_assert_eq(e->prepare(&s, &state, &points), EXIT_PASS, "%s", e->name);
    for (int64_t point = 0; point < points; point++) {
        e->describe(state, point, text, sizeof text);
        if (point == 0)
            memcpy(first, text, sizeof first);
        for (const char *c = text; c == text || c[-1]; c++)
            checksum = (checksum ^ (unsigned char)*c) * UINT64_C(0x100000001B3);
    }
    fprintf(file, "%s%s%s: %" PRId64 " points, %s ... %s, %016" PRIx64 "\n", e->name,
            *option ? " " : "", option, points, first, text, checksum);
    if (state)
        e->release(state);
    options_free(&s);
}

Test(finish, points_of_every_effort)
{
    static const char *const efforts[] = {"--quick", "", "--full"};
    char *got = NULL;
    size_t size;
    FILE *file = open_memstream(&got, &size);
    cr_assert(file);
    for (const experiment *const *e = experiments; *e; e++)
        for (int i = 0; i < 3; i++)
            if (*e != &cost_memory || i == 0) /* makes plans for 10^6 tokens first, and 10^7 */
                print_points(*e, efforts[i], file);
    fclose(file);
    expect_kept("points", got);
    free(got);
}
