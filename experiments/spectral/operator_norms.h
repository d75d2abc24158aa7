/* SPDX-License-Identifier: BSD-3-Clause */
/* Spectral norms of attention matrices, without n x n arrays where possible. */
#ifndef EXPERIMENTS_SPECTRAL_OPERATOR_NORMS_H
#define EXPERIMENTS_SPECTRAL_OPERATOR_NORMS_H

#include <stdbool.h>
#include <stdint.h>

#include <attnum/attnum.h>

/* All return an exit code: EXIT_CHECK, reported and the numbers set, if two routes to eigenvalues
 * disagree. */

/* The norms of Eq. 15, for A (m x m) and P (m x n); D = diag(A 1). A+ leaves out eigenvalues <= m u
 * lambda_max. */
typedef struct {
    double soft, iterate, softpp; /* |P^T X P|_2 for X = A+, X_20 of nr-paper, D^-1/2 A+ D^-1/2 */
    double p_norm;                /* |P|_2 */
    double pinv_norm, pinv_norm_inf; /* |A+|_2, |A+|_inf */
    bool below_floor;                /* two routes to A+ keep different eigenvalues */
} attention_norms;

int attention_norms_measure(atn_context *context, int64_t m, int64_t n, double *a, const double *p,
                            attention_norms *norms);

/* r (m x m) with P = r Q^T for P (m x n, m <= n) and orthonormal columns in Q. */
int factor_cross_kernel(int64_t m, int64_t n, const double *p, double *r);

/* |P^T X P|_2 for each X that replaces A+ in SOFT, and for D^-1/2 A+ D^-1/2 in SOFT++. A+ is never
 * formed: with A = W diag(lambda) W^T and P = r Q^T (QR), P^T A+ P has the norm of Z^T Z, Z =
 * diag(lambda)^-1/2 W^T r. This loses half as many digits as an explicit A+ would. */
typedef struct {
    double exact;  /* X = A+ without the eigenvalues <= m u lambda_max */
    double coarse; /* the same with a cut 1000 times higher, which shows the influence of the cut */
    double paper;  /* X_20 of nr-paper */
    double published; /* X_20 of the published code: nr-soft, nr-softpp */
} inverse_norms;

typedef struct {
    inverse_norms soft, softpp;
    int64_t rank; /* eigenvalues kept */
} form_norms;

int form_norms_measure(atn_context *context, int64_t m, int64_t n, double *a, const double *p,
                       form_norms *norms);

/* S = softmax(Q Q^T / sqrt(d)), n x n, the self-attention of tokens that are their own keys:
 * S = D^-1 E with symmetric E, so that its eigenvalues are those of D^-1/2 E D^-1/2. */
typedef struct {
    double highest, lowest; /* eigenvalues */
    double norm;            /* |S|_2 */
    double logit;           /* the largest |q|^2 / sqrt(d): rounding of the logits grows with it */
} softmax_norms;

/* All NaN where the logits overflow. */
int softmax_norms_measure(int64_t n, int64_t d, const double *tokens, softmax_norms *norms);

/* S = softmax(Q K^T / sqrt(d)) with keys other than the queries: its eigenvalues are complex, and
 * are computed by one route only (dgeev). */
typedef struct {
    double radius;            /* the largest |eigenvalue| */
    double lowest;            /* the smallest real part */
    double largest_imaginary; /* the largest |imaginary part| */
    double norm;              /* |S|_2 */
    double logit;             /* the largest |logit| */
} cross_norms;

/* Everything but logit is NaN if the logits overflow. */
int softmax_cross_measure(int64_t n, int64_t d, const double *queries, const double *keys,
                          cross_norms *norms);

#endif
