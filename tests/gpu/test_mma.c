/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensor-core products and the loads that feed them, against dense products. Entries are small
 * integers, which every type holds and every sum keeps exactly: what differs is a wrong place. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "probes.h"

static const char *const names[PROBE_TYPES] = {"bf16", "f16", "tf32"};

static int inner_of(int type)
{
    return type == PROBE_TF32 ? 8 : 16;
}

/* No two rows, columns or signs alike. */
static void fill(int count, int seed, float *x)
{
    unsigned state = 2463534242u + (unsigned)seed;
    for (int i = 0; i < count; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        x[i] = (float)((int)(state >> 8 & 127) - 63);
    }
}

static void expect_product(const char *what, int type, const float *a, const float *b,
                           const float *before, const float *c)
{
    int inner = inner_of(type);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float want = before[i * 8 + j];
            for (int k = 0; k < inner; k++)
                want += a[i * inner + k] * b[k * 8 + j];
            cr_expect(c[i * 8 + j] == want, "%s, %s: C[%d][%d] is %g, not %g", what, names[type], i,
                      j, c[i * 8 + j], want);
        }
}

Test(mma, products_of_documented_fragments)
{
    for (int type = 0; type < PROBE_TYPES; type++)
        for (int seed = 0; seed < 3; seed++) {
            float a[256], b[128], before[128], c[128];
            fill(256, seed, a);
            fill(128, seed + 10, b);
            fill(128, seed + 20, before);
            for (int i = 0; i < 128; i++)
                c[i] = before[i];
            cr_assert_eq(probe_product(type, a, b, c), 0);
            expect_product("by element", type, a, b, before, c);
        }
}

Test(mma, products_of_what_was_copied_and_loaded)
{
    for (int type = 0; type < PROBE_TYPES; type++)
        for (int transposed = 0; transposed < (type == PROBE_TF32 ? 1 : 2); transposed++) {
            int inner = inner_of(type);
            float a[256], b[128], rows[128], before[128], c[128];
            fill(256, 1, a);
            fill(128, 2, b);
            fill(128, 3, before);
            for (int i = 0; i < 128; i++) {
                c[i] = before[i];
                rows[i] = transposed ? b[i] : b[i % inner * 8 + i / inner];
            }
            cr_assert_eq(probe_loads(type, transposed, a, rows, c), 0);
            expect_product(transposed ? "transposed" : "loaded", type, a, b, before, c);
        }
}

/* Exactly, and the largest of what is added. */
static double exact_sum(int inner, const float *a, const float *b, float before, double *largest)
{
    double sum = before;
    *largest = fabs((double)before);
    for (int k = 0; k < inner; k++) {
        double product = (double)a[k] * (double)b[8 * k];
        sum += product;
        *largest = fmax(*largest, fabs(product));
    }
    return sum;
}

/* What tensor cores cut off is less than the last place of the largest for each operand, of which
 * no more than all are added at once, and for their sum (mma.cuh); here in such units, on a device
 * as it may be. */
Test(mma, sums_are_cut_off_below_the_largest_operand)
{
    for (int type = 0; type < PROBE_TYPES; type++) {
        int inner = inner_of(type), towards = 0, inexact = 0;
        double worst = 0;
        for (int seed = 0; seed < 20; seed++) {
            float a[256], b[128], before[128], c[128];
            fill(256, seed, a);
            fill(128, seed + 40, b);
            fill(128, seed + 80, before);
            for (int i = 0; i < 128; i++) {
                b[i] = ldexpf(b[i], -(i * 7 + seed) % 24);
                c[i] = before[i] *= 0x1.234568p3F;
            }
            cr_assert_eq(probe_product(type, a, b, c), 0);
            for (int i = 0; i < 128; i++) {
                double largest,
                    exact = exact_sum(inner, a + i / 8 * inner, b + i % 8, before[i], &largest);
                double error = fabs((double)c[i] - exact) / (largest * 0x1p-23);
                cr_expect(error <= inner + 2, "%s: off by %.3g last places", names[type], error);
                worst = fmax(worst, error);
                inexact += (double)c[i] != exact;
                towards += fabs((double)c[i]) < fabs(exact);
            }
        }
        printf("%s: off by up to %.3g last places, %d of %d towards 0\n", names[type], worst,
               towards, inexact);
        cr_expect_gt(inexact, 0);
    }
}

/* 1 + 2^-11 is a tie of tf32 and of f16: away from zero, and to even; a factor keeps no more. */
Test(mma, factors_are_rounded_to_their_type)
{
    const float x[PROBE_TYPES] = {1 + 0x1p-8F, 1 + 0x1p-11F, 1 + 0x1p-11F};
    const float want[PROBE_TYPES] = {1, 1, 1 + 0x1p-10F};
    for (int type = 0; type < PROBE_TYPES; type++) {
        float a[256] = {x[type]}, b[128] = {1}, c[128] = {0};
        cr_assert_eq(probe_product(type, a, b, c), 0);
        cr_expect(c[0] == want[type], "%s: %.9g, not %.9g", names[type], c[0], want[type]);
    }
}

/* (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the last is lost unless product and sum are one operation. */
Test(mma, products_and_sums_are_rounded_apart)
{
    float x = 1 + 0x1p-12F, out[3];
    cr_assert_eq(probe_arithmetic(x, x, -1, out), 0);
    cr_expect(out[0] == 0x1p-11F, "a b + c is %a", (double)out[0]);
    cr_assert_eq(probe_arithmetic(x, x, 1, out), 0);
    cr_expect(out[1] == 0x1p-11F, "a b - c is %a", (double)out[1]);
    cr_assert_eq(probe_arithmetic(1, 1, 1, out), 0);
    cr_expect(out[2] == 0, "(1 + e)^2 - 1 in f64 is off by %a", (double)out[2]);
}

Test(mma, nan_and_infinity_stay)
{
    for (int type = 0; type < PROBE_TYPES; type++) {
        float a[256] = {INFINITY}, b[128] = {1, 0, -1}, c[128] = {0};
        cr_assert_eq(probe_product(type, a, b, c), 0);
        cr_expect(c[0] == INFINITY && isnan(c[1]) && c[2] == -INFINITY, "%s: %g %g %g", names[type],
                  c[0], c[1], c[2]);
    }
}
