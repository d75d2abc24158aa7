/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled once per instruction set, with its compiler flags and a macro that says for which: the
 * compiler's own macros also say what the flags of the whole build allow (-march=native). Widths
 * beyond the registers' never occur, so no vector is split. */
#include "cpu/simd.h"

#include <sleef.h>
#include <string.h>

#if defined(SIMD_AVX512)
#define BYTES      64
#define TOKENS     4 /* 16 sums, 4 rows of landmarks and what is under way, in 32 registers */
#define VECTORS    4
#define SIMD(name) R(name##_avx512)
#define EXP_F32    Sleef_expf16_u10avx512f
#define EXP_F64    Sleef_expd8_u10avx512f
#elif defined(SIMD_AVX2)
#define BYTES      32
#define TOKENS     4 /* 8 sums in 16 registers */
#define VECTORS    2
#define SIMD(name) R(name##_avx2)
#define EXP_F32    Sleef_expf8_u10avx2
#define EXP_F64    Sleef_expd4_u10avx2
#else
#define BYTES      16
#define TOKENS     2
#define VECTORS    4
#define SIMD(name) R(name##_base)
#define EXP_F32    Sleef_expf4_u10
#define EXP_F64    Sleef_expd2_u10
#endif

#ifdef REAL_F32
#define EXP EXP_F32
#else
#define EXP EXP_F64
#endif

typedef real lanes __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));
enum { LANES = BYTES / sizeof(real) };
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

const simd SIMD(simd) = {distances, exponentials, largest};
