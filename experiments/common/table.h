/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of results: named, typed columns and rows of cells; kept in memory, written as CSV. */
#ifndef EXPERIMENTS_TABLE_H
#define EXPERIMENTS_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Reals are doubles; see table_write_row. */
typedef enum { COLUMN_TEXT, COLUMN_INTEGER, COLUMN_REAL, COLUMN_BOOLEAN } column_type;

typedef struct {
    const char *name; /* lower_snake_case, with a unit suffix where there is a unit */
    column_type type;
    const char *unit; /* "" for none; goes to the metadata */
    const char *description;
} column;

typedef struct table table;

/* --format: text to read (table_print), or for programs. */
typedef enum { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON } table_format;

table *table_create(const column *columns, int count); /* columns must outlive the table */
void table_free(table *t);

/* Rows are filled left to right, one call per column, in the column's type (checked by assert). A
 * row is complete when its last column is set. */
void table_text(table *t, const char *text); /* copied */
void table_integer(table *t, int64_t value);
void table_real(table *t, double value);
void table_boolean(table *t, bool value);
void table_missing(table *t); /* not measured: an empty field, any column type */
void table_real_if(table *t, bool known, double value); /* missing if not known */

/* A list that has each column once, with the expression that fills it:
 *
 *   #define ROW(X) X(TYPE, name, unit, description, value) ...
 *
 * makes the columns, {ROW(LIST_COLUMN)}, and the statements that add a row to the table `to`,
 * ROW(LIST_PUT). TYPE: TEXT, INTEGER, REAL, BOOLEAN; or TEXT_IF, ..., whose value is "known,
 * value"; the second is not evaluated where the first is false. Where rows are read again,
 * {ROW(LIST_MEMBER)} is a struct, and ROW(LIST_GET) reads row `at` of `from` into its `r`. */
#define LIST_COLUMN(type, name, unit, description, ...) {#name, LIST_##type, unit, description},
#define LIST_PUT(type, name, unit, description, ...)    LIST_PUT_##type(to, __VA_ARGS__);
#define LIST_MEMBER(type, name, ...)                    LIST_C_##type name;
#define LIST_COUNT(...)                                 +1 /* 0 ROW(LIST_COUNT) is how many */

#define LIST_GET(type, name, ...) r.name = LIST_GET_##type(from, at, table_column(from, #name));

#define LIST_TEXT        COLUMN_TEXT
#define LIST_TEXT_IF     COLUMN_TEXT
#define LIST_INTEGER     COLUMN_INTEGER
#define LIST_INTEGER_IF  COLUMN_INTEGER
#define LIST_REAL        COLUMN_REAL
#define LIST_REAL_IF     COLUMN_REAL
#define LIST_BOOLEAN     COLUMN_BOOLEAN
#define LIST_BOOLEAN_IF  COLUMN_BOOLEAN
#define LIST_PUT_TEXT    table_text
#define LIST_PUT_INTEGER table_integer
#define LIST_PUT_REAL    table_real
#define LIST_PUT_BOOLEAN table_boolean

#define LIST_PUT_TEXT_IF(to, known, value) ((known) ? table_text(to, value) : table_missing(to))
#define LIST_PUT_INTEGER_IF(to, known, value)                                                      \
    ((known) ? table_integer(to, value) : table_missing(to))
#define LIST_PUT_REAL_IF(to, known, value) ((known) ? table_real(to, value) : table_missing(to))
#define LIST_PUT_BOOLEAN_IF(to, known, value)                                                      \
    ((known) ? table_boolean(to, value) : table_missing(to))

#define LIST_C_TEXT      const char *
#define LIST_C_INTEGER   int64_t
#define LIST_C_REAL      double
#define LIST_C_BOOLEAN   bool
#define LIST_GET_TEXT    table_get_text
#define LIST_GET_INTEGER table_get_integer
#define LIST_GET_REAL    table_get_real
#define LIST_GET_BOOLEAN table_get_boolean

int64_t table_rows(const table *t);
int table_columns(const table *t, const column **columns);

/* Cells by row and column index or name (asserts that it exists). A missing real is NaN, a missing
 * integer INT64_MIN, a missing text "". */
int table_column(const table *t, const char *name);
const char *table_get_text(const table *t, int64_t row, int col);
int64_t table_get_integer(const table *t, int64_t row, int col);
double table_get_real(const table *t, int64_t row, int col);
bool table_get_boolean(const table *t, int64_t row, int col);
bool table_is_missing(const table *t, int64_t row, int col);

/* The same by the column's name; cell_is compares a text. */
double cell_real(const table *t, int64_t row, const char *name);
int64_t cell_integer(const table *t, int64_t row, const char *name);
const char *cell_text(const table *t, int64_t row, const char *name);
bool cell_boolean(const table *t, int64_t row, const char *name);
bool cell_missing(const table *t, int64_t row, const char *name);
bool cell_is(const table *t, int64_t row, const char *name, const char *text);

/* Fills the next cell with that of another table in the column of this name, which has its type. */
void table_copy(table *into, const table *from, int64_t row, const char *name);
/* Fills the next cells of the row, each with that of another table in the column of the same name,
 * up to the first whose name the other table lacks. */
void table_copy_row(table *into, const table *from, int64_t row);

/* Appends all rows of `from` (same columns). */
void table_append(table *into, const table *from);

/* RFC 4180 with LF, header first, "C" locale; reals %.17g, "nan", "inf", "-inf"; booleans true and
 * false; missing is empty, an empty text is "". Return false on a write error. */
bool table_write_header(const table *t, FILE *file);
bool table_write_row(const table *t, int64_t row, FILE *file);
bool table_write_csv(const table *t, FILE *file); /* both, whole */

/* JSON: an array with an object per row, the columns in order. Numbers are numbers (%.17g; integers
 * whole, whatever their size), booleans true and false, missing is null. JSON has no NaN and no
 * infinity: they are the texts "nan", "inf" and "-inf", as in CSV. Bytes of a text that are not
 * UTF-8 become U+FFFD. */
bool table_write_json(const table *t, FILE *file);

/* Reads a file in exactly the form that table_write_csv gives these columns; null, and one line on
 * stderr, for any other. */
table *table_read_file(const char *path, const column *columns, int count);

/* Reads the records that `text` holds, of table_write_row's form, into new rows. Anything
 * table_write_row would not have written is refused, also a last row without its LF, which may have
 * been cut: false, and the table is unchanged. */
bool table_read_rows(table *t, const char *text);
/* The same; if text is refused, *row and *col say where in it, both from 0. */
bool table_read_rows_at(table *t, const char *text, int64_t *row, int *col);

/* Whether two rows agree (both missing, or equal) in the columns of these names; and whether no
 * earlier row agrees with this one, for tables with a line per group of rows. */
bool table_rows_agree(const table *t, int64_t a, int64_t b, const char *const *names, int count);
bool table_row_is_first(const table *t, int64_t row, const char *const *names, int count);

/* Text to read: aligned columns, reals %.4g, "-" for missing; at most `limit` rows. Does nothing if
 * file is null (report_stream). */
void table_print(const table *t, int64_t limit, FILE *file);
/* The same for some columns; a name may be followed by "=" and the heading to print. */
void table_print_columns(const table *t, const char *const *names, int count, int64_t limit,
                         FILE *file);

#endif
