/* SPDX-License-Identifier: BSD-3-Clause */
/* Y <- L^-1 Y by rows, in place: a tile of Y in registers takes the products of the rows before it,
 * then those of its own. Products are subtracted from every entry in order, then it is divided: the
 * order depends neither on the tiles nor on the instruction set. */
#include "cpu/simd_set.h"

/* Rows of a tile, as in products.c. */
#ifdef SIMD_AVX512
enum { VECTORS = 4, ROWS_1 = 8, ROWS_2 = 8, ROWS_4 = 6 };
#else
enum { VECTORS = 2, ROWS_1 = 8, ROWS_2 = 6 };
#endif
enum { MOST_ROWS = 8 };

/* A tile of `rows` x `vectors` of Y; the compiler knows both numbers. */
static inline __attribute__((always_inline)) void
solve_tile(int rows, int vectors, const triangle_terms *t, int64_t row, int64_t column)
{
    lanes left[MOST_ROWS][VECTORS];
    int64_t l_row = t->l_row, l_step = t->l_step, y_row = t->y_row;
    const real *l = t->l + row * l_row, *before = t->y + column;
    real *y = t->y + row * y_row + column;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            left[i][v] = ((const lanes *)(y + i * y_row))[v];
    for (int64_t k = 0; k < row; k++)
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                left[i][v] -= l[i * l_row + k * l_step] * ((const lanes *)(before + k * y_row))[v];
    l += row * l_step;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            left[i][v] /= l[i * l_row + i * l_step];
            ((lanes *)(y + i * y_row))[v] = left[i][v];
        }
        /* gcc 14 may unroll this before it knows i, and then warns of rows past the end. */
#pragma GCC unroll 8
        for (int below = i + 1; below < rows && below < MOST_ROWS; below++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                left[below][v] -= l[below * l_row + i * l_step] * left[i][v];
    }
}

/* Tiles of `most` rows. The rows that do not fill a tile come first: there the fewest rows precede
 * them, and a tile with few independent sums is slow. */
static inline __attribute__((always_inline)) void
solve_columns(int most, int vectors, const triangle_terms *t, int64_t column)
{
    int64_t row = t->known, rest = (t->rows - row) % most;
#pragma GCC unroll 4
    for (int rows = most / 2; rows > 0; rows /= 2)
        for (; rest >= rows; rest -= rows, row += rows)
            solve_tile(rows, vectors, t, row, column);
    for (; row < t->rows; row += most)
        solve_tile(most, vectors, t, row, column);
}

void R(solve)(const triangle_terms *t)
{
    int64_t j = 0;
#ifdef SIMD_AVX512
    for (; j + 4 * LANES <= t->columns; j += 4 * LANES)
        solve_columns(ROWS_4, 4, t, j);
#endif
    for (; j + 2 * LANES <= t->columns; j += 2 * LANES)
        solve_columns(ROWS_2, 2, t, j);
    for (; j < t->columns; j += LANES)
        solve_columns(ROWS_1, 1, t, j);
}
