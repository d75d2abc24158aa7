/* SPDX-License-Identifier: BSD-3-Clause */
/* The small helpers on dense matrices, to the last bit. Compiled once per real, as they are. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "cpu/blocks.h"
#include "simd_sets.h"

enum { MOST = 70, ROOM = MOST * MOST + 1 };

/* What adds across vectors is tested in every set that the machine has, the rest in base. */
typedef void dots_function(int64_t rows, int64_t cols, const real *a, int64_t a_stride,
                           const real *b, int64_t b_stride, double *dots);
typedef void vector_function(int64_t rows, int64_t cols, const real *a, int64_t stride,
                             const real *x, real *y);
typedef void rows_function(int64_t rows, int64_t cols, const real *weights, const real *a,
                           int64_t stride, real *to);
typedef double norm_function(int64_t count, const real *a);
typedef double difference_function(int64_t count, const real *a, const real *b);
#define OF_SET(name, set) REAL_NAME(name, REAL_TYPE, set)
#ifdef __x86_64__
extern dots_function OF_SET(row_dots, avx2), OF_SET(row_dots, avx512);
extern vector_function OF_SET(multiply_vector, avx2), OF_SET(multiply_vector, avx512);
extern rows_function OF_SET(add_rows, avx2), OF_SET(add_rows, avx512);
static rows_function *const add_rows[] = {OF_SET(add_rows, base), OF_SET(add_rows, avx2),
                                          OF_SET(add_rows, avx512)};
extern norm_function OF_SET(squared_norm, avx2), OF_SET(squared_norm, avx512);
extern difference_function OF_SET(squared_difference, avx2), OF_SET(squared_difference, avx512);
static norm_function *const squared_norm[] = {
    OF_SET(squared_norm, base), OF_SET(squared_norm, avx2), OF_SET(squared_norm, avx512)};
static difference_function *const squared_difference[] = {OF_SET(squared_difference, base),
                                                          OF_SET(squared_difference, avx2),
                                                          OF_SET(squared_difference, avx512)};
static dots_function *const row_dots[] = {OF_SET(row_dots, base), OF_SET(row_dots, avx2),
                                          OF_SET(row_dots, avx512)};
static vector_function *const multiply_vector[] = {
    OF_SET(multiply_vector, base), OF_SET(multiply_vector, avx2), OF_SET(multiply_vector, avx512)};
#else
static rows_function *const add_rows[] = {OF_SET(add_rows, base)};
static norm_function *const squared_norm[] = {OF_SET(squared_norm, base)};
static difference_function *const squared_difference[] = {OF_SET(squared_difference, base)};
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
                int64_t stride = cols + rows % 2 * 3;
                fill(ROOM, a);
                fill(MOST, x);
                y[rows] = 7;
                multiply_vector[set](rows, cols, a, stride, x, y);
                for (int64_t i = 0; i < rows; i++)
                    cr_expect(y[i] == plain_row(cols, a + i * stride, x), "%s, %d x %d: row %d",
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

/* Of any numbers, near to sums in long double; AVX2 and AVX-512 to the same bits. A product, its
 * three sums within eight rows and the result are rounded, and one roundoff is for terms of higher
 * order. Sums of groups and the last rows are added in double, whose rounding counts in f64 only.
 */
Test(matrix, sums_of_rows_of_any_numbers)
{
    enum { ROWS = 64, STRIDE = 41 };
    static real a[ROWS * STRIDE], weights[ROWS], to[ATN_ISA_COUNT][STRIDE];
    fill(ROWS * STRIDE, a);
    fill(ROWS, weights);
    int sets_there = find_sets();
    for (int rows = 1; rows <= ROWS; rows++)
        for (int cols = 1; cols < STRIDE; cols++)
            for (int set = 0; set < sets_there; set++) {
                memset(to[set], 0, sizeof to[set]);
                add_rows[set](rows, cols, weights, a, STRIDE, to[set]);
                for (int c = 0; c < cols; c++) {
                    long double want = 0, size = 0;
                    for (int i = 0; i < rows; i++) {
                        long double term = (long double)weights[i] * a[i * STRIDE + c];
                        want += term;
                        size += fabsl(term);
                    }
                    bool narrow = sizeof(real) < sizeof(double);
                    int roundings = 6 + (narrow ? 0 : rows / 8 + rows % 8);
                    long double roundoff = (narrow ? FLT_EPSILON : DBL_EPSILON) / 2;
                    cr_expect(fabsl(to[set][c] - want) <= roundings * roundoff * size,
                              "%s: %d rows, column %d of %d", sets[set].name, rows, c, cols);
                    cr_expect(set < 2 || !sets[1].fuses || to[set][c] == to[1][c],
                              "%s: %d rows, column %d of %d: other bits", sets[set].name, rows, c,
                              cols);
                }
            }
}

/* Exact where numbers are whole; nothing beyond the columns is written. */
Test(matrix, sums_of_rows)
{
    enum { ROWS = 21, STRIDE = 41 };
    static real a[ROWS * STRIDE], weights[ROWS], to[STRIDE];
    for (int i = 0; i < ROWS * STRIDE; i++)
        a[i] = (real)(i * 37 % 19 - 9);
    for (int i = 0; i < ROWS; i++)
        weights[i] = (real)(i * 5 % 7 - 3);
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int weighted = 0; weighted < 2; weighted++)
            for (int rows = 0; rows <= ROWS; rows++)
                for (int cols = 0; cols < STRIDE; cols++) {
                    int wrong = 0;
                    for (int c = 0; c < STRIDE; c++)
                        to[c] = (real)c;
                    add_rows[set](rows, cols, weighted ? weights : NULL, a, STRIDE, to);
                    for (int c = 0; c < STRIDE; c++) {
                        real want = (real)c;
                        for (int i = 0; c < cols && i < rows; i++)
                            want += (weighted ? weights[i] : 1) * a[i * STRIDE + c];
                        wrong += to[c] != want;
                    }
                    cr_expect(wrong == 0, "%s%s: %d rows, %d columns: %d wrong", sets[set].name,
                              weighted ? ", weighted" : "", rows, cols, wrong);
                }
}

static void expect_squares(const char *set, int64_t count, double got, const real *a, const real *b)
{
    bool is_f32 = sizeof(real) < sizeof(double);
    long double want = 0, roundoff = (is_f32 ? FLT_EPSILON : DBL_EPSILON) / 2;
    for (int64_t i = 0; i < count; i++) {
        long double x = (long double)a[i] - (b ? (long double)b[i] : 0);
        want += x * x;
    }
    cr_expect(fabsl(got - want) <= (is_f32 ? 12 : 12 + count / 32) * roundoff * want,
              "%s, %d numbers: %g instead of %Lg", set, (int)count, got, want);
}

/* Sums of squares that are in f32's range, too large for it, subnormal there, and 0 there. */
Test(matrix, sums_of_squares)
{
    static real a[ROOM], b[ROOM];
    static const double scales[] = {1, 1e-20, 1e-21, 1e-30, 1e18, 1e25};
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++)
        for (int64_t count = 0; count < ROOM; count += count < 300 ? 7 : 263) {
            for (int64_t i = 0; i < count; i++) {
                a[i] = (real)(scales[k] * (random_unit() - 0.5));
                b[i] = (real)(scales[k] * (random_unit() - 0.5));
            }
            for (int set = 0, sets_there = find_sets(); set < sets_there; set++) {
                expect_squares(sets[set].name, count, squared_norm[set](count, a), a, NULL);
                expect_squares(sets[set].name, count, squared_difference[set](count, a, b), a, b);
            }
        }
}

/* They are in the result wherever they are. */
Test(matrix, sums_of_squares_of_nan_and_infinity)
{
    enum { COUNT = 600 };
    static real a[COUNT], zero[COUNT];
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int i = 0; i < COUNT; i++) {
            a[i] = (real)NAN;
            cr_expect(isnan(squared_norm[set](COUNT, a)));
            cr_expect(isnan(squared_difference[set](COUNT, zero, a)));
            a[i] = (real)-INFINITY;
            cr_expect(isinf(squared_norm[set](COUNT, a)));
            cr_expect(isinf(squared_difference[set](COUNT, a, zero)));
            a[i] = 1;
            cr_expect(squared_norm[set](COUNT, a) == 1 &&
                          squared_difference[set](COUNT, zero, a) == 1,
                      "%s: %d", sets[set].name, i);
            a[i] = 0;
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
