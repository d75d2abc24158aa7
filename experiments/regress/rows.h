/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of `attnum regress`: one for the samples of an operator's variant in a type, on a device
 * and an input. */
#ifndef EXPERIMENTS_REGRESS_ROWS_H
#define EXPERIMENTS_REGRESS_ROWS_H

#include <ruler.h>

#include "common/table.h"

/* The columns of a row of a run, of which the first are kept as a baseline, and of its
 * comparison. */
enum {
    ROW_OPERATOR,
    ROW_VARIANT,
    ROW_DTYPE,
    ROW_DEVICE,
    ROW_N,
    ROW_M,
    ROW_D,
    ROW_INPUT,
    ROW_SAMPLES,
    ROW_RATIO,
    ROW_ERROR,
    ROW_DIGITS,
    ROW_VERDICT,
    ROW_COLUMNS,
    ROW_KEPT_DEVICE = ROW_COLUMNS,
    ROW_KEPT_ERROR,
    ROW_KEPT_DIGITS,
    ROW_KEPT_VERDICT,
    ROW_LOSS,
    ROW_COMPARISON,
    COMPARED_COLUMNS
};
extern const column regress_columns[COMPARED_COLUMNS];

/* Appends one row for each group of samples. raw: rows of accuracy/operators, computed on the
 * device. Ratio, error and digits are medians of the samples, the verdict is their worst. Rows are
 * in the order of the samples. */
void rows_gather(const table *raw, const char *device, table *into);

/* Reads the rows (ROW_COLUMNS) of a CSV: of a baseline, or of a run, whose rows marked as gone are
 * left out. Other files are refused, with the file, the row (the header is 1) and the column, and
 * so is a run's CSV of other bytes than its metadata say, if they lie next to it. Returns an exit
 * code. */
int rows_read(const char *path, table **rows);

/* Finds rows of a table by the columns that identify them. */
typedef struct {
    char *key;
    int64_t row;
} keyed_row;
typedef struct {
    keyed_row *items;
    int64_t count;
} row_index;

row_index rows_index(const table *rows);
/* The order of rows by another key; to be freed. Rows of one key keep their order. */
row_index rows_index_by(const table *rows, char *(*key)(const table *rows, int64_t row));
void rows_index_free(row_index *index);
/* The row of `of` with the key of row `row` of `rows`, but on the given device; -1 if there is
 * none. */
int64_t rows_find(const row_index *of, const table *rows, int64_t row, const char *device);

/* Whether the table has a row of the device. */
bool rows_have(const table *rows, const char *device);

ref_verdict rows_verdict(const table *rows, int64_t row);
/* Whether the type is f32 or f64, in which the library must not FAIL; in a narrow type a FAIL may
 * be a result. */
bool rows_native(const table *rows, int64_t row);

#endif
