/* SPDX-License-Identifier: BSD-3-Clause */
#include "regress/rows.h"

#include <attnum/attnum.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "common/median.h"
#include "common/metadata.h"
#include "common/report.h"

const column regress_columns[COMPARED_COLUMNS] = {
    [ROW_OPERATOR] = {"operator", COLUMN_TEXT, "", "its name in the registry"},
    [ROW_VARIANT] = {"variant", COLUMN_TEXT, "", "its name in the registry"},
    [ROW_DTYPE] = {"dtype", COLUMN_TEXT, "",
                   "f32, f64: the arithmetic; bf16, f16, tf32: f32 with every array rounded to it"},
    [ROW_DEVICE] = {"device", COLUMN_TEXT, "", "cpu or cuda"},
    [ROW_N] = {"n", COLUMN_INTEGER, "", "number of tokens"},
    [ROW_M] = {"m", COLUMN_INTEGER, "", "landmarks; missing for operators without such a number"},
    [ROW_D] = {"d", COLUMN_INTEGER, "", "width of queries, keys and values"},
    [ROW_INPUT] = {"input", COLUMN_TEXT, "", "where the tokens come from"},
    [ROW_SAMPLES] = {"samples", COLUMN_INTEGER, "", "drawn with seeds 1, 2, ..."},
    [ROW_RATIO] = {"ratio", COLUMN_REAL, "",
                   "relative error / (kappa rounding), as in accuracy/operators: the samples' "
                   "median; missing if none has one"},
    [ROW_ERROR] = {"roundings", COLUMN_REAL, "",
                   "relative error / (kappa u), u the roundoff of the arithmetic and of the narrow "
                   "type: the samples' median"},
    [ROW_DIGITS] = {"digits", COLUMN_REAL, "", "-log10 of the relative error: likewise"},
    [ROW_VERDICT] = {"verdict", COLUMN_TEXT, "", "the samples' worst, as in accuracy/operators"},
    [ROW_KEPT_DEVICE] = {"baseline_device", COLUMN_TEXT, "",
                         "of the row it is compared with; missing if there is none"},
    [ROW_KEPT_ERROR] = {"baseline_roundings", COLUMN_REAL, "", "of that row"},
    [ROW_KEPT_DIGITS] = {"baseline_digits", COLUMN_REAL, "", "of that row"},
    [ROW_KEPT_VERDICT] = {"baseline_verdict", COLUMN_TEXT, "", "of that row"},
    [ROW_LOSS] = {"loss", COLUMN_REAL, "",
                  "roundings / (2 baseline_roundings + 2); from 1 on digits are lost"},
    [ROW_COMPARISON] = {"comparison", COLUMN_TEXT, "",
                        "same, better, LOST, FAIL, new, gone, or skipped (neither is judged)"},
};

/* ---- Keys ---- */

/* The columns that identify a row. raw and kept rows have these columns under the same names. */
static char *key_of(const table *t, int64_t row, const char *device)
{
    return must_format(
        "%s\n%s\n%s\n%s\n%" PRId64 "\n%" PRId64 "\n%" PRId64 "\n%s", cell_text(t, row, "operator"),
        cell_text(t, row, "variant"), cell_text(t, row, "dtype"), device, cell_integer(t, row, "n"),
        cell_integer(t, row, "m"), cell_integer(t, row, "d"), cell_text(t, row, "input"));
}

static int compare_keys(const void *a, const void *b)
{
    const keyed_row *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

row_index rows_index_by(const table *rows, char *(*key)(const table *rows, int64_t row))
{
    row_index index = {.count = table_rows(rows)};
    index.items = must_allocate((size_t)index.count, sizeof *index.items);
    for (int64_t row = 0; row < index.count; row++)
        index.items[row] = (keyed_row){key(rows, row), row};
    qsort(index.items, (size_t)index.count, sizeof *index.items, compare_keys);
    return index;
}

static char *own_key(const table *t, int64_t row)
{
    return key_of(t, row, cell_text(t, row, "device"));
}

/* The key of a sample, which has no device. */
static char *sample_key(const table *t, int64_t row)
{
    return key_of(t, row, "");
}

row_index rows_index(const table *rows)
{
    return rows_index_by(rows, own_key);
}

void rows_index_free(row_index *index)
{
    for (int64_t i = 0; i < index->count; i++)
        free(index->items[i].key);
    free(index->items);
    *index = (row_index){0};
}

static int find_key(const void *key, const void *item)
{
    return strcmp(key, ((const keyed_row *)item)->key);
}

int64_t rows_find(const row_index *of, const table *rows, int64_t row, const char *device)
{
    char *key = key_of(rows, row, device);
    const keyed_row *found =
        bsearch(key, of->items, (size_t)of->count, sizeof *of->items, find_key);
    free(key);
    return found ? found->row : -1;
}

bool rows_have(const table *rows, const char *device)
{
    for (int64_t row = 0; row < table_rows(rows); row++)
        if (strcmp(table_get_text(rows, row, ROW_DEVICE), device) == 0)
            return true;
    return false;
}

/* ---- Verdicts and types ---- */

/* REF_SKIPPED + 1 if there is no such verdict. */
static int find_verdict(const char *name)
{
    int verdict = 0;
    while (verdict <= REF_SKIPPED && strcmp(name, ref_verdict_name((ref_verdict)verdict)) != 0)
        verdict++;
    return verdict;
}

ref_verdict rows_verdict(const table *rows, int64_t row)
{
    return (ref_verdict)find_verdict(table_get_text(rows, row, ROW_VERDICT));
}

static bool is_native(const char *dtype)
{
    return strcmp(dtype, atn_dtype_name(ATN_F32)) == 0 ||
           strcmp(dtype, atn_dtype_name(ATN_F64)) == 0;
}

bool rows_native(const table *rows, int64_t row)
{
    return is_native(table_get_text(rows, row, ROW_DTYPE));
}

/* The roundoff of the arithmetic plus that of the storage; 0 for an unknown name. */
static double roundoff_of(const char *dtype)
{
    if (strcmp(dtype, atn_dtype_name(ATN_F64)) == 0)
        return atn_dtype_roundoff(ATN_F64);
    for (int storage = 0; storage < ATN_STORAGE_COUNT; storage++)
        if (strcmp(dtype, atn_storage_name((atn_storage)storage)) == 0)
            return atn_dtype_roundoff(ATN_F32) + atn_storage_roundoff((atn_storage)storage);
    return strcmp(dtype, atn_dtype_name(ATN_F32)) == 0 ? atn_dtype_roundoff(ATN_F32) : 0;
}

/* ---- Rows of samples ---- */

static ref_verdict worse(ref_verdict a, ref_verdict b)
{
    static const int badness[] = {
        [REF_SKIPPED] = 0, [REF_PASS] = 1, [REF_MARGINAL] = 2, [REF_FAIL] = 3};
    return badness[a] > badness[b] ? a : b;
}

static void put_median(table *into, int64_t count, double *values)
{
    if (count > 0)
        table_real(into, median(count, values));
    else
        table_missing(into);
}

/* Adds the row of some samples. A sample without a ratio, which cannot be judged, does not count in
 * the medians. */
static void put_group(const table *raw, const keyed_row *group, int64_t count, const char *device,
                      table *into)
{
    static const char *const shared[] = {"n", "m", "d", "input"};
    double *ratios = must_allocate((size_t)count, 3 * sizeof *ratios), *errors = ratios + count,
           *digits = errors + count;
    ref_verdict verdict = REF_SKIPPED;
    int64_t judged = 0, first = group[0].row;
    double one = roundoff_of(cell_text(raw, first, "dtype"));
    for (int64_t i = 0; i < count; i++) {
        int64_t row = group[i].row;
        verdict = worse(verdict, (ref_verdict)find_verdict(cell_text(raw, row, "verdict")));
        if (cell_missing(raw, row, "ratio"))
            continue;
        ratios[judged] = cell_real(raw, row, "ratio");
        errors[judged] = ratios[judged] * (cell_real(raw, row, "rounding") / one);
        digits[judged++] = cell_real(raw, row, "digits");
    }
    table_text(into, cell_text(raw, first, "operator"));
    table_text(into, cell_text(raw, first, "variant"));
    table_text(into, cell_text(raw, first, "dtype"));
    table_text(into, device);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        table_copy(into, raw, first, shared[i]);
    table_integer(into, count);
    put_median(into, judged, ratios);
    put_median(into, judged, errors);
    put_median(into, judged, digits);
    table_text(into, ref_verdict_name(verdict));
    free(ratios);
}

typedef struct {
    const keyed_row *items;
    int64_t count;
} row_group;

static int compare_groups(const void *a, const void *b)
{
    const row_group *x = a, *y = b;
    return (x->items[0].row > y->items[0].row) - (x->items[0].row < y->items[0].row);
}

void rows_gather(const table *raw, const char *device, table *into)
{
    row_index index = rows_index_by(raw, sample_key);
    row_group *groups = must_allocate((size_t)index.count, sizeof *groups);
    int64_t count = 0;
    for (int64_t i = 0; i < index.count; i++) {
        if (i == 0 || strcmp(index.items[i].key, index.items[i - 1].key) != 0)
            groups[count++].items = &index.items[i];
        groups[count - 1].count++;
    }
    qsort(groups, (size_t)count, sizeof *groups, compare_groups);
    for (int64_t i = 0; i < count; i++)
        put_group(raw, groups[i].items, groups[i].count, device, into);
    free(groups);
    rows_index_free(&index);
}

/* ---- Reading ---- */

/* Reads the header: returns the number of its columns, ROW_COLUMNS or COMPARED_COLUMNS, and moves
 * *text behind it. 0: it is another header, which has been reported. */
static int read_header(const char *path, const char **text)
{
    int col = 0;
    for (;; col++) {
        size_t length = strcspn(*text, ",\n");
        if (col == COMPARED_COLUMNS || strlen(regress_columns[col].name) != length ||
            memcmp(regress_columns[col].name, *text, length) != 0) {
            report_error("%s: row 1, column %d: found '%.*s', expected '%s': not a table of attnum "
                         "regress",
                         path, col + 1, (int)(length < 40 ? length : 40), *text,
                         col < COMPARED_COLUMNS ? regress_columns[col].name : "the end");
            return 0;
        }
        *text += length;
        bool end = **text != ',';
        *text += **text != '\0';
        if (end)
            break;
    }
    col++;
    if (col == ROW_COLUMNS || col == COMPARED_COLUMNS)
        return col;
    report_error("%s: row 1: ends after column %s, expected all columns up to %s or %s", path,
                 regress_columns[col - 1].name, regress_columns[ROW_COLUMNS - 1].name,
                 regress_columns[COMPARED_COLUMNS - 1].name);
    return 0;
}

/* What is wrong with a cell, or null. */
static const char *check_cell(const table *t, int64_t row, int col)
{
    static const int needed[] = {ROW_OPERATOR, ROW_VARIANT, ROW_DTYPE,   ROW_DEVICE, ROW_N,
                                 ROW_D,        ROW_INPUT,   ROW_SAMPLES, ROW_VERDICT};
    bool need = false;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        need |= needed[i] == col;
    if (table_is_missing(t, row, col))
        return need ? "empty" : NULL;
    if (regress_columns[col].type == COLUMN_INTEGER)
        return table_get_integer(t, row, col) >= 1 ? NULL : "expected at least 1";
    if (regress_columns[col].type == COLUMN_REAL)
        return table_get_real(t, row, col) >= 0 ? NULL : "expected a number from 0 on";
    const char *text = table_get_text(t, row, col);
    if (col == ROW_DTYPE)
        return roundoff_of(text) > 0 ? NULL : "expected f32, f64, bf16, f16 or tf32";
    if (col == ROW_DEVICE)
        return strcmp(text, atn_device_name(ATN_CPU)) == 0 ||
                       strcmp(text, atn_device_name(ATN_CUDA)) == 0
                   ? NULL
                   : "expected cpu or cuda";
    if (col == ROW_VERDICT)
        return find_verdict(text) <= REF_SKIPPED ? NULL
                                                 : "expected pass, marginal, FAIL or skipped";
    return NULL;
}

/* What is inconsistent in a row, or null: ratio, error and digits go together, and a row without
 * them must have the verdict of one that cannot be judged. */
static const char *check_together(const table *t, int64_t row, int *col)
{
    bool ratio = !table_is_missing(t, row, ROW_RATIO);
    *col = ROW_ERROR;
    if (ratio == table_is_missing(t, row, ROW_ERROR))
        return "ratio and roundings: one without the other";
    *col = ROW_DIGITS;
    if (ratio == table_is_missing(t, row, ROW_DIGITS))
        return "ratio and digits: one without the other";
    *col = ROW_VERDICT;
    bool judged = rows_verdict(t, row) == REF_PASS || rows_verdict(t, row) == REF_MARGINAL;
    return judged && !ratio ? "a verdict without a ratio" : NULL;
}

static int report_cell(const char *path, int64_t row, int col, const char *wrong)
{
    report_error("%s: row %" PRId64 ", column %s: %s", path, row + 2, regress_columns[col].name,
                 wrong);
    return EXIT_ENVIRONMENT;
}

static bool is_gone(const table *t, int64_t row)
{
    return table_columns(t, NULL) == COMPARED_COLUMNS &&
           strcmp(table_get_text(t, row, ROW_COMPARISON), "gone") == 0;
}

/* Copies the rows, without those marked as gone. */
static int copy_rows(const char *path, const table *all, table *rows)
{
    for (int64_t row = 0; row < table_rows(all); row++) {
        if (is_gone(all, row))
            continue;
        const char *wrong = NULL;
        int col = 0;
        while (col < ROW_COLUMNS && !(wrong = check_cell(all, row, col)))
            col++;
        if (!wrong)
            wrong = check_together(all, row, &col);
        if (wrong)
            return report_cell(path, row, col, wrong);
        table_copy_row(rows, all, row);
    }
    return EXIT_PASS;
}

static int check_unique(const char *path, const table *rows)
{
    row_index index = rows_index(rows);
    int code = EXIT_PASS;
    for (int64_t i = 1; i < index.count && code == EXIT_PASS; i++)
        if (strcmp(index.items[i - 1].key, index.items[i].key) == 0) {
            int64_t row = index.items[i].row;
            report_error("%s: two rows of %s/%s %s on %s, n = %" PRId64, path,
                         table_get_text(rows, row, ROW_OPERATOR),
                         table_get_text(rows, row, ROW_VARIANT),
                         table_get_text(rows, row, ROW_DTYPE), table_get_text(rows, row, ROW_INPUT),
                         table_get_integer(rows, row, ROW_N));
            code = EXIT_ENVIRONMENT;
        }
    rows_index_free(&index);
    return code;
}

static int read_rows(const char *path, const char *text, table *rows)
{
    int columns = read_header(path, &text), col = 0;
    if (columns == 0)
        return EXIT_ENVIRONMENT;
    table *all = table_create(regress_columns, columns);
    int64_t row = 0;
    int code = table_read_rows_at(all, text, &row, &col)
                   ? copy_rows(path, all, rows)
                   : report_cell(path, row, col,
                                 "not as attnum writes it, or the row or the file ends there");
    table_free(all);
    if (code == EXIT_PASS && table_rows(rows) == 0) {
        report_error("%s: has no rows", path);
        code = EXIT_ENVIRONMENT;
    }
    return code == EXIT_PASS ? check_unique(path, rows) : code;
}

/* Rows that were cut off would pass. The metadata of kept rows have neither bytes nor SHA-256. */
static int check_metadata(const char *path)
{
    bool of_csv;
    cJSON *metadata;
    char *json = must_format("%s-metadata.json", path);
    int code = metadata_read(json, path, &metadata, &of_csv);
    if (code == EXIT_PASS && !of_csv && access(json, F_OK) == 0 &&
        !cJSON_HasObjectItem(metadata, "kept")) {
        report_error("%s: is not the file that %s describes: expected its bytes and SHA-256", path,
                     json);
        code = EXIT_ENVIRONMENT;
    }
    cJSON_Delete(metadata);
    free(json);
    return code;
}

int rows_read(const char *path, table **rows)
{
    size_t size;
    char *text = files_read(path, "a table of attnum regress", &size);
    *rows = NULL;
    if (!text)
        return EXIT_ENVIRONMENT;
    *rows = table_create(regress_columns, ROW_COLUMNS);
    int code = EXIT_ENVIRONMENT;
    if (size == 0 || strlen(text) != size)
        report_error("%s: %s, expected a table of attnum regress", path,
                     size == 0 ? "empty" : "holds a zero byte");
    else
        code = check_metadata(path);
    if (code == EXIT_PASS)
        code = read_rows(path, text, *rows);
    free(text);
    if (code == EXIT_PASS)
        return code;
    table_free(*rows);
    *rows = NULL;
    return code;
}
