/* SPDX-License-Identifier: BSD-3-Clause */
/* Instruction sets: the choices of option and variable, and contexts of several sets, each of which
 * computes in its own. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"
#include "matrices.h"

enum { VARIABLE_IS_NOT_SET = ATN_ISA_COUNT };

static void set_variable(int isa)
{
    if (isa == VARIABLE_IS_NOT_SET)
        unsetenv("ATTNUM_ISA");
    else
        setenv("ATTNUM_ISA", atn_isa_name((atn_isa)isa), 1);
}

static bool is_here(int isa)
{
    return atn_isa_choose((atn_isa)isa, NULL, NULL) == ATN_OK;
}

static atn_context *open_context(int isa, int threads)
{
    atn_context_options options = {.threads = threads, .isa = (atn_isa)isa};
    atn_context *context;
    cr_assert_eq(atn_context_create(&options, &context), ATN_OK, "%s", atn_isa_name((atn_isa)isa));
    return context;
}

/* Whether the set adds a product to a sum by one rounding. */
static bool fuses(int isa)
{
#ifdef __x86_64__
    return isa != ATN_ISA_BASE;
#else
    (void)isa;
    return true;
#endif
}

/* ---- What is chosen ---- */

/* A choice by the option must give the same result as the context made with it. */
static void expect_choice(int option, atn_status want, int want_isa, const char *what)
{
    const char *reason = "?";
    atn_isa chosen = ATN_ISA_COUNT;
    atn_context_options options = {.isa = (atn_isa)option};
    atn_context *context = (atn_context *)&context;
    atn_status status = atn_isa_choose((atn_isa)option, &chosen, &reason);
    cr_expect_eq(status, want, "%s: %s", what, atn_status_name(status));
    cr_expect_eq((int)chosen, want == ATN_OK ? want_isa : ATN_ISA_AUTO, "%s: %d", what, chosen);
    cr_expect_eq(*reason != '\0', want != ATN_OK, "%s: %s", what, reason);
    status = atn_context_create(&options, &context);
    cr_expect_eq(status, want, "%s, context: %s", what, atn_status_name(status));
    cr_expect_eq(context != NULL, want == ATN_OK, "%s", what);
    if (context)
        cr_expect_eq((int)atn_context_isa(context), want_isa, "%s", what);
    atn_context_free(context);
}

static int widest(void)
{
    int isa = ATN_ISA_COUNT - 1;
    while (isa > ATN_ISA_BASE && !is_here(isa))
        isa--;
    return isa;
}

Test(isa, names)
{
    cr_expect_str_eq(atn_isa_name(ATN_ISA_AUTO), "auto");
    cr_expect_str_eq(atn_isa_name(ATN_ISA_AVX512), "avx512");
    cr_expect_null(atn_isa_name(ATN_ISA_COUNT));
    cr_expect_null(atn_isa_name((atn_isa)-1));
    cr_expect_not_null(atn_isa_description(ATN_ISA_BASE));
    cr_expect_null(atn_isa_description(ATN_ISA_COUNT));
    cr_expect_eq(atn_context_isa(NULL), ATN_ISA_AUTO);
}

/* The option takes precedence over the variable. */
Test(isa, by_option)
{
    for (int variable = 0; variable <= VARIABLE_IS_NOT_SET; variable++) {
        set_variable(variable);
        for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++)
            expect_choice(isa, is_here(isa) ? ATN_OK : ATN_ERR_DEVICE, isa,
                          atn_isa_name((atn_isa)isa));
        expect_choice(ATN_ISA_COUNT, ATN_ERR_VALUE, 0, "one too many");
        expect_choice(-1, ATN_ERR_VALUE, 0, "-1");
    }
    cr_expect(is_here(ATN_ISA_BASE));
}

Test(isa, by_variable)
{
    static const char *const wrong[] = {"sse", "AVX2", "avx2 ", "avx", "avx5122", ","};
    const char *reason;
    for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++) {
        set_variable(isa);
        expect_choice(ATN_ISA_AUTO, is_here(isa) ? ATN_OK : ATN_ERR_DEVICE, isa,
                      atn_isa_name((atn_isa)isa));
    }
    set_variable(VARIABLE_IS_NOT_SET);
    expect_choice(ATN_ISA_AUTO, ATN_OK, widest(), "not set");
    set_variable(ATN_ISA_AUTO);
    expect_choice(ATN_ISA_AUTO, ATN_OK, widest(), "auto");
    setenv("ATTNUM_ISA", "", 1);
    expect_choice(ATN_ISA_AUTO, ATN_OK, widest(), "empty");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("ATTNUM_ISA", wrong[i], 1);
        expect_choice(ATN_ISA_AUTO, ATN_ERR_VALUE, 0, wrong[i]);
        atn_isa_choose(ATN_ISA_AUTO, NULL, &reason);
        cr_expect(strstr(reason, "ATTNUM_ISA") && strstr(reason, " base avx2 "), "%s", reason);
        cr_expect_eq(atn_context_create(NULL, &(atn_context *){NULL}), ATN_ERR_VALUE);
    }
}

/* ---- Contexts side by side ---- */

/* (1 + 2^-h)^2 - (1 + 2^(1-h)) is 2^-2h if the product is not rounded by itself, and otherwise 0,
 * with half the type's digits as h. */
Test(isa, products_are_fused_where_the_set_can)
{
    enum { ROWS = 3, COLUMNS = 70 }; /* whole vectors, and some left over */
    const atn_product_shape shape = {.rows = ROWS, .cols = COLUMNS, .inner = 2};
    atn_context *contexts[ATN_ISA_COUNT] = {NULL};
    for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++)
        if (is_here(isa))
            contexts[isa] = open_context(isa, 1);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++) {
            const double h = dtype == ATN_F32 ? 0x1p-12 : 0x1p-27, x = 1 + h;
            double factors[ROWS * 2], values[2 * COLUMNS], c[ROWS * COLUMNS];
            double typed_a[ROWS * 2], typed_b[2 * COLUMNS], typed_c[ROWS * COLUMNS];
            if (!contexts[isa])
                continue;
            for (int i = 0; i < ROWS; i++) {
                factors[2 * i] = -(1 + 2 * h);
                factors[2 * i + 1] = x;
            }
            for (int j = 0; j < COLUMNS; j++) {
                values[j] = 1;
                values[COLUMNS + j] = x;
            }
            atn_convert((atn_dtype)dtype, typed_a, ATN_F64, factors, ROWS * 2);
            atn_convert((atn_dtype)dtype, typed_b, ATN_F64, values, 2 * COLUMNS);
            cr_assert_eq(
                atn_product(contexts[isa], (atn_dtype)dtype, &shape, typed_a, typed_b, typed_c),
                ATN_OK);
            atn_convert(ATN_F64, c, (atn_dtype)dtype, typed_c, ROWS * COLUMNS);
            for (int i = 0; i < ROWS * COLUMNS; i++)
                cr_expect(c[i] == (fuses(isa) ? h * h : 0), "%s, %s: %g at %d",
                          atn_isa_name((atn_isa)isa), atn_dtype_name((atn_dtype)dtype), c[i], i);
        }
    for (int isa = 0; isa < ATN_ISA_COUNT; isa++)
        atn_context_free(contexts[isa]);
}

/* Every operator in turn in contexts of all sets: each right, with the bits that it has alone, and
 * with others than a set that rounds otherwise. */
Test(isa, operators_side_by_side)
{
    atn_context *contexts[ATN_ISA_COUNT] = {NULL};
    for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++)
        if (is_here(isa))
            contexts[isa] = open_context(isa, 2);
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        attention_choice choice = {.op = (atn_operator)op,
                                   .dtype = ATN_F64,
                                   .shape = {1, 2, 100, 9, 7, 0},
                                   .sampling = ATN_SAMPLING_WINDOW,
                                   .seed = 5};
        attention_case c = attention_case_make(&choice);
        double kappa[2], ratio, *want = data_allocate(attention_case_outputs(&c));
        attention_run runs[ATN_ISA_COUNT];
        cr_assert_geq(attention_expect(&c, want), 0);
        judge_conditions(&c, want, kappa);
        for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++) {
            if (!contexts[isa])
                continue;
            runs[isa] = attention_run_make(&c, 0);
            cr_expect_geq(attention_run_forward(&runs[isa], contexts[isa]), 0);
            cr_expect_eq(judge_forward(&runs[isa], want, kappa, &ratio), REF_PASS, "%s, %s: %g",
                         attention_case_label(&c), atn_isa_name((atn_isa)isa), ratio);
            bool same = guarded_same_bits(&runs[isa].out, &runs[ATN_ISA_BASE].out);
            cr_expect(fuses(isa) == fuses(ATN_ISA_BASE) || !same, "%s, %s: the base's bits",
                      attention_case_label(&c), atn_isa_name((atn_isa)isa));
        }
        for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++) {
            if (!contexts[isa])
                continue;
            attention_run again = attention_run_make(&c, 0);
            atn_context *alone = open_context(isa, 1);
            cr_expect_geq(attention_run_forward(&again, alone), 0);
            cr_expect(guarded_same_bits(&again.out, &runs[isa].out), "%s, %s: other bits alone",
                      attention_case_label(&c), atn_isa_name((atn_isa)isa));
            atn_context_free(alone);
            attention_run_free(&again);
            attention_run_free(&runs[isa]);
        }
        free(want);
        attention_case_free(&c);
    }
    for (int isa = 0; isa < ATN_ISA_COUNT; isa++)
        atn_context_free(contexts[isa]);
}

/* What is called without a plan. */
typedef struct {
    float tokens[40 * 8], a[40 * 40], out[40 * 40];
} call_arrays;

static atn_status call_inverse(atn_context *context, call_arrays *x)
{
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    atn_tensor a = atn_tensor_dense(x->a, ATN_F32, 1, 1, 40, 40);
    atn_tensor out = atn_tensor_dense(x->out, ATN_F32, 1, 1, 40, 40);
    return atn_inverse(context, &desc, &a, &out, NULL, NULL);
}

static atn_status call_apply(atn_context *context, call_arrays *x)
{
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_CHEBYSHEV_3);
    atn_tensor a = atn_tensor_dense(x->a, ATN_F32, 1, 1, 40, 40);
    atn_tensor w = atn_tensor_dense(x->tokens, ATN_F32, 1, 1, 40, 8);
    atn_tensor out = atn_tensor_dense(x->out, ATN_F32, 1, 1, 40, 8);
    return atn_inverse_apply(context, &desc, &a, &w, &out, NULL);
}

static atn_status call_inverse_backward(atn_context *context, call_arrays *x)
{
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    atn_tensor a = atn_tensor_dense(x->a, ATN_F32, 1, 1, 40, 40);
    atn_tensor out = atn_tensor_dense(x->out, ATN_F32, 1, 1, 40, 40);
    return atn_inverse_backward(context, &desc, ATN_GRADIENT_CLOSED, &a, &a, &out, NULL);
}

static atn_status call_kernel(atn_context *context, call_arrays *x)
{
    atn_tensor tokens = atn_tensor_dense(x->tokens, ATN_F32, 1, 1, 40, 8);
    atn_tensor out = atn_tensor_dense(x->out, ATN_F32, 1, 1, 40, 40);
    return atn_gaussian_cross(context, ATN_DISTANCE_DIRECT, 0.5, &tokens, &tokens, &out);
}

Test(isa, calls_side_by_side)
{
    static const struct {
        const char *what;
        atn_status (*call)(atn_context *, call_arrays *);
    } rows[] = {
        {"inverse", call_inverse},
        {"inverse_apply", call_apply},
        {"inverse_backward", call_inverse_backward},
        {"gaussian_cross", call_kernel},
    };
    call_arrays x = {0};
    double tokens[40 * 8];
    float bits[ATN_ISA_COUNT][40 * 40];
    data_normal(1, 40 * 8, tokens);
    atn_convert(ATN_F32, x.tokens, ATN_F64, tokens, 40 * 8);
    atn_tensor landmarks = atn_tensor_dense(x.tokens, ATN_F32, 1, 1, 40, 8);
    atn_tensor a = atn_tensor_dense(x.a, ATN_F32, 1, 1, 40, 40);
    atn_context *base = open_context(ATN_ISA_BASE, 1);
    cr_assert_eq(atn_gaussian_self(base, ATN_DISTANCE_DIRECT, 0.5, &landmarks, &a), ATN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++) {
            if (!is_here(isa))
                continue;
            atn_context *context = open_context(isa, 1);
            memset(x.out, 0, sizeof x.out);
            cr_expect_geq(rows[i].call(context, &x), 0, "%s", rows[i].what);
            memcpy(bits[isa], x.out, sizeof x.out);
            atn_context_free(context);
            bool same = memcmp(bits[isa], bits[ATN_ISA_BASE], sizeof *bits) == 0;
            cr_expect(fuses(isa) == fuses(ATN_ISA_BASE) || !same, "%s, %s: the base's bits",
                      rows[i].what, atn_isa_name((atn_isa)isa));
        }
    atn_context_free(base);
}
