/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of pieces of work that are compared: A B C A B C ..., so that whatever slows the machine
 * down for a while slows down all of them, each read by the device's own timer, and ratios taken
 * round by round. What else the machine did is read around all rounds together. */
#ifndef EXPERIMENTS_BENCH_ROUNDS_H
#define EXPERIMENTS_BENCH_ROUNDS_H

#include <attnum/attnum.h>
#include <stdbool.h>

#include "common/ticks.h"

/* work(state, i) is called for i = 0, 1, ...; a status other than ATN_OK ends everything. */
typedef struct {
    atn_context *context;
    bool cold;   /* the cache is flushed before each call; hot: many calls in a row */
    bool inside; /* atn_timer_inside: the work is inverses, of which the arithmetic is timed */
    atn_status (*work)(void *state, int repeat);
    void *state;
} rounds_member;

/* Ticks from anywhere; machine_ticks_read by default. */
typedef struct {
    bool (*ticks)(void *state, machine_ticks *ticks); /* false: the machine does not say */
    void *state;
} rounds_meter;

extern const rounds_meter rounds_machine;

typedef struct {
    int warm_ups;    /* of each member */
    int least, most; /* rounds */
    double seconds;  /* for each member, after which no more than `least` rounds are begun */
    double shortest; /* of a hot member's time in a round: the work is done so often */
    int again;       /* all rounds are done again if others were at work, at most so often */
} rounds_plan;

typedef struct {
    int members, rounds;
    double *seconds;     /* of one call: member after member, a round each */
    int *calls;          /* of each member in a round */
    int repeated;        /* how often all of it was done again */
    int dirty;           /* others were at work in the rounds that are kept; -1: not known */
    int64_t idle, steal; /* ticks, of those rounds */
    int failed;          /* the member that failed */
} rounds_result;

/* Memory of the device that a copy within it fills, so that nothing else is left in its cache. */
typedef struct {
    char *memory;
    size_t half; /* more than twice the cache; copied from the first half to the second */
} rounds_flush;

atn_status rounds_flush_open(atn_context *context, rounds_flush *flush);
void rounds_flush_close(atn_context *context, rounds_flush *flush);

/* How long work takes is the least of so many times where that is to choose how much of it is
 * timed at once. */
enum { ROUNDS_TRIALS = 3 };

/* Makes the threads of a context's team, if the team before it was another: that is no part of the
 * work. */
void rounds_gather_threads(const atn_context *context);

/* flush is used by cold members, and may be null if there are none. result is to be freed in any
 * case. */
atn_status rounds_time(const rounds_plan *plan, const rounds_meter *meter,
                       const rounds_flush *flush, int members, const rounds_member *member,
                       rounds_result *result);
void rounds_free(rounds_result *result);

typedef struct {
    double median, least, largest;
    double low, high; /* quartiles, between the two nearest values */
} rounds_statistics;

/* Of a member's seconds, and of the ratios of two members', round by round. */
rounds_statistics rounds_seconds(const rounds_result *result, int member);
rounds_statistics rounds_ratios(const rounds_result *result, int member, int by);

#endif
