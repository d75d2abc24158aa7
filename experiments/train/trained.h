/* SPDX-License-Identifier: BSD-3-Clause */
/* What the heads of a trained network see: the input `trained`. */
#ifndef EXPERIMENTS_TRAIN_TRAINED_H
#define EXPERIMENTS_TRAIN_TRAINED_H

#include <attnum/attnum.h>

#include "common/inputs.h"

typedef struct trained trained;

#define TRAINED_USUAL "sima" /* one that is shipped */

/* text: "[WEIGHTS][/blockB][/queries|keys|values]". WEIGHTS is a file of weights, which ends in
 * ".npz", or the name of one in data/trained without it, "soft-code-seed2", or an operator, whose
 * first seed it means; by default TRAINED_USUAL. B counts from 0; by default the last block;
 * queries by default. Reads the weights and the pictures. Returns an exit code; on failure one line
 * on stderr. To be freed in any case. */
int trained_open(const char *text, trained **t);
void trained_free(trained *t);

/* SHA-256 (hex) of the file of weights and the pictures. */
const char *trained_sha256(const trained *t);

/* The side of the grid of tokens that it was trained on. */
int64_t trained_side(const trained *t);

/* One head of a block, for one picture of the test set: sample s is head s mod heads of picture
 * (first + s / heads) mod pictures, `first` drawn from the seed. The grid is that of the network's
 * own images or a multiple of it, for which pixels are repeated and the learned positions
 * interpolated bilinearly; strides of landmarks stay as they were trained. All in f64. */
typedef struct {
    int64_t picture, head;
    int64_t side;            /* of the picture, in pixels */
    float *pixels;           /* side x side, as fashion_image gives them */
    double *q, *k, *v;       /* height width x TOKEN_DIM; k null: K = Q */
    atn_attention_desc desc; /* of this head alone, without the others, which softpp/code's start
                                depends on; its tensors point into `parameters` */
    double *parameters;      /* of the network */
} trained_head;

/* Returns an exit code; on failure one line on stderr. To be freed in any case. Thread-safe. */
int trained_head_open(const trained *t, int64_t block, const input_draw *draw, trained_head *h);
void trained_head_free(trained_head *h);

/* Q, K or V of such a head of the block that was named, rounded to f32, so that processors agree on
 * the numbers. Returns an exit code; on failure one line on stderr. Thread-safe. */
int trained_tokens(const trained *t, const input_draw *draw, double *tokens);

/* Of its operator's variant: ATN_IS_LINEAR, ... */
unsigned trained_properties(const trained *t);
/* Blocks and heads of the network. */
int64_t trained_depth(const trained *t);
int64_t trained_heads(const trained *t);

#endif
