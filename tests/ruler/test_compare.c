/* SPDX-License-Identifier: BSD-3-Clause */
/* What ref_compare measures, on numbers worked out by hand. */
#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

#include "ruler.h"

/* want, and got = want + (0.5 -1 0.25; 2 -0.5 4): every figure below is exact in binary. */
static const double want[] = {1, -2, 3, 4, 5, -6};
static const double got[] = {1.5, -3, 3.25, 6, 4.5, -2};

static void expect_known(const char *what, ref_difference d)
{
    const struct {
        const char *name;
        double have, expected;
    } figures[] = {
        {"norm1", d.norm1, 4.25},
        {"norm_inf", d.norm_inf, 6.5},
        {"frobenius", d.frobenius, sqrt(21.5625)},
        {"max_abs", d.max_abs, 4},
        {"want_norm1", d.want_norm1, 9},
        {"want_inf", d.want_inf, 15},
        {"want_frobenius", d.want_frobenius, sqrt(91)},
        {"want_max", d.want_max, 6},
        {"worst_row", (double)d.worst_row, 1},
        {"worst_col", (double)d.worst_col, 2},
        {"worst_got", d.worst_got, -2},
        {"worst_want", d.worst_want, -6},
        {"nonfinite", (double)d.nonfinite, 0},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        cr_expect(figures[i].have == figures[i].expected, "%s %s=%.17g want=%.17g", what,
                  figures[i].name, figures[i].have, figures[i].expected);
    double relative = sqrt(21.5625 / 91);
    cr_expect(fabs(d.relative_frobenius - relative) <= 1e-15, "%s relative=%.17g", what,
              d.relative_frobenius);
    cr_expect(fabs(d.digits + log10(relative)) <= 1e-14, "%s digits=%.17g", what, d.digits);
}

Test(compare, known_norms_f64)
{
    expect_known("f64", ref_compare_f64(2, 3, got, 3, want, 3));
}

Test(compare, known_norms_f32)
{
    float single[6];
    for (int i = 0; i < 6; i++)
        single[i] = (float)got[i];
    expect_known("f32", ref_compare_f32(2, 3, single, 3, want, 3));
}

/* What lies between the rows must not be read. */
Test(compare, strides)
{
    double wide_got[10], wide_want[14];
    float wide_single[10];
    for (int i = 0; i < 10; i++)
        wide_got[i] = wide_single[i] = NAN;
    for (int i = 0; i < 14; i++)
        wide_want[i] = INFINITY;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            wide_got[i * 5 + j] = wide_single[i * 5 + j] = (float)got[i * 3 + j];
            wide_want[i * 7 + j] = want[i * 3 + j];
        }
    expect_known("f64", ref_compare_f64(2, 3, wide_got, 5, wide_want, 7));
    expect_known("f32", ref_compare_f32(2, 3, wide_single, 5, wide_want, 7));
}

/* f32 0.1 is not f64 0.1: the comparison must happen in f64. */
Test(compare, f32_is_not_rounded_away)
{
    const float single = 0.1f;
    const double tenth = 0.1;
    ref_difference d = ref_compare_f32(1, 1, &single, 1, &tenth, 1);
    cr_expect(d.max_abs == (double)0.1f - 0.1, "max_abs=%.17g", d.max_abs);
    cr_expect(d.digits > 7 && d.digits < 8, "digits=%.3g", d.digits);
}

Test(compare, equal_and_empty)
{
    const struct {
        const char *name;
        ref_difference d;
    } cases[] = {
        {"equal", ref_compare_f64(2, 3, want, 3, want, 3)},
        {"0x0", ref_compare_f64(0, 0, NULL, 0, NULL, 0)},
        {"0x3", ref_compare_f64(0, 3, NULL, 3, NULL, 3)},
        {"3x0 f32", ref_compare_f32(3, 0, NULL, 0, NULL, 0)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ref_difference d = cases[i].d;
        cr_expect(d.norm1 == 0 && d.norm_inf == 0 && d.frobenius == 0 && d.max_abs == 0 &&
                      d.relative_frobenius == 0 && d.digits == 15.95 && d.nonfinite == 0,
                  "%s frobenius=%g relative=%g digits=%g", cases[i].name, d.frobenius,
                  d.relative_frobenius, d.digits);
        cr_expect(d.worst_row == (i == 0 ? 0 : -1), "%s worst_row=%d", cases[i].name,
                  (int)d.worst_row);
    }
}

Test(compare, what_cannot_be_compared_is_infinite)
{
    const float single[6] = {0};
    const ref_difference cases[] = {
        ref_compare_f64(-1, 3, want, 3, want, 3),   ref_compare_f64(2, -3, want, 3, want, 3),
        ref_compare_f64(2, 3, NULL, 3, want, 3),    ref_compare_f64(2, 3, want, 3, NULL, 3),
        ref_compare_f64(2, 3, want, 2, want, 3),    ref_compare_f64(2, 3, want, 3, want, 2),
        ref_compare_f32(-1, 3, single, 3, want, 3), ref_compare_f32(2, 3, NULL, 3, want, 3),
        ref_compare_f32(2, 3, single, 3, want, 2),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double ratio;
        cr_expect(isinf(cases[i].norm1) && isinf(cases[i].frobenius) && isinf(cases[i].max_abs) &&
                      isinf(cases[i].relative_frobenius) && cases[i].digits == 0,
                  "case %zu frobenius=%g digits=%g", i, cases[i].frobenius, cases[i].digits);
        cr_expect(ref_judge_forward(&cases[i], 1, 1, 1e-16, &ratio) == REF_FAIL, "case %zu", i);
    }
}

/* NaN and infinity on either side, equal or not, never look like agreement. */
Test(compare, nonfinite)
{
    static const struct {
        double got, want;
        int nonfinite;
    } cases[] = {
        {NAN, 1, 1},
        {1, NAN, 1},
        {INFINITY, 1, 1},
        {-INFINITY, 1, 1},
        {1, INFINITY, 1},
        {NAN, NAN, 0},
        {INFINITY, NAN, 0},
        {INFINITY, INFINITY, 0},
        {INFINITY, -INFINITY, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double have[6], expected[6];
        float single[6];
        memcpy(have, want, sizeof have);
        memcpy(expected, want, sizeof expected);
        have[4] = cases[i].got;
        expected[4] = cases[i].want;
        for (int j = 0; j < 6; j++)
            single[j] = (float)have[j];
        ref_difference both[] = {ref_compare_f64(2, 3, have, 3, expected, 3),
                                 ref_compare_f32(2, 3, single, 3, expected, 3)};
        for (int j = 0; j < 2; j++) {
            ref_difference d = both[j];
            cr_expect(isinf(d.norm1) && isinf(d.norm_inf) && isinf(d.frobenius) &&
                          isinf(d.max_abs) && isinf(d.relative_frobenius) && d.digits == 0,
                      "got=%g want=%g norm1=%g norm_inf=%g frobenius=%g relative=%g digits=%g",
                      cases[i].got, cases[i].want, d.norm1, d.norm_inf, d.frobenius,
                      d.relative_frobenius, d.digits);
            cr_expect(d.nonfinite == cases[i].nonfinite && d.worst_row == 1 && d.worst_col == 1,
                      "got=%g want=%g nonfinite=%d at (%d,%d)", cases[i].got, cases[i].want,
                      (int)d.nonfinite, (int)d.worst_row, (int)d.worst_col);
            cr_expect(ref_judge_forward(&d, 1, 3, 1e-16, NULL) == REF_FAIL, "got=%g want=%g",
                      cases[i].got, cases[i].want);
        }
    }
}

Test(compare, worst_element)
{
    static const struct {
        double got[6];
        int row, col;
    } cases[] = {
        {{1, 0, 0, 0, 0, 0}, 0, 0},
        {{0, 0, 0, 0, 0, -1}, 1, 2},
        {{1, 2, 0, 2, 0, 0}, 0, 1}, /* the first of equals */
        {{1, 1e308, INFINITY, 0, 0, 0}, 0, 2},
        {{INFINITY, 1e308, 0, NAN, 0, 0}, 1, 0},
        {{NAN, INFINITY, 0, NAN, 0, 0}, 0, 0},
    };
    static const double zeros[6];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ref_difference d = ref_compare_f64(2, 3, cases[i].got, 3, zeros, 3);
        cr_expect(d.worst_row == cases[i].row && d.worst_col == cases[i].col,
                  "case %zu at (%d,%d) want (%d,%d)", i, (int)d.worst_row, (int)d.worst_col,
                  cases[i].row, cases[i].col);
    }
}

Test(compare, signed_zeros_subnormals_and_giants)
{
    static const struct {
        double got, want, max_abs, relative;
    } cases[] = {
        {-0.0, 0.0, 0, 0},
        {5e-324, 0, 5e-324, INFINITY},
        {5e-324, -5e-324, 1e-323, 2},
        {3 * 5e-324, 2 * 5e-324, 5e-324, 0.5},
        {1e-200, 2e-200, 1e-200, 0.5}, /* squares underflow f64 */
        {1e200, 2e200, 1e200, 0.5},    /* squares overflow f64 */
        {0x1p1023, 0x1.8p1023, 0x1p1022, 1.0 / 3},
        {0x1p1023, -0x1p1023, INFINITY, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ref_difference d = ref_compare_f64(1, 1, &cases[i].got, 1, &cases[i].want, 1);
        cr_expect(d.max_abs == cases[i].max_abs && d.frobenius == cases[i].max_abs &&
                      d.relative_frobenius == cases[i].relative && d.nonfinite == 0,
                  "got=%g want=%g max_abs=%g frobenius=%g relative=%.17g", cases[i].got,
                  cases[i].want, d.max_abs, d.frobenius, d.relative_frobenius);
    }
}

Test(compare, digits)
{
    static const struct {
        double got, digits;
    } cases[] = {
        {1, 15.95}, {1 + 0x1p-52, 15.65}, {1.001, 3}, {1.5, 0.301}, {0, 0}, {3, 0}, {-1e9, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double one = 1;
        ref_difference d = ref_compare_f64(1, 1, &cases[i].got, 1, &one, 1);
        cr_expect(fabs(d.digits - cases[i].digits) <= 0.005, "got=%.17g digits=%.17g want=%g",
                  cases[i].got, d.digits, cases[i].digits);
    }
}
