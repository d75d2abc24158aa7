/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "common/median.h"
#include "common/report.h"

static double thread_seconds(void *state)
{
    struct timespec now;
    (void)state;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const pair_meter pair_machine = {thread_seconds, machine_ticks_read, NULL};

/* ---- Statistics ---- */

pair_statistics pair_statistics_of(int count, double *values)
{
    bool finite = count > 0;
    for (int i = 0; i < count; i++)
        finite &= isfinite(values[i]) != 0;
    if (!finite)
        return (pair_statistics){NAN, NAN, NAN};
    double middle = median(count, values); /* sorts */
    return (pair_statistics){middle, values[0], values[count - 1]};
}

double pair_crossover(int64_t points, const double *x, const double *y)
{
    double found = NAN;
    for (int64_t i = 1; i < points; i++) {
        if ((y[i - 1] < 1) == (y[i] < 1))
            continue;
        if (!(y[i - 1] < 1) || !isnan(found))
            return NAN;
        double part = log(y[i - 1]) / (log(y[i - 1]) - log(y[i]));
        found = x[i - 1] * pow(x[i] / x[i - 1], part);
    }
    return found;
}

/* ---- Timing ---- */

/* Seconds per repetition. */
static double time_side(const pair_meter *meter, const pair_side *side, int64_t times)
{
    double start = meter->seconds(meter->state);
    side->work(side->state, times);
    return (meter->seconds(meter->state) - start) / (double)times;
}

/* The number of repetitions that take at least `least` seconds, estimated from the second call. */
static int64_t choose_times(const pair_meter *meter, const pair_side *side, double least,
                            double *once)
{
    time_side(meter, side, 1);
    int64_t times = 1;
    *once = time_side(meter, side, 1);
    while (*once * (double)times < least && times < INT64_C(1) << 30) {
        times *= 2;
        *once = time_side(meter, side, times);
    }
    return times;
}

/* Times one pair. Returns whether other processes were at work: 1, 0, or -1 if that is not known.
 */
static int time_pair(const pair_meter *meter, const pair_side *const sides[2],
                     const int64_t times[2], double seconds[2])
{
    machine_ticks before = {0}, after = {0};
    bool known = meter->ticks(meter->state, &before);
    for (int i = 0; i < 2; i++)
        seconds[i] = time_side(meter, sides[i], times[i]);
    known &= meter->ticks(meter->state, &after);
    return known ? machine_is_dirty(&before, &after) : -1;
}

static int count_pairs(const pair_plan *plan, double once)
{
    int fewer = plan->pairs / 2 > 3 ? plan->pairs / 2 : 3;
    return once > plan->most_once && fewer < plan->pairs ? fewer : plan->pairs;
}

pair_result pair_time(const pair_meter *meter, const pair_side *a, const pair_side *b,
                      const pair_plan *plan)
{
    const pair_side *const sides[2] = {a, b};
    double once[2];
    pair_result r = {0};
    for (int i = 0; i < 2; i++)
        r.times[i] = choose_times(meter, sides[i], plan->least, &once[i]);
    r.pairs = count_pairs(plan, fmax(once[0], once[1]));
    double *values = must_allocate(4 * (size_t)r.pairs, sizeof *values);
    double *ratios = values, *differences = values + r.pairs;
    double *times[2] = {values + 2 * r.pairs, values + 3 * r.pairs};
    for (int i = 0; i < r.pairs; i++) {
        double seconds[2];
        int dirty;
        while ((dirty = time_pair(meter, sides, r.times, seconds)) > 0 && r.repeated < plan->again)
            r.repeated++;
        r.dirty = dirty < 0 || r.dirty < 0 ? -1 : r.dirty + dirty;
        ratios[i] = seconds[0] / seconds[1];
        differences[i] = seconds[0] - seconds[1];
        times[0][i] = seconds[0];
        times[1][i] = seconds[1];
    }
    r.ratio = pair_statistics_of(r.pairs, ratios);
    r.difference = pair_statistics_of(r.pairs, differences);
    for (int i = 0; i < 2; i++)
        r.seconds[i] = pair_statistics_of(r.pairs, times[i]).median;
    free(values);
    return r;
}
