/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalues are those of the matrix as stored, its entries rounded to f64. */
#include "matrices.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "routes.h"

#define NAME(code, name, description) name,
static const char *const names[] = {REF_MATRIX_LIST(NAME)};

static const long double pi = 3.14159265358979323846264338327950288L;

const char *ref_matrix_name(ref_matrix matrix)
{
    return (unsigned)matrix < REF_MATRIX_COUNT ? names[matrix] : NULL;
}

static int descending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a < b) - (a > b);
}

static void sort_descending(int64_t count, double *values)
{
    if (values && count > 0)
        qsort(values, (size_t)count, sizeof *values, descending);
}

/* One equicorrelated block of size s at row and column `first`: 1 + (s - 1) c once, 1 - c. */
static void fill_block(int64_t m, int64_t first, int64_t s, double c, double *a, double *lambda)
{
    for (int64_t i = 0; a && i < s; i++)
        for (int64_t j = 0; j < s; j++)
            a[(first + i) * m + first + j] = i == j ? 1 : c;
    for (int64_t i = 0; lambda && i < s; i++)
        lambda[first + i] = i == 0 ? 1 + (double)(s - 1) * c : 1 - c;
}

static void make_identity(int64_t m, double value, double *a, double *lambda)
{
    fill_block(m, 0, m, 0, a, lambda);
}

static void make_ones(int64_t m, double value, double *a, double *lambda)
{
    fill_block(m, 0, m, 1, a, lambda);
}

static void make_equicorrelated(int64_t m, double value, double *a, double *lambda)
{
    fill_block(m, 0, m, value, a, lambda);
}

static void make_blocks(int64_t m, double value, double *a, double *lambda)
{
    if (a)
        ref_fill(m * m, 0, a);
    int64_t first = 0;
    for (int64_t block = 0; block < 3; block++) {
        int64_t size = m / 3 + (block < m % 3);
        fill_block(m, first, size, value, a, lambda);
        first += size;
    }
}

/* Two tokens form a 2 x 2 block with exp(-delta^2 / 2); other off-diagonal entries are 0. */
static void make_duplicates(int64_t m, double value, double *a, double *lambda)
{
    make_identity(m, 0, a, lambda);
    fill_block(m, 0, 2, exp(-value * value / 2), a, lambda);
}

/* Entry c_k of the circulant's first row. c_k = c_{m-k} to the last bit. */
static double ring_entry(int64_t m, double value, int64_t k)
{
    int64_t steps = k <= m - k ? k : m - k;
    long double half_chord = sinl(pi * (long double)steps / (long double)m);
    return (double)expl(-4 * (long double)value * half_chord * half_chord);
}

/* Eigenvalue j of a circulant: sum_k c_k cos(2 pi j k / m). */
static double ring_eigenvalue(int64_t m, double value, int64_t j)
{
    long double sum = 0;
    for (int64_t k = 0; k < m; k++) {
        int64_t turn = j * k % m; /* exact: the angle is a fraction of one turn */
        sum += ring_entry(m, value, k) * cosl(2 * pi * (long double)turn / (long double)m);
    }
    return (double)sum;
}

static void make_circulant(int64_t m, double value, double *a, double *lambda)
{
    for (int64_t i = 0; a && i < m; i++)
        for (int64_t j = 0; j < m; j++)
            a[i * m + j] = i == 0 ? ring_entry(m, value, j) : a[(j - i + m) % m];
    for (int64_t j = 0; lambda && j < m; j++)
        lambda[j] = ring_eigenvalue(m, value, j);
}

static int64_t square_root(int64_t m)
{
    int64_t root = (int64_t)sqrt((double)m);
    while (root * root > m)
        root--;
    while ((root + 1) * (root + 1) <= m)
        root++;
    return root;
}

/* The eigenvalues of a Kronecker product are the products. */
static void make_torus(int64_t m, double value, double *a, double *lambda)
{
    int64_t q = square_root(m);
    for (int64_t i = 0; a && i < m; i++)
        for (int64_t j = 0; j < m; j++)
            a[i * m + j] = ring_entry(q, value, (j / q - i / q + q) % q) *
                           ring_entry(q, value, (j % q - i % q + q) % q);
    for (int64_t j = 0; lambda && j < m; j++)
        lambda[j] = ring_eigenvalue(q, value, j / q) * ring_eigenvalue(q, value, j % q);
}

static bool any(int64_t m)
{
    return true;
}

static bool is_two(int64_t m)
{
    return m == 2;
}

static bool at_least_two(int64_t m)
{
    return m >= 2;
}

static bool at_least_three(int64_t m)
{
    return m >= 3;
}

static bool is_square(int64_t m)
{
    int64_t root = square_root(m);
    return root * root == m;
}

static const struct {
    bool (*suits)(int64_t m);
    void (*make)(int64_t m, double value, double *a, double *lambda);
    double least; /* the smallest value allowed */
} matrices[REF_MATRIX_COUNT] = {
    [REF_IDENTITY] = {any, make_identity, -DBL_MAX},
    [REF_ONES] = {any, make_ones, -DBL_MAX},
    [REF_EQUICORRELATED] = {any, make_equicorrelated, -DBL_MAX},
    [REF_CIRCULANT] = {any, make_circulant, 0},
    [REF_TORUS] = {is_square, make_torus, 0},
    [REF_TWO] = {is_two, make_equicorrelated, -DBL_MAX},
    [REF_BLOCKS] = {at_least_three, make_blocks, -DBL_MAX},
    [REF_DUPLICATES] = {at_least_two, make_duplicates, 0},
};

atn_status ref_matrix_make(ref_matrix matrix, int64_t m, double value, double *a, double *lambda)
{
    if ((unsigned)matrix >= REF_MATRIX_COUNT)
        return ATN_ERR_VALUE;
    static const double none;
    atn_status status = ref_check_matrix(m, m, &none);
    if (status != ATN_OK)
        return status;
    if (!matrices[matrix].suits(m))
        return ATN_ERR_SHAPE;
    if (!isfinite(value) || value < matrices[matrix].least)
        return ATN_ERR_VALUE;
    matrices[matrix].make(m, value, a, lambda);
    sort_descending(m, lambda);
    return ATN_OK;
}
