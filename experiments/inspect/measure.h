/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of one head. */
#ifndef EXPERIMENTS_INSPECT_MEASURE_H
#define EXPERIMENTS_INSPECT_MEASURE_H

#include "common/npy.h"
#include "common/table.h"
#include "inspect/facts.h"
#include "spectral/matrices.h"

/* The most tokens of a head from which landmarks are chosen and norms are computed, and the most of
 * which n x n matrices are formed; of a larger head so many are drawn, uniformly, in ascending
 * order. */
enum { MOST_CHOICE = 8192, MOST_COMPARED = 1024 };

/* A number of landmarks, and how the main sampling takes them. */
typedef struct {
    int64_t m;
    token_grid grid;
} inspect_landmarks;

typedef struct {
    const program_options *s;
    const input *in;
    token_grid grid;                          /* of the tokens */
    int64_t tokens, dim, matrices, per_batch; /* heads of a batch entry */
    npy_array given;                          /* --landmarks, of one head or of all; or no data */
    int sampling;                             /* of the conclusion; -1: the main one */
    int precision, steps;                     /* and its type, in precisions[], and steps */
    inspect_landmarks *landmarks;
    int landmark_count;
    int64_t *heads; /* those looked at */
    int64_t head_count;
} inspect_plan;

/* Adds the raw rows of a head. Returns an exit code. */
int inspect_head(const inspect_plan *plan, int64_t head, atn_context *context, table *raw);

/* Numbers of a symmetric A, m x m, positive semi-definite but for rounding: from the spectrum; of
 * each iteration; of each precision. Return exit codes. */
int measure_spectrum(int64_t m, const double *a, inspection *out);
int measure_inverses(int64_t m, const double *a, atn_context *context, inspection *out);
int measure_precisions(int64_t m, const double *a, int steps, atn_context *context,
                       inspection *out);

#endif
