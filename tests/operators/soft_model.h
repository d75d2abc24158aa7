/* SPDX-License-Identifier: BSD-3-Clause */
/* The derivative of SOFT by differences of the dense reference: no backward formula is used here.
 * The scalar is the sum of dout Y, with Y by tests/common/dense_soft.h and the inverse X as a
 * function of A that has the derivative wanted. */
#ifndef TESTS_SOFT_MODEL_H
#define TESTS_SOFT_MODEL_H

#include "fixture.h"

/* X as a function of A. A0 and X0 are those of the unchanged inputs. */
typedef enum {
    MODEL_EXACT,  /* A+ */
    MODEL_STEPS,  /* the closed-form filter of T steps, alpha and all */
    MODEL_EQ12,   /* X0 - X0 (A - A0) X0, whose derivative at A0 is Eq. 12 */
    MODEL_PSEUDO, /* X0 - X0 E X0 + X0 X0 E (I - A0 X0) + (I - X0 A0) E X0 X0, E = A - A0 */
    MODEL_PIVOTS, /* the inverse of the pivots' block, 0 elsewhere */
} soft_model_kind;

typedef struct {
    fixture_soft f; /* its inputs may be changed between soft_model_scalar's calls */
    soft_model_kind kind;
    double s;
    double *dout;          /* b x h x n x value_dim */
    double *a0, *x0;       /* per head: m x m */
    int64_t *pivots, rank; /* per head: m; the same rank for all heads */
} soft_model;

/* The model for a description. Takes ownership of f. */
soft_model soft_model_make(fixture_soft f);
void soft_model_free(soft_model *model);

/* The distance of the largest row sum of A from the next one, relative to the sum without the
 * diagonal; the least of all heads. */
double soft_model_gap(const soft_model *model);

/* sum of dout Y. */
long double soft_model_scalar(soft_model *model);

/* Its derivative along `direction` (count numbers) of values, which are in model.f. Central
 * differences of sixth order. */
double soft_model_slope(soft_model *model, int64_t count, double *values, const double *direction,
                        double step);

#endif
