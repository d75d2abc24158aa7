/* SPDX-License-Identifier: BSD-3-Clause */
/* Small helpers on dense matrices. */
#include <string.h>

#include "cpu/blocks.h"
#include "cpu/simd_set.h"

/* ---- Sums in double ---- */

/* The number of partial sums kept in vectors. It does not depend on the vectors' width, so all
 * instruction sets add in the same order. What remains is added to the first LEAST of them, and the
 * last few terms to the total. */
enum { SUMS = 32, LEAST = 8, WIDES = SUMS / WIDE };

/* Defines the sum over i of term(a_i, b_i, scale). */
#define DEFINE_SUM(name, term)                                                                     \
    static inline double name(int64_t count, const real *a, const real *b, double scale)           \
    {                                                                                              \
        wide sums[WIDES] = {{0}};                                                                  \
        int64_t i = 0;                                                                             \
        for (; i + SUMS <= count; i += SUMS)                                                       \
            for (int w = 0; w < WIDES; w++)                                                        \
                sums[w] += term(widened(a + i + w * WIDE), widened(b + i + w * WIDE), scale);      \
        for (; i + LEAST <= count; i += LEAST)                                                     \
            for (int w = 0; w < LEAST / WIDE; w++)                                                 \
                sums[w] += term(widened(a + i + w * WIDE), widened(b + i + w * WIDE), scale);      \
        double rest = 0;                                                                           \
        for (; i < count; i++)                                                                     \
            rest += term((double)a[i], (double)b[i], scale);                                       \
        return add_wide(WIDES, sums) + rest;                                                       \
    }

#define FIRST(x, y, scale)   (x)
#define PRODUCT(x, y, scale) ((x) * (y))
#define SCALED(x, y, scale)  (((scale) * (x)) * ((scale) * (y)))
#define SQUARE(x, y, scale)  (((x) - (y)) * ((x) - (y)))

DEFINE_SUM(sum_of_first, FIRST)
DEFINE_SUM(sum_of_products, PRODUCT)
DEFINE_SUM(sum_of_scaled, SCALED)
DEFINE_SUM(sum_of_squares, SQUARE)

double R(sum)(int64_t count, const real *a)
{
    return sum_of_first(count, a, a, 1);
}

double R(dot)(int64_t count, const real *a, const real *b)
{
    return a == b ? sum_of_products(count, a, a, 1) /* known to be one number, converted once */
                  : sum_of_products(count, a, b, 1);
}

/* R(dot), to the same bits, of WIDE pairs of rows whose length is a multiple of SUMS. */
static inline __attribute__((always_inline)) void whole_dots(int64_t cols, const real *a,
                                                             int64_t a_stride, const real *b,
                                                             int64_t b_stride, double *dots)
{
    wide rows[WIDE];
#pragma GCC unroll 8
    for (int row = 0; row < WIDE; row++, a += a_stride, b += b_stride) {
        wide sums[WIDES] = {{0}};
        for (int64_t i = 0; i < cols; i += SUMS)
#pragma GCC unroll 16
            for (int w = 0; w < WIDES; w++)
                sums[w] += widened(a + i + w * WIDE) * widened(b + i + w * WIDE);
        for (int half = WIDES / 2; half > 0; half /= 2)
            for (int w = 0; w < half; w++)
                sums[w] += sums[w + half];
        rows[row] = sums[0];
    }
    *(wide *)dots = add_across_wide(rows);
}

void R(row_dots)(int64_t rows, int64_t cols, const real *a, int64_t a_stride, const real *b,
                 int64_t b_stride, double *dots)
{
    int64_t i = 0;
    bool whole = cols > 0 && cols % SUMS == 0, same = a == b && a_stride == b_stride;
    for (; whole && i + WIDE <= rows; i += WIDE, a += WIDE * a_stride, b += WIDE * b_stride)
        if (same) /* known to be one number, converted once */
            whole_dots(cols, a, a_stride, a, a_stride, dots + i);
        else
            whole_dots(cols, a, a_stride, b, b_stride, dots + i);
    for (; i < rows; i++, a += a_stride, b += b_stride)
        dots[i] = R(dot)(cols, a, b);
}

/* The sum of (a_i - b_i)^2, or of a_i^2 without b. In f32 converting every number to double would
 * take most of the time: there SUMS partial sums of TERMS squares each are f32, and are added in
 * double. Where that overflows, or is so small that squares which count can have underflowed, all
 * is summed in double. */
static inline __attribute__((always_inline)) double short_sum(int64_t count, const real *a,
                                                              const real *b)
{
    enum { TERMS = 8, VECTORS = SUMS / LANES, BLOCK = TERMS * SUMS };
    wide totals[WIDES] = {{0}};
    int64_t i = 0;
    for (; sizeof(real) < sizeof(double) && i + BLOCK <= count; i += BLOCK) {
        lanes parts[VECTORS] = {{0}};
        real each[SUMS];
        for (int64_t j = i; j < i + BLOCK; j += SUMS)
            for (int v = 0; v < VECTORS; v++) {
                lanes x = *(const lanes *)(a + j + v * LANES);
                if (b)
                    x -= *(const lanes *)(b + j + v * LANES);
                parts[v] += x * x;
            }
        memcpy(each, parts, sizeof each);
        for (int w = 0; w < WIDES; w++)
            totals[w] += widened(each + w * WIDE);
    }
    double sum = add_wide(WIDES, totals);
    if (i > 0 && !(sum >= 0x1p-90 * (double)count && sum < INFINITY))
        sum = i = 0;
    return sum + (b ? sum_of_squares(count - i, a + i, b + i, 1)
                    : sum_of_products(count - i, a + i, a + i, 1));
}

double R(squared_difference)(int64_t count, const real *a, const real *b)
{
    return short_sum(count, a, b);
}

double R(squared_norm)(int64_t count, const real *a)
{
    return short_sum(count, a, NULL);
}

/* No branch per element: a processor cannot predict where the value is. */
int64_t R(find)(int64_t count, const real *a, real value)
{
    enum { CHUNK = 64 };
    for (int64_t first = 0; first < count; first += CHUNK) {
        real_bits length = count - first < CHUNK ? (real_bits)(count - first) : CHUNK, at = CHUNK;
        for (real_bits i = 0; i < length; i++) {
            real_bits here = a[first + i] == value ? i : CHUNK;
            at = here < at ? here : at;
        }
        if (at < CHUNK)
            return first + at;
    }
    return count - 1;
}

/* Rows whose sum is in `real`. */
enum { GROUP = 8, ROWS_WIDES = LANES / WIDE };

/* The sum of GROUP rows, times weights if there are any; added by halves. */
static inline __attribute__((always_inline)) lanes add_group(size_t bytes, const real *weights,
                                                             const real *a, int64_t stride)
{
    lanes pairs[GROUP / 2];
#pragma GCC unroll 4
    for (int i = 0; i < GROUP / 2; i++) {
        lanes first = load_first(bytes, a + 2 * i * stride);
        lanes second = load_first(bytes, a + (2 * i + 1) * stride);
        pairs[i] = weights ? weights[2 * i] * first + weights[2 * i + 1] * second : first + second;
    }
#pragma GCC unroll 2
    for (int half = GROUP / 4; half > 0; half /= 2)
#pragma GCC unroll 2
        for (int i = 0; i < half; i++)
            pairs[i] += pairs[i + half];
    return pairs[0];
}

static inline __attribute__((always_inline)) void add_widened(double weight, lanes x,
                                                              wide totals[ROWS_WIDES])
{
    real each[LANES];
    memcpy(each, &x, sizeof each);
    for (int w = 0; w < ROWS_WIDES; w++)
        totals[w] += weight * widened(each + w * WIDE);
}

/* The sums of a vector of columns stay in registers. */
static inline __attribute__((always_inline)) void add_columns(size_t bytes, int64_t rows,
                                                              const real *weights, const real *a,
                                                              int64_t stride, real *to)
{
    wide totals[ROWS_WIDES] = {{0}};
    real sums[LANES];
    int64_t i = 0;
    for (; i + GROUP <= rows; i += GROUP)
        add_widened(1, add_group(bytes, weights ? weights + i : NULL, a + i * stride, stride),
                    totals);
    for (; i < rows; i++)
        add_widened(weights ? (double)weights[i] : 1, load_first(bytes, a + i * stride), totals);
    add_widened(1, load_first(bytes, to), totals);
    for (int w = 0; w < ROWS_WIDES; w++)
        *(some *)(sums + w * WIDE) = __builtin_convertvector(totals[w], some);
    memcpy(to, sums, bytes);
}

static inline __attribute__((always_inline)) void add_all_columns(int64_t rows, int64_t cols,
                                                                  const real *weights,
                                                                  const real *a, int64_t stride,
                                                                  real *to)
{
    int64_t c = 0;
    for (; c + LANES <= cols; c += LANES)
        add_columns(BYTES, rows, weights, a + c, stride, to + c);
    if (c < cols)
        add_columns((size_t)(cols - c) * sizeof *a, rows, weights, a + c, stride, to + c);
}

void R(add_rows)(int64_t rows, int64_t cols, const real *weights, const real *a, int64_t stride,
                 real *to)
{
    if (weights) /* known to be, in the loops */
        add_all_columns(rows, cols, weights, a, stride, to);
    else
        add_all_columns(rows, cols, NULL, a, stride, to);
}

/* In f64, squares can overflow or underflow where the norm does not; a norm of 0 by underflow would
 * make every residual relative to it 0, too. The sum is added as in dot, so that scaling a by a
 * power of two scales the norm exactly. */
static double scaled_frobenius(int64_t count, const real *a)
{
    enum { LEAST_EXPONENT = -1000 }; /* 2^1000 is finite and large enough */
    double largest = 0;
    int exponent;
    for (int64_t i = 0; i < count; i++)
        largest = core_max(largest, fabs((double)a[i]));
    if (!(largest > 0 && isfinite(largest)))
        return largest;
    frexp(largest, &exponent);
    if (exponent < LEAST_EXPONENT)
        exponent = LEAST_EXPONENT;
    return ldexp(sqrt(sum_of_scaled(count, a, a, ldexp(1, -exponent))), exponent);
}

/* From the sum of squares. */
static double norm_from(double squares, int64_t count, const real *a)
{
    return squares >= 0x1p-900 && squares <= 0x1p1000 ? sqrt(squares) : scaled_frobenius(count, a);
}

double R(frobenius)(int64_t count, const real *a)
{
    return norm_from(R(dot)(count, a, a), count, a);
}

void R(row_norms)(int64_t rows, int64_t cols, const real *a, int64_t stride, double *norms)
{
    R(row_dots)(rows, cols, a, stride, a, stride, norms);
    for (int64_t i = 0; i < rows; i++)
        norms[i] = norm_from(norms[i], cols, a + i * stride);
}

/* Columns whose sums are kept in vectors at a time. */
enum { COLUMNS = 16 };

/* Sums of the magnitudes in some columns, the largest of them and of `norm`. */
static inline double largest_sum(int64_t m, int columns, const real *a, double norm)
{
    double sums[COLUMNS] = {0};
    for (int64_t i = 0; i < m; i++)
        for (int j = 0; j < columns; j++)
            sums[j] += (double)real_abs(a[i * m + j]);
    for (int j = 0; j < columns; j++)
        norm = core_max(norm, sums[j]);
    return norm;
}

double R(norm1)(int64_t m, const real *a)
{
    double norm = 0;
    int64_t j = 0;
    for (; j + COLUMNS <= m; j += COLUMNS)
        norm = largest_sum(m, COLUMNS, a + j, norm);
    if (j < m && m >= COLUMNS) /* the last columns, together with some that are done already */
        return largest_sum(m, COLUMNS, a + m - COLUMNS, norm);
    return largest_sum(m, (int)(m - j), a + j, norm);
}

/* Partial sums of a row kept in vectors: their number does not depend on the vectors' width. */
enum { ROW_SUMS = 16, ROW_VECTORS = ROW_SUMS / LANES };

static inline real row_product(int64_t cols, const real *a, const real *x)
{
    lanes sums[ROW_VECTORS] = {{0}};
    quad ends[ROW_SUMS / QUAD];
    real rest = 0;
    int64_t j = 0;
    for (; j + ROW_SUMS <= cols; j += ROW_SUMS)
        for (int v = 0; v < ROW_VECTORS; v++)
            sums[v] += ((const lanes *)(a + j))[v] * ((const lanes *)(x + j))[v];
    for (; j < cols; j++)
        rest += a[j] * x[j];
    memcpy(ends, sums, sizeof ends);
#pragma GCC unroll 4
    for (int half = ROW_SUMS / QUAD / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; i++)
            ends[i] += ends[i + half];
#pragma GCC unroll 4
    for (int half = QUAD / 2; half > 0; half /= 2)
#pragma GCC unroll 2
        for (int i = 0; i < half; i++)
            ends[0][i] += ends[0][i + half];
    return ends[0][0] + rest;
}

/* row_product, to the same bits, of LANES rows whose length is a multiple of ROW_SUMS. */
static inline lanes row_products(int64_t cols, const real *a, int64_t stride, const real *x)
{
    lanes sums[LANES];
#pragma GCC unroll 16
    for (int row = 0; row < LANES; row++) {
        lanes parts[ROW_VECTORS] = {{0}};
        for (int64_t j = 0; j < cols; j += ROW_SUMS)
            for (int v = 0; v < ROW_VECTORS; v++)
                parts[v] +=
                    ((const lanes *)(a + row * stride + j))[v] * ((const lanes *)(x + j))[v];
        for (int half = ROW_VECTORS / 2; half > 0; half /= 2)
            for (int v = 0; v < half; v++)
                parts[v] += parts[v + half];
        sums[row] = parts[0];
    }
    return add_across(sums);
}

void R(multiply_vector)(int64_t rows, int64_t cols, const real *a, int64_t stride, const real *x,
                        real *y)
{
    int64_t i = 0;
    for (; cols % ROW_SUMS == 0 && i + LANES <= rows; i += LANES)
        *(lanes *)(y + i) = row_products(cols, a + i * stride, stride, x);
    for (; i < rows; i++)
        y[i] = row_product(cols, a + i * stride, x);
}

/* A number's bits. Adding 1 to the exponent field carries into the sign bit if the field is all
 * ones, that is for NaN and infinity. */
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
        for (int64_t j = 0, end; j < cols;) {
            __builtin_prefetch(row + j + AHEAD_REALS);
            for (end = cols - j < PAGE_REALS ? cols : j + PAGE_REALS; j < end; j++)
                bad |= (row[j] & ~sign) + exponent;
        }
    }
    return !(bad & sign);
}

void R(multiply_tokens)(int64_t rows, int64_t cols, int64_t inner, const real *x, int64_t x_stride,
                        const real *a, bool add, real *out, int64_t out_stride)
{
    enum { BLOCK = 64 };
    for (int64_t i = 0; i < rows; i += BLOCK, x += BLOCK * x_stride, out += BLOCK * out_stride)
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows - i < BLOCK ? rows - i : BLOCK,
                                   cols, inner, x, x_stride, a, cols, add, out, out_stride),
                        real_next(x, BLOCK, inner, x_stride),
                        real_next(out, BLOCK, cols, out_stride));
}

/* Symmetrises two QUAD x QUAD blocks of a matrix that are each other's transpose. */
static inline void symmetrise_quads(int64_t m, real *upper, real *lower)
{
    quad means[QUAD];
#pragma GCC unroll 4
    for (int i = 0; i < QUAD; i++)
        means[i] = *(quad *)(lower + i * m);
    transpose_quads(means);
#pragma GCC unroll 4
    for (int i = 0; i < QUAD; i++)
        means[i] = *(quad *)(upper + i * m) = (*(quad *)(upper + i * m) + means[i]) / 2;
    transpose_quads(means);
#pragma GCC unroll 4
    for (int i = 0; i < QUAD; i++)
        *(quad *)(lower + i * m) = means[i];
}

void R(symmetrise)(int64_t m, real *a)
{
    for (int64_t i = 0; i < m; i++) {
        int64_t j = 0, band = i - i % QUAD;
        if (i == band && i + QUAD <= m)
            for (; j < band; j += QUAD)
                symmetrise_quads(m, a + j * m + i, a + i * m + j);
        for (j = band + QUAD <= m ? band : 0; j < i; j++)
            a[i * m + j] = a[j * m + i] = (a[i * m + j] + a[j * m + i]) / 2;
    }
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
    real_multiply_by_symmetric(m, a, x, scratch1);
    return R(penrose_of_product)(m, a, scratch1, scratch2);
}
