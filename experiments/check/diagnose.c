/* SPDX-License-Identifier: BSD-3-Clause */
/* Which hypothesis leaves least of an error: each by itself; then types; then pairs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/hypotheses.h"
#include "common/progress.h"
#include "common/report.h"

/* For trying pairs: some ten seconds. What it costs to start a call counts as well. */
static const double most_pair_flops = 1e10, call_flops = 1e5;

/* One or two changes, and what they leave. */
typedef struct {
    int first, second; /* of the hypotheses; second -1: none */
    double error;
} attempt;

typedef struct {
    atn_context *context;
    const subject *s;
    result_kind kind;
    const result_verdict *v;
    hypothesis *all;
    int count;
    int64_t heads;  /* of the result */
    int64_t size;   /* of all of them */
    double claimed; /* what is left of the error by what was claimed */
    double floor;   /* errors below it are equal */
    double *answer; /* room for one */
} diagnosis;

/* |got - want|_F / |want|_F over all heads; infinity where they cannot be compared. */
static double error_left(const diagnosis *d, const double *want)
{
    const double *got = d->s->results[d->kind];
    double left = 0, norm = 0;
    for (int64_t i = 0; i < d->size; i++) {
        left += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return left / norm >= 0 ? sqrt(left / norm) : INFINITY;
}

static bool build(const diagnosis *d, const attempt *a, trial *t)
{
    *t = trial_start(d->s, d->kind);
    return trial_change(t, &d->all[a->first]) &&
           (a->second < 0 || trial_change(t, &d->all[a->second]));
}

/* What a call costs, roughly; infinity: it cannot be made. */
static double cost_of(const diagnosis *d, const attention_case *c)
{
    atn_attention_desc desc = c->reference;
    atn_cost cost = {0};
    desc.dtype = ATN_F64;
    atn_status status = atn_attention_cost(d->context, &desc, &c->shape, &cost);
    return status == ATN_OK ? cost.flops + 10 * cost.exps + call_flops : INFINITY;
}

/* Nobody took something so much dearer for it. */
static bool is_affordable(const diagnosis *d, const trial *t)
{
    return cost_of(d, &t->s.c) <= 20 * cost_of(d, &d->s->c) + 1e8;
}

static void try_attempt(diagnosis *d, attempt *a)
{
    trial t;
    a->error = INFINITY;
    if (build(d, a, &t) && is_affordable(d, &t) &&
        trial_answer(d->context, &t, ATN_F64, ATN_STORAGE_NATIVE, d->answer) >= 0)
        a->error = error_left(d, d->answer);
    trial_free(&t);
}

/* Below the floor there is no nearer; the order of the table then decides. */
static const diagnosis *sorting;

static int compare_attempts(const void *left, const void *right)
{
    const attempt *a = left, *b = right;
    double x = fmax(a->error, sorting->floor), y = fmax(b->error, sorting->floor);
    if (x != y)
        return x < y ? -1 : 1;
    if (a->first != b->first)
        return a->first - b->first;
    return a->second - b->second;
}

static void sort_attempts(const diagnosis *d, attempt *attempts, int count)
{
    sorting = d;
    qsort(attempts, (size_t)count, sizeof *attempts, compare_attempts);
}

/* ---- Whether it explains the output ---- */

/* kappa of what the trial computes, and not less than that of what was claimed, whose inverse it
 * may share. */
static void trial_conditions(const diagnosis *d, const trial *t, const double *want, double *kappa)
{
    for (int64_t i = 0; i < d->heads; i++)
        kappa[i] = NAN;
    if (d->v->exact)
        answer_conditions(d->context, &t->s, t->of, want, kappa, NULL);
    for (int64_t i = 0; i < d->heads && d->v->exact; i++)
        kappa[i] = fmax(kappa[i], d->v->kappa[i]);
}

/* By the ruler that judged what was claimed, with this as what is wanted; and it must leave at most
 * a tenth. */
static bool explains(const diagnosis *d, const attempt *a)
{
    int64_t heads = d->heads, size = d->size / heads;
    trial t;
    if (!(a->error <= d->claimed / 10) || !build(d, a, &t))
        return false;
    double *want = must_allocate((size_t)(2 * d->size + heads), sizeof *want);
    double *plain = want + d->size, *kappa = plain + d->size;
    trial_answer(d->context, &t, ATN_F64, ATN_STORAGE_NATIVE, want);
    bool narrow = d->s->dtype != ATN_F64 &&
                  trial_answer(d->context, &t, d->s->dtype, d->s->storage, plain) >= 0;
    bool good = true;
    if (t.dense || t.move_count || t.kept || t.missing) /* of that they are not known */
        memcpy(kappa, d->v->kappa, (size_t)heads * sizeof *kappa);
    else
        trial_conditions(d, &t, want, kappa);
    for (int64_t i = 0; i < heads; i++) {
        yardstick y = head_yardstick(d->s, d->kind, d->v, i);
        y.want = want + i * size;
        y.plain = narrow ? plain + i * size : NULL;
        y.kappa = kappa[i];
        y.changes = NULL; /* of what was claimed */
        judgement j = judge_head(&y, d->s->results[d->kind] + i * size);
        good &= (j.verdict == REF_PASS || j.verdict == REF_MARGINAL) && !j.suspicious;
    }
    free(want);
    trial_free(&t);
    return good;
}

/* ---- Types ---- */

static const atn_dtype types[] = {ATN_F32, ATN_TF32, ATN_F16, ATN_BF16};
enum { TYPES = sizeof types / sizeof *types };

/* How far the output is from the library's error in a narrower type, as a factor: 1 is as near as
 * that; infinity where the output does not pass in that type. */
static double distance_to_type(const diagnosis *d, const subject *in_type)
{
    subject s = *in_type;
    result_verdict v = *d->v;
    int64_t heads = d->heads, size = d->size / heads;
    double farthest = 1;
    v.plain = d->answer;
    if (answer_library(d->context, &s, s.dtype, s.storage, d->kind, d->answer) < 0)
        return INFINITY;
    for (int64_t i = 0; i < heads; i++) {
        yardstick y = head_yardstick(&s, d->kind, &v, i);
        judgement j = judge_head(&y, s.results[d->kind] + i * size);
        double factor = j.difference.relative_frobenius / j.plain;
        bool good = (j.verdict == REF_PASS || j.verdict == REF_MARGINAL) && !j.suspicious;
        farthest = fmax(farthest, good && factor > 0.02 ? fmax(factor, 1 / factor) : INFINITY);
    }
    return farthest;
}

/* Distances as published kernels form them cancel where tokens are long. */
static bool find_distances(const diagnosis *d, finding *found)
{
    static const unsigned kernels = 1u << ATN_SOFT | 1u << ATN_SOFTPP | 1u << ATN_GAUSSIAN;
    subject s = *d->s;
    if (!(kernels >> s.c.choice.op & 1) || s.c.reference.distance == ATN_DISTANCE_EXPANDED)
        return false;
    s.c.reference.distance = ATN_DISTANCE_EXPANDED;
    if (!isfinite(distance_to_type(d, &s)))
        return false;
    *found = (finding){must_format("distances as |x|^2 + |y|^2 - 2 x.y (--distance expanded)"),
                       d->claimed, true, true};
    return true;
}

/* The type whose error is most like the output's. */
static bool find_type(const diagnosis *d, finding *found)
{
    double nearest = INFINITY;
    atn_dtype type = ATN_F64;
    for (int i = 0; i < TYPES; i++) {
        subject s = *d->s;
        subject_claim(&s, types[i]);
        bool narrower = atn_dtype_roundoff(types[i]) > subject_unit(d->s);
        double distance = narrower ? distance_to_type(d, &s) : INFINITY;
        if (distance < nearest) {
            nearest = distance;
            type = types[i];
        }
    }
    if (type == ATN_F64)
        return false;
    *found = (finding){must_format("computed in %s", atn_dtype_name(type)), d->claimed, true, true};
    return true;
}

/* ---- All of them ---- */

static char *attempt_text(const diagnosis *d, const attempt *a)
{
    char *first = hypothesis_text(&d->all[a->first], d->s);
    if (a->second < 0)
        return first;
    char *second = hypothesis_text(&d->all[a->second], d->s);
    char *both = must_format("%s and %s", first, second);
    free(second), free(first);
    return both;
}

static attempt *try_singles(diagnosis *d)
{
    attempt *attempts = must_allocate((size_t)d->count, sizeof *attempts);
    progress shown = progress_start(d->count, 0, d->count);
    for (int i = 0; i < d->count; i++) {
        char *text = hypothesis_text(&d->all[i], d->s);
        progress_show(&shown, text);
        attempts[i] = (attempt){i, -1, INFINITY};
        try_attempt(d, &attempts[i]);
        progress_add(&shown, 1);
        free(text);
    }
    progress_end(&shown);
    sort_attempts(d, attempts, d->count);
    return attempts;
}

/* Each with those that leave less by themselves, the nearest first. */
static attempt *try_pairs(diagnosis *d, const attempt *singles, int *count)
{
    attempt *pairs = NULL;
    /* of the problem alone, so that findings do not depend on the machine */
    int calls = d->kind == RESULT_OUTPUT ? 1 : 4; /* backward takes up to four times forward */
    double most = most_pair_flops / (calls * cost_of(d, &d->s->c));
    progress shown = progress_start(d->count, 0, d->count);
    *count = 0;
    for (int i = 1; i < d->count && *count + i <= most; i++) {
        progress_show(&shown, "pairs");
        pairs = must_resize(pairs, (size_t)(*count + i), sizeof *pairs);
        for (int j = 0; j < i; j++) {
            int a = singles[i].first, b = singles[j].first;
            pairs[*count] = (attempt){a < b ? a : b, a < b ? b : a, INFINITY};
            try_attempt(d, &pairs[(*count)++]);
        }
        progress_add(&shown, 1);
    }
    progress_end(&shown);
    sort_attempts(d, pairs, *count);
    return pairs;
}

/* The nearest of the attempts, those that explain the output before the others. */
static int collect(diagnosis *d, const attempt *attempts, int count, finding *findings, int found)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count && i < MOST_FINDINGS && found < MOST_FINDINGS; i++) {
            const attempt *a = &attempts[i];
            if (!(a->error < 0.9 * d->claimed) || explains(d, a) != (pass == 0))
                continue;
            findings[found++] = (finding){attempt_text(d, a), a->error, pass == 0, false};
        }
    return found;
}

/* Below it errors are equal: a few times the library's in the same precision. */
static double error_floor(const diagnosis *d)
{
    double floor = subject_rounding(d->s);
    if (d->v->plain) {
        ref_difference plain =
            ref_compare_f64(1, d->size, d->v->plain, d->size, d->v->want, d->size);
        floor = 4 * plain.relative_frobenius + subject_unit(d->s);
    }
    return fmin(floor, d->claimed / 100);
}

int diagnose(atn_context *context, const subject *s, result_kind kind, const result_verdict *v,
             finding findings[MOST_FINDINGS])
{
    diagnosis d = {.context = context, .s = s, .kind = kind, .v = v};
    int found = 0, pair_count = 0;
    d.heads = result_heads(&s->judged, kind);
    d.size = result_size(&s->judged, kind);
    d.answer = must_allocate((size_t)d.size, sizeof *d.answer);
    d.claimed = error_left(&d, v->want);
    d.floor = error_floor(&d);
    d.all = hypotheses_of(s, kind, &d.count);
    attempt *singles = try_singles(&d), *pairs = NULL;
    found = collect(&d, singles, d.count, findings, 0);
    if (!found || !findings[0].explains) {
        finding type;
        bool fits = find_distances(&d, &type) || find_type(&d, &type);
        if (!fits)
            pairs = try_pairs(&d, singles, &pair_count);
        if (fits || (pair_count && explains(&d, &pairs[0]))) {
            while (found > 0)
                free(findings[--found].text);
            if (fits)
                findings[found++] = type;
        }
        found = found ? found : collect(&d, pairs, pair_count, findings, 0);
    }
    free(pairs), free(singles);
    free(d.all);
    free(d.answer);
    return found;
}
