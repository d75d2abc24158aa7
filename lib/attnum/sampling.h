/* SPDX-License-Identifier: BSD-3-Clause */
/* Sampling: how landmarks L (m x d) come from tokens Q (n x d), SOFT (IJCV) section 3.2.
 *
 * Grids are row-major: token y * width + x stands at row y, column x. */
#ifndef ATTNUM_SAMPLING_H
#define ATTNUM_SAMPLING_H

#include <attnum/context.h>
#include <attnum/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(code, name, description) */
#define ATN_SAMPLING_LIST(X)                                                                       \
    X(ATN_SAMPLING_POOL, "pool",                                                                   \
      "average of k x k windows, stride k, on an H x W grid; rows and columns left over are "      \
      "dropped: m = floor(H/k) floor(W/k)")                                                        \
    X(ATN_SAMPLING_WINDOW, "window",                                                               \
      "average of k consecutive tokens; the last window holds the remainder: m = ceil(n/k)")       \
    X(ATN_SAMPLING_CONV, "conv",                                                                   \
      "k x k convolution, stride k, no bias, one filter bank shared by all heads (SOFT papers)")   \
    X(ATN_SAMPLING_CONV_CODE, "conv-code",                                                         \
      "conv, then LayerNorm over d (eps 1e-5, affine), then exact GELU (published SOFT code)")     \
    X(ATN_SAMPLING_INDICES, "indices", "the tokens the caller names (random sampling)")            \
    X(ATN_SAMPLING_FIRST, "first", "the first m tokens (\"biased\" sampling, SOFT Tab. 10)")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_SAMPLING_LIST(ATN_NAMED_ENTRY) ATN_SAMPLING_COUNT } atn_sampling_kind;
#undef ATN_NAMED_ENTRY

const char *atn_sampling_name(atn_sampling_kind kind); /* null if out of range */

/* Fields a kind does not name are ignored. Weights have the dtype of the tokens. */
typedef struct {
    atn_sampling_kind kind;
    int64_t height, width;  /* pool, conv, conv-code: the grid, height * width = n */
    int64_t stride;         /* pool, window, conv, conv-code: k */
    int64_t count;          /* indices, first: m */
    const int64_t *indices; /* indices: m numbers in 0..n-1, the same for every head */
    atn_tensor
        weights; /* conv, conv-code: 1 x d x d x (k k), dense: out channel, in channel, window */
    atn_tensor norm_weight; /* conv-code: 1 x 1 x 1 x d; null data: ones */
    atn_tensor norm_bias;   /* conv-code: 1 x 1 x 1 x d; null data: zeros */
} atn_sampling;

/* m for n tokens of width d. Returns ATN_ERR_SHAPE (grid does not hold n tokens, stride larger than
 * the grid, count > n), ATN_ERR_VALUE (index outside 0..n-1, unknown kind, sizes < 1),
 * ATN_ERR_NULL. Detail in the context. */
atn_status atn_sampling_count(atn_context *context, const atn_sampling *sampling, int64_t tokens,
                              int64_t dim, int64_t *count);

/* L from Q.
 *
 *   tokens     b x h x n x d
 *   landmarks  b x h x m x d, out; must not overlap tokens
 *
 * Cost per head: n d additions (pool, window), 2 m k^2 d^2 flops (conv), a copy (indices, first).
 * Sums run in the dtype, in a fixed order. */
atn_status atn_sample(atn_context *context, const atn_sampling *sampling, const atn_tensor *tokens,
                      atn_tensor *landmarks);

#ifdef __cplusplus
}
#endif
#endif
