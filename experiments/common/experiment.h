/* SPDX-License-Identifier: BSD-3-Clause */
/* An experiment: a list of independent points, each giving rows of raw results, and a last step
 * that makes the published tables from them. The engine (sweep.c) spreads points over threads,
 * journals each finished point so that --resume can go on after a kill, shows progress, and writes
 * CSV, metadata and plots, which appear only when they are complete. With --shard I/N it runs a
 * part of the points and keeps their journal; experiment_merge makes the results of all N. */
#ifndef EXPERIMENTS_EXPERIMENT_H
#define EXPERIMENTS_EXPERIMENT_H

#include <stdint.h>

#include <attnum/attnum.h>

#include "journal.h"
#include "options.h"
#include "table.h"

/* A published CSV: results/<directory of the experiment>/<name>.csv. */
typedef struct {
    const char *name;        /* "curves", "norm_growth_fit" */
    const char *description; /* one sentence, for the metadata */
    const column *columns;
    int column_count;
} output_spec;

enum { MAX_OUTPUTS = 6 };

typedef struct experiment {
    const char *name;         /* "convergence/curves" */
    const char *summary;      /* one line, for `attnum list` */
    const char *source;       /* the figures and statements it belongs to: "IJCV Fig. 5; S10-S14" */
    const char *example;      /* a command, for --help */
    const option_id *options; /* OPTIONS(...), or null */
    bool alone; /* points measure time and run one after the other, whatever --threads is */
    const char *defaults; /* text for --help: what --quick, the default and --full compute */

    const output_spec *outputs; /* outputs[0] has the experiment's own file name */
    int output_count;
    const char *plot; /* the .gp file, "convergence/curves.gp", or null; see plot.h */

    /* The columns of raw rows. Null: those of outputs[0], which then holds the raw rows in order.
     */
    const column *raw_columns;
    int raw_column_count;

    /* Checks the options, fills in defaults, counts the points into *points, and makes *state,
     * which all points share. Returns an exit code; on failure it has reported the reason. Under
     * --dry-run only this, describe and weight are called. release is called whenever *state is not
     * null, also after a failure. */
    int (*prepare)(const program_options *s, void **state, int64_t *points);
    /* One line naming a point: for progress, --dry-run and failing rows. Into buffer. */
    void (*describe)(const void *state, int64_t point, char *buffer, size_t size);
    /* The options that pick a point, for the command that a failed check prints. Null: none is
     * printed. */
    void (*replay)(const void *state, int64_t point, options_point *options);
    /* Work of a point, for the time estimate and for shards of equal work, in any unit; the same on
     * every machine. Null: all points weigh the same. */
    double (*weight)(const void *state, int64_t point);
    /* The index-th input that prepare read, by name and SHA-256 ("" for synthetic ones), for the
     * metadata; false past the last one. Null: it reads none. */
    bool (*input)(const void *state, int index, const char **name, const char **sha256);
    /* Adds the point's raw rows. Called from several threads at a time, each with a context of one
     * thread. Returns an exit code: EXIT_CHECK and EXIT_SKIPPED contribute to the run's;
     * EXIT_ENVIRONMENT and EXIT_USAGE, after a message, stop the run. */
    int (*run)(const void *state, int64_t point, atn_context *context, table *raw);
    /* The first file that the point leaves besides its rows, as the options ask for it, and that is
     * missing; to be freed, null: there is none. Null: points leave no files. --resume is refused
     * where a point that would not run again lacks one. */
    char *(*missing)(const void *state, int64_t point);
    /* Makes the published tables (outputs[i] -> tables[i]) from all raw rows, in point order, and
     * prints a readable table to stdout. Where raw_columns is null, tables[0] is `raw` and is left
     * as it is. Null only if raw_columns is null and there is one output: its first rows are then
     * printed. Returns an exit code: EXIT_CHECK if a check failed. */
    int (*finish)(const program_options *s, const void *state, const table *raw, table **tables);
    void (*release)(void *state);
} experiment;

/* The registry, ended by null. */
extern const experiment *const experiments[];

/* Runs one experiment as described above. Returns an exit code. SIGINT and SIGTERM end it after the
 * running points, with EXIT_ENVIRONMENT; a second one ends the program. */
int experiment_run(const experiment *e, const program_options *s);

/* Publishes the results of the shards of one run, none of which may be missing, in s->out, with
 * s->command in the metadata; s has that run's options. The command that makes a missing shard is
 * printed from verb ("run NAME") and folder (where the shards are). Returns the exit code that the
 * whole run would have; on failure it has reported the reason. */
int experiment_merge(const experiment *e, const program_options *s, const char *verb,
                     const char *folder, shard_file *files, int count);

#endif
