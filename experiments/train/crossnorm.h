/* SPDX-License-Identifier: BSD-3-Clause */
/* UFO-ViT's attention with another norm in place of XNorm (Tab. 3), which the library does not
 * have: of one head, with tokens q, k, v of n x d,
 *
 *   C = V^T K (d x d; its rows are the clusters),   Y = N(Q) N(C)^T,
 *
 * where N normalises each row x of its n x d or d x d matrix, or channels (columns) over all rows:
 *
 *   CROSSNORM_QUERIES, CROSSNORM_CLUSTERS   gamma x/|x|_2 of one of the two, the other as it is
 *   CROSSNORM_POWER       gamma x/|x|_p, |x|_p = (sum_c |x_c|^p)^(1/p), p learned
 *   CROSSNORM_LAYER       LayerNorm (Ba, Kiros and Hinton 2016) of each row
 *   CROSSNORM_GROUP       GroupNorm (Wu and He 2018): mean and variance of 8 channels of all rows
 *   CROSSNORM_INSTANCE    InstanceNorm (Ulyanov et al. 2016): of each channel over all rows
 *
 * The last three, x^ = (x - mean) / sqrt(variance + 1e-5), have a weight and a bias for each
 * channel, of Q and of C. A row of zeros has no length: there x/|x| and its derivatives are 0.
 * UFO-ViT's paper leaves open over what its LN, GN and IN were taken; this reading is ours, and
 * that of statement U05, which has no 1e-5, weights or biases. */
#ifndef EXPERIMENTS_TRAIN_CROSSNORM_H
#define EXPERIMENTS_TRAIN_CROSSNORM_H

#include <attnum/context.h>

#include "train/model.h"
#include "train/real.h"

#define crossnorm_size     R(crossnorm_size)
#define crossnorm_forward  R(crossnorm_forward)
#define crossnorm_backward R(crossnorm_backward)

/* Arrays of tokens have `stride` numbers from a row to the next. */
typedef struct {
    crossnorm_kind kind;
    int64_t tokens, dim, stride;
    const real *q, *k, *v;
    const real *parameters[CROSSNORM_PARAMETERS]; /* of this head; null: the kind has none */
} crossnorm_head;

/* The numbers of workspace that a call needs. */
int64_t crossnorm_size(int64_t tokens, int64_t dim);

/* y: n x d, `y_stride` from a row to the next. */
void crossnorm_forward(atn_context *context, const crossnorm_head *h, real *workspace, real *y,
                       int64_t y_stride);

/* dy and the gradients dq, dk, dv, which it overwrites: `y_stride` from a row to the next. Adds to
 * the gradients of the parameters, which are null where h->parameters are. */
void crossnorm_backward(atn_context *context, const crossnorm_head *h, real *workspace,
                        const real *dy, int64_t y_stride, real *dq, real *dk, real *dv,
                        real *const gradient[CROSSNORM_PARAMETERS]);

#endif
