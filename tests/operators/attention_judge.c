/* SPDX-License-Identifier: BSD-3-Clause */
#include "attention_judge.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conditioning.h"
#include "data.h"

double judge_norm(int64_t count, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

double judge_largest(int64_t count, const double *x)
{
    double largest = 0;
    for (int64_t i = 0; i < count && !isnan(largest); i++)
        if (!(fabs(x[i]) <= largest))
            largest = fabs(x[i]);
    return largest;
}

static double distance(int64_t count, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sqrt(sum);
}

double judge_relative(int64_t count, const double *x, const double *y)
{
    double error = distance(count, x, y);
    return error == 0 ? 0 : error / judge_norm(count, y);
}

void judge_conditions(const attention_case *c, const double *want, double *kappa)
{
    enum { DIRECTIONS = 3 };
    ref_attention_conditions(c, want, DIRECTIONS, kappa);
}

/* ---- Forward ---- */

ref_verdict judge_forward(const attention_run *r, const double *want, const double *kappa,
                          double *ratio)
{
    const attention_case *c = r->c;
    int64_t size = c->shape.tokens * c->shape.value_dim;
    double rounding = (double)attention_case_terms(c) * atn_dtype_roundoff(c->choice.dtype);
    ref_verdict worst = REF_PASS;
    *ratio = 0;
    for (int64_t i = 0; i < c->shape.batch * c->shape.heads; i++) {
        ref_difference difference =
            guarded_compare(&r->out, i / c->shape.heads, i % c->shape.heads, want + i * size);
        double one;
        bool trivial;
        ref_verdict verdict =
            ref_judge_head(c, i, &difference, want + i * size, kappa[i], rounding, &one, &trivial);
        if (trivial)
            verdict = REF_SKIPPED;
        worst = verdict > worst && worst != REF_FAIL ? verdict : worst;
        *ratio = one > *ratio ? one : *ratio;
    }
    return worst;
}

/* ---- Gradients ---- */

void judge_give_inputs(const attention_case *from, attention_case *to)
{
    size_t size = sizeof(double);
    memcpy(to->q, from->q, (size_t)attention_case_queries(from) * size);
    memcpy(to->v, from->v, (size_t)attention_case_values(from) * size);
    if (from->k)
        memcpy(to->k, from->k, (size_t)attention_case_keys(from) * size);
}

void judge_merge_heads(const attention_case *c, const guarded *out, const double *want,
                       ref_difference *into)
{
    int64_t size = c->shape.tokens * c->shape.value_dim;
    for (int64_t i = 0; i < c->shape.batch * c->shape.heads; i++) {
        ref_difference one =
            guarded_compare(out, i / c->shape.heads, i % c->shape.heads, want + i * size);
        into->max_abs = fmax(into->max_abs, one.max_abs);
        into->want_max = fmax(into->want_max, one.want_max);
        into->nonfinite += one.nonfinite;
    }
}

void judge_errors(atn_context *context, const attention_case *c, int layout, const double *want,
                  ref_difference *into)
{
    attention_run r = attention_run_make(c, layout);
    atn_status status = attention_run_forward(&r, context);
    cr_expect(status >= 0 && attention_run_clean(&r, false), "%s: %s (%s)", attention_case_label(c),
              atn_status_name(status), atn_last_error(context));
    judge_merge_heads(c, &r.out, want, into);
    attention_run_free(&r);
}

void judge_zeros(const attention_case *c, const double *want, ref_difference *into)
{
    guarded zeros = guarded_make(ATN_F64, GUARDED_DENSE, c->shape.batch, c->shape.heads,
                                 c->shape.tokens, c->shape.value_dim);
    double *nothing = data_allocate(attention_case_outputs(c));
    guarded_set(&zeros, nothing);
    judge_merge_heads(c, &zeros, want, into);
    free(nothing);
    guarded_free(&zeros);
}

double judge_gradient_error(const attention_case *c, const double *output, int slot,
                            const double *got, const double *want)
{
    int64_t count = attention_slot_count(c, slot), outputs = attention_case_outputs(c);
    double size = judge_norm(count, want),
           inputs = judge_norm(count, attention_slot_values(c, slot));
    double natural =
        inputs > 0 ? judge_norm(outputs, c->dout) * judge_norm(outputs, output) / inputs : 0;
    double error = distance(count, got, want);
    return error == 0 ? 0 : error / fmax(size, JUDGE_FLOOR[c->choice.dtype] * natural);
}

double judge_gradients(const attention_case *c, const double *output, const attention_slots *got,
                       const attention_slots *want, int *worst_slot)
{
    double worst = 0;
    *worst_slot = SLOT_Q;
    for (int s = 0; s < SLOT_COUNT && !isnan(worst); s++) {
        if (!want->of[s])
            continue;
        double error = judge_gradient_error(c, output, s, got->of[s], want->of[s]);
        if (!(error <= worst)) {
            worst = error;
            *worst_slot = s;
        }
    }
    return worst;
}
