/* SPDX-License-Identifier: BSD-3-Clause */
/* What a good kernel reaches: the errors of the library's own runs in the claimed type, and the
 * effect on the result of one rounding of every input. */
#include <math.h>
#include <stdlib.h>

#include <data.h>

#include "check/check.h"
#include "common/report.h"

/* The relative change of inputs. Its second-order effect is below f64's rounding, which leaves 7
 * digits of the first-order effect. */
static const double small = 0x1p-28;

/* x becomes (x - want) / divisor. */
static void subtract(int64_t count, const double *want, double divisor, double *x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (x[i] - want[i]) / divisor;
}

/* ---- Calls ---- */

static const unsigned distances = 1u << ATN_SOFT | 1u << ATN_SOFTPP | 1u << ATN_GAUSSIAN;

static bool has_expanded_run(const subject *s)
{
    return distances >> s->c.choice.op & 1 && s->c.reference.distance != ATN_DISTANCE_EXPANDED;
}

static bool has_written_runs(const subject *s)
{
    return subject_inverts(s) && s->storage != ATN_STORAGE_NATIVE;
}

/* Whether the result has a derivative by a parameter: it is given, and the operator has one. */
static bool moves(const attention_case *c, int which)
{
    atn_tensor *t =
        atn_attention_parameter((atn_attention_desc *)&c->reference, (atn_parameter)which);
    return t->data && atn_operator_get(c->choice.op)->differentiable >> which & 1;
}

enum { STORED_NOISES = 3, STORED_CALLS = STORED_NOISES + 4 };

/* Whether these are gradients in a narrow type, which the library's backward pass does not
 * emulate. */
static bool is_narrow_gradient(const subject *s, const result_group *g)
{
    return g->count && g->kinds[0] != RESULT_OUTPUT && s->storage != ATN_STORAGE_NATIVE;
}

int reach_calls(const subject *s, const result_group *g)
{
    int origin = 1, runs = 3 + has_expanded_run(s);
    runs += has_written_runs(s) ? 1 + has_expanded_run(s) : 0;
    runs += is_narrow_gradient(s, g) ? STORED_CALLS : 0;
    int count = origin + NOISES + 1 + (s->c.k != NULL) + runs;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        count += moves(&s->c, p);
    return count;
}

/* An estimate for 1e9 operations a second. */
static double call_seconds(atn_context *context, const subject *s, const result_group *g)
{
    atn_attention_desc desc = s->c.reference;
    atn_cost cost = {0};
    bool backward = g->count && g->kinds[0] != RESULT_OUTPUT;
    desc.dtype = ATN_F64;
    atn_attention_cost(context, &desc, &s->c.shape, &cost);
    return (backward ? 4 : 1) * (cost.flops + 10 * cost.exps) / 1e9;
}

double reach_seconds(atn_context *context, const subject *s, const result_group *g)
{
    return reach_calls(s, g) * call_seconds(context, s, g);
}

/* Makes one call; what: its purpose, for the progress line. */
static atn_status make_call(atn_context *context, const subject *s, atn_dtype dtype,
                            atn_storage storage, const result_group *g, const char *what,
                            double *const *to)
{
    if (g->shown)
        progress_show(g->shown, what);
    atn_status status = answer_library_all(context, s, dtype, storage, g->count, g->kinds, to);
    if (g->shown)
        progress_add(g->shown, call_seconds(context, s, g));
    return status;
}

/* ---- Derivatives ---- */

/* The derivatives by what `moved` changes, as differences over a relative step `by`. at: the
 * results without the change. False: they cannot be computed. */
static bool derive(atn_context *context, const subject *moved, const result_group *g, double by,
                   const double *const *at, const char *what, double *to[RESULT_COUNT])
{
    for (int i = 0; i < g->count; i++)
        to[i] = must_allocate((size_t)result_size(&moved->judged, g->kinds[i]), sizeof **to);
    bool found = make_call(context, moved, ATN_F64, ATN_STORAGE_NATIVE, g, what, to) >= 0;
    for (int i = 0; i < g->count && found; i++)
        subtract(result_size(&moved->judged, g->kinds[i]), at[i], by, to[i]);
    for (int i = 0; i < g->count && !found; i++)
        free(to[i]);
    return found;
}

static double *scaled(const double *x, int64_t count, double factor)
{
    double *y = must_allocate((size_t)count, sizeof *y);
    for (int64_t i = 0; i < count; i++)
        y[i] = factor * x[i];
    return y;
}

static void add_direction(atn_context *context, const subject *moved, const result_group *g,
                          const double *const *at, const char *name)
{
    double *x[RESULT_COUNT];
    if (!derive(context, moved, g, small, at, name, x))
        return;
    for (int i = 0; i < g->count; i++) {
        reach *r = &g->of[i]->reach;
        r->direction_names[r->directions] = name;
        r->direction[r->directions++] = x[i];
    }
}

/* The derivatives by the size of Q, of K and of each parameter: the effects of a wrong scale or
 * constant. */
static void find_directions(atn_context *context, const subject *s, const result_group *g,
                            const double *const *at)
{
    const attention_case *c = &s->c;
    subject moved = *s;
    double *x = scaled(c->q, attention_case_queries(c), 1 + small);
    moved.c.q = x;
    add_direction(context, &moved, g, at, "size of Q");
    free(x);
    moved = *s;
    if (c->k) {
        moved.c.k = x = scaled(c->k, attention_case_keys(c), 1 + small);
        add_direction(context, &moved, g, at, "size of K");
        free(x);
    }
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        moved = *s;
        if (!moves(c, p))
            continue;
        atn_tensor *t = atn_attention_parameter(&moved.c.reference, (atn_parameter)p);
        t->data = x = scaled(t->data, t->heads * t->rows * t->cols, 1 + small);
        add_direction(context, &moved, g, at, atn_parameter_name((atn_parameter)p));
        free(x);
    }
}

/* A result from P and A's inverse, both changed at random by `change`. Null where it is not a form
 * of P^T X P. The rows of appended landmarks, which are not judged, are dropped. */
static double *inverse_answer(atn_context *context, const subject *s, result_kind kind,
                              double change, uint64_t seed)
{
    attention_case c = s->c;
    dense_form form = dense_claimed(&c);
    if (!subject_inverts(s) || kind >= RESULT_PARAMETERS || c.key_mask || c.query_mask)
        return NULL;
    double *x = must_allocate((size_t)result_size(&c, kind), sizeof *x);
    if (kind == RESULT_VALUES)
        c.v = s->grad_output;
    form.change = change;
    form.seed = seed;
    atn_status status = kind == RESULT_TOKENS
                            ? dense_soft_gradient(context, &c, &form, s->grad_output, PART_ALL, x)
                            : dense_soft(context, &c, &form, x);
    keep_judged_rows(s, kind, x, x);
    if (status < 0) {
        free(x);
        return NULL;
    }
    return x;
}

/* Adds the effect of roundings of P and of A's inverse, which changes of the tokens do not show.
 * at: the result without them; null: there is none. */
static void add_inverse_noise(atn_context *context, const subject *s, result_kind kind,
                              const double *at, uint64_t seed, reach *r)
{
    double *x = at ? inverse_answer(context, s, kind, small, seed) : NULL;
    if (!x)
        return;
    subtract(result_size(&s->judged, kind), at, small, x);
    r->inverse[r->inverses++] = x;
}

/* The library's own answers in f64, from which the derivatives are taken: the distance between them
 * and the exact answer must not be divided by a small change. Where the wanted answer is not exact,
 * it is the library's already. */
static void find_origins(atn_context *context, const subject *s, const result_group *g,
                         const double *at[RESULT_COUNT], double *owned[RESULT_COUNT])
{
    result_group exact = {.shown = g->shown};
    double *to[RESULT_COUNT];
    for (int i = 0; i < g->count; i++) {
        at[i] = g->of[i]->want;
        owned[i] = NULL;
        if (!g->of[i]->exact)
            continue;
        exact.kinds[exact.count] = g->kinds[i];
        to[exact.count++] = owned[i] =
            must_allocate((size_t)result_size(&s->judged, g->kinds[i]), sizeof **to);
    }
    bool found = exact.count &&
                 make_call(context, s, ATN_F64, ATN_STORAGE_NATIVE, &exact, "in f64", to) >= 0;
    for (int i = 0; i < g->count && found; i++)
        at[i] = owned[i] ? owned[i] : at[i];
}

void reach_differentiate(atn_context *context, const subject *s, const result_group *g)
{
    uint64_t state = s->c.choice.seed;
    const double *at[RESULT_COUNT];
    double *owned[RESULT_COUNT], *unchanged[RESULT_COUNT], *x[RESULT_COUNT];
    find_origins(context, s, g, at, owned);
    for (int i = 0; i < g->count; i++)
        unchanged[i] = inverse_answer(context, s, g->kinds[i], 0, 0);
    for (int noise = 0; noise < NOISES; noise++) {
        double *changed[MOST_CHANGED];
        subject moved = change_inputs(s, small, ATN_STORAGE_NATIVE, &state, changed);
        bool found = derive(context, &moved, g, small, at, "roundings of the inputs", x);
        for (int i = 0; i < MOST_CHANGED; i++)
            free(changed[i]);
        if (!found)
            break;
        uint64_t seed = data_next(&state);
        for (int i = 0; i < g->count; i++) {
            reach *r = &g->of[i]->reach;
            r->noise[r->noises++] = x[i];
            add_inverse_noise(context, s, g->kinds[i], unchanged[i], seed, r);
        }
    }
    find_directions(context, s, g, at);
    for (int i = 0; i < g->count; i++)
        free(owned[i]), free(unchanged[i]);
}

/* ---- Runs ---- */

static void round_all(atn_storage storage, int64_t count, double *x)
{
    for (int64_t i = 0; i < count && storage != ATN_STORAGE_NATIVE; i++) {
        float narrow = (float)x[i];
        atn_storage_round(storage, 1, &narrow);
        x[i] = narrow;
    }
}

/* Adds the library's errors in the claimed type, with inputs changed by a relative step. Backward
 * calls do not emulate narrow types: they run in f32, on inputs rounded to the type. written:
 * forward calls, too, run in f32, and all results are rounded. */
static void add_run(atn_context *context, const subject *s, double step, bool written,
                    uint64_t *state, const result_group *g)
{
    double *x[RESULT_COUNT], *owned[MOST_CHANGED];
    bool emulated = g->count && g->kinds[0] == RESULT_OUTPUT && step == 0 && !written;
    for (int i = 0; i < g->count; i++)
        x[i] = must_allocate((size_t)result_size(&s->judged, g->kinds[i]), sizeof **x);
    subject moved =
        change_inputs(s, step, step == 0 ? s->storage : ATN_STORAGE_NATIVE, state, owned);
    bool found = make_call(context, &moved, s->dtype, emulated ? s->storage : ATN_STORAGE_NATIVE, g,
                           "in the claimed type", x) >= 0;
    for (int i = 0; i < g->count; i++) {
        reach *r = &g->of[i]->reach;
        int64_t size = result_size(&s->judged, g->kinds[i]);
        if (!found) {
            free(x[i]);
            continue;
        }
        if (written)
            round_all(s->storage, size, x[i]);
        subtract(size, g->of[i]->want, 1, x[i]);
        *(written ? &r->written[r->writtens++] : &r->errors[r->runs++]) = x[i];
    }
    for (int i = 0; i < MOST_CHANGED; i++)
        free(owned[i]);
}

/* The results without those whose wanted answer is the library's in the claimed type, f64. */
static result_group with_errors(const subject *s, const result_group *g)
{
    result_group some = {.shown = g->shown};
    for (int i = 0; i < g->count; i++) {
        if (!g->of[i]->exact && s->dtype == ATN_F64)
            continue;
        some.kinds[some.count] = g->kinds[i];
        some.of[some.count++] = g->of[i];
    }
    return some;
}

/* The output with inputs changed by a relative step, or, for step 0 and `at`, in the claimed type;
 * minus `at` (null: nothing), and divided by a step > 0. Null: it cannot be computed. To be
 * freed. */
static double *forward_change(atn_context *context, const subject *s, double step, uint64_t *state,
                              const double *at, const result_group *shown)
{
    result_group g = group_of_one(RESULT_OUTPUT, NULL);
    int64_t size = result_size(&s->judged, RESULT_OUTPUT);
    double *x = must_allocate((size_t)size, sizeof *x), *owned[MOST_CHANGED];
    bool claimed = at && step == 0;
    atn_storage storage = claimed ? s->storage : ATN_STORAGE_NATIVE;
    subject moved = change_inputs(s, step, storage, state, owned);
    g.shown = shown->shown;
    bool found = make_call(context, &moved, claimed ? s->dtype : ATN_F64, storage, &g,
                           "in the claimed type", &x) >= 0;
    for (int i = 0; i < MOST_CHANGED; i++)
        free(owned[i]);
    if (found && at)
        subtract(size, at, step > 0 ? step : 1, x);
    if (!found)
        free(x);
    return found ? x : NULL;
}

/* Adds `factor` times the squared norm of each head. */
static void add_squares(const subject *s, result_kind kind, const double *x, double factor,
                        double *to)
{
    int64_t size = result_size(&s->judged, kind), head = size / result_heads(&s->judged, kind);
    for (int64_t i = 0; i < size; i++)
        to[i / head] += factor * x[i] * x[i];
}

/* The squared error of each head that roundings of all inputs to `unit` cause; to be freed. */
static double *noise_squares(const subject *s, result_kind kind, double unit, int count,
                             double *const noise[])
{
    int64_t heads = result_heads(&s->judged, kind);
    double *squares = must_allocate((size_t)heads, sizeof *squares);
    double rounding = unit / sqrt(8 * log(2));
    for (int i = 0; i < count; i++)
        add_squares(s, kind, noise[i], rounding * rounding / count, squares);
    return squares;
}

/* The error of a run in a type, of each head, divided by the error that roundings of the inputs
 * cause; 0 where it is unknown. error: null if there is no run. To be freed. */
static double *excess_of(const subject *s, result_kind kind, double unit, const double *error,
                         int count, double *const noise[])
{
    int64_t heads = result_heads(&s->judged, kind);
    double *excess = must_allocate((size_t)heads, sizeof *excess);
    double *made = noise_squares(s, kind, unit, count, noise);
    if (error)
        add_squares(s, kind, error, 1, excess);
    for (int64_t i = 0; i < heads; i++) {
        excess[i] = sqrt(excess[i] / made[i]);
        excess[i] = isfinite(excess[i]) ? excess[i] : 0;
    }
    free(made);
    return excess;
}

/* The excess of outputs, in the claimed type (to[0]) and with everything stored in the type of sums
 * (to[1]). To be freed. */
static void forward_excesses(atn_context *context, const subject *s, uint64_t *state,
                             const result_group *shown, double *to[2])
{
    double *noise[STORED_NOISES], *at = forward_change(context, s, 0, state, NULL, shown);
    subject wide = *s;
    int noises = 0;
    wide.storage = ATN_STORAGE_NATIVE;
    for (int i = 0; i < STORED_NOISES && at; i++)
        if ((noise[noises] = forward_change(context, s, small, state, at, shown)))
            noises++;
    for (int i = 0; i < 2; i++) {
        const subject *of = i == 0 ? s : &wide;
        double *x = at ? forward_change(context, of, 0, state, at, shown) : NULL;
        to[i] = excess_of(s, RESULT_OUTPUT, subject_unit(of), x, noises, noise);
        free(x);
    }
    while (noises > 0)
        free(noise[--noises]);
    free(at);
}

/* Raises `stored` of a head where a backward call in the type of sums has a larger excess than the
 * forward call: numbers cancel in the backward pass, and the roundings of what is stored weigh more
 * in the same ratio. Gradients of parameters are left out: they have too few numbers. */
static void add_cancellation(atn_context *context, const subject *s, const double *forward,
                             const result_group *g)
{
    subject wide = *s;
    double *x[RESULT_COUNT];
    wide.storage = ATN_STORAGE_NATIVE;
    for (int i = 0; i < g->count; i++)
        x[i] = must_allocate((size_t)result_size(&s->judged, g->kinds[i]), sizeof **x);
    bool found =
        make_call(context, &wide, s->dtype, ATN_STORAGE_NATIVE, g, "in the type of sums", x) >= 0;
    for (int i = 0; i < g->count; i++) {
        reach *r = &g->of[i]->reach;
        int64_t heads = result_heads(&s->judged, g->kinds[i]);
        subtract(result_size(&s->judged, g->kinds[i]), g->of[i]->want, 1, x[i]);
        double *own = excess_of(s, g->kinds[i], subject_unit(&wide), found ? x[i] : NULL, r->noises,
                                r->noise);
        for (int64_t j = 0; j < heads && g->kinds[i] < RESULT_PARAMETERS; j++)
            if (forward[j] > 0)
                r->stored[j] = fmax(r->stored[j], sqrt(GRADIENT_STAGES) * own[j] / forward[j]);
        free(own);
        free(x[i]);
    }
}

/* Sets `stored` of each head; for a parameter, which all heads share, the largest. */
static void add_stored(atn_context *context, const subject *s, uint64_t *state,
                       const result_group *g)
{
    const reach *first = &g->of[0]->reach;
    double *excess[2] = {NULL, NULL}, most = 0;
    if (g->kinds[0] == RESULT_OUTPUT)
        excess[0] = excess_of(s, RESULT_OUTPUT, subject_unit(s),
                              first->runs ? first->errors[0] : NULL, first->noises, first->noise);
    else
        forward_excesses(context, s, state, g, excess);
    for (int64_t i = 0; i < result_heads(&s->judged, RESULT_OUTPUT); i++)
        most = fmax(most, excess[0][i]);
    for (int i = 0; i < g->count; i++) {
        int64_t heads = result_heads(&s->judged, g->kinds[i]);
        double *stored = g->of[i]->reach.stored = must_allocate((size_t)heads, sizeof *stored);
        for (int64_t j = 0; j < heads; j++)
            stored[j] = g->kinds[i] < RESULT_PARAMETERS ? excess[0][j] : most;
    }
    if (excess[1])
        add_cancellation(context, s, excess[1], g);
    free(excess[0]), free(excess[1]);
}

void reach_run(atn_context *context, const subject *s, const result_group *g)
{
    uint64_t state = s->c.choice.seed + 1;
    result_group some = with_errors(s, g);
    subject expanded = *s;
    expanded.c.reference.distance = ATN_DISTANCE_EXPANDED;
    for (int i = 0; i < g->count; i++)
        reach_forget_runs(&g->of[i]->reach);
    if (some.count)
        add_run(context, s, 0, false, &state, &some);
    for (int i = 0; i < 2; i++)
        add_run(context, s, subject_unit(s) / 2, false, &state, g);
    if (has_expanded_run(s))
        add_run(context, &expanded, 0, false, &state, g);
    if (has_written_runs(s))
        add_run(context, s, 0, true, &state, g);
    if (has_written_runs(s) && has_expanded_run(s))
        add_run(context, &expanded, 0, true, &state, g);
    if (s->storage != ATN_STORAGE_NATIVE && g->count)
        add_stored(context, s, &state, g);
}

void reach_forget_runs(reach *r)
{
    while (r->runs > 0)
        free(r->errors[--r->runs]);
    while (r->writtens > 0)
        free(r->written[--r->writtens]);
    free(r->stored);
    r->stored = NULL;
}

void reach_free(reach *r)
{
    reach_forget_runs(r);
    while (r->noises > 0)
        free(r->noise[--r->noises]);
    while (r->inverses > 0)
        free(r->inverse[--r->inverses]);
    while (r->directions > 0)
        free(r->direction[--r->directions]);
}
