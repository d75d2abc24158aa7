/* SPDX-License-Identifier: BSD-3-Clause */
/* Padding: a padded token changes nothing; and what an operator cannot do is refused
 * with its reason. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"

static attention_case make(int op, int variant, bool cross, int64_t batch, int64_t tokens)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = ATN_F64,
                               .shape = {batch, 2, tokens, 4, 3, 0},
                               .cross = cross,
                               .padding = true,
                               .optional = cross,
                               .seed = 40 + cross};
    return attention_case_make(&choice);
}

static bool masks(const atn_operator_info *info)
{
    return info && (info->capabilities & ATN_CAN_MASK);
}

/* The masks in effect: with K = Q one serves both. */
static const unsigned char *query_mask(const attention_case *c)
{
    return c->choice.cross ? c->query_mask : c->key_mask;
}

/* Writes `value` into the rows of padded tokens. */
static void fill_padding(const attention_case *c, double *x, int64_t rows, int64_t cols,
                         const unsigned char *mask, double value)
{
    for (int64_t row = 0; x && row < c->shape.batch * c->shape.heads * rows; row++)
        if (!mask[row / rows / c->shape.heads * rows + row % rows])
            for (int64_t j = 0; j < cols; j++)
                x[row * cols + j] = value;
}

static void fill_inputs(attention_case *c, double value)
{
    const atn_attention_shape *s = &c->shape;
    fill_padding(c, c->q, s->tokens, s->dim, query_mask(c), value);
    fill_padding(c, c->dout, s->tokens, s->value_dim, query_mask(c), value);
    fill_padding(c, c->k, s->key_tokens, s->dim, c->key_mask, value);
    fill_padding(c, c->v, s->key_tokens, s->value_dim, c->key_mask, value);
}

/* The sum of |entries| of rows that are padding. */
static double sum_in_padding(const guarded *t, const unsigned char *mask)
{
    double sum = 0;
    for (int64_t b = 0; b < t->view.batch; b++)
        for (int64_t h = 0; h < t->view.heads; h++)
            for (int64_t i = 0; i < t->view.rows; i++)
                for (int64_t j = 0; !mask[b * t->view.rows + i] && j < t->view.cols; j++)
                    sum += fabs(guarded_at(t, b, h, i, j));
    return sum;
}

/* Forward and, if the operator can, backward. */
static void run(atn_context *context, attention_run *r)
{
    atn_status status = attention_run_forward(r, context);
    cr_expect_eq(status, ATN_OK, "%s: %s (%s)", attention_case_label(r->c), atn_status_name(status),
                 atn_last_error(context));
    status = attention_run_backward(r, context);
    cr_expect_eq(status, ATN_OK, "%s, backward: %s (%s)", attention_case_label(r->c),
                 atn_status_name(status), atn_last_error(context));
}

/* Padded rows of results are 0. */
static void check_rows(const attention_run *r)
{
    const attention_case *c = r->c;
    const guarded *const tensors[] = {&r->out, &r->gradients[SLOT_Q], &r->gradients[SLOT_K],
                                      &r->gradients[SLOT_V]};
    const unsigned char *const mask[] = {query_mask(c), query_mask(c), c->key_mask, c->key_mask};
    for (int i = 0; i < 4; i++)
        if (tensors[i]->memory)
            cr_expect_eq(sum_in_padding(tensors[i], mask[i]), 0, "%s: result %d has padding of %g",
                         attention_case_label(c), i, sum_in_padding(tensors[i], mask[i]));
}

/* All results have the same bits for any values in the padding. */
static void check_unseen(atn_context *context, int op, int variant, bool cross)
{
    static const double values[] = {0, 1e30, -3, NAN, INFINITY};
    attention_case c = make(op, variant, cross, 2, 12);
    attention_run first = attention_run_make(&c, 0), r = attention_run_make(&c, 1);
    run(context, &first);
    check_rows(&first);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        fill_inputs(&c, values[i]);
        attention_run_load(&r);
        run(context, &r);
        bool same = guarded_same_bits(&r.out, &first.out);
        for (int s = 0; s < SLOT_COUNT; s++)
            if (r.gradients[s].memory)
                same = same && guarded_same_bits(&r.gradients[s], &first.gradients[s]);
        cr_expect(same, "%s: %g in the padding changes a result", attention_case_label(&c),
                  values[i]);
    }
    attention_run_free(&r);
    attention_run_free(&first);
    attention_case_free(&c);
}

Test(masks, padding_is_not_seen)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int variant = 0; masks(atn_operator_get((atn_operator)op)) &&
                              variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            for (int cross = 0; cross < 2; cross++)
                check_unseen(context, op, variant, cross);
    atn_context_free(context);
}

/* Causal softmax attention whose first keys are padding: queries before the first key that is not,
 * more than a block of 768 and a strip of 48 of them, overwrite Y with 0. */
Test(masks, many_queries_that_see_no_key_give_0)
{
    enum { N = 900, FIRST = 850, DV = 3 };
    atn_context *context = fixture_context(1, NULL);
    attention_choice choice = {.op = ATN_SOFTMAX,
                               .shape = {1, 1, N, 4, DV, 0},
                               .causal = true,
                               .cross = true,
                               .padding = true,
                               .seed = 42};
    attention_case c = attention_case_make(&choice);
    memset(c.query_mask, 1, N);
    memset(c.key_mask, 0, FIRST);
    memset(c.key_mask + FIRST, 1, N - FIRST);
    attention_run r = attention_run_make(&c, 0);
    attention_placed p;
    atn_plan *plan;
    attention_run_place(&r, context, &p);
    cr_assert_eq(atn_attention_plan(context, &p.desc, &c.shape, &plan), ATN_OK);
    for (int seen = 1; seen >= 0; seen--) { /* first all keys, so that Y has been something else */
        atn_attention_inputs inputs = p.inputs;
        if (seen)
            inputs.key_mask = inputs.query_mask;
        cr_expect_eq(atn_attention_forward(plan, &inputs, &p.out, NULL), ATN_OK);
    }
    atn_plan_free(plan);
    attention_placed_close(&p);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < DV; j++)
            cr_expect((guarded_at(&r.out, 0, 0, i, j) == 0) == (i < FIRST), "query %d: %g", i,
                      guarded_at(&r.out, 0, 0, i, j));
    attention_run_free(&r);
    attention_case_free(&c);
    atn_context_free(context);
}

/* ---- Padded tokens taken out ---- */

/* Rows that are not padded, from the matrices of all heads to shorter ones; returns how many. */
static int64_t keep_rows(int64_t heads, int64_t rows, int64_t cols, const unsigned char *mask,
                         const double *from, double *to)
{
    int64_t kept = 0;
    for (int64_t row = 0; from && row < heads * rows; row++)
        if (mask[row % rows])
            memcpy(to + kept++ * cols, from + row * cols, (size_t)cols * sizeof *to);
    return kept / heads;
}

static int64_t count_there(int64_t tokens, const unsigned char *mask)
{
    int64_t count = 0;
    for (int64_t i = 0; i < tokens; i++)
        count += mask[i];
    return count;
}

/* Without positions, padding is the problem without those tokens. */
static void check_removed(atn_context *context, int op, int variant, bool cross)
{
    attention_case c = make(op, variant, cross, 1, 12);
    attention_choice choice = c.choice;
    const unsigned char *queries = query_mask(&c), *keys = c.key_mask;
    int64_t h = c.shape.heads, n = c.shape.tokens, n_k = c.shape.key_tokens;
    int64_t d = c.shape.dim, dv = c.shape.value_dim;
    choice.padding = false;
    choice.shape.tokens = count_there(n, queries);
    choice.shape.key_tokens = count_there(n_k, keys);
    attention_case fewer = attention_case_make(&choice);
    if (fewer.shape.key_tokens ==
        choice.shape.key_tokens) { /* the operator can have such lengths */
        keep_rows(h, n, d, queries, c.q, fewer.q);
        keep_rows(h, n, dv, queries, c.dout, fewer.dout);
        keep_rows(h, n_k, d, keys, c.k, fewer.k);
        keep_rows(h, n_k, dv, keys, c.v, fewer.v);
        attention_run masked = attention_run_make(&c, 0), r = attention_run_make(&fewer, 0);
        double *y = data_allocate(attention_case_outputs(&c));
        double *want = data_allocate(attention_case_outputs(&fewer));
        run(context, &masked);
        run(context, &r);
        guarded_get(&masked.out, y);
        guarded_get(&r.out, want);
        keep_rows(h, n, dv, queries, y, y);
        double apart = judge_relative(attention_case_outputs(&fewer), y, want);
        cr_expect(apart <= JUDGE_LAW, "%s: %.3g from the answer without the padding",
                  attention_case_label(&c), apart);
        free(want);
        free(y);
        attention_run_free(&r);
        attention_run_free(&masked);
    }
    attention_case_free(&fewer);
    attention_case_free(&c);
}

Test(masks, padding_is_the_problem_without_it)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int variant = 0; masks(atn_operator_get((atn_operator)op)) &&
                              variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            for (int cross = 0; cross < 2; cross++)
                if (atn_operator_get((atn_operator)op)->variants[variant].properties &
                    ATN_IS_PERMUTABLE)
                    check_removed(context, op, variant, cross);
    atn_context_free(context);
}

/* ---- Other numbers of keys than of queries, in a batch ---- */

/* Entries of a batch with different padding, of n and n_k that differ: a mask that is read at
 * another entry or with the other length would show. */
static void check_lengths(atn_context *context, int op, int variant, int64_t tokens, int64_t keys)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = ATN_F64,
                               .shape = {3, 1, tokens, 3, 2, keys},
                               .cross = true,
                               .padding = true,
                               .optional = true,
                               .seed = 44};
    attention_case c = attention_case_make(&choice);
    int64_t count = attention_case_outputs(&c);
    double *want = data_allocate(count), *got = data_allocate(count);
    attention_run r = attention_run_make(&c, 1);
    atn_status expected = attention_expect(&c, want);
    run(context, &r);
    check_rows(&r);
    guarded_get(&r.out, got);
    attention_slots slots = attention_run_slots(&r), wanted = attention_expect_gradients(&c);
    int slot;
    double apart = judge_relative(count, got, want);
    double error = judge_gradients(&c, want, &slots, &wanted, &slot);
    cr_expect(c.shape.key_tokens == keys && expected == ATN_OK && apart <= JUDGE_LAW &&
                  error < JUDGE_GRADIENT,
              "%s: %s, off by %.3g, gradient of %s by %.3g", attention_case_label(&c),
              atn_status_name(expected), apart, attention_slot_name(slot), error);
    attention_slots_free(&wanted);
    attention_slots_free(&slots);
    attention_run_free(&r);
    free(got);
    free(want);
    attention_case_free(&c);
}

Test(masks, other_numbers_of_keys_in_a_batch)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; variant < info->variant_count; variant++) {
            atn_attention_desc desc = atn_attention_variant(info->op, variant, ATN_F64);
            bool grid = op == ATN_COSFORMER && desc.cosformer.weighting == ATN_COSINE_2D;
            if (!masks(info) || !(info->capabilities & ATN_CAN_LENGTHS) || desc.causal || grid)
                continue;
            bool odd = (op + variant) % 2;
            check_lengths(context, op, variant, odd ? 4 : 6, odd ? 6 : 4);
        }
    }
    atn_context_free(context);
}

/* ---- Batch entries of nothing but padding ---- */

static void check_backward(atn_context *context, attention_run *r, const double *output)
{
    attention_slots want = attention_expect_gradients(r->c);
    atn_status status = attention_run_backward(r, context);
    attention_slots got = attention_run_slots(r);
    int slot;
    double error = judge_gradients(r->c, output, &got, &want, &slot);
    cr_expect(status == ATN_OK && error < JUDGE_GRADIENT,
              "%s, entry 0 without keys: %s, gradient of %s is off by %.3g",
              attention_case_label(r->c), atn_status_name(status), attention_slot_name(slot),
              error);
    attention_slots_free(&got);
    attention_slots_free(&want);
}

/* Entry 0 has no key, and no query either or some. The reference defines that result; the other
 * entry is not affected. */
static void check_no_keys(atn_context *context, int op, int variant, bool cross)
{
    attention_case c = make(op, variant, cross, 2, 5);
    int64_t half = attention_case_outputs(&c) / 2;
    double *want = data_allocate(2 * half), *got = data_allocate(2 * half);
    memset(c.key_mask, 0, (size_t)c.shape.key_tokens);
    attention_run r = attention_run_make(&c, 0);
    atn_status expected = attention_expect(&c, want);
    atn_status status = attention_run_forward(&r, context);
    guarded_get(&r.out, got);
    double apart[] = {judge_relative(half, got, want),
                      judge_relative(half, got + half, want + half)};
    cr_expect(status == expected && (cross || status == ATN_OK) && apart[1] <= JUDGE_LAW &&
                  (status != ATN_OK || apart[0] <= JUDGE_LAW),
              "%s, entry 0 without keys: %s, the reference says %s; off by %.3g and %.3g",
              attention_case_label(&c), atn_status_name(status), atn_status_name(expected),
              apart[0], apart[1]);
    if (status == ATN_OK)
        check_backward(context, &r, want);
    attention_run_free(&r);
    free(got);
    free(want);
    attention_case_free(&c);
}

/* Entry 0 has no query, and keys and values of 0: no output, so no gradient, whatever a norm of
 * them would be. A key or value that is not finite is reported all the same. */
static void check_no_queries(atn_context *context, int op, int variant)
{
    attention_case c = make(op, variant, true, 2, 5);
    int64_t keys = attention_case_keys(&c) / 2, values = keys / c.shape.dim * c.shape.value_dim;
    memset(c.query_mask, 0, (size_t)c.shape.tokens);
    memset(c.k, 0, (size_t)keys * sizeof *c.k);
    memset(c.v, 0, (size_t)values * sizeof *c.v);
    attention_run r = attention_run_make(&c, 0);
    atn_status status = attention_run_backward(&r, context);
    attention_slots got = attention_run_slots(&r);
    double sum = 0;
    for (int64_t i = 0; i < keys; i++)
        sum += fabs(got.of[SLOT_K][i]);
    for (int64_t i = 0; i < values; i++)
        sum += fabs(got.of[SLOT_V][i]);
    cr_expect(status == ATN_OK && sum == 0, "%s, entry 0 without queries: %s, gradients of %.3g",
              attention_case_label(&c), atn_status_name(status), sum);
    const unsigned char *present = memchr(c.key_mask, 1, (size_t)c.shape.key_tokens);
    double *const spoilt[] = {c.k + (present - c.key_mask) * c.shape.dim,
                              c.v + (present - c.key_mask) * c.shape.value_dim};
    for (int i = 0; i < 2; i++) {
        double before = *spoilt[i];
        *spoilt[i] = NAN;
        attention_run_load(&r);
        status = attention_run_forward(&r, context);
        cr_expect_eq(status, ATN_NONFINITE, "%s, NaN in %s without queries: %s",
                     attention_case_label(&c), i ? "V" : "K", atn_status_name(status));
        *spoilt[i] = before;
    }
    attention_slots_free(&got);
    attention_run_free(&r);
    attention_case_free(&c);
}

Test(masks, nothing_but_padding)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int variant = 0; masks(atn_operator_get((atn_operator)op)) &&
                              variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            for (int cross = 0; cross < 2; cross++)
                check_no_keys(context, op, variant, cross);
    atn_context_free(context);
}

Test(masks, no_queries_but_dead_keys)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int variant = 0; masks(atn_operator_get((atn_operator)op)) &&
                              variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            if (atn_operator_get((atn_operator)op)->capabilities & ATN_CAN_CROSS)
                check_no_queries(context, op, variant);
    atn_context_free(context);
}

/* A value that only padded queries would see is searched for NaN, as every input is. It is in
 * another block than the one query: within a block weights that are 0 multiply it. */
static void check_unseen_value(atn_context *context, int op, int variant)
{
    attention_case c = make(op, variant, true, 2, 130);
    int64_t n = c.shape.tokens, values = attention_case_keys(&c) / c.shape.dim * c.shape.value_dim;
    for (int64_t i = 0; i < c.shape.batch * n; i++) {
        c.query_mask[i] = i % n == 0;
        c.key_mask[i] = 1;
    }
    attention_run r = attention_run_make(&c, 0);
    run(context, &r);
    c.v[values - 1] = NAN;
    attention_run_load(&r);
    atn_status status = attention_run_forward(&r, context);
    cr_expect_eq(status, ATN_NONFINITE, "%s, NaN in the last of V: %s", attention_case_label(&c),
                 atn_status_name(status));
    attention_run_free(&r);
    attention_case_free(&c);
}

Test(masks, a_value_that_no_query_sees)
{
    atn_context *context = fixture_context(1, NULL);
    int checked = 0;
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; masks(info) && variant < info->variant_count; variant++)
            if (info->variants[variant].desc.causal) {
                check_unseen_value(context, op, variant);
                checked++;
            }
    }
    cr_expect(checked > 0, "no causal variant");
    atn_context_free(context);
}

/* Tokens that are masked out as queries or as keys alone, or all keys of an entry: whatever of Q,
 * K, V and dY is not masked out is searched, although no number of Y may depend on it. */
static void check_searched(atn_context *context, int op, int variant, bool cross, bool keys)
{
    attention_case c = make(op, variant, cross, 2, 5);
    int64_t n = c.shape.tokens;
    unsigned char queries[2 * 5], *own = c.query_mask; /* none with K = Q */
    c.query_mask = queries;
    memset(queries, 1, sizeof queries);
    memset(c.key_mask, 1, (size_t)(c.shape.batch * c.shape.key_tokens));
    c.query_mask[n - 1] = 0;
    memset(c.key_mask, 0, keys ? 1 : (size_t)c.shape.key_tokens);
    int64_t last_key = c.shape.key_tokens - 1, dv = c.shape.value_dim;
    double *const spoilt[] = {c.q, keys ? (cross ? c.k : c.q) + last_key * c.shape.dim : NULL,
                              keys ? c.v + last_key * dv : NULL, c.dout};
    static const char *const names[] = {"the first of Q", "the last key", "the last of V",
                                        "the first of dY"};
    attention_run r = attention_run_make(&c, 0);
    for (int i = 0; i < 4; i++) {
        if (!spoilt[i])
            continue;
        double before = *spoilt[i];
        *spoilt[i] = NAN;
        attention_run_load(&r);
        atn_status forward = attention_run_forward(&r, context),
                   backward = attention_run_backward(&r, context);
        cr_expect(backward == ATN_NONFINITE && (i == 3 || forward == ATN_NONFINITE),
                  "%s, NaN in %s, %s: forward %s, backward %s", attention_case_label(&c), names[i],
                  keys ? "one key masked out" : "no keys", atn_status_name(forward),
                  atn_status_name(backward));
        *spoilt[i] = before;
    }
    attention_run_free(&r);
    c.query_mask = own;
    attention_case_free(&c);
}

Test(masks, what_no_output_depends_on_is_searched)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; masks(info) && variant < info->variant_count; variant++)
            for (int cross = 0; cross < 2; cross++)
                for (int keys = 0; keys < 2; keys++)
                    check_searched(context, op, variant, cross, keys);
    }
    atn_context_free(context);
}

/* ---- What is refused ---- */

static void check_refused(atn_context *context, const atn_operator_info *info, atn_status status,
                          unsigned capability, const char *what)
{
    bool can = info->capabilities & capability;
    cr_expect_eq(status, can ? ATN_OK : ATN_ERR_UNSUPPORTED, "%s, %s: %s (%s)", info->name, what,
                 atn_status_name(status), atn_last_error(context));
    cr_expect(can || (info->unsupported && strlen(info->unsupported) > 10 &&
                      strstr(atn_last_error(context), info->unsupported)),
              "%s, %s: no reason in \"%s\"", info->name, what, atn_last_error(context));
}

static atn_status plan_status(atn_context *context, const atn_attention_desc *desc,
                              const atn_attention_shape *shape)
{
    atn_plan *plan;
    staged s = staged_open(context);
    atn_attention_desc placed = staged_desc(&s, desc, shape);
    atn_status status = atn_attention_plan(context, &placed, shape, &plan);
    atn_plan_free(plan);
    staged_close(&s);
    return status;
}

/* A mask given to a plan made without padding. */
static void check_masked_call(atn_context *context, const atn_operator_info *info,
                              attention_case *c)
{
    static const unsigned char ones[64] = {1};
    attention_run r = attention_run_make(c, 0);
    attention_placed p;
    atn_plan *plan;
    attention_run_place(&r, context, &p);
    const unsigned char *mask = staged_bytes(&p.s, ones, sizeof ones);
    cr_assert_eq(atn_attention_plan(context, &p.desc, &c->shape, &plan), ATN_OK, "%s: %s",
                 info->name, atn_last_error(context));
    for (int which = 0; which < 2; which++) {
        p.inputs.query_mask = which ? mask : NULL;
        p.inputs.key_mask = which ? NULL : mask;
        cr_expect_eq(atn_attention_forward(plan, &p.inputs, &p.out, NULL), ATN_ERR_VALUE,
                     "%s: a mask without padding", info->name);
    }
    atn_plan_free(plan);
    attention_placed_close(&p);
    cr_expect_eq(guarded_unwritten(&r.out), attention_case_outputs(c));
    attention_run_free(&r);
}

/* K given to a plan. */
static void check_cross_call(atn_context *context, const atn_operator_info *info, attention_case *c)
{
    attention_run r = attention_run_make(c, 0);
    attention_placed p;
    atn_tensor k;
    atn_plan *plan;
    guarded_set(&r.k, c->q);
    attention_run_place(&r, context, &p);
    p.inputs.k = staged_input(&p.s, &r.k, &k);
    cr_assert_eq(atn_attention_plan(context, &p.desc, &c->shape, &plan), ATN_OK, "%s: %s",
                 info->name, atn_last_error(context));
    atn_status status = atn_attention_forward(plan, &p.inputs, &p.out, NULL);
    check_refused(context, info, status < 0 ? status : ATN_OK, ATN_CAN_CROSS, "K given");
    atn_plan_free(plan);
    attention_placed_close(&p);
    attention_run_free(&r);
}

Test(masks, what_cannot_be_done_is_refused_with_the_reason)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        attention_choice choice = {
            .op = (atn_operator)op, .dtype = ATN_F64, .shape = {1, 1, 8, 4, 4, 0}, .seed = 3};
        attention_case c = attention_case_make(&choice);
        atn_attention_desc padding = c.desc, causal = c.desc;
        atn_attention_shape longer = c.shape;
        padding.padding = true;
        causal.causal = true;
        longer.key_tokens = 10;
        check_refused(context, info, plan_status(context, &padding, &c.shape), ATN_CAN_MASK,
                      "padding");
        check_refused(context, info, plan_status(context, &causal, &c.shape), ATN_CAN_CAUSAL,
                      "causal");
        choice.shape.key_tokens = 10;
        attention_case l = attention_case_make(&choice); /* with parameters for 10 keys */
        check_refused(context, info, plan_status(context, &l.desc, &longer), ATN_CAN_LENGTHS,
                      "other lengths");
        check_masked_call(context, info, &c);
        check_cross_call(context, info, &c);
        attention_case_free(&l);
        attention_case_free(&c);
    }
    atn_context_free(context);
}
