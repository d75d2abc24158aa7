/* SPDX-License-Identifier: BSD-3-Clause */
/* The instruction sets of simd.h that this machine has. */
#ifndef SIMD_SETS_H
#define SIMD_SETS_H

#include <stdbool.h>

#include "cpu/simd.h"

static struct {
    const char *name;
    const simd *kernels;
    bool fuses; /* products with the sums they are added to */
} sets[3];

/* Those the machine can run; returns their number. */
static inline int find_sets(void)
{
    int count = 0;
    sets[count].name = "base";
#ifdef __x86_64__
    sets[count].fuses = false;
#else
    sets[count].fuses = true;
#endif
    sets[count++].kernels = &R(simd_base);
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        sets[count].name = "avx2";
        sets[count].fuses = true;
        sets[count++].kernels = &R(simd_avx2);
    }
    if (__builtin_cpu_supports("avx512f")) {
        sets[count].name = "avx512";
        sets[count].fuses = true;
        sets[count++].kernels = &R(simd_avx512);
    }
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
