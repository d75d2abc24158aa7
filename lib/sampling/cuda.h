/* SPDX-License-Identifier: BSD-3-Clause */
/* Landmarks on CUDA, forward and backward, for all heads of a call. All pointers in the structs are
 * to device memory. */
#ifndef SAMPLING_CUDA_H
#define SAMPLING_CUDA_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A call, laid out by cuda_sampling_layout. */
typedef struct {
    atn_sampling desc;
    int64_t n, d, m, heads; /* heads: of all entries of the batch */
    int64_t choice_count;
    int64_t *choices; /* per head: choice_count, what the sampling chose (sampling/plan.h) */
    int64_t doubles;  /* of work, per block */
    int64_t blocks;   /* the blocks that choose at a time */
    double *work;
    int *nonfinite; /* per head: the sampling depends on the tokens, and they are not finite */
    double
        *moments;  /* conv-code, per landmark: mean and 1 / deviation of the convolution's output */
    void *outputs; /* conv-code: the convolution's output, dense heads x m x d */
} cuda_sampling;

void cuda_sampling_layout(core_arena *arena, const atn_sampling *desc, atn_dtype dtype, int64_t n,
                          int64_t d, int64_t m, int64_t heads, cuda_sampling *sampling);

/* One table for each type of the arithmetic. The calls are enqueued, allocate nothing and do not
 * wait. Tensors that are not the caller's have that type. */
typedef struct {
    /* Landmarks, NaN where nonfinite. */
    atn_status (*sample)(atn_context *context, const cuda_sampling *sampling,
                         const atn_tensor *tokens, const atn_tensor *landmarks);
    /* Adds the tokens' gradients to grad. conv-code: replaces grad_landmarks, the landmarks'
     * gradients, by those of the convolution's output, and adds those of the norm's weight and bias
     * to norm_sums[0] and [1], d numbers per head, unless null. Call it after sample. */
    atn_status (*backward)(atn_context *context, const cuda_sampling *sampling,
                           const atn_tensor *grad_landmarks, const atn_tensor *grad,
                           void *const norm_sums[2]);
    /* The gradient of the convolution's weights, overwritten; grad_landmarks as backward left them.
     */
    atn_status (*weights_backward)(atn_context *context, const cuda_sampling *sampling,
                                   const atn_tensor *tokens, const atn_tensor *grad_landmarks,
                                   const atn_tensor *grad_weights);
} cuda_sampling_table;

extern const cuda_sampling_table cuda_sampling_f32, cuda_sampling_f64;

/* atn_sample, its arguments checked; waits. */
atn_status cuda_sample(atn_context *context, const atn_sampling *sampling, int64_t m,
                       const atn_tensor *tokens, const atn_tensor *landmarks);

#ifdef __cplusplus
}
#endif
#endif
