/* SPDX-License-Identifier: BSD-3-Clause */
/* How the Newton-Raphson inverse of A converges, iteration by iteration: SOFT (IJCV) Fig. 5, on
 * photographs and synthetic tokens, for every published choice of the start and of landmarks.
 *
 * A point is one A (input, stage, sampling, seed, sample), with all variants and dtypes. Its raw
 * rows are averaged into curves, one per (input, stage, sampling, variant, dtype). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <linear_algebra.h>
#include <newton.h>

#include "common/experiment.h"
#include "common/median.h"
#include "common/report.h"
#include "convergence/attention_error.h"
#include "convergence/bottleneck.h"
#include "convergence/rounding.h"
#include "registry.h"

enum { DEFAULT_ITERATIONS = 20 };

/* ---- Columns ---- */

enum {
    RESIDUAL,
    INVERSE_ERROR,
    RANGE_RESIDUAL,
    ATTENTION_ERROR,
    PREDICTED,
    ROUNDING_RATIO,
    MEASURES
};

/* A matrix counts as converged on its range if its range residual is at most this level, which the
 * papers' residual reaches for every A (claim S14). */
static const double range_level = 1e-3;

static const column raw_columns[] = {
    {"curve", COLUMN_INTEGER, "", "case, variant and dtype, as one number"},
    {"iteration", COLUMN_INTEGER, "", "k"},
    {"started", COLUMN_BOOLEAN, "", "whether the variant found a start"},
    {"converged", COLUMN_BOOLEAN, "", "whether the library calls the last iterate converged"},
    {"condition", COLUMN_REAL, "", "max |lambda| / min |lambda|"},
    {"below_floor", COLUMN_BOOLEAN, "", "whether A+ has no floating-point reference"},
    {"residual", COLUMN_REAL, "", "|A X A - A|_2 / |A|_2"},
    {"inverse_error", COLUMN_REAL, "", "|X - A+|_2 / |A+|_2"},
    {"range_residual", COLUMN_REAL, "", "|Pi - A X|_2"},
    {"attention_error", COLUMN_REAL, "", "|P^T (X - A+) P|_2 / |P^T A+ P|_2"},
    {"predicted_residual", COLUMN_REAL, "", "the residual of the closed-form filter"},
    {"rounding_ratio", COLUMN_REAL, "",
     "|residual - predicted| / estimated rounding error (rounding.h)"},
};
enum {
    RAW_CURVE,
    RAW_ITERATION,
    RAW_STARTED,
    RAW_CONVERGED,
    RAW_CONDITION,
    RAW_BELOW_FLOOR,
    RAW_MEASURES
};
enum { RAW_COLUMNS = sizeof raw_columns / sizeof *raw_columns };

#define ROW(X)                                                                                     \
    X(TEXT, input, "", "where the tokens come from", input_name(p->in))                            \
    X(INTEGER, stage, "", "stage of SOFT-Tiny; 0: the input's own grid", p->stage)                 \
    X(INTEGER, n, "", "tokens", grid_tokens(&p->grid))                                             \
    X(INTEGER, m, "", "landmarks", p->m)                                                           \
    X(TEXT, sampling, "", "how landmarks come from tokens (attnum list samplings)",                \
      sampling_name(p->sampling))                                                                  \
    X(TEXT, variant, "",                                                                           \
      "which inverse; each is applied to one matrix at a time, so nr-softpp's start is each "      \
      "matrix's own, where the published code takes one for its batch",                            \
      atn_inverse_name(key->method))                                                               \
    X(TEXT, dtype, "", "arithmetic of A and of the inverse", atn_dtype_name(key->dtype))           \
    X(TEXT, device, "", "what ran it", w->s->device == ATN_CUDA ? "cuda" : "cpu")                  \
    X(INTEGER, iteration, "",                                                                      \
      "k of the iterate X_k; 0 for exact methods; a guarded iteration that stopped repeats its "   \
      "X",                                                                                         \
      k)                                                                                           \
    X(INTEGER, samples, "",                                                                        \
      "matrices A in this row; 0, in one row, if the variant found a start for none", at->samples) \
    X(REAL_IF, residual_mean, "", "mean of |A X_k A - A|_2 / |A|_2", known,                        \
      s[RESIDUAL].sum / samples)                                                                   \
    X(REAL_IF, residual_min, "", "its minimum over the samples", known, s[RESIDUAL].least)         \
    X(REAL_IF, residual_max, "", "its maximum over the samples", known, s[RESIDUAL].most)          \
    X(REAL_IF, inverse_error_mean, "",                                                             \
      "mean of |X_k - A+|_2 / |A+|_2, A+ the f64 pseudo-inverse with |lambda| <= m u |A|_2 "       \
      "dropped",                                                                                   \
      known, s[INVERSE_ERROR].sum / samples)                                                       \
    X(REAL_IF, inverse_error_max, "", "its maximum", known, s[INVERSE_ERROR].most)                 \
    X(REAL_IF, range_residual_mean, "",                                                            \
      "mean of |Pi - A X_k|_2, Pi the projector on the eigenvectors that A+ keeps", known,         \
      s[RANGE_RESIDUAL].sum / samples)                                                             \
    X(REAL_IF, range_residual_max, "", "its maximum", known, s[RANGE_RESIDUAL].most)               \
    X(REAL_IF, attention_error_mean, "",                                                           \
      "mean of |P^T (X_k - A+) P|_2 / |P^T A+ P|_2, P = K(L, Q): what the error of X_k does to "   \
      "the attention matrix",                                                                      \
      known, s[ATTENTION_ERROR].sum / samples)                                                     \
    X(REAL_IF, attention_error_max, "", "its maximum", known, s[ATTENTION_ERROR].most)             \
    X(REAL_IF, predicted_residual_mean, "",                                                        \
      "mean of the residual that exact arithmetic gives on the eigenvalues of the same A; "        \
      "missing for exact methods and the polynomial iterations",                                   \
      predicted, s[PREDICTED].sum / samples)                                                       \
    X(REAL, condition_median, "",                                                                  \
      "median of the condition number of A in the dtype; only an order of magnitude above 1 / "    \
      "(m u)",                                                                                     \
      condition)                                                                                   \
    X(REAL_IF, rounding_ratio_max, "",                                                             \
      "maximum of |residual - predicted| / an estimate, no proved bound, of what rounding does "   \
      "to it (experiments/convergence/curves.md); up to about 1 rounding explains the "            \
      "difference; nan where an iterate overflowed",                                               \
      predicted, s[ROUNDING_RATIO].most)                                                           \
    X(INTEGER, samples_without_start, "", "matrices for which the variant found no start",         \
      c->without_start)                                                                            \
    X(INTEGER, samples_converged, "",                                                              \
      "matrices for which the method reports success; for iterations that the last iterate has "   \
      "|B X B - B|_F <= sqrt(u) |B|_F, B what is inverted",                                        \
      c->converged)                                                                                \
    X(INTEGER, samples_on_range, "", "matrices of the row with |Pi - A X_k|_2 <= 1e-3",            \
      at->on_range)                                                                                \
    X(INTEGER, samples_below_floor, "",                                                            \
      "matrices whose A+ has no floating-point reference: two routes keep different numbers of "   \
      "eigenvalues, because one lies at the cut; inverse_error, range_residual and "               \
      "attention_error of these, which are in the means and maxima, hold for one choice of A+",    \
      c->below_floor)
static const column curve_columns[] = {ROW(LIST_COLUMN)};

static const output_spec outputs[] = {
    {"curves", "Convergence of the inverse of the bottleneck matrix, iteration by iteration",
     curve_columns, sizeof curve_columns / sizeof *curve_columns},
};

/* ---- Points ---- */

static const usual_input quick_inputs[] = {{"photos", 4}, {"smooth", 2}, {0}};
static const usual_input usual_inputs[] = {{"photos", 100},
                                           {"trained:soft/block0", 50},
                                           {"trained:soft/block3", 50},
                                           {"smooth", 25},
                                           {"iid", 25},
                                           {0}};
static const usual_input full_inputs[] = {{"photos", 300},
                                          {"trained:soft/block0", 300},
                                          {"trained:soft/block3", 300},
                                          {"trained:softpp/block0", 300},
                                          {"trained:softpp/block3", 300},
                                          {"smooth", 300},
                                          {"noisy", 300},
                                          {"iid", 300},
                                          {"iid:0.3", 300},
                                          {"clusters", 300},
                                          {"constant", 10},
                                          {"circulant", 10},
                                          {"duplicates", 300},
                                          {0}};
static const int64_t all_stages[] = {1, 2, 3, 0};
static const stage_defaults defaults[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {quick_inputs, all_stages, true},
    [EFFORT_DEFAULT] = {usual_inputs, all_stages, true},
    [EFFORT_FULL] = {full_inputs, all_stages, true},
};

static const atn_inverse_method default_methods[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_NR,
                                                     ATN_INVERSE_NR_ADAPTIVE, ATN_INVERSE_NR_SOFT,
                                                     ATN_INVERSE_NR_SOFTPP};

typedef struct {
    landmark_sweep draws; /* first: see landmark_sweep_open_stages */
    const program_options *s;
    int method_count;
    atn_inverse_method methods[ATN_INVERSE_COUNT];
    int iterations;
} curves_sweep;

/* A curve is one (series, variant, dtype); p is the first point of the series. */
typedef struct {
    const landmark_point *p;
    atn_inverse_method method;
    atn_dtype dtype;
} curve_key;

static int curve_count(const curves_sweep *w)
{
    return w->draws.series * w->method_count * w->s->dtype_count;
}

static curve_key key_of(const curves_sweep *w, int64_t curve)
{
    int dtypes = w->s->dtype_count;
    const landmark_point *p = w->draws.points;
    while (p->series < curve / dtypes / w->method_count)
        p++;
    return (curve_key){p, w->methods[curve / dtypes % w->method_count],
                       w->s->dtypes[curve % dtypes]};
}

static bool is_newton(atn_inverse_method method)
{
    return method <= ATN_INVERSE_NR_SOFTPP;
}

static bool is_iteration(atn_inverse_method method)
{
    return method < ATN_INVERSE_EIG;
}

static void choose_methods(curves_sweep *w)
{
    w->method_count = sizeof default_methods / sizeof *default_methods;
    memcpy(w->methods, default_methods, sizeof default_methods);
    if (w->s->variants.count == 0)
        return;
    w->method_count = 0;
    for (int v = 0; v < w->s->variants.count; v++)
        for (int i = 0; i < ATN_INVERSE_COUNT; i++)
            if (strcmp(w->s->variants.items[v], atn_inverse_name((atn_inverse_method)i)) == 0)
                w->methods[w->method_count++] = (atn_inverse_method)i;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    curves_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    w->s = s;
    w->iterations = s->iterations >= 0 ? (int)s->iterations : DEFAULT_ITERATIONS;
    choose_methods(w);
    int code = landmark_sweep_open_stages(&w->draws, s, &defaults[s->effort]);
    *points = w->draws.count;
    return code;
}

/* ---- A point ---- */

enum { ITERATE_NORM = ATTENTION_ERROR + 1, VALUES };

/* The exact answers for the iterates of a variant, and memory for the iterates. */
typedef struct {
    bottleneck a;
    double *pinv, *projector;
    attention_error attention;
    double *values[VALUES], *iterates;
    double condition;
    bool below_floor; /* an eigenvalue is too near the cut to decide whether pinv and projector keep
                         it */
} reference;

/* What the library traces. */
static const struct {
    int value;
    atn_metric metric;
} traced[] = {
    {RESIDUAL, ATN_METRIC_RESIDUAL},
    {INVERSE_ERROR, ATN_METRIC_INVERSE_ERROR},
    {RANGE_RESIDUAL, ATN_METRIC_RANGE_RESIDUAL},
    {ITERATE_NORM, ATN_METRIC_NORM},
};
enum { TRACED = sizeof traced / sizeof *traced };

static reference reference_create(atn_dtype dtype, int64_t m, int entries)
{
    reference r = {.a = bottleneck_create(dtype, m)};
    r.pinv = must_allocate((size_t)(m * m), sizeof *r.pinv);
    r.projector = must_allocate((size_t)(m * m), sizeof *r.projector);
    r.attention = attention_error_create(m);
    r.iterates = must_allocate((size_t)entries, (size_t)(m * m) * sizeof *r.iterates);
    for (int i = 0; i < VALUES; i++)
        r.values[i] = must_allocate((size_t)entries, sizeof *r.values[i]);
    return r;
}

static void reference_free(reference *r)
{
    for (int i = 0; i < VALUES; i++)
        free(r->values[i]);
    free(r->iterates);
    attention_error_free(&r->attention);
    free(r->projector);
    free(r->pinv);
    bottleneck_free(&r->a);
}

static int reference_fill(reference *r, const curves_sweep *w, const landmark_point *p,
                          atn_context *context, const double *tokens)
{
    int64_t n = grid_tokens(&p->grid);
    double *cross = must_allocate((size_t)r->a.m, (size_t)n * sizeof *cross);
    int code = bottleneck_from_tokens(&r->a, &w->draws, p, context, tokens, cross);
    double rcond = (double)r->a.m * atn_dtype_roundoff(r->a.dtype);
    if (code == EXIT_PASS || code == EXIT_CHECK)
        code = exit_worst(code, attention_error_set(&r->attention, n, r->a.exact, rcond, cross));
    free(cross);
    if (code != EXIT_PASS && code != EXIT_CHECK)
        return code;
    atn_status status =
        ref_symmetric_pinv(r->a.m, r->a.exact, rcond, r->pinv, r->projector, NULL, NULL);
    if (status < 0) {
        report_error("reference pseudo-inverse: %s", atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    r->below_floor = status == ATN_BELOW_FLOOR;
    r->condition = bottleneck_largest(&r->a) / bottleneck_smallest(&r->a, false);
    return code;
}

static atn_inverse_desc describe_inverse(const curves_sweep *w, atn_inverse_method method,
                                         const bottleneck *a)
{
    atn_inverse_desc desc = atn_inverse_defaults(method);
    desc.iterations = w->iterations;
    if (method == ATN_INVERSE_NR) { /* 0.9 times the published 2/|A|_1^2, which is on the edge of
                                       convergence */
        double norm1 = ref_norm1(a->m, a->exact);
        desc.alpha = w->s->alpha > 0 ? w->s->alpha : 1.8 / (norm1 * norm1);
        if (!a->finite)
            desc.alpha = 1; /* any start will do: no iterate is finite */
    }
    return desc;
}

/* A run of a variant: its X_k and their predicted values. */
typedef struct {
    const reference *r;
    double alpha, ridge; /* rounded to the dtype: the iteration starts from these */
    int length;          /* number of iterates */
    int returned;        /* the iterate that a guard returned to; -1: the next one overflowed */
    double *rounding; /* estimates of the residual's rounding error; null unless Newton-Raphson */
} variant_trace;

/* The measures of X_k. An iterate that overflowed has infinite errors, and one that a guard refused
 * is replaced by the one returned; if A itself is not finite, all measures are NaN. */
static void measure(const variant_trace *t, int k, double measures[MEASURES])
{
    const bottleneck *a = &t->r->a;
    int shown = k < t->length ? k : t->returned;
    for (int i = 0; i < ITERATE_NORM; i++)
        measures[i] = shown >= 0 ? t->r->values[i][shown] : a->finite ? INFINITY : NAN;
    measures[PREDICTED] = measures[ROUNDING_RATIO] = NAN;
    if (!t->rounding || !a->finite)
        return;
    measures[PREDICTED] = ref_filter_residual(a->m, a->lambda, t->alpha, t->ridge, k);
    if (k < t->length)
        measures[ROUNDING_RATIO] = fabs(measures[RESIDUAL] - measures[PREDICTED]) / t->rounding[k];
}

static void add_raw_row(table *raw, int64_t curve, int k, const atn_inverse_info *info,
                        const reference *r, bool predicted, const double *measures)
{
    bool started = info->stop != ATN_STOP_NO_ALPHA;
    table_integer(raw, curve);
    table_integer(raw, k);
    table_boolean(raw, started);
    table_boolean(raw, info->status == ATN_OK);
    table_real(raw, r->condition);
    table_boolean(raw, r->below_floor);
    for (int i = 0; i < MEASURES; i++)
        if (!started || (i >= PREDICTED && !predicted))
            table_missing(raw);
        else
            table_real(raw, measures[i]);
}

/* The raw rows of a variant. */
static void add_variant(variant_trace *t, int iterations, atn_inverse_method method, int64_t curve,
                        const atn_inverse_info *info, table *raw)
{
    const bottleneck *a = &t->r->a;
    bool newton = is_newton(method);
    int last = is_iteration(method) && info->stop != ATN_STOP_NO_ALPHA ? iterations : 0;
    if (newton && t->length > 0) {
        t->rounding = must_allocate((size_t)t->length, sizeof *t->rounding);
        rounding_estimates(a->m, a->lambda, t->alpha, t->ridge, atn_dtype_roundoff(a->dtype),
                           t->length, t->r->values[ITERATE_NORM], t->rounding);
    }
    for (int k = 0; k <= last; k++) {
        double measures[MEASURES];
        measure(t, k, measures);
        add_raw_row(raw, curve, k, info, t->r, newton, measures);
    }
    free(t->rounding);
}

static int run_variant(const curves_sweep *w, int64_t curve, reference *r, atn_context *context,
                       table *raw)
{
    curve_key key = key_of(w, curve);
    atn_inverse_desc desc = describe_inverse(w, key.method, &r->a);
    atn_inverse_info info;
    atn_trace trace = {.capacity = w->iterations + 1,
                       .pinv = r->pinv,
                       .projector = r->projector,
                       .iterates = r->iterates};
    for (int i = 0; i < TRACED; i++)
        trace.values[traced[i].metric] = r->values[traced[i].value];
    int code = bottleneck_invert(&r->a, context, &desc, &info, &trace);
    if (code != EXIT_PASS)
        return code;
    for (int k = 0; k < trace.length; k++)
        r->values[ATTENTION_ERROR][k] =
            attention_error_of(&r->attention, r->iterates + k * r->a.m * r->a.m);
    variant_trace traced_variant = {
        .r = r,
        .alpha = info.alpha,
        .ridge = bottleneck_round(r->a.dtype, desc.ridge),
        .length = trace.length,
        .returned = info.stop == ATN_STOP_DIVERGED ? info.returned : -1,
    };
    add_variant(&traced_variant, w->iterations, key.method, curve, &info, raw);
    return EXIT_PASS;
}

/* Runs all variants on the A that one dtype computes from the tokens. */
static int run_dtype(const curves_sweep *w, const landmark_point *p, int dtype,
                     const double *tokens, atn_context *context, table *raw)
{
    reference r = reference_create(w->s->dtypes[dtype], p->m, w->iterations + 1);
    int checked = reference_fill(&r, w, p, context, tokens);
    int code = checked == EXIT_CHECK ? EXIT_PASS : checked;
    for (int v = 0; v < w->method_count && code == EXIT_PASS; v++) {
        int64_t curve = ((int64_t)p->series * w->method_count + v) * w->s->dtype_count + dtype;
        code = run_variant(w, curve, &r, context, raw);
    }
    reference_free(&r);
    return exit_worst(code, checked);
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const curves_sweep *w = state;
    const landmark_point *p = &w->draws.points[point];
    double *tokens;
    int code = landmark_sweep_tokens(&w->draws, p, &tokens);
    for (int i = 0; i < w->s->dtype_count && (code == EXIT_PASS || code == EXIT_CHECK); i++)
        code = exit_worst(code, run_dtype(w, p, i, tokens, context, raw));
    free(tokens);
    return code;
}

/* ---- The curves ---- */

typedef struct {
    double sum, least, most;
} summary;

/* NaN if either is. */
static double lesser(double a, double b)
{
    return isnan(a) || a < b ? a : b;
}

static double greater(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static void add_to_summary(summary *s, double value, bool first)
{
    s->sum += value;
    s->least = first ? value : lesser(s->least, value);
    s->most = first ? value : greater(s->most, value);
}

typedef struct {
    int64_t samples, on_range;
    summary measures[MEASURES];
} curve_point;

typedef struct {
    curve_point *points; /* iterations + 1 of them */
    double *conditions;
    int64_t samples, without_start, converged, below_floor;
} curve;

static curve *curves_create(const curves_sweep *w)
{
    curve *curves = must_allocate((size_t)curve_count(w), sizeof *curves);
    for (int i = 0; i < curve_count(w); i++) {
        const landmark_point *end = w->draws.points + w->draws.count, *p = key_of(w, i).p, *q = p;
        while (q < end && q->series == p->series)
            q++;
        curves[i].points = must_allocate((size_t)w->iterations + 1, sizeof *curves[i].points);
        curves[i].conditions = must_allocate((size_t)(q - p), sizeof *curves[i].conditions);
    }
    return curves;
}

static void curves_free(const curves_sweep *w, curve *curves)
{
    for (int i = 0; i < curve_count(w); i++) {
        free(curves[i].points);
        free(curves[i].conditions);
    }
    free(curves);
}

static void add_to_curve(curve *c, const table *raw, int64_t row)
{
    int64_t k = table_get_integer(raw, row, RAW_ITERATION);
    bool started = table_get_boolean(raw, row, RAW_STARTED);
    if (k == 0) {
        c->conditions[c->samples++] = table_get_real(raw, row, RAW_CONDITION);
        c->converged += table_get_boolean(raw, row, RAW_CONVERGED);
        c->without_start += !started;
        c->below_floor += table_get_boolean(raw, row, RAW_BELOW_FLOOR);
    }
    if (!started)
        return;
    curve_point *p = &c->points[k];
    for (int i = 0; i < MEASURES; i++)
        add_to_summary(&p->measures[i], table_get_real(raw, row, RAW_MEASURES + i),
                       p->samples == 0);
    p->on_range += table_get_real(raw, row, RAW_MEASURES + RANGE_RESIDUAL) <= range_level;
    p->samples++;
}

static void add_curve_row(table *to, const curves_sweep *w, const curve_key *key, const curve *c,
                          int k, double condition)
{
    const landmark_point *p = key->p;
    const curve_point *at = &c->points[k];
    const summary *s = at->measures;
    bool known = at->samples > 0, predicted = known && is_newton(key->method);
    double samples = (double)at->samples;
    ROW(LIST_PUT)
}

static void fill_table(table *t, const curves_sweep *w, curve *curves)
{
    for (int i = 0; i < curve_count(w); i++) {
        curve_key key = key_of(w, i);
        double condition = median(curves[i].samples, curves[i].conditions);
        int last = is_iteration(key.method) && curves[i].points[0].samples > 0 ? w->iterations : 0;
        for (int k = 0; k <= last; k++)
            add_curve_row(t, w, &key, &curves[i], k, condition);
    }
}

/* ---- Printed summary ---- */

enum { SHOWN = 3 };

static double mean_at(const curve *c, int k, int measure)
{
    return c->points[k].measures[measure].sum / (double)c->points[k].samples;
}

static void print_curve(table *t, const curves_sweep *w, const curve_key *key, const curve *c)
{
    bool known = c->points[0].samples > 0, iterates = is_iteration(key->method);
    const int shown[] = {w->iterations / 4, w->iterations / 2, w->iterations};
    char share[64];
    snprintf(share, sizeof share, "%" PRId64 "/%" PRId64 "%s", c->converged, c->samples,
             known ? "" : " (no start found)");
    table_text(t, input_name(key->p->in));
    table_integer(t, key->p->stage);
    table_text(t, sampling_name(key->p->sampling));
    table_text(t, atn_inverse_name(key->method));
    table_text(t, atn_dtype_name(key->dtype));
    for (int i = 0; i < SHOWN; i++) /* an exact method has one X */
        table_real_if(t, known && (iterates || i + 1 == SHOWN),
                      mean_at(c, iterates ? shown[i] : 0, RESIDUAL));
    table_real_if(t, known, mean_at(c, iterates ? w->iterations : 0, RANGE_RESIDUAL));
    table_real_if(t, known, mean_at(c, iterates ? w->iterations : 0, ATTENTION_ERROR));
    table_text(t, share);
}

static void print_curves(const curves_sweep *w, const curve *curves)
{
    int last = w->iterations;
    char names[SHOWN + 2][32];
    snprintf(names[0], sizeof names[0], "residual k=%d", last / 4);
    snprintf(names[1], sizeof names[1], "k=%d", last / 2);
    snprintf(names[2], sizeof names[2], "k=%d", last);
    snprintf(names[3], sizeof names[3], "on range k=%d", last);
    snprintf(names[4], sizeof names[4], "of S^ k=%d", last);
    const column columns[] = {
        {"input", COLUMN_TEXT, "", ""},     {"stage", COLUMN_INTEGER, "", ""},
        {"sampling", COLUMN_TEXT, "", ""},  {"variant", COLUMN_TEXT, "", ""},
        {"dtype", COLUMN_TEXT, "", ""},     {names[0], COLUMN_REAL, "", ""},
        {names[1], COLUMN_REAL, "", ""},    {names[2], COLUMN_REAL, "", ""},
        {names[3], COLUMN_REAL, "", ""},    {names[4], COLUMN_REAL, "", ""},
        {"converged", COLUMN_TEXT, "", ""},
    };
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < curve_count(w); i++) {
        curve_key key = key_of(w, i);
        print_curve(t, w, &key, &curves[i]);
    }
    report_text("mean |A X A - A|_2 / |A|_2, the papers' metric, |Pi - A X|_2 on A's range, and "
                "|P^T (X - A+) P|_2 / |S^|_2\n");
    table_print(t, table_rows(t), report_stream());
    table_free(t);
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    const curves_sweep *w = state;
    curve *curves = curves_create(w);
    for (int64_t row = 0; row < table_rows(raw); row++)
        add_to_curve(&curves[table_get_integer(raw, row, RAW_CURVE)], raw, row);
    fill_table(tables[0], w, curves);
    print_curves(w, curves);
    curves_free(w, curves);
    return EXIT_PASS;
}

const experiment convergence_curves = {
    .name = "convergence/curves",
    .summary = "residual of the inverse against the iteration, for every published start",
    .source = "SOFT IJCV Fig. 5, NIPS Fig. 4; S10-S14, S18",
    .example = "attnum run convergence/curves --input photos --samples 20 --dtype f32",
    .options = OPTIONS(OPTION_INPUT, OPTION_GRID, OPTION_DTYPE, OPTION_DEVICE, OPTION_SAMPLES,
                       OPTION_ITERATIONS, OPTION_VARIANT, OPTION_ALPHA, OPTION_STAGE, OPTION_SCALE,
                       OPTION_DISTANCE, OPTION_SAMPLING),
    .defaults =
        "Stages 1, 2, 3 (a file or a trained network: its own grid); all possible samplings; 20\n"
        "iterations; nr-paper, nr (alpha = 1.8/|A|_1^2), nr-adaptive, nr-soft, nr-softpp. Every\n"
        "sample is its own batch, so nr-softpp's start is each matrix's own.\n"
        "quick: 4 samples of photos, 2 of smooth. default: 100 of photos, 50 each of the first and the\n"
        "last block of trained:soft, 25 each of smooth and iid. full: 300 each of photos, these and\n"
        "trained:softpp's blocks, smooth, noisy, iid, iid:0.3, clusters, duplicates; 10 each of\n"
        "constant and circulant.\n"
        "A FILE.npy is one stage, 0, and its matrices are its samples:\n"
        "pooled on its grid to 49 landmarks or somewhat more; without a grid, in windows.",
    .outputs = outputs,
    .output_count = 1,
    .plot = "convergence/curves.gp",
    .raw_columns = raw_columns,
    .raw_column_count = RAW_COLUMNS,
    .prepare = prepare,
    .describe = landmark_sweep_describe,
    .replay = landmark_sweep_replay,
    .weight = landmark_sweep_weight,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .release = landmark_sweep_release,
};
