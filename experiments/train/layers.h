/* SPDX-License-Identifier: BSD-3-Clause */
/* The linear layers of a network, forward and backward, its loss, and AdamW's step for its
 * parameters. Arrays are rows x width, row-major and dense. Backward overwrites the gradients it is
 * given. The order of every sum depends on nothing but the sizes and the instruction set. */
#ifndef EXPERIMENTS_TRAIN_LAYERS_H
#define EXPERIMENTS_TRAIN_LAYERS_H

#include <attnum/context.h>

#include "train/real.h"
#include "train/rows.h"

#define row_kernels_of  R(row_kernels_of)
#define linear          R(linear)
#define linear_backward R(linear_backward)
#define cross_entropy   R(cross_entropy)
#define adamw           R(adamw)

/* The kernels for the context's instruction set. */
const row_kernels *row_kernels_of(const atn_context *context);

/* y = x W^T + b: x rows x in, W out x in, b out numbers, y rows x out. */
void linear(atn_context *context, int64_t rows, int64_t in, int64_t out, const real *x,
            const real *weight, const real *bias, real *y);
/* dx may be null; add: adds to it. */
void linear_backward(atn_context *context, int64_t rows, int64_t in, int64_t out, const real *x,
                     const real *weight, const real *dy, bool add, real *dx, real *dweight,
                     real *dbias);

/* Softmax and cross-entropy with label smoothing e (Szegedy et al. 2016): the target is 1 - e + e /
 * classes for the label and e / classes for the others. Adds the images' losses to *loss and the
 * number of correctly classified images to *correct; dlogits, if not null, is the gradient of
 * `weight` times the sum of the losses. A row with NaN does not count as correct. */
void cross_entropy(int64_t images, int64_t classes, const real *logits, const unsigned char *labels,
                   double smoothing, double weight, double *loss, int64_t *correct, real *dlogits);

/* AdamW (Loshchilov and Hutter 2019, Alg. 2) with beta 0.9 and 0.999, epsilon 1e-8. */
typedef struct {
    int64_t step; /* 1, 2, ... */
    double rate, decay;
    double scale; /* factor of the gradient */
} adamw_rule;

/* moments: AdamW's first and second moments of the numbers in x. */
void adamw(const adamw_rule *rule, int64_t count, const real *gradient, real *x,
           real *const moments[2]);

#endif
