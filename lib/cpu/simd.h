/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops that are worth the widest vectors a processor has: compiled once per instruction set
 * (simd_kernels.c) and chosen when they are called. Apart from exp, which is SLEEF's (at most 1
 * ulp), all instruction sets give the same bits: no operation is fused, no sum reordered. */
#ifndef CPU_SIMD_H
#define CPU_SIMD_H

#include "cpu/real.h"

typedef struct {
    /* |x_i - l_j|^2 of p tokens and `columns` landmarks, every one a sum over the coordinates in
     * order: out is p x columns. transposed holds the landmarks column by column, d x columns;
     * columns is a multiple of SIMD_COLUMNS. */
    void (*distances)(int64_t p, int64_t d, const real *x, int64_t x_stride, const real *transposed,
                      int64_t columns, real *out, int64_t out_stride);
    /* x_i = exp(factor (x_i - shift)) */
    void (*exponentials)(int64_t count, real factor, real shift, real *x);
    /* The largest of them and of `least`, NaN left out. */
    real (*largest)(int64_t count, const real *x, real least);
    /* row -= factor_0 row_0 + factor_1 row_1 + ..., product after product in this order. `columns`
     * is a multiple of SIMD_COLUMNS. */
    void (*eliminate)(int64_t count, const real *factors, int64_t factor_stride, const real *rows,
                      int64_t stride, int64_t columns, real *row);
    /* row_j /= divisor, then rest_j -= row_j^2; columns as above. */
    void (*settle)(int64_t columns, real divisor, real *row, real *rest);
} R(simd);
typedef R(simd) simd;

enum { SIMD_COLUMNS = 16 };

extern const simd R(simd_base);
#ifdef __x86_64__
extern const simd R(simd_avx2), R(simd_avx512);
#endif

/* The widest that this processor has. */
static inline const simd *R(simd_widest)(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return &R(simd_avx512);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &R(simd_avx2);
#endif
    return &R(simd_base);
}

#endif
