/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters and cost of one layer of a network, as functions of its sizes.
 *
 * Parameters are exact. Multiply-adds ("macs") are those of convolutions, linear maps and attention
 * operators for one image. As in the papers' "FLOPs", biases, norms, activations, residual
 * additions and interpolation are not counted, apart from those in attention operators. A
 * zero-padded border is counted like the rest. */
#ifndef EXPERIMENTS_NETWORKS_LAYERS_H
#define EXPERIMENTS_NETWORKS_LAYERS_H

#include <attnum/attnum.h>

typedef struct {
    int64_t parameters;
    double macs;
    double inverse_macs; /* the part of macs in the steps of an iterative inverse */
} layer_count;

layer_count layer_add(layer_count a, layer_count b);
layer_count layer_times(int64_t times, layer_count a);

/* k x k convolution from in to out channels in groups, to side x side pixels. */
layer_count layer_conv(int64_t in, int64_t out, int64_t kernel, int64_t groups, bool bias,
                       int64_t side);
/* Applied to each of `rows` tokens. */
layer_count layer_linear(int64_t in, int64_t out, bool bias, int64_t rows);
/* LayerNorm or BatchNorm: a weight and a bias of each channel. */
layer_count layer_norm(int64_t width);
/* Learned vectors that are added or appended. */
layer_count layer_embedding(int64_t rows, int64_t width);
/* Two linear maps with biases, width -> ratio * width -> width. */
layer_count layer_mlp(int64_t width, int64_t ratio, int64_t rows);

/* An operator of the registry between its projections. */
typedef struct {
    atn_operator op;
    const char *variant;
    int64_t tokens, key_tokens; /* K is Q for soft, softpp and gaussian */
    int64_t heads, dim;         /* dim of one head, of queries, keys and values */
    int64_t grid;               /* side of the tokens' grid, for landmarks and residual */
    bool sampled; /* always for soft and softpp; gaussian: SOFT with sp. 1x1, whose landmarks are
                     all tokens after a linear map */
    atn_sampling_kind sampling;
    int64_t stride;    /* for pool, conv, conv-code */
    int64_t landmarks; /* for sampling "first" and nystromformer; Linformer's r */
    int64_t residual;  /* side of the depthwise filter on V; 0: none */
} attention_layer;

/* Multiply-adds are half the flops of atn_attention_cost, of soft, softpp and gaussian those of the
 * published code's products (layers.c); parameters are those of the operator's formula: landmarks'
 * convolution and norm, residual filters, E, temperature, gamma. Returns an exit code; a failure
 * has been reported. */
int layer_attention(atn_context *context, const attention_layer *layer, layer_count *count);

#endif
