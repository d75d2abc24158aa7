/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum check's own weights: equal to the library's if nothing is changed, and with gradients that
 * are derivatives of the changed weights. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/weights.h"
#include "common/report.h"
#include "runs.h"

enum { BATCH = 2, HEADS = 2, TOKENS = 20, WIDTH = 4 };

static subject problem_of(atn_operator op, bool causal, bool padding, bool cross)
{
    attention_choice choice = {.op = op,
                               .dtype = ATN_F32,
                               .shape = {BATCH, HEADS, TOKENS, WIDTH, WIDTH, 0},
                               .cross = cross,
                               .padding = padding,
                               .causal = causal,
                               .optional = true,
                               .features = 8,
                               .seed = 5};
    attention_case c = attention_case_make(&choice);
    c.reference.dtype = ATN_F64;
    c.reference.nystromformer.iterations = 2; /* later iterates do not depend on the start */
    return (subject){.c = c, .judged = c, .grad_output = c.dout, .dtype = ATN_F64};
}

static double *answer_of(const subject *s, const weight_change *change, result_kind kind)
{
    double *y = must_allocate((size_t)result_size(&s->c, kind), sizeof *y);
    cr_assert_eq(weights_answer(change, s, kind, NULL, y), ATN_OK);
    return y;
}

static void expect_equal(atn_context *context, const subject *s, result_kind kind)
{
    const weight_change nothing = {.operators = ~0u};
    int64_t size = result_size(&s->c, kind);
    if (!result_exists(&s->c, kind) || !weight_change_fits(&nothing, s, kind))
        return;
    double *y = answer_of(s, &nothing, kind), *want = must_allocate((size_t)size, sizeof *want);
    cr_assert(answer_library(context, s, ATN_F64, ATN_STORAGE_NATIVE, kind, want) >= 0);
    double error = ref_compare_f64(1, size, y, size, want, size).relative_frobenius;
    cr_expect(error < 1e-12, "%s %s: %g", attention_case_label(&s->c), result_name(kind), error);
    free(want), free(y);
}

static const atn_operator operators[] = {ATN_GAUSSIAN,  ATN_SOFTMAX,   ATN_LINFORMER,
                                         ATN_PERFORMER, ATN_RFF,       ATN_EFFICIENT,
                                         ATN_ELU,       ATN_COSFORMER, ATN_NYSTROMFORMER};
enum { OPERATORS = sizeof operators / sizeof *operators };

Test(check_weights, without_a_change_are_those_of_the_library)
{
    atn_context *context = make_context();
    for (int i = 0; i < OPERATORS; i++)
        for (int which = 0; which < 8; which++) {
            subject s = problem_of(operators[i], which & 1, which & 2, which & 4);
            for (int kind = RESULT_OUTPUT; kind <= RESULT_VALUES; kind++)
                expect_equal(context, &s, (result_kind)kind);
            attention_case_free(&s.c);
        }
    atn_context_free(context);
}

/* dY . (Y(x + h e) - Y(x - h e)) / 2h against the gradient along e. */
static void expect_derivative(const subject *s, const weight_change *change, result_kind kind)
{
    const double step = 1e-6;
    subject moved = *s;
    double **input = kind == RESULT_TOKENS ? &moved.c.q
                     : kind == RESULT_KEYS ? &moved.c.k
                                           : &moved.c.v;
    int64_t count = result_size(&s->c, kind), size = result_size(&s->c, RESULT_OUTPUT);
    double *x = must_allocate((size_t)count, sizeof *x), *kept = *input, sum = 0, along = 0;
    double *gradient = answer_of(s, change, kind), norm = 0;
    *input = x;
    for (int side = -1; side <= 1; side += 2) {
        for (int64_t i = 0; i < count; i++)
            x[i] = kept[i] + side * step * sin(1 + (double)i);
        double *y = answer_of(&moved, change, RESULT_OUTPUT);
        for (int64_t i = 0; i < size; i++)
            sum += side * s->grad_output[i] * y[i] / (2 * step);
        free(y);
    }
    for (int64_t i = 0; i < count; i++) {
        along += gradient[i] * sin(1 + (double)i);
        norm += gradient[i] * gradient[i];
    }
    cr_expect(fabs(along - sum) <= 1e-5 * (fabs(sum) + sqrt(norm)), "%s, %s, %s: %g, not %g",
              attention_case_label(&s->c), result_name(kind), change->text, along, sum);
    free(gradient), free(x);
}

/* The maximum that cancels elsewhere is a constant to gradients, as it is in kernels. */
static bool keeps_the_maximum(const weight_change *change)
{
    divisor by = change->form.divide;
    return !change->form.unshifted &&
           (by == DIVIDE_NOT || by == DIVIDE_COUNT || by == DIVIDE_SEEN || by == DIVIDE_COLUMNS);
}

Test(check_weights, gradients_are_derivatives)
{
    int tried = 0;
    for (int i = 0; i < OPERATORS; i++)
        for (int which = 0; which < 4; which++) {
            subject s = problem_of(operators[i], which & 1, which & 2, true);
            bool logits = operators[i] == ATN_SOFTMAX || operators[i] == ATN_LINFORMER ||
                          operators[i] == ATN_NYSTROMFORMER;
            for (int j = 0; j < weight_change_count; j++) {
                const weight_change *change = &weight_changes[j];
                const weight_form *f = &change->form;
                bool online = f->accumulator != RESCALE_EACH || f->sum != RESCALE_EACH;
                bool maximum = (logits && keeps_the_maximum(change)) || online ||
                               f->queries >= MAP_EXP_CHANNELS || f->keys >= MAP_EXP_TOKENS;
                for (int kind = RESULT_TOKENS; kind <= RESULT_VALUES; kind++)
                    if (weight_change_fits(change, &s, RESULT_OUTPUT) &&
                        weight_change_fits(change, &s, (result_kind)kind) &&
                        (!maximum || kind == RESULT_VALUES)) {
                        expect_derivative(&s, change, (result_kind)kind);
                        tried++;
                    }
            }
            attention_case_free(&s.c);
        }
    cr_expect(tried > 500, "only %d", tried);
}
