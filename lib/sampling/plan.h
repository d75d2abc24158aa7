/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAMPLING_PLAN_H
#define SAMPLING_PLAN_H

#include "core/internal.h"

/* atn_sampling_count, and checks the weights for dtype and dim. */
atn_status core_check_sampling(atn_context *context, const atn_sampling *sampling, atn_dtype dtype,
                               int64_t tokens, int64_t dim, int64_t *count);

/* Whether the landmarks chosen depend on the tokens. */
bool core_sampling_chooses(atn_sampling_kind kind);

/* A convolution's windows that are copied at a time on the CPU, to read the weights only once for
 * all of them. */
enum { SAMPLE_WINDOWS = 8 };

/* The number of uniforms that a sampling takes; INT64_MAX if that overflows. */
int64_t core_sampling_uniforms(const atn_sampling *sampling);

/* The number of int64_t's that record a sampling's choice for one head: the tokens taken; for
 * kmeans with steps also the number of tokens of each centroid and the centroid of each token. 0
 * for the other samplings. */
int64_t core_sampling_choices(const atn_sampling *sampling, int64_t tokens);

#endif
