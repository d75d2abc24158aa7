/* SPDX-License-Identifier: BSD-3-Clause */
/* The width of an instruction set's registers, and operations on them that have no name of their
 * own in the compiler: the larger and the smaller of two numbers (b where one of them is NaN), the
 * exponential, multiply-adds, and lanes of two vectors. */
#ifndef CPU_SIMD_WIDTH_H
#define CPU_SIMD_WIDTH_H

#include <sleef.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(SIMD_AVX512)
#include <immintrin.h>
#define BYTES   64
#define MAX_F32 _mm512_max_ps
#define MAX_F64 _mm512_max_pd
#define MIN_F32 _mm512_min_ps
#define MIN_F64 _mm512_min_pd
#define EXP_F32 exp_f32
#define EXP_F64 Sleef_expd8_u10avx512f
#elif defined(SIMD_AVX2)
#include <immintrin.h>
#define BYTES   32
#define MAX_F32 _mm256_max_ps
#define MAX_F64 _mm256_max_pd
#define MIN_F32 _mm256_min_ps
#define MIN_F64 _mm256_min_pd
#define EXP_F32 exp_f32
#define EXP_F64 Sleef_expd4_u10avx2
#else
#define BYTES         16
/* clang-format off */
#define WHERE(mask, a, b) (((__typeof__(mask))(a) & (mask)) | ((__typeof__(mask))(b) & ~(mask)))
/* clang-format on */
#define MAX_F32(a, b) WHERE((a) > (b), a, b)
#define MAX_F64       MAX_F32
#define MIN_F32(a, b) WHERE((a) < (b), a, b)
#define MIN_F64       MIN_F32
#define EXP_F32       Sleef_expf4_u10
#define EXP_F64       Sleef_expd2_u10
#endif

#if defined(SIMD_AVX2) || defined(SIMD_AVX512)
typedef float exp_lanes __attribute__((vector_size(BYTES), may_alias));
typedef int32_t exp_bits __attribute__((vector_size(BYTES), may_alias));

/* Whether any of x is NaN or larger in magnitude than `most`, so that a result may be no normal
 * number. AVX-512 needs no such distinction: always true. */
static inline bool is_extreme(exp_lanes x, float most)
{
#ifdef SIMD_AVX512
    (void)x, (void)most;
    return true;
#else
    const exp_bits magnitude = (exp_bits){0} + 0x7fffffff;
    const exp_lanes limit = (exp_lanes){0} + most, size = (exp_lanes)((exp_bits)x & magnitude);
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)size, (__m256)limit, _CMP_NLE_UQ)) != 0;
#endif
}

/* 2^k y for an integer k and y between 1/2 and 2, whose exponent is stored as 126 or 127. Unless k
 * is extreme, AVX2 adds it to that: for |k| <= 125 the sum is 1 .. 252, that of a normal number. */
static inline exp_lanes scaled_f32(bool extreme, exp_lanes y, exp_lanes k)
{
#ifdef SIMD_AVX512
    (void)extreme;
    return (exp_lanes)_mm512_scalef_ps((__m512)y, (__m512)k);
#else
    exp_bits exponent = (exp_bits)_mm256_cvtps_epi32((__m256)k), half = exponent >> 1;
    if (!extreme)
        return (exp_lanes)((exp_bits)y + (exponent << 23));
    /* in two steps, because 2^k may be beyond the normal numbers where the result is not */
    return y * (exp_lanes)((half + 127) << 23) * (exp_lanes)((exponent - half + 127) << 23);
#endif
}

/* exp(x) of f32, at most 0.9 ulp (every argument was tried), in two thirds of the time of SLEEF's,
 * whose calls save no registers and load constants anew: 2^k exp(r), k the integer that is nearest
 * to x / log(2), by a polynomial for exp(r) whose relative error on |r| <= log(2) / 2 is below
 * 4e-9. Fused multiply-adds make r and the last two steps as exact as they are. Without `any`, the
 * result is arbitrary where x is above 88 or NaN. */
static inline __attribute__((always_inline)) exp_lanes exp_up_to(bool any, exp_lanes x)
{
    const exp_lanes zero = {0};
    const float shift = 0x1.8p23f; /* numbers of this size are the integers */
    const float log_2 = 0x1.62e4p-1f, log_2_rest = 0x1.7f7d1cp-20f;
    bool extreme = is_extreme(x, 86); /* 86 / log(2) is below 125 */
    if (extreme)
        x = (exp_lanes)MAX_F32(zero - 104, x); /* 0 below */
    if (extreme && any)
        x = (exp_lanes)MIN_F32(zero + 89, x); /* infinity above */
    exp_lanes shifted = x * 0x1.715476p0f + shift, k = shifted - shift;
    exp_lanes r = (x - k * log_2) - k * log_2_rest;
    exp_lanes y = zero + 0x1.6a23dp-10f;
    y = y * r + 0x1.123a2p-7f;
    y = y * r + 0x1.5558f2p-5f;
    y = y * r + 0x1.555492p-3f;
    y = y * r + 0x1.fffffcp-2f;
    y = y * r + 1;
    y = y * r + 1;
    return scaled_f32(extreme, y, k);
}

static inline exp_lanes exp_f32(exp_lanes x)
{
    return exp_up_to(true, x);
}

static inline exp_lanes exp_f32_below(exp_lanes x)
{
    return exp_up_to(false, x);
}

/* 2^x of f32, at most 0.9 ulp (every argument was tried): 2^k 2^f, k the integer that is nearest to
 * x, by a polynomial for 2^f as above. */
static inline exp_lanes exp2_f32(exp_lanes x)
{
    const exp_lanes zero = {0};
    bool extreme = is_extreme(x, 125);
#ifdef SIMD_AVX512 /* vscalefps takes any k, and vreduceps of an infinity is 0 */
    exp_lanes f = (exp_lanes)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT), k = x - f;
#else
    if (extreme)
        x = (exp_lanes)MIN_F32(zero + 128, MAX_F32(zero - 150, x)); /* infinity, 0 beyond these */
    exp_lanes k = (exp_lanes)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT), f = x - k;
#endif
    exp_lanes y = zero + 0x1.41787ap-13f;
    y = y * f + 0x1.5f0956p-10f;
    y = y * f + 0x1.3b2dd4p-7f;
    y = y * f + 0x1.c6af7ap-5f;
    y = y * f + 0x1.ebfbdcp-3f;
    y = y * f + 0x1.62e43p-1f;
    y = y * f + 1;
    return scaled_f32(extreme, y, k);
}

/* exp(c x) is EXP_OF_F32(c LOG_OF_E_F32, x): a power of 2 takes three operations fewer than exp
 * (two in AVX2) and is as exact where c x has to be rounded. */
#define LOG_OF_E_F32          1.4426950408889634
#define EXP_OF_F32(factor, x) exp2_f32((exp_lanes)((factor) * (x)))
#define EXP_BELOW_F32         exp_f32_below
#else
#define LOG_OF_E_F32          1
#define EXP_BELOW_F32         EXP_F32
#define EXP_OF_F32(factor, x) EXP_F32((factor) * (x))
#endif

/* a b + c for a number a and vectors b and c, fused if the set has such an instruction. gcc fuses
 * every product and, told to by name, would keep fewer sums in registers; clang must be told to
 * where a product is in several sums. */
#if defined(__clang__) && defined(SIMD_AVX512)
#define FMA_F32(a, b, c) _mm512_fmadd_ps(_mm512_set1_ps(a), b, c)
#define FMA_F64(a, b, c) _mm512_fmadd_pd(_mm512_set1_pd(a), b, c)
#elif defined(__clang__) && defined(SIMD_AVX2)
#define FMA_F32(a, b, c) _mm256_fmadd_ps(_mm256_set1_ps(a), b, c)
#define FMA_F64(a, b, c) _mm256_fmadd_pd(_mm256_set1_pd(a), b, c)
#else
#define FMA_F32(a, b, c) ((a) * (b) + (c))
#define FMA_F64          FMA_F32
#endif

/* y = the lanes with these numbers, where a's are counted from 0 on and b's from `width` on. Clang
 * makes a shuffle of the loop; gcc does not. */
#ifdef __clang__
#define INTERLEAVE(width, y, a, b, numbers)                                                        \
    for (int lane = 0; lane < (width); lane++)                                                     \
    y[lane] = numbers[lane] < (width) ? a[numbers[lane]] : b[numbers[lane] - (width)]
#else
#define INTERLEAVE(width, y, a, b, numbers) y = __builtin_shuffle(a, b, numbers)
#endif

#endif
