/* SPDX-License-Identifier: BSD-3-Clause */
/* The floor and the growth of a curve of residuals. */
#ifndef EXPERIMENTS_CONVERGENCE_PRECISION_H
#define EXPERIMENTS_CONVERGENCE_PRECISION_H

#include <stdint.h>

typedef struct {
    int best;       /* k*: the first k of the smallest residual */
    double floor;   /* that residual */
    int divergence; /* the first k past k* whose residual is 10 times the floor or NaN; -1: none */
    double fixed;   /* the residual after 20 steps, infinite if there are fewer */
    double law_iteration, law_floor; /* the hypotheses: log2(1/u) + 3, 0.14 sqrt(u) */
} precision_curve;

/* From the residuals of X_0 .. X_{count-1}, count > 0, in arithmetic of unit roundoff u. */
precision_curve precision_judge(int count, const double *residuals, double roundoff);

/* The first k whose value is over that of k - 1 by more than the allowance, or NaN; -1: none. */
int precision_first_rise(int count, const double *values, double allowance);

/* How many eigenvalues are negative, beyond the rounding of their computation: 10 m 2^-53 |A|_2. */
int64_t precision_count_negative(int64_t m, const double *lambda);

#endif
