/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of known cost (attnum/timing.h), on the CPU. */
#include <attnum/attnum.h>
#include <attnum/timing.h>
#include <criterion/criterion.h>
#include <math.h>

static atn_context *make_context(int threads)
{
    atn_context *context;
    atn_context_options options = {.threads = threads};
    cr_assert_eq(atn_context_create(&options, &context), ATN_OK);
    return context;
}

Test(rates, multiply_adds_are_counted)
{
    double scratch[8] = {1, 2, 3}, one, both;
    atn_context *alone = make_context(1), *together = make_context(2);
    cr_assert_eq(atn_multiply_add(alone, ATN_F64, 5, scratch, &one), ATN_OK);
    cr_assert_eq(atn_multiply_add(together, ATN_F64, 5, scratch, &both), ATN_OK);
    cr_expect(one > 0 && fmod(one, 2 * 16 * 5) == 0 && both == 2 * one, "%g and %g", one, both);
    cr_expect(scratch[0] == 1 && scratch[2] == 3);
    cr_expect_eq(atn_multiply_add(alone, ATN_BF16, 5, scratch, &one), ATN_ERR_UNSUPPORTED);
    cr_expect_eq(atn_multiply_add(alone, ATN_F32, 0, scratch, &one), ATN_ERR_VALUE);
    atn_context_free(together);
    atn_context_free(alone);
}

/* exp(-exp(-x)) of every number of every thread, and of no other. */
Test(rates, exponentials_are_taken)
{
    enum { COUNT = 37, THREADS = 2 };
    double x[THREADS * COUNT + 1], exps = 0;
    atn_context *context = make_context(THREADS);
    for (int i = 0; i <= THREADS * COUNT; i++)
        x[i] = 0.1 * i - 2;
    cr_assert_eq(atn_exponentials(context, ATN_F64, 2, COUNT, x, &exps), ATN_OK);
    cr_expect_eq(exps, 2 * THREADS * COUNT);
    for (int i = 0; i < THREADS * COUNT; i++)
        cr_expect_float_eq(x[i], exp(-exp(-(0.1 * i - 2))), 1e-15, "%d: %.17g", i, x[i]);
    cr_expect_eq(x[THREADS * COUNT], 0.1 * THREADS * COUNT - 2);
    cr_expect_eq(atn_exponentials(context, ATN_F64, 1, 0, NULL, &exps), ATN_OK);
    cr_expect_eq(exps, 0);
    cr_expect_eq(atn_exponentials(context, ATN_F64, 1, -1, x, &exps), ATN_ERR_VALUE);
    cr_expect_eq(atn_exponentials(context, ATN_F64, 1, 1, NULL, &exps), ATN_ERR_NULL);
    cr_expect_eq(atn_exponentials(context, ATN_F16, 1, 1, x, &exps), ATN_ERR_UNSUPPORTED);
    atn_context_free(context);
}

/* All four transpositions of one product of integers, and each added to C: exact. */
Test(rates, products_are_products)
{
    static const float a[2][3] = {{1, 2, 3}, {4, 5, 6}}, a_flipped[3][2] = {{1, 4}, {2, 5}, {3, 6}},
                       b[3][2] = {{7, 8}, {9, 10}, {11, 12}},
                       b_flipped[2][3] = {{7, 9, 11}, {8, 10, 12}};
    static const float want[4] = {58, 64, 139, 154};
    atn_context *context = make_context(1);
    for (int how = 0; how < 8; how++) {
        bool add = how & 4;
        float before = add ? 5 : NAN, c[5] = {before, before, before, before, -1};
        atn_product_shape shape = {how & 1, how & 2, 2, 2, 3, add};
        cr_assert_eq(atn_product(context, ATN_F32, &shape, how & 1 ? a_flipped[0] : a[0],
                                 how & 2 ? b_flipped[0] : b[0], c),
                     ATN_OK);
        for (int i = 0; i < 4; i++)
            cr_expect(c[i] == want[i] + (add ? 5 : 0), "case %d, entry %d: %g", how, i,
                      (double)c[i]);
        cr_expect(c[4] == -1, "case %d: written beyond", how);
    }
    float c = 3;
    atn_product_shape shape = {.rows = 1, .cols = 1};
    cr_expect_eq(atn_product(context, ATN_F32, &shape, NULL, NULL, &c), ATN_OK);
    cr_expect(c == 0, "nothing to sum: %g", (double)c);
    shape.inner = 1;
    cr_expect_eq(atn_product(context, ATN_F32, &shape, NULL, &c, &c), ATN_ERR_NULL);
    shape.rows = -1;
    cr_expect_eq(atn_product(context, ATN_F32, &shape, &c, &c, &c), ATN_ERR_VALUE);
    cr_expect_eq(atn_product(context, ATN_TF32, &(atn_product_shape){0}, NULL, NULL, NULL),
                 ATN_ERR_UNSUPPORTED);
    atn_context_free(context);
}
