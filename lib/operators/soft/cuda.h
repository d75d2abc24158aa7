/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ on CUDA, as the rest of the library calls them. */
#ifndef SOFT_CUDA_H
#define SOFT_CUDA_H

#include "cuda/heads.h"
#include "inverse/cuda.h"
#include "operators/soft/cuda_chain.h"
#include "sampling/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arguments of passes besides a head (heads.cuh). All in device memory: m x m matrices and
 * related arrays, per head of the batch. */
typedef struct {
    int64_t m;
    bool normalise;  /* SOFT++ */
    bool factored;   /* x holds the factor L (inverse/cuda.h) */
    int64_t columns; /* of K(Q, L) that a block computes at a time */
    void *a, *x;
    void *grad_x, *grad_a; /* backward */
    const int *pivots;     /* m each */
    const atn_inverse_info *infos;
    int *nonfinite; /* the plan's */
} soft_matrices;

/* A planned SOFT or SOFT++: passes over heads, and between them steps for all heads at once. A
 * head's state holds, in the type of the arithmetic, landmarks and their gradient (m x d each),
 * pivoted (the landmarks in the order of the factor's pivots, m x d), D^1/2 (m), and U, T = P dY
 * and X times those (m x value_dim each); a chunk's partial sums are U, T, the landmarks' gradients
 * and the residual filter's. */
typedef struct {
    cuda_heads heads;
    cuda_sampling sampling;
    cuda_inverse inverse;
    cuda_inverse_adjoint adjoint;
    soft_matrices matrices;
    bool fused;   /* the forward passes may run as in cuda_fused.h, if the views allow it */
    bool chained; /* they run as in cuda_chain.h */
    soft_chain chain;
    bool backward; /* whether there is memory for it */
} cuda_soft;

extern const operator_family cuda_soft_family;

#ifdef __cplusplus
}
#endif
#endif
