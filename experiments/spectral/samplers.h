/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways to take landmarks from tokens, with the random numbers that they need. */
#ifndef EXPERIMENTS_SPECTRAL_SAMPLERS_H
#define EXPERIMENTS_SPECTRAL_SAMPLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/landmarks.h"

typedef struct {
    const char *name;
    atn_sampling_kind kind;
    int64_t steps;
    bool random;  /* another draw gives other landmarks */
    bool subset;  /* landmarks are tokens */
    bool on_grid; /* needs a grid */
} sampler;

enum { SAMPLERS = 9 };
extern const sampler samplers[SAMPLERS];

/* The tokens of one head. seed, sample and the sampler's name key its random numbers. */
typedef struct {
    const char *name; /* of the input, for errors */
    const token_grid *grid;
    int64_t n, dim;
    double *tokens; /* n x dim */
    double scale;   /* of the kernel */
    uint64_t seed;
    int64_t sample;
} sampler_source;

/* m landmarks (m x dim) by one draw of the sampler. pool and conv give as many as the grid's stride
 * does, which must be m; on a grid of windows, pool averages the windows. Returns an exit code. */
int sampler_take(const sampler *with, const sampler_source *from, int64_t m, int64_t draw,
                 atn_context *context, double *landmarks);

#endif
