/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention with one dominant token: the closed form against the dense matrix. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>

#include "dominant.h"
#include "linear_algebra.h"
#include "ratios.h"

static const double u = 0x1p-53;

/* S by its definition; returns its trace. */
static double make_softmax(int n, double c, double r, double *s)
{
    double trace = 0;
    for (int i = 0; i < n; i++) {
        long double total = 0, query = i == 0 ? r : 1;
        for (int j = 0; j < n; j++)
            total += expl(c * query * ((j == 0 ? r : 1) - fmaxl(r, 1)));
        for (int j = 0; j < n; j++)
            s[i * n + j] = (double)(expl(c * query * ((j == 0 ? r : 1) - fmaxl(r, 1))) / total);
        trace += s[i * n + i];
    }
    return trace;
}

Test(dominant, closed_form_is_the_dense_norm)
{
    static const int sizes[] = {2, 3, 7, 30};
    static const double ratios[] = {0.25, 1, 1.5, 2, 4, 9, 40}, scales[] = {0.3, 1, 2};
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 7; b++)
            for (int k = 0; k < 3; k++) {
                int n = sizes[a];
                double *s = new_numbers(n * n), norm,
                       trace = make_softmax(n, scales[k], ratios[b], s);
                cr_assert(ref_spectral_norm(n, n, s, &norm) == ATN_OK);
                ref_dominant got = ref_dominant_softmax(n, scales[k], ratios[b]);
                cr_expect(fabsl(got.norm - norm) <= 10 * n * u * norm, "n=%d r=%g c=%g: %Lg, %g", n,
                          ratios[b], scales[k], got.norm, norm);
                cr_expect(fabsl(got.eigenvalue - (trace - 1)) <= 10 * n * u,
                          "n=%d r=%g c=%g: %Lg, want %g", n, ratios[b], scales[k], got.eigenvalue,
                          trace - 1);
                free(s);
            }
}

/* Equal tokens average; a token large enough is all that anyone sees, short of sqrt(n) by what is
 * left: 1 - |S|/sqrt(n) = N exp(-c (r - 1)) / n to first order. */
Test(dominant, norm_goes_from_1_to_the_root_of_n)
{
    for (int64_t n = 2; n <= 1 << 20; n *= 4) {
        cr_expect(fabsl(ref_dominant_softmax(n, 1, 1).norm - 1) <= 1e-18L);
        cr_expect(ref_dominant_softmax(n, 1, 1).eigenvalue == 0);
        long double root = sqrtl((long double)n), near = ref_dominant_softmax(n, 1, 33).norm;
        long double gap = (long double)(n - 1) * expl(-32), first = gap * (1 - 1 / (long double)n);
        cr_expect(fabsl(1 - near / root - first) <= 10 * gap * gap + 1e-18L, "n=%lld: %Lg, %Lg",
                  (long long)n, 1 - near / root, first);
        for (long double r = 1; r < 20; r += 0.5L)
            cr_expect(ref_dominant_softmax(n, 1, r + 0.5L).norm >
                          ref_dominant_softmax(n, 1, r).norm - 1e-17L,
                      "n=%lld r=%Lg", (long long)n, r);
    }
}

/* Two tokens, 2 and 1 on a line: p_0 = 1/(1 + exp(-2)), p = 1/(1 + exp(-1)). */
Test(dominant, two_tokens_exceed_1)
{
    double x = 1 / (1 + exp(-2)), y = 1 / (1 + exp(-1)), d = x - y;
    double f = x * x + (1 - x) * (1 - x) + y * y + (1 - y) * (1 - y);
    double norm = sqrt((f + sqrt(f * f - 4 * d * d)) / 2);
    ref_dominant got = ref_dominant_softmax(2, 1, 2);
    cr_expect(fabsl(got.norm - norm) <= 1e-15 && norm > 1.17 && norm < 1.18, "%Lg, want %g",
              got.norm, norm);
    cr_expect(fabsl(got.eigenvalue - d) <= 1e-15);
}

/* A first token below the others is seen by nobody, also where what the others weigh overflows: row
 * 1 is nearly uniform over the others, they see each other alone. */
Test(dominant, odds_that_overflow)
{
    ref_dominant got = ref_dominant_softmax(5, 1e6L, 0.5L);
    long double want = 1 / 2.0L; /* B = (0 1/2; 0 1) */
    cr_expect(fabsl(got.norm - sqrtl(1 + want * want)) <= 1e-18L, "%Lg", got.norm);
    cr_expect(got.eigenvalue == 0, "%Lg", got.eigenvalue);
}

Test(dominant, refuses_what_has_no_meaning)
{
    static const double bad[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++)
        cr_expect(isnan(ref_dominant_softmax(3, 1, bad[i]).norm) &&
                  isnan(ref_dominant_softmax(3, bad[i], 2).eigenvalue));
    cr_expect(isnan(ref_dominant_softmax(1, 1, 2).norm));
}
