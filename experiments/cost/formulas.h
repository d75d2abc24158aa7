/* SPDX-License-Identifier: BSD-3-Clause */
/* The papers' statements about costs, evaluated and compared with exact counts:
 * counts_formulas.csv. */
#ifndef EXPERIMENTS_COST_FORMULAS_H
#define EXPERIMENTS_COST_FORMULAS_H

#include "cost/operators.h"

enum { FORMULAS_COLUMNS = 15 };
extern const column formulas_columns[FORMULAS_COLUMNS];

/* Adds all rows. Returns an exit code: EXIT_CHECK if a formula that is to count exactly what the
 * operator does differs from the count. */
int formulas_evaluate(table *t);

/* Prints the table without its columns of explanations. */
void formulas_print(const table *t);

#endif
