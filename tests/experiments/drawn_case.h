/* SPDX-License-Identifier: BSD-3-Clause */
/* One problem of the convergence experiments, for tests of its matrices. */
#ifndef TESTS_DRAWN_CASE_H
#define TESTS_DRAWN_CASE_H

#include "convergence/bottleneck.h"

enum { SIDE = 14, N = SIDE * SIDE, STRIDE = 2, M = 49, D = 32, CELLS = STRIDE * STRIDE };

/* The first sample of `convergence/curves` at stage 3 with the given options, in f64: tokens, the
 * bottleneck matrix and P; `raw` are the tokens before they are sampled. */
typedef struct {
    program_options s;
    landmark_sweep draws;
    bottleneck b;
    double *raw, *tokens, *cross;
} drawn_case;

void draw_case(drawn_case *c, const char *options);
void free_case(drawn_case *c);

#endif
