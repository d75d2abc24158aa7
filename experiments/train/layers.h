/* SPDX-License-Identifier: BSD-3-Clause */
/* The layers of a network between its attentions, forward and backward. Arrays are rows x width,
 * row-major and dense. Backward overwrites the gradients it is given; every sum is in an order that
 * the sizes alone decide. */
#ifndef EXPERIMENTS_TRAIN_LAYERS_H
#define EXPERIMENTS_TRAIN_LAYERS_H

#include <stdint.h>

#include "train/real.h"

#define linear              R(linear)
#define linear_backward     R(linear_backward)
#define layer_norm          R(layer_norm)
#define layer_norm_backward R(layer_norm_backward)
#define gelu                R(gelu)
#define residual            R(residual)
#define column_sums         R(column_sums)
#define cross_entropy       R(cross_entropy)

/* y = x W^T + b: x rows x in, W out x in, b out numbers, y rows x out. */
void linear(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
            const real *bias, real *y);
/* dx is overwritten (keep 0) or added to (keep 1), or null: not wanted. */
void linear_backward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                     const real *dy, real keep, real *dx, real *dweight, real *dbias);

/* LayerNorm (Ba, Kiros and Hinton 2016), eps 1e-5:   y = (x - mean) rate weight + bias,   rate =
 * 1 / sqrt(variance + eps), each row by itself. moments: mean and rate of each row. */
void layer_norm(int64_t rows, int64_t width, const real *x, const real *weight, const real *bias,
                real *y, real *moments);
/* dy may be dx. */
void layer_norm_backward(int64_t rows, int64_t width, const real *x, const real *weight,
                         const real *moments, const real *dy, real *dx, real *dweight, real *dbias);

/* GELU as SOFT's published code has it in its MLP (Hendrycks and Gimpel 2016, the form by tanh):
 * y = x s(2 sqrt(2/pi) (x + 0.044715 x^3)), s the logistic function. slope: dy/dx. */
void gelu(int64_t count, const real *x, real *y, real *slope);

/* y = x + scale_c z: z rows x width; scale null: 1. y may be x. */
void residual(int64_t rows, int64_t width, const real *x, const real *scale, const real *z,
              real *y);

/* sums_c = sum over rows of x_rc (times z_rc, if z is not null). */
void column_sums(int64_t rows, int64_t width, const real *x, const real *z, real *sums);

/* Softmax and cross-entropy with label smoothing e (Szegedy et al. 2016): the target is 1 - e + e /
 * classes for the label and e / classes for the others. Adds the images' losses to *loss and the
 * number of rightly classified ones to *correct; dlogits, if not null, is the gradient of `weight`
 * times the sum of the losses. A row with NaN is not classified rightly. */
void cross_entropy(int64_t images, int64_t classes, const real *logits, const unsigned char *labels,
                   double smoothing, double weight, double *loss, int64_t *correct, real *dlogits);

#endif
