/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/summary.h"

#include <math.h>
#include <stdlib.h>

#include "common/median.h"
#include "common/report.h"

/* The values of a column over heads. */
typedef struct {
    int64_t count;
    double *values;
} column_values;

static void add_spread(table *t, column_values *v, double place)
{
    if (v->count == 0) {
        table_missing(t);
        return;
    }
    double middle = median(v->count, v->values); /* sorts */
    table_real(t, place == 0 ? v->values[0] : place == 1 ? v->values[v->count - 1] : middle);
}

/* X(column, member, place): a quantile of a member over heads; place 0 is the smallest, 1/2 the
 * median, 1 the largest value. */
#define QUANTILES(X)                                                                               \
    X("kappa: median", kappa, 0.5)                                                                 \
    X("most", kappa, 1)                                                                            \
    X("rank f64: least", rank_f64, 0)                                                              \
    X("f32", rank_f32, 0)                                                                          \
    X("bf16", rank_bf16, 0)                                                                        \
    X("inverted by 20: least", inverted, 0)                                                        \
    X("trace error: median", trace_error, 0.5)                                                     \
    X("best", best_trace_error, 0.5)                                                               \
    X("|S^|: most", soft_norm, 1)                                                                  \
    X("normalised", softpp_norm, 1)
#define AS_QUANTILE(column, member, place) {offsetof(inspection, member), place},
#define AS_COLUMN(name, ...)               {name, COLUMN_REAL, "", ""},

static const struct {
    size_t offset;
    double place;
} shown[] = {QUANTILES(AS_QUANTILE)};
enum { SHOWN = sizeof shown / sizeof *shown };

static const column columns[] = {
    {"m", COLUMN_INTEGER, "", ""}, {"sampling", COLUMN_TEXT, "", ""}, QUANTILES(AS_COLUMN)};

static void add_row(const inspection_list *list, double m, int sampling, table *t)
{
    double *values = must_allocate((size_t)list->count, sizeof *values);
    table_integer(t, (int64_t)m);
    table_text(t, inspect_samplings[sampling].name);
    for (int j = 0; j < SHOWN; j++) {
        column_values v = {0, values};
        for (int64_t i = inspections_find(list, 0, m, sampling); i >= 0;
             i = inspections_find(list, i + 1, m, sampling)) {
            double value = *(const double *)((const char *)list->items[i] + shown[j].offset);
            if (!isnan(value))
                values[v.count++] = value;
        }
        add_spread(t, &v, shown[j].place);
    }
    free(values);
}

table *inspect_summary(const inspection_list *list)
{
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    double *m = must_allocate((size_t)list->count + 1, sizeof *m);
    int count = inspections_landmarks(list, m);
    for (int i = 0; i < count; i++)
        for (int sampling = 0; sampling < SAMPLINGS; sampling++)
            if (inspections_find(list, 0, m[i], sampling) >= 0)
                add_row(list, m[i], sampling, t);
    free(m);
    return t;
}

/* ---- The worst head ---- */

#define INVERSE_NUMBERS(X)                                                                         \
    X("T", published_steps)                                                                        \
    X("residual after T", residual)                                                                \
    X("predicted", predicted)                                                                      \
    X("steps to 1e-3", steps[0])                                                                   \
    X("predicted", steps_predicted[0])                                                             \
    X("products", products[0])                                                                     \
    X("steps to 1e-6", steps[1])                                                                   \
    X("predicted", steps_predicted[1])                                                             \
    X("products", products[1])
#define AS_INVERSE(name, member) offsetof(inverse_facts, member),
static const column inverse_columns[] = {
    {"m", COLUMN_INTEGER, "", ""}, {"inverse", COLUMN_TEXT, "", ""}, INVERSE_NUMBERS(AS_COLUMN)};
static const size_t inverse_offsets[] = {INVERSE_NUMBERS(AS_INVERSE)};

/* The largest value over the main items of m of a number at an offset into the facts; -1 steps
 * count as infinitely many. */
static double most_of(const inspection_list *list, double m, size_t start, size_t offset)
{
    double most = NAN;
    for (int64_t i = inspections_find(list, 0, m, -1); i >= 0;
         i = inspections_find(list, i + 1, m, -1)) {
        double value = *(const double *)((const char *)list->items[i] + start + offset);
        value = value < 0 ? INFINITY : value;
        most = value > most || isnan(most) ? value : most;
    }
    return most;
}

static void add_worst(const inspection_list *list, double m, const char *name, size_t start,
                      const size_t *offsets, int count, table *t)
{
    table_integer(t, (int64_t)m);
    table_text(t, name);
    for (int j = 0; j < count; j++) {
        double value = most_of(list, m, start, offsets[j]);
        table_real_if(t, !isnan(value), value);
    }
}

table *inspect_inverse_summary(const inspection_list *list)
{
    table *t = table_create(inverse_columns, sizeof inverse_columns / sizeof *inverse_columns);
    double *m = must_allocate((size_t)list->count + 1, sizeof *m);
    int count = inspections_landmarks(list, m);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < ATN_INVERSE_COUNT; k++) {
            size_t start = offsetof(inspection, inverses) + (size_t)k * sizeof(inverse_facts);
            if (!isnan(most_of(list, m[i], start, inverse_offsets[0])))
                add_worst(list, m[i], atn_inverse_name((atn_inverse_method)k), start,
                          inverse_offsets, sizeof inverse_offsets / sizeof *inverse_offsets, t);
        }
    free(m);
    return t;
}

#define PRECISION_NUMBERS(X)                                                                       \
    X("best residual", best)                                                                       \
    X("after steps", best_steps)                                                                   \
    X("residual after 20", fixed)
#define AS_PRECISION(name, member) offsetof(precision_facts, member),
static const column precision_columns[] = {{"m", COLUMN_INTEGER, "", ""},
                                           {"precision", COLUMN_TEXT, "", ""},
                                           PRECISION_NUMBERS(AS_COLUMN)};
static const size_t precision_offsets[] = {PRECISION_NUMBERS(AS_PRECISION)};

table *inspect_precision_summary(const inspection_list *list)
{
    table *t =
        table_create(precision_columns, sizeof precision_columns / sizeof *precision_columns);
    double *m = must_allocate((size_t)list->count + 1, sizeof *m);
    int count = inspections_landmarks(list, m);
    for (int i = 0; i < count; i++)
        for (int p = 0; p < PRECISIONS; p++) {
            size_t start = offsetof(inspection, precisions) + (size_t)p * sizeof(precision_facts);
            add_worst(list, m[i], precision_name(precisions[p]), start, precision_offsets,
                      sizeof precision_offsets / sizeof *precision_offsets, t);
        }
    free(m);
    return t;
}
