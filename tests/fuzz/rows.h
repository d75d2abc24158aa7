/* SPDX-License-Identifier: BSD-3-Clause */
/* The columns of the tables that the targets read: one of each type. */
#ifndef TESTS_FUZZ_ROWS_H
#define TESTS_FUZZ_ROWS_H

#include "common/table.h"

static const column row_columns[] = {
    {"name", COLUMN_TEXT, "", ""},
    {"count", COLUMN_INTEGER, "", ""},
    {"error", COLUMN_REAL, "", ""},
    {"holds", COLUMN_BOOLEAN, "", ""},
};
enum { ROW_COLUMNS = sizeof row_columns / sizeof *row_columns };

#endif
