/* SPDX-License-Identifier: BSD-3-Clause */
/* An estimate of how far rounding moves the Newton-Raphson residual from its closed form.
 *
 * Let E be the error of X_k, in the eigenbasis of B = A + ridge I. One step of X <- 2 X - X B X
 * gives E_ij <- (r_i + r_j) E_ij - (E B E)_ij, r_i = (1 - alpha mu_i^2)^(2^k) for the eigenvalue
 * mu_i of B, and adds rounding errors of m u |X_k| (2 + |B| |X_k|). E contributes lambda_i lambda_j
 * E_ij to A X A - A. Forming that difference in f64 adds m 2^-53 (1 + |A| |X_k|), relative to |A|.
 * So errors double where r is near -1, or near 1 for a small eigenvalue; where all r are near 0
 * they vanish.
 *
 * It is not a bound. It takes the largest entry of the matrix lambda_i lambda_j E_ij, whose 2-norm
 * can be up to m times as large. A proved bound for the products has | |X| |B| |X| |_2, up to m^1.5
 * times |X|_2^2 |B|_2. The estimate leaves both factors out, because rounding errors of random
 * signs stay far below them; and it assumes m u for each product, which is seldom reached. */
#ifndef EXPERIMENTS_CONVERGENCE_ROUNDING_H
#define EXPERIMENTS_CONVERGENCE_ROUNDING_H

#include <stdint.h>

/* estimates[k], an estimate of |residual_k - its closed form|, for k < count, from the m
 * eigenvalues of A, the roundoff u of the iteration and the norms |X_k|_2. */
void rounding_estimates(int64_t m, const double *lambda, double alpha, double ridge, double u,
                        int count, const double *norms, double *estimates);

#endif
