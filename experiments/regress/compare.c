/* SPDX-License-Identifier: BSD-3-Clause */
#include "regress/compare.h"

#include <assert.h>
#include <attnum/attnum.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "regress/rows.h"

#define SECOND(code, name, fails) name,
#define THIRD(code, name, fails)  fails,
static const char *const names[] = {COMPARISON_LIST(SECOND)};
static const bool failures[] = {COMPARISON_LIST(THIRD)};
#undef SECOND
#undef THIRD

const char *comparison_name(comparison c)
{
    return names[c];
}

bool comparison_fails(comparison c)
{
    return failures[c];
}

comparison compared_row(const table *compared, int64_t row)
{
    const char *name = table_get_text(compared, row, ROW_COMPARISON);
    int c = 0;
    while (c < COMPARISON_COUNT && strcmp(names[c], name) != 0)
        c++;
    assert(c < COMPARISON_COUNT);
    return (comparison)c;
}

void compare_free(compare_outcome *o)
{
    free(o->growth);
    *o = (compare_outcome){0};
}

bool compare_failed(const compare_outcome *o)
{
    bool failed = o->growths > 0;
    for (int c = 0; c < COMPARISON_COUNT; c++)
        failed |= failures[c] && o->count[c] > 0;
    return failed;
}

/* The device with whose kept rows a device is compared. */
static const char *basis_of(const table *kept, const char *device)
{
    return rows_have(kept, device) ? device : atn_device_name(ATN_CPU);
}

/* Compares a row with the kept one. *loss is set if both have an error, else left alone. */
static comparison compare_errors(const table *now, int64_t row, const table *kept, int64_t kept_row,
                                 double *loss)
{
    bool judged = !table_is_missing(now, row, ROW_ERROR);
    if (table_is_missing(kept, kept_row, ROW_ERROR))
        return judged ? COMPARED_NEW : COMPARED_SKIPPED;
    if (!judged)
        return COMPARED_GONE;
    double error = table_get_real(now, row, ROW_ERROR), gain;
    double before = table_get_real(kept, kept_row, ROW_ERROR);
    if (ref_judge_regression(error, before, loss) == REF_FAIL)
        return COMPARED_LOST;
    bool better = ref_judge_regression(before, error, &gain) == REF_FAIL;
    return better ? COMPARED_BETTER : COMPARED_SAME;
}

/* Compares a row. A FAIL in f32 or f64 always fails; in a narrow type it may be a result, and is
 * accepted if the baseline has it, too. kept_row: -1 if there is none. */
static comparison compare_row(const table *now, int64_t row, const table *kept, int64_t kept_row,
                              double *loss)
{
    bool failed = rows_verdict(now, row) == REF_FAIL;
    bool known = kept_row >= 0 && rows_verdict(kept, kept_row) == REF_FAIL;
    comparison c = kept_row < 0 ? COMPARED_NEW : compare_errors(now, row, kept, kept_row, loss);
    return failed && (rows_native(now, row) || !known) ? COMPARED_FAIL : c;
}

static void put_kept(const table *kept, int64_t row, table *into)
{
    static const char *const of_kept[] = {"device", "roundings", "digits", "verdict"};
    for (size_t i = 0; i < sizeof of_kept / sizeof *of_kept; i++)
        if (row >= 0)
            table_copy(into, kept, row, of_kept[i]);
        else
            table_missing(into);
}

static void put_now(const table *now, int64_t row, const table *kept, int64_t kept_row, table *into,
                    compare_outcome *o)
{
    double loss = -1;
    comparison c = compare_row(now, row, kept, kept_row, &loss);
    table_copy_row(into, now, row);
    put_kept(kept, kept_row, into);
    table_real_if(into, !(loss < 0), loss);
    table_text(into, names[c]);
    o->count[c]++;
}

static void put_gone(const table *kept, int64_t row, table *into, compare_outcome *o)
{
    for (int col = 0; col < ROW_COLUMNS; col++)
        if (col < ROW_SAMPLES)
            table_copy(into, kept, row, regress_columns[col].name);
        else
            table_missing(into);
    put_kept(kept, row, into);
    table_missing(into);
    table_text(into, names[COMPARED_GONE]);
    o->count[COMPARED_GONE]++;
}

/* ---- Marginal rows ---- */

static bool is_marginal(const table *compared, int64_t row, int col)
{
    return strcmp(table_get_text(compared, row, col), ref_verdict_name(REF_MARGINAL)) == 0;
}

/* Identifies an operator in a type on a device. */
static char *group_of(const table *t, int64_t row)
{
    return must_format("%s\n%s\n%s", table_get_text(t, row, ROW_OPERATOR),
                       table_get_text(t, row, ROW_DTYPE), table_get_text(t, row, ROW_DEVICE));
}

/* Counts a row if it is on both sides. */
static void count_marginal(const table *t, int64_t row, marginal_growth *g)
{
    if (table_is_missing(t, row, ROW_KEPT_DEVICE) || table_is_missing(t, row, ROW_VERDICT))
        return;
    bool now = is_marginal(t, row, ROW_VERDICT);
    if (now && g->now == 0)
        g->row = row;
    g->now += now;
    g->kept += is_marginal(t, row, ROW_KEPT_VERDICT);
}

static int compare_growth(const void *a, const void *b)
{
    const marginal_growth *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

static void count_marginals(const table *t, compare_outcome *o)
{
    row_index index = rows_index_by(t, group_of);
    o->growth = must_allocate((size_t)index.count, sizeof *o->growth);
    for (int64_t i = 0, next; i < index.count; i = next) {
        marginal_growth g = {.row = -1};
        for (next = i; next < index.count && strcmp(index.items[i].key, index.items[next].key) == 0;
             next++)
            count_marginal(t, index.items[next].row, &g);
        if (g.now > g.kept)
            o->growth[o->growths++] = g;
    }
    qsort(o->growth, (size_t)o->growths, sizeof *o->growth, compare_growth);
    rows_index_free(&index);
}

/* ---- All rows ---- */

static void put_all_gone(const table *now, const table *kept, const bool *met, table *into,
                         compare_outcome *o)
{
    bool used[2] = {false, false}; /* whether some row is compared with the device */
    for (int device = ATN_CPU; device <= ATN_CUDA; device++)
        if (rows_have(now, atn_device_name((atn_device)device))) {
            const char *basis = basis_of(kept, atn_device_name((atn_device)device));
            used[strcmp(basis, atn_device_name(ATN_CUDA)) == 0] = true;
        }
    for (int64_t row = 0; row < table_rows(kept); row++) {
        bool cuda = strcmp(table_get_text(kept, row, ROW_DEVICE), atn_device_name(ATN_CUDA)) == 0;
        if (!met[row] && used[cuda])
            put_gone(kept, row, into, o);
    }
}

void compare_rows(const table *now, const table *kept, bool full, table *into, compare_outcome *o)
{
    row_index index = rows_index(kept);
    bool *met = must_allocate((size_t)table_rows(kept), sizeof *met);
    const char *bases[] = {[ATN_CPU] = basis_of(kept, atn_device_name(ATN_CPU)),
                           [ATN_CUDA] = basis_of(kept, atn_device_name(ATN_CUDA))};
    *o = (compare_outcome){0};
    for (int64_t row = 0; row < table_rows(now); row++) {
        const char *device = table_get_text(now, row, ROW_DEVICE);
        const char *basis = bases[strcmp(device, atn_device_name(ATN_CUDA)) == 0];
        o->borrowed |= strcmp(basis, device) != 0;
        int64_t found = rows_find(&index, now, row, basis);
        if (found >= 0)
            met[found] = true;
        put_now(now, row, kept, found, into, o);
    }
    if (full)
        put_all_gone(now, kept, met, into, o);
    count_marginals(into, o);
    free(met);
    rows_index_free(&index);
}
