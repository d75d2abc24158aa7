/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables: what is written as CSV reads back the same, and nothing else is read. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "common/table.h"
#include "scratch.h"

static const column columns[] = {
    {"name", COLUMN_TEXT, "", "a text"},
    {"count", COLUMN_INTEGER, "", "an integer"},
    {"value", COLUMN_REAL, "", "a real"},
    {"holds", COLUMN_BOOLEAN, "", "a boolean"},
};

static const char *const texts[] = {
    "plain",      "",           " blanks ",     "comma,", "\"",          "\"\"",
    "\"quoted\"", "line\nfeed", "return\r",     "\r\n",   "a,\"b\"\n,c", "nan",
    "true",       "-0",         "\xc3\xa9\xff", ",",      "\n",
};

static const int64_t integers[] = {0, 1, -1, 42, INT64_MAX, INT64_MIN, INT64_MIN + 1, 1000000007};

static const double reals[] = {
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    1.0 / 3,
    1e300,
    1e-300,
    0x1p-1074,
    -0x1p-1074,
    0x1p-1022,
    0x1.fffffffffffffp-1023,
    0x1.fffffffffffffp1023,
    123456789.123456789,
    INFINITY,
    -INFINITY,
    NAN,
    -NAN,
};

enum {
    TEXTS = sizeof texts / sizeof *texts,
    INTEGERS = sizeof integers / sizeof *integers,
    REALS = sizeof reals / sizeof *reals,
    ROWS = TEXTS * INTEGERS * REALS
};

/* All of a table as CSV, to be freed. */
static char *write_all(const table *t, bool header)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (header)
        cr_assert(table_write_header(t, file));
    for (int64_t row = 0; row < table_rows(t); row++)
        cr_assert(table_write_row(t, row, file));
    fclose(file);
    return text;
}

static table *fill_all(void)
{
    table *t = table_create(columns, 4);
    for (int i = 0; i < ROWS; i++) {
        table_text(t, texts[i % TEXTS]);
        table_integer(t, integers[i / TEXTS % INTEGERS]);
        table_real(t, reals[i / TEXTS / INTEGERS]);
        table_boolean(t, i % 2);
    }
    return t;
}

static bool same_real(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void expect_same(const table *t, const table *again, const char *what)
{
    cr_assert_eq(table_rows(again), table_rows(t), "%s: rows %ld instead of %ld", what,
                 (long)table_rows(again), (long)table_rows(t));
    for (int64_t row = 0; row < table_rows(t); row++) {
        cr_expect_str_eq(table_get_text(again, row, 0), table_get_text(t, row, 0), "%s: row %ld",
                         what, (long)row);
        cr_expect_eq(table_get_integer(again, row, 1), table_get_integer(t, row, 1),
                     "%s: row %ld: %ld", what, (long)row, (long)table_get_integer(again, row, 1));
        cr_expect(same_real(table_get_real(again, row, 2), table_get_real(t, row, 2)),
                  "%s: row %ld: %a", what, (long)row, table_get_real(again, row, 2));
        cr_expect_eq(table_get_boolean(again, row, 3), table_get_boolean(t, row, 3), "%s: row %ld",
                     what, (long)row);
        for (int i = 0; i < 4; i++)
            cr_expect_eq(table_is_missing(again, row, i), table_is_missing(t, row, i),
                         "%s: row %ld column %d: missing", what, (long)row, i);
    }
}

Test(table, reads_back_what_it_wrote)
{
    table *t = fill_all(), *at_once = table_create(columns, 4), *by_row = table_create(columns, 4);
    char *text = write_all(t, false);
    cr_assert(table_read_rows(at_once, text));
    expect_same(t, at_once, "at once");
    for (int64_t row = 0; row < table_rows(t); row++) {
        char *line = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&line, &size);
        table_write_row(t, row, file);
        fclose(file);
        cr_expect(table_read_rows(by_row, line), "row %ld: %s", (long)row, line);
        line[size - 1] = '\0'; /* what follows may have been cut, too */
        table *one = table_create(columns, 4);
        cr_expect_not(table_read_rows(one, line), "row %ld without its LF: %s", (long)row, line);
        table_free(one);
        free(line);
    }
    expect_same(t, by_row, "row by row");
    char *again = write_all(at_once, false);
    cr_expect_str_eq(again, text);
    free(again);
    free(text);
    table_free(by_row);
    table_free(at_once);
    table_free(t);
}

Test(table, missing_cells)
{
    table *t = table_create(columns, 4), *again = table_create(columns, 4);
    for (int mask = 0; mask < 16; mask++) {
        mask & 1 ? table_missing(t) : table_text(t, "");
        mask & 2 ? table_missing(t) : table_integer(t, INT64_MIN);
        table_real_if(t, !(mask & 4), NAN);
        mask & 8 ? table_missing(t) : table_boolean(t, false);
    }
    char *text = write_all(t, false);
    cr_assert(table_read_rows(again, text));
    expect_same(t, again, "missing");
    cr_expect_str_eq(table_get_text(again, 15, 0), "");
    cr_expect_eq(table_get_integer(again, 15, 1), INT64_MIN);
    cr_expect(isnan(table_get_real(again, 15, 2)));
    free(text);
    table_free(again);
    table_free(t);
}

Test(table, writes_these_bytes)
{
    static const struct {
        const char *text;
        int64_t integer;
        double real;
        bool boolean;
        const char *line;
    } rows[] = {
        {"a", 1, 0.1, true, "a,1,0.10000000000000001,true\n"},
        {"a,b", -1, -0.0, false, "\"a,b\",-1,-0,false\n"},
        {"a\"b", 0, INFINITY, true, "\"a\"\"b\",0,inf,true\n"},
        {"a\nb", 0, -INFINITY, true, "\"a\nb\",0,-inf,true\n"},
        {"", 0, -NAN, true, "\"\",0,nan,true\n"},
        {"m", INT64_MIN, 0x1p-1074, true, "m,-9223372036854775808,4.9406564584124654e-324,true\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        table *t = table_create(columns, 4);
        table_text(t, rows[i].text);
        table_integer(t, rows[i].integer);
        table_real(t, rows[i].real);
        table_boolean(t, rows[i].boolean);
        char *line = write_all(t, false);
        cr_expect_str_eq(line, rows[i].line, "row %zu: %s", i, line);
        free(line);
        table_free(t);
    }
    table *t = table_create(columns, 4);
    char *header = write_all(t, true);
    cr_expect_str_eq(header, "name,count,value,holds\n");
    free(header);
    table_free(t);
}

Test(table, refuses_what_it_does_not_write)
{
    static const char *const lines[] = {
        "\n",
        "a",
        "a,1,1",
        "a,1,1,true,",
        "a,1,1,true,5",
        "a,1,1,true\n\n",
        ",,,,",
        "a,x,1,true",
        "a, 1,1,true",
        "a,1 ,1,true",
        "a,+1,1,true",
        "a,01,1,true",
        "a,-0,1,true",
        "a,1.0,1,true",
        "a,1e3,1,true",
        "a,0x10,1,true",
        "a,9223372036854775808,1,true",
        "a,-9223372036854775809,1,true",
        "a,99999999999999999999999999999999999999999999,1,true",
        "a,1,x,true",
        "a,1,1.0,true",
        "a,1,.5,true",
        "a,1,0x1p3,true",
        "a,1,1e999,true",
        "a,1,infinity,true",
        "a,1,NaN,true",
        "a,1,nan(1),true",
        "a,1,-nan,true",
        "a,1,1;5,true",
        "a,1,0.1,true", /* not in %.17g: someone's rounding */
        "a,1,1,TRUE",
        "a,1,1,1",
        "a,1,1,yes",
        "a,1,1,true ",
        "a,1,1,true\r\n",
        "a,\"1\",1,true",
        "a,1,\"1\",true",
        "a,1,1,\"true\"",
        "\"a\",1,1,true", /* needs no quotes */
        "\"a,b,1,1,true",
        "\"a,b\"x,1,1,true",
        "\"a,b\" ,1,1,true",
        "a\"b,1,1,true",
        "a\rb,1,1,true",
        "\"",
        "\"\"\"",
        "a,1,1,\"",
    };
    table *t = table_create(columns, 4);
    cr_assert(table_read_rows(t, "before,7,2.5,true\n"));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cr_expect_not(table_read_rows(t, lines[i]), "line %zu was read: %s", i, lines[i]);
        cr_expect_eq(table_rows(t), 1, "line %zu left a row: %s", i, lines[i]);
    }
    cr_expect_not(table_read_rows(t, "a,1,1,true\nb,1,1,true\nc,1,x,true\n"));
    cr_expect_eq(table_rows(t), 1, "two good rows before a bad one were kept");
    cr_expect(table_read_rows(t, ""));
    cr_assert(table_read_rows(t, "after,7,2.5,true\n"));
    cr_expect_str_eq(table_get_text(t, 1, 0), "after");
    table_free(t);
}

Test(table, append_keeps_order_and_owns_its_texts)
{
    table *t = table_create(columns, 4), *from = fill_all(), *twice = fill_all();
    table_append(t, from);
    expect_same(from, t, "appended");
    table_append(t, from);
    table_free(from);
    cr_assert_eq(table_rows(t), 2 * ROWS);
    cr_expect_str_eq(table_get_text(t, ROWS + 3, 0), texts[3]);
    cr_expect_eq(table_column(t, "value"), 2);
    const column *c;
    cr_expect_eq(table_columns(t, &c), 4);
    cr_expect_eq(c, columns);
    table_free(twice);
    table_free(t);
}

Test(table, a_write_error_is_seen)
{
    table *t = fill_all();
    FILE *full = fopen("/dev/full", "w");
    cr_assert(full, "no /dev/full");
    setvbuf(full, NULL, _IONBF, 0);
    cr_expect_not(table_write_header(t, full));
    cr_expect_not(table_write_row(t, 0, full));
    fclose(full);
    table_free(t);
}

Test(table, prints_aligned_columns)
{
    static const char expected[] = "name    count   value  holds\n"
                                   "a           1     0.5   true\n"
                                   "longer      -  0.3333  false\n"
                                   "... and 1 more rows\n";
    table *t = table_create(columns, 4);
    cr_assert(table_read_rows(t, "a,1,0.5,true\nlonger,,0.33333333333333331,false\nc,1,1,true\n"));
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    table_print(t, 2, file);
    fclose(file);
    cr_expect_str_eq(text, expected, "%s", text);
    free(text);
    table_free(t);
}

Test(table, prints_some_columns)
{
    static const char *const names[] = {"value", "name", "count", "holds"};
    static const char expected[] = " value  name    count  holds\n"
                                   "   0.5  a           1   true\n"
                                   "0.3333  longer      -  false\n";
    table *t = table_create(columns, 4);
    cr_assert(table_read_rows(t, "a,1,0.5,true\nlonger,,0.33333333333333331,false\n"));
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    table_print_columns(t, names, 4, 2, file);
    table_print_columns(t, names, 1, 1, file);
    table_print_columns(t, (const char *const[]){"count=rows = c"}, 1, 0, file);
    fclose(file);
    cr_expect(strncmp(text, expected, sizeof expected - 1) == 0, "%s", text);
    cr_expect_str_eq(text + sizeof expected - 1,
                     "value\n  0.5\n... and 1 more rows\n"
                     "rows = c\n... and 2 more rows\n",
                     "%s", text);
    free(text);
    table_free(t);
}

Test(table, copies_cells_by_name)
{
    static const column shared[] = {{"holds", COLUMN_BOOLEAN, "", ""},
                                    {"name", COLUMN_TEXT, "", ""},
                                    {"nam", COLUMN_TEXT, "", ""},
                                    {"count", COLUMN_INTEGER, "", ""}};
    table *t = table_create(columns, 4), *into = table_create(shared, 4);
    cr_assert(table_read_rows(t, "a,1,0.5,true\nlonger,,0.33333333333333331,false\n"));
    for (int64_t row = 0; row < 2; row++) {
        table_copy_row(into, t, row); /* up to "nam" */
        table_copy(into, t, 1 - row, "name");
        table_copy_row(into, t, row);
    }
    cr_assert_eq(table_rows(into), 2);
    cr_expect(cell_boolean(into, 0, "holds") && !cell_boolean(into, 1, "holds"));
    cr_expect(cell_is(into, 0, "name", "a") && cell_is(into, 1, "name", "longer"));
    cr_expect(cell_is(into, 0, "nam", "longer") && cell_is(into, 1, "nam", "a"));
    cr_expect(cell_integer(into, 0, "count") == 1 && cell_missing(into, 1, "count"));
    table_free(into);
    table_free(t);
}

/* Rows 0 and 1 agree; each of the others differs from row 0 in one column, by its value or by
 * having none. */
Test(table, rows_agree_column_by_column)
{
    static const char *const names[] = {"name", "count", "value", "holds"};
    table *t = table_create(columns, 4);
    for (int row = 0; row < 10; row++) {
        int changed = row < 2 ? -1 : (row - 2) / 2;
        bool missing = row % 2;
        for (int col = 0; col < 4; col++) {
            bool other = col == changed;
            if (other && missing)
                table_missing(t);
            else if (col == 0)
                table_text(t, other ? "b" : "");
            else if (col == 1)
                table_integer(t, other);
            else if (col == 2)
                table_real(t, other);
            else
                table_boolean(t, other);
        }
    }
    for (int row = 0; row < 10; row++) {
        int changed = row < 2 ? -1 : (row - 2) / 2;
        cr_expect(table_rows_agree(t, 0, row, names, 4) == (changed < 0), "row %d", row);
        for (int col = 0; col < 4; col++)
            cr_expect(table_rows_agree(t, row, 0, names + col, 1) == (col != changed),
                      "row %d column %d", row, col);
        cr_expect(table_row_is_first(t, row, names, 4) == (row != 1), "row %d", row);
    }
    cr_expect(table_rows_agree(t, 3, 3, names, 4)); /* both missing */
    table_free(t);
}

static char *write_json(const table *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    cr_assert(table_write_json(t, file));
    fclose(file);
    return text;
}

Test(table, writes_json_to_the_byte)
{
    static const char expected[] =
        "[\n{\"name\": \"a\", \"count\": 9223372036854775807, \"value\": 0.10000000000000001, "
        "\"holds\": true},\n"
        "{\"name\": null, \"count\": null, \"value\": null, \"holds\": null},\n"
        "{\"name\": \"\", \"count\": -1, \"value\": \"nan\", \"holds\": false},\n"
        "{\"name\": \"\\u000a\\\"\\\\\\u007f\", \"count\": 0, \"value\": \"-inf\", \"holds\": false}]";
    table *t = table_create(columns, 4);
    char *text = write_json(t);
    cr_expect_str_eq(text, "[]", "%s", text);
    free(text);
    cr_assert(table_read_rows(t, "a,9223372036854775807,0.10000000000000001,true\n,,,\n"
                                 "\"\",-1,nan,false\n\"\n\"\"\\\177\",0,-inf,false\n"));
    text = write_json(t);
    cr_expect_str_eq(text, expected, "%s", text);
    free(text);
    table_free(t);
}

/* cJSON's opinion of a cell; its numbers are doubles. */
static bool json_agrees(const cJSON *node, const table *t, int64_t row)
{
    double value = cell_real(t, row, "value");
    const cJSON *number = cJSON_GetObjectItem(node, "value");
    const char *spelled = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    bool same =
        cJSON_GetObjectItem(node, "count")->valuedouble == (double)cell_integer(t, row, "count");
    same &= cJSON_IsTrue(cJSON_GetObjectItem(node, "holds")) == cell_boolean(t, row, "holds");
    if (isfinite(value))
        return same && cJSON_IsNumber(number) &&
               memcmp(&number->valuedouble, &value, sizeof value) == 0;
    return same && cJSON_IsString(number) && strcmp(number->valuestring, spelled) == 0;
}

Test(table, json_is_what_another_parser_reads)
{
    table *t = fill_all();
    char *text = write_json(t);
    cJSON *list = cJSON_Parse(text), *node;
    cr_assert(list && cJSON_GetArraySize(list) == ROWS);
    int64_t row = 0;
    cJSON_ArrayForEach(node, list)
    {
        const char *name = cell_text(t, row, "name");
        const char *read = cJSON_GetObjectItem(node, "name")->valuestring;
        cr_expect(strcmp(read, strchr(name, '\xff') ? "\xc3\xa9\xef\xbf\xbd" : name) == 0, "%s",
                  read);
        cr_expect(json_agrees(node, t, row), "row %d", (int)row);
        row++;
    }
    cJSON_Delete(list);
    free(text);
    table_free(t);
}

Test(table, json_holds_utf8_whatever_a_text_holds)
{
    static const char *const kept[] = {
        "\x7e",         "\xc2\x80",     "\xdf\xbf",         "\xe0\xa0\x80",
        "\xed\x9f\xbf", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
    static const struct {
        const char *text;
        int replaced;
    } wrong[] = {{"\x80", 1},
                 {"\xc1\x80", 2},
                 {"\xc2", 1},
                 {"\xe0\x9f\x80", 3},
                 {"\xed\xa0\x80", 3},
                 {"\xf0\x8f\x80\x80", 4},
                 {"\xf4\x90\x80\x80", 4},
                 {"\xf5\x80\x80\x80", 4},
                 {"\xe2\x82", 2},
                 {"\xff", 1}};
    static const column name = {"x", COLUMN_TEXT, "", ""};
    for (size_t i = 0; i < sizeof kept / sizeof *kept + sizeof wrong / sizeof *wrong; i++) {
        size_t k = sizeof kept / sizeof *kept;
        char expected[64] = "[\n{\"x\": \"";
        table *t = table_create(&name, 1);
        table_text(t, i < k ? kept[i] : wrong[i - k].text);
        for (int n = 0; i >= k && n < wrong[i - k].replaced; n++)
            strcat(expected, "\\ufffd");
        strcat(strcat(expected, i < k ? kept[i] : ""), "\"}]");
        char *text = write_json(t);
        cr_expect_str_eq(text, expected, "%zu: %s", i, text);
        free(text);
        table_free(t);
    }
}

Test(table, a_file_is_read_only_as_it_was_written, .init = scratch_begin, .fini = scratch_end)
{
    static const char *const wrong[] = {
        "",
        "name,count,value,holds",
        "name,count,value\n",
        "name,count,value,hold\n",
        "name,count,value,holds,more\n",
        "name,value,count,holds\n",
        "name,count,value,holds\na,1,0.50,true\n",
        "name,count,value,holds\na,1,0.5,true\n\nb",
    };
    static const char good[] = "name,count,value,holds\na,1,0.5,true\n";
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        scratch_write("x.csv", wrong[i], strlen(wrong[i]));
        capture();
        cr_expect_null(table_read_file("x.csv", columns, 4), "%s", wrong[i]);
        cr_expect(is_one_line_with(captured(), "x.csv: expected"));
    }
    scratch_write("x.csv", good, sizeof good); /* and a NUL */
    capture();
    cr_expect_null(table_read_file("x.csv", columns, 4));
    cr_expect_null(table_read_file("none.csv", columns, 4));
    captured();
    scratch_write("x.csv", good, sizeof good - 1);
    table *t = table_read_file("x.csv", columns, 4);
    cr_assert(t && table_rows(t) == 1);
    FILE *file = fopen("y.csv", "w");
    cr_assert(table_write_csv(t, file));
    fclose(file);
    size_t size;
    unsigned char *again = scratch_read("y.csv", &size);
    cr_expect(size == sizeof good - 1 && memcmp(again, good, size) == 0);
    free(again);
    table_free(t);
}

Test(table, nothing_is_printed_where_people_are_told_nothing)
{
    table *t = fill_all();
    report_silence(true);
    cr_expect_null(report_stream());
    table_print(t, 10, report_stream());
    table_print_columns(t, (const char *const[]){"name"}, 1, 10, report_stream());
    report_silence(false);
    cr_expect_eq(report_stream(), stdout);
    table_free(t);
}

/* ---- Lists ---- */

#define LISTED_ROW(X)                                                                              \
    X(TEXT, name, "", "a name", name)                                                              \
    X(INTEGER, count, "", "a number", count)                                                       \
    X(REAL, time, "s", "a time", 2.0 * (double)count)                                              \
    X(BOOLEAN, odd, "", "whether it is odd", count % 2 == 1)                                       \
    X(INTEGER_IF, some, "", "missing: none", count > 0, count)                                     \
    X(REAL_IF, half, "", "missing: none", count > 1, 0.5)
static const column listed_columns[] = {LISTED_ROW(LIST_COLUMN)};

#define READ_ROW(X)                                                                                \
    X(BOOLEAN, odd, "", "")                                                                        \
    X(TEXT, name, "", "")                                                                          \
    X(INTEGER, count, "", "")                                                                      \
    X(REAL, time, "", "")
typedef struct {
    READ_ROW(LIST_MEMBER)
} read_row;

static void put_listed(table *to, const char *name, int64_t count)
{
    LISTED_ROW(LIST_PUT)
}

static read_row get_listed(const table *from, int64_t at)
{
    read_row r;
    READ_ROW(LIST_GET)
    return r;
}

Test(table, a_list_is_columns_and_rows)
{
    table *t = table_create(listed_columns, sizeof listed_columns / sizeof *listed_columns);
    put_listed(t, "a", 0);
    put_listed(t, "b", 3);
    cr_assert_eq(table_rows(t), 2);
    cr_expect(strcmp(listed_columns[2].name, "time") == 0 &&
              strcmp(listed_columns[2].unit, "s") == 0 &&
              strcmp(listed_columns[2].description, "a time") == 0 &&
              listed_columns[2].type == COLUMN_REAL);
    cr_expect(cell_missing(t, 0, "some") && cell_missing(t, 0, "half"));
    cr_expect(cell_integer(t, 1, "some") == 3 && cell_real(t, 1, "half") == 0.5);
    read_row r = get_listed(t, 1);
    cr_expect(r.odd && strcmp(r.name, "b") == 0 && r.count == 3 && r.time == 6);
    table_free(t);
}
