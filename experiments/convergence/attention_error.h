/* SPDX-License-Identifier: BSD-3-Clause */
/* The error of the attention matrix that an inexact inverse X causes: with P = K(L, Q), m x n,
 *
 *   |P^T (X - A+) P|_2 / |P^T A+ P|_2,
 *
 * without an n x n matrix, and without forming A+: P = r Q^T (QR) and A = W diag(lambda) W^T give
 * |r^T X r - Z^T Z|_2 / |Z^T Z|_2, Z = diag(lambda)^-1/2 W^T r. A mode of A counts in proportion to
 * its part in P: a mode that X has not reached contributes at most what it adds to S^. */
#ifndef EXPERIMENTS_CONVERGENCE_ATTENTION_ERROR_H
#define EXPERIMENTS_CONVERGENCE_ATTENTION_ERROR_H

#include <stdint.h>

typedef struct {
    int64_t m;
    double *r, *exact; /* m x m: r, and r^T A+ r */
    double *work;      /* 2 m x m */
    double norm;       /* |P^T A+ P|_2; NaN where A or P is not finite */
} attention_error;

attention_error attention_error_create(int64_t m);
void attention_error_free(attention_error *e);

/* Prepares e for a symmetric A and P (m x n, m <= n). A+ leaves out eigenvalues |lambda| <= rcond
 * |A|_2. Returns an exit code; reports a failure. */
int attention_error_set(attention_error *e, int64_t n, const double *a, double rcond,
                        const double *p);

/* The error that X causes; X is m x m and symmetric. */
double attention_error_of(const attention_error *e, const double *x);

#endif
