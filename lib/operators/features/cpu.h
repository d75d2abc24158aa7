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
    real *phi;     /* rows x features */
    real *kept;    /* rows x kept: values that map keeps for map_backward */
    double *found; /* keys, backward: LINEAR_FOUND numbers of a part of them */
} R(token_block);
typedef R(token_block) token_block;

/* Numbers that a part of the keys may leave. */
enum { LINEAR_FOUND = 3 };

/* phi. `own` is passed to the operator's functions, which change nothing in it unless it is given
 * to them without const. prepare and prepared may be null, and so may add and finish. */
typedef struct {
    int64_t features, kept; /* M, and elements per token */
    linear_denominator denominator;
    double epsilon, start; /* of D; every component of z_0 */
    void *own;
    /* In linear_before alone, before any block is mapped: what keys first .. first + count - 1
     * leave in found, given to prepared in the order of the tokens; work holds HEAD_BLOCK x kept.
     * What is to be kept belongs in the head's state, after the first linear_state elements. */
    void (*prepare)(const void *own, int64_t first, int64_t count, real *work, double *found);
    void (*prepared)(void *own, const double *found);
    /* Fills phi and kept. */
    void (*map)(const void *own, const token_block *block);
    /* Given slopes = dL/dphi (rows x features, to be overwritten like kept), writes dL/dx to grad,
     * or adds it. Of keys it may add to block->found, which begins with zeros and is given to add,
     * part after part in the order of the tokens (causal: in reverse), before finish, which
     * searches the rows of dK that it changes (head_search_rows). */
    void (*map_backward)(const void *own, const token_block *block, real *slopes, bool add,
                         real *grad, int64_t grad_stride);
    void (*add)(void *own, const double *found);
    void (*finish)(void *own);
} R(feature_map);
typedef R(feature_map) feature_map;

/* Elements per thread, and of a head's state. */
int64_t R(linear_reals)(int64_t features, int64_t kept, const atn_attention_desc *desc,
                        const atn_attention_shape *shape);
int64_t R(linear_state)(int64_t features, const atn_attention_desc *desc,
                        const atn_attention_shape *shape);
void R(linear_before)(const head *h, const feature_map *map);
void R(linear_forward)(const head *h, const feature_map *map);
void R(linear_backward)(const head *h, const feature_map *map);

#endif
