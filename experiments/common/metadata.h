/* SPDX-License-Identifier: BSD-3-Clause */
/* The metadata of a CSV: <name>.csv-metadata.json, its columns as the W3C's "CSV on the Web" has
 * them, and a `run` object with the way it was made. The only output with a date in it; never the
 * names of hosts and users. */
#ifndef EXPERIMENTS_METADATA_H
#define EXPERIMENTS_METADATA_H

#include <stdbool.h>
#include <stdio.h>

#include "experiment.h"
#include "journal.h"

struct cJSON;

typedef struct {
    const char *fingerprint;  /* all that the rows may depend on */
    int code;                 /* the exit code of the run */
    double seconds;           /* that it took, without what it resumed; 0: not known */
    const shard_file *shards; /* what it was merged from */
    int shard_count;          /* 0: nothing */
} run_facts;

/* Writes the metadata of e's output number `output`, the CSV that is now at `csv` (null: its
 * bytes and their SHA-256 are left out). The file keeps write errors. Returns an exit code; on
 * failure it has reported the reason. */
int metadata_write(const experiment *e, const program_options *s, const void *state, int output,
                   const run_facts *facts, const char *csv, FILE *file);

/* Whether the file at path is the metadata of a run with this fingerprint, and of the CSV at csv,
 * byte by byte; *code is then the run's exit code. */
bool metadata_matches(const char *path, const char *csv, const char *fingerprint, int *code);

/* The metadata at path, to be freed with cJSON_Delete (null: there is no such file, or it is not
 * JSON), and whether they are of the CSV at csv, byte by byte. Returns an exit code;
 * EXIT_ENVIRONMENT, reported, if one of the files is there and cannot be read. */
int metadata_read(const char *path, const char *csv, struct cJSON **metadata, bool *of_csv);

/* How a shard is run, as a line of JSON: the `run` object. To be freed. */
char *metadata_shard(const experiment *e, const program_options *s, const void *state,
                     const char *fingerprint);

/* The same of a table that is kept in the sources: instead of a `run` a `kept` object with the
 * reason, the commit and the versions that its rows are of; no date. */
void metadata_write_kept(const experiment *e, const output_spec *o, const void *state,
                         const char *commit, const char *reason, FILE *file);

/* The processor and the device that s runs on, as a line of JSON. To be freed. */
char *metadata_machine(const program_options *s);
/* Whether two lines of JSON name the same. */
bool metadata_same_machine(const char *run, const char *other);

#endif
