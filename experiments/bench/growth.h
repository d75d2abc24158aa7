/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum bench memory`: how the time and the memory of a call grow with the numbers of tokens and
 * of landmarks. */
#ifndef EXPERIMENTS_BENCH_GROWTH_H
#define EXPERIMENTS_BENCH_GROWTH_H

#include "common/experiment.h"

extern const experiment bench_growth;

/* The share of work that does not grow with n, in a call with (1 + x) n tokens, from linear counts:
 * a call with n has `work`, one with 2 n has `more` in addition; 0 if work grows faster than n. */
double growth_constant_share(double work, double more, double x);

/* Whether the exponent of n is fitted through a call: at most a hundredth of its work does not grow
 * with n, and its inputs and output are more than four times the size of the cache, so that at most
 * a quarter of what a pass reads is still there. Both are known before anything is timed. */
bool growth_is_fitted(double constant_share, double bytes_io, double cache_bytes);

/* Finds for each call of a line, by its number of tokens, the call that it is timed in alternation
 * with: for a fitted call the shortest fitted one; 0: none. */
void growth_alternate(int64_t count, const int64_t *tokens, const bool *fitted,
                      int64_t *by_turns_with);

/* The median over the last `rounds` of all calls, which are those that are not warm-ups. ring: call
 * i's value at i mod GROWTH_KEPT, which is more than there are rounds. */
enum { GROWTH_KEPT = 128 };
double growth_median_of_last(const double *ring, int calls, int rounds);

#endif
