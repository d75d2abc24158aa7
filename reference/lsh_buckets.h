/* SPDX-License-Identifier: BSD-3-Clause */
/* Reformer's hash of one token. */
#ifndef REFERENCE_LSH_BUCKETS_H
#define REFERENCE_LSH_BUCKETS_H

#include <stdint.h>

/* The first maximum of [x R, -x R], R d x half, half > 0. margin (or null): the smallest error of
 * two of those sums, relative to their sums of |x_c R_cb|, that could change it. */
int64_t ref_lsh_bucket(int64_t d, int64_t half, const double *x, const double *rotation,
                       double *margin);

#endif
