/* SPDX-License-Identifier: BSD-3-Clause */
/* The experiments that verdicts are based on: each is a command of this program, run once for all
 * claims that read it, with its results in a separate folder. */
#ifndef EXPERIMENTS_CLAIMS_EVIDENCE_H
#define EXPERIMENTS_CLAIMS_EVIDENCE_H

#include <attnum/attnum.h>

#include "common/experiment.h"

/* One row of the table in evidence.c. */
typedef struct {
    const char *name;       /* also its folder */
    const char *experiment; /* "convergence/curves" */
    const char *options;    /* in addition to --seed, --threads and --out */
} evidence;

const evidence *evidence_find(const char *name); /* null if there is none */
const evidence *evidence_at(int index);          /* null past the last */
const experiment *evidence_experiment(const evidence *e);

/* The input of a judge. */
typedef struct claim_run {
    const program_options *s;
    atn_context *context; /* s->threads threads */
    uint64_t seed;        /* the first of s->seeds, for random numbers of the judges */
    const char *program;  /* attnum's own path */
    const char *folder;   /* of all results */
    table **tables;       /* [evidence index * MAX_OUTPUTS + output], null where not run */
} claim_run;

/* Runs an experiment, unless it has already run, and reads its CSVs. Returns an exit code:
 * EXIT_CHECK if a check of the experiment failed, EXIT_ENVIRONMENT if there are no results. */
int evidence_run(claim_run *run, const evidence *e);
void evidence_free(claim_run *run);

/* From this call on, SIGINT and SIGTERM end the running experiment, and evidence_interrupted
 * returns true afterwards: the caller must clean up and end. */
void evidence_handle_signals(void);
bool evidence_interrupted(void);

/* The commands that make an evidence and that judge a claim again, for the report; to be freed. */
char *evidence_command(const claim_run *run, const evidence *e);
char *evidence_claim_command(const claim_run *run, const char *id);
/* The path of an output's CSV, or of the plot, below run->folder; to be freed. */
char *evidence_path(const evidence *e, int output, const char *ending);

/* The rows of an output (0 is the experiment's main one) of an evidence that the claim names. */
const table *evidence_table(const claim_run *run, const char *name, int output);

/* ---- Reading tables ---- */

/* The row with the largest value in a column, among those that `take` accepts (null: all) and that
 * have a value; NaN counts as the largest. -1 if there is none. */
int64_t largest_row(const table *t, const char *name,
                    bool (*take)(const table *t, int64_t row, const void *data), const void *data);

#endif
