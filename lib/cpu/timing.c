/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU's clock, and the work of known cost (attnum/timing.h). */
#include <attnum/timing.h>
#include <inttypes.h>
#include <time.h>

#include "cpu/backend.h"
#include "cpu/table.h"

atn_status cpu_mark(atn_context *context, void **mark)
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

void cpu_free_mark(atn_context *context, void *mark)
{
    core_release(context, mark);
}

atn_status cpu_between(atn_context *context, const void *from, const void *to, double *seconds)
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

atn_status cpu_multiply_add(atn_context *context, atn_dtype dtype, int64_t steps, void *scratch,
                            double *flops)
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
