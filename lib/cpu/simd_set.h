/* SPDX-License-Identifier: BSD-3-Clause */
/* The vectors of an instruction set. Widths beyond the registers' never occur, so none is split. */
#ifndef CPU_SIMD_SET_H
#define CPU_SIMD_SET_H

#include "cpu/simd.h"

#if defined(SIMD_AVX512)
#define BYTES 64
#elif defined(SIMD_AVX2)
#define BYTES 32
#else
#define BYTES 16
#endif

typedef real lanes __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));
enum { LANES = BYTES / sizeof(real) };

void R(multiply)(const product_terms *p);
void R(solve)(const triangle_terms *t);
void R(transpose_padded)(int64_t rows, int64_t columns, const real *from, int64_t stride, real *to,
                         int64_t width);

#endif
