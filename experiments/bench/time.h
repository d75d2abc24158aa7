/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of work that is repeated: warmed up, the cache flushed before each repeat, read by the
 * device's own timer, one repeat after the other. */
#ifndef EXPERIMENTS_BENCH_TIME_H
#define EXPERIMENTS_BENCH_TIME_H

#include <attnum/attnum.h>
#include <stdbool.h>

typedef struct {
    int warm_ups, least, most; /* repeats */
    double seconds;            /* after which no more than `least` repeats are begun */
    bool inside;               /* atn_timer_inside: the work is inverses */
} time_plan;

typedef struct {
    int repeats;
    double median, smallest, largest;
    double spread; /* between the quartiles, relative to the median */
} time_result;

/* Memory of the device that a copy within it fills, so that nothing else is left in its cache. */
typedef struct {
    char *memory;
    size_t half; /* more than twice the cache; copied from the first half to the second */
} time_flush;

atn_status time_flush_open(atn_context *context, time_flush *flush);
void time_flush_close(atn_context *context, time_flush *flush);

/* Calls work(state, i) for i = 0, 1, ...; a status it returns ends it. flush may be null. */
atn_status time_repeats(atn_context *context, const time_plan *plan, const time_flush *flush,
                        atn_status (*work)(void *state, int repeat), void *state,
                        time_result *result);

#endif
