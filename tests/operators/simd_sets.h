/* SPDX-License-Identifier: BSD-3-Clause */
/* The instruction sets that this machine has (cpu/real.h), in the order of their widths. */
#ifndef SIMD_SETS_H
#define SIMD_SETS_H

#include "cpu/simd.h"

#define SIMD_OF(set) REAL_NAME(simd, REAL_TYPE, set)

extern const simd SIMD_OF(base);
#ifdef __x86_64__
extern const simd SIMD_OF(avx2), SIMD_OF(avx512);
#endif

typedef struct {
    const char *name;
    const simd *kernels;
    bool fuses; /* products with the sums they are added to */
} simd_set;

static simd_set sets[3];

/* Those the machine can run; returns their number. */
static inline int find_sets(void)
{
    int count = 0;
#ifdef __x86_64__
    sets[count++] = (simd_set){"base", &SIMD_OF(base), false};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        sets[count++] = (simd_set){"avx2", &SIMD_OF(avx2), true};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        sets[count++] = (simd_set){"avx512", &SIMD_OF(avx512), true};
#else
    sets[count++] = (simd_set){"base", &SIMD_OF(base), true};
#endif
    return count;
}

/* sum + a b as a set computes it. */
static inline real add_product(int set, real sum, real a, real b)
{
    volatile real product = a * b;
#ifdef REAL_F32
    return sets[set].fuses ? fmaf(a, b, sum) : sum + product;
#else
    return sets[set].fuses ? fma(a, b, sum) : sum + product;
#endif
}

/* Uniform in 0 .. 1: a linear congruential generator, Knuth's MMIX. */
static inline double random_unit(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ldexp((double)(state >> 11), -53);
}

#endif
