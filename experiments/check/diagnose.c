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

/* Factors or constants of rows, columns or heads: beside another mistake they come nearer to
 * anything. */
static bool has_many_numbers(const hypothesis *h)
{
    return hypothesis_numbers(h) > 1;
}

static void try_attempt(diagnosis *d, attempt *a)
{
    trial t;
    a->error = INFINITY;
    if (a->second >= 0 &&
        (has_many_numbers(&d->all[a->first]) || has_many_numbers(&d->all[a->second])))
        return;
    if (build(d, a, &t) && is_affordable(d, &t) &&
        trial_answer(d->context, &t, ATN_F64, ATN_STORAGE_NATIVE, d->answer) >= 0)
        a->error = error_left(d, d->answer);
    trial_free(&t);
}

/* Below the floor there is no nearer; the order of the table then decides. What has many numbers
 * fitted comes nearer by them alone, and must do so clearly. */
static const diagnosis *sorting;

static double sorting_error(const attempt *a)
{
    bool many = a->second < 0 && has_many_numbers(&sorting->all[a->first]);
    return fmax(many ? 1.5 * a->error : a->error, sorting->floor);
}

static int compare_attempts(const void *left, const void *right)
{
    const attempt *a = left, *b = right;
    double x = sorting_error(a), y = sorting_error(b);
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

/* Judges what was given as an answer to the trial, by the same ruler. Where the trial is no problem
 * of the library's own, roundings are as large, relatively, as those of what was claimed. */
static bool passes(const diagnosis *d, const trial *t, const double *want)
{
    int64_t heads = d->heads, size = d->size / heads;
    bool given = t->own && t->own->results[t->kind];
    bool borrowed = given || t->dense || t->move_count || t->kept || t->missing || t->of != t->kind;
    result_verdict v = *d->v;
    v.want = (double *)want;
    if (!borrowed) {
        v.reach = (reach){0};
        reach_differentiate(d->context, &t->s, d->kind, want, &v.reach);
        reach_run(d->context, &t->s, d->kind, want, false, &v.reach);
    }
    bool good = true;
    for (int64_t i = 0; i < heads && good; i++) {
        yardstick y = head_yardstick(d->s, d->kind, &v, i);
        y.c = NULL;
        y.reach.directions = 0; /* what was changed may lie along one */
        if (borrowed) {
            ref_difference known =
                ref_compare_f64(1, size, y.want, size, d->v->want + i * size, size);
            ref_difference own = ref_compare_f64(1, size, y.want, size, y.want, size);
            y.factor = known.want_frobenius > 0 ? own.want_frobenius / known.want_frobenius : 1;
        }
        if (d->s->dtype == ATN_F64) /* in which the trial's answer is no better */
            y.unit *= 2, y.sums *= 2, y.summed *= 2, y.factor = 2 * fmax(y.factor, 1);
        bounds b = find_bounds(&y);
        ref_verdict verdict = judge_head(&y, &b, d->s->results[d->kind] + i * size).verdict;
        good = verdict == REF_PASS || verdict == REF_MARGINAL;
    }
    if (!borrowed)
        reach_free(&v.reach);
    return good;
}

/* It must pass where what was claimed does not, and be clearly nearer. */
static bool explains(const diagnosis *d, const attempt *a)
{
    trial t;
    if (!(a->error <= 0.7 * d->claimed))
        return false;
    bool good = false;
    double *want = must_allocate((size_t)d->size, sizeof *want);
    if (build(d, a, &t) && trial_answer(d->context, &t, ATN_F64, ATN_STORAGE_NATIVE, want) >= 0)
        good = passes(d, &t, want);
    free(want);
    trial_free(&t);
    return good;
}

/* ---- Types ---- */

/* bf16's numbers are tf32's, f16's most often, too: what is stored is the first's. */
static const atn_dtype types[] = {ATN_BF16, ATN_F16, ATN_TF32, ATN_F32};
enum { TYPES = sizeof types / sizeof *types, MOST_TYPES = 2 * TYPES };

/* What of the arithmetic may have been in a narrower type. */
typedef enum { NARROW_VALUES, NARROW_SUMS } narrow_part;

/* How far the result is from what that reaches, as a factor: 1 is as near as that; infinity where
 * it is much better or worse, or its error has a structure that roundings do not have. */
static double distance_to_type(const diagnosis *d, atn_dtype type, narrow_part part)
{
    const double most_factor = 8;
    int64_t heads = d->heads, size = d->size / heads;
    double farthest = 1;
    subject narrow = *d->s;
    result_verdict v;
    subject_claim(&narrow, type);
    claim_another(d->context, &narrow, d->kind, d->v, &v);
    for (int64_t i = 0; i < heads && isfinite(farthest); i++) {
        yardstick y = head_yardstick(&narrow, d->kind, &v, i);
        if (part == NARROW_SUMS) {
            y.sums *= atn_dtype_roundoff(type) / atn_dtype_roundoff(narrow.dtype);
            y.unit = 0;
            y.reach.runs = 0;
        }
        const double *got = d->s->results[d->kind] + i * size;
        bounds b = find_bounds(&y);
        double factor = judge_head(&y, &b, got).difference.frobenius / b.reached;
        y.factor = fmin(factor, 1); /* the structure, for an error of this size */
        y.unit *= y.factor, y.sums *= y.factor;
        b = find_bounds(&y);
        ref_verdict verdict = judge_head(&y, &b, got).verdict;
        bool good = (verdict == REF_PASS || verdict == REF_MARGINAL) && factor > 1 / most_factor;
        farthest = fmax(farthest, good ? fmax(factor, 1 / factor) : INFINITY);
    }
    claim_free(&v);
    return farthest;
}

/* Whether every number of the result is one of a narrower type's. */
static bool is_stored_in(const diagnosis *d, atn_dtype type)
{
    const double *got = d->s->results[d->kind];
    for (int64_t i = 0; i < d->size; i++) {
        float value = (float)got[i];
        uint32_t narrow;
        double back;
        atn_convert(type, &narrow, ATN_F32, &value, 1);
        atn_convert(ATN_F64, &back, type, &narrow, 1);
        if (back != got[i])
            return false;
    }
    return true;
}

/* What of the arithmetic may be narrower, nearest first. Returns how many. */
static int find_types(const diagnosis *d, finding findings[MOST_TYPES])
{
    static const char *const texts[] = {"computed in %s", "sums in %s"};
    double distances[MOST_TYPES];
    int found = 0;
    bool stored = false;
    for (int i = 0; i < TYPES; i++) {
        if (!(atn_dtype_roundoff(types[i]) > subject_unit(d->s)))
            continue;
        for (int part = NARROW_VALUES; part <= NARROW_SUMS; part++) {
            double distance = distance_to_type(d, types[i], (narrow_part)part);
            if (part == NARROW_VALUES && !stored && isfinite(distance) &&
                is_stored_in(d, types[i])) {
                stored = true;
                distance = 0;
            }
            if (!isfinite(distance))
                continue;
            int at = found++;
            for (; at > 0 && distances[at - 1] > distance; at--) {
                distances[at] = distances[at - 1];
                findings[at] = findings[at - 1];
            }
            distances[at] = distance;
            findings[at] =
                (finding){distance == 0 ? must_format("stored in %s", atn_dtype_name(types[i]))
                                        : must_format(texts[part], atn_dtype_name(types[i])),
                          d->claimed,
                          true,
                          true,
                          false,
                          false};
        }
    }
    return found;
}

/* ---- All of them ---- */

/* The factor that fits best. */
static double fitted_factor(const diagnosis *d)
{
    const double *got = d->s->results[d->kind];
    double product = 0, square = 0;
    for (int64_t i = 0; i < d->size; i++) {
        product += got[i] * d->v->want[i];
        square += d->v->want[i] * d->v->want[i];
    }
    return product / square;
}

static char *attempt_text(const diagnosis *d, const attempt *a)
{
    char *first = hypothesis_text(&d->all[a->first], d->s);
    if (a->second < 0 && hypothesis_numbers(&d->all[a->first]) == 1) {
        char *with = must_format("%s, %.5g", first, fitted_factor(d));
        free(first);
        return with;
    }
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

/* Whether it was fitted to the result: it comes nearer whatever that is. */
static bool is_fitted(const diagnosis *d, const attempt *a)
{
    return hypothesis_numbers(&d->all[a->first]) > 0 ||
           (a->second >= 0 && hypothesis_numbers(&d->all[a->second]) > 0);
}

/* The nearest of the attempts, those that explain the output before the others. */
static int collect(diagnosis *d, const attempt *attempts, int count, finding *findings, int found)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count && i < MOST_FINDINGS && found < MOST_FINDINGS; i++) {
            const attempt *a = &attempts[i];
            if (found && findings[0].explains && has_many_numbers(&d->all[a->first]))
                continue; /* what fits anything adds nothing to what explains it */
            if (!(a->error < 0.9 * d->claimed) || explains(d, a) != (pass == 0))
                continue;
            findings[found++] =
                (finding){attempt_text(d, a), a->error, pass == 0, false, is_fitted(d, a), false};
        }
    return found;
}

/* Below it errors are equal: what good kernels reach, of which two are compared. */
static double error_floor(const diagnosis *d)
{
    double floor = 0;
    for (int64_t i = 0; i < d->heads; i++)
        floor = fmax(floor, 2 * d->v->heads[i].reachable);
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
        finding more[MOST_TYPES];
        int count = find_types(&d, more);
        if (!count)
            pairs = try_pairs(&d, singles, &pair_count);
        if (count || (pair_count && explains(&d, &pairs[0])))
            while (found > 0)
                free(findings[--found].text);
        for (int i = 0; i < count; i++) {
            if (found < MOST_FINDINGS)
                findings[found++] = more[i];
            else
                free(more[i].text);
        }
        found = found ? found : collect(&d, pairs, pair_count, findings, 0);
    }
    free(pairs), free(singles);
    free(d.all);
    free(d.answer);
    return found;
}

/* Nothing but zeros, and what is not finite, are as far from everything. */
static bool can_be_explained(const subject *s, result_kind kind)
{
    const double *got = s->results[kind];
    bool zero = true;
    for (int64_t i = 0; i < result_size(&s->judged, kind); i++) {
        if (!isfinite(got[i]))
            return false;
        zero &= got[i] == 0;
    }
    return !zero;
}

/* Farther than good kernels get. */
static bool is_suspicious(int64_t heads, const result_verdict *v)
{
    bool suspicious = false;
    for (int64_t i = 0; i < heads; i++)
        suspicious |= v->heads[i].difference.relative_frobenius > v->heads[i].reachable;
    return suspicious;
}

/* |got - want|_F / |want|_F over all heads. */
static double total_error(const subject *s, result_kind kind, const result_verdict *v)
{
    int64_t size = result_size(&s->judged, kind);
    return ref_compare_f64(1, size, s->results[kind], size, v->want, size).relative_frobenius;
}

/* Which part alone is wrong: before what was fitted to it and what does not explain it. */
static int add_place(const subject *s, result_kind kind, const result_verdict *v, int count,
                     finding findings[MOST_FINDINGS])
{
    char *text = where_wrong(s, kind, v);
    bool second = count && findings[0].explains && !findings[0].fitted;
    if (!text)
        return count;
    if (count == MOST_FINDINGS)
        free(findings[--count].text);
    for (int i = count++; i > second; i--)
        findings[i] = findings[i - 1];
    findings[second] = (finding){.text = text, .error = total_error(s, kind, v), .place = true};
    return count;
}

int explain_result(atn_context *context, const subject *s, result_kind kind, result_verdict *v,
                   finding findings[MOST_FINDINGS])
{
    bool failed = v->verdict == REF_FAIL;
    if (failed && !can_be_explained(s, kind))
        return add_place(s, kind, v, 0, findings);
    if ((!failed && !is_suspicious(result_heads(&s->judged, kind), v)) ||
        !can_be_explained(s, kind))
        return 0;
    int count = diagnose(context, s, kind, v, findings);
    /* what passes is called mistaken only if hardly anything is left of its error */
    bool mistaken = count && findings[0].explains && !findings[0].rounding && !findings[0].fitted &&
                    (failed || findings[0].error <= total_error(s, kind, v) / 3);
    if (mistaken && v->verdict != REF_SKIPPED)
        v->verdict = REF_FAIL;
    while (!failed && !mistaken && count > 0)
        free(findings[--count].text);
    return failed ? add_place(s, kind, v, count, findings) : count;
}
