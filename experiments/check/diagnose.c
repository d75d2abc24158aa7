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

/* What trying all single ones on all heads may cost, some ten seconds. Beyond, each is tried on the
 * head that is farthest from what was claimed, where it can be on EXCERPT_ROWS of its queries, and
 * the nearest then on all: what explains every head explains that one. */
static const double most_single_flops = 5e10;
enum { EXCERPT_ROWS = 512, MOST_NEAREST = 10 };

/* One or two changes, and what they leave. */
typedef struct {
    int first, second; /* of the hypotheses; second -1: none */
    double error;
    enum { UNKNOWN, EXPLAINS, DOES_NOT } known;
    double number; /* what a search found */
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
    double *base;   /* the library's answer in f64 to what was claimed, or null */
    int64_t worst;  /* the head that is farthest from what was claimed; -1: all are looked at */
    int64_t rows;   /* of its queries that are looked at, where they can be; 0: all */
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

/* Factors or constants of rows, columns or heads. */
static bool has_many_numbers(const hypothesis *h)
{
    return hypothesis_numbers(h) > 1;
}

/* The answer of a trial in f64, by moves alone where it consists of nothing else. */
static atn_status answer_of(const diagnosis *d, const attempt *a, trial *t, double *to)
{
    bool moved = hypothesis_is_of_result(&d->all[a->first]) &&
                 (a->second < 0 || hypothesis_is_of_result(&d->all[a->second]));
    if (!moved || !d->base)
        return trial_answer(d->context, t, ATN_F64, ATN_STORAGE_NATIVE, to);
    memcpy(to, d->base, (size_t)d->size * sizeof *to);
    trial_move(t, to);
    return ATN_OK;
}

static void try_attempt(diagnosis *d, attempt *a)
{
    trial t;
    a->error = INFINITY;
    if (build(d, a, &t) && is_affordable(d, &t) && answer_of(d, a, &t, d->answer) >= 0)
        a->error = error_left(d, d->answer);
    a->number = t.number;
    trial_free(&t);
}

/* The error that `want` leaves in evenly spaced rows of a head; all: it has the others as well. */
static double excerpt_error(const diagnosis *d, int64_t head, const double *want, int64_t rows,
                            bool all)
{
    int64_t n = result_rows(&d->s->judged, d->kind), cols = result_cols(&d->s->judged, d->kind);
    const double *got = d->s->results[d->kind] + head * n * cols;
    double left = 0, norm = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double x = want[(all ? i * n / rows : i) * cols + j];
            double error = got[i * n / rows * cols + j] - x;
            left += error * error;
            norm += x * x;
        }
    return left / norm >= 0 ? sqrt(left / norm) : INFINITY;
}

/* What the claimed answer leaves. */
static double claimed_error(const diagnosis *d, int64_t head, int64_t rows)
{
    return excerpt_error(d, head, d->v->want + head * (d->size / d->heads), rows, true);
}

/* The same for a hypothesis by itself; false: it has to be tried on all. */
static bool try_excerpt(diagnosis *d, attempt *a)
{
    trial t;
    a->error = INFINITY;
    bool built = build(d, a, &t) && is_affordable(d, &t);
    bool kept = !built || trial_keep_head(&t, d->worst);
    if (built && kept) {
        int64_t rows = result_rows(&d->s->judged, d->kind);
        if (d->rows && trial_keep_rows(&t, d->rows))
            rows = d->rows;
        if (trial_answer(d->context, &t, ATN_F64, ATN_STORAGE_NATIVE, d->answer) >= 0)
            a->error = excerpt_error(d, d->worst, d->answer, rows, false);
    }
    trial_free(&t);
    return kept;
}

/* Errors below the floor are equal: the order of the table then decides. Hypotheses with many
 * fitted numbers get nearer by fitting alone, so they must be clearly nearer. */
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
    int64_t heads = result_heads(&t->s.judged, d->kind), size = d->size / d->heads;
    bool given = t->own && t->own->results[t->kind];
    bool borrowed = given || t->dense || t->normed || t->weights || t->move_count || t->kept ||
                    t->missing || t->of != t->kind;
    result_verdict v = *d->v;
    double *kappa = v.kappa = must_allocate((size_t)heads, sizeof *kappa);
    v.want = (double *)want;
    for (int64_t i = 0; i < heads; i++)
        kappa[i] = t->dense && t->form.inverse_missing ? 1 : d->v->kappa[i];
    if (!borrowed) {
        result_group g = group_of_one(d->kind, &v);
        v.reach = (reach){0};
        v.exact = false;
        reach_differentiate(d->context, &t->s, &g);
        find_conditions(&t->s, &g);
        reach_run(d->context, &t->s, &g);
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
            y.unit *= 2, y.cut *= 2, y.sums *= 2, y.summed *= 2, y.factor = 2 * fmax(y.factor, 1);
        bounds b = find_bounds(&y);
        judgement j = judge_head(&y, &b, t->s.results[d->kind] + i * size);
        /* what the trial makes may itself say nothing about tokens, as the mean of V */
        bool tight = j.allowed <= d->claimed / 10;
        good = (j.verdict != REF_SKIPPED || tight) && ref_judge(REF_REACH, j.ratio) != REF_FAIL;
    }
    if (!borrowed)
        reach_free(&v.reach);
    free(kappa);
    return good;
}

/* Whether it may pass: on the worst head alone it does, or it cannot be asked that. */
static bool may_pass(const diagnosis *d, const attempt *a, double *want)
{
    trial t;
    bool good = d->worst < 0 || !build(d, a, &t) || !trial_keep_head(&t, d->worst) || t.dense ||
                t.kept || t.missing || t.of != t.kind ||
                (trial_answer(d->context, &t, ATN_F64, ATN_STORAGE_NATIVE, want) >= 0 &&
                 passes(d, &t, want));
    if (d->worst >= 0)
        trial_free(&t);
    return good;
}

/* It must pass where what was claimed does not, and be clearly nearer. */
static bool explains(const diagnosis *d, attempt *a)
{
    trial t;
    if (!(a->error <= 0.7 * d->claimed))
        return false;
    if (a->known != UNKNOWN)
        return a->known == EXPLAINS;
    a->known = DOES_NOT;
    double *want = must_allocate((size_t)d->size, sizeof *want);
    if (may_pass(d, a, want)) {
        if (build(d, a, &t) && answer_of(d, a, &t, want) >= 0 && passes(d, &t, want))
            a->known = EXPLAINS;
        trial_free(&t);
    }
    free(want);
    return a->known == EXPLAINS;
}

/* ---- Types ---- */

/* bf16's numbers are tf32's, f16's most often, too: what is stored is the first's, though its error
 * may be so much smaller than what computing in that type reaches that it is another's. f16 and
 * tf32 have one roundoff. */
static const atn_dtype types[] = {ATN_BF16, ATN_F16, ATN_TF32, ATN_F32};
enum { TYPES = sizeof types / sizeof *types, MOST_TYPES = 2 * TYPES };

/* What of the arithmetic may have been in a narrower type. */
typedef enum { NARROW_VALUES, NARROW_SUMS } narrow_part;

/* How far the result is from what a type reaches, as a factor: 1 is as near as that, infinity where
 * it is much better or worse, or its error has a structure that roundings do not have. Of that
 * truncation is excused much, which a mistake of its size may have as well: a type explains the
 * result only if its error is like that of rounding to nearest, which has none. Sums may be of any
 * size between few roundings and many, and share theirs: they are likely, but explain nothing; and
 * not even likely where the error has a structure, since a mistake may be of any size, too. */
typedef struct {
    double distance;
    bool explains;
} nearness;

/* Whether a head's error is one of roundings, for an error of this size. */
static bool is_like(yardstick y, double factor, bool nearest, const double *got)
{
    y.nearest = nearest;
    bounds b = find_bounds(&y);
    for (int at = 0; at < MOST_STATISTICS; at++)
        b.bound[at] *= fmin(factor, 1);
    ref_verdict verdict = judge_head(&y, &b, got).verdict;
    return verdict == REF_PASS || (verdict == REF_MARGINAL && !nearest);
}

/* The error over what is reached. */
static double factor_of(const yardstick *y, const double *got)
{
    bounds b = find_bounds(y);
    return judge_head(y, &b, got).difference.frobenius / b.reached;
}

/* The most and the least that sums in a type make: each of their terms is rounded, and all that an
 * inverse magnifies; or each sum once, as where only tiles' sums are kept in it. */
static void narrow_sums(atn_dtype type, atn_dtype computed, yardstick *most, yardstick *least)
{
    double u = atn_dtype_roundoff(type);
    most->unit = least->unit = most->cut = least->cut = 0;
    most->reach.runs = least->reach.runs = 0;
    most->reach.writtens = least->reach.writtens = 0;
    most->sums *= u / atn_dtype_roundoff(computed);
    most->summed = u;
    least->sums = u / sqrt(8 * log(2));
}

static nearness nearness_to_type(const diagnosis *d, atn_dtype type, narrow_part part)
{
    const double most_factor = 8;
    int64_t heads = d->heads, size = d->size / heads;
    nearness n = {1, true};
    subject narrow = *d->s;
    result_verdict v, known = *d->v;
    result_group g = group_of_one(d->kind, &v), of_known = group_of_one(d->kind, &known);
    subject_claim(&narrow, type);
    claim_another(d->context, &narrow, &of_known, &g);
    for (int64_t i = 0; i < heads && isfinite(n.distance); i++) {
        const double *got = d->s->results[d->kind] + i * size;
        yardstick most = head_yardstick(&narrow, d->kind, &v, i), least;
        if (d->kind == RESULT_OUTPUT)
            most.stages = 1; /* its runs are likeness enough: noise that is larger is not nearer */
        least = most;
        if (part == NARROW_SUMS)
            narrow_sums(type, narrow.dtype, &most, &least);
        double factor = factor_of(&most, got);
        double distance = fmax(fmax(factor, 1 / factor_of(&least, got)), 1);
        bool good = is_like(most, factor, part == NARROW_SUMS, got) && distance < most_factor;
        n.distance = fmax(n.distance, good ? distance : INFINITY);
        n.explains &= part == NARROW_VALUES && good && is_like(most, factor, true, got);
    }
    claim_free(&v);
    return n;
}

static double in_type(atn_dtype type, double x)
{
    float value = (float)x;
    uint32_t narrow;
    double back;
    atn_convert(type, &narrow, ATN_F32, &value, 1);
    atn_convert(ATN_F64, &back, type, &narrow, 1);
    return back;
}

/* Whether every number of the result is one of a narrower type's: it surely is stored in it. */
static bool is_stored_in(const diagnosis *d, atn_dtype type)
{
    const double *got = d->s->results[d->kind];
    for (int64_t i = 0; i < d->size; i++)
        if (in_type(type, got[i]) != got[i])
            return false;
    return true;
}

/* Whether the type shows: so many wanted numbers lie so far from all of its numbers that a result
 * in the claimed type, a step of which may be an eighth of one of its own, would hardly have them
 * all there by chance. Where what is wanted is such numbers (a row of V), it says nothing. */
static bool type_shows(const diagnosis *d, atn_dtype type)
{
    const int enough = 32;
    const double far = 4 * subject_unit(d->s);
    int found = 0;
    for (int64_t i = 0; i < d->size && found < enough; i++)
        found += fabs(in_type(type, d->v->want[i]) - d->v->want[i]) > far * fabs(d->v->want[i]);
    return found == enough;
}

/* Whether nearly every number is what is wanted, cut off to the type that is claimed: smaller, by
 * less than a step, and no nearer than a few of them come by chance. */
static bool is_cut_off(const diagnosis *d)
{
    const double most = 0.1, step = 2 * subject_unit(d->s);
    const double *got = d->s->results[d->kind];
    int64_t others = 0;
    for (int64_t i = 0; i < d->size; i++) {
        double want = fabs(d->v->want[i]), missing = (want - fabs(got[i])) / want;
        bool cut = missing >= step / 64 && missing <= step * (1 + 1.0 / 64);
        others += got[i] * d->v->want[i] >= 0 && cut ? 0 : 1;
    }
    return (double)others <= most * (double)d->size;
}

/* Whether no head errs by more than twice what a good kernel does and the rounding of what it
 * writes, as the statistic "size" has it. */
static bool is_rounding_of_result(const diagnosis *d, atn_dtype type)
{
    double rounding = atn_dtype_roundoff(type) / sqrt(8 * log(2));
    for (int64_t i = 0; i < d->heads; i++) {
        const judgement *j = &d->v->heads[i];
        if (!(j->difference.relative_frobenius <= 2 * (j->reachable + rounding)))
            return false;
    }
    return true;
}

/* Nearest first. */
static void sort_types(int count, finding findings[MOST_TYPES], double distances[MOST_TYPES])
{
    for (int i = 1; i < count; i++) {
        const finding f = findings[i];
        double distance = distances[i];
        int at = i;
        for (; at > 0 && distances[at - 1] > distance; at--) {
            distances[at] = distances[at - 1];
            findings[at] = findings[at - 1];
        }
        distances[at] = distance;
        findings[at] = f;
    }
}

/* The narrowest type that the result's numbers are all in; TYPES: none that is narrower. */
static int narrowest_stored(const diagnosis *d)
{
    int i = 0;
    while (i < TYPES &&
           !(atn_dtype_roundoff(types[i]) > subject_unit(d->s) && is_stored_in(d, types[i])))
        i++;
    return i;
}

/* Whether a type is narrower than what is claimed; sums than what good kernels keep them in. */
static bool is_narrower(const diagnosis *d, atn_dtype type, narrow_part part)
{
    double claimed = subject_unit(d->s), u = atn_dtype_roundoff(type);
    bool wide_sums = part == NARROW_SUMS && d->s->storage != ATN_STORAGE_NATIVE;
    return u > claimed || (wide_sums && u == claimed);
}

/* What of the arithmetic may be narrower, nearest first; one of two types of one roundoff is named
 * with the other. Returns how many. */
static int find_types(const diagnosis *d, finding findings[MOST_TYPES])
{
    static const char *const texts[] = {"computed in", "sums in"};
    double distances[MOST_TYPES];
    int found = 0, narrowest = narrowest_stored(d);
    for (int part = NARROW_VALUES; part <= NARROW_SUMS; part++) {
        bool stored = false;
        const char *before = NULL;
        for (int i = 0; i < TYPES; i++) {
            const char *name = atn_dtype_name(types[i]), *text = texts[part];
            bool twin = i > 0 && atn_dtype_roundoff(types[i]) == atn_dtype_roundoff(types[i - 1]);
            nearness n = {INFINITY, false};
            if (is_narrower(d, types[i], (narrow_part)part))
                n = nearness_to_type(d, types[i], (narrow_part)part);
            if (part == NARROW_VALUES && !stored && i >= narrowest && is_stored_in(d, types[i]) &&
                atn_dtype_roundoff(types[i]) > subject_unit(d->s) &&
                (isfinite(n.distance) || is_rounding_of_result(d, types[i]))) {
                stored = true;
                n = (nearness){0, true};
                text = "stored in";
                name = atn_dtype_name(types[narrowest]);
            }
            const char *last = before;
            before = isfinite(n.distance) && n.distance > 0 ? name : NULL;
            if (!isfinite(n.distance) || (twin && found && distances[found - 1] == 0))
                continue;
            if (twin && last)
                free(findings[--found].text);
            finding f = {.error = d->claimed, .explains = n.explains, .rounding = true};
            f.text = twin && last ? must_format("%s %s or %s", text, last, name)
                                  : must_format("%s %s", text, name);
            distances[found] = n.distance;
            findings[found++] = f;
        }
    }
    sort_types(found, findings, distances);
    return found;
}

/* The first that explains the result; count: none. */
static int explaining(const finding *findings, int count)
{
    int i = 0;
    while (i < count && !findings[i].explains)
        i++;
    return i;
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
        bool sought = hypothesis_searches(&d->all[a->first]);
        char *with = must_format("%s, %.5g", first, sought ? a->number : fitted_factor(d));
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

/* Of those that were tried on an excerpt, the nearest on all. */
static void try_nearest(diagnosis *d, attempt *tried, int count, attempt *attempts)
{
    if (!count)
        return;
    int64_t rows = d->rows ? d->rows : result_rows(&d->s->judged, d->kind);
    double claimed = claimed_error(d, d->worst, rows);
    sort_attempts(d, tried, count);
    for (int i = 0; i < count && i < MOST_NEAREST; i++)
        if (tried[i].error < fmax(0.95 * claimed, d->floor))
            try_attempt(d, &attempts[tried[i].first]);
}

static attempt *try_singles(diagnosis *d)
{
    attempt *attempts = must_allocate((size_t)d->count, sizeof *attempts);
    attempt *tried = must_allocate((size_t)d->count, sizeof *tried);
    int excerpts = 0;
    progress shown = progress_start(d->count, 0, d->count);
    for (int i = 0; i < d->count; i++) {
        char *text = hypothesis_text(&d->all[i], d->s);
        progress_show(&shown, text);
        attempts[i] = (attempt){.first = i, .second = -1, .error = INFINITY};
        if (d->worst < 0 || hypothesis_is_of_result(&d->all[i]) || !try_excerpt(d, &attempts[i]))
            try_attempt(d, &attempts[i]);
        else
            tried[excerpts++] = attempts[i], attempts[i].error = INFINITY;
        progress_add(&shown, 1);
        free(text);
    }
    progress_end(&shown);
    try_nearest(d, tried, excerpts, attempts);
    free(tried);
    sort_attempts(d, attempts, d->count);
    return attempts;
}

/* Each with those that leave less by themselves, the nearest first. */
static attempt *try_pairs(diagnosis *d, const attempt *singles, int *count)
{
    attempt *pairs = NULL;
    int *usable = must_allocate((size_t)d->count, sizeof *usable), usable_count = 0;
    for (int i = 0; i < d->count; i++)
        if (hypothesis_pairs(&d->all[singles[i].first]))
            usable[usable_count++] = singles[i].first;
    /* of the problem alone, so that findings do not depend on the machine */
    int calls = d->kind == RESULT_OUTPUT ? 1 : 4; /* backward takes up to four times forward */
    double most = most_pair_flops / (calls * cost_of(d, &d->s->c));
    progress shown = progress_start(usable_count, 0, usable_count);
    *count = 0;
    for (int i = 1; i < usable_count && *count + i <= most; i++) {
        progress_show(&shown, "pairs");
        pairs = must_resize(pairs, (size_t)(*count + i), sizeof *pairs);
        for (int j = 0; j < i; j++) {
            int a = usable[i], b = usable[j];
            pairs[*count] = (attempt){.first = a < b ? a : b, .second = a < b ? b : a};
            try_attempt(d, &pairs[(*count)++]);
        }
        progress_add(&shown, 1);
    }
    progress_end(&shown);
    free(usable);
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
static int collect(diagnosis *d, attempt *attempts, int count, finding *findings, int found)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count && i < MOST_FINDINGS && found < MOST_FINDINGS; i++) {
            attempt *a = &attempts[i];
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

/* Where trying everything on all heads would take too long: the head that is farthest from what was
 * claimed, and rows of it if they are as far. */
static void choose_excerpt(diagnosis *d)
{
    int64_t n = result_rows(&d->s->judged, d->kind);
    int calls = d->kind == RESULT_OUTPUT ? 1 : 4; /* backward takes up to four times forward */
    double most = 0;
    d->worst = -1;
    if (d->count * calls * cost_of(d, &d->s->c) <= most_single_flops || d->heads < 2)
        return;
    for (int64_t i = 0; i < d->heads; i++) {
        double error = claimed_error(d, i, n);
        if (error > most && isfinite(error)) {
            most = error;
            d->worst = i;
        }
    }
    if (d->worst >= 0 && n > EXCERPT_ROWS && claimed_error(d, d->worst, EXCERPT_ROWS) > most / 2)
        d->rows = EXCERPT_ROWS;
}

/* The library's own answer to what was claimed, of which moves are made. */
static void find_base(diagnosis *d, double *room)
{
    d->base = room;
    if (!d->v->exact)
        memcpy(room, d->v->want, (size_t)d->size * sizeof *room);
    else if (answer_library(d->context, d->s, ATN_F64, ATN_STORAGE_NATIVE, d->kind, room) < 0)
        d->base = NULL;
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
    double *base = must_allocate((size_t)d.size, sizeof *base);
    find_base(&d, base);
    choose_excerpt(&d);
    attempt *singles = try_singles(&d), *pairs = NULL;
    if (is_cut_off(&d))
        findings[found++] =
            (finding){.text = must_format("numbers cut off, not rounded to nearest"),
                      .error = d.claimed,
                      .explains = true,
                      .rounding = true};
    found = collect(&d, singles, d.count, findings, found);
    if (!found || !findings[0].explains) {
        finding more[MOST_TYPES];
        int count = find_types(&d, more), first = explaining(more, count);
        if (first == count)
            pairs = try_pairs(&d, singles, &pair_count);
        bool paired = pair_count && explains(&d, &pairs[0]);
        if (count || paired)
            while (found > 0)
                free(findings[--found].text);
        if (paired)
            found = collect(&d, pairs, pair_count, findings, 0);
        for (int i = 0; i < count; i++) {
            int at = first == count || i > first ? i : i == 0 ? first : i - 1;
            if (found < MOST_FINDINGS)
                findings[found++] = more[at];
            else
                free(more[at].text);
        }
        found = found ? found : collect(&d, pairs, pair_count, findings, 0);
    }
    free(pairs), free(singles);
    free(d.all);
    free(base);
    free(d.answer);
    return found;
}

/* ---- What is not finite ---- */

/* The error where both are finite, of those numbers; infinity: one alone is somewhere. */
static double finite_error(const diagnosis *d, const double *want)
{
    const double *got = d->s->results[d->kind];
    double left = 0, norm = 0;
    for (int64_t i = 0; i < d->size; i++) {
        if (!isfinite(got[i]) != !isfinite(want[i]))
            return INFINITY;
        left += isfinite(want[i]) ? (got[i] - want[i]) * (got[i] - want[i]) : 0;
        norm += isfinite(want[i]) ? want[i] * want[i] : 0;
    }
    return left > 0 ? sqrt(left / norm) : 0;
}

/* Whether the mistake's answer is finite where the result is, and near to it there. */
static bool fits_nonfinite(diagnosis *d, int hypothesis_index, double near, double *error)
{
    const attempt a = {.first = hypothesis_index, .second = -1};
    trial t;
    bool fits = build(d, &a, &t) && is_affordable(d, &t) && answer_of(d, &a, &t, d->answer) >= 0;
    trial_free(&t);
    *error = fits ? finite_error(d, d->answer) : INFINITY;
    return *error <= near;
}

/* Mistakes that fit a result that is not finite: first those of norms, which say what is divided by
 * 0, then variants that do so as well. */
static int diagnose_nonfinite(atn_context *context, const subject *s, result_kind kind,
                              const result_verdict *v, finding findings[MOST_FINDINGS])
{
    diagnosis d = {.context = context, .s = s, .kind = kind, .v = v, .worst = -1};
    int found = 0;
    double near = 0, error;
    d.heads = result_heads(&s->judged, kind);
    d.size = result_size(&s->judged, kind);
    d.answer = must_allocate((size_t)d.size, sizeof *d.answer);
    d.all = hypotheses_of(s, kind, &d.count);
    for (int64_t i = 0; i < d.heads; i++)
        near = fmax(near, 2 * v->heads[i].reachable);
    progress shown = progress_start(2 * d.count, 0, 2 * d.count);
    for (int norms = 1; norms >= 0; norms--)
        for (int i = 0; i < d.count && found < MOST_FINDINGS; i++) {
            const hypothesis *h = &d.all[i];
            char *text = hypothesis_text(h, s);
            progress_show(&shown, text);
            progress_add(&shown, 1);
            if (hypothesis_is_of_norms(h) == norms && !hypothesis_numbers(h) &&
                !hypothesis_searches(h) && fits_nonfinite(&d, i, near, &error))
                findings[found++] = (finding){.text = text, .error = error, .explains = true};
            else
                free(text);
        }
    progress_end(&shown);
    free(d.all);
    free(d.answer);
    return found;
}

static bool is_finite_result(const subject *s, result_kind kind)
{
    for (int64_t i = 0; i < result_size(&s->judged, kind); i++)
        if (!isfinite(s->results[kind][i]))
            return false;
    return true;
}

/* Nothing but zeros is as far from everything. */
static bool can_be_explained(const subject *s, result_kind kind)
{
    bool zero = true;
    for (int64_t i = 0; i < result_size(&s->judged, kind) && zero; i++)
        zero = s->results[kind][i] == 0;
    return !zero && is_finite_result(s, kind);
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

/* The smaller of that and what is left of the library's answer in f64. Mistakes are computed in
 * f64, too: a result in f64 may be near to one for the roundings alone that they share. */
static double least_error(atn_context *context, const subject *s, result_kind kind,
                          const result_verdict *v)
{
    int64_t size = result_size(&s->judged, kind);
    double *own = must_allocate((size_t)size, sizeof *own), error = total_error(s, kind, v);
    if (answer_library(context, s, ATN_F64, ATN_STORAGE_NATIVE, kind, own) >= 0)
        error = fmin(
            error, ref_compare_f64(1, size, s->results[kind], size, own, size).relative_frobenius);
    free(own);
    return error;
}

/* What is stored in less than is claimed is not what it claims to be, however little that errs: an
 * inverse may excuse the error, or the claimed type's other roundings. */
static bool is_stored_in_less(const subject *s, result_kind kind, const result_verdict *v,
                              finding *to)
{
    diagnosis d = {.s = s, .kind = kind, .v = v, .size = result_size(&s->judged, kind)};
    int narrowest = narrowest_stored(&d);
    if (narrowest == TYPES || !type_shows(&d, types[narrowest]))
        return false;
    *to = (finding){.text = must_format("stored in %s", atn_dtype_name(types[narrowest])),
                    .error = total_error(s, kind, v),
                    .explains = true,
                    .rounding = true};
    return true;
}

int explain_result(atn_context *context, const subject *s, result_kind kind, result_verdict *v,
                   finding findings[MOST_FINDINGS])
{
    bool failed = v->verdict == REF_FAIL;
    if (!failed && v->verdict != REF_SKIPPED && is_stored_in_less(s, kind, v, findings)) {
        v->verdict = REF_FAIL;
        return 1;
    }
    if (failed && !can_be_explained(s, kind)) {
        int count =
            is_finite_result(s, kind) ? 0 : diagnose_nonfinite(context, s, kind, v, findings);
        return add_place(s, kind, v, count, findings);
    }
    if ((!failed && !is_suspicious(result_heads(&s->judged, kind), v)) ||
        !can_be_explained(s, kind))
        return 0;
    int count = diagnose(context, s, kind, v, findings);
    /* what passes is called mistaken only if hardly anything is left of its error */
    bool mistaken = count && findings[0].explains && !findings[0].rounding && !findings[0].fitted &&
                    (failed || findings[0].error <= least_error(context, s, kind, v) / 3);
    if (mistaken && v->verdict != REF_SKIPPED)
        v->verdict = REF_FAIL;
    while (!failed && !mistaken && count > 0)
        free(findings[--count].text);
    return failed ? add_place(s, kind, v, count, findings) : count;
}
