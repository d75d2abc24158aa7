/* SPDX-License-Identifier: BSD-3-Clause */
/* Growth laws: exact ones are recovered, noise gives the error it should, bad points are refused.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "common/fit.h"

static double law_value(growth_law law, double c, double p, double m)
{
    return law == LAW_POWER ? c * pow(m, p) : c * exp(p * sqrt(m));
}

Test(fit, exact_laws)
{
    static const double exponents[] = {-2.5, -1, 0, 0.5, 1, 3}, constants[] = {1e-12, 0.3, 1, 1e9};
    enum { POINTS = 9 };
    for (int law = LAW_POWER; law <= LAW_EXPONENTIAL; law++)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 4; j++) {
                double m[POINTS], y[POINTS], p = exponents[i], c = constants[j];
                for (int k = 0; k < POINTS; k++) {
                    m[k] = 4 << k;
                    y[k] = law_value((growth_law)law, c, p, m[k]);
                }
                growth_fit f;
                const char *name = growth_law_name((growth_law)law);
                cr_assert(fit_growth((growth_law)law, POINTS, m, y, &f), "%s p=%g c=%g", name, p,
                          c);
                cr_expect(fabs(f.exponent - p) <= 1e-12 * (1 + fabs(p)), "%s p=%g c=%g: p=%.17g",
                          name, p, c, f.exponent);
                cr_expect(fabs(f.constant / c - 1) <= 1e-11, "%s p=%g c=%g: c=%.17g", name, p, c,
                          f.constant);
                cr_expect(f.std_error <= 1e-12, "%s p=%g c=%g: std error %g", name, p, c,
                          f.std_error);
                cr_expect(f.residual <= 1e-12, "%s p=%g c=%g: residual %g", name, p, c, f.residual);
            }
}

/* log y = 2 x + e with e = +a, -a, -a, +a at x = -3, -1, 1, 3: e is orthogonal to 1 and x, so the
 * slope stays 2, and the standard error is sqrt((4 a^2 / 2) / 20). */
Test(fit, known_standard_error)
{
    const double a = 0.1, signs[] = {1, -1, -1, 1};
    double m[4], y[4];
    for (int k = 0; k < 4; k++) {
        m[k] = exp(2 * k - 3);
        y[k] = exp(2 * (2 * k - 3) + a * signs[k]);
    }
    growth_fit f;
    cr_assert(fit_growth(LAW_POWER, 4, m, y, &f));
    cr_expect(fabs(f.exponent - 2) <= 1e-14, "exponent %.17g", f.exponent);
    cr_expect(fabs(f.std_error / sqrt(4 * a * a / 2 / 20) - 1) <= 1e-13, "std error %.17g",
              f.std_error);
    cr_expect(fabs(f.residual / (a / log(10)) - 1) <= 1e-13, "residual %.17g", f.residual);
}

/* Among 200 noisy data sets the true exponent lies within two standard errors about 95 times in
 * 100. The noise is a fixed sequence. */
Test(fit, noise)
{
    enum { POINTS = 40, SETS = 200 };
    unsigned long long state = 12345;
    int within = 0;
    for (int set = 0; set < SETS; set++) {
        double m[POINTS], y[POINTS];
        for (int k = 0; k < POINTS; k++) {
            double noise = -6; /* twelve uniform numbers make nearly a normal one */
            for (int i = 0; i < 12; i++) {
                state = state * 6364136223846793005ULL + 1442695040888963407ULL;
                noise += (double)(state >> 11) * 0x1p-53;
            }
            m[k] = k + 1;
            y[k] = law_value(LAW_EXPONENTIAL, 2, 0.7, m[k]) * exp(0.2 * noise);
        }
        growth_fit f;
        cr_assert(fit_growth(LAW_EXPONENTIAL, POINTS, m, y, &f));
        within += fabs(f.exponent - 0.7) <= 2 * f.std_error;
    }
    cr_expect(within >= 180 && within <= 199, "%d of %d", within, (int)SETS);
}

Test(fit, refuses)
{
    static const struct {
        const char *what;
        int64_t points;
        double m[4], y[4];
    } rows[] = {
        {"no points", 0, {0}, {0}},
        {"one point", 1, {4}, {1}},
        {"two points", 2, {4, 8}, {1, 2}},
        {"one m", 4, {4, 4, 4, 4}, {1, 2, 3, 4}},
        {"y zero", 4, {1, 2, 3, 4}, {1, 0, 3, 4}},
        {"y negative", 4, {1, 2, 3, 4}, {1, 2, -3, 4}},
        {"y nan", 4, {1, 2, 3, 4}, {1, 2, 3, NAN}},
        {"y infinite", 4, {1, 2, 3, 4}, {INFINITY, 2, 3, 4}},
        {"m zero", 4, {0, 2, 3, 4}, {1, 2, 3, 4}},
        {"m negative", 4, {-1, 2, 3, 4}, {1, 2, 3, 4}},
        {"m nan", 4, {1, NAN, 3, 4}, {1, 2, 3, 4}},
        {"m infinite", 4, {1, 2, 3, INFINITY}, {1, 2, 3, 4}},
        {"m with one logarithm", 3, {0x1p500, 0x1.0000000000001p500, 0x1p500}, {1, 2, 3}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int law = LAW_POWER; law <= LAW_EXPONENTIAL; law++) {
            growth_fit f = {.exponent = 7};
            cr_expect_not(fit_growth((growth_law)law, rows[i].points, rows[i].m, rows[i].y, &f),
                          "%s %s: %g", rows[i].what, growth_law_name((growth_law)law), f.exponent);
            cr_expect_eq(f.exponent, 7, "%s: the fit was set", rows[i].what);
        }
}

Test(fit, names)
{
    cr_expect_str_eq(growth_law_name(LAW_POWER), "power");
    cr_expect_str_eq(growth_law_name(LAW_EXPONENTIAL), "exponential_sqrt");
}
