/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operator and variant backward against the reference's derivatives (complex step), and the
 * check itself against gradients that are wrong on purpose. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"

typedef struct {
    atn_attention_shape shape; /* b, h, n, d, dv, n_k */
    bool cross, padding, causal, optional;
} gradient_row;

/* Small: the reference costs one evaluation per element. */
static const gradient_row rows[] = {
    {{1, 1, 1, 1, 1, 0}, false, false, false, false},
    {{1, 2, 2, 3, 2, 0}, true, false, false, false},
    {{2, 2, 5, 4, 3, 0}, false, false, false, false},
    {{2, 2, 5, 4, 3, 0}, true, false, false, true},
    {{1, 2, 9, 3, 2, 6}, true, false, false, false},
    {{2, 2, 4, 2, 3, 7}, true, false, false, true},
    {{2, 2, 6, 3, 2, 0}, false, true, false, false},
    {{1, 2, 7, 3, 2, 5}, true, true, false, true},
    {{2, 2, 6, 3, 2, 0}, false, false, true, false},
    {{2, 1, 7, 3, 2, 0}, true, true, true, true},
    {{1, 2, 9, 5, 4, 0}, false, false, false, true},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Several blocks of 64, held against derivatives in random directions only. */
static const gradient_row long_rows[] = {
    {{1, 2, 65, 3, 2, 0}, false, false, false, false},
    {{1, 1, 130, 2, 3, 67}, true, true, false, true},
    {{1, 1, 130, 3, 2, 0}, true, false, true, false},
};
enum { LONG_ROWS = sizeof long_rows / sizeof *long_rows };

static attention_case make(const gradient_row *row, int op, int variant, atn_dtype dtype)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = dtype,
                               .shape = row->shape,
                               .cross = row->cross,
                               .padding = row->padding,
                               .causal = row->causal,
                               .optional = row->optional,
                               .sampling = ATN_SAMPLING_INDICES,
                               .seed = 7 + (uint64_t)(row->shape.tokens + row->shape.dim)};
    return attention_case_make(&choice);
}

/* Whether a row asks for what the operator cannot do: another row then has the same case. */
static bool repeats(const gradient_row *row, const attention_case *c)
{
    return row->padding != c->choice.padding || (row->causal && !c->choice.causal) ||
           (row->cross && !c->choice.cross && !row->optional);
}

/* What the reference says about a case. */
typedef struct {
    double *output;
    attention_slots gradients;
    double kappa;
} expectation;

/* The worst head's kappa. */
static double condition(const attention_case *c, const double *output)
{
    int64_t heads = c->shape.batch * c->shape.heads;
    double *kappa = data_allocate(heads);
    judge_conditions(c, output, kappa);
    double worst = judge_largest(heads, kappa);
    free(kappa);
    return worst;
}

static expectation expect(const attention_case *c)
{
    expectation e = {.output = data_allocate(attention_case_outputs(c))};
    attention_expect(c, e.output);
    e.kappa = condition(c, e.output);
    e.gradients = attention_expect_gradients(c);
    return e;
}

static void forget(expectation *e)
{
    attention_slots_free(&e->gradients);
    free(e->output);
}

/* What was seen of one variant: the worst error, and the slots in which zeros would have failed. */
typedef struct {
    int judged, run, long_judged, long_run;
    double worst, worst_ratio;
    unsigned there, seen;
} tally;

static void note(const attention_case *c, const expectation *e, double error, tally *t)
{
    attention_slots zeros = attention_slots_make(c);
    t->run++;
    for (int s = 0; s < SLOT_COUNT; s++)
        t->there |= e->gradients.of[s] ? 1u << s : 0;
    if (e->kappa <= JUDGE_MOST_CONDITION) {
        t->judged++;
        t->worst = fmax(t->worst, error);
        for (int s = 0; s < SLOT_COUNT; s++)
            if (e->gradients.of[s] &&
                judge_gradient_error(c, e->output, s, zeros.of[s], e->gradients.of[s]) >= 1)
                t->seen |= 1u << s;
    }
    attention_slots_free(&zeros);
}

static void check_f64(atn_context *context, const attention_case *c, int layout, tally *t)
{
    expectation e = expect(c);
    attention_run r = attention_run_make(c, layout);
    atn_status status = attention_run_backward(&r, context);
    attention_slots got = attention_run_slots(&r);
    int slot;
    double error = judge_gradients(c, e.output, &got, &e.gradients, &slot);
    cr_expect(status >= 0 && status != ATN_NONFINITE && attention_run_clean(&r, true) &&
                  (e.kappa > JUDGE_MOST_CONDITION || error < JUDGE_GRADIENT),
              "%s: %s (%s), gradient of %s is off by %.3g, kappa %.3g, clean %d",
              attention_case_label(c), atn_status_name(status), atn_last_error(context),
              attention_slot_name(slot), error, e.kappa, attention_run_clean(&r, true));
    note(c, &e, error, t);
    attention_slots_free(&got);
    attention_run_free(&r);
    forget(&e);
}

/* ---- f32 against f64, which is held against the reference ---- */

static attention_slots gradients_of(atn_context *context, const attention_case *c, int layout)
{
    attention_run r = attention_run_make(c, layout);
    atn_status status = attention_run_backward(&r, context);
    cr_expect(status >= 0 && status != ATN_NONFINITE && attention_run_clean(&r, true),
              "%s: %s (%s), clean %d", attention_case_label(c), atn_status_name(status),
              atn_last_error(context), attention_run_clean(&r, true));
    attention_slots got = attention_run_slots(&r);
    attention_run_free(&r);
    return got;
}

static void perturb(uint64_t *state, int64_t count, const double *from, double size, double *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i] * (data_next(state) & 1 ? 1 + size : 1 - size);
}

/* kappa of each gradient: 1 plus its relative change under random relative changes of q, k, v and
 * dY, the largest of three, and no less than that of the output. */
static void gradient_conditions(atn_context *context, const attention_case *c, const double *output,
                                const attention_slots *base, double *kappa)
{
    const double size = 1e-6; /* between rounding and curvature */
    attention_case moved = attention_case_widened(c);
    uint64_t state = c->choice.seed;
    double least = condition(c, output);
    for (int s = 0; s < SLOT_COUNT; s++)
        kappa[s] = least;
    for (int turn = 0; turn < 3; turn++) {
        perturb(&state, attention_case_queries(c), c->q, size, moved.q);
        perturb(&state, attention_case_keys(c), c->k, size, moved.k);
        perturb(&state, attention_case_values(c), c->v, size, moved.v);
        perturb(&state, attention_case_outputs(c), c->dout, size, moved.dout);
        attention_slots there = gradients_of(context, &moved, 0);
        for (int s = 0; s < SLOT_COUNT; s++) {
            if (!base->of[s])
                continue;
            double change = judge_gradient_error(c, output, s, there.of[s], base->of[s]);
            kappa[s] = fmax(kappa[s], 1 + change / size);
        }
        attention_slots_free(&there);
    }
    attention_case_free(&moved);
}

static void check_f32(atn_context *context, const attention_case *c, int layout, tally *t)
{
    attention_case wide = attention_case_widened(c);
    double kappa[SLOT_COUNT], *output = data_allocate(attention_case_outputs(c));
    double unit = (double)attention_case_terms(c) * atn_dtype_roundoff(ATN_F32);
    attention_expect(c, output);
    attention_slots want = gradients_of(context, &wide, layout);
    attention_slots got = gradients_of(context, c, layout + 1);
    gradient_conditions(context, c, output, &want, kappa);
    for (int s = 0; s < SLOT_COUNT; s++) {
        if (!want.of[s] || kappa[s] * unit > 0.1)
            continue;
        double error = judge_gradient_error(c, output, s, got.of[s], want.of[s]);
        double ratio = error / (kappa[s] * unit);
        cr_expect(ref_judge(REF_FORWARD, ratio) == REF_PASS,
                  "%s: gradient of %s is off by %.3g, kappa %.3g, ratio %.3g",
                  attention_case_label(c), attention_slot_name(s), error, kappa[s], ratio);
        t->worst_ratio = fmax(t->worst_ratio, ratio);
    }
    attention_slots_free(&got);
    attention_slots_free(&want);
    free(output);
    attention_case_free(&wide);
}

/* ---- Several blocks: <g, x> against the reference's derivative in random directions x ---- */

static void check_directions(atn_context *context, const attention_case *c, int layout, tally *t)
{
    ref_attention_problem problem = attention_case_problem(c);
    int64_t outputs = attention_case_outputs(c);
    double *output = data_allocate(outputs), *change = data_allocate(outputs);
    attention_slots got = gradients_of(context, c, layout);
    attention_expect(c, output);
    bool judged = condition(c, output) <= JUDGE_MOST_CONDITION;
    t->long_run++;
    t->long_judged += judged;
    for (int s = 0; s < SLOT_COUNT; s++) {
        if (!judged || !got.of[s])
            continue;
        int64_t count = attention_slot_count(c, s);
        attention_slots direction = {{NULL}};
        direction.of[s] = data_allocate(count);
        data_normal(c->choice.seed + (uint64_t)s, count, direction.of[s]);
        ref_attention_arrays arrays = attention_slots_arrays(&direction);
        cr_expect(ref_attention_derivative(&problem, &arrays, change) >= 0);
        /* want is got corrected along the direction, so that one judge serves all */
        double missing = 0, squares = 0, *want = data_allocate(count);
        for (int64_t i = 0; i < outputs; i++)
            missing += c->dout[i] * change[i];
        for (int64_t i = 0; i < count; i++) {
            missing -= got.of[s][i] * direction.of[s][i];
            squares += direction.of[s][i] * direction.of[s][i];
        }
        for (int64_t i = 0; i < count; i++)
            want[i] = got.of[s][i] + missing * direction.of[s][i] / squares * sqrt((double)count);
        double error = judge_gradient_error(c, output, s, got.of[s], want);
        cr_expect(error < JUDGE_GRADIENT, "%s: gradient of %s is off by %.3g in a direction",
                  attention_case_label(c), attention_slot_name(s), error);
        free(want);
        attention_slots_free(&direction);
    }
    attention_slots_free(&got);
    free(change);
    free(output);
}

/* ---- All operators ---- */

static void report(const atn_operator_info *info, int variant, const tally *t)
{
    const char *name = info->variants[variant].name;
    fprintf(stderr,
            "%s %s: %d of %d judged, worst error %.3g in f64, worst ratio %.3g in f32; %d of %d "
            "long ones\n",
            info->name, name, t->judged, t->run, t->worst, t->worst_ratio, t->long_judged,
            t->long_run);
    cr_expect(t->judged >= t->run / 2 && t->long_judged > 0,
              "%s %s: only %d of %d and %d long ones could be judged", info->name, name, t->judged,
              t->run, t->long_judged);
    for (int s = 0; s < SLOT_COUNT; s++)
        cr_expect(!((t->there & ~t->seen) & 1u << s),
                  "%s %s: no gradient of %s was above the floor", info->name, name,
                  attention_slot_name(s));
}

static void check_variant(atn_context *context, int op, int variant, tally *t)
{
    for (int i = 0; i < ROWS + LONG_ROWS; i++) {
        const gradient_row *row = i < ROWS ? &rows[i] : &long_rows[i - ROWS];
        attention_case c = make(row, op, variant, ATN_F64);
        attention_case narrow = make(row, op, variant, ATN_F32);
        if (!repeats(row, &c)) {
            if (i < ROWS)
                check_f64(context, &c, i, t);
            else
                check_directions(context, &c, i, t);
            check_f32(context, &narrow, i, t);
        }
        attention_case_free(&narrow);
        attention_case_free(&c);
    }
}

Test(gradients, backward_is_the_derivative)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = attention_row(op);
        bool known = info && attention_has_backward(info) && attention_has_reference(info);
        for (int variant = 0; known && variant < info->variant_count; variant++) {
            tally t = {0};
            check_variant(context, op, variant, &t);
            report(info, variant, &t);
        }
    }
    atn_context_free(context);
}

/* ---- How the inverse of soft and softpp is differentiated ---- */

static bool newton(int method)
{
    return method <= ATN_INVERSE_NR_SOFTPP && method != ATN_INVERSE_NR_ADAPTIVE;
}

static bool goes_with(int mode, int method)
{
    return mode == ATN_GRADIENT_CLOSED  ? method != ATN_INVERSE_NR_ADAPTIVE
           : mode == ATN_GRADIENT_STEPS ? newton(method)
                                        : method == ATN_INVERSE_EIG;
}

/* A few steps from alpha: X is far from the inverse, which is where the modes differ. */
static attention_case soft_case(int op, int sampling, int mode, int method)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .dtype = ATN_F64,
                               .shape = {2, 1, 16, 3, 1, 0},
                               .optional = true,
                               .sampling = (atn_sampling_kind)sampling,
                               .seed = 31 + (uint64_t)sampling};
    attention_case c = attention_case_make(&choice);
    c.desc.inverse = atn_inverse_defaults((atn_inverse_method)method);
    c.desc.inverse.iterations = 6;
    if (method == ATN_INVERSE_NR)
        c.desc.inverse.alpha = 0.02;
    c.desc.gradient = (atn_gradient)mode;
    c.reference.inverse = c.desc.inverse;
    c.reference.gradient = c.desc.gradient;
    return c;
}

static void check_refused(atn_context *context, const attention_case *c, int mode, int method)
{
    attention_run r = attention_run_make(c, 0);
    atn_status status = attention_run_backward(&r, context);
    cr_expect(status == ATN_ERR_UNSUPPORTED || status == ATN_ERR_VALUE, "%s through %s: %s",
              atn_inverse_name((atn_inverse_method)method), atn_gradient_name((atn_gradient)mode),
              atn_status_name(status));
    attention_run_free(&r);
}

Test(gradients, soft_in_every_mode)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++) {
        const atn_operator_info *info = attention_row(op);
        bool known = info && attention_has_backward(info) && attention_has_reference(info);
        for (int mode = 0; known && mode < ATN_GRADIENT_COUNT; mode++)
            for (int method = 0; method < ATN_INVERSE_COUNT; method++) {
                tally t = {0};
                for (int sampling = 0; sampling < ATN_SAMPLING_COUNT; sampling++) {
                    attention_case c = soft_case(op, sampling, mode, method);
                    if (goes_with(mode, method))
                        check_f64(context, &c, sampling, &t);
                    else if (method != ATN_INVERSE_NR_ADAPTIVE && sampling == 0)
                        check_refused(context, &c, mode, method);
                    attention_case_free(&c);
                }
                cr_expect(2 * t.judged >= t.run, "%s %s %s: only %d of %d could be judged",
                          info->name, atn_gradient_name((atn_gradient)mode),
                          atn_inverse_name((atn_inverse_method)method), t.judged, t.run);
            }
    }
    atn_context_free(context);
}
