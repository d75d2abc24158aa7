/* SPDX-License-Identifier: BSD-3-Clause */
/* atn_convert against rounding by definition: the nearest multiple of the spacing, in doubles. */
#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include <attnum/attnum.h>

#include "data.h"

/* bits of the significand, the exponents of the smallest and the largest normal number. */
static const struct {
    int bits, lowest, highest;
} formats[ATN_DTYPE_COUNT] = {
    [ATN_F32] = {24, -126, 127}, [ATN_F64] = {53, -1022, 1023}, [ATN_TF32] = {11, -126, 127},
    [ATN_BF16] = {8, -126, 127}, [ATN_F16] = {11, -14, 15},
};

/* Exact but for the rint: the spacing is a power of two. */
static double rounded(atn_dtype dtype, double x)
{
    if (dtype == ATN_F64 || x == 0 || !isfinite(x))
        return x;
    int exponent = ilogb(x);
    exponent = exponent < formats[dtype].lowest ? formats[dtype].lowest : exponent;
    double spacing = ldexp(1, exponent - formats[dtype].bits + 1);
    double near = copysign(rint(fabs(x) / spacing) * spacing, x); /* ties to even */
    return fabs(near) < ldexp(1, formats[dtype].highest + 1) ? near : copysign(INFINITY, x);
}

/* There and back. */
static double converted(atn_dtype dtype, double x)
{
    uint64_t memory = 0x5555555555555555;
    double back;
    atn_convert(dtype, &memory, ATN_F64, &x, 1);
    atn_convert(ATN_F64, &back, dtype, &memory, 1);
    return back;
}

static bool same(double x, double y)
{
    return isnan(x) ? isnan(y) != 0 : x == y && !signbit(x) == !signbit(y);
}

/* The value of 16 bits, by the definition of the format. */
static double value_of(atn_dtype dtype, unsigned pattern)
{
    int fraction_bits = formats[dtype].bits - 1;
    int exponent = (int)(pattern >> fraction_bits & ((1u << (15 - fraction_bits)) - 1));
    int fraction = (int)(pattern & ((1u << fraction_bits) - 1));
    double size;
    if (exponent == (1 << (15 - fraction_bits)) - 1)
        size = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        size = ldexp(fraction, formats[dtype].lowest - fraction_bits);
    else
        size = ldexp((1 << fraction_bits) + fraction,
                     formats[dtype].lowest - fraction_bits + exponent - 1);
    return pattern >> 15 ? -size : size;
}

Test(convert, every_pattern_of_16_bits_there_and_back)
{
    static const atn_dtype narrow[] = {ATN_BF16, ATN_F16};
    for (int i = 0; i < 2; i++)
        for (unsigned pattern = 0; pattern < 65536; pattern++) {
            uint16_t bits = (uint16_t)pattern, again = 0, through = 0;
            double value, want = value_of(narrow[i], pattern);
            float single;
            atn_convert(ATN_F64, &value, narrow[i], &bits, 1);
            atn_convert(ATN_F32, &single, narrow[i], &bits, 1);
            atn_convert(narrow[i], &again, ATN_F64, &value, 1);
            atn_convert(narrow[i], &through, ATN_F32, &single, 1);
            cr_expect(same(value, want) && same((double)single, want), "%s %04x: %g, %g, not %g",
                      atn_dtype_name(narrow[i]), pattern, value, (double)single, want);
            if (isnan(want))
                cr_expect(isnan(value_of(narrow[i], again)) && isnan(value_of(narrow[i], through)),
                          "%s %04x: no NaN any more", atn_dtype_name(narrow[i]), pattern);
            else
                cr_expect(again == bits && through == bits, "%s %04x: comes back as %04x, %04x",
                          atn_dtype_name(narrow[i]), pattern, again, through);
        }
}

static void expect(atn_dtype dtype, double x)
{
    double got = converted(dtype, x), want = rounded(dtype, x);
    cr_expect(same(got, want), "%s: %a becomes %a, not %a", atn_dtype_name(dtype), x, got, want);
}

/* Every number of the 16-bit types, the midpoint to the next one, and the neighbours of both: a
 * midpoint moved by one bit of f64 would become a tie if it were first rounded to f32. */
Test(convert, ties_and_their_neighbours)
{
    static const atn_dtype narrow[] = {ATN_BF16, ATN_F16, ATN_TF32};
    for (int i = 0; i < 3; i++)
        for (unsigned pattern = 0; pattern < 0x7c00; pattern++) {
            atn_dtype of = narrow[i] == ATN_TF32 ? ATN_F16 : narrow[i];
            double low = value_of(of, pattern), high = value_of(of, pattern + 1);
            double middle = isinf(high) ? low * (1 + 0x1p-12) : (low + high) / 2;
            for (int sign = -1; sign <= 1; sign += 2) {
                expect(narrow[i], sign * low);
                expect(narrow[i], sign * middle);
                expect(narrow[i], sign * nextafter(middle, INFINITY));
                expect(narrow[i], sign * nextafter(middle, 0));
                expect(narrow[i], sign * nextafter(low, INFINITY));
            }
        }
}

/* From below the smallest subnormal to beyond the largest number, of all types. */
Test(convert, numbers_of_every_size)
{
    enum { PER_EXPONENT = 50 };
    uint64_t state = 5;
    for (int dtype = 0; dtype < ATN_DTYPE_COUNT; dtype++)
        for (int exponent = -160; exponent <= 140; exponent++)
            for (int i = 0; i < PER_EXPONENT; i++) {
                double x = ldexp(1 + (double)(data_next(&state) >> 12) * 0x1p-52, exponent);
                expect((atn_dtype)dtype, data_next(&state) & 1 ? x : -x);
            }
}

Test(convert, ends_of_the_range)
{
    static const double most_f16 = 65504, most_bf16 = 0x1.fep127, most_tf32 = 0x1.ffcp127;
    cr_expect_eq(converted(ATN_F16, most_f16), most_f16);
    cr_expect_eq(converted(ATN_F16, nextafter(65520, 0)), most_f16);
    cr_expect_eq(converted(ATN_F16, 65520), INFINITY);
    cr_expect_eq(converted(ATN_F16, -65520), -INFINITY);
    cr_expect_eq(converted(ATN_BF16, nextafter(0x1.ffp127, 0)), most_bf16);
    cr_expect_eq(converted(ATN_BF16, 0x1.ffp127), INFINITY);
    cr_expect_eq(converted(ATN_TF32, nextafter(0x1.ffep127, 0)), most_tf32);
    cr_expect_eq(converted(ATN_TF32, 0x1.ffep127), INFINITY);
    cr_expect_eq(converted(ATN_F32, DBL_MAX), INFINITY);
    cr_expect_eq(converted(ATN_BF16, -1e300), -INFINITY);
    for (int dtype = 0; dtype < ATN_DTYPE_COUNT; dtype++) {
        cr_expect(isnan(converted((atn_dtype)dtype, NAN)), "%s", atn_dtype_name((atn_dtype)dtype));
        cr_expect_eq(converted((atn_dtype)dtype, INFINITY), INFINITY);
        cr_expect_eq(converted((atn_dtype)dtype, -INFINITY), -INFINITY);
        cr_expect(same(converted((atn_dtype)dtype, -0.0), -0.0));
        cr_expect(same(converted((atn_dtype)dtype, -1e-320), dtype == ATN_F64 ? -1e-320 : -0.0));
    }
}

/* NaN whose only bits are those that bf16 lacks. */
Test(convert, nan_stays_nan)
{
    static const uint32_t patterns[] = {0x7f800001, 0xff800001, 0x7fc00000, 0x7f80ffff};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        for (int dtype = 0; dtype < ATN_DTYPE_COUNT; dtype++) {
            uint64_t memory;
            double back;
            atn_convert((atn_dtype)dtype, &memory, ATN_F32, &patterns[i], 1);
            atn_convert(ATN_F64, &back, (atn_dtype)dtype, &memory, 1);
            cr_expect(isnan(back), "%s: %08x", atn_dtype_name((atn_dtype)dtype), patterns[i]);
        }
}

/* Arrays between any two types: as one number at a time; nothing else is written. */
Test(convert, arrays_of_any_types)
{
    enum { COUNT = 9 };
    double numbers[COUNT];
    data_normal(3, COUNT, numbers);
    for (int from = 0; from < ATN_DTYPE_COUNT; from++)
        for (int to = 0; to < ATN_DTYPE_COUNT; to++) {
            unsigned char source[8 * COUNT], target[8 * COUNT + 1];
            double back[COUNT];
            size_t end = COUNT * atn_dtype_size((atn_dtype)to);
            memset(target, 0x5a, sizeof target);
            atn_convert((atn_dtype)from, source, ATN_F64, numbers, COUNT);
            atn_convert((atn_dtype)to, target, (atn_dtype)from, source, 0);
            cr_expect_eq(target[0], 0x5a, "nothing to convert");
            atn_convert((atn_dtype)to, target, (atn_dtype)from, source, COUNT);
            cr_expect_eq(target[end], 0x5a, "%d to %d writes too much", from, to);
            atn_convert(ATN_F64, back, (atn_dtype)to, target, COUNT);
            for (int i = 0; i < COUNT; i++)
                cr_expect_eq(back[i], rounded((atn_dtype)to, rounded((atn_dtype)from, numbers[i])),
                             "%d to %d", from, to);
        }
    double x = 1, y = 2;
    atn_convert((atn_dtype)ATN_DTYPE_COUNT, &y, ATN_F64, &x, 1);
    atn_convert(ATN_F64, &y, (atn_dtype)-1, &x, 1);
    cr_expect_eq(y, 2, "unknown types");
}
