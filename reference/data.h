/* SPDX-License-Identifier: BSD-3-Clause */
/* Seeded test data: the same numbers on every machine. Row-major f64. */
#ifndef REFERENCE_DATA_H
#define REFERENCE_DATA_H

#include <stdint.h>

#include <attnum/tensor.h>

/* splitmix64: the next 64 bits of a stream. */
uint64_t data_next(uint64_t *state);

/* Standard normal values, and uniform ones in [0, 1). */
void data_normal(uint64_t seed, int64_t count, double *values);
void data_uniform(uint64_t seed, int64_t count, double *values);

/* Rounds values to the dtype, so that f64 references get exactly the same input. */
void data_round(atn_dtype dtype, int64_t count, double *values);

/* A smooth field on a grid: each channel a random sum of 4 x 4 cosine modes, scaled to standard
 * deviation 1 over the grid. Neighbouring tokens are almost equal, as in photographs. */
void data_smooth(uint64_t seed, int64_t height, int64_t width, int64_t d, double *tokens);

/* 0 .. count - 1 in random order. */
void data_permutation(uint64_t seed, int64_t count, int64_t *order);

/* Allocates count doubles (at least one); ends the program on failure. */
double *data_allocate(int64_t count);

#endif
