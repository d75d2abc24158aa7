/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of dense, row-major matrices over `num` that several operators' references share. */
#ifndef REFERENCE_DENSE_H
#define REFERENCE_DENSE_H

#include "problem.h"

/* c (p x q) = a (p x r) b (r x q). */
void NUM(ref_multiply)(int64_t p, int64_t r, int64_t q, const num *a, const num *b, num *c);

/* |A|_1 of an m x m matrix: the largest column sum, the first of equals. */
num NUM(ref_norm1)(int64_t m, const num *a);

/* Replaces logits by weights exp(x_j) / sum exp; returns log sum exp. A logit of -INFINITY has
 * weight 0; if all are, all weights are 0. */
num NUM(ref_softmax_row)(int64_t count, num *logits);

/* row (dv) += sum_j weights_j v_j over the keys that are not masked. */
void NUM(ref_weigh)(const ref_head *h, const num *weights, num *row);

/* Y += V on a height x width grid, correlated channel by channel with a rows x cols filter (both
 * odd) and zero padding; masked tokens count as 0. */
void NUM(ref_depthwise)(const ref_head *h, int64_t height, int64_t width, int64_t rows,
                        int64_t cols, const num *filter, num *out);

/* A+ by ref_pseudo_inverse_long with its derivative at constant rank (m x m). */
atn_status NUM(ref_pseudo_inverse)(int64_t m, const num *a, double rcond, num *x, int64_t *rank);

/* Sets the derivative of x, whose value is the inverse of A, to -X dA X; pseudo: that of the
 * pseudo-inverse at constant rank. */
atn_status NUM(ref_inverse_slope)(int64_t m, const num *a, bool pseudo, num *x);

/* Whether K is a separate tensor. */
static inline bool ref_has_keys(const ref_head *h)
{
    return h->all->k != h->all->q;
}

#endif
