/* SPDX-License-Identifier: BSD-3-Clause */
/* The vectors of an instruction set, and their exponential. No vector is wider than a register, so
 * the compiler splits none. */
#ifndef CPU_SIMD_SET_H
#define CPU_SIMD_SET_H

#include <string.h>

#include "cpu/simd.h"
#include "cpu/simd_width.h"

#ifdef REAL_F32
#define EXP       EXP_F32
#define EXP_BELOW EXP_BELOW_F32 /* right for numbers up to 88 */
#define MAX       MAX_F32
#define MIN       MIN_F32
#define FMA       FMA_F32
typedef int32_t real_bits; /* a lane of the result of comparing */
#else
#define EXP       EXP_F64
#define EXP_BELOW EXP_F64
#define MAX       MAX_F64
#define MIN       MIN_F64
#define FMA       FMA_F64
typedef int64_t real_bits;
#endif

typedef real lanes __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));
typedef real_bits bits __attribute__((vector_size(BYTES), aligned(sizeof(real_bits)), may_alias));
enum { LANES = BYTES / sizeof(real) };
enum { LINE = 64 }; /* bytes of a cache line */

/* A vector's first `bytes`, and 0. */
static inline __attribute__((always_inline)) lanes load_first(size_t bytes, const real *x)
{
    lanes y = {0};
    if (bytes == BYTES)
        return *(const lanes *)x;
    memcpy(&y, x, bytes);
    return y;
}

static inline __attribute__((always_inline)) void store_first(size_t bytes, lanes x, real *to)
{
    if (bytes == BYTES)
        *(lanes *)to = x;
    else
        memcpy(to, &x, bytes);
}

/* Doubles, and as many real numbers. */
typedef double wide __attribute__((vector_size(BYTES), aligned(sizeof(double)), may_alias));
typedef int64_t wide_bits __attribute__((vector_size(BYTES), aligned(sizeof(int64_t)), may_alias));
enum { WIDE = BYTES / sizeof(double) };
typedef real some
    __attribute__((vector_size(WIDE * sizeof(real)), aligned(sizeof(real)), may_alias));

/* Without these intrinsics gcc 12 converts a vector in two halves. */
static inline wide widened(const real *a)
{
#if defined(SIMD_AVX512) && defined(REAL_F32)
    return _mm512_cvtps_pd(_mm256_loadu_ps(a));
#elif defined(SIMD_AVX2) && defined(REAL_F32)
    return _mm256_cvtps_pd(_mm_loadu_ps(a));
#else
    return __builtin_convertvector(*(const some *)a, wide);
#endif
}

/* Adds the second half of the sums to the first until one is left; `count`, a power of two, is
 * known to the compiler. */
static inline __attribute__((always_inline)) wide add_vectors(int count, wide *sums)
{
#pragma GCC unroll 8
    for (int half = count / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int w = 0; w < half; w++)
            sums[w] += sums[w + half];
    return sums[0];
}

/* The same, and then the lanes of that one. */
static inline __attribute__((always_inline)) double add_wide(int count, wide *sums)
{
    double ends[WIDE];
    wide sum = add_vectors(count, sums);
    memcpy(ends, &sum, sizeof ends);
    for (int half = WIDE / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            ends[i] += ends[i + half];
    return ends[0];
}

/* name(x): the sum of each vector's lanes, one vector for each lane of the result: halves are added
 * until one lane is left. */
#define DEFINE_ADD_ACROSS(name, vector, integers, integer, width)                                  \
    static inline __attribute__((always_inline)) vector name(vector x[width])                      \
    {                                                                                              \
        static const integer numbers[16] __attribute__((aligned(BYTES))) = {                       \
            0, width,     1, width + 1, 2, width + 2, 3, width + 3,                                \
            4, width + 4, 5, width + 5, 6, width + 6, 7, width + 7};                               \
        integers low = *(const integers *)numbers, high = low + (width) / 2;                       \
        _Pragma("GCC unroll 4") for (int half = (width) / 2; half > 0; half /= 2)                  \
            _Pragma("GCC unroll 8") for (int i = 0; i < half; i++)                                 \
        {                                                                                          \
            vector first, second;                                                                  \
            INTERLEAVE(width, first, x[i], x[i + half], low);                                      \
            INTERLEAVE(width, second, x[i], x[i + half], high);                                    \
            x[i] = first + second;                                                                 \
        }                                                                                          \
        return x[0];                                                                               \
    }

DEFINE_ADD_ACROSS(add_across, lanes, bits, real_bits, LANES)
DEFINE_ADD_ACROSS(add_across_wide, wide, wide_bits, int64_t, WIDE)

typedef real quad __attribute__((vector_size(16), aligned(sizeof(real)), may_alias));
enum { QUAD = 16 / sizeof(real) };

/* Transposes a QUAD x QUAD block. */
static inline void transpose_quads(quad rows[QUAD])
{
#ifdef REAL_F32
    quad ab_low = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5),
         ab_high = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7),
         cd_low = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5),
         cd_high = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    rows[0] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    rows[1] = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    rows[2] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    rows[3] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
#else
    quad first = rows[0];
    rows[0] = __builtin_shufflevector(first, rows[1], 0, 2);
    rows[1] = __builtin_shufflevector(first, rows[1], 1, 3);
#endif
}

void R(multiply)(const product_terms *p);
void R(solve)(const triangle_terms *t);
void R(transpose_padded)(int64_t rows, int64_t columns, const real *from, int64_t stride, real *to,
                         int64_t width);
double R(smallest_eigenvalue)(int count, const double *diagonal, const double *off_diagonal);

#endif
