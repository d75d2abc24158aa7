/* SPDX-License-Identifier: BSD-3-Clause */
/* Two pieces of work are timed against each other, A B A B ..., so that whatever slows the machine
 * down for a while slows down both. The result is the median of the ratios of neighbouring times.
 *
 * Time is the CPU time of the calling thread: other processes do not add to it, but they share
 * caches, memory and the clock frequency. So the machine's ticks (/proc/stat) are read around each
 * pair, and a pair in which others were at work is timed again, up to a limit; after that it is
 * kept and counted as dirty. */
#ifndef EXPERIMENTS_PAIRS_H
#define EXPERIMENTS_PAIRS_H

#include <stdint.h>

#include "common/ticks.h"

/* The sources of time and ticks. */
typedef struct {
    double (*seconds)(void *state);
    bool (*ticks)(void *state, machine_ticks *ticks); /* false: not known on this machine */
    void *state;
} pair_meter;

/* The thread's CPU time, and /proc/stat. */
extern const pair_meter pair_machine;

/* One side of a pair: does the work `times` times. */
typedef struct {
    void (*work)(void *state, int64_t times);
    void *state;
} pair_side;

typedef struct {
    int pairs;        /* pairs in the statistics, > 0 */
    int again;        /* the most dirty pairs that are timed again, in all */
    double least;     /* the least time of a side of a pair, in seconds, reached by repetition */
    double most_once; /* in seconds: work that takes longer has half the pairs, at least 3 */
} pair_plan;

typedef struct {
    double median, least, largest; /* the median of an even number is the mean of two */
} pair_statistics;

/* All NaN if there are no values or one is not finite; sorts values. */
pair_statistics pair_statistics_of(int count, double *values);

typedef struct {
    int pairs, repeated;
    int dirty;                  /* number of dirty pairs; -1: not known on this machine */
    pair_statistics ratio;      /* A / B */
    pair_statistics difference; /* A - B, in seconds per repetition */
    double seconds[2];          /* medians of A and B, per repetition */
    int64_t times[2];           /* repetitions of each in a pair */
} pair_result;

/* Runs each side once to warm up, then finds the repetitions that plan->least needs, then times the
 * pairs. */
pair_result pair_time(const pair_meter *meter, const pair_side *a, const pair_side *b,
                      const pair_plan *plan);

/* The x at which y rises to 1 or above, by a power law between two points, if y does so exactly
 * once and never falls back; NaN otherwise. x ascends. */
double pair_crossover(int64_t points, const double *x, const double *y);

#endif
