/* SPDX-License-Identifier: BSD-3-Clause */
#include "inverse/direct/cpu_pivoted.h"

#include <string.h>

/* An odd number of vectors, so that a column is spread over all sets of a cache. */
static int64_t row_stride(int64_t m)
{
    return whole_vectors(m) | SIMD_COLUMNS;
}

/* The rows of L^T, and the downdated diagonal. */
int64_t R(pivoted_factor_work)(int64_t m)
{
    return (m + 1) * row_stride(m);
}

/* Swaps the pivot, the first entry with this value, to place k. */
static void move_pivot(int64_t k, real value, int64_t stride, int *pivots, real *rows, real *rest)
{
    int64_t at = k;
    while (rest[at] != value)
        at++;
    int pivot = pivots[at];
    pivots[at] = pivots[k];
    pivots[k] = pivot;
    rest[at] = rest[k];
    rest[k] = -INFINITY; /* so that it is never the largest again */
    for (int64_t i = 0; at != k && i < k; i++) {
        real entry = rows[i * stride + at];
        rows[i * stride + at] = rows[i * stride + k];
        rows[i * stride + k] = entry;
    }
}

/* Computes L^T row by row: from every entry of A the products of earlier pivots are subtracted in
 * order (Higham, Accuracy and Stability, 2nd ed., Alg. 10.2 and Sec. 10.3). A row is computed from
 * the start of the vector that has the diagonal entry; the entries left of the diagonal are not
 * used. Returns the rank. */
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
        move_pivot(k, value, stride, pivots, rows, rest);
        const real *chosen = a + pivots[k] * m;
        for (int64_t j = first; j < m; j++)
            row[j] = chosen[pivots[j]];
        for (int64_t j = m; j < padded; j++)
            row[j] = 0; /* so that no arithmetic reads uninitialised memory */
        kernels->eliminate(k, rows + k, stride, rows + first, stride, columns, row + first);
        kernels->scale_and_downdate(columns, real_sqrt(value), row + first, rest + first);
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
    for (int64_t first = 0; first < m; first += SIMD_COLUMNS) { /* rows of L that fit a cache */
        int64_t end = first + SIMD_COLUMNS < m ? first + SIMD_COLUMNS : m;
        kernels->transpose(end < rank ? end : rank, end - first, rows + first, stride,
                           factor + first * m, m);
        for (int64_t i = first; i < end; i++)
            memset(factor + i * m + i + 1, 0, (size_t)(end - i - 1) * sizeof *factor);
    }
    return rank;
}

int64_t R(cholesky_stride)(int64_t m)
{
    return row_stride(m);
}

/* Rows first .. end - 1 of L^T, in the columns of the diagonal block, which are whole vectors.
 * False if a pivot is not above 0. */
static bool factor_triangle(const simd *kernels, int64_t first, int64_t end, int64_t stride,
                            real *rows)
{
    for (int64_t k = first; k < end; k++) {
        real *row = rows + k * stride + first;
        kernels->eliminate(k, rows + k, stride, rows + first, stride, SIMD_COLUMNS, row);
        real pivot = row[k - first], root = real_sqrt(pivot);
        if (!(pivot > 0))
            return false;
        for (int64_t j = 0; j < SIMD_COLUMNS; j++)
            row[j] /= root;
        row[k - first] = root;
    }
    return true;
}

bool R(cholesky_factor)(const simd *kernels, int64_t m, real *rows)
{
    int64_t padded = whole_vectors(m), stride = row_stride(m);
    for (int64_t first = 0; first < m; first += SIMD_COLUMNS) {
        int64_t right = first + SIMD_COLUMNS, end = right < m ? right : m;
        if (!factor_triangle(kernels, first, end, stride, rows))
            return false;
        triangle_terms rest = {first, end, rows, 1, stride, padded - right, rows + right, stride};
        kernels->solve(&rest);
    }
    return true;
}

/* Columns of L^-1 that are solved for at a time, and rows of the inverse computed at a time; their
 * entries above the diagonal are not used. */
enum { INVERSE_BLOCK = 2 * SIMD_COLUMNS };

void R(factor_inverse)(const simd *kernels, int64_t r, const real *l, int64_t l_row, int64_t l_step,
                       int64_t x_stride, real *x, real *work)
{
    int64_t stride = row_stride(r);
    for (int64_t first = 0; first < r; first += INVERSE_BLOCK) { /* L^-1, below its zeros */
        int64_t rows = r - first, columns = whole_vectors(rows);
        columns = columns < INVERSE_BLOCK ? columns : INVERSE_BLOCK;
        real *inverse = work + first * stride + first;
        for (int64_t i = 0; i < rows; i++)
            memset(inverse + i * stride, 0, (size_t)columns * sizeof *inverse);
        for (int64_t i = 0; i < rows && i < columns; i++)
            inverse[i * stride + i] = 1;
        triangle_terms solve = {
            0, rows, l + first * (l_row + l_step), l_row, l_step, columns, inverse, stride};
        kernels->solve(&solve);
    }
    for (int64_t first = 0; first < r; first += INVERSE_BLOCK) { /* L^-T L^-1 */
        int64_t end = first + INVERSE_BLOCK < r ? first + INVERSE_BLOCK : r;
        const real *rows = work + first * stride;
        product_terms square = {
            .rows = end - first,
            .columns = end,
            .inner = r - first,
            .a = rows + first,
            .a_row = 1,
            .a_step = stride,
            .b = rows,
            .b_step = stride,
            .b_column = 1,
            .c = x + first * x_stride,
            .c_row = x_stride,
        };
        kernels->product(&square);
    }
}
