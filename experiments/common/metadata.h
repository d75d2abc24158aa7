/* SPDX-License-Identifier: BSD-3-Clause */
/* The metadata of a CSV: <name>.csv-metadata.json, its columns in the form of the W3C's "CSV on the
 * Web", and a `run` object that says how it was made. It is the only output with a date, and never
 * has names of hosts or users. */
#ifndef EXPERIMENTS_METADATA_H
#define EXPERIMENTS_METADATA_H

#include <stdbool.h>
#include <stdio.h>

#include "experiment.h"
#include "journal.h"

struct cJSON;

typedef struct {
    const char *fingerprint; /* everything that the rows can depend on */
    int code;                /* the exit code of the run */
    double seconds;          /* the run's time, or of a resumed run its last part's; 0: not known */
    int64_t resumed;         /* points that earlier parts have computed: "resumed_points" */
    const shard_file *shards; /* the shards that it was merged from */
    int shard_count;          /* 0: it was not merged */
} run_facts;

/* Writes the metadata of e's output number `output`, the CSV that is now at `csv`. The file keeps
 * write errors. Returns an exit code; on failure it has reported the reason. */
int metadata_write(const experiment *e, const program_options *s, const void *state, int output,
                   const run_facts *facts, const char *csv, FILE *file);

/* Whether the file at path is the metadata of a run with this fingerprint, and describes the CSV at
 * csv, byte for byte; *code is then the run's exit code. */
bool metadata_matches(const char *path, const char *csv, const char *fingerprint, int *code);

/* The metadata at path, to be freed with cJSON_Delete (null: there is no such file, or it is not
 * JSON), and whether they are of the CSV at csv, byte by byte. Returns an exit code;
 * EXIT_ENVIRONMENT, reported, if one of the files exists but cannot be read. */
int metadata_read(const char *path, const char *csv, struct cJSON **metadata, bool *of_csv);

/* How s is run, as a line of JSON: the `run` object. To be freed. */
char *metadata_run(const experiment *e, const program_options *s, const void *state,
                   const char *fingerprint);
/* What differs between two such lines, as "NAME VALUE, here VALUE", to be freed; null: nothing.
 * Kernels: instruction set, BLAS, GPU. They round differently; on another machine, which only times
 * depend on, the processor differs as well. */
char *metadata_kernel_difference(const char *run, const char *other);
char *metadata_machine_difference(const char *run, const char *other);

/* The same for a table that is kept in the sources: instead of `run` a `kept` object with the
 * reason, the commit and the versions of its rows; no date. */
void metadata_write_kept(const experiment *e, const output_spec *o, const void *state,
                         const char *commit, const char *reason, FILE *file);

#endif
