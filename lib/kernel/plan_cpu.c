/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices of the Gaussian kernel on the CPU, head by head. */
#include <inttypes.h>
#include <limits.h>
#include <omp.h>

#include "cpu/backend.h"
#include "cpu/table.h"

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

atn_status cpu_gaussian(atn_context *context, atn_distance distance, double s, const atn_tensor *x,
                        const atn_tensor *y, const atn_tensor *out)
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
    if (landmarks->rows > INT_MAX / 2 || landmarks->cols > INT_MAX / 2) /* BLAS's integers have 32
                                                                           bits */
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
