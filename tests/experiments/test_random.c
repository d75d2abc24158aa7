/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounds on averages are 5 standard deviations wide: the draws are fixed, so a test that passes
 * once passes always, and one in a million honest generators would fail. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"

enum { DRAWS = 200000 };

static double correlation(const double *x, const double *y, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum / count;
}

/* Centred and scaled to variance 1. */
static double *uniforms(uint64_t seed, const char *purpose, uint64_t sample, int count)
{
    random_stream *r = random_create(seed, purpose, sample);
    double *values = malloc((size_t)count * sizeof *values);
    for (int i = 0; i < count; i++)
        values[i] = (random_uniform(r) - 0.5) * sqrt(12);
    random_free(r);
    return values;
}

/* Moments of the uniform distribution: mean of (u - 1/2)^k. */
Test(random, uniforms_are_uniform)
{
    static const struct {
        int power;
        double mean, deviation;
    } moments[] = {
        {1, 0, 0.2886751}, {2, 1.0 / 12, 0.0745356}, {3, 0, 0.0472456}, {4, 0.0125, 1.0 / 60}};
    random_stream *r = random_create(7, "test", 0);
    double sums[4] = {0};
    int cells[64] = {0};
    for (int i = 0; i < DRAWS; i++) {
        double u = random_uniform(r);
        cr_assert(u >= 0 && u < 1, "draw %d is %g", i, u);
        cells[(int)(64 * u)]++;
        for (int k = 0; k < 4; k++)
            sums[k] += pow(u - 0.5, moments[k].power);
    }
    for (int k = 0; k < 4; k++) {
        double ratio =
            fabs(sums[k] / DRAWS - moments[k].mean) / (moments[k].deviation / sqrt(DRAWS));
        cr_expect(ratio < 5, "power=%d ratio=%.3g", moments[k].power, ratio);
    }
    double square = 0, expected = DRAWS / 64.0;
    for (int k = 0; k < 64; k++)
        square += (cells[k] - expected) * (cells[k] - expected) / expected;
    cr_expect(fabs(square - 63) < 5 * sqrt(2 * 63), "chi-square over 64 cells: %.3g", square);
    random_free(r);
}

/* Means of z^k and the variances of z^k of the normal distribution. */
Test(random, normals_are_normal)
{
    static const double means[] = {0, 0, 1, 0, 3, 0, 15};
    static const double variances[] = {0, 1, 2, 15, 96, 945, 10170};
    random_stream *r = random_create(7, "test", 1);
    double sums[7] = {0}, before = 0, product = 0;
    int beyond_3 = 0;
    for (int i = 0; i < DRAWS; i++) {
        double z = random_normal(r), power = 1;
        cr_assert(isfinite(z), "draw %d", i);
        for (int k = 1; k <= 6; k++)
            sums[k] += power *= z;
        product += z * before;
        before = z;
        beyond_3 += fabs(z) > 3;
    }
    for (int k = 1; k <= 6; k++) {
        double ratio = fabs(sums[k] / DRAWS - means[k]) / sqrt(variances[k] / DRAWS);
        cr_expect(ratio < 5, "power=%d mean=%g ratio=%.3g", k, sums[k] / DRAWS, ratio);
    }
    cr_expect(fabs(product) / sqrt(DRAWS) < 5, "neighbours: %.3g", product / sqrt(DRAWS));
    double tail = 0.0026997961 * DRAWS; /* erfc(3 / sqrt(2)) */
    cr_expect(fabs(beyond_3 - tail) < 5 * sqrt(tail), "%d beyond 3, expected %.0f", beyond_3, tail);
    random_free(r);
}

Test(random, below_reaches_every_number_equally_often)
{
    static const int64_t bounds[] = {1, 2, 3, 13, 33, 65};
    random_stream *r = random_create(7, "test", 2);
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        int counts[65] = {0};
        double expected = 20000.0 / (double)bounds[b];
        for (int i = 0; i < 20000; i++) {
            int64_t k = random_below(r, bounds[b]);
            cr_assert(k >= 0 && k < bounds[b], "n=%ld k=%ld", (long)bounds[b], (long)k);
            counts[k]++;
        }
        for (int64_t k = 0; k < bounds[b]; k++)
            cr_expect(fabs(counts[k] - expected) <= 5 * sqrt(expected), "n=%ld k=%ld: %d times",
                      (long)bounds[b], (long)k, counts[k]);
    }
    random_free(r);
}

/* Keys that differ in one bit of the seed, in one letter, in one bit of the sample, or by an
 * exchange of seed and sample. */
static const struct {
    uint64_t seed;
    const char *purpose;
    uint64_t sample;
} keys[] = {
    {1, "a", 0},
    {2, "a", 0},
    {0, "a", 1},
    {1, "a", 1},
    {1, "a", 2},
    {1, "b", 0},
    {1, "ab", 0},
    {1, "ba", 0},
    {1, "", 0},
    {0, "", 0},
    {0, "", 1},
    {(uint64_t)1 << 31, "a", 0},
    {(uint64_t)1 << 32, "a", 0},
    {(uint64_t)1 << 63, "a", 0},
    {1, "a", (uint64_t)1 << 31},
    {1, "a", (uint64_t)1 << 32},
    {1, "a", (uint64_t)1 << 63},
    {UINT64_MAX, "a", UINT64_MAX},
};
enum { KEYS = sizeof keys / sizeof *keys, LENGTH = 5000 };

Test(random, streams_of_different_keys_are_uncorrelated)
{
    double *streams[KEYS];
    for (int i = 0; i < KEYS; i++)
        streams[i] = uniforms(keys[i].seed, keys[i].purpose, keys[i].sample, LENGTH + 3);
    for (int i = 0; i < KEYS; i++)
        for (int j = 0; j < i; j++)
            for (int lag = 0; lag < 4; lag++) {
                double ratio =
                    fabs(correlation(streams[i] + lag, streams[j], LENGTH)) * sqrt(LENGTH);
                cr_expect(ratio < 5, "keys %d and %d lag=%d ratio=%.3g", i, j, lag, ratio);
            }
    for (int i = 0; i < KEYS; i++)
        free(streams[i]);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* With only the 31 bits of one generator's seed two collisions were to be expected, and a hash that
 * ignores part of the key would collide at once. */
Test(random, first_draws_of_many_keys_differ_and_are_uniform)
{
    enum { COUNT = 100000 };
    static double first[COUNT];
    double sum = 0;
    for (int i = 0; i < COUNT; i++) {
        random_stream *r = random_create((uint64_t)(i / 500), "crop", (uint64_t)(i % 500));
        first[i] = random_uniform(r);
        sum += first[i] - 0.5;
        random_free(r);
    }
    qsort(first, COUNT, sizeof *first, compare_doubles);
    double largest = 0; /* Kolmogorov-Smirnov */
    for (int i = 0; i < COUNT; i++) {
        cr_expect(i == 0 || first[i] > first[i - 1], "draw %.17g twice", first[i]);
        largest = fmax(largest, fabs(first[i] - (i + 0.5) / COUNT));
    }
    cr_expect(largest * sqrt(COUNT) < 2, "distance from uniform: %.3g", largest * sqrt(COUNT));
    cr_expect(fabs(sum) < 5 * sqrt(COUNT / 12.0), "mean off by %.3g", sum / COUNT);
}

Test(random, same_key_same_draws)
{
    random_stream *a = random_create(3, "same", 4), *b = random_create(3, "same", 4);
    for (int i = 0; i < 1000; i++) {
        double x = i % 3 ? random_normal(a) : random_uniform(a);
        double y = i % 3 ? random_normal(b) : random_uniform(b);
        cr_expect(memcmp(&x, &y, sizeof x) == 0, "draw %d", i);
    }
    random_free(a);
    random_free(b);
    random_free(NULL);
}

static double orthonormality_error(const double *q, int64_t rows, int64_t cols)
{
    double worst = 0;
    for (int64_t i = 0; i < cols; i++)
        for (int64_t j = 0; j <= i; j++) {
            double dot = 0;
            for (int64_t k = 0; k < rows; k++)
                dot += q[k * cols + i] * q[k * cols + j];
            worst = fmax(worst, fabs(dot - (i == j)));
        }
    return worst;
}

/* Square ones are the worst conditioned: one pass of Gram-Schmidt is not enough for all of them. */
Test(random, orthonormal_columns)
{
    static const int64_t shapes[][3] = {{1, 1, 10},   {2, 1, 10},   {2, 2, 300},  {32, 32, 300},
                                        {48, 32, 20}, {192, 32, 5}, {3072, 32, 1}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int64_t rows = shapes[s][0], cols = shapes[s][1];
        double *q = malloc((size_t)(rows * cols) * sizeof *q);
        for (int64_t k = 0; k < shapes[s][2]; k++) {
            random_stream *r = random_create(5, "orthonormal", (uint64_t)k);
            random_orthonormal(r, rows, cols, q);
            double ratio = orthonormality_error(q, rows, cols) / (0x1p-53 * sqrt((double)rows));
            cr_expect(ratio < 10, "%ldx%ld k=%ld ratio=%.3g", (long)rows, (long)cols, (long)k,
                      ratio);
            random_free(r);
        }
        free(q);
    }
}

/* Haar: every entry has mean 0 and mean square 1/n, and the trace of an orthogonal matrix has mean
 * 0 and variance 1 (Diaconis and Shahshahani 1994). A QR whose signs are not fixed fails the means.
 */
Test(random, orthonormal_is_haar)
{
    enum { N = 4, ROUNDS = 20000 };
    double sums[N * N] = {0}, squares[N * N] = {0}, trace_sum = 0, trace_square = 0;
    random_stream *r = random_create(6, "haar", 0);
    for (int round = 0; round < ROUNDS; round++) {
        double q[N * N], trace = 0;
        random_orthonormal(r, N, N, q);
        for (int i = 0; i < N * N; i++) {
            sums[i] += q[i];
            squares[i] += q[i] * q[i];
        }
        for (int i = 0; i < N; i++)
            trace += q[i * N + i];
        trace_sum += trace;
        trace_square += trace * trace;
    }
    for (int i = 0; i < N * N; i++) {
        double mean = fabs(sums[i]) / sqrt(ROUNDS / (double)N);
        /* q^2 ~ Beta(1/2, (n-1)/2) has variance 2 (n-1) / (n^2 (n+2)). */
        double square =
            fabs(squares[i] / ROUNDS - 1.0 / N) / sqrt(2.0 * (N - 1) / (N * N * (N + 2)) / ROUNDS);
        cr_expect(mean < 5 && square < 5, "entry %d: mean=%.3g square=%.3g", i, mean, square);
    }
    cr_expect(fabs(trace_sum) < 5 * sqrt(ROUNDS), "trace: %.3g", trace_sum / ROUNDS);
    cr_expect(fabs(trace_square / ROUNDS - 1) < 5 * sqrt(2.0 / ROUNDS), "trace^2: %.3g",
              trace_square / ROUNDS);
    random_free(r);
}

/* Seeded results in published tables depend on these: they may not move from one release to the
 * next. */
Test(random, first_draws_are_pinned)
{
    static const struct {
        uint64_t seed;
        const char *purpose;
        uint64_t sample;
        double uniform, normal;
    } rows[] = {
        {0, "", 0, 0.037560688457126901, -0.75170582383584184},
        {1, "iid", 0, 0.12335128969010967, 0.86338771660532632},
        {1, "photos crop", 12, 0.020575334017948421, 2.3756125153003453},
        {2, "photos projection", 4, 0.4827087962097103, -0.67776899356632558},
        {UINT64_MAX, "smooth", UINT64_MAX, 0.51848502848192979, -0.34337978976283307},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        random_stream *r = random_create(rows[i].seed, rows[i].purpose, rows[i].sample);
        double uniform = random_uniform(r), normal = random_normal(r);
        cr_expect(uniform == rows[i].uniform, "row %zu: %.17g", i, uniform);
        cr_expect(fabs(normal - rows[i].normal) <= 4e-16 * fabs(normal), "row %zu: %.17g", i,
                  normal);
        random_free(r);
    }
}
