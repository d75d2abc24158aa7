/* SPDX-License-Identifier: BSD-3-Clause */
/* The small helpers on dense matrices, to the last bit. Compiled once per real, as they are. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "cpu/blocks.h"
#include "simd_sets.h"

enum { MOST = 70, ROOM = MOST * MOST + 1 };

/* What adds across vectors is tested in every set that the machine has, the rest in base. */
typedef void dots_function(int64_t rows, int64_t cols, const real *a, int64_t a_stride,
                           const real *b, int64_t b_stride, double *dots);
typedef void vector_function(int64_t rows, int64_t cols, const real *a, const real *x, real *y);
#define OF_SET(name, set) REAL_NAME(name, REAL_TYPE, set)
#ifdef __x86_64__
extern dots_function OF_SET(row_dots, avx2), OF_SET(row_dots, avx512);
extern vector_function OF_SET(multiply_vector, avx2), OF_SET(multiply_vector, avx512);
static dots_function *const row_dots[] = {OF_SET(row_dots, base), OF_SET(row_dots, avx2),
                                          OF_SET(row_dots, avx512)};
static vector_function *const multiply_vector[] = {
    OF_SET(multiply_vector, base), OF_SET(multiply_vector, avx2), OF_SET(multiply_vector, avx512)};
#else
static dots_function *const row_dots[] = {OF_SET(row_dots, base)};
static vector_function *const multiply_vector[] = {OF_SET(multiply_vector, base)};
#endif

static void fill(int64_t count, real *a)
{
    for (int64_t i = 0; i < count; i++)
        a[i] = (real)(random_unit() - 0.5);
}

/* Every size, with whole tiles and partial ones; nothing after the matrix is written. */
Test(matrix, symmetrise_takes_means)
{
    static real a[ROOM], before[ROOM];
    for (int64_t m = 0; m <= MOST; m++) {
        int wrong = 0;
        fill(ROOM, a);
        memcpy(before, a, sizeof a);
        R(symmetrise)(m, a);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < m; j++)
                wrong += a[i * m + j] != (before[i * m + j] + before[j * m + i]) / 2;
        cr_expect(wrong == 0, "m=%d: %d wrong", (int)m, wrong);
        cr_expect(memcmp(a + m * m, before + m * m, (size_t)(ROOM - m * m) * sizeof(real)) == 0,
                  "m=%d: written beyond", (int)m);
    }
}

/* Sixteen sums, added by halves, and one of what does not fill them. */
static real plain_row(int64_t cols, const real *a, const real *x)
{
    enum { SUMS = 16 };
    real sums[SUMS] = {0}, rest = 0;
    int64_t whole = cols - cols % SUMS;
    for (int64_t j = 0; j < whole; j++)
        sums[j % SUMS] += a[j] * x[j];
    for (int64_t j = whole; j < cols; j++)
        rest += a[j] * x[j];
    for (int half = SUMS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sums[i] += sums[i + half];
    return sums[0] + rest;
}

/* Few rows, and as many as are added across together. */
Test(matrix, rows_times_a_vector)
{
    static real a[ROOM], x[MOST], y[MOST + 1];
    for (int set = 0, count = find_sets(); set < count; set++)
        for (int64_t cols = 0; cols <= MOST; cols++)
            for (int64_t rows = 0; rows <= 35; rows += rows < 3 ? 1 : 16) {
                fill(ROOM, a);
                fill(MOST, x);
                y[rows] = 7;
                multiply_vector[set](rows, cols, a, x, y);
                for (int64_t i = 0; i < rows; i++)
                    cr_expect(y[i] == plain_row(cols, a + i * cols, x), "%s, %d x %d: row %d",
                              sets[set].name, (int)rows, (int)cols, (int)i);
                cr_expect(y[rows] == 7);
            }
}

/* Whether the factors share memory changes no bit; exact where numbers are whole. */
Test(matrix, dot_of_itself)
{
    static real a[ROOM], copy[ROOM];
    for (int64_t count = 0; count <= 200; count++) {
        fill(count, a);
        memcpy(copy, a, sizeof a);
        cr_expect(R(dot)(count, a, a) == R(dot)(count, a, copy), "%d", (int)count);
        double want = 0;
        for (int64_t i = 0; i < count; i++) {
            a[i] = (real)(i + 1);
            want += (double)((i + 1) * (i + 1));
        }
        cr_expect(R(dot)(count, a, a) == want, "%d", (int)count);
    }
}

/* The sums of each row, several across together or one, are those of base's dot, for whole and
 * other lengths, with another array's rows, with one row and with the rows themselves. */
Test(matrix, dots_of_rows)
{
    enum { ROWS = 11, STRIDE = 200 };
    static real a[ROWS * STRIDE], b[ROWS * STRIDE];
    double dots[ROWS], norms[ROWS];
    fill(ROWS * STRIDE, a);
    for (int64_t i = 0; i < ROWS * STRIDE; i++)
        b[i] = a[ROWS * STRIDE - 1 - i];
    for (int64_t cols = 0; cols < STRIDE; cols++) {
        R(row_norms)(ROWS, cols, a, STRIDE, norms);
        for (int64_t i = 0; i < ROWS; i++)
            cr_expect(norms[i] == R(frobenius)(cols, a + i * STRIDE));
        for (int turn = 0, count = find_sets(); turn < 3 * count; turn++) {
            const real *with = turn % 3 == 2 ? a : b;
            int64_t stride = turn % 3 == 1 ? 0 : STRIDE;
            row_dots[turn / 3](ROWS, cols, a, STRIDE, with, stride, dots);
            for (int64_t i = 0; i < ROWS; i++)
                cr_expect(dots[i] == R(dot)(cols, a + i * STRIDE, with + i * stride),
                          "%s, %d columns, row %d, turn %d", sets[turn / 3].name, (int)cols, (int)i,
                          turn % 3);
        }
    }
}

/* Of equal elements the first, wherever it is; the last element if none is equal. */
Test(matrix, find_takes_the_first)
{
    enum { LONGEST = 200, BEYOND = 2 };
    static real a[LONGEST + BEYOND];
    for (int64_t count = 1; count <= LONGEST; count += count < 70 ? 1 : 13) {
        for (int64_t i = 0; i < count; i++)
            a[i] = (real)(i % 7);
        a[count] = a[count + 1] = 9;
        cr_expect(R(find)(count, a, 9) == count - 1, "%d elements, none", (int)count);
        cr_expect(R(find)(count, a, (real)NAN) == count - 1, "%d elements, NaN", (int)count);
        for (int64_t at = count; at-- > 0;) {
            a[at] = 9; /* and all after it */
            cr_expect(R(find)(count, a, 9) == at, "%d elements, at %d: %d", (int)count, (int)at,
                      (int)R(find)(count, a, 9));
        }
    }
}
