/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated narrow types against the rounding of lib/: all 2^16 patterns, and the numbers
 * halfway between neighbours and next to that. */
#include <criterion/criterion.h>

#include <cmath>
#include <cstring>

#include <attnum/attnum.h>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

static float of_bits(uint32_t bits)
{
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

static unsigned short bf16(float x)
{
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

static unsigned short f16(float x)
{
    return __half_as_ushort(__float2half_rn(x));
}

static float wide_bf16(unsigned short bits)
{
    return __bfloat162float(__ushort_as_bfloat16(bits));
}

static float wide_f16(unsigned short bits)
{
    return __half2float(__ushort_as_half(bits));
}

static const struct {
    const char *name;
    atn_storage storage;
    unsigned short (*narrow)(float);
    float (*wide)(unsigned short);
    unsigned short infinity;
} types[] = {
    {"bf16", ATN_STORAGE_BF16, bf16, wide_bf16, 0x7f80},
    {"f16", ATN_STORAGE_F16, f16, wide_f16, 0x7c00},
};

/* What becomes of x, against lib/, to the sign of zero. */
static bool rounds_right(size_t type, float x)
{
    float want = x, got = types[type].wide(types[type].narrow(x));
    atn_storage_round(types[type].storage, 1, &want);
    return bits_of(got) == bits_of(want) || (std::isnan(got) && std::isnan(want));
}

Test(emulator, narrow_patterns)
{
    for (size_t type = 0; type < 2; type++) {
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            float x = types[type].wide((unsigned short)bits);
            bool nan = (bits & 0x7fff) > types[type].infinity;
            cr_assert(std::isnan(x) == nan, "%s %#x", types[type].name, bits);
            cr_assert(types[type].narrow(x) == (nan ? 0x7fff : bits), "%s %#x", types[type].name,
                      bits);
            cr_assert(rounds_right(type, x), "%s %#x", types[type].name, bits);
        }
    }
    cr_expect(wide_f16(0x3c00) == 1 && wide_f16(0xc000) == -2 && wide_f16(1) == 0x1p-24F &&
              wide_f16(0x7bff) == 65504 && std::isinf(wide_f16(0xfc00)));
    cr_expect(wide_bf16(0x3f80) == 1 && wide_bf16(0xc000) == -2 && wide_bf16(1) == 0x1p-133F);
}

Test(emulator, narrow_roundings)
{
    for (size_t type = 0; type < 2; type++) {
        for (uint32_t bits = 0; bits < types[type].infinity; bits++) {
            float low = types[type].wide((unsigned short)bits);
            float high = types[type].wide((unsigned short)(bits + 1));
            float middle = std::isinf(high) ? (type ? 65520 : 0x1.ffp127F) : low / 2 + high / 2;
            uint32_t at = bits_of(middle);
            for (uint32_t neighbour = at - 1; neighbour != at + 2; neighbour++) {
                float x = of_bits(neighbour);
                bool up = x > middle || (x == middle && bits % 2 == 1);
                cr_assert(types[type].narrow(x) == bits + up, "%s %a", types[type].name, (double)x);
                cr_assert(rounds_right(type, x) && rounds_right(type, -x), "%s %a",
                          types[type].name, (double)x);
            }
        }
        for (uint64_t bits = 0; bits < 0x100000000; bits += 65537 * 13 / 2)
            cr_assert(rounds_right(type, of_bits((uint32_t)bits)), "%#x", (uint32_t)bits);
    }
}

Test(emulator, narrow_pairs)
{
    __nv_bfloat162 b = __floats2bfloat162_rn(1.5F, -2);
    __half2 h = __floats2half2_rn(1.5F, -2);
    cr_expect(__low2float(b) == 1.5F && __high2float(b) == -2 && sizeof b == 4 && sizeof b.x == 2);
    cr_expect(__low2float(h) == 1.5F && __high2float(h) == -2 && sizeof h == 4 && sizeof h.x == 2);
}
