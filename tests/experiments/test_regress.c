/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum regress: its comparison of doctored rows, and what it reads, collects and keeps.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy/operators.h"
#include "common/report.h"
#include "registry.h"
#include "regress/compare.h"
#include "regress/regress.h"
#include "regress/report.h"
#include "regress/rows.h"
#include "runs.h"
#include "scratch.h"

TestSuite(regress, .init = scratch_begin, .fini = scratch_end);

/* Rows from CSV without a header; "" for none. */
static table *rows_of(const char *csv)
{
    table *rows = table_create(regress_columns, ROW_COLUMNS);
    cr_assert(table_read_rows(rows, csv), "%s", csv);
    return rows;
}

/* A row on tokens `input`, of so many roundings. */
#define ROW(dtype, device, input, error, verdict)                                                  \
    "sima,code," dtype "," device ",64,,32," input ",3,0.5," error ",6," verdict "\n"
#define NOT_JUDGED(dtype, input) "sima,code," dtype ",cpu,64,,32," input ",3,,,,skipped\n"

typedef struct {
    table *rows;
    compare_outcome outcome;
} compared;

static compared compare(const char *now_csv, const char *kept_csv, bool full)
{
    table *now = rows_of(now_csv), *kept = rows_of(kept_csv);
    compared c = {.rows = table_create(regress_columns, COMPARED_COLUMNS)};
    compare_rows(now, kept, full, c.rows, &c.outcome);
    table_free(now);
    table_free(kept);
    return c;
}

static void free_compared(compared *c)
{
    table_free(c->rows);
    compare_free(&c->outcome);
}

/* ---- One row ---- */

Test(regress, a_row_against_the_one_kept)
{
    static const struct {
        const char *now, *kept;
        comparison comparison;
        bool fails;
    } rows[] = {
        {ROW("f32", "cpu", "iid", "1", "pass"), ROW("f32", "cpu", "iid", "1", "pass"),
         COMPARED_SAME, false},
        {ROW("f32", "cpu", "iid", "3.875", "pass"), ROW("f32", "cpu", "iid", "1", "pass"),
         COMPARED_SAME, false},
        {ROW("f32", "cpu", "iid", "4", "pass"), ROW("f32", "cpu", "iid", "1", "pass"),
         COMPARED_LOST, true},
        {ROW("bf16", "cpu", "iid", "4", "pass"), ROW("bf16", "cpu", "iid", "1", "pass"),
         COMPARED_LOST, true},
        {ROW("f64", "cpu", "iid", "1", "pass"), ROW("f64", "cpu", "iid", "4", "pass"),
         COMPARED_BETTER, false},
        {ROW("f64", "cpu", "iid", "1.5", "pass"), ROW("f64", "cpu", "iid", "0", "pass"),
         COMPARED_SAME, false},
        {ROW("f64", "cpu", "iid", "4", "skipped"), ROW("f64", "cpu", "iid", "1", "skipped"),
         COMPARED_LOST, true}, /* trivial, but with an error */
        {ROW("f32", "cpu", "iid", "1", "FAIL"), ROW("f32", "cpu", "iid", "1", "FAIL"),
         COMPARED_FAIL, true},
        {ROW("f16", "cpu", "iid", "inf", "FAIL"), ROW("f16", "cpu", "iid", "inf", "FAIL"),
         COMPARED_SAME, false}, /* an overflow that is a result */
        {ROW("f16", "cpu", "iid", "inf", "FAIL"), ROW("f16", "cpu", "iid", "1", "pass"),
         COMPARED_FAIL, true},
        {ROW("f16", "cpu", "iid", "1", "pass"), ROW("f16", "cpu", "iid", "inf", "FAIL"),
         COMPARED_BETTER, false},
        {ROW("f16", "cpu", "iid", "nan", "pass"), ROW("f16", "cpu", "iid", "1", "pass"),
         COMPARED_LOST, true},
        {ROW("f16", "cpu", "iid", "1", "pass"), ROW("f16", "cpu", "iid", "nan", "pass"),
         COMPARED_LOST, true},
        {ROW("f16", "cpu", "iid", "1", "pass"), ROW("f16", "cpu", "iid", "1", "marginal"),
         COMPARED_SAME, false},
        {NOT_JUDGED("f32", "iid"), NOT_JUDGED("f32", "iid"), COMPARED_SKIPPED, false},
        {NOT_JUDGED("f32", "iid"), ROW("f32", "cpu", "iid", "1", "pass"), COMPARED_GONE, true},
        {ROW("f32", "cpu", "iid", "1", "pass"), NOT_JUDGED("f32", "iid"), COMPARED_NEW, false},
        {ROW("f32", "cpu", "iid", "1", "FAIL"), NOT_JUDGED("f32", "iid"), COMPARED_FAIL, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        compared c = compare(rows[i].now, rows[i].kept, true);
        cr_assert_eq(table_rows(c.rows), 1, "row %zu", i);
        cr_expect_eq(compared_row(c.rows, 0), rows[i].comparison, "row %zu: %s", i,
                     table_get_text(c.rows, 0, ROW_COMPARISON));
        cr_expect_eq(compare_failed(&c.outcome), rows[i].fails, "row %zu", i);
        cr_expect_eq(c.outcome.count[rows[i].comparison], 1, "row %zu", i);
        free_compared(&c);
    }
}

Test(regress, loss_is_the_rulers)
{
    compared c = compare(ROW("f32", "cpu", "iid", "3", "pass"),
                         "sima,code,f32,cpu,64,,32,iid,3,0.25,2,7,marginal\n", true);
    cr_expect_eq(table_get_real(c.rows, 0, ROW_LOSS), 0.5);
    cr_expect_eq(table_get_real(c.rows, 0, ROW_KEPT_ERROR), 2);
    cr_expect_eq(table_get_real(c.rows, 0, ROW_KEPT_DIGITS), 7);
    cr_expect_str_eq(table_get_text(c.rows, 0, ROW_KEPT_VERDICT), "marginal");
    free_compared(&c);
}

/* ---- Rows without their like ---- */

/* Each key column distinguishes rows. */
Test(regress, new_and_gone)
{
    static const char *const others[] = {
        "simb,code,f32,cpu,64,,32,iid,3,0.5,1,6,pass\n",
        "sima,l2,f32,cpu,64,,32,iid,3,0.5,1,6,pass\n",
        "sima,code,f64,cpu,64,,32,iid,3,0.5,1,6,pass\n",
        "sima,code,f32,cpu,81,,32,iid,3,0.5,1,6,pass\n",
        "sima,code,f32,cpu,64,16,32,iid,3,0.5,1,6,pass\n",
        "sima,code,f32,cpu,64,,16,iid,3,0.5,1,6,pass\n",
        "sima,code,f32,cpu,64,,32,iid:0.3,3,0.5,1,6,pass\n",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int full = 0; full < 2; full++) {
            compared c = compare(ROW("f32", "cpu", "iid", "1", "pass"), others[i], full);
            cr_assert_eq(table_rows(c.rows), 1 + full, "row %zu", i);
            cr_expect_eq(compared_row(c.rows, 0), COMPARED_NEW, "row %zu", i);
            cr_expect_eq(compare_failed(&c.outcome), full, "row %zu", i);
            if (full) {
                cr_expect_eq(compared_row(c.rows, 1), COMPARED_GONE, "row %zu", i);
                cr_expect(table_is_missing(c.rows, 1, ROW_ERROR) &&
                          table_get_real(c.rows, 1, ROW_KEPT_ERROR) == 1);
            }
            free_compared(&c);
        }
}

Test(regress, a_new_row_that_fails)
{
    compared c = compare(ROW("f16", "cpu", "iid", "1", "FAIL"), "", true);
    cr_expect_eq(compared_row(c.rows, 0), COMPARED_FAIL);
    free_compared(&c);
    c = compare(ROW("f16", "cpu", "iid", "1", "marginal"), "", true);
    cr_expect(compared_row(c.rows, 0) == COMPARED_NEW && !compare_failed(&c.outcome));
    free_compared(&c);
}

/* A device without rows is compared with the CPU's; one with some against these alone. */
Test(regress, devices)
{
    static const struct {
        const char *now, *kept;
        comparison first;
        int64_t rows;
        bool borrowed;
    } rows[] = {
        {ROW("f32", "cuda", "iid", "4", "pass"), ROW("f32", "cpu", "iid", "1", "pass"),
         COMPARED_LOST, 1, true},
        {ROW("f32", "cuda", "iid", "4", "pass"),
         ROW("f32", "cpu", "iid", "1", "pass") ROW("f32", "cuda", "iid", "4", "pass"),
         COMPARED_SAME, 1, false},
        {ROW("f32", "cuda", "iid", "1", "pass"),
         ROW("f32", "cpu", "iid", "1", "pass") ROW("f32", "cuda", "noisy", "1", "pass"),
         COMPARED_NEW, 2, false},
        {ROW("f32", "cpu", "iid", "1", "pass"),
         ROW("f32", "cpu", "iid", "1", "pass") ROW("f32", "cuda", "iid", "4", "pass"),
         COMPARED_SAME, 1, false},
        {ROW("f32", "cuda", "iid", "1", "pass"),
         ROW("f32", "cpu", "iid", "1", "pass") ROW("f32", "cpu", "noisy", "1", "pass"),
         COMPARED_SAME, 2, true},
        {ROW("f32", "cpu", "iid", "1", "pass") ROW("f32", "cuda", "iid", "4", "pass"),
         ROW("f32", "cuda", "iid", "4", "pass") ROW("f32", "cpu", "iid", "1", "pass"),
         COMPARED_SAME, 2, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        compared c = compare(rows[i].now, rows[i].kept, true);
        cr_expect_eq(compared_row(c.rows, 0), rows[i].first, "row %zu", i);
        cr_expect_eq(table_rows(c.rows), rows[i].rows, "row %zu", i);
        cr_expect_eq(c.outcome.borrowed, rows[i].borrowed, "row %zu", i);
        free_compared(&c);
    }
}

/* ---- Marginal rows ---- */

Test(regress, marginal_rows_are_counted_per_operator_and_type)
{
    static const char *const kept = ROW("f32", "cpu", "a", "1", "pass")
        ROW("f32", "cpu", "b", "1", "marginal") ROW("f64", "cpu", "a", "1", "pass");
    static const struct {
        const char *now;
        int growths, count;
    } rows[] = {
        {ROW("f32", "cpu", "a", "1", "pass") ROW("f32", "cpu", "b", "1", "marginal")
             ROW("f64", "cpu", "a", "1", "pass"),
         0, 0},
        {ROW("f32", "cpu", "a", "1", "marginal") ROW("f32", "cpu", "b", "1", "pass")
             ROW("f64", "cpu", "a", "1", "pass"),
         0, 0}, /* as many, others */
        {ROW("f32", "cpu", "a", "1", "marginal") ROW("f32", "cpu", "b", "1", "marginal")
             ROW("f64", "cpu", "a", "1", "pass"),
         1, 2},
        {ROW("f32", "cpu", "a", "1", "pass") ROW("f32", "cpu", "b", "1", "pass")
             ROW("f64", "cpu", "a", "1", "marginal"),
         1, 1}, /* another type's do not make up for it */
        {ROW("f32", "cpu", "a", "1", "pass") ROW("f32", "cpu", "b", "1", "marginal")
             ROW("f64", "cpu", "a", "1", "pass") ROW("f32", "cpu", "c", "1", "marginal"),
         0, 0}, /* a new row has nothing to be worse than */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        compared c = compare(rows[i].now, kept, true);
        cr_expect_eq(c.outcome.growths, rows[i].growths, "row %zu", i);
        cr_expect_eq(compare_failed(&c.outcome), rows[i].growths > 0, "row %zu", i);
        if (c.outcome.growths == 1)
            cr_expect_eq(c.outcome.growth[0].now, rows[i].count, "row %zu", i);
        free_compared(&c);
    }
    compared c =
        compare(ROW("f32", "cpu", "a", "1", "pass") ROW("f32", "cuda", "a", "1", "marginal"),
                ROW("f32", "cpu", "a", "1", "marginal") ROW("f32", "cuda", "a", "1", "pass"), true);
    cr_expect_eq(c.outcome.growths, 1, "another device's do not make up for it either");
    free_compared(&c);
}

/* Twelve rows, of which the ten largest losses are listed, the largest first. */
Test(regress, the_largest_losses)
{
    char now[2048] = "", kept[2048] = "", row[256];
    for (int i = 0; i < 12; i++) {
        snprintf(row, sizeof row, ROW("f32", "cpu", "smooth:%d", "%g", "pass"), 2 + i, i / 8.0);
        strcat(now, row);
        snprintf(row, sizeof row, ROW("f32", "cpu", "smooth:%d", "0", "pass"), 2 + i);
        strcat(kept, row);
    }
    compared c = compare(now, kept, true);
    cr_assert(freopen("stdout.txt", "w", stdout));
    regress_report(c.rows, &c.outcome, "kept", false);
    fflush(stdout);
    size_t size;
    char *text = (char *)scratch_read("stdout.txt", &size);
    const char *list = strstr(text, "the largest losses"), *before = list;
    cr_assert(list, "%s", text);
    for (int i = 11; i >= 2; i--) {
        snprintf(row, sizeof row, "smooth:%d ", 2 + i);
        const char *found = strstr(list, row);
        cr_expect(found && found > before, "%s in %s", row, list);
        before = found;
    }
    cr_expect(!strstr(list, "smooth:2 ") && !strstr(list, "smooth:3 "));
    free(text);
    free_compared(&c);
}

/* ---- Rows of samples ---- */

/* A sample of accuracy/operators. */
static void add_sample(table *raw, const char *dtype, const char *input, double ratio,
                       const char *verdict, int64_t seed)
{
    char line[256];
    char number[32] = "", digits[32] = "";
    if (!isnan(ratio)) {
        snprintf(number, sizeof number, "%.17g", ratio);
        snprintf(digits, sizeof digits, "%.17g", 8 - ratio);
    }
    snprintf(line, sizeof line,
             "sima,code,%s,64,,32,%s,%s,%s,%s,2,0.25,3.814697265625e-06,ATN_OK,,0,%" PRId64 "\n",
             dtype, input, number, digits, verdict, seed);
    cr_assert(table_read_rows(raw, line), "%s", line);
}

Test(regress, the_row_of_three_samples)
{
    table *raw = table_create(accuracy_columns, ACCURACY_COLUMNS);
    table *rows = table_create(regress_columns, ROW_COLUMNS);
    const double rounding = 0x1p-18;
    for (int64_t seed = 1; seed <= 3; seed++) { /* medians 2, 0.5; of two; none */
        add_sample(raw, "f32", "noisy", (double)(seed * seed % 5) + 1, "pass", seed); /* 2 5 5 */
        add_sample(raw, "f64", "noisy", seed == 2 ? 0.5 : (double)(2 - seed), "pass", seed);
        add_sample(raw, "f32", "iid", seed == 1 ? NAN : (double)seed,
                   seed == 1   ? "skipped"
                   : seed == 2 ? "marginal"
                               : "pass",
                   seed);
        add_sample(raw, "bf16", "iid", NAN, "skipped", seed);
        add_sample(raw, "f16", "iid", seed == 3 ? INFINITY : 1, seed == 3 ? "FAIL" : "pass", seed);
    }
    rows_gather(raw, "cuda", rows);
    static const struct {
        const char *dtype, *input, *verdict;
        double ratio, one;
    } want[] = {{"f32", "noisy", "pass", 5, 0x1p-24},
                {"f64", "noisy", "pass", 0.5, 0x1p-53},
                {"f32", "iid", "marginal", 2.5, 0x1p-24},
                {"bf16", "iid", "skipped", NAN, 1},
                {"f16", "iid", "FAIL", 1, 0x1p-24 + 0x1p-11}};
    cr_assert_eq(table_rows(rows), 5);
    for (int64_t row = 0; row < 5; row++) {
        double ratio = table_get_real(rows, row, ROW_RATIO);
        double roundings = table_get_real(rows, row, ROW_ERROR);
        cr_expect(cell_is(rows, row, "dtype", want[row].dtype) &&
                      cell_is(rows, row, "input", want[row].input) &&
                      cell_is(rows, row, "verdict", want[row].verdict) &&
                      cell_is(rows, row, "device", "cuda") &&
                      table_get_integer(rows, row, ROW_SAMPLES) == 3,
                  "row %" PRId64, row);
        bool none = isnan(want[row].ratio);
        double expected = want[row].ratio * rounding / want[row].one;
        cr_expect(none ? isnan(ratio) && isnan(roundings) : ratio == want[row].ratio,
                  "row %" PRId64 ": %g", row, ratio);
        cr_expect(none || fabs(roundings - expected) <= 1e-14 * expected, "row %" PRId64 ": %g",
                  row, roundings);
        cr_expect(none || table_get_real(rows, row, ROW_DIGITS) == 8 - want[row].ratio);
    }
    table_free(rows);
    table_free(raw);
}

/* ---- Files ---- */

static void write_rows(const char *name, const char *csv)
{
    table *rows = rows_of(csv);
    FILE *file = fopen(name, "w");
    cr_assert(file);
    table_write_header(rows, file);
    for (int64_t row = 0; row < table_rows(rows); row++)
        table_write_row(rows, row, file);
    fclose(file);
    table_free(rows);
}

Test(regress, tables_that_are_refused)
{
    static const struct {
        const char *row, *fragment;
    } rows[] = {
        {",code,f32,cpu,64,,32,iid,3,1,1,6,pass\n", "row 3, column operator"},
        {"sima,,f32,cpu,64,,32,iid,3,1,1,6,pass\n", "row 3, column variant"},
        {"sima,code,f31,cpu,64,,32,iid,3,1,1,6,pass\n", "row 3, column dtype"},
        {"sima,code,f32,gpu,64,,32,iid,3,1,1,6,pass\n", "row 3, column device"},
        {"sima,code,f32,cpu,0,,32,iid,3,1,1,6,pass\n", "row 3, column n"},
        {"sima,code,f32,cpu,64,-1,32,iid,3,1,1,6,pass\n", "row 3, column m"},
        {"sima,code,f32,cpu,64,,,iid,3,1,1,6,pass\n", "row 3, column d"},
        {"sima,code,f32,cpu,64,,32,iid,0,1,1,6,pass\n", "row 3, column samples"},
        {"sima,code,f32,cpu,64,,32,iid,3,nan,1,6,pass\n", "row 3, column ratio"},
        {"sima,code,f32,cpu,64,,32,iid,3,1,-1,6,pass\n", "row 3, column roundings"},
        {"sima,code,f32,cpu,64,,32,iid,3,1,,6,pass\n", "row 3, column roundings"},
        {"sima,code,f32,cpu,64,,32,iid,3,1,1,,pass\n", "row 3, column digits"},
        {"sima,code,f32,cpu,64,,32,iid,3,1,1,6,fail\n", "row 3, column verdict"},
        {"sima,code,f32,cpu,64,,32,iid,3,,,,pass\n", "row 3, column verdict"},
        {"sima,code,f32,cpu,64,,32,iid,3,,,,marginal\n", "row 3, column verdict"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char csv[512];
        table *read;
        snprintf(csv, sizeof csv, "%s%s", ROW("f32", "cpu", "photos", "1", "pass"), rows[i].row);
        write_rows("t.csv", csv);
        capture();
        cr_expect_eq(rows_read("t.csv", &read), EXIT_ENVIRONMENT, "row %zu", i);
        const char *said = captured();
        cr_expect(!read && is_one_line_with(said, rows[i].fragment) && strstr(said, "t.csv"),
                  "row %zu: %s", i, said);
    }
}

Test(regress, what_is_no_table)
{
    static const struct {
        const char *text, *fragment;
    } rows[] = {
        {"", "empty"},
        {"operator,variant,dtype\nsima,code,f32\n", "row 1: ends after column dtype"},
        {"operator,variant,dtype,device,n,m,d,input,samples\n", "row 1: ends after column samples"},
        {"operator,variant,dtype,device,n,m,d,input,samples,ratio,roundings,digits,verdict,baseline_"
         "device\n",
         "row 1: ends after column baseline_device"},
        {"operator,variant,dtype,device,n,m,d,input,samples,ratio,roundings,digits,verdict\nsima,code,"
         "f32,cpu,64,,32,iid,3,1,1,6\n",
         "row 2, column digits"},
        {"operator,variant,dtype,device,n,m,d,input,samples,ratio,roundings,digits,verdict\nsima,code,"
         "f32,cpu,64,,32,iid,3,1,1.0,6,pass\n",
         "row 2, column roundings"},
        {"operator,variant,dtype,device,n,m,d,input,samples,ratio,roundings,digits,verdict\nsima,code,"
         "f32,cpu,64,,32,iid,3,1,1,6,pass",
         "row 2, column verdict"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        table *read;
        scratch_write("t.csv", rows[i].text, strlen(rows[i].text));
        capture();
        cr_expect_eq(rows_read("t.csv", &read), EXIT_ENVIRONMENT, "row %zu", i);
        const char *said = captured();
        cr_expect(!read && is_one_line_with(said, rows[i].fragment), "row %zu: %s", i, said);
    }
    scratch_write("t.csv", "oper\0ator", 9);
    table *read;
    capture();
    cr_expect_eq(rows_read("t.csv", &read), EXIT_ENVIRONMENT);
    cr_expect(is_one_line_with(captured(), "zero byte"));
    capture();
    cr_expect_eq(rows_read("none/t.csv", &read), EXIT_ENVIRONMENT);
    cr_expect(is_one_line_with(captured(), "none/t.csv"));
}

/* test_regress.sh has a run's table with its own metadata. */
Test(regress, a_table_of_other_bytes_than_its_metadata_say)
{
    static const struct {
        const char *metadata;
        int code;
    } rows[] = {{"{\"bytes\": 1, \"sha256\": \"00\", \"run\": {}}", EXIT_ENVIRONMENT},
                {"{\"run\": {}}", EXIT_ENVIRONMENT},
                {"no JSON", EXIT_ENVIRONMENT},
                {"{\"kept\": {}}", EXIT_PASS}};
    write_rows("t.csv", ROW("f32", "cpu", "photos", "1", "pass"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        table *read;
        scratch_write("t.csv-metadata.json", rows[i].metadata, strlen(rows[i].metadata));
        capture();
        cr_expect_eq(rows_read("t.csv", &read), rows[i].code, "row %zu", i);
        const char *said = captured();
        cr_expect(rows[i].code == EXIT_PASS
                      ? !*said
                      : is_one_line_with(said, "not the file that t.csv-metadata.json describes"),
                  "row %zu: %s", i, said);
        table_free(read);
    }
}

/* The table of a run is read again, without its rows marked as gone. */
Test(regress, a_compared_table_is_read_again)
{
    compared c =
        compare(ROW("f32", "cpu", "iid", "9", "pass"),
                ROW("f32", "cpu", "iid", "1", "pass") ROW("f64", "cpu", "x", "1", "pass"), true);
    cr_assert_eq(table_rows(c.rows), 2);
    FILE *file = fopen("t.csv", "w");
    cr_assert(file);
    table_write_header(c.rows, file);
    for (int64_t row = 0; row < 2; row++)
        table_write_row(c.rows, row, file);
    fclose(file);
    table *read;
    cr_assert_eq(rows_read("t.csv", &read), EXIT_PASS);
    cr_expect(table_rows(read) == 1 && table_get_real(read, 0, ROW_ERROR) == 9);
    table_free(read);
    free_compared(&c);
}

/* ---- Keeping ---- */

static int update(const char *now_csv, const char *kept_csv, const char *path)
{
    table *now = rows_of(now_csv), *kept = kept_csv ? rows_of(kept_csv) : NULL;
    program_options s;
    void *state = NULL;
    int64_t points;
    cr_assert_eq(parse_options(&s, &regress, "--operator sima/code --input iid --update why"),
                 EXIT_PASS);
    s.baseline = "none.csv";
    cr_assert_eq(regress.prepare(&s, &state, &points), EXIT_PASS);
    int code = regress_update(now, kept, path, "because", state);
    regress.release(state);
    options_free(&s);
    table_free(now);
    table_free(kept);
    return code;
}

Test(regress, an_update_keeps_other_devices_rows)
{
    cr_assert_eq(update(ROW("f32", "cpu", "iid", "2", "pass") ROW("f16", "cpu", "x", "inf", "FAIL"),
                        ROW("f32", "cpu", "iid", "1", "pass")
                            ROW("f32", "cuda", "iid", "4", "pass"),
                        "kept.csv"),
                 EXIT_PASS);
    table *read;
    cr_assert_eq(rows_read("kept.csv", &read), EXIT_PASS);
    cr_assert_eq(table_rows(read), 3);
    cr_expect(table_get_real(read, 0, ROW_ERROR) == 2 &&
              isinf(table_get_real(read, 1, ROW_ERROR)) && cell_is(read, 2, "device", "cuda"));
    table_free(read);
    size_t size;
    char *json = (char *)scratch_read("kept.csv-metadata.json", &size);
    cr_expect(strstr(json, "\"because\"") && strstr(json, "\"kept.csv\"") &&
              strstr(json, "\"commit\"") && !strstr(json, "\"date\""));
    cr_expect(!strstr(strstr(json, "\"because\"") + 9, "because"), "as the reason alone: %s", json);
    free(json);
}

Test(regress, an_update_with_failures_is_refused)
{
    static const char *const dtypes[] = {ROW("f32", "cpu", "iid", "2", "FAIL"),
                                         ROW("f64", "cpu", "iid", "2", "FAIL")};
    for (size_t i = 0; i < 2; i++) {
        capture();
        cr_expect_eq(update(dtypes[i], NULL, "kept.csv"), EXIT_CHECK);
        cr_expect(is_one_line_with(captured(), "1 rows of f32 or f64 FAIL"));
        cr_expect(!fopen("kept.csv", "r"));
    }
    capture();
    cr_expect_eq(update(ROW("f32", "cpu", "iid", "2", "pass"), NULL, "none/kept.csv"),
                 EXIT_ENVIRONMENT);
    cr_expect(is_one_line_with(captured(), "none/kept.csv"));
}

/* ---- Points ---- */

static int64_t count_points(const char *options)
{
    program_options s;
    void *state = NULL;
    int64_t points = -1;
    cr_assert_eq(parse_options(&s, &regress, options), EXIT_PASS, "%s", options);
    s.dry_run = true;
    cr_expect_eq(regress.prepare(&s, &state, &points), EXIT_PASS);
    regress.release(state);
    options_free(&s);
    return points;
}

/* Three samples each; 64 tokens on ten inputs, 81 on two. */
Test(regress, points)
{
    static const struct {
        const char *options;
        int64_t points;
    } rows[] = {
        {"--operator sima/code", 3 * (10 + 2)},
        {"--operator sima/code --input noisy", 3},
        {"--operator sima/code --input noisy,iid", 3 * (2 + 1)},
        {"--operator sima/code --n 16,25", 3 * 20},
        {"--operator sima/code,soft --input iid --m 4", 3 * 2 * (1 + 3)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(count_points(rows[i].options), rows[i].points, "%s: %" PRId64, rows[i].options,
                     count_points(rows[i].options));
}

Test(regress, samples_have_seeds_of_their_own)
{
    program_options s;
    void *state = NULL;
    int64_t points;
    char text[128], want[128];
    cr_assert_eq(parse_options(&s, &regress, "--operator sima/code --input noisy"), EXIT_PASS);
    s.dry_run = true;
    cr_assert(regress.prepare(&s, &state, &points) == EXIT_PASS && points == 3);
    for (int i = 0; i < 3; i++) {
        snprintf(want, sizeof want, "sima/code noisy n=64 m=0 sample=0 seed=%d", i + 1);
        regress.describe(state, i, text, sizeof text);
        cr_expect_str_eq(text, want);
    }
    regress.release(state);
    options_free(&s);
}

/* Any choice leaves some rows out, which an update must not. */
Test(regress, what_is_a_part_of_the_rows)
{
    static const char *const parts[] = {"--operator soft", "--input iid", "--dtype f32",
                                        "--storage bf16",  "--n 64",      "--m 16"};
    program_options s;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        cr_assert_eq(parse_options(&s, &regress, parts[i]), EXIT_PASS);
        cr_expect(!regress_is_full(&s), "%s", parts[i]);
        options_free(&s);
    }
    cr_assert_eq(parse_options(&s, &regress, ""), EXIT_PASS);
    cr_expect(regress_is_full(&s));
    options_free(&s);
}

/* The types of a run of one operator. */
Test(regress, types)
{
    static const struct {
        const char *options;
        int64_t rows;
    } rows[] = {{"", 5}, {"--dtype f64", 1}, {"--storage bf16", 1}, {"--storage native", 2}};
    write_rows("k.csv", ROW("f32", "cpu", "iid", "1", "pass"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char options[256];
        snprintf(options, sizeof options,
                 "--operator xnorm/paper --input noisy --n 16 --baseline k.csv --out r%zu %s", i,
                 rows[i].options);
        cr_assert_eq(run_experiment(&regress, options), EXIT_PASS, "%s", options);
        char path[32];
        table *t;
        snprintf(path, sizeof path, "r%zu/regress.csv", i);
        cr_assert_eq(rows_read(path, &t), EXIT_PASS, "%s", options);
        cr_expect_eq(table_rows(t), rows[i].rows, "%s", options);
        for (int64_t row = 0; row < table_rows(t); row++)
            cr_expect_eq(table_get_integer(t, row, ROW_SAMPLES), 3);
        table_free(t);
    }
}
