/* SPDX-License-Identifier: BSD-3-Clause */
/* The instruction sets that this machine has (cpu/real.h), in the order of their widths. */
#ifndef SIMD_SETS_H
#define SIMD_SETS_H

#include <attnum/context.h>

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

static simd_set sets[ATN_ISA_COUNT];

/* Those the machine can run; returns their number. */
static inline int find_sets(void)
{
#ifdef __x86_64__
    static const simd *const kernels[ATN_ISA_COUNT] = {NULL, &SIMD_OF(base), &SIMD_OF(avx2),
                                                       &SIMD_OF(avx512)};
    const bool base_fuses = false;
#else
    static const simd *const kernels[ATN_ISA_COUNT] = {NULL, &SIMD_OF(base)};
    const bool base_fuses = true;
#endif
    int count = 0;
    for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++)
        if (atn_isa_choose((atn_isa)isa, NULL, NULL) == ATN_OK)
            sets[count++] = (simd_set){atn_isa_name((atn_isa)isa), kernels[isa],
                                       isa != ATN_ISA_BASE || base_fuses};
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
