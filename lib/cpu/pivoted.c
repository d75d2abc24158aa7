/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu/pivoted.h"

#include <string.h>

/* An odd number of whole vectors, so that a column is spread over all of a cache. */
static int64_t row_stride(int64_t m)
{
    return whole_vectors(m) | SIMD_COLUMNS;
}

/* The rows of L^T, and what is left of the diagonal. */
int64_t R(pivoted_factor_work)(int64_t m)
{
    return (m + 1) * row_stride(m);
}

/* Moves the pivot, the first with this value, to place k. */
static void take_pivot(int64_t k, real value, int64_t stride, int *pivots, real *rows, real *rest)
{
    int64_t at = k;
    while (rest[at] != value)
        at++;
    int pivot = pivots[at];
    pivots[at] = pivots[k];
    pivots[k] = pivot;
    rest[at] = rest[k];
    rest[k] = -INFINITY; /* is never the largest again */
    for (int64_t i = 0; at != k && i < k; i++) {
        real entry = rows[i * stride + at];
        rows[i * stride + at] = rows[i * stride + k];
        rows[i * stride + k] = entry;
    }
}

/* L^T row by row, every entry A's less the products of the pivots in their order (Higham, Accuracy
 * and Stability, 2nd ed., Alg. 10.2 and Sec. 10.3). Rows begin at the whole vector in which the
 * diagonal lies: what is left of it there nobody reads. Returns the rank. */
static int64_t eliminate(const simd *kernels, int64_t m, const real *a, real cut, int *pivots,
                         real *rows, real *rest)
{
    int64_t padded = whole_vectors(m), stride = row_stride(m);
    for (int64_t k = 0; k < m; k++) {
        int64_t first = k / SIMD_COLUMNS * SIMD_COLUMNS, columns = padded - first;
        real least = k > 0 ? cut : 0, *row = rows + k * stride;
        real value = kernels->largest(columns, rest + first, least);
        if (!(value > least))
            return k;
        take_pivot(k, value, stride, pivots, rows, rest);
        const real *chosen = a + pivots[k] * m;
        for (int64_t j = first; j < m; j++)
            row[j] = chosen[pivots[j]];
        for (int64_t j = m; j < padded; j++)
            row[j] = 0; /* nothing computes with what nobody wrote */
        kernels->eliminate(k, rows + k, stride, rows + first, stride, columns, row + first);
        kernels->settle(columns, real_sqrt(value), row + first, rest + first);
        row[k] = real_sqrt(value);
    }
    return m;
}

int64_t R(pivoted_factor)(const simd *kernels, int64_t m, const real *a, real cut, int *pivots,
                          real *factor, real *work)
{
    int64_t stride = row_stride(m);
    real *rest = work, *rows = work + stride;
    for (int64_t i = 0; i < stride; i++)
        rest[i] = i < m ? a[i * m + i] : -INFINITY;
    for (int64_t i = 0; i < m; i++)
        pivots[i] = (int)i;
    int64_t rank = eliminate(kernels, m, a, cut, pivots, rows, rest);
    memset(factor, 0, (size_t)(m * m) * sizeof *factor);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i && j < rank; j++)
            factor[i * m + j] = rows[j * stride + i];
    return rank;
}

void R(factor_inverse)(const simd *kernels, int64_t r, int64_t factor_stride, real *factor,
                       real *work)
{
    int64_t stride = row_stride(r);
    real *sums = work, *inverse = work + stride;
    for (int64_t i = 0; i < r; i++) { /* L^-1 */
        real *row = inverse + i * stride, *l = factor + i * factor_stride;
        memset(row, 0, (size_t)stride * sizeof *row);
        row[i] = 1;
        kernels->eliminate(i, l, 1, inverse, stride, whole_vectors(i), row);
        for (int64_t j = 0; j <= i; j++)
            row[j] /= l[i];
    }
    for (int64_t i = 0; i < r; i++) { /* L^-T L^-1, whose row i begins at L^-1's */
        const real *rows = inverse + i * stride;
        memset(sums, 0, (size_t)stride * sizeof *sums);
        kernels->eliminate(r - i, rows + i, stride, rows, stride, whole_vectors(i + 1), sums);
        for (int64_t j = 0; j <= i; j++)
            factor[i * factor_stride + j] = 0 - sums[j];
    }
}
