/* SPDX-License-Identifier: BSD-3-Clause */
#include "spectral/samplers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/random.h"
#include "common/report.h"
#include "common/staging.h"

enum { LLOYD_STEPS = 10 };

const sampler samplers[SAMPLERS] = {
    {"pool", ATN_SAMPLING_POOL, 0, false, false, false},
    {"conv", ATN_SAMPLING_CONV, 0, true, false, true},
    {"random", ATN_SAMPLING_INDICES, 0, true, true, false},
    {"first", ATN_SAMPLING_FIRST, 0, false, true, false},
    {"kmeans++", ATN_SAMPLING_KMEANS, 0, true, true, false},
    {"kmeans", ATN_SAMPLING_KMEANS, LLOYD_STEPS, true, false, false},
    {"leverage", ATN_SAMPLING_LEVERAGE, 0, true, true, false},
    {"rpcholesky", ATN_SAMPLING_RPCHOLESKY, 0, true, true, false},
    {"greedy", ATN_SAMPLING_GREEDY, 0, false, true, false},
};

/* Opens a stream with a key that no other purpose, sampler or draw has. */
static random_stream *open_stream(const sampler_source *from, const char *purpose, int64_t draw)
{
    char *name = must_format("sampling %s %" PRId64, purpose, draw);
    random_stream *r = random_create(from->seed, name, (uint64_t)from->sample);
    free(name);
    return r;
}

/* Draws the random numbers that a sampling needs: m of n indices without replacement, uniforms, or
 * weights. The result is to be freed. */
static void *draw_numbers(const sampler_source *from, const sampler *with, int64_t draw,
                          atn_sampling *sampling)
{
    int64_t n = from->n, m = sampling->count, d = from->dim;
    int64_t cells = sampling->stride * sampling->stride;
    random_stream *r = open_stream(from, with->name, draw);
    int64_t *indices = must_allocate((size_t)n, sizeof *indices);
    double *numbers =
        must_allocate((size_t)(with->on_grid ? d * d * cells : 2 * m), sizeof *numbers);
    for (int64_t i = 0; i < n; i++)
        indices[i] = i;
    for (int64_t i = 0; i < m; i++) {
        int64_t other = i + random_below(r, n - i), kept = indices[i];
        indices[i] = indices[other];
        indices[other] = kept;
    }
    for (int64_t i = 0; i < (with->on_grid ? d * d * cells : 2 * m); i++)
        numbers[i] =
            with->on_grid ? random_normal(r) / sqrt((double)(d * cells)) : random_uniform(r);
    random_free(r);
    if (with->kind == ATN_SAMPLING_INDICES) {
        free(numbers);
        sampling->indices = indices;
        return indices;
    }
    free(indices);
    sampling->uniforms = numbers;
    sampling->uniform_count = 2 * m;
    if (with->on_grid)
        sampling->weights = atn_tensor_dense(numbers, ATN_F64, 1, d, d, cells);
    return numbers;
}

int sampler_take(const sampler *with, const sampler_source *from, int64_t m, int64_t draw,
                 atn_context *context, double *landmarks)
{
    const token_grid *grid = from->grid;
    atn_sampling sampling = {.kind = with->kind,
                             .height = grid->height,
                             .width = grid->width,
                             .stride = grid->stride,
                             .count = m,
                             .steps = with->steps,
                             .scale = from->scale};
    if (with->kind == ATN_SAMPLING_POOL && grid->windows)
        sampling.kind = ATN_SAMPLING_WINDOW;
    void *numbers = draw_numbers(from, with, draw, &sampling);
    atn_tensor tokens = atn_tensor_dense(from->tokens, ATN_F64, 1, 1, from->n, from->dim);
    atn_tensor to = atn_tensor_dense(landmarks, ATN_F64, 1, 1, m, from->dim);
    int code = check_status(context, staged_sample(context, &sampling, &tokens, &to), from->name);
    free(numbers);
    return code;
}
