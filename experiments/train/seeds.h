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
    /* Where the network without a change is the same but for the change, so that each picture is
     * one of a pair: how many became right and wrong by the change, means over what is drawn. */
    bool paired;
    double became_right, became_wrong;
} seed_result;

/* The exact two-sided sign test of pictures that became right and wrong (McNemar's exact test):
 * "higher" or "lower" where p <= 0.05, else "no difference". */
const char *sign_test(int64_t right, int64_t wrong);

enum { SEEDS_COLUMNS = 13 };
extern const column seeds_columns[SEEDS_COLUMNS];

/* Networks are compared, seed by seed, with those of the same operator and variant without a change
 * or, if there are none, with its first change. Where a training of either has not finished there
 * is no comparison. Without pairs of pictures the pictures' own error does not count, and where all
 * seeds differ by the same there is no verdict: nothing then tells the seeds' error. */
void seeds_compare(int64_t count, const seed_result *results, table *to);

#endif
