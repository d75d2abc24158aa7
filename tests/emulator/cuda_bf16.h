/* SPDX-License-Identifier: BSD-3-Clause */
/* bfloat16 as in CUDA's header of this name: storage and conversions, to nearest, ties to even. */
#ifndef EMULATOR_CUDA_BF16_H
#define EMULATOR_CUDA_BF16_H

#include <cstdint>
#include <cstring>

struct __nv_bfloat16_raw {
    unsigned short x;
};

struct alignas(2) __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    return __nv_bfloat16(__nv_bfloat16_raw{bits});
}

static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}

static inline float __bfloat162float(__nv_bfloat16 x)
{
    uint32_t bits = (uint32_t)x.bits << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/* NaN becomes the one NaN that devices make. */
static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return __ushort_as_bfloat16(0x7fff);
    bits += 0x7fff + (bits >> 16 & 1);
    return __ushort_as_bfloat16((unsigned short)(bits >> 16));
}

static inline __nv_bfloat16 __float2bfloat16(float x)
{
    return __float2bfloat16_rn(x);
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}

static inline float __low2float(__nv_bfloat162 pair)
{
    return __bfloat162float(pair.x);
}

static inline float __high2float(__nv_bfloat162 pair)
{
    return __bfloat162float(pair.y);
}

#endif
