/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounding to narrow types, in integer arithmetic on f32's bits: to nearest, ties to even. */
#include <math.h>
#include <string.h>

#include <attnum/attnum.h>

/* The constants for rounding to a type. Below `normal` its numbers are the multiples of the
 * smallest subnormal, to which adding and then subtracting `shift`, 1.5 2^23 times that number,
 * rounds; a type with f32's exponents drops the same bits of subnormals as of normal numbers. */
typedef struct {
    double roundoff;
    uint32_t dropped; /* how many of f32's bits are dropped */
    float normal, shift;
    float limit; /* from here on infinity */
} storage_format;

static const storage_format formats[ATN_STORAGE_COUNT] = {
    [ATN_STORAGE_BF16] = {0x1p-8, 16, 0, 0, INFINITY},
    [ATN_STORAGE_F16] = {0x1p-11, 13, 0x1p-14F, 0x1.8p-1F, 65520},
    [ATN_STORAGE_TF32] = {0x1p-11, 13, 0, 0, INFINITY},
};

double atn_storage_roundoff(atn_storage storage)
{
    return (unsigned)storage < ATN_STORAGE_COUNT ? formats[storage].roundoff : 0;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float round_one(const storage_format *f, float x)
{
    float size = fabsf(x);
    if (!(size < f->limit))
        return size >= f->limit ? copysignf(INFINITY, x) : x;
    if (size < f->normal)
        return copysignf((x + f->shift) - f->shift, x);
    /* The carry may propagate into the exponent, as it should. */
    uint32_t bits = bits_of(x), one = UINT32_C(1) << f->dropped;
    return float_of((bits + one / 2 - 1 + (bits >> f->dropped & 1)) & ~(one - 1));
}

void atn_storage_round(atn_storage storage, int64_t count, float *values)
{
    if (storage == ATN_STORAGE_NATIVE || (unsigned)storage >= ATN_STORAGE_COUNT)
        return;
    for (int64_t i = 0; i < count; i++)
        values[i] = round_one(&formats[storage], values[i]);
}

/* ---- Types of memory ---- */

static uint16_t half_at(const void *from, int64_t i)
{
    uint16_t half;
    memcpy(&half, (const char *)from + 2 * i, sizeof half);
    return half;
}

/* A number of f16: an exponent field of 1 means 2^-14, in f32 2^-126. Subnormals, whose exponent is
 * 0, are multiples of 2^-24. */
static float half_value(uint16_t half)
{
    uint32_t size = half & 0x7fff, sign = (uint32_t)(half & 0x8000) << 16;
    if (size < 0x400)
        return copysignf((float)size * 0x1p-24F, float_of(sign));
    if (size < 0x7c00)
        return float_of(sign | ((size << 13) + (UINT32_C(112) << 23)));
    return float_of(sign | UINT32_C(0xff) << 23 | size << 13);
}

/* The bits of a float that is one of f16's numbers. */
static uint16_t half_bits(float x)
{
    uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000;
    if (isnan(x))
        return (uint16_t)(sign | 0x7e00);
    if (isinf(x))
        return (uint16_t)(sign | 0x7c00);
    if (fabsf(x) < 0x1p-14F)
        return (uint16_t)(sign | (uint32_t)(fabsf(x) * 0x1p24F));
    return (uint16_t)(sign | ((bits & 0x7fffffff) - (UINT32_C(112) << 23)) >> 13);
}

static double read_one(atn_dtype type, const void *from, int64_t i)
{
    switch (type) {
    case ATN_F64:
        return ((const double *)from)[i];
    case ATN_BF16:
        return (double)float_of((uint32_t)half_at(from, i) << 16);
    case ATN_F16:
        return (double)half_value(half_at(from, i));
    default:
        return (double)((const float *)from)[i];
    }
}

/* Rounds f64 to f32 to odd, so that rounding again to fewer bits is like rounding once. */
static float to_odd(double x)
{
    float near = (float)x;
    uint32_t bits = bits_of(near);
    if ((double)near == x || !isfinite(near) || bits & 1)
        return near;
    return float_of(fabs((double)near) < fabs(x) ? bits + 1 : bits - 1);
}

static void write_one(atn_dtype type, void *to, int64_t i, double x)
{
    static const atn_storage storages[ATN_DTYPE_COUNT] = {
        [ATN_TF32] = ATN_STORAGE_TF32, [ATN_BF16] = ATN_STORAGE_BF16, [ATN_F16] = ATN_STORAGE_F16};
    if (type == ATN_F64) {
        ((double *)to)[i] = x;
        return;
    }
    float value = (float)x;
    if (storages[type] != ATN_STORAGE_NATIVE)
        value = round_one(&formats[storages[type]], to_odd(x));
    uint16_t half = type == ATN_F16 ? half_bits(value) : (uint16_t)(bits_of(value) >> 16);
    if (type == ATN_BF16 && isnan(value))
        half |= 0x40; /* the bits that are kept must be a NaN, too */
    if (type == ATN_BF16 || type == ATN_F16)
        memcpy((char *)to + 2 * i, &half, sizeof half);
    else
        memcpy((char *)to + 4 * i, &value, sizeof value);
}

void atn_convert(atn_dtype to_type, void *to, atn_dtype from_type, const void *from, int64_t count)
{
    if (!atn_dtype_size(to_type) || !atn_dtype_size(from_type))
        return;
    for (int64_t i = 0; i < count; i++)
        write_one(to_type, to, i, read_one(from_type, from, i));
}
