/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum report [FOLDER]`: one page for all results of a folder, FOLDER/index.html. */
#ifndef EXPERIMENTS_REPORT_REPORT_H
#define EXPERIMENTS_REPORT_REPORT_H

#include <stdio.h>

#include "common/experiment.h"
#include "common/verb.h"

/* The state of the results of an experiment, or of the verdicts, with a sentence that explains it.
 * X(code, name, meaning) */
#define RESULT_LIST(X)                                                                             \
    X(RESULT_MISSING, "missing", "it has not been run, or its last run did not end")               \
    X(RESULT_CHANGED, "changed", "its CSVs are not those that one run of it wrote")                \
    X(RESULT_FAILED, "check failed", "a check of it failed")                                       \
    X(RESULT_SKIPPED, "skipped", "this machine or build lacks what it needs")                      \
    X(RESULT_WHOLE, "whole", "it ended, and its CSVs are those that it wrote")
#define RESULT_CODE(code, name, meaning) code,
typedef enum { RESULT_LIST(RESULT_CODE) RESULT_STATES } result_state;
#undef RESULT_CODE

typedef struct {
    const experiment *e;
    result_state state;
    struct cJSON *metadata; /* of its first CSV; null: there are none */
} result;

/* "convergence/curves.csv" for the ending ".csv", relative to the folder of the results. To be
 * freed. */
char *result_path(const experiment *e, int output, const char *ending);

/* The verdicts, relative to the folder of the results. */
#define REPORT_VERDICTS "claims/claims.csv"

/* Writes the page of all experiments, in their order, and of the verdicts, which are in the state
 * given. command: the command line that makes it. Returns an exit code; EXIT_ENVIRONMENT, reported,
 * if a file cannot be read. */
int report_page_write(const char *folder, const result *results, int count, result_state verdicts,
                      const char *command, FILE *file);

extern const char *const result_names[RESULT_STATES], *const result_meanings[RESULT_STATES];

extern const verb report_verb;

#endif
