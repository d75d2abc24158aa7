/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over elements, distances and rows, in whole vectors. */
#include <sleef.h>
#include <string.h>

#include "cpu/simd_set.h"

#if defined(SIMD_AVX512)
#define TOKENS  4 /* 16 sums, 4 rows of landmarks and what is under way, in 32 registers */
#define VECTORS 4
#define EXP_F32 Sleef_expf16_u10avx512f
#define EXP_F64 Sleef_expd8_u10avx512f
#elif defined(SIMD_AVX2)
#define TOKENS  4 /* 8 sums in 16 registers */
#define VECTORS 2
#define EXP_F32 Sleef_expf8_u10avx2
#define EXP_F64 Sleef_expd4_u10avx2
#else
#define TOKENS  2
#define VECTORS 4
#define EXP_F32 Sleef_expf4_u10
#define EXP_F64 Sleef_expd2_u10
#endif

#ifdef REAL_F32
#define EXP EXP_F32
#else
#define EXP EXP_F64
#endif

/* Sums of one row side by side: as many as hide the latency of a subtraction. */
enum { ROW_VECTORS = 4 };
/* What a comparison of lanes gives. */
#ifdef REAL_F32
typedef int32_t bits __attribute__((vector_size(BYTES)));
#else
typedef int64_t bits __attribute__((vector_size(BYTES)));
#endif

/* `tokens` x `vectors` sums in registers, both known to the compiler. */
static inline __attribute__((always_inline)) void
distance_tile(int tokens, int vectors, int64_t d, const real *x, int64_t x_stride,
              const real *transposed, int64_t columns, real *out, int64_t out_stride)
{
    lanes sums[TOKENS][VECTORS] = {{{0}}};
    for (int64_t c = 0; c < d; c++) {
        const lanes *row = (const lanes *)(transposed + c * columns);
        for (int t = 0; t < tokens; t++)
            for (int v = 0; v < vectors; v++) {
                lanes difference = x[t * x_stride + c] - row[v];
                sums[t][v] += difference * difference;
            }
    }
    for (int t = 0; t < tokens; t++)
        for (int v = 0; v < vectors; v++)
            ((lanes *)(out + t * out_stride))[v] = sums[t][v];
}

/* `tokens` rows of distances. */
static inline __attribute__((always_inline)) void
distance_rows(int tokens, int64_t d, const real *x, int64_t x_stride, const real *transposed,
              int64_t columns, real *out, int64_t out_stride)
{
    int64_t j = 0;
    for (; j + VECTORS * LANES <= columns; j += VECTORS * LANES)
        distance_tile(tokens, VECTORS, d, x, x_stride, transposed + j, columns, out + j,
                      out_stride);
    for (; j < columns; j += LANES)
        distance_tile(tokens, 1, d, x, x_stride, transposed + j, columns, out + j, out_stride);
}

static void distances(int64_t p, int64_t d, const real *x, int64_t x_stride, const real *transposed,
                      int64_t columns, real *out, int64_t out_stride)
{
    int64_t i = 0;
    for (; i + TOKENS <= p; i += TOKENS)
        distance_rows(TOKENS, d, x + i * x_stride, x_stride, transposed, columns,
                      out + i * out_stride, out_stride);
    for (; i < p; i++)
        distance_rows(1, d, x + i * x_stride, x_stride, transposed, columns, out + i * out_stride,
                      out_stride);
}

static void exponentials(int64_t count, real factor, real shift, real *x)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes *at = (lanes *)(x + i);
        *at = (lanes)EXP(factor * (*at - shift));
    }
    if (i == count)
        return;
    lanes last = {0};
    memcpy(&last, x + i, (size_t)(count - i) * sizeof *x);
    last = (lanes)EXP(factor * (last - shift));
    memcpy(x + i, &last, (size_t)(count - i) * sizeof *x);
}

static lanes larger(lanes a, lanes b)
{
    bits mask = a > b;
    return (lanes)(((bits)a & mask) | ((bits)b & ~mask));
}

static real largest(int64_t count, const real *x, real least)
{
    int64_t i = 0;
    lanes most = (lanes){0} + least;
    for (; i + LANES <= count; i += LANES)
        most = larger(*(const lanes *)(x + i), most);
    for (int lane = 0; lane < LANES; lane++)
        least = most[lane] > least ? most[lane] : least;
    for (; i < count; i++)
        least = x[i] > least ? x[i] : least;
    return least;
}

/* `vectors` of the row in registers, known to the compiler. */
static inline __attribute__((always_inline)) void
eliminate_tile(int vectors, int64_t count, const real *factors, int64_t factor_stride,
               const real *rows, int64_t stride, real *row)
{
    lanes left[ROW_VECTORS];
    for (int v = 0; v < vectors; v++)
        left[v] = ((const lanes *)row)[v];
    for (int64_t k = 0; k < count; k++) {
        real factor = factors[k * factor_stride];
        const lanes *other = (const lanes *)(rows + k * stride);
        for (int v = 0; v < vectors; v++)
            left[v] -= factor * other[v];
    }
    for (int v = 0; v < vectors; v++)
        ((lanes *)row)[v] = left[v];
}

static void eliminate(int64_t count, const real *factors, int64_t factor_stride, const real *rows,
                      int64_t stride, int64_t columns, real *row)
{
    int64_t j = 0;
    for (; j + ROW_VECTORS * LANES <= columns; j += ROW_VECTORS * LANES)
        eliminate_tile(ROW_VECTORS, count, factors, factor_stride, rows + j, stride, row + j);
    for (; j + 2 * LANES <= columns; j += 2 * LANES)
        eliminate_tile(2, count, factors, factor_stride, rows + j, stride, row + j);
    for (; j < columns; j += LANES)
        eliminate_tile(1, count, factors, factor_stride, rows + j, stride, row + j);
}

static void settle(int64_t columns, real divisor, real *row, real *rest)
{
    for (int64_t j = 0; j < columns; j += LANES) {
        lanes *at = (lanes *)(row + j);
        *at /= divisor;
        *(lanes *)(rest + j) -= *at * *at;
    }
}

/* As many chains as hide the latency of two operations a cycle, and fit the registers. */
static int multiply_adds(int64_t steps, real *sum)
{
    enum { CHAINS = 12 };
    lanes sums[CHAINS];
    const lanes factor = (lanes){0} + (real)0.5, addend = (lanes){0} + *sum + 1;
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++)
        sums[i] = addend + (real)i; /* no two are the same computation */
    for (int64_t step = 0; step < steps; step++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            sums[i] = sums[i] * factor + addend;
    for (int i = 1; i < CHAINS; i++)
        sums[0] += sums[i];
    *sum = sums[0][0];
    return CHAINS * LANES;
}

const simd R(simd) = {distances, exponentials,  largest,    eliminate,
                      settle,    multiply_adds, R(multiply)};
