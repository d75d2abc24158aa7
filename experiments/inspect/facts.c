/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/median.h"
#include "common/report.h"

const double inspect_targets[TARGETS] = {1e-3, 1e-6};
const double inspect_safe_residual = 0.01;

enum { POOL = 0, RANDOM = 2, FIRST = 3, KMEANS = 5, LEVERAGE = 6, RPCHOLESKY = 7, GREEDY = 8 };
const inspect_sampling inspect_samplings[SAMPLINGS] = {
    {"pool", POOL, false},
    {"window", POOL, true},
    {"random", RANDOM, false},
    {"first", FIRST, false},
    {"kmeans", KMEANS, false},
    {"leverage", LEVERAGE, false},
    {"rpcholesky", RPCHOLESKY, false},
    {"greedy", GREEDY, false},
    [SAMPLING_GIVEN] = {"given", -1, false},
};

/* ---- Fields ---- */

#define AS_MATRIX(name, member, type, text)    {name, type, offsetof(inspection, member)},
#define AS_INVERSE(name, member, type, text)   {name, type, offsetof(inverse_facts, member)},
#define AS_PRECISION(name, member, type, text) {name, type, offsetof(precision_facts, member)},
static const fact_field matrix_fields[] = {MATRIX_FACTS(AS_MATRIX){0}};
static const fact_field inverse_fields[] = {INVERSE_FACTS(AS_INVERSE){0}};
static const fact_field precision_fields[] = {PRECISION_FACTS(AS_PRECISION){0}};

const fact_field *const fact_fields[FACTS_COUNT] = {
    [FACTS_MATRIX] = matrix_fields,
    [FACTS_INVERSE] = inverse_fields,
    [FACTS_PRECISION] = precision_fields,
};

static double *place_of(const fact_field *field, void *facts)
{
    return (double *)((char *)facts + field->offset);
}

double fact_get(const fact_field *field, const void *facts)
{
    return *(const double *)((const char *)facts + field->offset);
}

static void forget(const fact_field *fields, void *facts)
{
    for (; fields->name; fields++)
        *place_of(fields, facts) = NAN;
}

inspection *inspection_create(int64_t m)
{
    inspection *i = must_allocate(1, sizeof *i);
    forget(matrix_fields, i);
    for (int k = 0; k < ATN_INVERSE_COUNT; k++)
        forget(inverse_fields, &i->inverses[k]);
    for (int k = 0; k < PRECISIONS; k++)
        forget(precision_fields, &i->precisions[k]);
    i->m = (double)m;
    i->lambda = must_allocate((size_t)m, sizeof *i->lambda);
    return i;
}

void inspection_free(inspection *i)
{
    if (i)
        free(i->lambda);
    free(i);
}

/* ---- Raw rows ---- */

#define RAW_ROW(X)                                                                                 \
    X(INTEGER, batch, "", "which batch entry", (int64_t)i->batch)                                  \
    X(INTEGER, head, "", "which head of it", (int64_t)i->head)                                     \
    X(INTEGER, m, "", "landmarks", (int64_t)i->m)                                                  \
    X(INTEGER, sampling, "", "which of inspect_samplings", i->sampling)                            \
    X(BOOLEAN, main, "", "whether it is the first that applies", i->main)                          \
    X(INTEGER, part, "", "a fact_group, or one of raw_part", part)                                 \
    X(INTEGER, which, "", "which inverse or precision", which)                                     \
    X(INTEGER, index, "", "which field, eigenvalue or step", index)                                \
    X(REAL, value, "", "the number", value)
const column inspect_raw_columns[INSPECT_RAW_COLUMNS] = {RAW_ROW(LIST_COLUMN)};

enum raw_part { PART_SPECTRUM = FACTS_COUNT, PART_CURVE };

static void put(const inspection *i, int part, int which, int64_t index, double value, table *to)
{
    RAW_ROW(LIST_PUT)
}

typedef struct {
    RAW_ROW(LIST_MEMBER)
} raw_row;

static raw_row read_row(const table *from, int64_t at)
{
    raw_row r;
    RAW_ROW(LIST_GET)
    return r;
}

static void put_fields(const inspection *i, int group, int which, const void *facts, table *raw)
{
    const fact_field *fields = fact_fields[group];
    for (int index = 0; fields[index].name; index++)
        put(i, group, which, index, fact_get(&fields[index], facts), raw);
}

void inspection_write(const inspection *i, table *raw)
{
    put_fields(i, FACTS_MATRIX, 0, i, raw);
    for (int k = 0; k < ATN_INVERSE_COUNT; k++)
        if (i->inverses[k].published_steps > 0)
            put_fields(i, FACTS_INVERSE, k, &i->inverses[k], raw);
    for (int k = 0; k < PRECISIONS; k++)
        if (!isnan(i->precisions[k].rank))
            put_fields(i, FACTS_PRECISION, k, &i->precisions[k], raw);
    for (int64_t j = 0; j < (int64_t)i->m; j++)
        put(i, PART_SPECTRUM, 0, j, i->lambda[j], raw);
    for (int k = 0; k < ATN_INVERSE_COUNT; k++)
        for (int j = 0; j < i->inverses[k].length; j++)
            put(i, PART_CURVE, k, j, i->inverses[k].curve[j], raw);
}

/* The struct that contains the fields of a part. */
static void *facts_of(inspection *i, int part, int64_t which)
{
    switch (part) {
    case FACTS_INVERSE:
        return &i->inverses[which];
    case FACTS_PRECISION:
        return &i->precisions[which];
    default:
        return i;
    }
}

static void add_value(inspection *i, const raw_row *r)
{
    if (r->part == PART_SPECTRUM)
        i->lambda[r->index] = r->value;
    else if (r->part == PART_CURVE) {
        i->inverses[r->which].curve[r->index] = r->value;
        i->inverses[r->which].length = (int)r->index + 1;
    } else
        *place_of(&fact_fields[r->part][r->index], facts_of(i, (int)r->part, r->which)) = r->value;
}

static bool belongs(const inspection *i, const raw_row *r)
{
    return i->batch == (double)r->batch && i->head == (double)r->head && i->m == (double)r->m &&
           i->sampling == r->sampling;
}

inspection_list inspections_read(const table *raw)
{
    inspection_list list = {0};
    int64_t capacity = 0;
    for (int64_t row = 0; row < table_rows(raw); row++) {
        raw_row r = read_row(raw, row);
        if (list.count == 0 || !belongs(list.items[list.count - 1], &r)) {
            if (list.count == capacity) {
                capacity = capacity ? 2 * capacity : 64;
                list.items = must_resize(list.items, (size_t)capacity, sizeof(inspection *));
            }
            inspection *i = inspection_create(r.m);
            i->batch = (double)r.batch;
            i->head = (double)r.head;
            i->sampling = (int)r.sampling;
            i->main = r.main;
            list.items[list.count++] = i;
        }
        add_value(list.items[list.count - 1], &r);
    }
    return list;
}

void inspections_free(inspection_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        inspection_free(list->items[i]);
    free(list->items);
    *list = (inspection_list){0};
}

/* ---- Searching ---- */

int64_t inspections_find(const inspection_list *list, int64_t start, double m, int sampling)
{
    for (int64_t i = start; i < list->count; i++) {
        const inspection *item = list->items[i];
        if (item->m == m && (sampling < 0 ? item->main : item->sampling == sampling))
            return i;
    }
    return -1;
}

int inspections_landmarks(const inspection_list *list, double *m)
{
    int count = 0;
    for (int64_t i = 0; i < list->count; i++) {
        bool known = false;
        for (int j = 0; j < count && !known; j++)
            known = m[j] == list->items[i]->m;
        if (!known)
            m[count++] = list->items[i]->m;
    }
    sort_numbers(count, m);
    return count;
}

bool inspection_same_head(const inspection *a, const inspection *b)
{
    return a->batch == b->batch && a->head == b->head;
}

int64_t inspections_heads(const inspection_list *list)
{
    int64_t heads = 0;
    for (int64_t i = 0; i < list->count; i++)
        heads += i == 0 || !inspection_same_head(list->items[i], list->items[i - 1]);
    return heads;
}

double inspections_usual(const inspection_list *list)
{
    const double usual = 49;
    double nearest = NAN;
    for (int64_t i = 0; i < list->count; i++)
        if (!(fabs(nearest - usual) <= fabs(list->items[i]->m - usual)))
            nearest = list->items[i]->m;
    return nearest;
}
