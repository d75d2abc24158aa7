/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal of a run: one complete record for each finished point, so that a run that was killed
 * can be continued. A text file:
 *
 *   attnum journal 2 <fingerprint>
 *   point 3 code 0 rows 21 bytes 1834 sum 9a0c0f1d2b3c4d5e
 *   <the rows, as CSV>
 *   ...
 *
 * The fingerprint is one line with everything that the rows can depend on. The sum (FNV-1a, 64
 * bits) is over the numbers before it and the rows. A shard is such a file that is kept, with
 *
 *   shard 2 of 8 bytes 1020 sum 0f1d2b3c4d5e9a0c
 *   <how it is run, as one line of JSON: metadata_shard>
 *
 * between the first line and the records. */
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
    const char *run;       /* of a shard: the line of JSON */
    /* Whether a journal whose line was `before` may be continued by this run; null: always */
    bool (*goes_on)(const char *before, const char *run);
} journal_spec;

/* Opens the journal and locks it against other runs. resume: fills records[0..points-1] from the
 * complete records and drops the rest of the file; a journal with another fingerprint is refused
 * with EXIT_USAGE. Otherwise an old journal is emptied. Returns an exit code; on failure it has
 * reported the reason. */
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

/* Whether two records are the same, byte by byte. */
bool records_agree(const point_record *a, const point_record *b);

#endif
