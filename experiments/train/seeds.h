/* SPDX-License-Identifier: BSD-3-Clause */
/* Accuracies over seeds: a row per operator, variant and change. */
#ifndef EXPERIMENTS_TRAIN_SEEDS_H
#define EXPERIMENTS_TRAIN_SEEDS_H

#include "common/experiment.h"

enum { SEEDS_COLUMNS = 14 };
extern const column seeds_columns[SEEDS_COLUMNS];

/* last: the rows of train.csv that end a training each. Networks are compared with the first ones
 * of their operator, seed by seed. */
void seeds_compare(const table *last, table *to);

#endif
