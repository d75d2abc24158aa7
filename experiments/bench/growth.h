/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum bench memory`: growth of the time and the memory of one call with the tokens and with the
 * landmarks. */
#ifndef EXPERIMENTS_BENCH_GROWTH_H
#define EXPERIMENTS_BENCH_GROWTH_H

#include "common/experiment.h"

extern const experiment bench_growth;

/* The share of a call's work that does not grow with n, for a call with (1 + x) n tokens, if a call
 * with n has `work` and one with 2 n has `more` than that; 0 if work grows faster than n. */
double growth_constant_share(double work, double more, double x);

/* Whether the exponent of n is fitted through a call: what does not grow with n is at most a
 * hundredth of its work, and its inputs and output are more than four times the cache, so that of
 * any pass over them at most a quarter is still there. Both are known before anything is timed. */
bool growth_is_fitted(double constant_share, double bytes_io, double cache_bytes);

/* The call, by its tokens, with which a call of a line is timed in turns: a fitted one with the
 * shortest fitted one; 0: with none. */
void growth_take_turns(int64_t count, const int64_t *tokens, const bool *fitted,
                       int64_t *by_turns_with);

#endif
