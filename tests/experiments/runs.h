/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs experiments in a test as `attnum run` would, and reads their results. The working folder is
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

/* An experiment run in parts, so that a test sees its raw rows or changes them. */
enum { RUN_TABLES = 4 };
typedef struct {
    const experiment *e;
    program_options s;
    void *state;
    int64_t points;
    table *raw;
    table *tables[RUN_TABLES]; /* of all outputs */
    table *published;          /* the first one */
} partial_run;

void prepare_run(partial_run *r, const experiment *e, const char *options);
void run_points(partial_run *r);
/* Makes the published rows of the raw ones; stdout then goes to a file. */
void finish_run(partial_run *r);
void end_run(partial_run *r);

/* Expects that the command which the program prints for a failed point computes that point's rows
 * again. */
void expect_replay(const experiment *e, const char *options, int64_t point);

/* Writes count matrices of n tokens of width dim to a .npy file: scale times a sine. */
void write_sine_tokens(const char *name, int64_t count, int64_t n, int64_t dim, double scale);

/* Writes 49 tokens far apart, but for the first two, which the kernel of scale 1 has at 1 - 1e-6:
 * A's eigenvalues are 2, 1 and 1e-6, which f64 resolves and f32 does not. */
void write_pair_tokens(const char *name);

/* rows x cols zeros; to be freed. */
double *make_matrix(int64_t rows, int64_t cols);

/* |got - want| <= tolerance |want|, false for NaN. */
bool close_to(double got, double want, double tolerance);

#endif
