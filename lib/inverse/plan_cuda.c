/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's part of the inverses on CUDA: the memory, and the functions of the backend. */
#include "inverse/cuda.h"

#include <math.h>
#include <string.h>

#include "core/timing.h"
#include "cuda/device.h"
#include "cuda/matrices.h"
#include "inverse/plan.h"
#include "inverse/trace.h"

/* The least number of blocks that run at a time, even if their work exceeds CUDA_INVERSE_MOST_WORK
 * bytes; and the most matrices of a batch, the limit of a grid's second dimension. */
enum { LEAST_BLOCKS = 132, MOST_BATCHED = 65535 };
#ifndef CUDA_INVERSE_MOST_WORK
#define CUDA_INVERSE_MOST_WORK 0x1p30
#endif

const cuda_inverse_table *cuda_inverse_get(atn_dtype dtype)
{
    return dtype == ATN_F64 ? &cuda_inverse_f64 : &cuda_inverse_f32;
}

const cuda_adjoint_table *cuda_adjoint_get(atn_dtype dtype)
{
    return dtype == ATN_F64 ? &cuda_adjoint_f64 : &cuda_adjoint_f32;
}

const cuda_matrices_table *cuda_matrices_get(atn_dtype dtype)
{
    return dtype == ATN_F64 ? &cuda_matrices_f64 : &cuda_matrices_f32;
}

static size_t computed_size(atn_dtype dtype)
{
    return dtype == ATN_F64 ? sizeof(double) : sizeof(float);
}

static int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Blocks that run at a time if each has `bytes` of work. */
static int64_t blocks_for(int64_t count, int64_t least, double bytes)
{
    double most = CUDA_INVERSE_MOST_WORK / bytes;
    return smaller_of(count, most > (double)least ? (int64_t)most : least);
}

bool cuda_inverse_is_batched(const atn_inverse_desc *desc, int64_t m)
{
    return m > CUDA_INVERSE_BLOCK_MOST && desc->method < ATN_INVERSE_EIG;
}

static void *take(core_arena *arena, int64_t count, double each, size_t size)
{
    arena->overflow |= core_too_large((double)count * each);
    return arena->overflow ? NULL : core_take(arena, count * (int64_t)each, size);
}

void cuda_inverse_layout(core_arena *arena, const atn_inverse_desc *desc, atn_dtype dtype,
                         int64_t m, int64_t count, bool keep_factor, cuda_inverse *inverse)
{
    size_t size = computed_size(dtype);
    *inverse = (cuda_inverse){
        .desc = *desc,
        .dtype = dtype,
        .m = m,
        .count = count,
        .batched = cuda_inverse_is_batched(desc, m),
        .keep_factor = keep_factor && desc->method == ATN_INVERSE_PIVOTED_CHOLESKY,
    };
    if (core_inverse_too_large(m, count, 1)) {
        arena->overflow = true;
        return;
    }
    bool searched = desc->search != ATN_SEARCH_NONE;
    inverse->reals = cuda_inverse_get(dtype)->work_reals(desc, m, inverse->batched);
    inverse->blocks = blocks_for(count, inverse->batched ? 1 : LEAST_BLOCKS,
                                 (double)inverse->reals * (double)size);
    if (inverse->batched) {
        double strips = ceil((double)m / CUDA_INVERSE_STRIP);
        inverse->blocks = smaller_of(inverse->blocks, MOST_BATCHED);
        inverse->runs = take(arena, inverse->blocks, 1, sizeof *inverse->runs);
        inverse->partials =
            take(arena, inverse->blocks, CUDA_INVERSE_PARTIALS * strips, sizeof(double));
    }
    inverse->work = take(arena, inverse->blocks, (double)inverse->reals, size);
    inverse->starts = take(arena, count, 1, sizeof(double));
    inverse->accepted = take(arena, count, searched ? desc->search_cap + 1.0 : 0, 1);
    inverse->pivots = take(arena, count, (double)m, sizeof(int));
    inverse->infos = take(arena, count, 1, sizeof(atn_inverse_info));
}

void cuda_inverse_adjoint_layout(core_arena *arena, const cuda_inverse *inverse,
                                 atn_gradient gradient, cuda_inverse_adjoint *adjoint)
{
    size_t size = computed_size(inverse->dtype);
    *adjoint = (cuda_inverse_adjoint){.inverse = inverse, .gradient = gradient};
    if (core_inverse_backward_too_large(&inverse->desc, gradient, inverse->m, 1)) {
        arena->overflow = true;
        return;
    }
    adjoint->reals =
        cuda_adjoint_get(inverse->dtype)->work_reals(&inverse->desc, gradient, inverse->m);
    adjoint->blocks =
        blocks_for(inverse->count, LEAST_BLOCKS, (double)adjoint->reals * (double)size);
    adjoint->work = take(arena, adjoint->blocks, (double)adjoint->reals, size);
    adjoint->slopes = take(arena, inverse->count, 2, sizeof(double));
}

/* ---- A call of atn_inverse ---- */

/* The device's memory. */
typedef struct {
    cuda_inverse inverse;
    cuda_inverse_adjoint adjoint;
    void *a, *x, *grad_x, *grad_a; /* dense, in the type of the arithmetic */
    int64_t entries;               /* of a trace */
    void *block;
} device_call;

static atn_storage narrow_result(atn_dtype dtype)
{
    return dtype == ATN_BF16  ? ATN_STORAGE_BF16
           : dtype == ATN_F16 ? ATN_STORAGE_F16
                              : ATN_STORAGE_NATIVE;
}

static void layout(core_arena *arena, const atn_inverse_desc *desc, const atn_gradient *gradient,
                   const atn_tensor *a, int64_t entries, device_call *call)
{
    int64_t count = a->batch * a->heads;
    double matrix = (double)a->rows * (double)a->rows;
    size_t size = computed_size(a->dtype);
    cuda_inverse_layout(arena, desc, a->dtype, a->rows, count, false, &call->inverse);
    call->inverse.result = gradient ? ATN_STORAGE_NATIVE : narrow_result(a->dtype);
    call->a = take(arena, count, matrix, size);
    call->x = take(arena, count, matrix, size);
    call->entries = entries;
    if (entries > 0) {
        call->inverse.iterates = take(arena, count, (double)entries * matrix, size);
        call->inverse.recorded = take(arena, count, 1, sizeof(int));
    }
    if (gradient) {
        cuda_inverse_adjoint_layout(arena, &call->inverse, *gradient, &call->adjoint);
        call->grad_x = take(arena, count, matrix, size);
        call->grad_a = take(arena, count, matrix, size);
    }
}

static atn_status open_call(atn_context *context, const atn_inverse_desc *desc,
                            const atn_gradient *gradient, const atn_tensor *a, int64_t entries,
                            device_call *call)
{
    core_arena arena = {0};
    *call = (device_call){0};
    layout(&arena, desc, gradient, a, entries, call);
    if (arena.overflow)
        return core_fail(context, ATN_ERR_SHAPE, "a: the workspace does not fit into memory");
    void *blas;
    atn_status status = call->inverse.batched ? device_blas(context, &blas) : ATN_OK;
    if (status == ATN_OK)
        status = device_allocate(context, arena.used, &call->block);
    if (status != ATN_OK)
        return status;
    arena = (core_arena){.base = call->block};
    layout(&arena, desc, gradient, a, entries, call);
    return cuda_matrices_get(a->dtype)->gather(context, a, call->a);
}

/* Fetches the infos, if asked for, and returns the worst status. */
static atn_status fetch_infos(atn_context *context, const device_call *call,
                              atn_inverse_info *infos)
{
    atn_status worst = ATN_OK;
    for (int64_t i = 0; i < call->inverse.count; i++) {
        atn_inverse_info one, *info = infos ? &infos[i] : &one;
        if (!infos || i == 0) { /* all at once if the caller has room for them */
            atn_status status =
                device_download(context, info, call->inverse.infos + i,
                                (size_t)(infos ? call->inverse.count : 1) * sizeof *info);
            if (status != ATN_OK)
                return status;
        }
        worst = core_worse(worst, info->status);
    }
    return worst;
}

/* ---- Traces: every iterate is copied to the host and measured there ---- */

/* The host's memory for one matrix at a time. */
typedef struct {
    void *a, *x;
    double *work;
} trace_memory;

static void layout_trace(core_arena *arena, const atn_tensor *a, trace_memory *memory)
{
    int64_t size = a->rows * a->rows;
    memory->a = core_take(arena, size, computed_size(a->dtype));
    memory->x = core_take(arena, size, computed_size(a->dtype));
    memory->work = core_take(arena, core_trace_work(a->rows), sizeof(double));
}

static atn_status fetch_trace(atn_context *context, const device_call *call, int64_t i,
                              const trace_memory *memory, atn_trace *trace)
{
    const cuda_inverse *inverse = &call->inverse;
    atn_dtype dtype = inverse->dtype == ATN_F64 ? ATN_F64 : ATN_F32;
    size_t bytes = (size_t)(inverse->m * inverse->m) * computed_size(dtype);
    int recorded = 0;
    atn_status status = device_download(context, &recorded, inverse->recorded + i, sizeof recorded);
    if (status == ATN_OK)
        status =
            device_download(context, memory->a, (const char *)call->a + (size_t)i * bytes, bytes);
    for (int64_t k = 0; status == ATN_OK && k < recorded; k++) {
        const char *iterate =
            (const char *)inverse->iterates + (size_t)(i * call->entries + k) * bytes;
        status = device_download(context, memory->x, iterate, bytes);
        if (status == ATN_OK)
            core_trace_record(trace, dtype, inverse->m, memory->a, memory->x, memory->work);
    }
    return status;
}

static atn_status fetch_traces(atn_context *context, const device_call *call, const atn_tensor *a,
                               atn_trace *traces)
{
    core_arena arena = {0};
    trace_memory memory;
    void *block;
    layout_trace(&arena, a, &memory);
    atn_status status = core_arena_allocate(context, &arena, &block);
    if (status != ATN_OK)
        return status;
    layout_trace(&arena, a, &memory);
    for (int64_t i = 0; status == ATN_OK && i < call->inverse.count; i++)
        status = fetch_trace(context, call, i, &memory, &traces[i]);
    core_release(context, block);
    return status;
}

/* ---- The public functions ---- */

atn_status cuda_inverse_forward(atn_context *context, const atn_inverse_desc *desc,
                                const atn_tensor *a, atn_tensor *x, atn_inverse_info *infos,
                                atn_trace *traces)
{
    device_call call;
    int64_t entries = !traces                          ? 0
                      : desc->method < ATN_INVERSE_EIG ? desc->iterations + INT64_C(1)
                                                       : 1;
    atn_status status = open_call(context, desc, NULL, a, entries, &call);
    if (status == ATN_OK)
        status = core_inverses_start(context);
    if (status == ATN_OK)
        status = cuda_inverse_get(a->dtype)->batch(context, &call.inverse, call.a, call.x);
    if (status == ATN_OK)
        status = core_inverses_stop(context);
    if (status == ATN_OK)
        status = cuda_matrices_get(a->dtype)->scatter(context, call.x, x);
    if (status == ATN_OK && traces)
        status = fetch_traces(context, &call, a, traces);
    if (status == ATN_OK)
        status = fetch_infos(context, &call, infos);
    device_release(context, call.block);
    return status;
}

atn_status cuda_inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                 atn_gradient gradient, const atn_tensor *a, const atn_tensor *dx,
                                 atn_tensor *da, atn_inverse_info *infos)
{
    device_call call;
    const cuda_matrices_table *matrices = cuda_matrices_get(a->dtype);
    atn_status status = open_call(context, desc, &gradient, a, 0, &call);
    if (status == ATN_OK)
        status = matrices->gather(context, dx, call.grad_x);
    if (status == ATN_OK)
        status = core_inverses_start(context);
    if (status == ATN_OK)
        status = cuda_inverse_get(a->dtype)->batch(context, &call.inverse, call.a, call.x);
    if (status == ATN_OK)
        status = cuda_adjoint_get(a->dtype)->backward(context, &call.adjoint, call.a, call.x,
                                                      call.grad_x, call.grad_a);
    if (status == ATN_OK)
        status = core_inverses_stop(context);
    if (status == ATN_OK)
        status = matrices->scatter(context, call.grad_a, da);
    if (status == ATN_OK)
        status = fetch_infos(context, &call, infos);
    device_release(context, call.block);
    return status;
}

/* ---- Properties of A ---- */

/* Sets *index to the first matrix that is marked (cuda/matrices.h), or -1. */
static atn_status first_marked(atn_context *context, const atn_tensor *a, atn_storage storage,
                               int64_t *index)
{
    int64_t count = a->batch * a->heads;
    void *marks;
    int mark = 0;
    *index = -1;
    if (count == 0 || a->rows == 0)
        return ATN_OK;
    atn_status status = device_allocate(context, (size_t)count * sizeof(int), &marks);
    if (status != ATN_OK)
        return status;
    status = cuda_matrices_get(a->dtype)->mark(context, storage, a, marks);
    for (int64_t i = 0; status == ATN_OK && i < count && *index < 0; i++) {
        status = device_download(context, &mark, (int *)marks + i, sizeof mark);
        if (mark)
            *index = i;
    }
    device_release(context, marks);
    return status;
}

atn_status cuda_find_asymmetric(atn_context *context, const atn_tensor *a, int64_t *index)
{
    return first_marked(context, a, ATN_STORAGE_NATIVE, index);
}

atn_status cuda_find_unstored(atn_context *context, atn_storage storage, const atn_tensor *a,
                              int64_t *index)
{
    return first_marked(context, a, storage, index);
}
