/* SPDX-License-Identifier: BSD-3-Clause */
#include "table.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "report.h"
#include "utf8.h"

typedef struct {
    union {
        char *text;
        int64_t integer;
        double real;
        bool boolean;
    } as;
    bool missing;
} cell;

struct table {
    const column *columns;
    int count;
    cell *cells; /* row after row */
    size_t filled, capacity;
};

table *table_create(const column *columns, int count)
{
    assert(count > 0);
    table *t = must_allocate(1, sizeof *t);
    t->columns = columns;
    t->count = count;
    return t;
}

/* Drops the cells from `keep` on. */
static void shorten(table *t, size_t keep)
{
    while (t->filled > keep) {
        t->filled--;
        if (t->columns[t->filled % (size_t)t->count].type == COLUMN_TEXT)
            free(t->cells[t->filled].as.text);
    }
}

void table_free(table *t)
{
    if (!t)
        return;
    shorten(t, 0);
    free(t->cells);
    free(t);
}

static column_type next_type(const table *t)
{
    return t->columns[t->filled % (size_t)t->count].type;
}

static cell *add_cell(table *t)
{
    if (t->filled == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : (size_t)t->count; /* a point has few rows */
        t->cells = must_resize(t->cells, t->capacity, sizeof *t->cells);
    }
    cell *c = &t->cells[t->filled++];
    memset(c, 0, sizeof *c);
    return c;
}

void table_text(table *t, const char *text)
{
    assert(next_type(t) == COLUMN_TEXT);
    size_t size = strlen(text) + 1;
    char *copy = must_allocate(size, 1);
    memcpy(copy, text, size);
    add_cell(t)->as.text = copy;
}

void table_integer(table *t, int64_t value)
{
    assert(next_type(t) == COLUMN_INTEGER);
    add_cell(t)->as.integer = value;
}

void table_real(table *t, double value)
{
    assert(next_type(t) == COLUMN_REAL);
    add_cell(t)->as.real = isnan(value) ? NAN : value; /* printf may write "-nan" */
}

void table_boolean(table *t, bool value)
{
    assert(next_type(t) == COLUMN_BOOLEAN);
    add_cell(t)->as.boolean = value;
}

void table_missing(table *t)
{
    add_cell(t)->missing = true;
}

void table_real_if(table *t, bool known, double value)
{
    if (known)
        table_real(t, value);
    else
        table_missing(t);
}

int64_t table_rows(const table *t)
{
    return (int64_t)(t->filled / (size_t)t->count);
}

int table_columns(const table *t, const column **columns)
{
    if (columns)
        *columns = t->columns;
    return t->count;
}

/* The column whose name is the first `length` bytes of `name`; -1 if there is none. */
static int find_column(const table *t, const char *name, size_t length)
{
    for (int i = 0; i < t->count; i++)
        if (strncmp(t->columns[i].name, name, length) == 0 && !t->columns[i].name[length])
            return i;
    return -1;
}

int table_column(const table *t, const char *name)
{
    int col = find_column(t, name, strlen(name));
    assert(col >= 0 && "the table has a column of this name");
    return col;
}

static const cell *get_cell(const table *t, int64_t row, int col)
{
    assert(row >= 0 && row < table_rows(t) && col >= 0 && col < t->count);
    return &t->cells[(size_t)row * (size_t)t->count + (size_t)col];
}

const char *table_get_text(const table *t, int64_t row, int col)
{
    assert(t->columns[col].type == COLUMN_TEXT);
    const cell *c = get_cell(t, row, col);
    return c->missing ? "" : c->as.text;
}

int64_t table_get_integer(const table *t, int64_t row, int col)
{
    assert(t->columns[col].type == COLUMN_INTEGER);
    const cell *c = get_cell(t, row, col);
    return c->missing ? INT64_MIN : c->as.integer;
}

double table_get_real(const table *t, int64_t row, int col)
{
    assert(t->columns[col].type == COLUMN_REAL);
    const cell *c = get_cell(t, row, col);
    return c->missing ? NAN : c->as.real;
}

bool table_get_boolean(const table *t, int64_t row, int col)
{
    assert(t->columns[col].type == COLUMN_BOOLEAN);
    return get_cell(t, row, col)->as.boolean;
}

bool table_is_missing(const table *t, int64_t row, int col)
{
    return get_cell(t, row, col)->missing;
}

double cell_real(const table *t, int64_t row, const char *name)
{
    return table_get_real(t, row, table_column(t, name));
}

int64_t cell_integer(const table *t, int64_t row, const char *name)
{
    return table_get_integer(t, row, table_column(t, name));
}

const char *cell_text(const table *t, int64_t row, const char *name)
{
    return table_get_text(t, row, table_column(t, name));
}

bool cell_boolean(const table *t, int64_t row, const char *name)
{
    return table_get_boolean(t, row, table_column(t, name));
}

bool cell_missing(const table *t, int64_t row, const char *name)
{
    return table_is_missing(t, row, table_column(t, name));
}

bool cell_is(const table *t, int64_t row, const char *name, const char *text)
{
    return strcmp(cell_text(t, row, name), text) == 0;
}

bool table_rows_agree(const table *t, int64_t a, int64_t b, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        int col = table_column(t, names[i]);
        const cell *x = get_cell(t, a, col), *y = get_cell(t, b, col);
        bool same = x->missing == y->missing;
        if (same && !x->missing)
            switch (t->columns[col].type) {
            case COLUMN_TEXT:
                same = strcmp(x->as.text, y->as.text) == 0;
                break;
            case COLUMN_INTEGER:
                same = x->as.integer == y->as.integer;
                break;
            case COLUMN_REAL:
                same = x->as.real == y->as.real;
                break;
            case COLUMN_BOOLEAN:
                same = x->as.boolean == y->as.boolean;
                break;
            }
        if (!same)
            return false;
    }
    return true;
}

bool table_row_is_first(const table *t, int64_t row, const char *const *names, int count)
{
    for (int64_t before = 0; before < row; before++)
        if (table_rows_agree(t, before, row, names, count))
            return false;
    return true;
}

static void copy_cell(table *into, column_type type, const cell *c)
{
    if (type == COLUMN_TEXT && !c->missing)
        table_text(into, c->as.text);
    else
        *add_cell(into) = *c;
}

static void copy_from(table *into, const table *from, int64_t row, int col)
{
    column_type type = from->columns[col].type;
    assert(next_type(into) == type);
    copy_cell(into, type, get_cell(from, row, col));
}

void table_copy(table *into, const table *from, int64_t row, const char *name)
{
    copy_from(into, from, row, table_column(from, name));
}

void table_copy_row(table *into, const table *from, int64_t row)
{
    for (size_t i = into->filled % (size_t)into->count; i < (size_t)into->count; i++) {
        int col = find_column(from, into->columns[i].name, strlen(into->columns[i].name));
        if (col < 0)
            return;
        copy_from(into, from, row, col);
    }
}

void table_append(table *into, const table *from)
{
    assert(into->count == from->count && into->filled % (size_t)into->count == 0 &&
           from->filled % (size_t)from->count == 0);
    for (int i = 0; i < from->count; i++)
        assert(into->columns[i].type == from->columns[i].type &&
               strcmp(into->columns[i].name, from->columns[i].name) == 0);
    for (size_t i = 0; i < from->filled; i++)
        copy_cell(into, from->columns[i % (size_t)from->count].type, &from->cells[i]);
}

/* Long enough for any number in %.17g or PRId64. */
enum { NUMBER_SIZE = 32 };

static void format_integer(char text[NUMBER_SIZE], int64_t value)
{
    snprintf(text, NUMBER_SIZE, "%" PRId64, value);
}

/* printf may write "-nan". */
static void format_real(char text[NUMBER_SIZE], double value)
{
    if (isnan(value))
        strcpy(text, "nan");
    else
        snprintf(text, NUMBER_SIZE, "%.17g", value);
}

/* An empty text is quoted, to distinguish it from a missing one. */
static void write_text(const char *text, FILE *file)
{
    if (*text && !strpbrk(text, ",\"\r\n")) {
        fputs(text, file);
        return;
    }
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', file);
        putc(*text, file);
    }
    putc('"', file);
}

static void write_cell(column_type type, const cell *c, FILE *file)
{
    char number[NUMBER_SIZE];
    if (c->missing)
        return;
    switch (type) {
    case COLUMN_TEXT:
        write_text(c->as.text, file);
        break;
    case COLUMN_INTEGER:
        format_integer(number, c->as.integer);
        fputs(number, file);
        break;
    case COLUMN_REAL:
        format_real(number, c->as.real);
        fputs(number, file);
        break;
    case COLUMN_BOOLEAN:
        fputs(c->as.boolean ? "true" : "false", file);
        break;
    }
}

bool table_write_header(const table *t, FILE *file)
{
    for (int i = 0; i < t->count; i++)
        fprintf(file, "%s%s", i ? "," : "", t->columns[i].name);
    putc('\n', file);
    return !ferror(file);
}

bool table_write_row(const table *t, int64_t row, FILE *file)
{
    for (int i = 0; i < t->count; i++) {
        if (i)
            putc(',', file);
        write_cell(t->columns[i].type, get_cell(t, row, i), file);
    }
    putc('\n', file);
    return !ferror(file);
}

bool table_write_csv(const table *t, FILE *file)
{
    bool written = table_write_header(t, file);
    for (int64_t row = 0; written && row < table_rows(t); row++)
        written = table_write_row(t, row, file);
    return written;
}

/* ---- JSON ---- */

static void write_json_text(const char *text, FILE *file)
{
    putc('"', file);
    while (*text) {
        size_t length = utf8_length(text);
        if (length == 0)
            fputs("\\ufffd", file);
        else if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || *text == 127)
            fprintf(file, "\\u%04x", (unsigned)*text);
        else
            fwrite(text, 1, length, file);
        text += length ? length : 1;
    }
    putc('"', file);
}

static void write_json_cell(column_type type, const cell *c, FILE *file)
{
    if (c->missing)
        fputs("null", file);
    else if (type == COLUMN_TEXT)
        write_json_text(c->as.text, file);
    else {
        const char *quote = type == COLUMN_REAL && !isfinite(c->as.real) ? "\"" : "";
        fputs(quote, file);
        write_cell(type, c, file);
        fputs(quote, file);
    }
}

bool table_write_json(const table *t, FILE *file)
{
    putc('[', file);
    for (int64_t row = 0; row < table_rows(t); row++) {
        fputs(row ? ",\n{" : "\n{", file);
        for (int i = 0; i < t->count; i++) {
            fprintf(file, "%s\"%s\": ", i ? ", " : "", t->columns[i].name);
            write_json_cell(t->columns[i].type, get_cell(t, row, i), file);
        }
        putc('}', file);
    }
    putc(']', file);
    return !ferror(file);
}

/* ---- Reading ---- */

/* A number is taken only if writing it gives back the same text: no blanks, no signs, no digits
 * that were not written by write_cell. */
static bool read_number(table *t, const char *field)
{
    char again[NUMBER_SIZE];
    if (next_type(t) == COLUMN_INTEGER) {
        int64_t integer = strtoll(field, NULL, 10);
        format_integer(again, integer);
        if (strcmp(again, field) != 0)
            return false;
        table_integer(t, integer);
        return true;
    }
    double real = strtod(field, NULL);
    format_real(again, real);
    if (strcmp(again, field) != 0)
        return false;
    table_real(t, real);
    return true;
}

static bool read_plain(table *t, const char *field)
{
    bool truth = strcmp(field, "true") == 0;
    if (!*field) {
        table_missing(t);
        return true;
    }
    switch (next_type(t)) {
    case COLUMN_TEXT:
        table_text(t, field);
        return !strpbrk(field, "\"\r");
    case COLUMN_BOOLEAN:
        table_boolean(t, truth);
        return truth || strcmp(field, "false") == 0;
    default:
        return read_number(t, field);
    }
}

/* The end of the field at `text`, its quotes included; null if they do not close. */
static const char *field_end(const char *text)
{
    if (*text != '"')
        return text + strcspn(text, ",\n");
    for (text++; *text && (*text != '"' || text[1] == '"'); text++)
        text += *text == '"';
    return *text ? text + 1 : NULL;
}

/* A copy of the field without its quotes; two quotes in a row become one. */
static char *copy_field(const char *text, const char *end)
{
    char *field = must_allocate((size_t)(end - text) + 1, 1);
    size_t length = 0;
    bool quoted = *text == '"';
    for (text += quoted, end -= quoted; text < end; text++) {
        text += quoted && *text == '"';
        field[length++] = *text;
    }
    return field;
}

static bool read_field(table *t, const char **text)
{
    bool quoted = **text == '"', fits;
    const char *end = field_end(*text);
    if (!end)
        return false;
    char *field = copy_field(*text, end);
    *text = end;
    if (quoted) {
        fits = next_type(t) == COLUMN_TEXT && (!*field || strpbrk(field, ",\"\r\n"));
        if (fits)
            table_text(t, field);
    } else {
        fits = read_plain(t, field);
    }
    free(field);
    return fits;
}

/* Reads one record; returns what follows it, or null with the refused column in *col. */
static const char *read_record(table *t, const char *text, int *col)
{
    size_t before = t->filled;
    assert(before % (size_t)t->count == 0);
    for (int i = 0; i < t->count; i++) {
        *col = i;
        char after = i + 1 < t->count ? ',' : '\n';
        if (!read_field(t, &text) || *text != after) {
            shorten(t, before);
            return NULL;
        }
        text++;
    }
    return text;
}

bool table_read_rows(table *t, const char *text)
{
    int64_t row;
    int col;
    return table_read_rows_at(t, text, &row, &col);
}

bool table_read_rows_at(table *t, const char *text, int64_t *row, int *col)
{
    size_t before = t->filled;
    for (*row = -1; text && *text; ++*row)
        text = read_record(t, text, col);
    if (!text)
        shorten(t, before);
    return text != NULL;
}

/* Skips the header; null if its names are not those of the table's columns. */
static const char *skip_header(const table *t, const char *text)
{
    for (int i = 0; i < t->count; i++) {
        size_t length = strlen(t->columns[i].name);
        if (strncmp(text, t->columns[i].name, length) != 0 ||
            text[length] != (i + 1 < t->count ? ',' : '\n'))
            return NULL;
        text += length + 1;
    }
    return text;
}

table *table_read_file(const char *path, const column *columns, int count)
{
    table *t = table_create(columns, count);
    static const char expected[] = "the CSV of this version";
    size_t size;
    char *text = files_read(path, expected, &size);
    const char *rows = text && strlen(text) == size ? skip_header(t, text) : NULL;
    bool read = rows && table_read_rows(t, rows);
    if (text && !read)
        report_error("%s: expected %s", path, expected);
    free(text);
    if (read)
        return t;
    table_free(t);
    return NULL;
}

/* ---- Text to read ---- */

/* Short numbers, "-" for what is missing. To be freed. */
static char *print_cell(const table *t, int64_t row, int col)
{
    const cell *c = get_cell(t, row, col);
    if (c->missing)
        return must_format("-");
    switch (t->columns[col].type) {
    case COLUMN_TEXT:
        return must_format("%s", c->as.text);
    case COLUMN_INTEGER:
        return must_format("%" PRId64, c->as.integer);
    case COLUMN_REAL:
        return must_format("%.4g", c->as.real);
    default:
        return must_format("%s", c->as.boolean ? "true" : "false");
    }
}

/* A cell padded to `width`: numbers are right-aligned, texts left-aligned. */
static void print_padded(FILE *file, const column *c, const char *text, int width, bool last)
{
    if (c->type != COLUMN_TEXT)
        fprintf(file, "%*s", width, text);
    else
        fprintf(file, "%-*s", last ? 0 : width, text);
    fputs(last ? "\n" : "  ", file);
}

static int column_width(const table *t, int64_t rows, int col)
{
    size_t width = strlen(t->columns[col].name);
    for (int64_t row = 0; row < rows; row++) {
        char *text = print_cell(t, row, col);
        if (strlen(text) > width)
            width = strlen(text);
        free(text);
    }
    return (int)width;
}

void table_print(const table *t, int64_t limit, FILE *file)
{
    if (!file)
        return;
    int64_t rows = table_rows(t) < limit ? table_rows(t) : limit;
    int *widths = must_allocate((size_t)t->count, sizeof *widths);
    for (int i = 0; i < t->count; i++) {
        widths[i] = column_width(t, rows, i);
        print_padded(file, &t->columns[i], t->columns[i].name, widths[i], i + 1 == t->count);
    }
    for (int64_t row = 0; row < rows; row++) {
        for (int i = 0; i < t->count; i++) {
            char *text = print_cell(t, row, i);
            print_padded(file, &t->columns[i], text, widths[i], i + 1 == t->count);
            free(text);
        }
    }
    if (rows < table_rows(t))
        fprintf(file, "... and %" PRId64 " more rows\n", table_rows(t) - rows);
    free(widths);
}

void table_print_columns(const table *t, const char *const *names, int count, int64_t limit,
                         FILE *file)
{
    column *shown = must_allocate((size_t)count, sizeof *shown);
    int *cols = must_allocate((size_t)count, sizeof *cols);
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(names[i], "=");
        cols[i] = find_column(t, names[i], length);
        assert(cols[i] >= 0 && "the table has a column of this name");
        shown[i] = t->columns[cols[i]];
        if (names[i][length])
            shown[i].name = names[i] + length + 1;
    }
    table *part = table_create(shown, count);
    for (int64_t row = 0; row < table_rows(t); row++)
        for (int i = 0; i < count; i++)
            copy_from(part, t, row, cols[i]);
    table_print(part, limit, file);
    table_free(part);
    free(cols);
    free(shown);
}
