/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers and the work of known cost. */
#include "core/timing.h"

#include <attnum/timing.h>
#include <inttypes.h>
#include <time.h>

#include "core/backend.h"
#include "cpu/table.h"

enum { START, STOP, MARKS };

struct atn_timer {
    atn_context *context;
    void *marks[MARKS]; /* the backend's; null: not set yet */
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

atn_status atn_timer_inside(atn_context *context, atn_timer *timer)
{
    if (!context)
        return ATN_ERR_NULL;
    if (timer && timer->context != context)
        return core_fail(context, ATN_ERR_VALUE, "the timer is another context's");
    for (int i = 0; i < MARKS; i++)
        context->inside[i] = timer ? &timer->marks[i] : NULL;
    return ATN_OK;
}

static atn_status mark_inside(atn_context *context, int which)
{
    void **mark = context->inside[which];
    return mark ? context->backend->mark(context, mark) : ATN_OK;
}

atn_status core_inside_start(atn_context *context)
{
    return mark_inside(context, START);
}

atn_status core_inside_stop(atn_context *context)
{
    return mark_inside(context, STOP);
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

/* ---- The CPU ---- */

atn_status core_cpu_mark(atn_context *context, void **mark)
{
    struct timespec *now = *mark;
    if (!now) {
        atn_status status = core_allocate(context, sizeof *now, mark);
        if (status != ATN_OK)
            return status;
        now = *mark;
    }
    clock_gettime(CLOCK_MONOTONIC, now);
    return ATN_OK;
}

void core_cpu_free_mark(atn_context *context, void *mark)
{
    core_release(context, mark);
}

atn_status core_cpu_between(atn_context *context, const void *from, const void *to, double *seconds)
{
    const struct timespec *a = from, *b = to;
    (void)context;
    *seconds = (double)(b->tv_sec - a->tv_sec) + 1e-9 * (double)(b->tv_nsec - a->tv_nsec);
    return ATN_OK;
}

static atn_status check_cpu_type(atn_context *context, atn_dtype dtype)
{
    if (atn_context_device(context) != ATN_CPU || (dtype != ATN_F32 && dtype != ATN_F64))
        return core_fail(context, ATN_ERR_UNSUPPORTED, "%s on %s is not measured",
                         atn_dtype_name(dtype), atn_device_name(atn_context_device(context)));
    return ATN_OK;
}

atn_status core_cpu_multiply_add(atn_context *context, atn_dtype dtype, int64_t steps,
                                 void *scratch, double *flops)
{
    atn_status status = check_cpu_type(context, dtype);
    if (status == ATN_OK)
        *flops = cpu_table_get(context, dtype)->multiply_adds(context->threads, steps, scratch);
    return status;
}

atn_status atn_exponentials(atn_context *context, atn_dtype dtype, int64_t rounds, int64_t count,
                            void *x, double *exps)
{
    if (!context || !exps || (count > 0 && !x))
        return core_fail(context, ATN_ERR_NULL, "context, x or exps is null");
    *exps = 0;
    if (rounds < 0 || count < 0)
        return core_fail(context, ATN_ERR_VALUE, "rounds or count is below 0");
    atn_status status = check_cpu_type(context, dtype);
    if (status == ATN_OK) {
        cpu_table_get(context, dtype)->exponentials(context->threads, rounds, count, x);
        *exps = (double)context->threads * (double)rounds * (double)count;
    }
    return status;
}

atn_status atn_product(atn_context *context, atn_dtype dtype, const atn_product_shape *shape,
                       const void *a, const void *b, void *c)
{
    if (!context || !shape)
        return core_fail(context, ATN_ERR_NULL, "context or shape is null");
    if (shape->rows < 0 || shape->cols < 0 || shape->inner < 0)
        return core_fail(context, ATN_ERR_VALUE,
                         "a product of %" PRId64 " x %" PRId64 ", %" PRId64 " shared", shape->rows,
                         shape->cols, shape->inner);
    bool empty = shape->rows == 0 || shape->cols == 0;
    if (!empty && (!c || (shape->inner > 0 && (!a || !b))))
        return core_fail(context, ATN_ERR_NULL, "a matrix is null");
    atn_status status = check_cpu_type(context, dtype);
    if (status == ATN_OK && !empty)
        cpu_table_get(context, dtype)->product(shape, a, b, c);
    return status;
}
