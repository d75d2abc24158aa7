/* SPDX-License-Identifier: BSD-3-Clause */
/* A small vision transformer and its parameters, by name and offset. One block, with any operator:
 *
 *   norms before attention and MLP:
 *     x <- x + s1 (attention(LN(x)) W_o^T + b_o),   x <- x + s2 MLP(LN(x))
 *   norms after them, as in SOFT's published code:
 *     x <- LN(x + attention(x) W_o^T + b_o),        x <- LN(x + MLP(x))
 *
 * s1, s2: LayerScale (Touvron et al. 2021), as in SimA's published code; else 1. The MLP is linear,
 * GELU, linear. Queries, keys and values are one linear layer of the block's input; operators with
 * K = Q (soft, softpp, gaussian and lsh) have no keys in it. Around the blocks: patches embedded by
 * a linear layer plus a learned position, a last LayerNorm, the mean over the tokens, and a linear
 * classifier. A change (train/changes.h) replaces a part of this. */
#ifndef EXPERIMENTS_TRAIN_MODEL_H
#define EXPERIMENTS_TRAIN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <attnum/attnum.h>

#include "train/changes.h"

typedef struct {
    const atn_operator_info *attention;
    int variant;
    int64_t side;  /* of an image, in pixels */
    int64_t patch; /* side of a patch; divides the image's */
    int64_t width, heads, depth, hidden, classes;
    int64_t landmarks; /* m, a square, whose root divides the grid where there are landmarks */
    int64_t residual;  /* side of SOFT's residual convolution; 0: 3, 5, 9 for grids of 14, 28, 56,
                          as in its published code */
    const change *change; /* with which it is trained */
    uint64_t seed;        /* of landmarks that the change draws; at most MODEL_SEED_MOST */
} model_shape;

#define MODEL_SEED_MOST (UINT64_C(1) << 53) /* up to which JSON's numbers are exact */

/* 28 x 28 pixels, patches of 2, width 64, 2 heads, depth 4, 128 hidden, 10 classes, m = 49, with
 * the operator and variant that a name such as "soft/code" gives, or the operator's first variant
 * where it gives none. False if there is no such operator or variant. */
bool model_defaults(const char *name, model_shape *shape);

/* Makes it the shape of a network that is trained with the change. False if the change is not one
 * of the shape's operator and variant, or not for training. */
bool model_change(model_shape *shape, const change *c);

/* The operators trained by default, ended by null, in their published variants. Where the published
 * variant couples the images of a batch, a variant that does not is taken, so that a slice of the
 * batch gives the same results as the batch. */
extern const char *const model_usual[];

/* "soft/code", and with a change "soft/code pool". To be freed. */
char *model_name(const model_shape *shape);

/* "soft-code-pool-seed1.npz", the file of weights; without a change "soft-code-seed1.npz". To be
 * freed. */
char *model_weights_name(const model_shape *shape, uint64_t seed);

/* The same network for images of side x side pixels, with unchanged strides and windows: a
 * convolution that samples landmarks gives as many more as there are more tokens. */
model_shape model_resized(const model_shape *shape, int64_t side);
/* Sides of the grids to which it can be resized are multiples of this; 0: to none, as it has a
 * matrix or landmarks for the tokens of its own grid (Linformer's E, drawn landmarks). */
int64_t model_grid_step(const model_shape *shape);

/* False: K = Q. */
bool model_has_keys(const model_shape *shape);
/* Whether the operator has the parameter and a gradient of it. */
bool model_has_parameter(const model_shape *shape, atn_parameter parameter);

enum { PARAMETER_NAME_SIZE = 48, PARAMETER_DIMENSIONS = 4 };

typedef struct {
    char name[PARAMETER_NAME_SIZE]; /* "blocks.0.attention.conv", as in the file of weights */
    int dimensions;
    int64_t shape[PARAMETER_DIMENSIONS];
    int64_t offset, count; /* in the flat array of all parameters */
    double start, spread;  /* initially start + spread z, z normal and redrawn if beyond 2 */
    bool waves;            /* initially sines and cosines of the token's row and column */
    bool decays;           /* by weight decay, as matrices do; not vectors, nor the position */
    bool fixed;            /* drawn once, never trained: random features, rotations */
} model_parameter;

/* The offsets of a block's parameters in the flat array; -1: it has no such parameter. */
typedef struct {
    int64_t norm1_weight, norm1_bias, input_weight, input_bias, output_weight, output_bias, scale1;
    int64_t norm2_weight, norm2_bias, hidden_weight, hidden_bias, mlp_weight, mlp_bias, scale2;
    int64_t attention[ATN_PARAMETER_COUNT];  /* the operator's parameters that have a gradient */
    int64_t crossnorm[CROSSNORM_PARAMETERS]; /* of the change's norm instead of XNorm */
    int64_t drawn;                           /* random features or rotations */
    const int64_t *landmarks;                /* the tokens that are landmarks, if those are drawn */
} model_block;

typedef struct {
    model_shape shape;
    int64_t grid, tokens;    /* grid x grid tokens */
    int64_t inputs;          /* parts of a block's linear layer: queries, (keys,) values */
    bool norm_after, scaled; /* see the block above; scaled: with LayerScale */
    int64_t patch_weight, patch_bias, position, norm_weight, norm_bias, head_weight, head_bias;
    model_block *blocks;
    int64_t *landmarks; /* of all blocks */
    model_parameter *parameters;
    int64_t parameter_count;
    int64_t size; /* of the flat array */
} model;

/* Checks the shape and makes the table. Returns an exit code; EXIT_USAGE: one line on stderr says
 * what does not fit. To be freed in any case. */
int model_create(const model_shape *shape, model *m);
void model_free(model *m);

/* The initial values for a seed. They are the same for every operator where a parameter has the
 * same name and shape. */
void model_initialise(const model *m, uint64_t seed, double *values);

/* The description of a block's attention, unless that has another norm (train/crossnorm.h). data:
 * the flat array, in the dtype; the description's tensors point into it. */
atn_attention_desc model_attention(const model *m, int64_t block, atn_dtype dtype, void *data);

#endif
