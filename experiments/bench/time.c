/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/time.h"

#include <math.h>
#include <stdlib.h>

#include "bench/subject.h"
#include "common/median.h"
#include "common/progress.h"
#include "common/report.h"

/* A cache that is not known is taken for this large. */
static const size_t usual_cache = (size_t)32 << 20;

atn_status time_flush_open(atn_context *context, time_flush *flush)
{
    atn_device_info info;
    void *memory = NULL;
    atn_status status = atn_device_describe(atn_context_device(context), 0, &info);
    size_t cache =
        status == ATN_OK && info.cache_bytes > 0 ? (size_t)info.cache_bytes : usual_cache;
    *flush = (time_flush){.half = 2 * cache + 4096};
    if (status == ATN_OK)
        status = atn_allocate(context, 2 * flush->half, &memory);
    if (status != ATN_OK)
        return status;
    float *values = must_allocate(flush->half, 1);
    subject_numbers(0, (int64_t)(flush->half / sizeof *values), values);
    status = atn_upload(context, memory, values, flush->half);
    free(values);
    flush->memory = memory;
    return status;
}

void time_flush_close(atn_context *context, time_flush *flush)
{
    atn_release(context, flush->memory);
    *flush = (time_flush){0};
}

/* A quantile of sorted values, between the two nearest. */
static double quantile(int count, const double *values, double part)
{
    double place = part * (count - 1);
    int low = (int)place, high = low + 1 < count ? low + 1 : low;
    return values[low] + (place - low) * (values[high] - values[low]);
}

static time_result summarise(int count, double *seconds)
{
    double middle = median(count, seconds);
    return (time_result){
        .repeats = count,
        .median = middle,
        .smallest = seconds[0],
        .largest = seconds[count - 1],
        .spread = (quantile(count, seconds, 0.75) - quantile(count, seconds, 0.25)) / middle,
    };
}

/* The flush keeps the device busy while the host enqueues the work, so that the time holds no
 * launches. */
static atn_status time_one(atn_context *context, atn_timer *timer, bool inside,
                           const time_flush *flush, atn_status (*work)(void *state, int repeat),
                           void *state, int repeat, double *seconds)
{
    atn_status status = ATN_OK;
    if (flush)
        status = atn_copy(context, flush->memory + flush->half, flush->memory, flush->half);
    if (status == ATN_OK && !inside)
        status = atn_timer_start(timer);
    if (status == ATN_OK)
        status = work(state, repeat);
    if (status == ATN_OK && !inside)
        status = atn_timer_stop(timer);
    return status == ATN_OK ? atn_timer_elapsed(timer, seconds) : status;
}

atn_status time_repeats(atn_context *context, const time_plan *plan, const time_flush *flush,
                        atn_status (*work)(void *state, int repeat), void *state,
                        time_result *result)
{
    atn_timer *timer;
    atn_status status = atn_timer_create(context, &timer);
    double *seconds = must_allocate((size_t)plan->most, sizeof *seconds);
    int done = 0;
    if (status == ATN_OK && plan->inside)
        status = atn_timer_inside(context, timer);
    double start = progress_seconds();
    int warm_ups = 0; /* fewer of what takes long */
    while (status == ATN_OK && warm_ups < plan->warm_ups &&
           (warm_ups == 0 || progress_seconds() - start < 1))
        status =
            time_one(context, timer, plan->inside, flush, work, state, warm_ups++, &seconds[0]);
    start = progress_seconds();
    while (status == ATN_OK && done < plan->most &&
           (done < plan->least || progress_seconds() - start < plan->seconds)) {
        status = time_one(context, timer, plan->inside, flush, work, state, warm_ups + done,
                          &seconds[done]);
        done++;
    }
    if (status == ATN_OK)
        *result = summarise(done, seconds);
    atn_timer_inside(context, NULL);
    atn_timer_free(timer);
    free(seconds);
    return status;
}
