/* SPDX-License-Identifier: BSD-3-Clause */
/* Spectral norms of large matrices without negative entries, with a lower and an upper bound. */
#ifndef EXPERIMENTS_SPECTRAL_NONNEGATIVE_H
#define EXPERIMENTS_SPECTRAL_NONNEGATIVE_H

#include <stdint.h>

/* An n x n matrix M, given by its rows; rows() writes `count` of them from `first` on (count x n)
 * and returns an exit code. */
typedef struct {
    int64_t n;
    int (*rows)(void *state, int64_t first, int64_t count, double *out);
    void *state;
} row_source;

/* |M|_2^2 is the largest eigenvalue of B = M^T M. For every x: x^T B x / x^T x <= |M|_2^2
 * (Rayleigh), and for every x > 0: |M|_2^2 <= max_i (B x)_i / x_i (Collatz and Wielandt), because B
 * has no negative entry either. Both hold for any x, converged or not, up to rounding: a relative n
 * u for the sums of n numbers of one sign. x comes from the Krylov space of B and (1, ..., 1). */
typedef struct {
    double lower, upper; /* of |M|_2 */
    int steps;           /* products by B */
    double row_sum_mean, row_sum_max;
} norm_bracket;

/* Stops when upper <= (1 + 1e-6) lower, or after 80 steps. Up to n = 4096 M is stored, beyond that
 * its rows are computed again in every step. Returns an exit code. */
int nonnegative_norm(const row_source *source, norm_bracket *bracket);

#endif
