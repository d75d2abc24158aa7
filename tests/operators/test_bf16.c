/* SPDX-License-Identifier: BSD-3-Clause */
/* Forward in bf16 on the CPU: as exact as the plain version, f32 in which every array is rounded to
 * bf16, for every shape and mask (SOFT, whose A is then too inexact for a comparison, in
 * test_soft_bf16.c); the same bits for any number of threads; refusals. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"

static bool has_bf16(int op)
{
    return atn_operator_get((atn_operator)op)->capabilities & ATN_CAN_CPU_BF16;
}

static bool is_soft(int op)
{
    return op == ATN_SOFT || op == ATN_SOFTPP;
}

/* A variant that the CPU has in bf16. */
static bool runs(int op, int variant)
{
    atn_attention_desc desc = atn_attention_variant((atn_operator)op, variant, ATN_BF16);
    return has_bf16(op) && !(op == ATN_SIMA && desc.sima.order == ATN_ORDER_TOKENS) &&
           !(is_soft(op) && desc.inverse.method == ATN_INVERSE_PIVOTED_CHOLESKY);
}

typedef struct {
    atn_attention_shape shape; /* b, h, n, d, dv, n_k */
    bool cross;
    enum {
        NO_PADDING,
        PADDING,
        NOTHING_LEFT
    } padding; /* the last: in the first sequence no key is
                  left, in the second no query */
    bool causal;
    double q_size, v_size; /* powers of two that Q and K, and V, are multiplied by */
} row;

/* 16 columns are a vector of sums, 64 tokens a block of sima's, 1024 keys and 384 queries one of
 * softmax's, in strips of 64 queries. */
static const row rows[] = {
    {{2, 2, 100, 8, 5, 0}, true, NO_PADDING, false, 1, 1},
    {{1, 2, 330, 16, 16, 0}, true, PADDING, true, 1, 1},
    {{2, 1, 193, 7, 17, 259}, true, PADDING, false, 1, 1},
    {{1, 1, 129, 33, 40, 127}, true, NO_PADDING, false, 1, 1},
    {{1, 2, 400, 32, 32, 0}, false, NO_PADDING, false, 1, 1},
    {{1, 2, 260, 5, 3, 0}, false, PADDING, true, 1, 1},
    {{1, 2, 70, 32, 64, 1}, true, NO_PADDING, false, 1, 1},
    {{1, 1, 201, 16, 8, 2500}, true, PADDING, false, 1, 1},
    {{1, 1, 900, 7, 5, 0}, true, PADDING, false, 1, 1},
    {{1, 1, 1100, 6, 5, 0}, true, NO_PADDING, true, 1, 1},
    {{1, 1, 1900, 5, 3, 0}, true, PADDING, true, 1, 1},
    {{3, 2, 70, 6, 5, 0}, true, NOTHING_LEFT, false, 1, 1},
    /* a product overflows or underflows in f32 unless K or Q is divided by its norms first */
    {{1, 1, 65, 20, 31, 0}, true, NO_PADDING, false, 0x1p-100, 0x1p-60},
    {{1, 1, 200, 16, 8, 0}, true, NO_PADDING, false, 0x1p3, 0x1p125},
    {{1, 1, 200, 17, 8, 0}, true, NO_PADDING, false, 0x1p100, 0x1p60},
    {{1, 1, 64, 16, 8, 0}, true, NO_PADDING, false, 0x1p-26, 0x1p110},
    {{1, 1, 200, 16, 8, 0}, true, NO_PADDING, false, 0x1p34, 0x1p-90},
    {{1, 1, 200, 16, 8, 0}, true, NO_PADDING, false, 0x1p-26, 0x1p-105},
};
enum { ROWS = sizeof rows / sizeof *rows, SEEDS = 2 };

static void multiply(int64_t count, double factor, double *x)
{
    for (int64_t i = 0; x && i < count; i++)
        x[i] *= factor;
}

static attention_case case_of(int op, int variant, const row *r, uint64_t seed, bool plain)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = plain ? ATN_F32 : ATN_BF16,
                               .storage = plain ? ATN_STORAGE_BF16 : ATN_STORAGE_NATIVE,
                               .shape = r->shape,
                               .cross = r->cross,
                               .padding = r->padding != NO_PADDING,
                               .causal = r->causal,
                               .seed = seed};
    attention_case c = attention_case_make(&choice);
    bool norms = op == ATN_SIMA && c.desc.sima.norm != ATN_SIMA_NONE;
    double q_size = norms && c.desc.sima.epsilon == 0 ? r->q_size : 1; /* does not change Y */
    multiply(attention_case_queries(&c), q_size, c.q);
    multiply(attention_case_keys(&c), q_size, c.k);
    multiply(attention_case_values(&c), norms ? r->v_size : 1, c.v);
    if (r->padding == NOTHING_LEFT) {
        memset(c.key_mask, 0, (size_t)c.shape.key_tokens);
        memset(c.query_mask + c.shape.tokens, 0, (size_t)c.shape.tokens);
    }
    return c;
}

static void check_row(atn_context *context, int op, int variant, int index)
{
    const atn_operator_info *info = atn_operator_get((atn_operator)op);
    ref_difference got = {0}, plain = {0}, nothing = {0};
    double ratio, zeros, u = atn_dtype_roundoff(ATN_BF16);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        attention_case c = case_of(op, variant, &rows[index], seed, false);
        attention_case p = case_of(op, variant, &rows[index], seed, true);
        double *want = data_allocate(attention_case_outputs(&c));
        judge_give_inputs(&c, &p);
        attention_expect(&c, want);
        judge_errors(context, &c, index, want, &got);
        judge_errors(context, &p, 0, want, &plain);
        judge_zeros(&c, want, &nothing);
        free(want);
        attention_case_free(&p);
        attention_case_free(&c);
    }
    ref_verdict verdict = ref_judge_baseline(&got, &plain, u, &ratio);
    fprintf(stderr, "%s %s, row %d: ratio %.3g; off by %.3g, the plain version by %.3g of %.3g\n",
            info->name, info->variants[variant].name, index, ratio, got.max_abs, plain.max_abs,
            got.want_max);
    cr_expect(verdict == REF_PASS, "%s %s, row %d: %s, ratio %.3g; off by %.3g, the plain one %.3g",
              info->name, info->variants[variant].name, index, ref_verdict_name(verdict), ratio,
              got.max_abs, plain.max_abs);
    cr_expect(ref_judge_baseline(&nothing, &plain, u, &zeros) == REF_FAIL,
              "%s %s, row %d: zeros would pass", info->name, info->variants[variant].name, index);
}

Test(bf16, forward_is_as_exact_as_the_plain_version)
{
    atn_context *context = fixture_context(1, NULL);
    int run = 0;
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int v = 0; v < atn_operator_get((atn_operator)op)->variant_count; v++)
            for (int i = 0; runs(op, v) && !is_soft(op) && i < ROWS; i++, run++)
                check_row(context, op, v, i);
    cr_expect(run >= 8 * ROWS, "%d", run); /* 2 of softmax, 6 of sima */
    atn_context_free(context);
}

/* Softmax's weights average the values: equal values are what comes out, whatever the weights'
 * rounding. */
Test(bf16, weights_have_sum_one)
{
    atn_context *context = fixture_context(1, NULL);
    row r = {{1, 2, 200, 8, 5, 1500}, true, NO_PADDING, false, 1, 1};
    attention_case c = case_of(ATN_SOFTMAX, 0, &r, 7, false);
    for (int64_t i = 0; i < attention_case_values(&c); i++)
        c.v[i] = 1.5;
    attention_run run = attention_run_make(&c, 1);
    cr_expect_eq(attention_run_forward(&run, context), ATN_OK);
    for (int head = 0; head < 2; head++)
        for (int64_t i = 0; i < 200 * 5; i++)
            cr_expect(guarded_at(&run.out, 0, head, i / 5, i % 5) == 1.5);
    attention_run_free(&run);
    attention_case_free(&c);
    atn_context_free(context);
}

/* However large c is, its product with the difference of equal logits is 0: keys with the largest
 * logit share the weight. */
Test(bf16, any_scale_of_the_logits)
{
    static const double scales[] = {1e-30, 1, 1e30, 1e39, 1e300};
    atn_context *context = fixture_context(1, NULL);
    row r = {{1, 1, 1, 2, 1, 40}, true, NO_PADDING, false, 1, 1};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        attention_case c = case_of(ATN_SOFTMAX, 0, &r, 7, false);
        c.desc.logit_scale = scales[i];
        c.q[0] = 2;
        c.q[1] = 0;
        for (int j = 0; j < 40; j++) {
            c.k[2 * j] = j == 11 || j == 34 ? 5 : 1;
            c.v[j] = j == 11 || j == 34 ? 1 : 2;
        }
        double share = 2 / (2 + 38 * exp(-8 * scales[i])), want = 2 - share;
        attention_run run = attention_run_make(&c, 1);
        cr_expect_eq(attention_run_forward(&run, context), ATN_OK);
        double got = guarded_at(&run.out, 0, 0, 0, 0);
        cr_expect(fabs(got - want) <= 0x1p-7 * want, "c = %g: %g, not %g", scales[i], got, want);
        attention_run_free(&run);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* NaN or infinity in one head makes that head NaN, and no other. */
Test(bf16, a_head_that_is_not_finite)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    const row r = {{1, 3, 130, 6, 5, 0}, true, NO_PADDING, false, 1, 1};
    atn_context *context = fixture_context(2, NULL);
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int k = 0; has_bf16(op) && !is_soft(op) && k < 3 * 3 * 2; k++) {
            attention_case c = case_of(op, 0, &r, 3, false);
            double *x = k % 3 == 0 ? c.q : k % 3 == 1 ? c.k : c.v;
            int64_t size = 130 * (k % 3 == 2 ? 5 : 6);
            x[k < 9 ? size : 2 * size - 1] = bad[k / 3 % 3]; /* the middle head's first or last */
            attention_run run = attention_run_make(&c, 0);
            cr_expect_eq(attention_run_forward(&run, context), ATN_NONFINITE, "%s %d",
                         attention_case_label(&c), k);
            cr_expect_eq(run.info.failures, 1, "%s %d", attention_case_label(&c), k);
            for (int head = 0; head < 3; head++)
                for (int64_t i = 0; i < 130 * 5; i++)
                    cr_expect_eq(!isnan(guarded_at(&run.out, 0, head, i / 5, i % 5)), head != 1,
                                 "%s %d: head %d", attention_case_label(&c), k, head);
            attention_run_free(&run);
            attention_case_free(&c);
        }
    atn_context_free(context);
}

/* One head, which threads share in softmax, and several. */
Test(bf16, the_same_bits_on_any_number_of_threads)
{
    static const int threads[] = {1, 2, 3, 7};
    enum { COUNTS = sizeof threads / sizeof *threads };
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int k = 0; has_bf16(op) && !is_soft(op) && k < 4; k++) {
            int heads = k % 2 ? 5 : 1;
            bool causal = k / 2 && op == ATN_SOFTMAX;
            row r = {{1, heads, k ? 1000 : 2200, 6, 6, 0}, true, NO_PADDING, causal, 1, 1};
            attention_case c = case_of(op, 0, &r, 9, false);
            attention_run run[COUNTS];
            for (int i = 0; i < COUNTS; i++) {
                atn_context *context = fixture_context(threads[i], NULL);
                run[i] = attention_run_make(&c, 0);
                cr_expect_eq(attention_run_forward(&run[i], context), ATN_OK);
                cr_expect(guarded_unwritten(&run[i].out) == 0 &&
                              guarded_same_bits(&run[i].out, &run[0].out),
                          "%s: %d threads", attention_case_label(&c), threads[i]);
                atn_context_free(context);
            }
            for (int i = 0; i < COUNTS; i++)
                attention_run_free(&run[i]);
            attention_case_free(&c);
        }
}

/* Every product is exact and every sum in the same order: without an exponential the instruction
 * set changes no bit. */
Test(bf16, the_same_bits_in_every_instruction_set)
{
    const row r = {{2, 2, 200, 37, 21, 131}, true, NO_PADDING, false, 1, 1};
    for (int v = 0; v < atn_operator_get(ATN_SIMA)->variant_count; v++) {
        attention_case c = case_of(ATN_SIMA, v, &r, 5, false);
        attention_run first = attention_run_make(&c, 0);
        for (int isa = ATN_ISA_BASE; runs(ATN_SIMA, v) && isa < ATN_ISA_COUNT; isa++) {
            atn_context_options options = {.threads = 1, .isa = (atn_isa)isa};
            atn_context *context;
            if (atn_context_create(&options, &context) != ATN_OK)
                continue;
            attention_run run = attention_run_make(&c, 0);
            cr_expect_eq(attention_run_forward(isa == ATN_ISA_BASE ? &first : &run, context),
                         ATN_OK);
            cr_expect(isa == ATN_ISA_BASE || guarded_same_bits(&run.out, &first.out), "%s: %s",
                      attention_case_label(&c), atn_isa_name((atn_isa)isa));
            attention_run_free(&run);
            atn_context_free(context);
        }
        attention_run_free(&first);
        attention_case_free(&c);
    }
}

/* Only forward, in the order that is built; the operators without it say what they compute in. */
Test(bf16, what_is_refused)
{
    atn_context *context = fixture_context(1, NULL);
    const row r = {{1, 1, 4, 2, 2, 0}, true, NO_PADDING, false, 1, 1};
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int v = 0; v < info->variant_count; v++) {
            atn_attention_desc desc = atn_attention_variant(info->op, v, ATN_BF16);
            desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 2};
            atn_plan *plan = NULL;
            atn_status status = atn_attention_plan(context, &desc, &r.shape, &plan);
            cr_expect_eq(status,
                         runs(op, v)    ? ATN_OK
                         : has_bf16(op) ? ATN_ERR_UNSUPPORTED
                                        : ATN_ERR_DTYPE,
                         "%s %s: %s", info->name, info->variants[v].name, atn_last_error(context));
            cr_expect(has_bf16(op) || strstr(atn_last_error(context), "f32 and f64 only"), "%s",
                      atn_last_error(context));
            atn_plan_free(plan);
        }
        if (!has_bf16(op))
            continue;
        attention_case c = case_of(op, 0, &r, 1, false);
        attention_run run = attention_run_make(&c, 0);
        cr_expect_eq(attention_run_backward(&run, context), ATN_ERR_UNSUPPORTED);
        cr_expect(strstr(atn_last_error(context), "forward"), "%s", atn_last_error(context));
        cr_expect_eq(guarded_unwritten(&run.gradients[SLOT_V]), 4 * 2);
        attention_run_free(&run);
        attention_case_free(&c);
    }
    for (int dtype = ATN_TF32; dtype <= ATN_F16; dtype += ATN_F16 - ATN_TF32) {
        atn_attention_desc desc = atn_attention_defaults(ATN_SOFTMAX, (atn_dtype)dtype);
        atn_plan *plan;
        cr_expect_eq(atn_attention_plan(context, &desc, &r.shape, &plan), ATN_ERR_DTYPE);
        cr_expect(strstr(atn_last_error(context), "forward in bf16"), "%s",
                  atn_last_error(context));
    }
    atn_context_free(context);
}
