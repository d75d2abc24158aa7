/* SPDX-License-Identifier: BSD-3-Clause */
/* The two passes of SOFT and SOFT++ over the tokens (operators/soft/plan.c, operators/soft/cuda.cu)
 * on tensor cores, in bf16, f16 and tf32: a tile of K(Q, L) exists only in registers.
 *
 *   U = K(L, Q) V     one sum per chunk of tokens           reads Q, V
 *   Y = K(Q, L) W     W = A+ U, or D^-1/2 A+ D^-1/2 U       reads Q, writes Y
 *
 * Rounded to the type are landmarks, kernel values and W, as factors of products. Products of such
 * factors are exact in f32 or nearly so; sums, norms, distances and exponents are f32. Distances
 * are |x|^2 + |l|^2 - 2 x.l, with norms of the rounded x and l, too, so that the rounding of x and
 * l does not disturb the cancellation: the relative error of the kernel from it is a few (d + 4)
 * 2^-24 s (|x|^2 + |l|^2), whatever the type. That is `expanded`, and with distances below 0 taken
 * as 0 `clamped`; `direct` promises no cancellation and cannot be computed in this way. f16: W is
 * scaled by a power of two for the product, so that no A+ is too large for it. */
#ifndef SOFT_CUDA_FUSED_H
#define SOFT_CUDA_FUSED_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most landmarks, channels and value channels. */
enum { SOFT_FUSED_MOST = 64 };

typedef struct {
    double s;   /* of the kernel */
    bool clamp; /* distances below 0 are 0 */
    int64_t m;
    const float *landmarks; /* m x d; they are rounded to the dtype here, so A must be formed from
                               rounded landmarks to match K(L, Q) */
    const float *weights;   /* W, m x d_v */
    float *partials;        /* per chunk: U, m x d_v */
    int64_t head_stride;    /* between the landmarks or W of consecutive heads */
    int64_t partial_stride; /* between the U of consecutive chunks */
    int64_t chunk, chunks;  /* tokens of a chunk (a multiple of 64), chunks of a head */
    int *nonfinite;         /* per head of the batch: set to 1 if an input or output is not
                               finite */
} soft_fused;

/* Whether a plan can use these passes on a device whose blocks can have `shared` bytes of shared
 * memory; if not, *reason (unless null) says what prevents it, e.g. "distance direct". The inverse
 * in factor form cannot: its rows K L^-T are bounded, but L^-T is not, and would magnify the
 * rounding of K. */
bool soft_fused_fits(const atn_attention_desc *desc, const atn_attention_shape *shape, int64_t m,
                     size_t shared, const char **reason);

/* Whether a call's view can be read and written 16 bytes at a time: its address and its strides are
 * multiples of 16 bytes. */
bool soft_fused_aligned(const atn_tensor *t);

/* Cuts heads into chunks: enough to fill a device, few enough that their sums are small compared
 * with the tokens. They depend on the shape alone. */
void soft_fused_chunks(const atn_attention_shape *shape, int64_t *chunk, int64_t *chunks);

/* Compute the chunks' U, and the output. */
atn_status soft_fused_sum(atn_context *context, const soft_fused *fused, const atn_tensor *q,
                          const atn_tensor *v);
atn_status soft_fused_write(atn_context *context, const soft_fused *fused, const atn_tensor *q,
                            const atn_tensor *y);

/* Sets all outputs of flagged heads to NaN. */
atn_status soft_fused_finish(atn_context *context, const soft_fused *fused, const atn_tensor *y);

#ifdef __cplusplus
}
#endif
#endif
