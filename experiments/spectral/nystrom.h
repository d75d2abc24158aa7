/* SPDX-License-Identifier: BSD-3-Clause */
/* S^ = K(Q,L) K(L,L)+ K(L,Q), SOFT (IJCV) Eq. 9, as a dense matrix with a bound on its rounding. */
#ifndef EXPERIMENTS_SPECTRAL_NYSTROM_H
#define EXPERIMENTS_SPECTRAL_NYSTROM_H

#include <stdint.h>

typedef struct {
    int64_t kept;     /* landmarks that are pivots; the others' pivots were m u or less */
    int64_t *pivots;  /* their numbers, room for m */
    double shortfall; /* tr(K(Q,Q) - S^) = n - tr(S^), computed in long double */
    double rounding;  /* bounds |S^ as computed - S^ of the kept landmarks|_F to first order */
} nystrom_approximation;

/* S^ of n tokens and m landmarks, n x n, exactly symmetric; kernel exp(-s |x - y|^2).
 *
 * K(L,L) on the pivots = G G^T by Cholesky with diagonal pivoting, F = G^-1 K(L,Q), S^ = F^T F,
 * which never forms an inverse. Kernels, G and F are in long double; the product F^T F, whose
 * entries are at most 1, in f64. A landmark whose pivot is at most m u, u = 2^-53, is left out: S^
 * is then that of fewer landmarks, which is smaller in the Loewner order, so that S - S^ stays
 * semi-definite. */
void nystrom_make(int64_t n, int64_t m, int64_t d, const double *tokens, const double *landmarks,
                  double s, double *s_hat, nystrom_approximation *result);

typedef struct {
    double lowest;                  /* lambda_min(S - S^) */
    double exact;                   /* max |S - S^| over the rows of landmarks */
    double trace, norm;             /* tr(S - S^), |S - S^|_2 */
    double rounding;                /* error of lowest and of exact */
    double least_trace, least_norm; /* of any matrix of rank m, less a bound on rounding */
} nystrom_errors;

/* EXIT_CHECK, with a line per violation that starts with `what`, unless S - S^ is positive
 * semi-definite, S^ equals S on landmarks that are tokens, and neither norm is below its least
 * value; else EXIT_PASS. */
int nystrom_judge(const char *what, const nystrom_errors *errors);

#endif
