/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention and the softmax of rows, for every operator that consists of them. */
#ifndef SOFTMAX_CPU_H
#define SOFTMAX_CPU_H

#include "cpu/heads.h"

/* Softmax attention of a head (operators/softmax/cpu.c), h->length queries or less and
 * h->key_length keys or less. h->work holds softmax_reals elements, h->state softmax_state, for
 * these lengths. Backward may be given h->y only if h->state is as forward left it for the same
 * tokens. */
int64_t R(softmax_reals)(int64_t n, int64_t n_k, int64_t d, int64_t dv);
int64_t R(softmax_state)(int64_t n, int64_t n_k);
void R(softmax_forward)(const head *h);
void R(softmax_backward)(const head *h);

/* The most rows of softmax_raise. */
enum { SOFTMAX_GROUP = 64 };

/* weights = softmax(c x), row by row of `count` numbers; weights may be x, with the same stride. */
void R(softmax_rows)(int64_t rows, int64_t count, double c, const real *x, int64_t x_stride,
                     real *weights, int64_t stride);

/* What backward subtracts from dP, the derivative by the weights P, before it is summed: dP where P
 * is largest if P is at least 1/2 there, else 0. Where P is nearly 1 the difference of dP and its
 * mean would otherwise be all rounding error; and the pivot is no more than twice the sum of P
 * |dP|, so that the differences may be rounded to real numbers. Of two P that are 1/2 it may be
 * either dP or, by R(simd).softmax_peaks, their mean. */
double R(softmax_pivot)(double largest_weight, double largest_slope);
/* Row by row: slopes, the derivative by P, becomes that by x, c P (dP - P.dP). */
void R(softmax_rows_backward)(int64_t rows, int64_t count, double c, const real *weights,
                              int64_t stride, real *slopes, int64_t slope_stride);

/* A softmax over keys that come block by block (Milakov and Gimelshein 2018), of at most
 * SOFTMAX_GROUP rows, with weights exp(c (logit - largest_i)), c >= 0, which
 * R(simd).exponential_rows forms; largest_i is the largest logit so far, initially -infinity.
 * shrink_i is the factor by which sums over earlier keys must be multiplied, 0 if there were none.
 * Row i has keys_i logits in this block. */
void R(softmax_raise)(int64_t rows, const int64_t *keys, double c, const real *logits,
                      int64_t stride, real *largest, double *shrink);

/* x *= factor */
void R(scale_row)(int64_t count, double factor, real *x);

#endif
