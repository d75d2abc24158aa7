/* SPDX-License-Identifier: BSD-3-Clause */
/* Times members that are compared, in the order A B C A B C ..., so that a slow phase of the
 * machine slows all of them down. Uses the device's own timer; ratios are taken round by round. The
 * ticks of other processes are read before and after all rounds. */
#ifndef EXPERIMENTS_BENCH_ROUNDS_H
#define EXPERIMENTS_BENCH_ROUNDS_H

#include <attnum/attnum.h>
#include <stdbool.h>

#include "common/ticks.h"

/* work(state, i) is called for i = 0, 1, ...; a status other than ATN_OK ends all rounds. */
typedef struct {
    atn_context *context;
    bool cold;          /* the cache is flushed before each call; hot: many calls in a row */
    bool inverses_only; /* the work is inverses, of which only the arithmetic is timed */
    atn_status (*work)(void *state, int repeat);
    void *state;
} rounds_member;

/* Reads ticks; machine_ticks_read by default. */
typedef struct {
    bool (*ticks)(void *state, machine_ticks *ticks); /* false: unknown */
    void *state;
} rounds_meter;

extern const rounds_meter rounds_machine;

typedef struct {
    int warm_ups;    /* calls of each member */
    int least, most; /* number of rounds */
    double seconds;  /* per member; after that time no rounds beyond `least` are begun */
    double shortest; /* time of a hot member in a round; calls are repeated until they take it */
    int again;       /* how often at most all rounds are repeated because of other processes */
} rounds_plan;

typedef struct {
    int members, rounds;
    double *seconds;     /* per call: all rounds of the first member, then of the next */
    int *calls;          /* of each member per round */
    int repeated;        /* how often all rounds were repeated */
    int dirty;           /* whether other processes were at work in the kept rounds; -1: unknown */
    int64_t idle, steal; /* ticks in these rounds */
    int failed;          /* the member that failed */
} rounds_result;

/* Device memory, in which a copy evicts everything else from the cache. */
typedef struct {
    char *memory;
    size_t half; /* more than twice the cache; the first half is copied to the second */
} rounds_flush;

atn_status rounds_flush_open(atn_context *context, rounds_flush *flush);
void rounds_flush_close(atn_context *context, rounds_flush *flush);

/* The number of calls in a round is chosen from the shortest of so many times. */
enum { ROUNDS_TRIALS = 3 };

/* Starts the threads of a context if the last parallel region had another number of threads, as
 * starting them must not be timed. */
void rounds_gather_threads(const atn_context *context);

/* flush is used for cold members, and may be null if there are none. result must be freed in any
 * case. */
atn_status rounds_time(const rounds_plan *plan, const rounds_meter *meter,
                       const rounds_flush *flush, int members, const rounds_member *member,
                       rounds_result *result);
void rounds_free(rounds_result *result);

typedef struct {
    double median, least, largest;
    double low, high; /* quartiles, interpolated between the two nearest values */
} rounds_statistics;

/* Statistics of a member's seconds, and of the ratios of two members' seconds, round by round. */
rounds_statistics rounds_seconds(const rounds_result *result, int member);
rounds_statistics rounds_ratios(const rounds_result *result, int member, int by);

#endif
