/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention and the softmax of one row, for every operator that consists of them. */
#ifndef SOFTMAX_CPU_H
#define SOFTMAX_CPU_H

#include "cpu/heads.h"

/* Softmax attention of a head (operators/softmax/cpu.c); h->work holds softmax_reals elements for
 * its key_length. */
int64_t R(softmax_reals)(int64_t keys, int64_t d, int64_t dv);
void R(softmax_forward)(const head *h);
void R(softmax_backward)(const head *h);

/* weights (may be x) = softmax(c x). */
void R(softmax_row)(int64_t count, double c, const real *x, real *weights);

/* Backward: slopes, the derivative by the weights P, becomes that by x, c P (dP - P.dP). */
void R(softmax_row_backward)(int64_t count, double c, const real *weights, real *slopes);

/* A softmax over keys that come block by block (Milakov and Gimelshein 2018), with weights exp(c
 * (logit - *largest)), c >= 0, where *largest is the largest logit so far, initially -infinity. If
 * the block raises it, *at, if not null, is its place in the block. Returns the factor by which
 * sums over earlier keys must be multiplied. */
double R(softmax_raise)(int64_t keys, double c, const real *logits, real *largest, int64_t *at);
/* Turns logits into weights and returns their sum. NaN if the largest logit is not finite. */
double R(softmax_weigh)(int64_t keys, double c, real largest, real *logits);

/* x *= factor */
void R(scale_row)(int64_t count, double factor, real *x);

#endif
