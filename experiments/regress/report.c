/* SPDX-License-Identifier: BSD-3-Clause */
#include "regress/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "regress/rows.h"

enum { WORST_SHOWN = 10, FAILED_SHOWN = 60 };

/* ---- A tally per operator ---- */

static void put_tally(const table *t, int64_t first, table *to)
{
    int64_t count[COMPARISON_COUNT] = {0}, rows = 0;
    double worst = -1;
    for (int64_t row = first; row < table_rows(t); row++)
        if (strcmp(table_get_text(t, row, ROW_OPERATOR), table_get_text(t, first, ROW_OPERATOR)) ==
            0) {
            rows++;
            count[compared_row(t, row)]++;
            worst = fmax(worst, table_get_real(t, row, ROW_LOSS));
        }
    table_text(to, table_get_text(t, first, ROW_OPERATOR));
    table_integer(to, rows);
    for (int c = 0; c < COMPARISON_COUNT; c++)
        table_integer(to, count[c]);
    table_real_if(to, worst >= 0, worst);
}

static bool operator_is_first(const table *t, int64_t row)
{
    for (int64_t before = row - 1; before >= 0; before--)
        if (strcmp(table_get_text(t, before, ROW_OPERATOR), table_get_text(t, row, ROW_OPERATOR)) ==
            0)
            return false;
    return true;
}

static void print_tally(const table *t)
{
    column columns[COMPARISON_COUNT + 3] = {{"operator", COLUMN_TEXT, "", ""},
                                            {"rows", COLUMN_INTEGER, "", ""}};
    for (int c = 0; c < COMPARISON_COUNT; c++)
        columns[2 + c] = (column){comparison_name((comparison)c), COLUMN_INTEGER, "", ""};
    columns[2 + COMPARISON_COUNT] = (column){"worst loss", COLUMN_REAL, "", ""};
    table *tally = table_create(columns, COMPARISON_COUNT + 3);
    for (int64_t row = 0; row < table_rows(t); row++)
        if (operator_is_first(t, row))
            put_tally(t, row, tally);
    table_print(tally, INT64_MAX, report_stream());
    table_free(tally);
}

/* ---- Rows ---- */

static void print_rows(const table *t, int64_t count, const int64_t *rows, int64_t limit)
{
    static const char *const shown[] = {
        "comparison", "operator", "variant", "dtype",  "device",          "n",
        "m",          "input",    "loss",    "digits", "baseline_digits", "verdict"};
    table *part = table_create(regress_columns, COMPARED_COLUMNS);
    for (int64_t i = 0; i < count; i++)
        table_copy_row(part, t, rows[i]);
    table_print_columns(part, shown, sizeof shown / sizeof *shown, limit, report_stream());
    table_free(part);
}

typedef struct {
    int64_t row;
    double loss;
} ranked;

static int compare_losses(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->loss != y->loss)
        return x->loss < y->loss ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

static void print_worst(const table *t)
{
    ranked *all = must_allocate((size_t)table_rows(t), sizeof *all);
    int64_t worst[WORST_SHOWN], count = 0;
    for (int64_t row = 0; row < table_rows(t); row++)
        if (!table_is_missing(t, row, ROW_LOSS))
            all[count++] = (ranked){row, table_get_real(t, row, ROW_LOSS)};
    qsort(all, (size_t)count, sizeof *all, compare_losses);
    if (count > WORST_SHOWN)
        count = WORST_SHOWN;
    for (int64_t i = 0; i < count; i++)
        worst[i] = all[i].row;
    if (count > 0) {
        report_text("\nthe largest losses (from 1 on digits are lost)\n");
        print_rows(t, count, worst, count);
    }
    free(all);
}

static void print_chosen(const table *t, bool changes)
{
    int64_t *rows = must_allocate((size_t)table_rows(t), sizeof *rows), count = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        comparison c = compared_row(t, row);
        bool changed = c != COMPARED_SAME && c != COMPARED_SKIPPED;
        if (changes ? changed : comparison_fails(c))
            rows[count++] = row;
    }
    if (count > 0) {
        report_text("\n%s\n", changes ? "what changes in the baseline" : "what fails");
        print_rows(t, count, rows, FAILED_SHOWN);
    }
    free(rows);
}

void regress_report(const table *compared, const compare_outcome *o, const char *kept, bool changes)
{
    report_text("compared with %s\n", kept);
    if (o->borrowed)
        report_text("a device without kept rows is compared with the CPU's\n");
    print_tally(compared);
    print_worst(compared);
    print_chosen(compared, changes);
    for (int i = 0; i < o->growths; i++)
        report_text("%s %s on %s: %d marginal, %d in the baseline\n",
                    table_get_text(compared, o->growth[i].row, ROW_OPERATOR),
                    table_get_text(compared, o->growth[i].row, ROW_DTYPE),
                    table_get_text(compared, o->growth[i].row, ROW_DEVICE), o->growth[i].now,
                    o->growth[i].kept);
    report_text("\n%" PRId64 " rows:", table_rows(compared));
    for (int c = 0, printed = 0; c < COMPARISON_COUNT; c++)
        if (o->count[c] > 0)
            report_text("%s %" PRId64 " %s", printed++ ? "," : "", o->count[c],
                        comparison_name((comparison)c));
    report_text("%s\n", compare_failed(o) && !changes ? ": accuracy is lost" : "");
}
