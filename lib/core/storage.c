/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounding to narrow types, in integer arithmetic on f32's bits: to nearest, ties to even. */
#include <math.h>
#include <string.h>

#include <attnum/attnum.h>

static const struct {
    double roundoff;
    int kept;     /* bits of f32's 23 kept */
    int exponent; /* of the smallest normal number; subnormals keep fewer bits */
    float limit;  /* from here on infinity */
} formats[ATN_STORAGE_COUNT] = {
    [ATN_STORAGE_BF16] = {0x1p-8, 7, -126, INFINITY},
    [ATN_STORAGE_F16] = {0x1p-11, 10, -14, 65520},
    [ATN_STORAGE_TF32] = {0x1p-11, 10, -126, INFINITY},
};

double atn_storage_roundoff(atn_storage storage)
{
    return (unsigned)storage < ATN_STORAGE_COUNT ? formats[storage].roundoff : 0;
}

/* To `kept` bits after the leading one; the carry may run into the exponent, which is right. */
static float round_bits(float x, int kept)
{
    uint32_t bits, dropped = 23 - (uint32_t)kept;
    memcpy(&bits, &x, sizeof bits);
    bits += (1u << (dropped - 1)) - 1 + (bits >> dropped & 1);
    bits &= ~((1u << dropped) - 1);
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* To a multiple of the smallest subnormal, 2^(exponent - kept): adding and taking away 1.5 2^23
 * times that number rounds to it. */
static float round_subnormal(float x, int kept, int exponent)
{
    volatile float shifted = x + ldexpf(1.5F, exponent - kept + 23);
    return shifted - ldexpf(1.5F, exponent - kept + 23);
}

static float round_one(atn_storage storage, float x)
{
    int kept = formats[storage].kept, exponent = formats[storage].exponent;
    if (!(fabsf(x) < INFINITY))
        return x;
    if (fabsf(x) >= formats[storage].limit)
        return copysignf(INFINITY, x);
    if (fabsf(x) >= ldexpf(1, exponent))
        return round_bits(x, kept);
    if (exponent == -126) /* f32's own subnormals: the bits dropped are the same */
        return round_bits(x, kept);
    return copysignf(round_subnormal(x, kept, exponent), x);
}

void atn_storage_round(atn_storage storage, int64_t count, float *values)
{
    if (storage == ATN_STORAGE_NATIVE || (unsigned)storage >= ATN_STORAGE_COUNT)
        return;
    for (int64_t i = 0; i < count; i++)
        values[i] = round_one(storage, values[i]);
}

/* ---- Types of memory ---- */

static double read_one(atn_dtype type, const void *from, int64_t i)
{
    uint32_t bits;
    uint16_t half;
    float value;
    switch (type) {
    case ATN_F64:
        return ((const double *)from)[i];
    case ATN_BF16:
        memcpy(&half, (const char *)from + 2 * i, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    case ATN_F16: {
        memcpy(&half, (const char *)from + 2 * i, sizeof half);
        int exponent = half >> 10 & 31, fraction = half & 1023;
        double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? ldexp(fraction, -24)
                                      : ldexp(fraction + 1024, exponent - 25);
        return half & 0x8000 ? -size : size;
    }
    default:
        return (double)((const float *)from)[i];
    }
}

/* The bits of a float that is one of the half precision's numbers. */
static uint16_t half_bits(float x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    int exponent;
    x = fabsf(x);
    if (isnan(x))
        return sign | 0x7e00;
    if (isinf(x))
        return sign | 0x7c00;
    if (x < 0x1p-14F)
        return (uint16_t)(sign | (int)ldexpf(x, 24));
    float fraction = frexpf(x, &exponent); /* 0.5 to 1 */
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexpf(fraction, 11) & 1023));
}

/* f64 to f32 such that rounding that once more to fewer bits is like rounding once: to odd. */
static float to_odd(double x)
{
    float near = (float)x;
    uint32_t bits;
    if ((double)near == x || !isfinite(near))
        return near;
    memcpy(&bits, &near, sizeof bits);
    if (bits & 1)
        return near;
    return nextafterf(near, (double)near < x ? INFINITY : -INFINITY);
}

static void write_one(atn_dtype type, void *to, int64_t i, double x)
{
    static const atn_storage storages[ATN_DTYPE_COUNT] = {
        [ATN_TF32] = ATN_STORAGE_TF32, [ATN_BF16] = ATN_STORAGE_BF16, [ATN_F16] = ATN_STORAGE_F16};
    if (type == ATN_F64) {
        ((double *)to)[i] = x;
        return;
    }
    bool narrow = storages[type] != ATN_STORAGE_NATIVE;
    float value = narrow ? to_odd(x) : (float)x;
    uint32_t bits;
    uint16_t half;
    atn_storage_round(storages[type], 1, &value);
    memcpy(&bits, &value, sizeof bits);
    half = type == ATN_F16 ? half_bits(value) : (uint16_t)(bits >> 16);
    if (type == ATN_BF16 && isnan(value))
        half |= 0x40; /* the bits kept must say NaN too */
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
