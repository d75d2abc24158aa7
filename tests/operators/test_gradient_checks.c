/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge of gradients itself, seen to fail: for every operator, gradients with a wrong sign, a
 * dropped term or a transposed factor are rejected by the judge that accepts the right ones. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"

/* A mistake in one slot of the right gradients of a case. Returns 0 if it cannot be made there, 1
 * if it was. */
typedef struct {
    atn_context *context;
    attention_case *c;
    const attention_slots *right;
} subject;

static attention_slots backward(atn_context *context, const attention_case *c)
{
    attention_run r = attention_run_make(c, 0);
    atn_status status = attention_run_backward(&r, context);
    cr_expect(status >= 0, "%s: %s", attention_case_label(c), atn_last_error(context));
    attention_slots got = attention_run_slots(&r);
    attention_run_free(&r);
    return got;
}

static bool negate(const subject *s, int slot, double *wrong)
{
    for (int64_t i = 0; i < attention_slot_count(s->c, slot); i++)
        wrong[i] = -wrong[i];
    return true;
}

/* The gradient of another case's slot of the same size. */
static bool take(const subject *s, const attention_case *other, int slot, double *wrong)
{
    attention_slots got = backward(s->context, other);
    memcpy(wrong, got.of[slot], (size_t)attention_slot_count(s->c, slot) * sizeof *wrong);
    attention_slots_free(&got);
    return true;
}

/* The rows of each head's matrix that belong to one token become 0. */
static void clear_token(const attention_case *c, double *x, int64_t rows, int64_t cols, int64_t row)
{
    for (int64_t head = 0; head < c->shape.batch * c->shape.heads; head++)
        memset(x + (head * rows + row) * cols, 0, (size_t)cols * sizeof *x);
}

/* The terms of one row of dY are left out of the sum. */
static bool drop_an_output(const subject *s, int slot, double *wrong)
{
    const atn_attention_shape *shape = &s->c->shape;
    attention_case other = attention_case_widened(s->c);
    clear_token(&other, other.dout, shape->tokens, shape->value_dim, shape->tokens - 1);
    take(s, &other, slot, wrong);
    attention_case_free(&other);
    return true;
}

/* The terms of one value vector are left out. */
static bool drop_a_value(const subject *s, int slot, double *wrong)
{
    const atn_attention_shape *shape = &s->c->shape;
    if (slot == SLOT_V)
        return false;
    attention_case other = attention_case_widened(s->c);
    clear_token(&other, other.v, shape->key_tokens, shape->value_dim, 0);
    take(s, &other, slot, wrong);
    attention_case_free(&other);
    return true;
}

/* K = Q, but only the queries' side is differentiated. */
static bool drop_the_keys_side(const subject *s, int slot, double *wrong)
{
    if (slot != SLOT_Q || s->c->choice.cross ||
        !(atn_operator_get(s->c->choice.op)->capabilities & ATN_CAN_CROSS))
        return false;
    attention_case other = *s->c;
    other.choice.cross = true;
    other.k = other.q;
    return take(s, &other, slot, wrong);
}

/* The leading square of each matrix transposed. */
static bool transpose(const subject *s, int slot, double *wrong)
{
    const atn_attention_shape *shape = &s->c->shape;
    atn_attention_desc desc = s->c->reference;
    int64_t rows = shape->tokens, cols = slot == SLOT_V ? shape->value_dim : shape->dim;
    if (slot >= SLOT_PARAMETERS) {
        const atn_tensor *t =
            atn_attention_parameter(&desc, (atn_parameter)(slot - SLOT_PARAMETERS));
        rows = t->rows, cols = t->cols;
    }
    int64_t side = rows < cols ? rows : cols;
    for (int64_t at = 0; at < attention_slot_count(s->c, slot); at += rows * cols)
        for (int64_t i = 0; i < side; i++)
            for (int64_t j = 0; j < side; j++)
                wrong[at + i * cols + j] = s->right->of[slot][at + j * cols + i];
    return side > 1;
}

static const struct {
    const char *name;
    bool (*make)(const subject *, int slot, double *wrong);
} mistakes[] = {
    {"a wrong sign", negate},           {"a dropped output", drop_an_output},
    {"a dropped value", drop_a_value},  {"a dropped side of K = Q", drop_the_keys_side},
    {"a transposed factor", transpose},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

/* Makes each mistake in each slot that is not empty; counts the mistakes made. */
static void check(const subject *s, int made[MISTAKES])
{
    const attention_case *c = s->c;
    double *output = data_allocate(attention_case_outputs(c));
    attention_slots want = attention_expect_gradients(c), zeros = attention_slots_make(c);
    int worst;
    attention_expect(c, output);
    cr_expect(judge_gradients(c, output, s->right, &want, &worst) < JUDGE_GRADIENT,
              "%s: the right gradient of %s is rejected", attention_case_label(c),
              attention_slot_name(worst));
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        int64_t count = attention_slot_count(c, slot);
        bool holds = want.of[slot] &&
                     judge_gradient_error(c, output, slot, zeros.of[slot], want.of[slot]) >= 1;
        for (int m = 0; holds && m < MISTAKES; m++) {
            double *wrong = data_allocate(count);
            memcpy(wrong, s->right->of[slot], (size_t)count * sizeof *wrong);
            bool possible = mistakes[m].make(s, slot, wrong);
            double error = judge_gradient_error(c, output, slot, wrong, want.of[slot]);
            cr_expect(!possible || error >= JUDGE_GRADIENT, "%s: %s in the gradient of %s passes",
                      attention_case_label(c), mistakes[m].name, attention_slot_name(slot));
            made[m] += possible;
            free(wrong);
        }
    }
    attention_slots_free(&zeros);
    attention_slots_free(&want);
    free(output);
}

Test(gradient_checks, wrong_gradients_are_rejected)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        int made[MISTAKES] = {0};
        for (int given = 0; given < 2; given++) { /* K, and what may be null */
            attention_choice choice = {.op = (atn_operator)op,
                                       .variant = 0,
                                       .dtype = ATN_F64,
                                       .shape = {1, 2, 8, 4, 4, 0},
                                       .cross = given,
                                       .optional = given,
                                       .sampling = ATN_SAMPLING_INDICES,
                                       .seed = 3};
            attention_case c = attention_case_make(&choice);
            attention_slots right = backward(context, &c);
            check(&(subject){context, &c, &right}, made);
            attention_slots_free(&right);
            attention_case_free(&c);
        }
        for (int m = 0; m < MISTAKES; m++)
            cr_expect(made[m] > 0 || (mistakes[m].make == drop_the_keys_side &&
                                      !(info->capabilities & ATN_CAN_CROSS)),
                      "%s: %s was never made", info->name, mistakes[m].name);
    }
    atn_context_free(context);
}
