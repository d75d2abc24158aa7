/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the hypotheses that leave the smallest error: single ones, then narrower types, then
 * pairs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/hypotheses.h"
#include "common/progress.h"
#include "common/report.h"

/* The budget of floating-point operations for trying pairs, a few seconds; a call counts call_flops
 * for its overhead. */
static const double most_pair_flops = 1e10, call_flops = 1e5;

/* The same for trying all single hypotheses on all heads. Beyond it, each is first tried on the
 * head that is farthest from what was claimed, if possible on EXCERPT_ROWS of its queries, and only
 * the MOST_NEAREST best on all heads: what explains every head explains that one, too. */
static const double most_single_flops = 5e10;
enum { EXCERPT_ROWS = 512, MOST_NEAREST = 10 };

/* One or two changes, and the error that they leave. */
typedef struct {
    int first, second; /* indices of hypotheses; second -1: none */
    double error;
    enum { UNKNOWN, EXPLAINS, DOES_NOT } known;
    double number; /* the number that a search found */
} attempt;

typedef struct {
    atn_context *context;
    const subject *s;
    result_kind kind;
    const result_verdict *v;
    hypothesis *all;
    int count;
    int64_t heads;  /* heads of the result */
    int64_t size;   /* elements of all heads */
    double claimed; /* the error of the result as claimed */
    double floor;   /* errors below it are equal */
    double *answer; /* memory for one answer */
    double *base;   /* the library's answer in f64 to what was claimed, or null */
    int64_t worst; /* the head on which changes are tried first, the farthest from what was claimed;
                      -1: all heads */
    int64_t rows;  /* the number of its queries that are used, where possible; 0: all */
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

/* Roughly what a call costs, in floating-point operations; infinity: it cannot be made. */
static double cost_of(const diagnosis *d, const attention_case *c)
{
    atn_attention_desc desc = c->reference;
    atn_cost cost = {0};
    desc.dtype = ATN_F64;
    atn_status status = atn_attention_cost(d->context, &desc, &c->shape, &cost);
    return status == ATN_OK ? cost.flops + 10 * cost.exps + call_flops : INFINITY;
}

/* A mistake that costs this much more than the claimed computation is unlikely, and is not
 * tried. */
static bool is_affordable(const diagnosis *d, const trial *t)
{
    return cost_of(d, &t->s.c) <= 20 * cost_of(d, &d->s->c) + 1e8;
}

/* Whether it fits a factor or a constant for each row, column or head. */
static bool has_many_numbers(const hypothesis *h)
{
    return hypothesis_numbers(h) > 1;
}

/* The trial's answer in f64. If it only moves the result, the library's answer is moved, without a
 * call. */
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

/* The relative error in evenly spaced rows of a head. all: `want` holds all of its rows, not only
 * these. */
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

/* The same for the claimed answer. */
static double claimed_error(const diagnosis *d, int64_t head, int64_t rows)
{
    return excerpt_error(d, head, d->v->want + head * (d->size / d->heads), rows, true);
}

/* Tries a single hypothesis on the excerpt; false: it has to be tried on all heads. */
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

/* ---- Whether it explains the result ---- */

/* Judges the result as an answer to the trial, by the same tests. Where the library cannot compute
 * the trial itself, its roundings are assumed to be relatively as large as those of the claimed
 * problem. */
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
        y.reach.directions = 0; /* the trial's own change may lie along one */
        if (borrowed) {
            ref_difference known =
                ref_compare_f64(1, size, y.want, size, d->v->want + i * size, size);
            ref_difference own = ref_compare_f64(1, size, y.want, size, y.want, size);
            y.factor = known.want_frobenius > 0 ? own.want_frobenius / known.want_frobenius : 1;
        }
        if (d->s->dtype == ATN_F64) /* the trial's answer has such roundings, too */
            y.unit *= 2, y.cut *= 2, y.sums *= 2, y.summed *= 2, y.factor = 2 * fmax(y.factor, 1);
        bounds b = find_bounds(&y);
        judgement j = judge_head(&y, &b, t->s.results[d->kind] + i * size);
        /* a trial's answer may itself be trivial, such as the mean of V */
        bool tight = j.allowed <= d->claimed / 10;
        good = (j.verdict != REF_SKIPPED || tight) && ref_judge(REF_REACH, j.ratio) != REF_FAIL;
    }
    if (!borrowed)
        reach_free(&v.reach);
    free(kappa);
    return good;
}

/* Whether it passes on the worst head, which is a quick test; true where that cannot be tried. */
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

/* Whether the result passes as the trial's, and is clearly nearer to it than to what was
 * claimed. */
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

/* All bf16 numbers and most f16 numbers are also tf32 numbers: the type in which a result is stored
 * is the first here that holds it, even if the error is so small that only a later one explains it.
 * f16 and tf32 have the same roundoff. */
static const atn_dtype types[] = {ATN_BF16, ATN_F16, ATN_TF32, ATN_F32};
enum { TYPES = sizeof types / sizeof *types, MOST_TYPES = 2 * TYPES };

/* The part of the arithmetic that may have been in a narrower type. */
typedef enum { NARROW_VALUES, NARROW_SUMS } narrow_part;

/* How near a result is to one in a type. distance: the factor between its error and what the type
 * reaches, at least 1; infinity where the error is much larger or smaller, or has a structure that
 * roundings do not have. explains: the error must also be like that of rounding to nearest, because
 * the allowance for truncation would admit a mistake of the same size, and it must not be that of a
 * few rows or columns alone, because a narrower type rounds the others, too. Narrow sums never
 * explain a result: their error may have any size between that of few roundings and that of many,
 * and a mistake may have any size, too. They are only named as likely, and not if the error has a
 * structure. */
typedef struct {
    double distance;
    bool explains;
} nearness;

/* Whether a head's error has the structure of roundings, at the size of this error. */
static bool is_like(yardstick y, double factor, bool nearest, const double *got)
{
    y.nearest = nearest;
    bounds b = find_bounds(&y);
    for (int at = 0; at < MOST_STATISTICS; at++)
        b.bound[at] *= fmin(factor, 1);
    ref_verdict verdict = judge_head(&y, &b, got).verdict;
    return verdict == REF_PASS || (verdict == REF_MARGINAL && !nearest);
}

/* The error divided by what good kernels reach. */
static double factor_of(const yardstick *y, const double *got)
{
    bounds b = find_bounds(y);
    return judge_head(y, &b, got).difference.frobenius / b.reached;
}

/* The largest and the smallest error of sums in a type: each of their terms is rounded, as well as
 * everything that an inverse magnifies; or each sum once, as where only the sums of tiles are kept
 * in it. */
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
            most.stages = 1; /* its runs show the effect of what is stored */
        least = most;
        if (part == NARROW_SUMS)
            narrow_sums(type, narrow.dtype, &most, &least);
        double factor = factor_of(&most, got);
        double distance = fmax(fmax(factor, 1 / factor_of(&least, got)), 1);
        bool good = is_like(most, factor, part == NARROW_SUMS, got) && distance < most_factor;
        n.distance = fmax(n.distance, good ? distance : INFINITY);
        yardstick claimed = head_yardstick(d->s, d->kind, d->v, i);
        n.explains &= part == NARROW_VALUES && good && is_like(most, factor, true, got) &&
                      !is_wrong_in_part(&claimed, &d->v->bounds[i], got);
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

/* Whether every number of the result is one of a narrower type, so that it must be stored in it. */
static bool is_stored_in(const diagnosis *d, atn_dtype type)
{
    const double *got = d->s->results[d->kind];
    for (int64_t i = 0; i < d->size; i++)
        if (in_type(type, got[i]) != got[i])
            return false;
    return true;
}

/* Whether being stored in the type is significant: so many wanted numbers are so far from all
 * numbers of the type that a result in the claimed type, whose step may be an eighth of the narrow
 * type's, would hardly have all its numbers in it by chance. Where the wanted numbers are in the
 * type (a row of V), it says nothing. */
static bool type_shows(const diagnosis *d, atn_dtype type)
{
    const int enough = 32;
    const double far = 4 * subject_unit(d->s);
    int found = 0;
    for (int64_t i = 0; i < d->size && found < enough; i++)
        found += fabs(in_type(type, d->v->want[i]) - d->v->want[i]) > far * fabs(d->v->want[i]);
    return found == enough;
}

/* Whether nearly every number is the wanted one truncated to the claimed type: smaller, by at most
 * a step, and by at least 1/64 of one, below which only a few come by chance. */
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

/* Whether every head's error is at most twice the sum of what a good kernel reaches and of the
 * rounding of its result to the type; 2 is the multiple of the statistic "size". */
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

/* The narrowest type that holds all numbers of the result; TYPES: none narrower than claimed. */
static int narrowest_stored(const diagnosis *d)
{
    int i = 0;
    while (i < TYPES &&
           !(atn_dtype_roundoff(types[i]) > subject_unit(d->s) && is_stored_in(d, types[i])))
        i++;
    return i;
}

/* Whether a type is narrower than the claimed one. For sums a claimed narrow type counts, too,
 * because good kernels keep them in f32. */
static bool is_narrower(const diagnosis *d, atn_dtype type, narrow_part part)
{
    double claimed = subject_unit(d->s), u = atn_dtype_roundoff(type);
    bool wide_sums = part == NARROW_SUMS && d->s->storage != ATN_STORAGE_NATIVE;
    return u > claimed || (wide_sums && u == claimed);
}

/* The narrower types in which a part of the arithmetic may have been, nearest first. Two types of
 * the same roundoff are named together. Returns how many findings there are. */
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

/* The index of the first that explains the result; count: none. */
static int explaining(const finding *findings, int count)
{
    int i = 0;
    while (i < count && !findings[i].explains)
        i++;
    return i;
}

/* ---- All hypotheses ---- */

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

/* Tries on all heads the nearest of those that were tried on the excerpt. */
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

/* Tries each change together with those that leave a smaller error by themselves, the nearest
 * first. */
static attempt *try_pairs(diagnosis *d, const attempt *singles, int *count)
{
    attempt *pairs = NULL;
    int *usable = must_allocate((size_t)d->count, sizeof *usable), usable_count = 0;
    for (int i = 0; i < d->count; i++)
        if (hypothesis_pairs(&d->all[singles[i].first]))
            usable[usable_count++] = singles[i].first;
    /* depends on the problem alone, so that findings do not depend on the machine */
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

/* Whether numbers in it were fitted to the result, which reduces the error whatever it is. */
static bool is_fitted(const diagnosis *d, const attempt *a)
{
    return hypothesis_numbers(&d->all[a->first]) > 0 ||
           (a->second >= 0 && hypothesis_numbers(&d->all[a->second]) > 0);
}

/* Adds the nearest attempts to the findings: first those that explain the result, then the
 * others. */
static int collect(diagnosis *d, attempt *attempts, int count, finding *findings, int found)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count && i < MOST_FINDINGS && found < MOST_FINDINGS; i++) {
            attempt *a = &attempts[i];
            if (found && findings[0].explains && has_many_numbers(&d->all[a->first]))
                continue; /* fits of many numbers suit any result */
            if (!(a->error < 0.9 * d->claimed) || explains(d, a) != (pass == 0))
                continue;
            findings[found++] =
                (finding){attempt_text(d, a), a->error, pass == 0, false, is_fitted(d, a), false};
        }
    return found;
}

/* Errors below it are equal: what good kernels reach, twice because two results are compared. */
static double error_floor(const diagnosis *d)
{
    double floor = 0;
    for (int64_t i = 0; i < d->heads; i++)
        floor = fmax(floor, 2 * d->v->heads[i].reachable);
    return fmin(floor, d->claimed / 100);
}

/* Chooses the excerpt where trying everything on all heads would take too long: the head that is
 * farthest from what was claimed, and some of its rows if their error is about as large. */
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
        if (isfinite(error) && !(error <= most)) {
            most = error;
            d->worst = i;
        }
    }
    if (d->worst >= 0 && n > EXCERPT_ROWS && claimed_error(d, d->worst, EXCERPT_ROWS) > most / 2)
        d->rows = EXCERPT_ROWS;
}

/* The library's answer in f64 to what was claimed, which moves start from. */
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

/* The relative error of the numbers that are finite in both; infinity: somewhere only one is
 * finite. */
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

/* Whether the mistake's answer is finite exactly where the result is, and near to it there. */
static bool fits_nonfinite(diagnosis *d, int hypothesis_index, double near, double *error)
{
    const attempt a = {.first = hypothesis_index, .second = -1};
    trial t;
    bool fits = build(d, &a, &t) && is_affordable(d, &t) && answer_of(d, &a, &t, d->answer) >= 0;
    trial_free(&t);
    *error = fits ? finite_error(d, d->answer) : INFINITY;
    return *error <= near;
}

/* Finds mistakes that fit a result with NaN or infinity: first changed norms, which say what is
 * divided by 0, then others that have the same effect. */
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

/* A result of zeros is equally far from every answer. */
static bool can_be_explained(const subject *s, result_kind kind)
{
    bool zero = true;
    for (int64_t i = 0; i < result_size(&s->judged, kind) && zero; i++)
        zero = s->results[kind][i] == 0;
    return !zero && is_finite_result(s, kind);
}

/* What good kernels reach in a head, from which on an error is looked into. What roundings may do
 * to an inverse is up to 100 times what they do in the library's own runs, behind which a missing
 * step or a wrong landmark could hide. */
static double usual_error(const subject *s, result_kind kind, const result_verdict *v, int64_t head)
{
    int64_t size = result_size(&s->judged, kind) / result_heads(&s->judged, kind);
    double most = 0;
    bool plain = s->dtype == ATN_F32 && s->storage == ATN_STORAGE_NATIVE;
    if (!v->reach.inverses || !v->reach.runs || !plain)
        return v->heads[head].reachable;
    for (int i = 0; i < v->reach.runs; i++) {
        const double *e = v->reach.errors[i] + head * size;
        most = fmax(most, ref_compare_f64(1, size, e, size, e, size).want_frobenius);
    }
    return most / v->heads[head].difference.want_frobenius;
}

/* Whether the error of some head is larger than good kernels usually reach. */
static bool is_suspicious(const subject *s, result_kind kind, const result_verdict *v)
{
    bool suspicious = false;
    for (int64_t i = 0; i < result_heads(&s->judged, kind); i++)
        suspicious |= v->heads[i].difference.relative_frobenius > usual_error(s, kind, v, i);
    return suspicious;
}

/* |got - want|_F / |want|_F over all heads. */
static double total_error(const subject *s, result_kind kind, const result_verdict *v)
{
    int64_t size = result_size(&s->judged, kind);
    return ref_compare_f64(1, size, s->results[kind], size, v->want, size).relative_frobenius;
}

/* Adds which part alone is wrong: first, or second after an explanation without fitted numbers. */
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

/* Whether the result is stored in a narrower type than claimed. Then it FAILs, although an inverse
 * or the claimed type's other roundings may allow an error of this size. */
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
    if ((!failed && !is_suspicious(s, kind, v)) || !can_be_explained(s, kind))
        return 0;
    int count = diagnose(context, s, kind, v, findings);
    /* A result within its bounds FAILs only if the mistake leaves hardly any of its error. In f64
     * it does not FAIL: mistakes are computed in f64, too, and one that changes nothing is near to
     * a result that has the same roundings. */
    bool mistaken =
        count && findings[0].explains && !findings[0].rounding && !findings[0].fitted &&
        (failed || (s->dtype != ATN_F64 && findings[0].error <= total_error(s, kind, v) / 3));
    if (mistaken && v->verdict != REF_SKIPPED)
        v->verdict = REF_FAIL;
    while (!failed && !mistaken && count > 0)
        free(findings[--count].text);
    return failed ? add_place(s, kind, v, count, findings) : count;
}
