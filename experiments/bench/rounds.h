/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of members that are compared, in the order A B C A B C ..., so that whatever slows the
 * machine down for a while slows down all of them. The device's own timer is used, and ratios are
 * taken round by round. The ticks of other processes are read before and after all rounds. */
#ifndef EXPERIMENTS_BENCH_ROUNDS_H
#define EXPERIMENTS_BENCH_ROUNDS_H

#include <attnum/attnum.h>
#include <stdbool.h>

#include "common/ticks.h"

/* work(state, i) is called for i = 0, 1, ...; a status other than ATN_OK ends everything. */
typedef struct {
    atn_context *context;
    bool cold;          /* the cache is flushed before each call; hot: many calls in a row */
    bool inverses_only; /* the work is inverses, whose arithmetic alone is timed */
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
    double shortest; /* of a hot member in a round: its work is repeated until it takes as long */
    int again;       /* how often all rounds are repeated at most if other processes were at work */
} rounds_plan;

typedef struct {
    int members, rounds;
    double *seconds; /* of one call: all rounds of the first member, then of the next */
    int *calls;      /* of each member in a round */
    int repeated;    /* how often all rounds were repeated */
    int dirty;       /* other processes were at work in the rounds that are kept; -1: not known */
    int64_t idle, steal; /* ticks, of those rounds */
    int failed;          /* the member that failed */
} rounds_result;

/* Device memory within which a copy evicts everything else from the cache. */
typedef struct {
    char *memory;
    size_t half; /* more than twice the cache; copied from the first half to the second */
} rounds_flush;

atn_status rounds_flush_open(atn_context *context, rounds_flush *flush);
void rounds_flush_close(atn_context *context, rounds_flush *flush);

/* The amount of work in a timed call is chosen from the shortest of so many times. */
enum { ROUNDS_TRIALS = 3 };

/* Starts the threads of a context, if the last parallel region had another number of threads: that
 * must not be timed. */
void rounds_gather_threads(const atn_context *context);

/* flush is used by cold members, and may be null if there are none. result must be freed in any
 * case. */
atn_status rounds_time(const rounds_plan *plan, const rounds_meter *meter,
                       const rounds_flush *flush, int members, const rounds_member *member,
                       rounds_result *result);
void rounds_free(rounds_result *result);

typedef struct {
    double median, least, largest;
    double low, high; /* quartiles, interpolated between the two nearest values */
} rounds_statistics;

/* Of a member's seconds, and of the ratios of two members', round by round. */
rounds_statistics rounds_seconds(const rounds_result *result, int member);
rounds_statistics rounds_ratios(const rounds_result *result, int member, int by);

#endif
