/* SPDX-License-Identifier: BSD-3-Clause */
#include "data.h"

#include <math.h>
#include <stdlib.h>

#include "ref_memory.h"

static const double pi = 3.14159265358979323846;

uint64_t data_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double next_uniform(uint64_t *state)
{
    return (double)(data_next(state) >> 11) * 0x1p-53;
}

void data_uniform(uint64_t seed, int64_t count, double *values)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = next_uniform(&seed);
}

void data_normal(uint64_t seed, int64_t count, double *values)
{
    for (int64_t i = 0; i < count; i++) { /* the cosine half of the Box-Muller method */
        double radius = sqrt(-2 * log(1 - next_uniform(&seed)));
        values[i] = radius * cos(2 * pi * next_uniform(&seed));
    }
}

void data_round(atn_dtype dtype, int64_t count, double *values)
{
    for (int64_t i = 0; i < count; i++) {
        double rounded;
        atn_convert(dtype, &rounded, ATN_F64, &values[i], 1);
        atn_convert(ATN_F64, &values[i], dtype, &rounded, 1);
    }
}

enum { MODES = 4 };

static void smooth_channel(uint64_t *state, int64_t height, int64_t width, int64_t d, double *out)
{
    double weights[MODES * MODES], mean = 0, variance = 0;
    int64_t n = height * width;
    data_normal(data_next(state), MODES * MODES, weights);
    for (int64_t t = 0; t < n; t++) {
        double y = ((double)(t / width) + 0.5) / (double)height;
        double x = ((double)(t % width) + 0.5) / (double)width, sum = 0;
        for (int i = 0; i < MODES * MODES; i++)
            sum += weights[i] * cos(pi * (i / MODES) * y) * cos(pi * (i % MODES) * x);
        out[t * d] = sum;
        mean += sum / (double)n;
    }
    for (int64_t t = 0; t < n; t++)
        variance += (out[t * d] - mean) * (out[t * d] - mean) / (double)n;
    for (int64_t t = 0; t < n; t++)
        out[t * d] = variance > 0 ? (out[t * d] - mean) / sqrt(variance) : 0;
}

void data_smooth(uint64_t seed, int64_t height, int64_t width, int64_t d, double *tokens)
{
    for (int64_t c = 0; c < d; c++)
        smooth_channel(&seed, height, width, d, tokens + c);
}

void data_permutation(uint64_t seed, int64_t count, int64_t *order)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)(data_next(&seed) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

double *data_allocate(int64_t count)
{
    double *memory = ref_take((size_t)(count > 0 ? count : 0), sizeof *memory);
    if (!memory)
        ref_give_up("out of memory: data");
    return memory;
}
