/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's exponentials, in ulps against long double: one float in ATTNUM_EXP_STEP, by default
 * 4093 (the emulator's exp is the host's), 31 in the suite gpu; 1 takes minutes of the host. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes.h"

enum { STEP = 4093, PIECE = 1 << 20 };

static uint64_t step(void)
{
    const char *text = getenv("ATTNUM_EXP_STEP");
    return text && atoi(text) > 0 ? (uint64_t)atoi(text) : STEP;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* |y - want| in units of the last place of want's binade, as floats have them. */
static double ulps(float y, long double want)
{
    int exponent;
    if (isnan(y) || isnan((double)want))
        return isnan(y) && isnan((double)want) ? 0 : INFINITY;
    if (want >= 0x1.ffffffp127L) /* rounds to infinity */
        return isinf(y) ? 0 : (double)((want - y) / 0x1p104L);
    if (isinf(y))
        return INFINITY;
    frexpl(want, &exponent);
    exponent = want == 0 || exponent < -125 ? -125 : exponent;
    return (double)(fabsl((long double)y - want) / ldexpl(1, exponent - 24));
}

typedef struct {
    double most;
    float at;
    int64_t count;
} sweep;

typedef long double (*exact_power)(long double x);

/* normal: results that are subnormal may be 0. */
static void sweep_piece(probe_function function, exact_power exact, bool normal, int64_t count,
                        const float *x, float *y, sweep *s)
{
    cr_assert_eq(probe_power(function, count, x, y), 0);
    for (int64_t i = 0; i < count; i++) {
        long double want = exact((long double)x[i]);
        double off = normal && want < 0x1p-126L && y[i] == 0 ? 0 : ulps(y[i], want);
        if (!(off <= s->most)) {
            s->most = off;
            s->at = x[i];
        }
    }
    s->count += count;
}

static sweep sweep_all(probe_function function, exact_power exact, bool normal)
{
    float *x = malloc(PIECE * sizeof *x), *y = malloc(PIECE * sizeof *y);
    int64_t count = 0;
    sweep s = {0, 0, 0};
    if (!x || !y)
        abort();
    for (uint64_t bits = 0; bits < 1ULL << 32; bits += step()) {
        x[count++] = float_of((uint32_t)bits);
        if (count == PIECE || bits + step() >= 1ULL << 32) {
            sweep_piece(function, exact, normal, count, x, y, &s);
            count = 0;
        }
    }
    free(x);
    free(y);
    return s;
}

/* What CUDA's documentation gives for expf, compiled without fast math ("Mathematical Functions");
 * glibc keeps within it. */
Test(exp, the_operators_exp_is_within_two_ulps, .timeout = 3000)
{
    sweep s = sweep_all(PROBE_EXP, expl, false);
    printf("exp: %.3f ulp at %.9g, of %lld floats\n", s.most, s.at, (long long)s.count);
    cr_expect(s.most <= 2, "%.4f ulp at %.9g", s.most, s.at);
}

/* 2^-22, relatively, are 4 ulps at the end of a binade. */
Test(exp, the_fused_passes_exp2_is_within_four_ulps, .timeout = 3000)
{
    sweep s = sweep_all(PROBE_EXP2, exp2l, true);
    printf("exp2: %.3f ulp at %.9g, of %lld floats\n", s.most, s.at, (long long)s.count);
    cr_expect(s.most <= 4, "%.4f ulp at %.9g", s.most, s.at);
}
