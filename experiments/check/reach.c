/* SPDX-License-Identifier: BSD-3-Clause */
/* What a good kernel reaches: the errors of the library's own runs in the type that is claimed, and
 * what one rounding of everything that goes in does to the result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <data.h>

#include "check/check.h"
#include "common/report.h"

/* The relative change of inputs: its square is below f64's rounding of what it changes, and that
 * rounding leaves 7 digits of its effect. */
static const double small = 0x1p-28;

/* x becomes (x - want) / divisor. */
static void subtract(int64_t count, const double *want, double divisor, double *x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (x[i] - want[i]) / divisor;
}

/* ---- Derivatives ---- */

/* The derivative by whatever `moved` has changed by `by`; null: it has none. */
static double *derivative(atn_context *context, const subject *moved, result_kind kind, double by,
                          const double *at)
{
    int64_t size = result_size(&moved->judged, kind);
    double *x = must_allocate((size_t)size, sizeof *x);
    if (answer_library(context, moved, ATN_F64, ATN_STORAGE_NATIVE, kind, x) >= 0) {
        subtract(size, at, by, x);
        return x;
    }
    free(x);
    return NULL;
}

static double *scaled(const double *x, int64_t count, double factor)
{
    double *y = must_allocate((size_t)count, sizeof *y);
    for (int64_t i = 0; i < count; i++)
        y[i] = factor * x[i];
    return y;
}

static void add_direction(atn_context *context, const subject *moved, result_kind kind,
                          const double *at, const char *name, reach *r)
{
    double *x = derivative(context, moved, kind, small, at);
    if (!x)
        return;
    r->direction_names[r->directions] = name;
    r->direction[r->directions++] = x;
}

/* By the size of Q, of K, of each parameter: what a wrong scale or constant would do. */
static void find_directions(atn_context *context, const subject *s, result_kind kind,
                            const double *at, reach *r)
{
    const attention_case *c = &s->c;
    subject moved = *s;
    double *x = scaled(c->q, attention_case_queries(c), 1 + small);
    moved.c.q = x;
    add_direction(context, &moved, kind, at, "size of Q", r);
    free(x);
    moved = *s;
    if (c->k) {
        moved.c.k = x = scaled(c->k, attention_case_keys(c), 1 + small);
        add_direction(context, &moved, kind, at, "size of K", r);
        free(x);
    }
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        moved = *s;
        atn_tensor *t = atn_attention_parameter(&moved.c.reference, (atn_parameter)p);
        if (!t->data || !(atn_operator_get(c->choice.op)->differentiable >> p & 1))
            continue;
        t->data = x = scaled(t->data, t->heads * t->rows * t->cols, 1 + small);
        add_direction(context, &moved, kind, at, atn_parameter_name((atn_parameter)p), r);
        free(x);
    }
}

/* What roundings of P and of A's inverse do, which those of tokens do not show; null where the
 * result is no form of P^T X P. Appended landmarks have rows, too, that nobody judges. */
static double *inverse_noise(atn_context *context, const subject *s, result_kind kind,
                             uint64_t seed)
{
    attention_case c = s->c;
    dense_form form = dense_claimed(&c);
    if ((c.choice.op != ATN_SOFT && c.choice.op != ATN_SOFTPP) || kind >= RESULT_PARAMETERS ||
        c.key_mask || c.query_mask)
        return NULL;
    int64_t size = result_size(&c, kind);
    double *at = must_allocate((size_t)size, sizeof *at);
    double *moved = must_allocate((size_t)size, sizeof *moved);
    atn_status status = ATN_OK;
    if (kind == RESULT_VALUES)
        c.v = s->grad_output;
    form.seed = seed;
    for (int i = 0; i < 2 && status >= 0; i++) {
        form.change = i ? small : 0;
        status = kind == RESULT_TOKENS
                     ? dense_soft_gradient(context, &c, &form, s->grad_output, PART_ALL, moved)
                     : dense_soft(context, &c, &form, moved);
        if (i == 0)
            memcpy(at, moved, (size_t)size * sizeof *at);
    }
    keep_judged_rows(s, kind, at, at);
    keep_judged_rows(s, kind, moved, moved);
    subtract(result_size(&s->judged, kind), at, small, moved);
    free(at);
    if (status < 0) {
        free(moved);
        moved = NULL;
    }
    return moved;
}

void reach_differentiate(atn_context *context, const subject *s, result_kind kind,
                         const double *want, reach *r)
{
    uint64_t state = s->c.choice.seed;
    int64_t size = result_size(&s->judged, kind);
    /* from the library's own f64, so that its distance from want is not divided by that */
    double *at = must_allocate((size_t)size, sizeof *at);
    if (answer_library(context, s, ATN_F64, ATN_STORAGE_NATIVE, kind, at) < 0)
        memcpy(at, want, (size_t)size * sizeof *at);
    while (r->noises < NOISES) {
        double *owned[MOST_CHANGED];
        subject moved = change_inputs(s, small, ATN_STORAGE_NATIVE, &state, owned);
        double *x = derivative(context, &moved, kind, small, at);
        for (int i = 0; i < MOST_CHANGED; i++)
            free(owned[i]);
        if (!x)
            break;
        r->noise[r->noises++] = x;
        if ((x = inverse_noise(context, s, kind, data_next(&state))))
            r->inverse[r->inverses++] = x;
    }
    find_directions(context, s, kind, at, r);
    free(at);
}

/* ---- Runs ---- */

/* The library's error in the type that is claimed, with inputs changed by a relative step. Backward
 * calls emulate no narrow type: they run in f32, on inputs that are rounded to it. */
static void add_run(atn_context *context, const subject *s, double step, uint64_t *state,
                    result_kind kind, const double *want, reach *r)
{
    int64_t size = result_size(&s->judged, kind);
    double *x = must_allocate((size_t)size, sizeof *x), *owned[MOST_CHANGED];
    bool emulated = kind == RESULT_OUTPUT && step == 0;
    subject moved =
        change_inputs(s, step, step == 0 ? s->storage : ATN_STORAGE_NATIVE, state, owned);
    if (answer_library(context, &moved, s->dtype, emulated ? s->storage : ATN_STORAGE_NATIVE, kind,
                       x) >= 0) {
        subtract(size, want, 1, x);
        r->errors[r->runs++] = x;
    } else
        free(x);
    for (int i = 0; i < MOST_CHANGED; i++)
        free(owned[i]);
}

void reach_run(atn_context *context, const subject *s, result_kind kind, const double *want,
               bool exact, reach *r)
{
    static const unsigned distances = 1u << ATN_SOFT | 1u << ATN_SOFTPP | 1u << ATN_GAUSSIAN;
    uint64_t state = s->c.choice.seed + 1;
    while (r->runs > 0)
        free(r->errors[--r->runs]);
    if (exact || s->dtype != ATN_F64)
        add_run(context, s, 0, &state, kind, want, r);
    for (int i = 0; i < 2; i++)
        add_run(context, s, subject_unit(s) / 2, &state, kind, want, r);
    if (distances >> s->c.choice.op & 1 && s->c.reference.distance != ATN_DISTANCE_EXPANDED) {
        subject expanded = *s;
        expanded.c.reference.distance = ATN_DISTANCE_EXPANDED;
        add_run(context, &expanded, 0, &state, kind, want, r);
    }
}

void reach_free(reach *r)
{
    while (r->runs > 0)
        free(r->errors[--r->runs]);
    while (r->noises > 0)
        free(r->noise[--r->noises]);
    while (r->inverses > 0)
        free(r->inverse[--r->inverses]);
    while (r->directions > 0)
        free(r->direction[--r->directions]);
}
