/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/workload.h"
#include "common/median.h"
#include "common/progress.h"
#include "common/report.h"

/* The size that is assumed for an unknown cache. */
static const size_t usual_cache = (size_t)32 << 20;

const rounds_meter rounds_machine = {machine_ticks_read, NULL};

/* ---- The cache ---- */

atn_status rounds_flush_open(atn_context *context, rounds_flush *flush)
{
    atn_device_info info;
    void *memory = NULL;
    atn_status status = atn_device_describe(atn_context_device(context), 0, &info);
    size_t cache =
        status == ATN_OK && info.cache_bytes > 0 ? (size_t)info.cache_bytes : usual_cache;
    *flush = (rounds_flush){.half = 2 * cache + 4096};
    if (status == ATN_OK)
        status = atn_allocate(context, 2 * flush->half, &memory);
    if (status != ATN_OK)
        return status;
    float *values = must_allocate(flush->half, 1);
    workload_numbers(0, (int64_t)(flush->half / sizeof *values), values);
    status = atn_upload(context, memory, values, flush->half);
    free(values);
    flush->memory = memory;
    return status;
}

void rounds_flush_close(atn_context *context, rounds_flush *flush)
{
    atn_release(context, flush->memory);
    *flush = (rounds_flush){0};
}

/* ---- A time ---- */

typedef struct {
    const rounds_member *member;
    const rounds_flush *flush;
    atn_timer *timer;
    int calls;  /* per round */
    int repeat; /* of the next call */
} clocked;

/* Times calls between one start and one stop. The flush keeps a device busy while the host enqueues
 * the work, so that launches are not in the time. */
static atn_status time_calls(clocked *c, double *seconds)
{
    const rounds_member *m = c->member;
    atn_status status = atn_timer_start(c->timer);
    for (int i = 0; i < c->calls && status == ATN_OK; i++)
        status = m->work(m->state, c->repeat++);
    if (status == ATN_OK)
        status = atn_timer_stop(c->timer);
    return status == ATN_OK ? atn_timer_elapsed(c->timer, seconds) : status;
}

/* Times calls that start and stop the timer themselves. */
static atn_status time_inverses(clocked *c, double *seconds)
{
    const rounds_member *m = c->member;
    atn_status status = atn_timer_inverses(m->context, c->timer);
    *seconds = 0;
    for (int i = 0; i < c->calls && status == ATN_OK; i++) {
        double one = 0;
        status = m->work(m->state, c->repeat++);
        if (status == ATN_OK)
            status = atn_timer_elapsed(c->timer, &one);
        *seconds += one;
    }
    atn_timer_inverses(m->context, NULL);
    return status;
}

void rounds_gather_threads(const atn_context *context)
{
    int threads = atn_context_threads(context), here = 0;
#pragma omp parallel num_threads(threads) reduction(+ : here)
    here = 1;
    (void)here;
}

/* The time of one call. */
static atn_status time_once(clocked *c, double *seconds)
{
    const rounds_flush *f = c->flush;
    atn_status status = ATN_OK;
    if (c->member->cold && f)
        status = atn_copy(c->member->context, f->memory + f->half, f->memory, f->half);
    rounds_gather_threads(c->member->context);
    if (status == ATN_OK)
        status = c->member->inverses_only ? time_inverses(c, seconds) : time_calls(c, seconds);
    *seconds /= c->calls;
    return status;
}

/* Makes fewer calls if they take long. */
static atn_status warm_up(const rounds_plan *plan, clocked *c)
{
    double seconds, start = progress_seconds();
    atn_status status = ATN_OK;
    c->calls = 1;
    for (int i = 0; i < plan->warm_ups && status == ATN_OK; i++)
        if (i == 0 || progress_seconds() - start < 1)
            status = time_once(c, &seconds);
    return status;
}

/* Chooses the number of calls per round so that they take plan->shortest, from the shortest of
 * ROUNDS_TRIALS times; a disturbed, longer one would make all rounds too short. */
static atn_status choose_calls(const rounds_plan *plan, clocked *c)
{
    atn_status status = ATN_OK;
    c->calls = 1;
    if (c->member->cold)
        return status;
    for (int trial = 0; trial < ROUNDS_TRIALS && status == ATN_OK; trial++) {
        double seconds;
        status = time_once(c, &seconds);
        if (status == ATN_OK && !(seconds * c->calls >= plan->shortest) && c->calls < 1 << 24) {
            c->calls *= 2;
            trial = -1;
        }
    }
    return status;
}

/* ---- Rounds ---- */

/* seconds: plan->most times for each member. */
static atn_status run_rounds(const rounds_plan *plan, clocked *clocks, double *seconds,
                             rounds_result *r)
{
    atn_status status = ATN_OK;
    double start = progress_seconds();
    for (r->rounds = 0;
         status == ATN_OK && r->rounds < plan->most &&
         (r->rounds < plan->least || progress_seconds() - start < plan->seconds * r->members);
         r->rounds++)
        for (int i = 0; i < r->members && status == ATN_OK; i++) {
            r->failed = i;
            status = time_once(&clocks[i], &seconds[i * plan->most + r->rounds]);
        }
    return status;
}

static atn_status choose_all_calls(const rounds_plan *plan, clocked *clocks, rounds_result *r)
{
    atn_status status = ATN_OK;
    for (int i = 0; i < r->members && status == ATN_OK; i++) {
        r->failed = i;
        status = choose_calls(plan, &clocks[i]);
    }
    return status;
}

/* Runs all rounds, and repeats them as long as other processes disturbed them. */
static atn_status repeat_rounds(const rounds_plan *plan, const rounds_meter *meter, clocked *clocks,
                                double *seconds, rounds_result *r)
{
    for (r->repeated = 0;; r->repeated++) {
        machine_ticks before = {0}, after = {0};
        atn_status status = choose_all_calls(plan, clocks, r);
        if (status != ATN_OK)
            return status;
        bool said = meter->ticks(meter->state, &before);
        status = run_rounds(plan, clocks, seconds, r);
        said &= meter->ticks(meter->state, &after);
        r->dirty = said ? machine_is_dirty(&before, &after) : -1;
        r->idle = after.idle - before.idle;
        r->steal = after.steal - before.steal;
        if (status != ATN_OK || r->dirty <= 0 || r->repeated == plan->again)
            return status;
    }
}

static atn_status open_clocks(const rounds_plan *plan, const rounds_flush *flush,
                              const rounds_member *member, clocked *clocks, rounds_result *r)
{
    atn_status status = ATN_OK;
    for (int i = 0; i < r->members && status == ATN_OK; i++) {
        r->failed = i;
        clocks[i] = (clocked){.member = &member[i], .flush = flush};
        status = atn_timer_create(member[i].context, &clocks[i].timer);
        if (status == ATN_OK)
            status = warm_up(plan, &clocks[i]);
    }
    return status;
}

atn_status rounds_time(const rounds_plan *plan, const rounds_meter *meter,
                       const rounds_flush *flush, int members, const rounds_member *member,
                       rounds_result *result)
{
    rounds_result *r = result;
    *r = (rounds_result){.members = members};
    size_t count = (size_t)members, most = (size_t)plan->most;
    clocked *clocks = must_allocate(count, sizeof *clocks);
    double *seconds = must_allocate(count * most, sizeof *seconds);
    r->calls = must_allocate(count, sizeof *r->calls);
    memset(clocks, 0, count * sizeof *clocks);
    atn_status status = open_clocks(plan, flush, member, clocks, r);
    if (status == ATN_OK)
        status = repeat_rounds(plan, meter, clocks, seconds, r);
    for (int i = 0; i < members; i++) {
        r->calls[i] = clocks[i].calls;
        memmove(seconds + i * r->rounds, seconds + i * plan->most,
                (size_t)r->rounds * sizeof *seconds);
        atn_timer_free(clocks[i].timer);
    }
    r->seconds = seconds;
    free(clocks);
    return status;
}

void rounds_free(rounds_result *result)
{
    free(result->seconds);
    free(result->calls);
    *result = (rounds_result){0};
}

/* ---- Statistics ---- */

/* A quantile of sorted values, interpolated between the two nearest. */
static double quantile(int count, const double *values, double part)
{
    double place = part * (count - 1);
    int low = (int)place, high = low + 1 < count ? low + 1 : low;
    return values[low] + (place - low) * (values[high] - values[low]);
}

static rounds_statistics summarise(int count, double *values)
{
    double middle = median(count, values);
    return (rounds_statistics){
        .median = middle,
        .least = values[0],
        .largest = values[count - 1],
        .low = quantile(count, values, 0.25),
        .high = quantile(count, values, 0.75),
    };
}

rounds_statistics rounds_seconds(const rounds_result *result, int member)
{
    size_t size = (size_t)result->rounds * sizeof(double);
    double *values = must_allocate(size, 1);
    memcpy(values, result->seconds + member * result->rounds, size);
    rounds_statistics s = summarise(result->rounds, values);
    free(values);
    return s;
}

rounds_statistics rounds_ratios(const rounds_result *result, int member, int by)
{
    const double *a = result->seconds + member * result->rounds,
                 *b = result->seconds + by * result->rounds;
    double *values = must_allocate((size_t)result->rounds, sizeof *values);
    for (int i = 0; i < result->rounds; i++)
        values[i] = a[i] / b[i];
    rounds_statistics s = summarise(result->rounds, values);
    free(values);
    return s;
}
