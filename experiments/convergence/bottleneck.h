/* SPDX-License-Identifier: BSD-3-Clause */
/* The bottleneck matrix A = K(L, L) of an input, in one dtype, and its spectrum in f64. */
#ifndef EXPERIMENTS_CONVERGENCE_BOTTLENECK_H
#define EXPERIMENTS_CONVERGENCE_BOTTLENECK_H

#include "common/landmarks.h"

typedef struct {
    atn_dtype dtype;
    int64_t m;
    void *a, *x;    /* m x m in the dtype: A, and room for its inverse */
    double *exact;  /* A as it is, in f64 */
    double *lambda; /* its eigenvalues, descending; NaN if A is not finite */
    bool finite;
} bottleneck;

bottleneck bottleneck_create(atn_dtype dtype, int64_t m);
void bottleneck_free(bottleneck *b);

/* These fill in a, exact and lambda, and return an exit code: EXIT_CHECK if the two routes to the
 * eigenvalues disagree, EXIT_ENVIRONMENT if the library or the reference fails; both after a
 * message. From the tokens of a point (n x d): rounded to the dtype, in which landmarks and A are
 * then computed; cross (m x n, f64, or null) receives P = K(L, Q), which the dtype computed. From a
 * symmetric matrix: rounded to the dtype. */
int bottleneck_from_tokens(bottleneck *b, const landmark_sweep *sweep, const landmark_point *point,
                           atn_context *context, const double *tokens, double *cross);
int bottleneck_from_matrix(bottleneck *b, const double *matrix);

/* X by a method, into b->x. trace may be null. Returns an exit code. */
int bottleneck_invert(bottleneck *b, atn_context *context, const atn_inverse_desc *desc,
                      atn_inverse_info *info, atn_trace *trace);

/* A value as the dtype holds it. */
double bottleneck_round(atn_dtype dtype, double value);

/* The largest and the smallest |lambda|; the smallest, if wanted, over the numerical range
 * (|lambda| > m u |A|_2) alone. */
double bottleneck_largest(const bottleneck *b);
double bottleneck_smallest(const bottleneck *b, bool range_only);

#endif
