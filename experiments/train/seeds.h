/* SPDX-License-Identifier: BSD-3-Clause */
/* Accuracies over seeds: a row per operator, variant and change. */
#ifndef EXPERIMENTS_TRAIN_SEEDS_H
#define EXPERIMENTS_TRAIN_SEEDS_H

#include "common/experiment.h"

/* What came of one training, with a change of the network before it or after it. */
typedef struct {
    const char *operator_name, *variant, *change;
    int64_t seed;
    bool finished; /* false: a loss or a gradient was not finite, or the training was not run */
    int64_t epochs, steps;
    double accuracy; /* on the test pictures */
} seed_result;

enum { SEEDS_COLUMNS = 13 };
extern const column seeds_columns[SEEDS_COLUMNS];

/* Networks are compared, seed by seed, with those of the same operator and variant without a change
 * or, if there are none, with its first change. Where a training of either has not finished there
 * is no comparison. */
void seeds_compare(int64_t count, const seed_result *results, table *to);

#endif
