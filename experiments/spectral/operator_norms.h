/* SPDX-License-Identifier: BSD-3-Clause */
/* Spectral norms of attention matrices that are never formed n x n where they need not be. */
#ifndef EXPERIMENTS_SPECTRAL_OPERATOR_NORMS_H
#define EXPERIMENTS_SPECTRAL_OPERATOR_NORMS_H

#include <stdbool.h>
#include <stdint.h>

#include <attnum/attnum.h>

/* All return an exit code: EXIT_CHECK, reported and the numbers set, if two routes to eigenvalues
 * disagree. */

/* What Eq. 15 is about, for A (m x m) and P (m x n); D = diag(A 1). A+ drops eigenvalues
 * <= m u lambda_max. */
typedef struct {
    double soft, iterate, softpp; /* |P^T X P|_2 for X = A+, X_20 of nr-paper, D^-1/2 A+ D^-1/2 */
    double p_norm;                /* |P|_2 */
    double pinv_norm, pinv_norm_inf; /* |A+|_2, |A+|_inf */
    bool below_floor;                /* two routes to A+ keep different eigenvalues */
} attention_norms;

int attention_norms_measure(atn_context *context, int64_t m, int64_t n, double *a, const double *p,
                            attention_norms *norms);

/* S = softmax(Q Q^T / sqrt(d)), n x n, the self-attention of tokens that are their own keys:
 * S = D^-1 E with symmetric E, so that its eigenvalues are those of D^-1/2 E D^-1/2. */
typedef struct {
    double highest, lowest; /* eigenvalues */
    double norm;            /* |S|_2 */
    double logit;           /* the largest |q|^2 / sqrt(d): rounding of the logits grows with it */
} softmax_norms;

/* All NaN where the logits overflow. */
int softmax_norms_measure(int64_t n, int64_t d, const double *tokens, softmax_norms *norms);

#endif
