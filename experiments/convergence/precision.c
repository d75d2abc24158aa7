/* SPDX-License-Identifier: BSD-3-Clause */
/* The accuracy that the Newton-Raphson inverse reaches in f64, f32, tf32, bf16 and f16, and when to
 * stop: the best iterate k*, its residual (the floor), where the residual grows again, and the
 * results of a fixed number of steps and of the library's stopping rule.
 *
 * A point is one A in f64 (input, m, seed, sample). A is rounded to each precision; all errors are
 * those for the rounded matrix, computed in f64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <linear_algebra.h>

#include "common/experiment.h"
#include "common/median.h"
#include "common/report.h"
#include "convergence/bottleneck.h"
#include "convergence/narrow.h"
#include "convergence/precision.h"
#include "registry.h"
#include "spectral/matrices.h"

/* FIXED_STEPS: T of the papers and the published code. DIVERGED: a residual of at least this many
 * times its floor counts as diverged. */
enum { FIXED_STEPS = 20, DIVERGED = 10, LINES_SHOWN = 60 };

/* 2/|A|_1^2 is on the boundary of convergence for equal row sums (convergence/initialisation). */
static const double numerator = 1.8;

/* ---- Columns ---- */

/* A raw row: one iterate X_k of a precision_run t. */
#define RAW_ROW(X)                                                                                 \
    X(INTEGER, point, "", "which A", point)                                                        \
    X(INTEGER, precision, "", "which of the run's precisions", index)                              \
    X(INTEGER, iteration, "", "k", k)                                                              \
    X(REAL, residual, "", "|A X_k A - A|_2 / |A|_2", t->residuals[k])                              \
    X(REAL, inverse_error, "", "|X_k - A+|_2 / |A+|_2", t->inverse_errors[k])                      \
    X(BOOLEAN, overflowed, "", "whether X_{k+1} of the last k overflows",                          \
      t->fixed.stop == ATN_STOP_NONFINITE)                                                         \
    X(INTEGER, rank, "", "numerical rank", t->rank)                                                \
    X(INTEGER, negative, "", "negative eigenvalues", negative)                                     \
    X(REAL, condition, "", "max |lambda| / min |lambda|",                                          \
      bottleneck_largest(b) / bottleneck_smallest(b, false))                                       \
    X(BOOLEAN, coincident, "", "whether two rows are equal", t->coincident)                        \
    X(INTEGER, stop, "", "atn_stop of the run that looks for the best", t->best.stop)              \
    X(INTEGER, status, "", "its atn_status", t->best.status)                                       \
    X(INTEGER, steps, "", "its steps", t->best.iterations)                                         \
    X(INTEGER, returned, "", "the k it returns", t->best.returned)
static const column raw_columns[] = {RAW_ROW(LIST_COLUMN)};
typedef struct {
    RAW_ROW(LIST_MEMBER)
} raw_row;

static raw_row get_raw(const table *from, int64_t at)
{
    raw_row r;
    RAW_ROW(LIST_GET)
    return r;
}

/* A published row: one precision_outcome o. */
#define ROW(X)                                                                                     \
    X(TEXT, input, "", "where the tokens come from", input_name(o->point->in))                     \
    X(INTEGER, m, "", "landmarks: A is m x m", o->point->m)                                        \
    X(TEXT, precision, "",                                                                         \
      "arithmetic of the iteration, and what A is rounded to; tf32, bf16 and f16 are "             \
      "emulated: every array is rounded to the type, sums are in f32",                             \
      precision_name(o->p))                                                                        \
    X(REAL, u, "", "its unit roundoff", precision_roundoff(o->p))                                  \
    X(REAL, condition, "", "max |lambda| / min |lambda| of A as rounded", o->raw.condition)        \
    X(INTEGER, rank, "", "eigenvalues of A as rounded with |lambda| > m u |A|_2", o->raw.rank)     \
    X(INTEGER, negative, "", "negative eigenvalues of A as rounded, beyond 10 m 2^-53 |A|_2",      \
      o->raw.negative)                                                                             \
    X(BOOLEAN, coincident, "",                                                                     \
      "whether two landmarks coincide: A has equal rows in f64, and an exact null space",          \
      o->raw.coincident)                                                                           \
    X(INTEGER, best_iteration, "",                                                                 \
      "k*: the k of smallest residual |A X_k A - A|_2 / |A|_2, X_0 = (1.8/|A|_1^2) A", c->best)    \
    X(REAL, floor, "", "that residual", c->floor)                                                  \
    X(INTEGER_IF, divergence, "",                                                                  \
      "the first k past k* with a residual of at least 10 times the floor; missing: none",         \
      c->divergence >= 0, c->divergence)                                                           \
    X(INTEGER_IF, overflow, "", "the first k for which X_k overflows; missing: none", overflowed,  \
      o->count)                                                                                    \
    X(INTEGER, last, "", "the last k looked at, 2 log2(1/u) + 20, or the one that overflows",      \
      o->count - !overflowed)                                                                      \
    X(REAL, law_iteration, "", "log2(1/u) + 3, the hypothesis for k*", c->law_iteration)           \
    X(REAL, law_floor, "", "0.14 sqrt(u), the hypothesis for the floor", c->law_floor)             \
    X(REAL, iteration_minus_law, "", "k* less the hypothesis", iteration_minus_law(o))             \
    X(REAL, floor_over_law, "", "the floor over the hypothesis", floor_over_law(o))                \
    X(REAL, residual_t20, "", "the residual after 20 steps; inf if there is no X_20", c->fixed)    \
    X(REAL, t20_over_floor, "", "the same over the floor: what a fixed T = 20 costs",              \
      over_floor(o, c->fixed))                                                                     \
    X(TEXT, stop, "", "why the library's stopping rule (best) stopped",                            \
      atn_stop_name((atn_stop)o->raw.stop))                                                        \
    X(TEXT, status, "", "what it calls the result, with tolerance sqrt(u)",                        \
      atn_status_name((atn_status)o->raw.status))                                                  \
    X(INTEGER, stop_steps, "", "steps it took", o->raw.steps)                                      \
    X(INTEGER, stop_iteration, "", "the k of the X_k it returned", o->raw.returned)                \
    X(REAL, stop_residual, "", "the residual of that X_k", o->stopped)                             \
    X(REAL, stop_over_floor, "", "the same over the floor", over_floor(o, o->stopped))             \
    X(INTEGER_IF, residual_rise, "",                                                               \
      "the first k whose residual is over that of k - 1 by more than m u; missing: none",          \
      o->residual_rise >= 0, o->residual_rise)                                                     \
    X(INTEGER_IF, inverse_error_rise, "",                                                          \
      "the same for |X_k - A+|_2 / |A+|_2, A+ without |lambda| <= m u |A|_2",                      \
      o->inverse_error_rise >= 0, o->inverse_error_rise)                                           \
    X(INTEGER, sample, "", "which sample of the input, from 0", o->point->sample)                  \
    X(INTEGER, seed, "", "the seed of the input", (int64_t)o->point->seed)
static const column columns[] = {ROW(LIST_COLUMN)};

#define CURVE_ROW(X)                                                                               \
    X(TEXT, input, "", "where the tokens come from", input_name(o->point->in))                     \
    X(INTEGER, m, "", "landmarks", o->point->m)                                                    \
    X(TEXT, precision, "", "arithmetic of the iteration", precision_name(o->p))                    \
    X(INTEGER, iteration, "", "k of the iterate X_k", k)                                           \
    X(REAL, residual, "", "|A X_k A - A|_2 / |A|_2", r.residual)                                   \
    X(REAL, inverse_error, "", "|X_k - A+|_2 / |A+|_2", r.inverse_error)
static const column curve_columns[] = {CURVE_ROW(LIST_COLUMN)};

static const column summary_columns[] = {
    {"precision", COLUMN_TEXT, "", "arithmetic of the iteration; all: of all of them"},
    {"matrices", COLUMN_TEXT, "",
     "deficient: rank < m in this precision; coincident: with two equal rows in f64, whatever "
     "the rank; full: the others; all"},
    {"count", COLUMN_INTEGER, "", "how many, an A in a precision being one"},
    {"singular", COLUMN_INTEGER, "", "how many of them have rank < m"},
    {"iteration_minus_law_median", COLUMN_REAL, "", "median of k* - (log2(1/u) + 3)"},
    {"iteration_minus_law_min", COLUMN_REAL, "", "its minimum"},
    {"iteration_minus_law_max", COLUMN_REAL, "", "its maximum"},
    {"floor_over_law_median", COLUMN_REAL, "", "median of floor / (0.14 sqrt(u))"},
    {"floor_over_law_min", COLUMN_REAL, "", "its minimum"},
    {"floor_over_law_max", COLUMN_REAL, "", "its maximum"},
    {"within_3", COLUMN_REAL, "", "the share of floors within 3 times 0.14 sqrt(u), up or down"},
    {"t20_over_floor_median", COLUMN_REAL, "", "median of residual / floor after 20 steps"},
    {"t20_over_floor_max", COLUMN_REAL, "", "its maximum"},
    {"stop_over_floor_median", COLUMN_REAL, "", "the same where the stopping rule stopped"},
    {"stop_over_floor_max", COLUMN_REAL, "", "its maximum"},
    {"steps_past_best_median", COLUMN_REAL, "",
     "median of the steps it took after the one returned"},
    {"residual_rises", COLUMN_INTEGER, "", "how many have a residual_rise at k <= k*"},
    {"inverse_error_rises", COLUMN_INTEGER, "", "how many have an inverse_error_rise at k <= k*"},
};

#define COUNT(list) (int)(sizeof(list) / sizeof *(list))
static const output_spec outputs[] = {
    {"precision", "Best iterate, residual floor and stopping of the Newton-Raphson inverse",
     columns, COUNT(columns)},
    {"precision_curves", "Residuals iterate by iterate, of the first sample of every input and m",
     curve_columns, COUNT(curve_columns)},
    {"precision_summary", "The hypotheses, a fixed T and the stopping rule over all matrices",
     summary_columns, COUNT(summary_columns)},
};

/* ---- Points ---- */

static bool wants_storage(const program_options *s, atn_storage storage)
{
    if (s->device != ATN_CPU && storage != ATN_STORAGE_NATIVE)
        return false;
    for (int i = 0; i < s->storage_count; i++)
        if (s->storages[i] == storage)
            return true;
    return s->storage_count == 0;
}

/* f64 and f32 are native; the iterates of the others are emulated, on the CPU only. */
static int list_precisions(const program_options *s, precision *list)
{
    int count = 0;
    for (int i = 0; i < PRECISIONS; i++)
        for (int j = 0; j < s->dtype_count; j++)
            if (s->dtypes[j] == precisions[i].dtype && wants_storage(s, precisions[i].storage))
                list[count++] = precisions[i];
    return count;
}

static int64_t usual_samples(const program_options *s, int64_t m)
{
    switch (s->effort) {
    case EFFORT_QUICK:
        return 1;
    case EFFORT_DEFAULT:
        return m > 100 ? 2 : 5;
    default:
        return 20;
    }
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    static const int64_t usual[EFFORT_COUNT][4] = {
        [EFFORT_QUICK] = {49, 0},
        [EFFORT_DEFAULT] = {49, 100, 144, 0},
        [EFFORT_FULL] = {49, 144, 256, 0},
    };
    static const char *const inputs[] = {
        "photos", "trained:soft", "smooth",   "smooth:8",   "noisy",
        "iid",    "iid:0.3",      "clusters", "duplicates", NULL};
    precision unused[PRECISIONS];
    int code =
        landmark_sweep_open_inputs(s, inputs, usual[s->effort], usual_samples, state, points);
    if (code == EXIT_PASS && list_precisions(s, unused) == 0) {
        report_error("--dtype, --storage: no precision is left; narrow storages need dtype f32");
        return EXIT_USAGE;
    }
    return code;
}

/* ---- A point ---- */

static bool has_equal_rows(int64_t m, const double *a)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < i; j++)
            if (memcmp(a + i * m, a + j * m, (size_t)m * sizeof *a) == 0)
                return true;
    return false;
}

/* A in one precision, and its iterates. */
typedef struct {
    bottleneck b;
    double *pinv, *residuals, *inverse_errors;
    int64_t rank;
    int length; /* number of iterates */
    bool coincident;
    atn_inverse_info fixed, best;
} precision_run;

static precision_run trial_create(precision p, int64_t m)
{
    size_t entries = (size_t)precision_last(p) + 1;
    precision_run t = {.b = bottleneck_create(p.dtype, m)};
    t.pinv = must_allocate((size_t)m * (size_t)m, sizeof *t.pinv);
    t.residuals = must_allocate(entries, sizeof *t.residuals);
    t.inverse_errors = must_allocate(entries, sizeof *t.inverse_errors);
    return t;
}

static void trial_free(precision_run *t)
{
    free(t->inverse_errors);
    free(t->residuals);
    free(t->pinv);
    bottleneck_free(&t->b);
}

static int find_inverse(precision_run *t, precision p)
{
    int64_t m = t->b.m;
    double cut = (double)m * precision_roundoff(p);
    atn_status status = ref_symmetric_pinv(m, t->b.exact, cut, t->pinv, NULL, &t->rank, NULL);
    if (status >= 0)
        return EXIT_PASS;
    report_error("reference pseudo-inverse: %s", atn_status_message(status));
    return EXIT_ENVIRONMENT;
}

/* Runs all steps with a trace, then once more with the stopping rule. */
static int iterate(precision_run *t, precision p, atn_context *context)
{
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    desc.numerator = numerator;
    desc.iterations = precision_last(p);
    desc.storage = p.storage;
    atn_trace trace = {
        .capacity = desc.iterations + 1,
        .values =
            {[ATN_METRIC_RESIDUAL] = t->residuals, [ATN_METRIC_INVERSE_ERROR] = t->inverse_errors},
        .pinv = t->pinv};
    int code = bottleneck_invert(&t->b, context, &desc, &t->fixed, &trace);
    t->length = trace.length;
    desc.stopping = ATN_STOPPING_BEST;
    return code == EXIT_PASS ? bottleneck_invert(&t->b, context, &desc, &t->best, NULL) : code;
}

int64_t precision_count_negative(int64_t m, const double *lambda)
{
    double norm = 0;
    int64_t negative = 0;
    for (int64_t i = 0; i < m; i++)
        norm = fmax(norm, fabs(lambda[i]));
    for (int64_t i = 0; i < m; i++)
        negative += lambda[i] < -10 * (double)m * atn_dtype_roundoff(ATN_F64) * norm;
    return negative;
}

static void put_iterates(table *to, int64_t point, int index, const precision_run *t)
{
    const bottleneck *b = &t->b;
    int64_t negative = precision_count_negative(b->m, b->lambda);
    for (int k = 0; k < t->length; k++) {
        RAW_ROW(LIST_PUT)
    }
}

static int run_precision(int64_t point, int index, precision p, int64_t m, const double *a,
                         atn_context *context, table *raw)
{
    precision_run t = trial_create(p, m);
    double *rounded = must_allocate((size_t)m, (size_t)m * sizeof *rounded);
    t.coincident = has_equal_rows(m, a);
    precision_round(p, m * m, a, rounded);
    int checked = bottleneck_from_matrix(&t.b, rounded);
    int code = checked == EXIT_CHECK ? EXIT_PASS : checked;
    if (code == EXIT_PASS)
        code = find_inverse(&t, p);
    if (code == EXIT_PASS)
        code = iterate(&t, p, context);
    if (code == EXIT_PASS)
        put_iterates(raw, point, index, &t);
    free(rounded);
    trial_free(&t);
    return exit_worst(code, checked);
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const landmark_sweep *sweep = state;
    const landmark_point *p = &sweep->points[point];
    precision list[PRECISIONS];
    int count = list_precisions(sweep->s, list);
    double *a;
    int code = landmark_sweep_matrix(sweep, p, context, &a);
    for (int i = 0; i < count && (code == EXIT_PASS || code == EXIT_CHECK); i++)
        code = exit_worst(code, run_precision(point, i, list[i], p->m, a, context, raw));
    free(a);
    return code;
}

/* ---- Floor and growth of a curve ---- */

precision_curve precision_judge(int count, const double *residuals, double roundoff)
{
    precision_curve c = {.best = 0, .divergence = -1};
    for (int k = 1; k < count; k++)
        if (residuals[k] < residuals[c.best])
            c.best = k;
    c.floor = residuals[c.best];
    for (int k = c.best + 1; k < count && c.divergence < 0; k++)
        if (!(residuals[k] < DIVERGED * c.floor))
            c.divergence = k;
    c.law_iteration = -log2(roundoff) + 3;
    c.law_floor = 0.14 * sqrt(roundoff);
    c.fixed = count > FIXED_STEPS ? residuals[FIXED_STEPS] : INFINITY;
    return c;
}

int precision_first_rise(int count, const double *values, double allowance)
{
    for (int k = 1; k < count; k++)
        if (!(values[k] <= values[k - 1] + allowance))
            return k;
    return -1;
}

/* An A in one precision: its rows of the raw table, and a summary of them. */
typedef struct {
    const landmark_point *point;
    precision p;
    const table *rows;
    int64_t first; /* index of the first of them */
    int count;
    raw_row raw; /* the first row */
    precision_curve curve;
    int residual_rise, inverse_error_rise;
    double stopped; /* the residual of the X_k that the stopping rule returned */
} precision_outcome;

static precision_outcome read_outcome(const landmark_sweep *sweep, const table *raw, int64_t first)
{
    precision list[PRECISIONS];
    list_precisions(sweep->s, list);
    precision_outcome o = {.rows = raw, .first = first, .raw = get_raw(raw, first)};
    o.point = &sweep->points[o.raw.point];
    o.p = list[o.raw.precision];
    while (first + o.count < table_rows(raw) && get_raw(raw, first + o.count).iteration == o.count)
        o.count++;
    double *residuals = must_allocate((size_t)o.count, sizeof *residuals);
    double *errors = must_allocate((size_t)o.count, sizeof *errors);
    for (int k = 0; k < o.count; k++) {
        raw_row r = get_raw(raw, first + k);
        residuals[k] = r.residual;
        errors[k] = r.inverse_error;
    }
    double u = precision_roundoff(o.p), allowance = (double)o.point->m * u;
    o.curve = precision_judge(o.count, residuals, u);
    o.residual_rise = precision_first_rise(o.count, residuals, allowance);
    o.inverse_error_rise = precision_first_rise(o.count, errors, allowance);
    o.stopped = residuals[o.raw.returned];
    free(errors);
    free(residuals);
    return o;
}

static bool is_singular(const precision_outcome *o)
{
    return o->raw.rank < o->point->m;
}

static double over_floor(const precision_outcome *o, double residual)
{
    return residual == o->curve.floor ? 1 : residual / o->curve.floor;
}

static double iteration_minus_law(const precision_outcome *o)
{
    return o->curve.best - o->curve.law_iteration;
}

static double floor_over_law(const precision_outcome *o)
{
    return o->curve.floor / o->curve.law_floor;
}

static void put_outcome(table *to, const precision_outcome *o)
{
    const precision_curve *c = &o->curve;
    bool overflowed = o->raw.overflowed;
    ROW(LIST_PUT)
}

static void put_curve(table *to, const precision_outcome *o)
{
    for (int k = 0; k < o->count; k++) {
        raw_row r = get_raw(o->rows, o->first + k);
        CURVE_ROW(LIST_PUT)
    }
}

/* ---- The summary ---- */

typedef enum { DEFICIENT, COINCIDENT, FULL, ALL, GROUP_COUNT } group;
static const char *const group_names[GROUP_COUNT] = {"deficient", "coincident", "full", "all"};

static bool in_group(const precision_outcome *o, group g)
{
    if (g == ALL)
        return true;
    if (o->raw.coincident)
        return g == COINCIDENT;
    return g == (is_singular(o) ? DEFICIENT : FULL);
}

static double fixed_over_floor(const precision_outcome *o)
{
    return over_floor(o, o->curve.fixed);
}

static double stopped_over_floor(const precision_outcome *o)
{
    return over_floor(o, o->stopped);
}

static double steps_past_best(const precision_outcome *o)
{
    return (double)(o->raw.steps - o->raw.returned);
}

/* The median and, if wanted, minimum and maximum of a measure over a group. */
static void put_measure(table *t, int64_t count, const precision_outcome *const *list,
                        double (*measure)(const precision_outcome *), bool least, bool most)
{
    double *values = must_allocate((size_t)count, sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = measure(list[i]);
    table_real(t, median(count, values)); /* sorts */
    if (least)
        table_real(t, values[0]);
    if (most)
        table_real(t, values[count - 1]);
    free(values);
}

static int64_t count_those(int64_t count, const precision_outcome *const *list,
                           bool (*is)(const precision_outcome *))
{
    int64_t number = 0;
    for (int64_t i = 0; i < count; i++)
        number += is(list[i]);
    return number;
}

static bool is_within_3(const precision_outcome *o)
{
    return floor_over_law(o) <= 3 && floor_over_law(o) >= 1.0 / 3;
}

static bool residual_rises(const precision_outcome *o)
{
    return o->residual_rise > 0 && o->residual_rise <= o->curve.best;
}

static bool inverse_error_rises(const precision_outcome *o)
{
    return o->inverse_error_rise > 0 && o->inverse_error_rise <= o->curve.best;
}

static void put_summary(table *t, const char *name, group g, int64_t count,
                        const precision_outcome *const *list)
{
    table_text(t, name);
    table_text(t, group_names[g]);
    table_integer(t, count);
    table_integer(t, count_those(count, list, is_singular));
    put_measure(t, count, list, iteration_minus_law, true, true);
    put_measure(t, count, list, floor_over_law, true, true);
    table_real(t, (double)count_those(count, list, is_within_3) / (double)count);
    put_measure(t, count, list, fixed_over_floor, false, true);
    put_measure(t, count, list, stopped_over_floor, false, true);
    put_measure(t, count, list, steps_past_best, false, false);
    table_integer(t, count_those(count, list, residual_rises));
    table_integer(t, count_those(count, list, inverse_error_rises));
}

/* Summarises each precision, then all of them together (p == listed). */
static void summarise(table *t, const program_options *s, int64_t count,
                      const precision_outcome *outcomes)
{
    precision list[PRECISIONS];
    int listed = list_precisions(s, list);
    const precision_outcome **chosen = must_allocate((size_t)count + 1, sizeof *chosen);
    for (int p = 0; p <= listed; p++)
        for (int g = 0; g < GROUP_COUNT; g++) {
            int64_t number = 0;
            for (int64_t i = 0; i < count; i++)
                if ((p == listed || memcmp(&outcomes[i].p, &list[p], sizeof *list) == 0) &&
                    in_group(&outcomes[i], (group)g))
                    chosen[number++] = &outcomes[i];
            if (number > 0)
                put_summary(t, p == listed ? "all" : precision_name(list[p]), (group)g, number,
                            chosen);
        }
    free(chosen);
}

static void print_summary(const table *t)
{
    static const char *const shown[] = {"precision",
                                        "matrices",
                                        "count",
                                        "iteration_minus_law_median=k* - law",
                                        "iteration_minus_law_min=min",
                                        "iteration_minus_law_max=max",
                                        "floor_over_law_median=floor / law",
                                        "floor_over_law_min=min",
                                        "floor_over_law_max=max",
                                        "t20_over_floor_median=T=20 / floor",
                                        "t20_over_floor_max=max",
                                        "stop_over_floor_max=stopped / floor: max"};
    report_text(
        "medians; law: k* = log2(1/u) + 3, floor = 0.14 sqrt(u), for numerically rank-deficient "
        "A\n");
    table_print_columns(t, shown, COUNT(shown), LINES_SHOWN, report_stream());
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    const landmark_sweep *sweep = state;
    precision_outcome *outcomes = must_allocate((size_t)table_rows(raw) + 1, sizeof *outcomes);
    int64_t count = 0;
    for (int64_t row = 0; row < table_rows(raw); row += outcomes[count - 1].count) {
        precision_outcome *o = &outcomes[count++];
        *o = read_outcome(sweep, raw, row);
        put_outcome(tables[0], o);
        if (o->point->sample == 0 && o->point->seed == (uint64_t)s->seeds.items[0])
            put_curve(tables[1], o);
    }
    summarise(tables[2], s, count, outcomes);
    print_summary(tables[2]);
    free(outcomes);
    return EXIT_PASS;
}

const experiment convergence_precision = {
    .name = "convergence/precision",
    .summary = "best iterate, residual floor and stopping of the iteration in five precisions",
    .source = "SOFT IJCV Prop. 2, section 3.2; S13, S15",
    .example = "attnum run convergence/precision --input smooth,photos --m 49,144 --dtype f32",
    .options = OPTIONS(OPTION_INPUT, OPTION_GRID, OPTION_DTYPE, OPTION_DEVICE, OPTION_STORAGE,
                       OPTION_SAMPLES, OPTION_M, OPTION_SCALE, OPTION_DISTANCE),
    .defaults = "f64, and f32 with all storages (native is f32 itself); --storage bf16 --dtype f32 "
                "is bf16 alone.\n2 log2(1/u) + 20 steps from 1.8/|A|_1^2 of nine inputs. quick: "
                "1 sample of m = 49.\ndefault: 5 of m = 49, 100, 2 of m = 144. full: 20 of m = 49, "
                "144, 256.",
    .outputs = outputs,
    .output_count = COUNT(outputs),
    .raw_columns = raw_columns,
    .raw_column_count = COUNT(raw_columns),
    .plot = "convergence/precision.gp",
    .prepare = prepare,
    .describe = landmark_sweep_describe,
    .replay = landmark_sweep_replay,
    .weight = landmark_sweep_weight,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .release = landmark_sweep_release,
};
