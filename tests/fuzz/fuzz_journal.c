/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_open: a journal that is resumed twice gives the same points. */
#include <stdlib.h>
#include <string.h>

#include "common/journal.h"
#include "common/report.h"
#include "rows.h"
#include "sealed.h"
#include "target.h"

enum { POINTS = 8 };

static int resume(const char *path, point_record records[POINTS])
{
    journal *j;
    journal_spec spec = {.path = path,
                         .fingerprint = "f",
                         .columns = row_columns,
                         .column_count = ROW_COLUMNS,
                         .points = POINTS,
                         .run = "{}"};
    memset(records, 0, POINTS * sizeof *records);
    int code = journal_open(&j, &spec, true, records);
    journal_close(j, false);
    return code;
}

static void check_same(const point_record *a, const point_record *b)
{
    target_expect(!a->rows == !b->rows, "the same points");
    target_expect(!a->rows || records_agree(a, b), "the same rows");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    point_record first[POINTS], second[POINTS];
    const char *path = sealed_file(data, size);
    if (resume(path, first) == EXIT_PASS) {
        target_expect(resume(path, second) == EXIT_PASS, "a resumed journal is a journal");
        for (int i = 0; i < POINTS; i++) {
            check_same(&first[i], &second[i]);
            table_free(second[i].rows);
        }
    }
    for (int i = 0; i < POINTS; i++)
        table_free(first[i].rows);
    return 0;
}
