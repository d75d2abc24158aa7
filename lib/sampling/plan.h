/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAMPLING_PLAN_H
#define SAMPLING_PLAN_H

#include "core/internal.h"

/* atn_sampling_count, plus the weights against dtype and dim. */
atn_status core_check_sampling(atn_context *context, const atn_sampling *sampling, atn_dtype dtype,
                               int64_t tokens, int64_t dim, int64_t *count);

/* Whether the kind looks at the tokens. */
bool core_sampling_chooses(atn_sampling_kind kind);

/* A convolution's windows that are laid out at a time on the CPU: its weights are read once for
 * them. */
enum { SAMPLE_WINDOWS = 8 };

/* How many random numbers it takes; INT64_MAX if that overflows. */
int64_t core_sampling_uniforms(const atn_sampling *sampling);

/* int64_t's that keep what a sampling chooses of one head's n tokens: the tokens taken; kmeans with
 * steps: also how many tokens each centroid has, and which centroid each token has. 0: nothing. */
int64_t core_sampling_choices(const atn_sampling *sampling, int64_t tokens);

#endif
