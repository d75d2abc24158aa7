/* SPDX-License-Identifier: BSD-3-Clause */
/* How far the library's derivative of an iterate is from the exact one. */
#ifndef EXPERIMENTS_CONVERGENCE_GRADIENT_H
#define EXPERIMENTS_CONVERGENCE_GRADIENT_H

#include <stdint.h>

#include <attnum/attnum.h>

typedef struct {
    double error, cosine; /* |got - want|_F / |want|_F; <got, want>_F over both norms */
} gradient_error;

/* The error of `size` numbers of the dtype as the derivative of X_k. taken: the steps that the
 * library took; if they are fewer than k, X_k overflowed, and both are NaN. */
gradient_error gradient_compare(int64_t size, atn_dtype dtype, const void *got, const double *want,
                                int k, int taken);

/* A random symmetric matrix g, m x m, with N(0, 1) entries that are f32 numbers, so that it is the
 * same in every dtype. */
void gradient_direction(uint64_t seed, int64_t sample, int64_t m, double *g);

#endif
