/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <omp.h>

#include "core/backend.h"
#include "core/kernel.h"
#include "cpu/table.h"

double atn_kernel_scale(atn_scale scale, double value, int64_t heads, int64_t dim)
{
    switch (scale) {
    case ATN_SCALE_HEAD:
        return 1 / (2 * sqrt((double)dim));
    case ATN_SCALE_EMBED:
        return 1 / (2 * sqrt((double)heads * (double)dim));
    default:
        return value;
    }
}

static atn_status check_choice(atn_context *context, atn_distance distance, double s)
{
    if (!atn_distance_name(distance))
        return core_fail(context, ATN_ERR_VALUE, "distance: unknown choice %d", (int)distance);
    if (!(s > 0 && s < INFINITY))
        return core_fail(context, ATN_ERR_VALUE, "s is %g, expected positive and finite", s);
    return ATN_OK;
}

/* Runs `one` over all heads, each thread with its own piece of work. */
typedef struct {
    const cpu_table *cpu;
    atn_distance distance;
    double s;
    const atn_tensor *x, *y;
    const atn_tensor *out;
} kernel_job;

static void one_head(const kernel_job *j, int64_t b, int64_t h, void *work)
{
    const void *x = atn_tensor_matrix(j->x, b, h);
    void *out = atn_tensor_matrix(j->out, b, h);
    if (j->y)
        j->cpu->gaussian_cross(j->distance, j->s, j->x->rows, j->y->rows, j->x->cols, x,
                               j->x->row_stride, atn_tensor_matrix(j->y, b, h), j->y->row_stride,
                               out, j->out->row_stride, work);
    else
        j->cpu->gaussian_self(j->distance, j->s, j->x->rows, j->x->cols, x, j->x->row_stride, out,
                              j->out->row_stride, work);
}

atn_status core_cpu_gaussian(atn_context *context, atn_distance distance, double s,
                             const atn_tensor *x, const atn_tensor *y, const atn_tensor *out)
{
    kernel_job job = {.cpu = cpu_table_get(context, x->dtype),
                      .distance = distance,
                      .s = s,
                      .x = x,
                      .y = y,
                      .out = out};
    const kernel_job *j = &job;
    int64_t heads = x->heads, count = x->batch * heads;
    const atn_tensor *landmarks = y ? y : x;
    if (landmarks->rows > INT_MAX / 2 || landmarks->cols > INT_MAX / 2) /* BLAS counts in 32 bits */
        return core_fail(context, ATN_ERR_SHAPE,
                         "%" PRId64 " landmarks of width %" PRId64 ": expected at most %d each",
                         landmarks->rows, landmarks->cols, INT_MAX / 2);
    int64_t elements = j->cpu->gaussian_work(landmarks->rows, j->x->cols);
    core_arena arena = {0};
    core_take(&arena, elements, atn_dtype_size(j->x->dtype));
    size_t piece = arena.used;
    core_take(&arena, context->threads - 1, piece);
    void *memory;
    atn_status status = core_arena_allocate(context, &arena, &memory);
    if (status != ATN_OK)
        return status;
#pragma omp parallel for num_threads(context->threads) schedule(static)
    for (int64_t i = 0; i < count; i++)
        one_head(j, i / heads, i % heads, (char *)memory + piece * (size_t)omp_get_thread_num());
    core_release(context, memory);
    return ATN_OK;
}

static atn_status all_heads(atn_context *context, atn_distance distance, double s,
                            const atn_tensor *x, const atn_tensor *y, const atn_tensor *out)
{
    if (out->batch * out->heads == 0 || out->rows == 0 || out->cols == 0)
        return ATN_OK;
    return context->backend->gaussian(context, distance, s, x, y, out);
}

atn_status atn_gaussian_self(atn_context *context, atn_distance distance, double s,
                             const atn_tensor *landmarks, atn_tensor *a)
{
    atn_status status;
    if (!context)
        return ATN_ERR_NULL;
    if ((status = check_choice(context, distance, s)) != ATN_OK ||
        (status = core_check_tensor(context, "landmarks", landmarks, -1, -1, -1, -1, -1)) !=
            ATN_OK ||
        (status = core_check_tensor(context, "a", a, landmarks->dtype, landmarks->batch,
                                    landmarks->heads, landmarks->rows, landmarks->rows)) !=
            ATN_OK ||
        (status = core_check_alias(context, "a", a, "landmarks", landmarks)) != ATN_OK ||
        (status = core_check_device(context, "landmarks", landmarks)) != ATN_OK ||
        (status = core_check_device(context, "a", a)) != ATN_OK)
        return status;
    return all_heads(context, distance, s, landmarks, NULL, a);
}

atn_status atn_gaussian_cross(atn_context *context, atn_distance distance, double s,
                              const atn_tensor *x, const atn_tensor *y, atn_tensor *out)
{
    atn_status status;
    if (!context)
        return ATN_ERR_NULL;
    if ((status = check_choice(context, distance, s)) != ATN_OK ||
        (status = core_check_tensor(context, "x", x, -1, -1, -1, -1, -1)) != ATN_OK ||
        (status = core_check_tensor(context, "y", y, x->dtype, x->batch, x->heads, -1, x->cols)) !=
            ATN_OK ||
        (status = core_check_tensor(context, "out", out, x->dtype, x->batch, x->heads, x->rows,
                                    y->rows)) != ATN_OK ||
        (status = core_check_alias(context, "out", out, "x", x)) != ATN_OK ||
        (status = core_check_alias(context, "out", out, "y", y)) != ATN_OK ||
        (status = core_check_device(context, "x", x)) != ATN_OK ||
        (status = core_check_device(context, "y", y)) != ATN_OK ||
        (status = core_check_device(context, "out", out)) != ATN_OK)
        return status;
    return all_heads(context, distance, s, x, y, out);
}
