/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention with one dominant token, in closed form, which shows how its norm reaches
 * sqrt(n). */
#ifndef REFERENCE_DOMINANT_H
#define REFERENCE_DOMINANT_H

#include <stdint.h>

/* S = softmax(c Q Q^T) of n >= 2 tokens on a line, q_1 = r and q_2 = ... = q_n = 1. Rows 2 to n are
 * equal, so that S maps the span of e_1 and f = (0, 1, ..., 1)/sqrt(n - 1) to itself and everything
 * orthogonal to it to 0. There, with N = n - 1,
 *
 *   p_0 = 1/(1 + N exp(-c r (r - 1))),   p = 1/(1 + N exp(-c (r - 1))),
 *
 *       [ p_0          (1 - p_0)/sqrt(N) ]      eigenvalues 1 and p_0 - p,
 *   B = [ p sqrt(N)     1 - p            ],     |S|_2 = |B|_2.
 *
 * r = 1: |S|_2 = 1. r -> infinity: p_0, p -> 1 and |S|_2 -> sqrt(n). In between |S|_2 > 1, already
 * for two tokens: a row-stochastic 2 x 2 matrix has norm 1 only if its columns sum to 1 as well. */
typedef struct {
    long double norm;       /* |S|_2 */
    long double eigenvalue; /* p_0 - p; the others are 1 and n - 2 times 0 */
} ref_dominant;

/* NaN for n < 2, or r or c that are not finite and positive. */
ref_dominant ref_dominant_softmax(int64_t n, long double c, long double r);

#endif
