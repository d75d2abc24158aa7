/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal of a run: one complete record for each finished point, so that a run that was killed
 * can be continued. A text file:
 *
 *   attnum journal 3 <fingerprint>
 *   shard 2 of 8 bytes 1020 sum 0f1d2b3c4d5e9a0c
 *   <how it is run, as one line of JSON: metadata_run>
 *   point 3 code 0 rows 21 bytes 1834 sum 9a0c0f1d2b3c4d5e
 *   <the rows, as CSV>
 *   ...
 *
 * The fingerprint is one line with everything that the rows can depend on, but not what the machine
 * chooses: instruction set and BLAS kernels, which the JSON names. The sums (FNV-1a, 64 bits) are
 * over the numbers before them and the JSON or the rows. A shard is such a file that is kept; a run
 * without shards is shard 0 of 0. */
#ifndef EXPERIMENTS_JOURNAL_H
#define EXPERIMENTS_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "table.h"

typedef struct journal journal;

/* The record of a point. */
typedef struct {
    table *rows; /* null: not finished */
    int code;    /* what the point returned */
} point_record;

/* The contents of a journal's file. */
typedef struct {
    const char *path, *fingerprint;
    const column *columns; /* of the rows */
    int column_count;
    int64_t points;
    int64_t shard, shards; /* from 1; 0 of 0: this is no shard */
    const char *run;       /* the line of JSON */
    /* Why this run must not continue a journal whose line was `before`: the text "NAME VALUE, here
     * VALUE", to be freed, or null. Null: no line is a reason. */
    char *(*difference)(const char *before, const char *run);
    bool spares; /* a journal that has points is not emptied, but refused */
} journal_spec;

/* Opens the journal and locks it against other runs. resume: fills records[0..points-1] from the
 * complete records and drops the rest of the file; a journal with another fingerprint, or with a
 * difference, is refused with EXIT_USAGE. Otherwise an old journal is emptied, unless the run
 * spares it. Returns an exit code; on failure it has reported the reason. */
int journal_open(journal **j, const journal_spec *spec, bool resume, point_record *records);

/* Whether the journal did not exist before. */
bool journal_is_new(const journal *j);

/* Appends a point. Returns an exit code; on failure it has reported the reason. */
int journal_add(journal *j, int64_t point, const point_record *record);

/* Flushes it to the disk, as journal_add does from time to time. Returns an exit code. */
int journal_sync(journal *j);

/* Closes it; finished: removes the file. Null is allowed. */
void journal_close(journal *j, bool finished);

/* ---- Shards of other runs ---- */

typedef struct {
    char *path, *fingerprint;
    char *run; /* JSON, not parsed yet */
    int64_t shard, shards;
    char *text; /* the whole file; the records start at `records` */
    size_t size, records;
} shard_file;

/* Reads a shard's file and parses its first lines. Returns an exit code; on failure it has reported
 * the reason. Must be freed in either case. */
int shard_read(shard_file *f, const char *path);
/* Fills records[0..points-1], all of which must be empty, from a file that must be complete.
 * Returns an exit code; on failure it has reported the reason. */
int shard_records(shard_file *f, const column *columns, int column_count, int64_t points,
                  point_record *records);
void shard_free(shard_file *f);

/* The first items of two fingerprints that differ, as text; to be freed. */
char *fingerprint_difference(const char *theirs, const char *ours);

/* Whether two records are the same, byte by byte. */
bool records_agree(const point_record *a, const point_record *b);

#endif
