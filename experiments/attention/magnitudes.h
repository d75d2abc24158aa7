/* SPDX-License-Identifier: BSD-3-Clause */
/* The lengths of SimA's normalised tokens, and how they are related to its attention matrix (SimA
 * section 4.7). */
#ifndef EXPERIMENTS_ATTENTION_MAGNITUDES_H
#define EXPERIMENTS_ATTENTION_MAGNITUDES_H

#include <stdint.h>

/* Pearson's; NaN if either list is constant. */
double correlation(int64_t count, const double *a, const double *b);

/* Divides every column of x (n x d) by its l1 norm, none 0, in long double. */
void divide_by_norms(int64_t n, int64_t d, double *x);

/* The lengths of the rows of x (n x d) with the columns so divided. */
void normalised_lengths(int64_t n, int64_t d, const double *x, double *lengths);

typedef struct {
    double query_ratio, key_ratio; /* the largest length over the least */
    double maps;                   /* correlation of |q^_i| and |k^_i| over tokens */
    double product, size;          /* correlation over pairs of |q^_i| |k^_j| with q^_i . k^_j, and
                                      with its absolute value */
} magnitude;

/* For Q and K (n x d). lengths: those of the n rows of Q^, then those of K^. */
magnitude measure_magnitude(int64_t n, int64_t d, const double *q, const double *k,
                            double *lengths);

#endif
