/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares a run's rows with those of a baseline or of another run. */
#ifndef EXPERIMENTS_REGRESS_COMPARE_H
#define EXPERIMENTS_REGRESS_COMPARE_H

#include <stdbool.h>

#include "common/table.h"

/* X(code, name, fails). The outcome of the comparison of a row. */
#define COMPARISON_LIST(X)                                                                         \
    X(COMPARED_SAME, "same", false)                                                                \
    X(COMPARED_BETTER, "better", false)                                                            \
    X(COMPARED_LOST, "LOST", true)                                                                 \
    X(COMPARED_FAIL, "FAIL", true)                                                                 \
    X(COMPARED_NEW, "new", false)                                                                  \
    X(COMPARED_GONE, "gone", true)                                                                 \
    X(COMPARED_SKIPPED, "skipped", false)

#define COMPARISON_ENTRY(code, name, fails) code,
typedef enum { COMPARISON_LIST(COMPARISON_ENTRY) COMPARISON_COUNT } comparison;
#undef COMPARISON_ENTRY

const char *comparison_name(comparison c);
bool comparison_fails(comparison c);

/* Of a row of a compared table. */
comparison compared_row(const table *compared, int64_t row);

/* An operator in a type that has more marginal rows than before. */
typedef struct {
    int64_t row; /* the first of them */
    int now, kept;
} marginal_growth;

typedef struct {
    int64_t count[COMPARISON_COUNT];
    int growths;
    marginal_growth *growth;
    bool borrowed; /* a device without its own rows was compared with the CPU's */
} compare_outcome;

void compare_free(compare_outcome *o);
bool compare_failed(const compare_outcome *o);

/* Fills `into` (regress_columns, COMPARED_COLUMNS) with the compared rows of `now` and, if the run
 * is a full one, with the rows of `kept` that it lacks. */
void compare_rows(const table *now, const table *kept, bool full, table *into, compare_outcome *o);

#endif
