/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPERIMENTS_MEDIAN_H
#define EXPERIMENTS_MEDIAN_H

#include <stdint.h>

/* Sorts numbers in ascending order; NaN counts as larger than any number. */
void sort_numbers(int64_t count, double *values);

/* The median of count > 0 values, which it sorts. */
double median(int64_t count, double *values);

#endif
