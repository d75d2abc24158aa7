/* SPDX-License-Identifier: BSD-3-Clause */
/* A network applied to a few images, forward and backward, on one thread: the memory of all its
 * activations and its attentions' plans. */
#ifndef EXPERIMENTS_TRAIN_PASS_H
#define EXPERIMENTS_TRAIN_PASS_H

#include "train/model.h"
#include "train/real.h"

typedef struct pass pass; /* for its real type */

#define pass_create         R(pass_create)
#define pass_create_changed R(pass_create_changed)
#define pass_free           R(pass_free)
#define pass_forward        R(pass_forward)
#define pass_backward       R(pass_backward)
#define pass_tokens         R(pass_tokens)
#define pass_not_finite     R(pass_not_finite)

/* For `images` images at a time. data: the flat array of the model's parameters, read at every
 * call. context: one thread, CPU. All of them must outlive the pass. Returns an exit code; on
 * failure one line on stderr. */
int pass_create(const model *m, real *data, atn_context *context, int64_t images, pass **made);
/* The same with other attentions than the network's own: descs has one per block. Tokens are
 * rounded to a description's storage, and gaussian, which has no residual convolution, is given
 * that of its description. Forward only. */
int pass_create_changed(const model *m, real *data, const atn_attention_desc *descs,
                        atn_context *context, int64_t images, pass **made);
void pass_free(pass *p);

/* pixels: images x side x side; logits: images x classes. */
atn_status pass_forward(pass *p, const real *pixels, real *logits);

/* The input of a block's attention in the last forward, images x heads x tokens x d; part 0:
 * queries, 1: keys (without data where K = Q), 2: values. */
atn_tensor pass_tokens(const pass *p, int64_t block, int part);

/* After forward with the same pixels: the derivatives of a scalar by all parameters, from its
 * derivatives by the logits. Overwrites `gradient`, a flat array like the parameters (0 for fixed
 * ones). */
atn_status pass_backward(pass *p, const real *dlogits, real *gradient);

/* Where NaN or infinity first occurred in the last forward: "block 2: attention"; null: nowhere. */
const char *pass_not_finite(pass *p);

#endif
