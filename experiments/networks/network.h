/* SPDX-License-Identifier: BSD-3-Clause */
/* A network as a table of stages, and its parameters and multiply-adds, layer by layer. */
#ifndef EXPERIMENTS_NETWORKS_NETWORK_H
#define EXPERIMENTS_NETWORKS_NETWORK_H

#include "networks/layers.h"

enum { MLP_RATIO = 4, CLASSES = 1000, RESOLUTION = 224, MOST_STAGES = 4, MOST_PARTS = 64 };

/* ---- Configurations ---- */

/* Convolutions that turn an image or the last stage's tokens into tokens. A step's output is
 * `width` channels, or a fraction 1/part of the stage's dim, and its input's side / stride. */
typedef struct {
    int kernel, stride, width, part;
} embedding_step;

typedef struct {
    const embedding_step *steps;
    int count;
    bool bias, norm; /* each step's */
} embedding;

typedef enum {
    LOCAL_NONE,
    LOCAL_DEPTHWISE, /* a depthwise convolution with bias */
    LOCAL_LPI,       /* XCiT's local patch interaction: two of them, BatchNorm between */
    LOCAL_KINDS
} local_kind;

/* What a block has in addition to projections, attention and MLP. */
typedef struct {
    int norms;   /* LayerNorms */
    int vectors; /* learned vectors of the stage's dim: LayerScale, affine layers */
    local_kind local;
    int local_kernel;
    int projection_kernel; /* depthwise convolution and BatchNorm before Q, K and V; 0: none */
    int key_stride;        /* stride of those of K and V */
} block_form;

typedef struct {
    atn_operator op;
    const char *variant;
} attention_name;

typedef struct {
    const embedding *embed;
    const block_form *block;
    int depth, dim, heads;
    int width; /* of queries, keys and values, all heads; 0: dim */
    attention_name attention;
    int stride;       /* SOFT's landmarks: side of a window; 0: none */
    int residual;     /* side of the published code's filter on V; 0: none */
    int reduction;    /* PVT: kernel and stride of a convolution, with a LayerNorm, before K and V;
                         0: none */
    int mlp_ratio;    /* 0: MLP_RATIO */
    bool class_token; /* appended to this stage's tokens */
    bool positions;   /* a learned vector for each token */
} network_stage;

typedef struct {
    network_stage stages[MOST_STAGES];
    int stage_count;
    int fourier;      /* sines and cosines from which a linear map computes positions; 0: none */
    int class_layers; /* class attention layers after the last stage */
    attention_name class_attention;
    const block_form *class_block;
    const char *assumption; /* what none of the four papers states; "" if they state everything */
} network;

/* The changes of a table's row to a network; 0: none. */
typedef struct {
    attention_name
        attention; /* with a variant: replaces the first stage's operator wherever it is used */
    attention_name class_attention;
    bool resampled; /* SOFT: use `sampling` */
    atn_sampling_kind sampling;
    int landmarks;  /* of sampling "first", of Linformer and Nystromformer; 0: 49 */
    int heads;      /* of every stage */
    int resolution; /* 0: 224 */
} change;

/* ---- Counts ---- */

typedef struct {
    int stage; /* from 1; class attention and classifier: one more than there are stages */
    const char *part;
    layer_count count;
} part_count;

typedef struct {
    part_count parts[MOST_PARTS];
    int count;
} network_count;

/* Counts one image. Returns an exit code; a failure has been reported. */
int network_counts(atn_context *context, const network *n, const change *c, network_count *count);

/* The numbers of queries and keys that the attention of a stage (from 0) has in an image with
 * `resolution` pixels a side, class token included. */
void network_stage_tokens(const network *n, int stage, int resolution, int64_t *tokens,
                          int64_t *keys);

layer_count network_total(const network_count *count);

#endif
