/* SPDX-License-Identifier: BSD-3-Clause */
/* The singular value decomposition of a small matrix by one-sided Jacobi rotations (Hestenes 1958;
 * the order of de Rijk 1989). LAPACK's would do, but its bits, and with some kernels of OpenBLAS
 * even its accuracy, depend on the processor and on where its memory begins. */
#include <float.h>
#include <string.h>

#include "cpu/blocks.h"

/* A few more than are ever needed: convergence is quadratic at the end. */
enum { MOST_SWEEPS = 60 };
/* Rows whose squared norm is less count as 0: they, or in f64 their squares, keep no digits. */
#ifdef REAL_F32
static const double least_square =
    (FLT_MIN / (double)FLT_EPSILON) * (FLT_MIN / (double)FLT_EPSILON);
#else
static const double least_square = DBL_MIN / DBL_EPSILON;
#endif

static void swap_rows(int64_t m, real *a, real *b)
{
    for (int64_t j = 0; j < m; j++) {
        real kept = a[j];
        a[j] = b[j];
        b[j] = kept;
    }
}

static void divide_row(int64_t m, double divisor, real *a)
{
    for (int64_t j = 0; j < m; j++)
        a[j] = (real)((double)a[j] / divisor);
}

static void rotate_rows(int64_t m, real cosine, real sine, real *a, real *b)
{
    for (int64_t j = 0; j < m; j++) {
        real first = a[j], second = b[j];
        a[j] = cosine * first + sine * second;
        b[j] = cosine * second - sine * first;
    }
}

/* Makes rows i < j orthogonal, the longer one first. False: they were so already. */
static bool orthogonalise(int64_t m, int64_t i, int64_t j, real *rows, real *left, double *squares)
{
    real *a = rows + i * m, *b = rows + j * m;
    double product = R(dot)(m, a, b);
    bool swaps = squares[i] < squares[j];
    if (swaps) {
        double kept = squares[i];
        squares[i] = squares[j];
        squares[j] = kept;
        swap_rows(m, a, b);
        swap_rows(m, left + i * m, left + j * m);
    }
    double bound =
        sqrt((double)m) * atn_dtype_roundoff(REAL_DTYPE) * sqrt(squares[i]) * sqrt(squares[j]);
    if (squares[j] < least_square || fabs(product) <= bound)
        return swaps;
    double cotangent = (squares[i] - squares[j]) / (2 * product); /* of twice the angle */
    double tangent = copysign(1 / (fabs(cotangent) + hypot(1, cotangent)), cotangent);
    double cosine = 1 / hypot(1, tangent), sine = cosine * tangent;
    rotate_rows(m, (real)cosine, (real)sine, a, b);
    rotate_rows(m, (real)cosine, (real)sine, left + i * m, left + j * m);
    squares[i] = R(dot)(m, a, a);
    squares[j] = R(dot)(m, b, b);
    return true;
}

/* row -= its components along the first `count` rows, which are orthonormal; twice, because the
 * first time leaves rounding errors. */
static void project_out(int64_t m, int64_t count, const real *rows, real *row)
{
    for (int pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < count; k++) {
            real component = (real)R(dot)(m, rows + k * m, row);
            for (int64_t j = 0; j < m; j++)
                row[j] -= component * rows[k * m + j];
        }
}

/* Row `count`, orthogonal to the rows before it: of the unit vector that is furthest from them. */
static void complete(int64_t m, int64_t count, real *rows)
{
    real *row = rows + count * m;
    double least = INFINITY;
    int64_t furthest = 0;
    for (int64_t j = 0; j < m; j++) {
        double square = 0;
        for (int64_t k = 0; k < count; k++)
            square += (double)rows[k * m + j] * (double)rows[k * m + j];
        if (square < least) {
            least = square;
            furthest = j;
        }
    }
    memset(row, 0, (size_t)m * sizeof *row);
    row[furthest] = 1;
    project_out(m, count, rows, row);
    divide_row(m, sqrt(R(dot)(m, row, row)), row);
}

bool R(singular_values)(int64_t m, real *a, real *left, real *values, double *squares)
{
    bool rotated = m > 0;
    memset(left, 0, (size_t)(m * m) * sizeof *left);
    for (int64_t i = 0; i < m; i++)
        left[i * m + i] = 1;
    for (int64_t i = 0; i < m; i++)
        squares[i] = R(dot)(m, a + i * m, a + i * m);
    for (int sweep = 0; rotated && sweep < MOST_SWEEPS; sweep++) {
        rotated = false;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = i + 1; j < m; j++)
                rotated |= orthogonalise(m, i, j, a, left, squares);
    }
    bool found = !rotated;
    for (int64_t i = 0; i < m; i++) {
        found = found && squares[i] < INFINITY;
        values[i] = squares[i] >= least_square ? (real)sqrt(squares[i]) : 0;
        if (squares[i] >= least_square)
            divide_row(m, sqrt(squares[i]), a + i * m);
        else
            complete(m, i, a);
    }
    return found;
}
