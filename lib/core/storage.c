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
