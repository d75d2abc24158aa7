/* SPDX-License-Identifier: BSD-3-Clause */
#include "attention/magnitudes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

double correlation(int64_t count, const double *a, const double *b)
{
    long double mean[2] = {0, 0}, both = 0, squares[2] = {0, 0};
    for (int64_t i = 0; i < count; i++) {
        mean[0] += (long double)a[i] / (long double)count;
        mean[1] += (long double)b[i] / (long double)count;
    }
    for (int64_t i = 0; i < count; i++) {
        long double x = (long double)a[i] - mean[0], y = (long double)b[i] - mean[1];
        both += x * y;
        squares[0] += x * x;
        squares[1] += y * y;
    }
    return (double)(both / sqrtl(squares[0] * squares[1]));
}

void divide_by_norms(int64_t n, int64_t d, double *x)
{
    for (int64_t c = 0; c < d; c++) {
        long double norm = 0;
        for (int64_t i = 0; i < n; i++)
            norm += fabs(x[i * d + c]);
        for (int64_t i = 0; i < n; i++)
            x[i * d + c] = (double)(x[i * d + c] / norm);
    }
}

static long double dot(int64_t d, const double *x, const double *y)
{
    long double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += (long double)x[c] * y[c];
    return sum;
}

/* The same in a copy, to be freed. */
static double *divided_copy(int64_t n, int64_t d, const double *x)
{
    double *copy = must_allocate((size_t)(n * d), sizeof *copy);
    memcpy(copy, x, (size_t)(n * d) * sizeof *copy);
    divide_by_norms(n, d, copy);
    return copy;
}

void normalised_lengths(int64_t n, int64_t d, const double *x, double *lengths)
{
    double *normed = divided_copy(n, d, x);
    for (int64_t i = 0; i < n; i++)
        lengths[i] = (double)sqrtl(dot(d, normed + i * d, normed + i * d));
    free(normed);
}

static double length_ratio(int64_t n, const double *lengths)
{
    double least = lengths[0], most = lengths[0];
    for (int64_t i = 1; i < n; i++) {
        least = fmin(least, lengths[i]);
        most = fmax(most, lengths[i]);
    }
    return most / least;
}

magnitude measure_magnitude(int64_t n, int64_t d, const double *q, const double *k, double *lengths)
{
    size_t pairs = (size_t)(n * n);
    double *queries = divided_copy(n, d, q), *keys = divided_copy(n, d, k);
    double *entries = must_allocate(pairs, sizeof *entries);
    double *sizes = must_allocate(pairs, sizeof *sizes);
    double *products = must_allocate(pairs, sizeof *products);
    normalised_lengths(n, d, q, lengths);
    normalised_lengths(n, d, k, lengths + n);
    for (int64_t i = 0; i < n * n; i++) {
        entries[i] = (double)dot(d, queries + i / n * d, keys + i % n * d);
        sizes[i] = fabs(entries[i]);
        products[i] = lengths[i / n] * lengths[n + i % n];
    }
    magnitude m = {length_ratio(n, lengths), length_ratio(n, lengths + n),
                   correlation(n, lengths, lengths + n), correlation(n * n, products, entries),
                   correlation(n * n, products, sizes)};
    free(products);
    free(sizes);
    free(entries);
    free(keys);
    free(queries);
    return m;
}
