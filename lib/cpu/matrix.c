/* SPDX-License-Identifier: BSD-3-Clause */
/* Small helpers on dense matrices. */
#include "cpu/blocks.h"

/* Sums that a vector unit can keep side by side. */
enum { LANES = 8 };

double R(sum)(int64_t count, const real *a)
{
    double lanes[LANES] = {0}, sum = 0;
    int64_t whole = count - count % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += (double)a[i + lane];
    for (int64_t i = whole; i < count; i++)
        sum += (double)a[i];
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

double R(dot)(int64_t count, const real *a, const real *b)
{
    double lanes[LANES] = {0}, sum = 0;
    int64_t whole = count - count % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += (double)a[i + lane] * (double)b[i + lane];
    for (int64_t i = whole; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

double R(squared_difference)(int64_t count, const real *a, const real *b)
{
    double lanes[LANES] = {0}, sum = 0;
    int64_t whole = count - count % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            double difference = (double)a[i + lane] - (double)b[i + lane];
            lanes[lane] += difference * difference;
        }
    for (int64_t i = whole; i < count; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

/* Squares of f64 leave its range where norms do not: a norm of 0 by underflow would make any
 * residual relative to it 0 too. The sum is that of dot, so that a power of two in all of a is one
 * in the norm. */
static double scaled_frobenius(int64_t count, const real *a)
{
    double lanes[LANES] = {0}, largest = 0, sum = 0;
    int64_t whole = count - count % LANES;
    int exponent;
    for (int64_t i = 0; i < count; i++)
        largest = core_max(largest, fabs((double)a[i]));
    if (!(largest > 0 && isfinite(largest)))
        return largest;
    frexp(largest, &exponent);
    for (int64_t i = 0; i < count; i++) {
        double entry = ldexp((double)a[i], -exponent);
        *(i < whole ? &lanes[i % LANES] : &sum) += entry * entry;
    }
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return ldexp(sqrt(sum), exponent);
}

double R(frobenius)(int64_t count, const real *a)
{
    double sum = R(dot)(count, a, a);
    return sum >= 0x1p-900 && sum <= 0x1p1000 ? sqrt(sum) : scaled_frobenius(count, a);
}

double R(norm1)(int64_t m, const real *a)
{
    double norm = 0;
    for (int64_t i = 0; i < m; i++) { /* rows for columns: A is symmetric */
        double sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += (double)real_abs(a[i * m + j]);
        norm = core_max(norm, sum);
    }
    return norm;
}

/* A number as it is stored. One more in the exponent reaches the sign bit where the exponent is
 * all ones: NaN, infinity. */
#ifdef REAL_F32
typedef uint32_t __attribute__((may_alias)) stored;
enum { SIGNIFICAND_BITS = 23 };
#else
typedef uint64_t __attribute__((may_alias)) stored;
enum { SIGNIFICAND_BITS = 52 };
#endif

bool R(all_finite)(int64_t rows, int64_t cols, const real *a, int64_t stride)
{
    const stored one = 1, sign = one << (8 * sizeof one - 1), exponent = one << SIGNIFICAND_BITS;
    stored bad = 0;
    if (stride == cols) { /* one long row */
        cols *= rows;
        rows = 1;
    }
    for (int64_t i = 0; i < rows; i++) {
        const stored *row = (const stored *)(a + i * stride);
        for (int64_t j = 0; j < cols; j++)
            bad |= (row[j] & ~sign) + exponent;
    }
    return !(bad & sign);
}

void R(transpose)(int64_t rows, int64_t cols, const real *a, real *to)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            to[j * rows + i] = a[i * cols + j];
}

void R(symmetrise)(int64_t m, real *a)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < i; j++)
            a[i * m + j] = a[j * m + i] = (a[i * m + j] + a[j * m + i]) / 2;
}

void R(mirror_lower)(int64_t m, real *a, int64_t stride)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < i; j++)
            a[j * stride + i] = a[i * stride + j];
}

double R(penrose_of_product)(int64_t m, const real *a, const real *a_x, real *scratch)
{
    real_multiply(m, a_x, a, scratch);
    for (int64_t i = 0; i < m * m; i++)
        scratch[i] -= a[i];
    double norm = R(frobenius)(m * m, a);
    return norm > 0 ? R(frobenius)(m * m, scratch) / norm : 0;
}

double R(first_penrose)(int64_t m, const real *a, const real *x, real *scratch1, real *scratch2)
{
    real_multiply(m, a, x, scratch1);
    return R(penrose_of_product)(m, a, scratch1, scratch2);
}
