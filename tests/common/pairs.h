/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairwise testing: of all combinations of several factors' values, so few that any two values of
 * two factors still occur together. */
#ifndef TESTS_PAIRS_H
#define TESTS_PAIRS_H

#include <stdbool.h>

enum { PAIRS_FACTORS = 6 }; /* of which a test names 5 at most, because the share is one */

/* combination[i] holds a value 0 .. sizes[f] - 1 of each factor f, in the order of nested loops
 * with the first factor outermost. */
typedef struct {
    int count;
    int (*combination)[PAIRS_FACTORS];
} pairs;

/* Whether the environment variable ATTNUM_TEST_CASES is "all". */
bool pairs_all(void);

/* From now on pairs_make returns share `index` of `count` of its combinations. The share is a
 * factor like the others: each value of each factor is in every share, any two values of two
 * factors that may occur together are so in one of the shares. */
void pairs_share(int index, int count);

/* Combinations that `allowed` admits (null: all), such that two values that occur together in one
 * of those do so in one of these; all of those if pairs_all(). */
pairs pairs_make(int factors, const int *sizes, bool (*allowed)(const int *values));
void pairs_free(pairs *p);

#endif
