/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers and the work of known cost that every device has (cpu/timing.c: that of the CPU alone). */
#include "core/timing.h"

#include <attnum/timing.h>
#include <inttypes.h>

#include "core/backend.h"

enum { START, STOP, MARKS };

struct atn_timer {
    atn_context *context;
    void *marks[MARKS]; /* the backend's events; null: not set yet */
};

atn_status atn_timer_create(atn_context *context, atn_timer **timer)
{
    void *memory;
    if (!context || !timer)
        return core_fail(context, ATN_ERR_NULL, "context or timer is null");
    *timer = NULL;
    atn_status status = core_allocate(context, sizeof **timer, &memory);
    if (status != ATN_OK)
        return status;
    *timer = memory;
    **timer = (atn_timer){.context = context};
    return ATN_OK;
}

void atn_timer_free(atn_timer *timer)
{
    if (!timer)
        return;
    for (int i = 0; i < MARKS; i++)
        if (timer->marks[i])
            timer->context->backend->free_mark(timer->context, timer->marks[i]);
    core_release(timer->context, timer);
}

static atn_status mark(atn_timer *timer, int which)
{
    if (!timer)
        return ATN_ERR_NULL;
    return timer->context->backend->mark(timer->context, &timer->marks[which]);
}

atn_status atn_timer_start(atn_timer *timer)
{
    return mark(timer, START);
}

atn_status atn_timer_stop(atn_timer *timer)
{
    return mark(timer, STOP);
}

atn_status atn_timer_elapsed(atn_timer *timer, double *seconds)
{
    if (!timer || !seconds)
        return core_fail(timer ? timer->context : NULL, ATN_ERR_NULL, "timer or seconds is null");
    if (!timer->marks[START] || !timer->marks[STOP])
        return core_fail(timer->context, ATN_ERR_VALUE, "the timer was not started and stopped");
    return timer->context->backend->between(timer->context, timer->marks[START], timer->marks[STOP],
                                            seconds);
}

atn_status atn_timer_inverses(atn_context *context, atn_timer *timer)
{
    if (!context)
        return ATN_ERR_NULL;
    if (timer && timer->context != context)
        return core_fail(context, ATN_ERR_VALUE, "the timer is another context's");
    for (int i = 0; i < MARKS; i++)
        context->inverse_marks[i] = timer ? &timer->marks[i] : NULL;
    return ATN_OK;
}

static atn_status mark_inverses(atn_context *context, int which)
{
    void **mark = context->inverse_marks[which];
    return mark ? context->backend->mark(context, mark) : ATN_OK;
}

atn_status core_inverses_start(atn_context *context)
{
    return mark_inverses(context, START);
}

atn_status core_inverses_stop(atn_context *context)
{
    return mark_inverses(context, STOP);
}

atn_status atn_copy(atn_context *context, void *to, const void *from, size_t bytes)
{
    if (!context)
        return ATN_ERR_NULL;
    if (bytes > 0 && (!to || !from))
        return core_fail(context, ATN_ERR_NULL, "%zu bytes to copy, but an end is null", bytes);
    return context->backend->copy(context, to, from, bytes);
}

atn_status atn_multiply_add(atn_context *context, atn_dtype dtype, int64_t steps, void *scratch,
                            double *flops)
{
    if (!context || !scratch || !flops)
        return core_fail(context, ATN_ERR_NULL, "context, scratch or flops is null");
    if (steps < 1)
        return core_fail(context, ATN_ERR_VALUE, "steps is %" PRId64 ", expected at least 1",
                         steps);
    *flops = 0;
    return context->backend->multiply_add(context, dtype, steps, scratch, flops);
}
