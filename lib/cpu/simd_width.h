/* SPDX-License-Identifier: BSD-3-Clause */
/* The width of an instruction set's registers, and SLEEF's exponential for them. */
#ifndef CPU_SIMD_WIDTH_H
#define CPU_SIMD_WIDTH_H

#include <sleef.h>

#if defined(SIMD_AVX512)
#define BYTES   64
#define EXP_F32 Sleef_expf16_u10avx512f
#define EXP_F64 Sleef_expd8_u10avx512f
#elif defined(SIMD_AVX2)
#define BYTES   32
#define EXP_F32 Sleef_expf8_u10avx2
#define EXP_F64 Sleef_expd4_u10avx2
#else
#define BYTES   16
#define EXP_F32 Sleef_expf4_u10
#define EXP_F64 Sleef_expd2_u10
#endif

#endif
