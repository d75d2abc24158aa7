/* SPDX-License-Identifier: BSD-3-Clause */
/* The samplings that depend on the tokens (kmeans, leverage, rpcholesky, greedy), from the
 * definitions in attnum/sampling.h: dense n x n matrices in long double. */
#ifndef REFERENCE_SAMPLING_H
#define REFERENCE_SAMPLING_H

#include <stdbool.h>

#include <attnum/sampling.h>

/* Whether the kind is one of them. */
bool ref_sampling_chooses(atn_sampling_kind kind);

/* The `count` tokens taken of n x d, in the order in which they are taken. assigned (n): the
 * centroid of each token after the last step of kmeans; untouched if there are no steps. The
 * sampling must be valid for atn_sampling_count, and tokens finite. ATN_OK or ATN_ERR_MEMORY. */
atn_status ref_choose(const atn_sampling *sampling, int64_t n, int64_t d, const double *tokens,
                      int64_t *taken, int64_t *assigned);

/* The landmarks, count x d. */
atn_status ref_chosen_landmarks(const atn_sampling *sampling, int64_t n, int64_t d,
                                const double *tokens, double *landmarks);

#endif
