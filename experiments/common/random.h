/* SPDX-License-Identifier: BSD-3-Clause */
/* Seeded random streams (GSL's ranlux), one per (seed, purpose, sample), so that no draw depends on
 * which thread made it or in what order. */
#ifndef EXPERIMENTS_RANDOM_H
#define EXPERIMENTS_RANDOM_H

#include <stdint.h>

typedef struct random_stream random_stream;

/* purpose: a short text such as "projection"; streams with different keys are independent. */
random_stream *random_create(uint64_t seed, const char *purpose, uint64_t sample);
void random_free(random_stream *r);

double random_normal(random_stream *r);            /* N(0, 1) */
double random_uniform(random_stream *r);           /* [0, 1) */
int64_t random_below(random_stream *r, int64_t n); /* 0 .. n-1 */

/* cols <= rows: rows x cols with orthonormal columns, Haar distributed (QR of a normal matrix with
 * the signs of R's diagonal fixed), row-major. */
void random_orthonormal(random_stream *r, int64_t rows, int64_t cols, double *q);

#endif
