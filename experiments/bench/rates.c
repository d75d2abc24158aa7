/* SPDX-License-Identifier: BSD-3-Clause */
/* The best rates of a device, measured in the same run: of copying, fused multiply-adds and exp. */
#include <attnum/timing.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rounds.h"
#include "bench/workload.h"
#include "common/report.h"

/* ---- Copying ---- */

/* 1 GiB, or a sixteenth of a small device's memory; 128 MiB if its memory is not known. */
static size_t copy_bytes(atn_context *context)
{
    static const size_t most = (size_t)1 << 30, usual = (size_t)1 << 27;
    atn_device_info info;
    if (atn_device_describe(atn_context_device(context), 0, &info) != ATN_OK ||
        info.memory_bytes <= 0)
        return usual;
    size_t part = (size_t)info.memory_bytes / 16 / 64 * 64;
    return part < most ? part : most;
}

static void open_copy(workload_store *store, workload *s)
{
    size_t bytes = copy_bytes(s->context);
    s->work = workload_take(s, 2 * bytes);
    s->bytes = 2 * (double)bytes;
    if (s->status != ATN_OK)
        return;
    float *values = must_allocate(bytes, 1);
    workload_numbers(0, (int64_t)(bytes / sizeof *values), values);
    for (size_t i = 0; i < 2 && s->status == ATN_OK; i++)
        s->status = atn_upload(s->context, (char *)s->work + i * bytes, values, bytes);
    free(values);
}

/* On the CPU every thread copies a part. */
static atn_status run_copy(workload *s, int set)
{
    size_t bytes = (size_t)(s->bytes / 2);
    char *from = s->work, *to = from + bytes;
    if (atn_context_device(s->context) != ATN_CPU)
        return atn_copy(s->context, to, from, bytes);
    int threads = s->c->threads;
    size_t part = bytes / (size_t)threads / 64 * 64;
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < threads; i++) {
        size_t first = (size_t)i * part;
        memcpy(to + first, from + first, i + 1 < threads ? part : bytes - first);
    }
    return ATN_OK;
}

const workload_kind rate_copy = {open_copy, run_copy};

/* ---- Multiply-adds ---- */

static atn_status run_arithmetic(workload *s, int set)
{
    return atn_multiply_add(s->context, s->c->dtype, s->steps, s->work, &s->flops);
}

static double time_arithmetic(workload *s, atn_timer *timer)
{
    double seconds = 0;
    s->status = atn_timer_start(timer);
    if (s->status == ATN_OK)
        s->status = run_arithmetic(s, 0);
    if (s->status == ATN_OK)
        s->status = atn_timer_stop(timer);
    if (s->status == ATN_OK)
        s->status = atn_timer_elapsed(timer, &seconds);
    return seconds;
}

/* Chooses a number of steps with which the fastest of several calls takes at least a
 * millisecond. */
static void open_arithmetic(workload_store *store, workload *s)
{
    atn_timer *timer = NULL;
    s->work = workload_take(s, 64);
    s->steps = 16;
    if (s->status == ATN_OK)
        s->status = atn_timer_create(s->context, &timer);
    rounds_gather_threads(s->context);
    if (s->status == ATN_OK)
        s->status = run_arithmetic(s, 0);
    for (int trial = 0; trial < ROUNDS_TRIALS && s->status == ATN_OK; trial++)
        if (!(time_arithmetic(s, timer) >= 1e-3) && s->steps < (int64_t)1 << 30) {
            s->steps *= 4;
            trial = -1;
        }
    atn_timer_free(timer);
}

const workload_kind rate_arithmetic = {open_arithmetic, run_arithmetic};

/* ---- Exponentials ---- */

/* few enough for each thread that they stay in its first-level cache */
enum { NUMBERS = 2048 };

static void open_exponentials(workload_store *store, workload *s)
{
    s->work = workload_take_numbers(s, (int64_t)s->c->threads * NUMBERS);
}

static atn_status run_exponentials(workload *s, int set)
{
    return atn_exponentials(s->context, s->c->dtype, WORKLOAD_EXPONENTIALS, NUMBERS, s->work,
                            &s->exps);
}

const workload_kind rate_exponentials = {open_exponentials, run_exponentials};
