/* SPDX-License-Identifier: BSD-3-Clause */
/* The experiments that verdicts rest on: each is a command of this program, run once however many
 * claims read it, with its results in a folder of its own. */
#ifndef EXPERIMENTS_CLAIMS_EVIDENCE_H
#define EXPERIMENTS_CLAIMS_EVIDENCE_H

#include <attnum/attnum.h>

#include "common/experiment.h"

/* One row of the table in evidence.c. */
typedef struct {
    const char *name;       /* also its folder */
    const char *experiment; /* "convergence/curves" */
    const char *options;    /* beside --seed, --threads and --out */
} evidence;

const evidence *evidence_find(const char *name); /* null if there is none */
const evidence *evidence_at(int index);          /* null past the last */
const experiment *evidence_experiment(const evidence *e);

/* What a judge works with. */
typedef struct claim_run {
    const program_options *s;
    atn_context *context; /* s->threads threads */
    uint64_t seed;        /* the first of s->seeds, for what a judge draws itself */
    const char *program;  /* attnum's own path */
    const char *folder;   /* of all results */
    table **tables;       /* [evidence index * MAX_OUTPUTS + output], null where not run */
} claim_run;

/* Runs an experiment, unless it has been, and reads its CSVs. Returns an exit code: EXIT_CHECK if a
 * check of the experiment failed, EXIT_ENVIRONMENT if there are no results. */
int evidence_run(claim_run *run, const evidence *e);
void evidence_free(claim_run *run);

/* From here on SIGINT and SIGTERM end the experiment at work, and then evidence_interrupted says
 * so; what runs experiments is to clean up and end. */
void evidence_take_signals(void);
bool evidence_interrupted(void);

/* The commands that make it, and that judge a claim again, for the report; to be freed. */
char *evidence_command(const claim_run *run, const evidence *e);
char *evidence_claim_command(const claim_run *run, const char *id);
/* The path of an output's CSV, or of the plot, below run->folder; to be freed. */
char *evidence_path(const evidence *e, int output, const char *ending);

/* The rows of an output (0 is the experiment's main one) of an evidence the claim names. */
const table *evidence_table(const claim_run *run, const char *name, int output);

/* ---- Reading tables ---- */

/* The row, of those that `take` accepts (null: all), with the largest value in a column, missing
 * left out; a NaN counts as the largest. -1 if there is none. */
int64_t largest_row(const table *t, const char *name,
                    bool (*take)(const table *t, int64_t row, const void *data), const void *data);

#endif
