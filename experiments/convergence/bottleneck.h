/* SPDX-License-Identifier: BSD-3-Clause */
/* The bottleneck matrix A = K(L, L) of an input, in one dtype, and its spectrum in f64. */
#ifndef EXPERIMENTS_CONVERGENCE_BOTTLENECK_H
#define EXPERIMENTS_CONVERGENCE_BOTTLENECK_H

#include "common/landmarks.h"

typedef struct {
    atn_dtype dtype;
    int64_t m;
    void *a, *x;    /* m x m in the dtype: A, and room for its inverse */
    double *exact;  /* A, converted to f64 */
    double *lambda; /* its eigenvalues, descending; NaN if A is not finite */
    bool finite;
} bottleneck;

bottleneck bottleneck_create(atn_dtype dtype, int64_t m);
void bottleneck_free(bottleneck *b);

/* Both fill in a, exact and lambda, and return an exit code: EXIT_CHECK if the two routes to the
 * eigenvalues disagree, EXIT_ENVIRONMENT if the library or the reference fails; both report it.
 * bottleneck_from_tokens rounds the tokens of a point (n x d) to the dtype and computes landmarks
 * and A in it; cross (m x n, or null) receives P = K(L, Q), computed in the dtype and converted to
 * f64. bottleneck_from_matrix rounds a symmetric matrix to the dtype. */
int bottleneck_from_tokens(bottleneck *b, const landmark_sweep *sweep, const landmark_point *point,
                           atn_context *context, const double *tokens, double *cross);
int bottleneck_from_matrix(bottleneck *b, const double *matrix);

/* Computes X, the inverse by a method, in b->x. trace may be null. Returns an exit code. */
int bottleneck_invert(bottleneck *b, atn_context *context, const atn_inverse_desc *desc,
                      atn_inverse_info *info, atn_trace *trace);

/* value rounded to the dtype. */
double bottleneck_round(atn_dtype dtype, double value);

/* The largest and the smallest |lambda|. With range_only the smallest is taken over the numerical
 * range alone (|lambda| > m u |A|_2). */
double bottleneck_largest(const bottleneck *b);
double bottleneck_smallest(const bottleneck *b, bool range_only);

#endif
