/* SPDX-License-Identifier: BSD-3-Clause */
/* f32 and f64 from one source, for several instruction sets: every .c file of this folder is
 * compiled with REAL_F32 or REAL_F64 defined (those for bf16 with REAL_BF16, see bf16.h), and on
 * x86-64 without or with SIMD_AVX2, SIMD_AVX512 or, of bf16 alone, SIMD_AMX, too, and the
 * compiler's flags for it. `real` is the element type, R(name) the name of this copy; the few BLAS
 * and LAPACK calls in use have one name each here. The set changes only the speed, and the last
 * bits of the operations that simd.h fuses.
 */
#ifndef CPU_REAL_H
#define CPU_REAL_H

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdint.h>

#if defined(REAL_F32)
typedef float real;
#define REAL_TYPE    f32
#define REAL_DTYPE   ATN_F32
#define REAL_NAN     ((real)NAN)
#define real_exp     expf
#define real_abs     fabsf
#define real_sqrt    sqrtf
#define cblas_trmm   cblas_strmm
#define lapack_syevd LAPACKE_ssyevd_work
#define lapack_geqrf LAPACKE_sgeqrf_work
#define lapack_orgqr LAPACKE_sorgqr_work
#define lapack_pstrf LAPACKE_spstrf_work
#elif defined(REAL_F64)
typedef double real;
#define REAL_TYPE    f64
#define REAL_DTYPE   ATN_F64
#define REAL_NAN     ((real)NAN)
#define real_exp     exp
#define real_abs     fabs
#define real_sqrt    sqrt
#define cblas_trmm   cblas_dtrmm
#define lapack_syevd LAPACKE_dsyevd_work
#define lapack_geqrf LAPACKE_dgeqrf_work
#define lapack_orgqr LAPACKE_dorgqr_work
#define lapack_pstrf LAPACKE_dpstrf_work
#elif defined(REAL_BF16)
typedef uint16_t real; /* of memory only: bf16.h computes */
#define REAL_TYPE  bf16
#define REAL_DTYPE ATN_BF16
#define REAL_NAN   ((real)0x7fc0)
#else
#error "compile with REAL_F32, REAL_F64 or REAL_BF16"
#endif

#if defined(SIMD_AMX)
#define SIMD_SET amx
#elif defined(SIMD_AVX512)
#define SIMD_SET avx512
#elif defined(SIMD_AVX2)
#define SIMD_SET avx2
#else
#define SIMD_SET base
#endif

#define REAL_JOIN(name, type, set) name##_##type##_##set
#define REAL_NAME(name, type, set) REAL_JOIN(name, type, set)
#define R(name)                    REAL_NAME(name, REAL_TYPE, SIMD_SET)

#endif
