/* SPDX-License-Identifier: BSD-3-Clause */
#include "random.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <gsl/gsl_rng.h>

#include "report.h"

struct random_stream {
    gsl_rng *parts[2];
    double spare; /* the second normal of a pair */
    bool has_spare;
};

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
 * generators"): a bijection of 64 bits that spreads every input bit over the whole word. */
static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* FNV-1a, 64 bits. */
static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

static gsl_rng *part_create(uint64_t seed)
{
    gsl_rng *part = gsl_rng_alloc(gsl_rng_ranlxd2);
    if (!part)
        end_program("out of memory: a random generator");
    gsl_rng_set(part, (unsigned long)seed);
    return part;
}

/* ranlxd2 takes only 31 bits of its seed: among 1e5 keys two would be likely to share a stream. So
 * a stream is the sum modulo 1 of two generators seeded by two 31-bit pieces of the key's hash. Two
 * keys share a stream only if both pieces agree (2^-62); if one does, the other generator still
 * makes the sums independent. */
random_stream *random_create(uint64_t seed, const char *purpose, uint64_t sample)
{
    uint64_t key = mix(mix(mix(seed) ^ hash_text(purpose)) ^ sample);
    random_stream *r = must_allocate(1, sizeof *r);
    r->parts[0] = part_create(key >> 33);
    r->parts[1] = part_create(key & 0x7fffffff);
    return r;
}

void random_free(random_stream *r)
{
    if (!r)
        return;
    gsl_rng_free(r->parts[0]);
    gsl_rng_free(r->parts[1]);
    free(r);
}

/* Both terms are multiples of 2^-48 (ranlxd), so the sum and the difference are exact. */
double random_uniform(random_stream *r)
{
    double sum = gsl_rng_uniform(r->parts[0]) + gsl_rng_uniform(r->parts[1]);
    return sum < 1 ? sum : sum - 1;
}

/* Box-Muller rather than GSL's ziggurat: it uses all 48 bits of a draw, where the ziggurat uses 24.
 * 1 - u is in (0, 1], so the logarithm is finite. */
double random_normal(random_stream *r)
{
    static const double two_pi = 6.283185307179586476925;
    if (r->has_spare) {
        r->has_spare = false;
        return r->spare;
    }
    double radius = sqrt(-2 * log(1 - random_uniform(r)));
    double angle = two_pi * random_uniform(r);
    r->spare = radius * sin(angle);
    r->has_spare = true;
    return radius * cos(angle);
}

/* Uniform up to a bias of n 2^-48, which is negligible for numbers of photographs and pixels. */
int64_t random_below(random_stream *r, int64_t n)
{
    return (int64_t)(random_uniform(r) * (double)n);
}

/* v -= (v . u) u for each of the `count` unit vectors u. */
static void remove_components(int64_t size, int64_t count, const double *units, double *v)
{
    for (int64_t j = 0; j < count; j++) {
        const double *u = units + j * size;
        double dot = 0;
        for (int64_t i = 0; i < size; i++)
            dot += v[i] * u[i];
        for (int64_t i = 0; i < size; i++)
            v[i] -= dot * u[i];
    }
}

/* Modified Gram-Schmidt, each column twice ("twice is enough": Giraud, Langou, Rozloznik 2005),
 * which leaves R's diagonal positive: Q is then Haar distributed (Mezzadri 2007, section 5). */
void random_orthonormal(random_stream *r, int64_t rows, int64_t cols, double *q)
{
    double *columns = must_allocate((size_t)cols, (size_t)rows * sizeof *columns);
    for (int64_t j = 0; j < cols; j++) {
        double *v = columns + j * rows;
        for (int64_t i = 0; i < rows; i++)
            v[i] = random_normal(r);
        remove_components(rows, j, columns, v);
        remove_components(rows, j, columns, v);
        double squares = 0;
        for (int64_t i = 0; i < rows; i++)
            squares += v[i] * v[i];
        for (int64_t i = 0; i < rows; i++)
            q[i * cols + j] = v[i] /= sqrt(squares);
    }
    free(columns);
}
