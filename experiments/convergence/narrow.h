/* SPDX-License-Identifier: BSD-3-Clause */
/* The precisions in which the iterations are studied: f64, f32, and tf32, f16 and bf16 as the
 * library emulates them. */
#ifndef EXPERIMENTS_CONVERGENCE_NARROW_H
#define EXPERIMENTS_CONVERGENCE_NARROW_H

#include <attnum/attnum.h>

typedef struct {
    atn_dtype dtype;
    atn_storage storage;
} precision;

/* Widest first: f64, f32, tf32, f16, bf16. */
enum { PRECISIONS = 5 };
extern const precision precisions[PRECISIONS];

const char *precision_name(precision p);
double precision_roundoff(precision p);
/* Number of steps to run: more than rounding errors, which double in a step, need to overflow. */
int precision_last(precision p);
/* to = from, rounded to the precision. */
void precision_round(precision p, int64_t count, const double *from, double *to);

#endif
