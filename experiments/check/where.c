/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a result is wrong: which heads, rows and columns, if the rest is right. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "common/report.h"

/* The rows or columns of a head: how many are wrong, and how many of these are zero or not
 * finite. */
typedef struct {
    int64_t count, wrong, zero, nonfinite;
    int64_t first, last; /* of the wrong ones */
    bool rest_passes;    /* the error in the other lines would pass as that of the whole head */
} lines;

/* A line is wrong if its error exceeds the bound of the worst row or column. */
static lines examine(const yardstick *y, const bounds *b, const double *got, bool columns)
{
    int64_t count = columns ? y->cols : y->rows, length = columns ? y->rows : y->cols;
    int64_t along = columns ? y->cols : 1, across = columns ? 1 : y->cols;
    double allowed = b->bound[columns ? STATISTIC_COLUMN : STATISTIC_ROW];
    double mean = b->norm * b->norm / (double)count;
    double rest = 0;
    lines l = {.count = count, .first = -1};
    for (int64_t i = 0; i < count; i++) {
        double error = 0, square = 0, norm = 0;
        for (int64_t j = 0; j < length; j++) {
            double have = got[i * across + j * along], want = y->want[i * across + j * along];
            error += (have - want) * (have - want);
            square += have * have;
            norm += want * want;
        }
        /* NaN is wrong, and so are zeros where another value is wanted, however small the error */
        bool nothing = square == 0 && norm > 0;
        if (!nothing && sqrt(error * (mean > 0 ? mean / fmax(norm, mean) : 1)) <= allowed) {
            rest += error;
            continue;
        }
        l.wrong++;
        l.zero += square == 0;
        l.nonfinite += !isfinite(square);
        l.first = l.first < 0 ? i : l.first;
        l.last = i;
    }
    l.rest_passes = sqrt(rest) <= b->bound[STATISTIC_SIZE];
    return l;
}

/* "rows 64 to 127", "row 3", "5 rows from 3 to 90". */
static char *lines_text(const lines *l, const char *what)
{
    const char *state = l->zero == l->wrong        ? ": zero"
                        : l->nonfinite == l->wrong ? ": NaN or infinity"
                                                   : "";
    const char *tail = l->last == l->count - 1 && l->wrong < l->count ? ", the last ones" : "";
    if (l->wrong == 1)
        return must_format("%s %" PRId64 "%s", what, l->first, state);
    if (l->last - l->first + 1 == l->wrong)
        return must_format("%ss %" PRId64 " to %" PRId64 "%s%s", what, l->first, l->last, tail,
                           state);
    return must_format("%" PRId64 " %ss from %" PRId64 " to %" PRId64 "%s", l->wrong, what,
                       l->first, l->last, state);
}

/* Whether some rows or columns, at most half of them, are wrong, and the rest is right. */
static bool are_few(const lines *l)
{
    return l->wrong > 0 && 2 * l->wrong <= l->count && l->rest_passes;
}

bool is_wrong_in_part(const yardstick *y, const bounds *b, const double *got)
{
    lines rows = examine(y, b, got, false), columns = examine(y, b, got, true);
    return are_few(&rows) || are_few(&columns);
}

static const char all_zero[] = "zero throughout", all_nonfinite[] = "NaN or infinity throughout";

/* The part of a head that is wrong; null: no part by itself. */
static char *head_text(const yardstick *y, const bounds *b, const double *got)
{
    lines rows = examine(y, b, got, false), columns = examine(y, b, got, true);
    bool few_rows = are_few(&rows), few_columns = are_few(&columns);
    bool by_columns =
        few_columns && (!few_rows || columns.wrong * rows.count < rows.wrong * columns.count);
    if (few_rows || few_columns)
        return by_columns ? lines_text(&columns, "column") : lines_text(&rows, "row");
    return rows.zero == rows.count        ? must_format("%s", all_zero)
           : rows.nonfinite == rows.count ? must_format("%s", all_nonfinite)
                                          : NULL;
}

char *where_head(const subject *s, result_kind kind, int64_t head)
{
    int64_t heads = s->judged.shape.heads;
    if (kind >= RESULT_PARAMETERS)
        return must_format("head %" PRId64, head);
    return must_format("batch %" PRId64 ", head %" PRId64, head / heads, head % heads);
}

char *where_wrong(const subject *s, result_kind kind, const result_verdict *v)
{
    int64_t heads = result_heads(&s->judged, kind), size = result_size(&s->judged, kind) / heads;
    int64_t wrong = 0, worst = -1;
    for (int64_t i = 0; i < heads; i++) {
        if (v->heads[i].verdict != REF_FAIL)
            continue;
        wrong++;
        if (worst < 0 || !(v->heads[i].ratio <= v->heads[worst].ratio))
            worst = i;
    }
    if (worst < 0)
        return NULL;
    yardstick y = head_yardstick(s, kind, v, worst);
    char *part = head_text(&y, &v->bounds[worst], s->results[kind] + worst * size), *text = NULL;
    char *place = where_head(s, kind, worst);
    if (part && wrong == 1 && heads > 1)
        text = must_format("%s alone: %s", place, part);
    else if (part && (strcmp(part, all_zero) == 0 || strcmp(part, all_nonfinite) == 0))
        text = wrong == heads ? must_format("it is %s: every row and column", part)
                              : must_format("%" PRId64 " of %" PRId64 " heads, %s among them: %s",
                                            wrong, heads, place, part);
    else if (part && wrong > 1)
        text = must_format("%" PRId64 " of %" PRId64 " heads; in %s %s alone", wrong, heads, place,
                           part);
    else if (part)
        text = must_format("%s alone", part);
    else if (wrong < heads)
        text = must_format("%s%s alone, the other heads are right", place,
                           wrong > 1 ? " and others" : "");
    free(place);
    free(part);
    return text;
}
