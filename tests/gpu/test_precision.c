/* SPDX-License-Identifier: BSD-3-Clause */
/* How exact CUDA is in each dtype: forward as the plain version in the same precision is, the CPU
 * (which emulates the narrow types by rounding every array); backward against the reference. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"
#include "pairs.h"

/* The CPU's dtype and storage that a dtype of CUDA is compared with. */
static const struct {
    atn_dtype plain;
    atn_storage storage;
} plain_forms[ATN_DTYPE_COUNT] = {
    [ATN_F32] = {ATN_F32, ATN_STORAGE_NATIVE}, [ATN_F64] = {ATN_F64, ATN_STORAGE_NATIVE},
    [ATN_TF32] = {ATN_F32, ATN_STORAGE_TF32},  [ATN_BF16] = {ATN_F32, ATN_STORAGE_BF16},
    [ATN_F16] = {ATN_F32, ATN_STORAGE_F16},
};

/* Largest errors are compared with each other, so there must be many elements. */
enum { SEEDS = 3 };

static const atn_attention_shape forward_shape = {2, 2, 100, 8, 5, 0};

static attention_choice choice_of(int op, int variant, atn_dtype dtype, uint64_t seed)
{
    return (attention_choice){.op = (atn_operator)op,
                              .variant = variant,
                              .dtype = dtype,
                              .shape = forward_shape,
                              .cross = seed % 2,
                              .optional = true, /* lsh: buckets that rounding cannot change */
                              .sampling = ATN_SAMPLING_WINDOW,
                              .seed = 90 + seed};
}

/* ---- Forward ---- */

/* One variant in one dtype. */
static void check_forward(atn_context *context, atn_context *cpu, int op, int variant,
                          atn_dtype dtype)
{
    const atn_operator_info *info = atn_operator_get((atn_operator)op);
    ref_difference got = {0}, plain = {0}, nothing = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        attention_choice choice = choice_of(op, variant, dtype, seed);
        attention_case c = attention_case_make(&choice);
        choice.dtype = plain_forms[dtype].plain;
        choice.storage = plain_forms[dtype].storage;
        attention_case p = attention_case_make(&choice);
        double *want = data_allocate(attention_case_outputs(&c));
        judge_give_inputs(&c, &p);
        attention_expect(&c, want);
        judge_errors(context, &c, 0, want, &got);
        judge_errors(cpu, &p, 0, want, &plain);
        judge_zeros(&c, want, &nothing);
        free(want);
        attention_case_free(&p);
        attention_case_free(&c);
    }
    double ratio, zeros, u = atn_dtype_roundoff(dtype);
    ref_verdict verdict = ref_judge_baseline(&got, &plain, u, &ratio);
    bool tells = ref_judge_baseline(&nothing, &plain, u, &zeros) == REF_FAIL;
    fprintf(stderr, "%s %s %s: ratio %.3g; off by %.3g, the plain version by %.3g of %.3g%s\n",
            info->name, info->variants[variant].name, atn_dtype_name(dtype), ratio, got.max_abs,
            plain.max_abs, got.want_max, tells ? "" : " (zeros would pass)");
    cr_expect(verdict == REF_PASS, "%s %s %s: %s, ratio %.3g; off by %.3g, the plain one by %.3g",
              info->name, info->variants[variant].name, atn_dtype_name(dtype),
              ref_verdict_name(verdict), ratio, got.max_abs, plain.max_abs);
    cr_expect(tells || dtype >= ATN_CPU_DTYPE_COUNT, "%s %s %s: zeros would pass", info->name,
              info->variants[variant].name, atn_dtype_name(dtype));
}

Test(precision, forward_is_as_exact_as_the_plain_version)
{
    atn_context *context = fixture_context(1, NULL), *cpu;
    cr_assert_eq(atn_context_create(NULL, &cpu), ATN_OK);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int variant = 0; variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            for (int dtype = 0; dtype < ATN_DTYPE_COUNT; dtype++)
                if (pairs_all() || (variant + dtype) % 3 == 0) /* or it takes too long */
                    check_forward(context, cpu, op, variant, (atn_dtype)dtype);
    atn_context_free(cpu);
    atn_context_free(context);
}

/* ---- SOFT's passes on tensor cores ---- */

/* The run's views without gaps, as these passes need them. */
static attention_run dense_run(const attention_case *c)
{
    const atn_attention_shape *s = &c->shape;
    attention_run r = attention_run_make(c, 0);
    guarded_free(&r.v);
    guarded_free(&r.out);
    r.v = guarded_make(c->choice.dtype, GUARDED_DENSE, s->batch, s->heads, s->tokens, s->value_dim);
    r.out =
        guarded_make(c->choice.dtype, GUARDED_DENSE, s->batch, s->heads, s->tokens, s->value_dim);
    attention_run_load(&r);
    return r;
}

static void run_passes(atn_context *context, attention_case *c, atn_soft_passes passes,
                       const double *want, ref_difference *into)
{
    c->desc.passes = passes;
    attention_run r = dense_run(c);
    atn_status status = attention_run_forward(&r, context);
    cr_expect(status >= 0 && attention_run_clean(&r, false), "%s, %s: %s (%s)",
              attention_case_label(c), atn_soft_passes_name(passes), atn_status_name(status),
              atn_last_error(context));
    judge_merge_heads(c, &r.out, want, into);
    attention_run_free(&r);
}

/* Two chunks of tokens, the second of which is not full. */
static attention_case narrow_case(atn_operator op, atn_dtype dtype, atn_storage storage)
{
    attention_choice choice = {.op = op,
                               .variant = op == ATN_SOFT, /* the published code's */
                               .dtype = dtype,
                               .storage = storage,
                               .shape = {2, 2, 300, 16, 8, 0},
                               .sampling = ATN_SAMPLING_WINDOW,
                               .seed = 90};
    attention_case c = attention_case_make(&choice);
    c.desc.distance = c.reference.distance = ATN_DISTANCE_CLAMPED;
    return c;
}

static void check_passes(atn_context *context, atn_context *cpu, atn_operator op, atn_dtype dtype)
{
    static const atn_soft_passes passes[] = {ATN_SOFT_TILES, ATN_SOFT_FUSED, ATN_SOFT_CHAIN};
    enum { PASSES = sizeof passes / sizeof *passes };
    ref_difference got[PASSES] = {0}, plain = {0}, nothing = {0};
    double u = atn_dtype_roundoff(dtype), ratio;
    attention_case c = narrow_case(op, dtype, ATN_STORAGE_NATIVE);
    attention_case p = narrow_case(op, plain_forms[dtype].plain, plain_forms[dtype].storage);
    double *want = data_allocate(attention_case_outputs(&c));
    judge_give_inputs(&c, &p);
    attention_expect(&c, want);
    judge_errors(cpu, &p, 0, want, &plain);
    for (int i = 0; i < PASSES; i++)
        run_passes(context, &c, passes[i], want, &got[i]);
    judge_zeros(&c, want, &nothing);
    free(want);
    attention_case_free(&p);
    attention_case_free(&c);
    for (int i = 0; i < PASSES; i++) {
        ref_verdict verdict = ref_judge_baseline(&got[i], &plain, u, &ratio);
        fprintf(stderr, "%s %s %s: ratio %.3g; off by %.3g, the plain version by %.3g of %.3g\n",
                atn_operator_get(op)->name, atn_soft_passes_name(passes[i]), atn_dtype_name(dtype),
                ratio, got[i].max_abs, plain.max_abs, got[i].want_max);
        cr_expect(verdict == REF_PASS, "%s %s %s: %s, ratio %.3g", atn_operator_get(op)->name,
                  atn_soft_passes_name(passes[i]), atn_dtype_name(dtype), ref_verdict_name(verdict),
                  ratio);
    }
    cr_expect(ref_judge_baseline(&nothing, &plain, u, &ratio) == REF_FAIL,
              "%s %s: zeros would pass", atn_operator_get(op)->name, atn_dtype_name(dtype));
}

Test(precision, passes_in_narrow_types_are_as_exact_as_the_plain_version)
{
    static const atn_dtype types[] = {ATN_TF32, ATN_BF16, ATN_F16};
    atn_context *context = fixture_context(1, NULL), *cpu;
    cr_assert_eq(atn_context_create(NULL, &cpu), ATN_OK);
    for (int i = 0; i < 3; i++) {
        check_passes(context, cpu, ATN_SOFT, types[i]);
        check_passes(context, cpu, ATN_SOFTPP, types[i]);
    }
    atn_context_free(cpu);
    atn_context_free(context);
}

/* ---- Backward ---- */

static const atn_dtype narrow[] = {ATN_TF32, ATN_BF16, ATN_F16};
enum { NARROW = sizeof narrow / sizeof *narrow };

/* What rounding may do to a gradient of this size. The arithmetic is f32's: 10 kappa N u as for f32
 * forward (ruler.h), relative to what the gradient would be without cancellation. bf16 and f16: the
 * result is rounded once, u of each element, f16's subnormal ones to half of 2^-24. tf32: the
 * factors of a few products are rounded. */
static double allowance(const attention_case *c, int slot, double kappa, double size,
                        double natural)
{
    double u = atn_dtype_roundoff(c->choice.dtype), uncancelled = fmax(size, natural);
    double arithmetic = 10 * kappa * (double)attention_case_terms(c) * 0x1p-24 * uncancelled;
    if (c->choice.dtype == ATN_TF32)
        return arithmetic + 10 * kappa * u * uncancelled;
    double least = c->choice.dtype == ATN_F16 ? 0x1p-25 : 0;
    return arithmetic + u * size + least * sqrt((double)attention_slot_count(c, slot));
}

typedef struct {
    int judged, run;
    double worst;
} precision_tally;

static void check_slot(const attention_case *c, int slot, double kappa, const double *output,
                       const double *got, const double *want, precision_tally *t)
{
    int64_t count = attention_slot_count(c, slot), outputs = attention_case_outputs(c);
    double inputs = judge_norm(count, attention_slot_values(c, slot)), squares = 0;
    double natural =
        inputs > 0 ? judge_norm(outputs, c->dout) * judge_norm(outputs, output) / inputs : 0;
    double size = judge_norm(count, want), allowed = allowance(c, slot, kappa, size, natural);
    for (int64_t i = 0; i < count; i++)
        squares += (got[i] - want[i]) * (got[i] - want[i]);
    double error = sqrt(squares), ratio = error == 0 ? 0 : error / allowed;
    t->run++;
    cr_expect(!isnan(error), "%s: gradient of %s is NaN", attention_case_label(c),
              attention_slot_name(slot));
    if (!(allowed <= 0.1 * size)) /* zeros could not be told from it */
        return;
    cr_expect(ref_judge(REF_ROUNDING, ratio) == REF_PASS,
              "%s: gradient of %s is off by %.3g of %.3g, kappa %.3g, ratio %.3g",
              attention_case_label(c), attention_slot_name(slot), error, size, kappa, ratio);
    t->judged++;
    t->worst = fmax(t->worst, ratio);
}

static void check_backward(atn_context *context, int op, int variant, atn_dtype dtype,
                           precision_tally *t)
{
    attention_choice choice = choice_of(op, variant, dtype, 0);
    choice.shape = (atn_attention_shape){1, 2, 12, 5, 4, 0};
    for (int cross = 0; cross < 2; cross++) {
        choice.cross = cross;
        attention_case c = attention_case_make(&choice);
        double *output = data_allocate(attention_case_outputs(&c));
        double kappa[2];
        attention_expect(&c, output);
        judge_conditions(&c, output, kappa);
        attention_slots want = attention_expect_gradients(&c);
        attention_run r = attention_run_make(&c, 0);
        atn_status status = attention_run_backward(&r, context);
        attention_slots got = attention_run_slots(&r);
        cr_expect(status >= 0 && attention_run_clean(&r, true), "%s: %s (%s)",
                  attention_case_label(&c), atn_status_name(status), atn_last_error(context));
        for (int s = 0; s < SLOT_COUNT; s++)
            if (want.of[s])
                check_slot(&c, s, fmax(kappa[0], kappa[1]), output, got.of[s], want.of[s], t);
        attention_slots_free(&got);
        attention_run_free(&r);
        attention_slots_free(&want);
        free(output);
        attention_case_free(&c);
    }
}

Test(precision, gradients_in_narrow_types)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; variant < info->variant_count; variant++)
            for (int i = 0; i < NARROW; i++) {
                precision_tally t = {0};
                check_backward(context, op, variant, narrow[i], &t);
                fprintf(stderr, "%s %s %s: %d of %d gradients judged, worst ratio %.3g\n",
                        info->name, info->variants[variant].name, atn_dtype_name(narrow[i]),
                        t.judged, t.run, t.worst);
                bool must = narrow[i] != ATN_TF32; /* whose allowance grows with kappa */
                cr_expect(2 * t.judged >= t.run || !must, "%s %s %s: only %d of %d could be judged",
                          info->name, info->variants[variant].name, atn_dtype_name(narrow[i]),
                          t.judged, t.run);
            }
    }
    atn_context_free(context);
}
