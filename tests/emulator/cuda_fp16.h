/* SPDX-License-Identifier: BSD-3-Clause */
/* IEEE half as in CUDA's header of this name: storage and conversions, to nearest, ties to even. */
#ifndef EMULATOR_CUDA_FP16_H
#define EMULATOR_CUDA_FP16_H

#include <cmath>
#include <cstdint>
#include <cstring>

struct __half_raw {
    unsigned short x;
};

struct alignas(2) __half {
    unsigned short bits;
    __half() = default;
    __half(__half_raw raw) : bits(raw.x) {}
};

struct alignas(4) __half2 {
    __half x, y;
};

typedef __half half;
typedef __half2 half2;

static inline __half __ushort_as_half(unsigned short bits)
{
    return __half(__half_raw{bits});
}

static inline unsigned short __half_as_ushort(__half x)
{
    return x.bits;
}

static inline float __half2float(__half x)
{
    int exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
    float size;
    if (exponent == 31)
        size = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        size = std::ldexp((float)fraction, -24);
    else
        size = std::ldexp((float)(1024 + fraction), exponent - 25);
    return std::copysign(size, x.bits >> 15 ? -1.0F : 1.0F);
}

/* Finite |x| < 65520, in units of the last place; the carry runs into the exponent, as it should.
 * nearbyint rounds to even. */
static inline unsigned __emulator_half_bits(float size)
{
    int exponent = size < 0x1p-14F ? -14 : std::ilogb(size);
    unsigned units = (unsigned)std::nearbyint(std::ldexp(size, 10 - exponent));
    return units + ((unsigned)(exponent + 14) << 10);
}

/* NaN becomes the one NaN that devices make; from 65520 on infinity. */
static inline __half __float2half_rn(float x)
{
    unsigned sign = std::signbit(x) ? 0x8000 : 0, bits;
    if (std::isnan(x))
        return __ushort_as_half(0x7fff);
    bits = std::fabs(x) >= 65520 ? 0x7c00 : __emulator_half_bits(std::fabs(x));
    return __ushort_as_half((unsigned short)(sign | bits));
}

static inline __half __float2half(float x)
{
    return __float2half_rn(x);
}

static inline __half2 __floats2half2_rn(float x, float y)
{
    return {__float2half_rn(x), __float2half_rn(y)};
}

static inline float __low2float(__half2 pair)
{
    return __half2float(pair.x);
}

static inline float __high2float(__half2 pair)
{
    return __half2float(pair.y);
}

#endif
