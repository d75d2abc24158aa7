/* SPDX-License-Identifier: BSD-3-Clause */
/* What the papers print about costs, evaluated, next to exact counts: counts_formulas.csv. */
#ifndef EXPERIMENTS_COST_FORMULAS_H
#define EXPERIMENTS_COST_FORMULAS_H

#include "cost/operators.h"

enum { FORMULAS_COLUMNS = 15 };
extern const column formulas_columns[FORMULAS_COLUMNS];

/* Adds all rows. Returns an exit code: EXIT_CHECK if a formula that counts what the operator does
 * is not equal to the count. */
int formulas_evaluate(table *t);

/* For people: without the words. */
void formulas_print(const table *t);

#endif
