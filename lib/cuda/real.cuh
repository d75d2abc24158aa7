/* SPDX-License-Identifier: BSD-3-Clause */
/* f32 and f64 from one source, as in cpu/real.h: the operators' files are compiled twice, once with
 * REAL_F32 and once with REAL_F64 defined. `real` is the type of the arithmetic; the type of the
 * caller's memory (f32, f64, bf16, f16) is an argument of a call, and every load and store
 * converts. */
#ifndef CUDA_REAL_CUH
#define CUDA_REAL_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

#include "core/internal.h"

#if defined(REAL_F32)
typedef float real;
#define R(name)       name##_f32
#define real_exp      expf
#define real_sqrt     sqrtf
#define real_cos      cosf
#define real_sin      sinf
#define real_abs      fabsf
#define real_max      fmaxf
#define REAL_INFINITY HUGE_VALF
#elif defined(REAL_F64)
typedef double real;
#define R(name)       name##_f64
#define real_exp      exp
#define real_sqrt     sqrt
#define real_cos      cos
#define real_sin      sin
#define real_abs      fabs
#define real_max      fmax
#define REAL_INFINITY HUGE_VAL
#else
#error "compile with REAL_F32 or REAL_F64"
#endif

/* a b + c, rounded once on a device, where nothing else is fused: for the sums that make up most of
 * the arithmetic. The emulator rounds twice, because its host may lack the instruction. */
static __device__ __forceinline__ real real_fma(real a, real b, real c)
{
#if defined ATN_EMULATED
    return a * b + c;
#elif defined REAL_F64
    return fma(a, b, c);
#else
    return fmaf(a, b, c);
#endif
}

/* Bytes of an element in the caller's memory. */
static __device__ __forceinline__ int64_t type_bytes(atn_dtype type)
{
    return type == ATN_F64 ? 8 : type == ATN_BF16 || type == ATN_F16 ? 2 : 4;
}

/* Element i of memory of a type. */
static __device__ __forceinline__ real real_load(const void *memory, atn_dtype type, int64_t i)
{
#ifdef REAL_F64
    (void)type;
    return static_cast<const double *>(memory)[i];
#else
    if (type == ATN_BF16)
        return __bfloat162float(static_cast<const __nv_bfloat16 *>(memory)[i]);
    if (type == ATN_F16)
        return __half2float(static_cast<const __half *>(memory)[i]);
    return static_cast<const float *>(memory)[i];
#endif
}

static __device__ __forceinline__ void real_store(void *memory, atn_dtype type, int64_t i,
                                                  real value)
{
#ifdef REAL_F64
    (void)type;
    static_cast<double *>(memory)[i] = value;
#else
    if (type == ATN_BF16)
        static_cast<__nv_bfloat16 *>(memory)[i] = __float2bfloat16_rn(value);
    else if (type == ATN_F16)
        static_cast<__half *>(memory)[i] = __float2half_rn(value);
    else
        static_cast<float *>(memory)[i] = value;
#endif
}

/* A factor of a product rounded to tf32: 11 bits, to nearest, ties away from zero, as the tensor
 * cores' conversion rounds. */
static __device__ __forceinline__ real real_factor(bool tf32, real x)
{
#ifdef REAL_F64
    (void)tf32;
    return x;
#else
    if (!tf32 || !isfinite(x))
        return x;
    return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
#endif
}

#endif
