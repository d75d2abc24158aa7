/* SPDX-License-Identifier: BSD-3-Clause */
/* How an experiment takes landmarks from the tokens of one head (--sampling): by pooling, or by the
 * operator of the published SOFT code. The latter divides tokens by d^(1/4); its landmarks are
 * GELU(LayerNorm(convolution)) of these, with windows of the stride and no bias, and the kernel is
 * exp(-|x - y|^2/2). Landmarks are in another space than tokens, and are not divided. The
 * convolution's weights are random, as PyTorch initialises them, and LayerNorm's are ones and
 * zeros. The scale of the convolution does not matter, because LayerNorm removes it. Only the input
 * `trained` has trained weights, and landmarks of its own. */
#ifndef EXPERIMENTS_SAMPLING_H
#define EXPERIMENTS_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include <attnum/attnum.h>

/* X(code, name, description) */
#define SAMPLING_LIST(X)                                                                           \
    X(SAMPLING_POOL, "pool", "averages of the grid's windows")                                     \
    X(SAMPLING_PUBLISHED, "published",                                                             \
      "GELU(LayerNorm(convolution)) of tokens/d^(1/4), kernel exp(-|x - y|^2/2), as in the "       \
      "published SOFT code; random weights U(-b, b), b = 1/sqrt(d k^2)")                           \
    X(SAMPLING_PUBLISHED_CENTRED, "published-centred", "the same of tokens less their mean")       \
    X(SAMPLING_TRAINED, "trained",                                                                 \
      "of an input such as trained:soft: the landmarks that its network takes of these tokens; "   \
      "kernel as for pool")

#define SAMPLING_ENTRY(code, name, description) code,
typedef enum { SAMPLING_LIST(SAMPLING_ENTRY) SAMPLING_COUNT } sampling_kind;
#undef SAMPLING_ENTRY

const char *sampling_name(sampling_kind kind);

struct input; /* see inputs.h, which everything that has options would otherwise include */

/* The samplings of an input whose tokens, of width dim, are pooled by `windows` (ATN_SAMPLING_POOL,
 * or _WINDOW where there is no grid): the `count` samplings that were given or, if none were,
 * pooling and, with `all`, every other possible one. Returns their number; 0, after a message, if
 * one that was given is not possible. */
int sampling_choose(int count, const sampling_kind *given, bool all, const struct input *in,
                    const atn_sampling *windows, int64_t dim, sampling_kind chosen[SAMPLING_COUNT]);

/* Prepares tokens, n x dim, in place for the sampling and the kernel: they are centred, and scaled
 * if the kernel has another scale than s. */
void sampling_prepare(sampling_kind kind, int64_t n, int64_t dim, double s, double *tokens);
/* The kernel's scale between such tokens, and between their landmarks. */
double sampling_kernel_scale(sampling_kind kind, double s);

/* Landmarks of an input's prepared tokens, both 1 x 1 x rows x dim, in their dtype; seed and sample
 * key the random weights. Returns an exit code. */
int sampling_take(sampling_kind kind, atn_context *context, const struct input *in,
                  const atn_sampling *windows, uint64_t seed, int64_t sample,
                  const atn_tensor *tokens, atn_tensor *landmarks);

#endif
