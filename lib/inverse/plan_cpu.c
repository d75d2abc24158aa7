/* SPDX-License-Identifier: BSD-3-Clause */
/* Inverses on the CPU: memory for a batch of matrices, and the calls (cpu.c runs them). */
#include <math.h>
#include <string.h>

#include "core/timing.h"
#include "cpu/backend.h"
#include "inverse/plan.h"
#include "inverse/plan_cpu.h"
#include "inverse/trace.h"

void cpu_inverse_layout(core_arena *arena, const cpu_table *cpu, const atn_inverse_desc *desc,
                        atn_dtype dtype, int64_t m, int64_t count, int threads, bool traced,
                        cpu_inverse_memory *memory)
{
    cpu->inverse_work(desc, m, memory);
    memory->work = core_take(arena, memory->reals * threads, atn_dtype_size(dtype));
    memory->int_work = core_take(arena, memory->ints * threads, sizeof(int));
    memory->trace_work =
        core_take(arena, traced ? core_trace_work(m) * threads : 0, sizeof(double));
    memory->starts = core_take(arena, count, sizeof(double));
    memory->infos = core_take(arena, count, sizeof(atn_inverse_info));
    memory->pivots = core_take(arena, count * m, sizeof(int));
    memory->factors = core_take(arena, count, sizeof(cpu_factor));
}

static bool symmetric(const atn_tensor *a, int64_t batch, int64_t head)
{
    const char *matrix = atn_tensor_matrix(a, batch, head);
    size_t size = atn_dtype_size(a->dtype);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < i; j++) {
            const char *lower = matrix + (size_t)(i * a->row_stride + j) * size;
            const char *upper = matrix + (size_t)(j * a->row_stride + i) * size;
            double l = a->dtype == ATN_F32 ? (double)*(const float *)lower : *(const double *)lower;
            double u = a->dtype == ATN_F32 ? (double)*(const float *)upper : *(const double *)upper;
            if (l != u && !(isnan(l) && isnan(u)))
                return false;
        }
    return true;
}

atn_status cpu_find_asymmetric(atn_context *context, const atn_tensor *a, int64_t *index)
{
    int64_t count = a->rows > 0 ? a->batch * a->heads : 0, first = count;
    int neighbours = core_inverse_neighbours(context, count);
#pragma omp parallel for num_threads(context->threads) schedule(static, neighbours)                \
    reduction(min                                                                                  \
              : first)
    for (int64_t i = 0; i < count; i++)
        if (i < first && !symmetric(a, i / a->heads, i % a->heads))
            first = i;
    *index = first < count ? first : -1;
    return ATN_OK;
}

/* Whether a matrix holds only numbers of the type; NaN and infinity are found elsewhere. */
static bool is_stored(atn_storage storage, const atn_tensor *a, int64_t batch, int64_t head)
{
    const float *matrix = atn_tensor_matrix(a, batch, head);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->rows; j++) {
            float rounded = matrix[i * a->row_stride + j];
            atn_storage_round(storage, 1, &rounded);
            if (rounded != matrix[i * a->row_stride + j] && !isnan(rounded))
                return false;
        }
    return true;
}

atn_status cpu_find_unstored(atn_context *context, atn_storage storage, const atn_tensor *a,
                             int64_t *index)
{
    (void)context;
    *index = -1;
    for (int64_t i = 0; *index < 0 && i < a->batch * a->heads; i++)
        if (!is_stored(storage, a, i / a->heads, i % a->heads))
            *index = i;
    return ATN_OK;
}

atn_status cpu_inverse(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                       atn_tensor *x, atn_inverse_info *infos, atn_trace *traces)
{
    atn_status status;
    int64_t count = a->batch * a->heads;
    if (core_inverse_too_large(a->rows, count, context->threads))
        return core_fail(context, ATN_ERR_SHAPE, "a: the workspace does not fit into memory");
    const cpu_table *cpu = cpu_table_get(context, a->dtype);
    cpu_inverse_memory memory = {0};
    core_arena arena = {0};
    void *block;
    cpu_inverse_layout(&arena, cpu, desc, a->dtype, a->rows, count, context->threads, traces,
                       &memory);
    if ((status = core_arena_allocate(context, &arena, &block)) != ATN_OK)
        return status;
    cpu_inverse_layout(&arena, cpu, desc, a->dtype, a->rows, count, context->threads, traces,
                       &memory);
    if ((status = core_inverses_start(context)) == ATN_OK)
        status = cpu->inverse_batch(context, desc, a, x, false, &memory, traces);
    if (status >= 0 && core_inverses_stop(context) != ATN_OK)
        status = ATN_ERR_MEMORY;
    if (infos && status != ATN_ERR_MEMORY) /* ATN_ERR_MEMORY is a timer's: there may be no infos */
        memcpy(infos, memory.infos, (size_t)count * sizeof *infos);
    core_release(context, block);
    return status;
}

/* Backward's memory, in addition to that of the inverse. */
static void layout_backward(core_arena *arena, const cpu_table *cpu, const atn_inverse_desc *desc,
                            atn_gradient gradient, const atn_tensor *a, int threads,
                            cpu_inverse_adjoint *memory)
{
    int64_t count = a->batch * a->heads, m = a->rows;
    size_t size = atn_dtype_size(a->dtype);
    cpu_inverse_layout(arena, cpu, desc, a->dtype, m, count, threads, false, &memory->inverse);
    memory->reals = m * m + cpu->inverse_backward_work(desc, gradient, m);
    memory->work = core_take(arena, memory->reals * threads, size);
    memory->x = core_take(arena, count * m * m, size);
    memory->slopes = core_take(arena, count, sizeof(double));
}

atn_status cpu_inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                atn_gradient gradient, const atn_tensor *a, const atn_tensor *dx,
                                atn_tensor *da, atn_inverse_info *infos)
{
    atn_status status;
    int64_t count = a->batch * a->heads;
    if (core_inverse_too_large(a->rows, count, context->threads) ||
        core_inverse_backward_too_large(desc, gradient, a->rows, context->threads))
        return core_fail(context, ATN_ERR_SHAPE, "a: the workspace does not fit into memory");
    const cpu_table *cpu = cpu_table_get(context, a->dtype);
    cpu_inverse_adjoint memory = {0};
    core_arena arena = {0};
    void *block;
    layout_backward(&arena, cpu, desc, gradient, a, context->threads, &memory);
    if ((status = core_arena_allocate(context, &arena, &block)) != ATN_OK)
        return status;
    layout_backward(&arena, cpu, desc, gradient, a, context->threads, &memory);
    if ((status = core_inverses_start(context)) == ATN_OK)
        status = cpu->inverse_backward_batch(context, desc, gradient, a, dx, da, &memory);
    if (status >= 0 && core_inverses_stop(context) != ATN_OK)
        status = ATN_ERR_MEMORY;
    if (infos && status != ATN_ERR_MEMORY)
        memcpy(infos, memory.inverse.infos, (size_t)count * sizeof *infos);
    core_release(context, block);
    return status;
}

/* Its memory, in addition to that of the inverse. */
static void layout_apply(core_arena *arena, const cpu_table *cpu, const atn_inverse_desc *desc,
                         const atn_tensor *a, const atn_tensor *w, int threads,
                         cpu_inverse_memory *memory, void **squares, void **work)
{
    size_t size = atn_dtype_size(a->dtype);
    int64_t count = a->batch * a->heads;
    cpu_inverse_layout(arena, cpu, desc, a->dtype, a->rows, count, threads, false, memory);
    bool squared = core_is_newton(desc) && desc->search == ATN_SEARCH_SQUARE;
    *squares = core_take(arena, squared ? count * a->rows * a->rows : 0, size);
    *work = core_take(arena, threads * cpu->inverse_apply_work(desc, w->rows, w->cols), size);
}

static bool apply_too_large(const atn_tensor *a, const atn_tensor *w, int threads)
{
    double m = (double)a->rows, count = (double)a->batch * (double)a->heads;
    return core_inverse_too_large(a->rows, a->batch * a->heads, threads) ||
           core_too_large(count * m * m) || core_too_large(threads * m * (m + (double)w->cols));
}

atn_status cpu_inverse_apply(atn_context *context, const atn_inverse_desc *desc,
                             const atn_tensor *a, const atn_tensor *w, atn_tensor *y,
                             atn_inverse_info *infos)
{
    const cpu_table *cpu = cpu_table_get(context, a->dtype);
    cpu_inverse_memory memory = {0};
    core_arena arena = {0};
    void *block, *squares, *work;
    if (apply_too_large(a, w, context->threads))
        return core_fail(context, ATN_ERR_SHAPE, "a: the workspace does not fit into memory");
    layout_apply(&arena, cpu, desc, a, w, context->threads, &memory, &squares, &work);
    atn_status status = core_arena_allocate(context, &arena, &block);
    if (status != ATN_OK)
        return status;
    layout_apply(&arena, cpu, desc, a, w, context->threads, &memory, &squares, &work);
    atn_tensor matrices = atn_tensor_dense(squares, a->dtype, a->batch, a->heads, a->rows, a->rows);
    if ((status = core_inverses_start(context)) == ATN_OK)
        status = cpu->inverse_apply(context, desc, a, &matrices, &memory, w, y, work);
    if (status >= 0 && core_inverses_stop(context) != ATN_OK)
        status = ATN_ERR_MEMORY;
    if (infos && status != ATN_ERR_MEMORY)
        memcpy(infos, memory.infos, (size_t)(a->batch * a->heads) * sizeof *infos);
    core_release(context, block);
    return status;
}
