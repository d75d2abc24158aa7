/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the numbers of one head. */
#ifndef EXPERIMENTS_INSPECT_MEASURE_H
#define EXPERIMENTS_INSPECT_MEASURE_H

#include "common/npy.h"
#include "common/table.h"
#include "inspect/facts.h"
#include "spectral/matrices.h"

/* MOST_CHOICE: the most tokens of a head from which landmarks are chosen and over which norms are
 * taken. MOST_COMPARED: the most tokens whose n x n matrices are formed. From a larger head that
 * many are drawn uniformly, in ascending order. */
enum { MOST_CHOICE = 8192, MOST_COMPARED = 1024 };

/* A number of landmarks, and the grid from which the main sampling takes them. */
typedef struct {
    int64_t m;
    token_grid grid;
} inspect_landmarks;

typedef struct {
    const program_options *s;
    const input *in;
    token_grid grid;                          /* of the tokens */
    int64_t tokens, dim, matrices, per_batch; /* per_batch: heads of a batch entry */
    npy_array given;      /* --landmarks of one head or of all; without data if not given */
    int sampling;         /* of the conclusion; -1: the main one */
    int precision, steps; /* of the conclusion: its type, an index of precisions[], and its steps */
    inspect_landmarks *landmarks;
    int landmark_count;
    int64_t *heads; /* the heads that are examined */
    int64_t head_count;
} inspect_plan;

/* Adds the raw rows of a head. Returns an exit code. */
int inspect_head(const inspect_plan *plan, int64_t head, atn_context *context, table *raw);

/* Measure a symmetric m x m matrix A, positive semi-definite up to rounding: its spectrum, each
 * iteration, each precision. Return exit codes. */
int measure_spectrum(int64_t m, const double *a, inspection *out);
int measure_inverses(int64_t m, const double *a, atn_context *context, inspection *out);
int measure_precisions(int64_t m, const double *a, int steps, atn_context *context,
                       inspection *out);

#endif
