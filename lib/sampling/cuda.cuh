/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the samplings, for one `real`. */
#ifndef SAMPLING_CUDA_CUH
#define SAMPLING_CUDA_CUH

#include "cuda/heads.cuh"
#include "sampling/cuda.h"

/* The samplings that depend on the tokens (sampling/cuda_choice.cu), and backward
 * (sampling/cuda_backward.cu). */
extern "C" {
atn_status R(cuda_choose)(atn_context *context, const cuda_sampling *sampling,
                          const atn_tensor *tokens, const atn_tensor *landmarks);
atn_status R(cuda_sample_backward)(atn_context *context, const cuda_sampling *sampling,
                                   const atn_tensor *grad_landmarks, const atn_tensor *grad,
                                   void *const norm_sums[2]);
atn_status R(cuda_conv_backward)(atn_context *context, const cuda_sampling *sampling,
                                 const atn_tensor *tokens, const atn_tensor *grad_landmarks,
                                 const atn_tensor *grad_weights);
}

/* This warp's share of `count` items, when blocks_for(32 * count) were launched. */
#define WARP_EACH(i, count)                                                                        \
    for (int64_t i = ((int64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x) / 32,                     \
                 i##_count = (count);                                                              \
         i < i##_count; i += (int64_t)gridDim.x * BLOCK_WARPS)

/* ---- The grid ---- */

/* The first token of landmark l's window. */
static __device__ __forceinline__ int64_t grid_corner(const atn_sampling &s, int64_t l)
{
    int64_t across = s.width / s.stride;
    return l / across * s.stride * s.width + l % across * s.stride;
}

/* The token in a cell of landmark l's window. */
static __device__ __forceinline__ int64_t grid_token(const atn_sampling &s, int64_t l, int64_t cell)
{
    return grid_corner(s, l) + cell / s.stride * s.width + cell % s.stride;
}

/* x times the norm's weight plus its bias. */
static __device__ __forceinline__ double norm_affine(const atn_sampling &s, int64_t c, double x)
{
    const atn_tensor &w = s.norm_weight, &b = s.norm_bias;
    return x * (w.data ? (double)real_load(w.data, w.dtype, c) : 1) +
           (b.data ? (double)real_load(b.data, b.dtype, c) : 0);
}

/* ---- Products of a convolution, a matrix of m x cols per head cut into tiles ---- */

enum { CONV_TILE = 32 };

typedef struct {
    int64_t index, count, piece, landmark, column, rows, cols;
} conv_place;

static __host__ __device__ __forceinline__ int64_t conv_tiles(int64_t size)
{
    return (size + CONV_TILE - 1) / CONV_TILE;
}

static __device__ __forceinline__ void conv_find(const cuda_sampling &s, int64_t cols,
                                                 conv_place *p)
{
    int64_t across = conv_tiles(cols), down = conv_tiles(s.m);
    p->count = s.heads * down * across;
    p->piece = p->index / (down * across);
    p->landmark = p->index / across % down * CONV_TILE;
    p->column = p->index % across * CONV_TILE;
    p->rows = head_smaller(CONV_TILE, s.m - p->landmark);
    p->cols = head_smaller(CONV_TILE, cols - p->column);
}

/* The tiles that this block computes, one after the other. */
static __device__ __forceinline__ conv_place conv_first(const cuda_sampling &s, int64_t cols)
{
    conv_place p;
    p.index = blockIdx.x;
    conv_find(s, cols, &p);
    return p;
}

static __device__ __forceinline__ void conv_next(const cuda_sampling &s, int64_t cols,
                                                 conv_place *p)
{
    p->index += gridDim.x;
    conv_find(s, cols, p);
}

static inline dim3 conv_blocks(const cuda_sampling *s, int64_t cols)
{
    return dim3((unsigned)head_smaller(s->heads * conv_tiles(s->m) * conv_tiles(cols), 1 << 20));
}

/* The convolution's outputs; entries of the batch as in `like`. */
static inline atn_tensor conv_outputs(const cuda_sampling *s, const atn_tensor *like)
{
    return atn_tensor_dense(s->outputs, sizeof(real) == sizeof(double) ? ATN_F64 : ATN_F32,
                            like->batch, like->heads, s->m, s->d);
}

#endif
