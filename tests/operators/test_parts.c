/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads of so many tokens that the CPU sums over them in parts (head_share). That no bit depends on
 * the threads is test_threads.c's. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "attention_run.h"
#include "fixture.h"

/* Y, then the gradients by the inputs, of a case of one batch entry and one head. */
static double *results(const attention_case *c, int64_t *count)
{
    atn_context *context = fixture_context(2, NULL);
    attention_run r = attention_run_make(c, 0);
    double *all;
    *count = attention_case_outputs(c);
    cr_assert(attention_run_forward(&r, context) >= 0 && attention_run_backward(&r, context) >= 0 &&
              attention_run_clean(&r, true));
    attention_slots gradients = attention_run_slots(&r);
    for (int slot = 0; slot < SLOT_PARAMETERS; slot++)
        *count += attention_slot_count(c, slot);
    double *to = all = malloc((size_t)*count * sizeof *all);
    guarded_get(&r.out, to);
    to += attention_case_outputs(c);
    for (int slot = 0; slot < SLOT_PARAMETERS; slot++) {
        int64_t some = attention_slot_count(c, slot);
        if (some > 0)
            memcpy(to, gradients.of[slot], (size_t)some * sizeof *to);
        to += some;
    }
    attention_slots_free(&gradients);
    attention_run_free(&r);
    atn_context_free(context);
    return all;
}

static const atn_operator of_pairs[] = {ATN_SOFTMAX, ATN_GAUSSIAN};

/* More queries than a span: dQ is that of their parts, and dK and dV are the sums over these. */
Test(parts, pairs_of_many_queries)
{
    enum { TOKENS = 4200, PART = 420, D = 3, DV = 2, KEYS = 600 };
    for (int i = 0; i < 2; i++) {
        attention_choice choice = {.op = of_pairs[i],
                                   .dtype = ATN_F64,
                                   .shape = {1, 1, TOKENS, D, DV, KEYS},
                                   .cross = true,
                                   .seed = 16};
        attention_case c = attention_case_make(&choice), part = c;
        int64_t count, some, queries = TOKENS * (DV + D), keys = KEYS * (D + DV);
        double *whole = results(&c, &count), *sums = calloc((size_t)count, sizeof *sums);
        cr_assert_eq(count, queries + keys);
        part.shape.tokens = PART;
        for (int64_t first = 0; first < TOKENS; first += PART) {
            part.q = c.q + first * D;
            part.dout = c.dout + first * DV;
            double *got = results(&part, &some);
            memcpy(sums + first * DV, got, PART * DV * sizeof *got);
            memcpy(sums + TOKENS * DV + first * D, got + PART * DV, PART * D * sizeof *got);
            for (int64_t e = 0; e < keys; e++)
                sums[queries + e] += got[PART * (DV + D) + e];
            free(got);
        }
        double apart = judge_relative(count, whole, sums);
        cr_expect(apart <= 1e-13, "%s: %.3g", attention_case_label(&c), apart);
        free(sums);
        free(whole);
        attention_case_free(&c);
    }
}

/* With K = Q both gradients are one array, the sum of what they are if K is an array of its own. */
Test(parts, pairs_with_one_gradient)
{
    enum { TOKENS = 1100, D = 3, DV = 2 };
    for (int i = 0; i < 2; i++) {
        attention_choice choice = {
            .op = of_pairs[i], .dtype = ATN_F64, .shape = {1, 1, TOKENS, D, DV, 0}, .seed = 18};
        attention_case c = attention_case_make(&choice), cross = c;
        int64_t count, cross_count, dq = TOKENS * DV, dk = dq + TOKENS * D;
        cross.k = c.q;
        cross.choice.cross = true;
        double *one = results(&c, &count), *two = results(&cross, &cross_count);
        cr_assert(count == dk + TOKENS * DV && cross_count == count + TOKENS * D);
        for (int64_t e = 0; e < TOKENS * D; e++)
            two[dq + e] += two[dk + e];
        memmove(two + dk, two + dk + TOKENS * D, TOKENS * DV * sizeof *two);
        double apart = judge_relative(count, one, two);
        cr_expect(apart <= 1e-13, "%s: %.3g", attention_case_label(&c), apart);
        free(one);
        free(two);
        attention_case_free(&c);
    }
}

/* Causal, and few of many queries are valid: threads share the keys. */
Test(parts, few_valid_queries)
{
    atn_context *context = fixture_context(2, NULL);
    attention_choice choice = {.op = ATN_SOFTMAX,
                               .dtype = ATN_F64,
                               .shape = {1, 1, 1100, 3, 2, 0},
                               .cross = true,
                               .padding = true,
                               .causal = true,
                               .seed = 19};
    attention_case c = attention_case_make(&choice);
    double ratio, kappa, *want = malloc((size_t)attention_case_outputs(&c) * sizeof *want);
    for (int64_t i = 0; i < c.shape.tokens; i++) {
        c.query_mask[i] = i % 90 == 7;
        c.key_mask[i] = i % 50 != 7;
    }
    attention_expect(&c, want);
    judge_conditions(&c, want, &kappa);
    attention_run r = attention_run_make(&c, 0);
    cr_expect(attention_run_forward(&r, context) >= 0 && attention_run_clean(&r, false));
    cr_expect_eq(judge_forward(&r, want, &kappa, &ratio), REF_PASS, "ratio %.3g", ratio);
    attention_run_free(&r);
    attention_case_free(&c);
    free(want);
    atn_context_free(context);
}

/* All logits overflow, with few queries and with many, of a few keys and of many. */
Test(parts, overflowing_logits)
{
    static const atn_operator ops[] = {ATN_SOFTMAX, ATN_NYSTROMFORMER};
    static const int64_t sizes[][2] = {{20, 100}, {20, 600}, {200, 600}};
    atn_context *context = fixture_context(2, NULL);
    for (int op = 0; op < 2; op++)
        for (int i = 0; i < 3; i++) {
            attention_choice choice = {.op = ops[op],
                                       .dtype = ATN_F32,
                                       .shape = {1, 1, sizes[i][0], 3, 2, sizes[i][1]},
                                       .cross = true,
                                       .seed = 20};
            attention_case c = attention_case_make(&choice);
            for (int64_t e = 0; e < attention_case_queries(&c); e++)
                c.q[e] = 1e20;
            for (int64_t e = 0; e < attention_case_keys(&c); e++)
                c.k[e] = -1e20;
            attention_run r = attention_run_make(&c, 0);
            cr_expect_eq(attention_run_forward(&r, context), ATN_NONFINITE, "%s",
                         attention_case_label(&c));
            attention_run_free(&r);
            attention_case_free(&c);
        }
    atn_context_free(context);
}

/* Leaves out rows first .. last - 1. */
static void drop_rows(int64_t rows, int64_t first, int64_t last, int64_t cols, double *x)
{
    memmove(x + first * cols, x + last * cols, (size_t)((rows - last) * cols) * sizeof *x);
}

/* Causal, and a group of 512 tokens is padding, the first, one between or the last: as if it were
 * not there. */
Test(parts, padded_groups)
{
    enum { TOKENS = 2000, GROUP = 512, D = 3, DV = 2 };
    static const atn_operator ops[] = {ATN_SOFTMAX, ATN_PERFORMER, ATN_ELU};
    static const int64_t widths[] = {DV, D, D, DV};
    for (int op = 0; op < 3; op++)
        for (int64_t first = 0; first < TOKENS; first += GROUP) {
            attention_choice choice = {.op = ops[op],
                                       .dtype = ATN_F64,
                                       .shape = {1, 1, TOKENS, D, DV, 0},
                                       .cross = true,
                                       .padding = true,
                                       .causal = true,
                                       .seed = 21};
            attention_case c = attention_case_make(&choice);
            int64_t last = first + GROUP < TOKENS ? first + GROUP : TOKENS, count, left;
            int64_t rows = TOKENS - last + first;
            double *const inputs[] = {c.dout, c.q, c.k, c.v};
            for (int64_t i = 0; i < TOKENS; i++)
                c.query_mask[i] = c.key_mask[i] = i < first || i >= last;
            double *padded = results(&c, &count);
            for (int x = 0; x < 4; x++)
                drop_rows(TOKENS, first, last, widths[x], inputs[x]);
            c.query_mask = c.key_mask = NULL;
            c.shape.tokens = c.shape.key_tokens = rows;
            double *whole = results(&c, &left), apart = 0;
            cr_assert(count == TOKENS * (2 * D + 2 * DV) && left == rows * (2 * D + 2 * DV));
            for (int64_t x = 0, from = 0, to = 0; x < 4; x++) {
                drop_rows(TOKENS, first, last, widths[x], padded + from);
                apart = fmax(apart, judge_relative(rows * widths[x], padded + from, whole + to));
                from += TOKENS * widths[x];
                to += rows * widths[x];
            }
            cr_expect(apart <= 1e-13, "%s, from %d on: %.3g", attention_case_label(&c), (int)first,
                      apart);
            free(padded);
            free(whole);
            attention_case_free(&c);
        }
}

static void reverse_rows(int64_t rows, int64_t cols, double *x)
{
    for (int64_t i = 0; i < rows / 2; i++)
        for (int64_t e = 0; e < cols; e++) {
            double kept = x[i * cols + e];
            x[i * cols + e] = x[(rows - 1 - i) * cols + e];
            x[(rows - 1 - i) * cols + e] = kept;
        }
}

/* Norms whose squares are summed in different units: what comes of the tokens in reverse order is
 * the same, in reverse order. */
Test(parts, norms_in_different_units)
{
    enum { TOKENS = 1100, WIDTH = 5 };
    static const struct {
        atn_operator op;
        int variant;
    } ops[] = {{ATN_SIMA, 3}, {ATN_XCA, 0}};
    for (int i = 0; i < 2; i++) {
        attention_choice choice = {.op = ops[i].op,
                                   .variant = ops[i].variant,
                                   .dtype = ATN_F64,
                                   .shape = {1, 1, TOKENS, WIDTH, WIDTH, 0},
                                   .cross = true,
                                   .seed = 17};
        attention_case c = attention_case_make(&choice);
        int64_t count;
        for (int64_t e = 0; e < TOKENS / 2 * WIDTH; e++) {
            c.q[e] *= 8;
            c.k[e] *= 8;
        }
        double *forwards = results(&c, &count);
        double *const inputs[] = {c.q, c.k, c.v, c.dout};
        for (int x = 0; x < 4; x++)
            reverse_rows(TOKENS, WIDTH, inputs[x]);
        double *backwards = results(&c, &count);
        cr_assert_eq(count, 4 * TOKENS * WIDTH);
        for (int x = 0; x < 4; x++)
            reverse_rows(TOKENS, WIDTH, backwards + x * TOKENS * WIDTH);
        double apart = judge_relative(count, backwards, forwards);
        cr_expect(apart <= 1e-13, "%s: %.3g", attention_case_label(&c), apart);
        free(forwards);
        free(backwards);
        attention_case_free(&c);
    }
}
