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

/* More queries than a span, more keys than a group; with K = Q both gradients are one array. With
 * masks, even if every token is valid, backward takes all pairs at once. */
Test(parts, pairs_of_many_tokens)
{
    static const atn_operator ops[] = {ATN_SOFTMAX, ATN_GAUSSIAN};
    for (int i = 0; i < 2; i++)
        for (int cross = 0; cross < 2; cross++) {
            attention_choice choice = {.op = ops[i],
                                       .dtype = ATN_F64,
                                       .shape = {1, 1, 4200, 3, 2, cross ? 600 : 0},
                                       .cross = cross != 0,
                                       .padding = true,
                                       .seed = 16};
            attention_case c = attention_case_make(&choice);
            int64_t count;
            memset(c.key_mask, 1, (size_t)c.shape.key_tokens);
            if (c.query_mask)
                memset(c.query_mask, 1, (size_t)c.shape.tokens);
            double *whole = results(&c, &count);
            c.query_mask = c.key_mask = NULL;
            double *parts = results(&c, &count), apart = judge_relative(count, parts, whole);
            cr_expect(apart <= 1e-13, "%s: %.3g", attention_case_label(&c), apart);
            free(whole);
            free(parts);
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
