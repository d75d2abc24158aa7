/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_read: a CSV of attnum regress is taken whole or refused; what is taken reads the same again,
 * and against itself no row is new, gone or better. */
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "regress/compare.h"
#include "regress/rows.h"
#include "target.h"

static void check_rows(const table *rows)
{
    char *text;
    size_t size;
    table *again;
    FILE *memory = must_open_text(&text, &size);
    table_write_csv(rows, memory);
    must_close_text(memory, &text, &size);
    target_expect(rows_read(target_file((const uint8_t *)text, size), &again) == EXIT_PASS &&
                      table_rows(again) == table_rows(rows),
                  "the rows, written out, are rows");
    table *compared = table_create(regress_columns, COMPARED_COLUMNS);
    compare_outcome o;
    compare_rows(rows, again, true, compared, &o);
    target_expect(table_rows(compared) == table_rows(rows), "a row for each");
    target_expect(o.count[COMPARED_GONE] == 0 && o.count[COMPARED_BETTER] == 0 &&
                      o.count[COMPARED_LOST] == 0 && o.growths == 0,
                  "nothing has changed");
    compare_free(&o);
    table_free(compared);
    table_free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    table *rows;
    if (rows_read(target_file(data, size), &rows) == EXIT_PASS)
        check_rows(rows);
    table_free(rows);
    return 0;
}
