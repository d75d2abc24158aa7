/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal of a run: one record per finished point, appended whole, so that a run that was
 * killed can go on. A text file:
 *
 *   attnum journal 1 <fingerprint>
 *   point 3 code 0 rows 21 bytes 1834 sum 9a0c0f1d2b3c4d5e
 *   <the rows, as CSV>
 *   ...
 *
 * The fingerprint says all that the rows may depend on. The sum (FNV-1a, 64 bits) is over the
 * numbers before it and the rows. */
#ifndef EXPERIMENTS_JOURNAL_H
#define EXPERIMENTS_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "table.h"

typedef struct journal journal;

/* What is known of a point. */
typedef struct {
    table *rows; /* null: not finished */
    int code;    /* what the point returned */
} point_record;

/* Opens the journal at path and locks it, so that no second run writes there. resume: fills
 * records[0..points-1] from the records that are whole and drops the rest of the file; a journal
 * with another fingerprint is refused with EXIT_USAGE. Otherwise an old journal is emptied. Returns
 * an exit code; on failure it has reported the reason. */
int journal_open(journal **j, const char *path, const char *fingerprint, bool resume,
                 const column *columns, int column_count, int64_t points, point_record *records);

/* Appends a point. Returns an exit code; on failure it has reported the reason. */
int journal_add(journal *j, int64_t point, const point_record *record);

/* Closes it; finished: removes the file. Null is allowed. */
void journal_close(journal *j, bool finished);

#endif
