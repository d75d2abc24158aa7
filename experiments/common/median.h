/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPERIMENTS_MEDIAN_H
#define EXPERIMENTS_MEDIAN_H

#include <stdint.h>

/* The median of count > 0 values, which it sorts; NaN counts as larger than any number. */
double median(int64_t count, double *values);

#endif
