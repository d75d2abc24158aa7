/* SPDX-License-Identifier: BSD-3-Clause */
/* One instruction set: simd_kernels.c and product_kernels.c are compiled once for each, with its
 * compiler flags and a macro that says for which; the compiler's own macros also say what the flags
 * of the whole build allow (-march=native). Widths beyond the registers' never occur, so no vector
 * is split. */
#ifndef CPU_SIMD_SET_H
#define CPU_SIMD_SET_H

#include "cpu/simd.h"

#if defined(SIMD_AVX512)
#define BYTES      64
#define SIMD(name) R(name##_avx512)
#elif defined(SIMD_AVX2)
#define BYTES      32
#define SIMD(name) R(name##_avx2)
#else
#define BYTES      16
#define SIMD(name) R(name##_base)
#endif

typedef real lanes __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));
enum { LANES = BYTES / sizeof(real) };

void SIMD(product)(const R(product_terms) * p);

#endif
