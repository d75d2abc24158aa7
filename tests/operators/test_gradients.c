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
#include "pairs.h"

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
    {{2, 2, 5, 3, 2, 0}, true, true, false, true},
    {{2, 2, 6, 3, 2, 0}, false, false, true, false},
    {{2, 1, 7, 3, 2, 0}, true, true, true, true},
    {{1, 2, 9, 5, 4, 0}, false, false, false, true},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Several blocks of 64, compared with derivatives in random directions only. */
static const gradient_row long_rows[] = {
    {{1, 2, 65, 3, 2, 0}, false, false, false, false},
    {{1, 1, 130, 2, 3, 67}, true, true, false, true},
    {{1, 1, 130, 3, 2, 0}, true, false, true, false},
    {{1, 1, 800, 2, 3, 0}, true, true, true, false}, /* softmax: more than a block of 768 */
    /* several groups of 512, which threads share; few queries of many keys, and the reverse */
    {{1, 1, 1100, 2, 2, 0}, false, false, false, true},
    {{1, 1, 1100, 2, 3, 70}, true, true, false, false},
    {{1, 1, 66, 2, 3, 1100}, true, false, false, true},
    {{1, 1, 1100, 3, 2, 0}, true, true, true, false},
    /* several chunks of CUDA's, which hold at least 256 tokens */
    {{1, 1, 600, 2, 2, 530}, true, true, false, true},
    {{1, 1, 530, 2, 2, 0}, false, false, false, true},
    {{1, 1, 600, 3, 2, 0}, false, false, true, false},
    {{1, 1, 530, 3, 2, 0}, true, true, true, false},
};
enum { LONG_ROWS = sizeof long_rows / sizeof *long_rows, CPU_LONG_ROWS = LONG_ROWS - 4 };

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

/* Whether a row needs something that the operator cannot do: another row then has the same case. */
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

/* The statistics of one operator: the worst error, and the slots in which zeros would have failed.
 */
typedef struct {
    int judged, run, long_judged, long_run;
    double worst, worst_ratio;
    unsigned there, seen;
} gradient_tally;

static void note(const attention_case *c, const expectation *e, double error, gradient_tally *t)
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

static void check_f64(atn_context *context, const attention_case *c, int layout, gradient_tally *t)
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

/* ---- f32 against f64 of the CPU, which is compared with the reference ---- */

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
static void gradient_conditions(atn_context *cpu, const attention_case *c, const double *output,
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
        attention_slots there = gradients_of(cpu, &moved, 0);
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

static void check_f32(atn_context *context, atn_context *cpu, const attention_case *c, int layout,
                      gradient_tally *t)
{
    attention_case wide = attention_case_widened(c);
    double kappa[SLOT_COUNT], *output = data_allocate(attention_case_outputs(c));
    double unit = (double)attention_case_terms(c) * atn_dtype_roundoff(ATN_F32);
    attention_expect(c, output);
    attention_slots want = gradients_of(cpu, &wide, layout);
    attention_slots got = gradients_of(context, c, layout + 1);
    gradient_conditions(cpu, c, output, &want, kappa);
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

static void check_directions(atn_context *context, const attention_case *c, int layout,
                             gradient_tally *t)
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

static void report(const atn_operator_info *info, const gradient_tally *t)
{
    fprintf(stderr,
            "%s: %d of %d judged, worst error %.3g in f64, worst ratio %.3g in f32; %d of %d long "
            "ones\n",
            info->name, t->judged, t->run, t->worst, t->worst_ratio, t->long_judged, t->long_run);
    cr_expect(t->judged >= t->run / 2 && t->long_judged > 0,
              "%s: only %d of %d and %d long ones could be judged", info->name, t->judged, t->run,
              t->long_judged);
    for (int s = 0; s < SLOT_COUNT; s++)
        cr_expect(!((t->there & ~t->seen) & 1u << s), "%s: no gradient of %s was above the floor",
                  info->name, attention_slot_name(s));
}

static void check_row(atn_context *context, atn_context *cpu, int op, int variant, int i, int dtype,
                      gradient_tally *t)
{
    const gradient_row *row = i < ROWS ? &rows[i] : &long_rows[i - ROWS];
    attention_case c = make(row, op, variant, (atn_dtype)dtype);
    if (!repeats(row, &c)) {
        if (dtype == ATN_F32)
            check_f32(context, cpu, &c, i, t);
        else if (i < ROWS)
            check_f64(context, &c, i, t);
        else
            check_directions(context, &c, i, t);
    }
    attention_case_free(&c);
}

/* On the CPU every row in both dtypes: its f32 is compared with its own f64. */
Test(gradients, backward_is_the_derivative)
{
    atn_context *context = fixture_context(1, NULL), *cpu;
    cr_assert_eq(atn_context_create(NULL, &cpu), ATN_OK);
    bool on_cpu = fixture_device() == ATN_CPU;
    int row_count = ROWS + (on_cpu ? CPU_LONG_ROWS : LONG_ROWS);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        const int sizes[] = {info->variant_count, row_count, ATN_CPU_DTYPE_COUNT};
        pairs chosen = pairs_make(on_cpu ? 2 : 3, sizes, NULL);
        gradient_tally t = {0};
        for (int i = 0; i < chosen.count; i++) {
            const int *v = chosen.combination[i];
            for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
                if (on_cpu || dtype == v[2])
                    check_row(context, cpu, op, v[0], v[1], dtype, &t);
        }
        report(info, &t);
        pairs_free(&chosen);
    }
    atn_context_free(cpu);
    atn_context_free(context);
}

/* ---- Options away from their defaults ---- */

static void set_norm_epsilon(attention_case *c, atn_attention_desc *desc, double value)
{
    (void)c;
    desc->sima.epsilon = desc->xnorm.epsilon = desc->xca.epsilon = value;
}

static void set_denominator_epsilon(attention_case *c, atn_attention_desc *desc, double value)
{
    (void)c;
    desc->performer.denominator_epsilon = desc->elu.epsilon = desc->cosformer.epsilon = value;
}

static void set_feature_epsilon(attention_case *c, atn_attention_desc *desc, double value)
{
    (void)c;
    desc->performer.feature_epsilon = value;
}

static void set_logit_scale(attention_case *c, atn_attention_desc *desc, double value)
{
    (void)c;
    desc->logit_scale = value;
}

static void set_scale(attention_case *c, atn_attention_desc *desc, double value)
{
    (void)c;
    desc->scale = ATN_SCALE_VALUE, desc->scale_value = value;
}

static void set_embed_scale(attention_case *c, atn_attention_desc *desc, double value)
{
    (void)c, (void)value;
    desc->scale = ATN_SCALE_EMBED;
}

static void set_distance(attention_case *c, atn_attention_desc *desc, double value)
{
    (void)c;
    desc->distance = (atn_distance)value;
}

static void set_self_logit(attention_case *c, atn_attention_desc *desc, double value)
{
    (void)c;
    desc->lsh.self_logit = value;
}

/* A temperature of one sign and of the other. */
static void set_temperature(attention_case *c, atn_attention_desc *desc, double value)
{
    static double temperatures[2];
    temperatures[0] = value, temperatures[1] = -value;
    desc->xca.temperature = atn_tensor_dense(temperatures, ATN_F64, 1, c->shape.heads, 1, 1);
}

/* Makes the first token of the first head short. */
static void set_first_token(attention_case *c, atn_attention_desc *desc, double value)
{
    (void)desc;
    for (int64_t i = 0; i < c->shape.dim; i++)
        c->q[i] = value;
}

/* Norms of 9 normal numbers: epsilon is the larger in some columns or rows, not in all. */
static const struct {
    atn_operator op;
    int variant;
    void (*set)(attention_case *c, atn_attention_desc *desc, double value);
    double value;
} option_rows[] = {
    {ATN_GAUSSIAN, 0, set_scale, 0.3},
    {ATN_GAUSSIAN, 0, set_embed_scale, 0},
    {ATN_GAUSSIAN, 0, set_distance, ATN_DISTANCE_EXPANDED},
    {ATN_GAUSSIAN, 0, set_distance, ATN_DISTANCE_CLAMPED},
    {ATN_SOFTMAX, 0, set_logit_scale, 0.3},
    {ATN_SOFTMAX, 1, set_logit_scale, 0.3},
    {ATN_LINFORMER, 0, set_logit_scale, 0.3},
    {ATN_SIMA, 0, set_norm_epsilon, 7},
    {ATN_SIMA, 3, set_norm_epsilon, 3},
    {ATN_SIMA, 5, set_norm_epsilon, 7},
    {ATN_XNORM, 0, set_norm_epsilon, 1.6},
    {ATN_XNORM, 0, set_norm_epsilon, 6},
    {ATN_XNORM, 1, set_norm_epsilon, 6},
    {ATN_XCA, 0, set_norm_epsilon, 3},
    {ATN_XCA, 0, set_temperature, -1.7},
    {ATN_NYSTROMFORMER, 0, set_logit_scale, 0.9},
    {ATN_PERFORMER, 0, set_logit_scale, 0.3},
    {ATN_PERFORMER, 0, set_feature_epsilon, 0.2},
    {ATN_PERFORMER, 1, set_denominator_epsilon, 0.5},
    {ATN_PERFORMER, 2, set_feature_epsilon, 0.2},
    {ATN_RFF, 0, set_scale, 0.3},
    {ATN_ELU, 0, set_denominator_epsilon, 3},
    {ATN_COSFORMER, 0, set_denominator_epsilon, 3},
    {ATN_LSH, 0, set_logit_scale, 0.3},
    {ATN_LSH, 0, set_self_logit, 0.5},
    {ATN_LSH, 0, set_first_token, 1e-13}, /* its norm counts as 1e-12 */
};

/* Forward against the reference. */
static void check_output(atn_context *context, const attention_case *c)
{
    int64_t count = attention_case_outputs(c);
    double *want = data_allocate(count), *got = data_allocate(count);
    attention_run r = attention_run_make(c, 1);
    attention_expect(c, want);
    cr_expect_geq((int)attention_run_forward(&r, context), 0, "%s", atn_last_error(context));
    guarded_get(&r.out, got);
    double apart = judge_relative(count, got, want);
    cr_expect(apart < JUDGE_LAW, "%s: %.3g from the reference", attention_case_label(c), apart);
    attention_run_free(&r);
    free(got);
    free(want);
}

Test(gradients, options_away_from_their_defaults)
{
    static const gradient_row shape = {{1, 2, 9, 3, 4, 0}, true, false, false, false};
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof option_rows / sizeof *option_rows; i++) {
        if (!fixture_runs(atn_operator_get(option_rows[i].op)))
            continue;
        attention_case c = make(&shape, (int)option_rows[i].op, option_rows[i].variant, ATN_F64);
        gradient_tally t = {0};
        option_rows[i].set(&c, &c.desc, option_rows[i].value);
        option_rows[i].set(&c, &c.reference, option_rows[i].value);
        check_output(context, &c);
        check_f64(context, &c, 0, &t);
        cr_expect_eq(t.judged, 1, "row %zu, %s was not judged", i, attention_case_label(&c));
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* sum dY Y with slot q or k moved by `step` times `direction`. */
static double objective(atn_context *context, attention_case *c, double *slot, int64_t count,
                        const double *direction, double step)
{
    double sum = 0, *y = data_allocate(attention_case_outputs(c));
    for (int64_t i = 0; i < count; i++)
        slot[i] += step * direction[i];
    attention_run r = attention_run_make(c, 0);
    cr_expect_geq((int)attention_run_forward(&r, context), 0, "%s", atn_last_error(context));
    guarded_get(&r.out, y);
    for (int64_t i = 0; i < attention_case_outputs(c); i++)
        sum += c->dout[i] * y[i];
    for (int64_t i = 0; i < count; i++)
        slot[i] -= step * direction[i];
    attention_run_free(&r);
    free(y);
    return sum;
}

/* The pseudo-inverse that drops singular values other than 0: forward against the reference, for
 * every rcond; backward against differences, as the reference differentiates at exact ranks. */
Test(gradients, truncated_pseudo_inverse)
{
    static const gradient_row shape = {{1, 2, 9, 3, 4, 0}, true, false, false, false};
    const double step = 1e-5;
    atn_context *context = fixture_context(1, NULL);
    bool runs = fixture_runs(atn_operator_get(ATN_NYSTROMFORMER));
    for (int percent = 2; runs && percent < 100; percent += 2) {
        attention_case c = make(&shape, ATN_NYSTROMFORMER, 2, ATN_F64);
        c.desc.nystromformer.rcond = c.reference.nystromformer.rcond = percent / 100.0;
        c.desc.logit_scale = c.reference.logit_scale = 2; /* singular values far from each other */
        check_output(context, &c);
        attention_slots got = gradients_of(context, &c, 0);
        double *const slots[] = {c.q, c.k};
        for (int s = SLOT_Q; s <= SLOT_K && percent % 20 == 10; s++) {
            int64_t count = attention_slot_count(&c, s);
            double along = 0, *direction = data_allocate(count);
            data_normal((uint64_t)(percent + s), count, direction);
            for (int64_t i = 0; i < count; i++)
                along += got.of[s][i] * direction[i];
            double change = objective(context, &c, slots[s], count, direction, step) -
                            objective(context, &c, slots[s], count, direction, -step);
            cr_expect(fabs(change / 2 / step - along) < 1e-6 * (1 + fabs(along)),
                      "rcond %g, %s: %.9g, not %.9g", percent / 100.0, attention_slot_name(s),
                      along, change / 2 / step);
            free(direction);
        }
        attention_slots_free(&got);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* ---- More than a block of 64 of what is not tokens ---- */

Test(gradients, widths_beyond_a_block)
{
    static const attention_choice choices[] = {
        {.op = ATN_GAUSSIAN, .shape = {1, 1, 5, 70, 67, 6}},
        {.op = ATN_SOFTMAX, .shape = {1, 1, 5, 70, 67, 6}},
        {.op = ATN_LINFORMER, .shape = {1, 1, 5, 70, 67, 6}},
        {.op = ATN_LINFORMER, .shape = {1, 1, 5, 3, 4, 6}, .landmarks = 70},
        {.op = ATN_SIMA, .variant = 3, .shape = {1, 1, 5, 70, 67, 6}},
        {.op = ATN_SIMA, .variant = 6, .shape = {1, 1, 5, 70, 67, 6}},
        {.op = ATN_XNORM, .shape = {1, 1, 5, 70, 67, 6}},
        {.op = ATN_XCA, .shape = {1, 1, 80, 70, 70, 0}, .cross = true},
        {.op = ATN_EFFICIENT, .shape = {1, 1, 5, 70, 67, 6}},
        {.op = ATN_NYSTROMFORMER, .shape = {1, 1, 7, 70, 67, 8}, .landmarks = 3},
        {.op = ATN_NYSTROMFORMER, .shape = {1, 1, 150, 3, 2, 0}, .landmarks = 70, .cross = true},
        {.op = ATN_PERFORMER, .shape = {1, 1, 5, 3, 4, 6}, .features = 70},
        {.op = ATN_PERFORMER, .shape = {1, 1, 5, 3, 4, 0}, .features = 70, .causal = true},
        {.op = ATN_RFF, .shape = {1, 1, 5, 3, 67, 6}, .features = 70},
        {.op = ATN_ELU, .shape = {1, 1, 5, 70, 67, 6}},
        {.op = ATN_COSFORMER, .shape = {1, 1, 5, 70, 67, 6}},
        {.op = ATN_LSH, .shape = {1, 1, 12, 70, 67, 0}},
        {.op = ATN_LSH, .shape = {1, 1, 140, 3, 4, 0}, .chunk = 70},
        {.op = ATN_LSH, .shape = {1, 1, 140, 3, 4, 0}, .chunk = 7, .buckets = 200},
    };
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        attention_choice choice = choices[i];
        if (!fixture_runs(atn_operator_get(choice.op)))
            continue;
        gradient_tally t = {0};
        choice.dtype = ATN_F64, choice.seed = 40 + i;
        attention_case c = attention_case_make(&choice);
        check_output(context, &c);
        check_directions(context, &c, (int)i, &t);
        cr_expect_eq(t.long_judged, 1, "row %zu, %s was not judged", i, attention_case_label(&c));
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* ---- One less and one more than whole blocks of tokens ---- */

/* Softmax on the CPU takes 768 queries at a time, and keys in blocks of 128 in f64 and 256 in f32;
 * its backward pass works differently with more than one block. */
Test(gradients, softmax_around_whole_blocks)
{
    static const int64_t counts[] = {31, 32, 49, 127, 128, 129, 255, 256, 257, 767, 768, 769, 2000};
    if (!fixture_runs(atn_operator_get(ATN_SOFTMAX)))
        return;
    atn_context *context = fixture_context(1, NULL), *cpu;
    cr_assert_eq(atn_context_create(NULL, &cpu), ATN_OK);
    gradient_tally t = {0};
    int run = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const gradient_row cases[] = {{{1, 1, 5, 3, 2, counts[i]}, true, false, false, false},
                                      {{1, 1, 5, 3, 2, counts[i]}, true, true, false, false},
                                      {{1, 1, counts[i], 3, 2, 0}, true, false, true, false}};
        for (size_t k = 0; k < (counts[i] > 1000 ? 2 : 3); k++)
            for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++, run++) {
                attention_case c = make(&cases[k], ATN_SOFTMAX, 0, (atn_dtype)dtype);
                if (dtype == ATN_F32)
                    check_f32(context, cpu, &c, run, &t);
                else
                    check_directions(context, &c, run, &t);
                attention_case_free(&c);
            }
    }
    cr_expect_eq(t.long_judged, run / 2, "%d of %d judged in f64", t.long_judged, run / 2);
    atn_context_free(cpu);
    atn_context_free(context);
}

/* ---- One derivative that is far larger than the others ---- */

/* The first gradients of a case in f32, dQ and dK, each as a whole: off by at most so many
 * roundoffs. Frees the case. */
static void expect_roundoffs(attention_case *c, int slots, double most)
{
    atn_context *context = fixture_context(1, NULL), *cpu;
    cr_assert_eq(atn_context_create(NULL, &cpu), ATN_OK);
    attention_case wide = attention_case_widened(c);
    attention_slots got = gradients_of(context, c, 0), want = gradients_of(cpu, &wide, 0);
    for (int slot = 0; slot < slots; slot++) {
        double error = 0, norm = 0;
        for (int64_t i = 0; i < attention_slot_count(c, slot); i++) {
            error += pow(got.of[slot][i] - want.of[slot][i], 2);
            norm += pow(want.of[slot][i], 2);
        }
        error = sqrt(error / norm) / atn_dtype_roundoff(ATN_F32);
        cr_expect(norm > 0 && error <= most, "%s: d%s is off by %.3g roundoffs",
                  attention_case_label(c), attention_slot_name(slot), error);
        cr_log_info("d%s is off by %.3g roundoffs\n", attention_slot_name(slot), error);
    }
    attention_slots_free(&want);
    attention_slots_free(&got);
    attention_case_free(&wide);
    attention_case_free(c);
    atn_context_free(cpu);
    atn_context_free(context);
}

/* With q = 0 all weights are equal, and dP of the first key is 2^20 times the others'. Its own key
 * is 0, so that dQ, the sum of (dP_j - mean) k_j, consists of the others. Where they are rounded
 * relative to the first one, dQ is off by 800 roundoffs, otherwise by some root of 300. In one
 * block of keys and in two. */
Test(gradients, softmax_with_one_large_value)
{
    for (int64_t keys = 250; keys <= 300 && fixture_runs(atn_operator_get(ATN_SOFTMAX));
         keys += 50) {
        const gradient_row row = {{1, 1, 4, 3, 2, keys}, true, false, false, false};
        attention_case c = make(&row, ATN_SOFTMAX, 0, ATN_F32);
        memset(c.q, 0, (size_t)attention_case_queries(&c) * sizeof *c.q);
        memset(c.k, 0, 3 * sizeof *c.k);
        for (int i = 0; i < 2; i++)
            c.v[i] *= 0x1p20;
        expect_roundoffs(&c, 1, 100);
    }
}

/* Values of 1000 and nearly equal weights: dP less its mean is a thousandth of dP, so that
 * roundoffs of dP and of Y, from which the mean comes, are some 1000 of the difference. Ten times
 * that, as in the ruler's bounds. */
Test(gradients, softmax_of_values_far_from_zero)
{
    for (int64_t keys = 200; keys <= 3000 && fixture_runs(atn_operator_get(ATN_SOFTMAX));
         keys += 1400) {
        const gradient_row row = {{1, 1, 20, 3, 2, keys}, true, false, false, false};
        attention_case c = make(&row, ATN_SOFTMAX, 0, ATN_F32);
        for (int64_t i = 0; i < attention_case_queries(&c); i++)
            c.q[i] *= 0.1;
        for (int64_t i = 0; i < attention_case_values(&c); i++)
            c.v[i] += 1000;
        expect_roundoffs(&c, 2, 10 * 1000);
    }
}

/* One key in the first, the last or the only block has all but 2^-12 of each query's weight. As dS
 * sums to 0, its own is as small as all others' together, and lost in the rounding of dP and of its
 * mean, unless those are taken relative to the dP of that key. */
Test(gradients, softmax_with_one_large_weight)
{
    static const struct {
        int64_t keys, large;
    } places[] = {{200, 150}, {300, 10}, {300, 290}};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        const gradient_row row = {{1, 1, 60, 3, 2, places[p].keys}, true, false, false, false};
        if (!fixture_runs(atn_operator_get(ATN_SOFTMAX)))
            return;
        attention_case c = make(&row, ATN_SOFTMAX, 0, ATN_F32);
        double logit = log((double)places[p].keys * 4096) * sqrt(3);
        for (int64_t i = 0; i < 60; i++)
            for (int k = 0; k < 3; k++)
                c.q[3 * i + k] = k == 0 && i != 7 ? logit : 0; /* one query has equal weights */
        for (int64_t j = 0; j < places[p].keys; j++)
            c.k[3 * j] = j == places[p].large;
        expect_roundoffs(&c, 2, 100);
    }
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
    fixture_interval(&c.desc.inverse);
    if (method == ATN_INVERSE_NR)
        c.desc.inverse.alpha = 0.02;
    c.desc.gradient = (atn_gradient)mode;
    c.reference.inverse = c.desc.inverse;
    c.reference.gradient = c.desc.gradient;
    return c;
}

/* 8 seeds of 5 different tokens: three centroids have no tokens, and stay at their seeds. Eighths,
 * so that means of equal tokens are exact. Equal tokens change places under any change of q, so
 * that there is no kappa to ask for; 6 steps from a given alpha are a polynomial. */
Test(gradients, centroids_without_tokens)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(ATN_SOFT - 1); op <= ATN_SOFTPP; op = fixture_next(op)) {
        attention_case c = soft_case(op, ATN_SAMPLING_KMEANS, ATN_GRADIENT_STEPS, ATN_INVERSE_NR);
        double *output = data_allocate(attention_case_outputs(&c));
        int slot;
        for (int64_t i = 0; i < attention_case_queries(&c); i++)
            c.q[i] = rint(8 * c.q[i % 3 + (i / 3 * 7 % 5) * 3]) / 8;
        cr_assert_eq(c.desc.sampling.count, 8);
        attention_expect(&c, output);
        attention_slots want = attention_expect_gradients(&c), got = gradients_of(context, &c, 0);
        double error = judge_gradients(&c, output, &got, &want, &slot);
        cr_expect(error < JUDGE_GRADIENT, "%s: gradient of %s is off by %.3g",
                  attention_case_label(&c), attention_slot_name(slot), error);
        attention_slots_free(&got);
        attention_slots_free(&want);
        free(output);
        attention_case_free(&c);
    }
    atn_context_free(context);
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

/* soft or softpp, mode, inverse, sampling. */
static bool can_be_differentiated(const int *v)
{
    return goes_with(v[1], v[2]) && fixture_runs(atn_operator_get((atn_operator)(ATN_SOFT + v[0])));
}

Test(gradients, soft_in_every_mode)
{
    static const int sizes[] = {2, ATN_GRADIENT_COUNT, ATN_INVERSE_COUNT, ATN_SAMPLING_COUNT};
    atn_context *context = fixture_context(1, NULL);
    pairs chosen = pairs_make(4, sizes, can_be_differentiated);
    gradient_tally by_method[ATN_INVERSE_COUNT] = {{0}}, all = {0};
    for (int i = 0; i < chosen.count; i++) {
        const int *v = chosen.combination[i];
        attention_case c = soft_case(ATN_SOFT + v[0], v[3], v[1], v[2]);
        check_f64(context, &c, v[3], &by_method[v[2]]);
        attention_case_free(&c);
    }
    for (int method = 0; method < ATN_INVERSE_COUNT; method++) {
        const gradient_tally *t = &by_method[method];
        all.run += t->run;
        cr_expect(2 * t->judged >= t->run, "%s: only %d of %d could be judged",
                  atn_inverse_name((atn_inverse_method)method), t->judged, t->run);
    }
    cr_expect_eq(all.run, chosen.count);
    pairs_free(&chosen);
    atn_context_free(context);
}

Test(gradients, modes_that_do_not_go_with_an_inverse_are_refused)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(ATN_SOFT - 1); op <= ATN_SOFTPP; op = fixture_next(op))
        for (int mode = 0; mode < ATN_GRADIENT_COUNT; mode++)
            for (int method = 0; method < ATN_INVERSE_COUNT; method++) {
                if (goes_with(mode, method) || method == ATN_INVERSE_NR_ADAPTIVE)
                    continue;
                attention_case c = soft_case(op, 0, mode, method);
                check_refused(context, &c, mode, method);
                attention_case_free(&c);
            }
    atn_context_free(context);
}
