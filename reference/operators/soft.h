/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of SOFT and SOFT++ for one head: landmarks, bottleneck, inverse; and the bottlenecks of
 * all heads. */
#ifndef REFERENCE_OPERATORS_SOFT_H
#define REFERENCE_OPERATORS_SOFT_H

#include "problem.h"

/* m; 0: the sampling is impossible for these tokens. */
int64_t NUM(ref_landmark_count)(const ref_head *h);

/* L (m x d), section 3.2. ATN_OK or ATN_ERR_MEMORY. */
atn_status NUM(ref_landmarks)(const ref_head *h, num *landmarks);

/* K(X, Y) (p x q), Eq. 4, with the description's s. */
void NUM(ref_kernel)(const ref_head *h, int64_t p, int64_t q, const num *x, const num *y, num *k);

/* X (m x m) for A = K(L, L) by the description's inverse and gradient; ATN_SINGULAR: there is none,
 * ATN_ERR_VALUE: no such inverse or gradient. */
atn_status NUM(ref_bottleneck_inverse)(const ref_head *h, int64_t m, const num *a, num *x);

/* A of every head (b x h x m x m) and the start alpha of its Newton-Raphson iteration; 0: the
 * search found none. */
atn_status NUM(ref_soft_bottlenecks)(const problem *p, int64_t m, num *a, num *alpha);

/* nystromformer's A of every head. */
atn_status NUM(ref_nystrom_bottlenecks)(const problem *p, int64_t m, num *a);

#endif
