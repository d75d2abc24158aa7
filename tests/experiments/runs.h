/* SPDX-License-Identifier: BSD-3-Clause */
/* Experiments inside a test: run as `attnum run` would, and what they wrote. The working folder is
 * the test's own (scratch.h); stdout goes nowhere from the first run on. */
#ifndef TESTS_RUNS_H
#define TESTS_RUNS_H

#include "common/experiment.h"

/* A context of one thread. */
atn_context *make_context(void);

/* Options are words separated by blanks. Returns an exit code; what s points to stays until the
 * next call. */
int parse_options(program_options *s, const experiment *e, const char *options);

/* Without plots, which take longer than most experiments here; test_sweep.c and tests/cli draw
 * them. Returns an exit code. */
int run_experiment(const experiment *e, const char *options);

/* The rows of the first points, at most `most`, as finish leaves them; e has no raw columns. */
table *run_first_points(const experiment *e, const char *options, int64_t most);

/* The CSV of an output in folder out; to be freed. */
char *read_csv(const experiment *e, const char *out, int output, size_t *size);
/* Its rows. */
table *read_output(const experiment *e, const char *out, int output);

/* A number of any type; NaN if it is missing. */
double cell_number(const table *t, int64_t row, const char *name);

#endif
