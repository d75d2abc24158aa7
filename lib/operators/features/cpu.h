/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear attention with a feature map phi: what performer, rff, elu and cosformer share. With M
 * features,
 *
 *   Y_i = phi(q_i)^T S / D_i,   S = sum_j phi(k_j) v_j^T,   D_i from phi(q_i).z,
 *   z = z_0 + sum_j phi(k_j),
 *
 * sums over all keys or, causal, over those at positions up to query i's (Katharopoulos et al.
 * 2020). An operator supplies phi and its derivative for a block of tokens. Memory is the state (S,
 * z), its gradient and a few blocks of tokens; causal backward keeps two numbers per query. */
#ifndef FEATURES_CPU_H
#define FEATURES_CPU_H

#include "cpu/heads.h"
#include "operators/features/plan.h"

/* Tokens first .. first + rows - 1 of the queries or keys that are not padding. */
typedef struct {
    bool keys;
    int64_t first, rows;
    const real *x;
    int64_t stride;
    real *phi;  /* rows x features */
    real *kept; /* rows x kept: values that map keeps for map_backward */
} R(token_block);
typedef R(token_block) token_block;

/* phi. `own` is passed to the operator's functions; prepare and finish may be null. */
typedef struct {
    int64_t features, kept; /* M, and elements per token */
    linear_denominator denominator;
    double epsilon, start; /* of D; every component of z_0 */
    void *own;
    /* In linear_before alone; work holds HEAD_BLOCK x kept. What it finds stays in the head's
     * state, after the first linear_state elements. */
    void (*prepare)(void *own, real *work);
    /* Fills phi and kept. */
    void (*map)(const void *own, const token_block *block);
    /* Given slopes = dL/dphi (rows x features, to be overwritten like kept), writes dL/dx to grad,
     * or adds it. For queries it changes nothing in `own`, nor for keys unless `finish` is given,
     * which is called after the last of them. */
    void (*map_backward)(void *own, const token_block *block, real *slopes, bool add, real *grad,
                         int64_t grad_stride);
    void (*finish)(void *own);
} R(feature_map);
typedef R(feature_map) feature_map;

/* Elements per thread, and of a head's state. */
int64_t R(linear_reals)(int64_t features, int64_t kept, const atn_attention_desc *desc,
                        const atn_attention_shape *shape);
int64_t R(linear_state)(int64_t features, const atn_attention_desc *desc, int64_t dv);
void R(linear_before)(const head *h, const feature_map *map);
void R(linear_forward)(const head *h, const feature_map *map);
void R(linear_backward)(const head *h, const feature_map *map);

#endif
