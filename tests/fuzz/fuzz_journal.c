/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_open: a journal that is resumed twice gives the same points. What makes up a record is
 * guarded by a sum that no mutation hits, so a first byte 's' asks for the sums to be set right. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/journal.h"
#include "common/report.h"
#include "rows.h"
#include "target.h"

enum { POINTS = 8, SUM_DIGITS = 16 };

/* FNV-1a, as journal.h has it. */
static uint64_t add_to_sum(uint64_t sum, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Rewrites the sum of the record whose first line starts at `line`; `left` bytes are there. */
static void seal_record(char *line, size_t left)
{
    size_t bytes;
    char digits[SUM_DIGITS + 1];
    char *end = memchr(line, '\n', left);
    if (!end || end - line < SUM_DIGITS + 5 || memcmp(end - SUM_DIGITS - 5, " sum ", 5) != 0 ||
        sscanf(line, "point %*d code %*d rows %*d bytes %zu", &bytes) != 1 ||
        bytes > left - (size_t)(end + 1 - line))
        return;
    uint64_t sum =
        add_to_sum(UINT64_C(0xcbf29ce484222325), line, (size_t)(end - SUM_DIGITS - 5 - line));
    snprintf(digits, sizeof digits, "%016" PRIx64, add_to_sum(sum, end + 1, bytes));
    memcpy(end - SUM_DIGITS, digits, SUM_DIGITS);
}

static int resume(const char *path, point_record records[POINTS])
{
    journal *j;
    memset(records, 0, POINTS * sizeof *records);
    int code = journal_open(&j, path, "f", true, row_columns, ROW_COLUMNS, POINTS, records);
    journal_close(j, false);
    return code;
}

static void check_same(const point_record *a, const point_record *b)
{
    target_expect(!a->rows == !b->rows && a->code == b->code, "the same points");
    target_expect(!a->rows || table_rows(a->rows) == table_rows(b->rows), "the same rows");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    point_record first[POINTS], second[POINTS];
    char *text = must_allocate(size, 1);
    memcpy(text, data + 1, --size);
    for (size_t i = 0; data[0] == 's' && i + 6 < size; i++)
        if (memcmp(text + i, "point ", 6) == 0)
            seal_record(text + i, size - i);
    const char *path = target_file((const uint8_t *)text, size);
    free(text);
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
