/* SPDX-License-Identifier: BSD-3-Clause */
/* Inverts all matrices of a call by the method that the description names. */
#include <omp.h>
#include <string.h>

#include "cpu/blocks.h"
#include "inverse/plan.h"
#include "inverse/trace.h"

/* Work matrices of Newton-Raphson. */
enum { WORK_MATRICES = 3 };

static atn_status (*const methods[ATN_INVERSE_COUNT])(const inverse_problem *) = {
    [ATN_INVERSE_NR] = R(newton),
    [ATN_INVERSE_NR_PAPER] = R(newton),
    [ATN_INVERSE_NR_ADAPTIVE] = R(newton),
    [ATN_INVERSE_NR_SOFT] = R(newton),
    [ATN_INVERSE_NR_SOFTPP] = R(newton),
    [ATN_INVERSE_NEWTON_SCHULZ] = R(polynomial),
    [ATN_INVERSE_HYPERPOWER_3] = R(polynomial),
    [ATN_INVERSE_HYPERPOWER_7] = R(polynomial),
    [ATN_INVERSE_HYPERPOWER_9] = R(polynomial),
    [ATN_INVERSE_NYSTROMFORMER] = R(polynomial),
    [ATN_INVERSE_CHEBYSHEV_2] = R(polynomial),
    [ATN_INVERSE_CHEBYSHEV_3] = R(polynomial),
    [ATN_INVERSE_CHEBYSHEV_9] = R(polynomial),
    [ATN_INVERSE_EIG] = R(eig),
    [ATN_INVERSE_CHOLESKY] = R(cholesky),
    [ATN_INVERSE_PIVOTED_CHOLESKY] = R(pivoted_cholesky),
};

void R(inverse_work)(const atn_inverse_desc *desc, int64_t m, cpu_inverse_memory *memory)
{
    memory->ints = desc->method == ATN_INVERSE_EIG ? 5 * m + 3 : 0;
    switch (desc->method) {
    case ATN_INVERSE_EIG:
        memory->reals = 4 * m * m + 7 * m + 1;
        break;
    case ATN_INVERSE_CHOLESKY:
    case ATN_INVERSE_PIVOTED_CHOLESKY:
        memory->reals = R(cholesky_work)(m);
        break;
    default:
        memory->reals = core_polynomial_of(desc->method)
                            ? R(polynomial_work)(m)
                            : (WORK_MATRICES + (desc->stopping == ATN_STOPPING_BEST)) * m * m;
    }
    memory->reals = whole_vectors(memory->reals); /* so that threads' pieces share no cache line */
}

double R(inverse_roundoff)(const atn_inverse_desc *desc)
{
    return desc->storage != ATN_STORAGE_NATIVE ? atn_storage_roundoff(desc->storage)
                                               : atn_dtype_roundoff(REAL_DTYPE);
}

atn_status R(without_start)(const inverse_problem *p, atn_stop stop)
{
    memset(p->x, 0, (size_t)(p->m * p->m) * sizeof(real));
    p->info->stop = stop;
    p->info->residual = 1;
    return ATN_NOT_CONVERGED;
}

void R(record_update)(atn_inverse_info *info, int k, double update)
{
    info->iterations = k;
    info->last_update = update;
    if (update < INFINITY && (info->best_iteration == 0 || update < info->best_update)) {
        info->best_update = update;
        info->best_iteration = k;
    }
}

double R(relative_update)(double change, double size)
{
    return size > 0 ? sqrt(change / size) : (change > 0 ? INFINITY : 0) + 0 * size;
}

static double tolerance(const atn_inverse_desc *desc)
{
    return desc->tolerance >= 0 ? desc->tolerance : sqrt(R(inverse_roundoff)(desc));
}

static atn_status invert_one(inverse_problem *p)
{
    p->info->residual = NAN; /* until measured */
    if (p->info->status == ATN_NONFINITE) {
        memset(p->x, 0, (size_t)(p->m * p->m) * sizeof(real));
        p->info->stop = ATN_STOP_NONFINITE;
        for (int64_t i = 0; i < p->m; i++)
            p->pivots[i] = (int)i;
        return ATN_NONFINITE;
    }
    atn_status status = methods[p->desc->method](p);
    if (status != ATN_OK)
        return status;
    atn_status failure = core_inverse_failure(p->info->stop);
    if (!R(all_finite)(p->m, p->m, p->x, p->m)) { /* 1 / lambda exceeded the range of the type */
        memset(p->x, 0, (size_t)(p->m * p->m) * sizeof(real));
        p->info->residual = 1;
        p->info->rank = p->keep_factor ? 0 : p->info->rank; /* there is no factor */
        return failure;
    }
    return p->keep_factor || p->info->residual <= tolerance(p->desc) ? ATN_OK : failure;
}

static bool is_finite(const atn_tensor *a, int64_t i)
{
    return R(all_finite)(a->rows, a->rows, atn_tensor_matrix(a, i / a->heads, i % a->heads),
                         a->rows);
}

void R(inverse_begin)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                      atn_tensor *squares, cpu_inverse_memory *memory)
{
    int64_t count = a->batch * a->heads;
    int neighbours = core_inverse_neighbours(context, count);
    if (!core_is_newton(desc))
        return;
    memset(memory->infos, 0, (size_t)count * sizeof *memory->infos);
#pragma omp parallel for num_threads(context->threads) schedule(static, neighbours)
    for (int64_t i = 0; i < count; i++)
        if (!is_finite(a, i))
            memory->infos[i].status = ATN_NONFINITE;
    R(newton_starts)(context, desc, a, squares, memory);
}

atn_status R(inverse_next)(const atn_inverse_desc *desc, const atn_tensor *a, int64_t i,
                           bool keep_factor, const cpu_inverse_memory *memory, atn_trace *trace,
                           real *x)
{
    int64_t m = a->rows;
    int thread = omp_get_thread_num();
    atn_inverse_info info = {0};
    inverse_problem p = {
        .desc = desc,
        .m = m,
        .a = atn_tensor_matrix(a, i / a->heads, i % a->heads),
        .x = x,
        .work = (real *)memory->work + thread * memory->reals,
        .ints = memory->int_work + thread * memory->ints,
        .pivots = memory->pivots + i * m,
        .keep_factor = keep_factor && desc->method == ATN_INVERSE_PIVOTED_CHOLESKY,
        .alpha = memory->starts[i],
        .trace = trace,
        .trace_work = memory->trace_work + (trace ? thread * core_trace_work(m) : 0),
        .info = &info,
    };
    if (core_is_newton(desc))
        info = memory->infos[i];
    else if (!is_finite(a, i))
        info.status = ATN_NONFINITE;
    info.status = invert_one(&p);
    memory->infos[i] = info;
    memory->factors[i] = (cpu_factor){info.rank, p.pivots};
    return info.status;
}

atn_status R(inverse_batch)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                            atn_tensor *x, bool keep_factor, cpu_inverse_memory *memory,
                            atn_trace *traces)
{
    int64_t count = a->batch * a->heads;
    int neighbours = core_inverse_neighbours(context, count);
    atn_status worst = ATN_OK;
    R(inverse_begin)(context, desc, a, x, memory);
#pragma omp parallel for num_threads(context->threads) schedule(dynamic, neighbours)               \
    reduction(worst                                                                                \
              : worst)
    for (int64_t i = 0; i < count; i++)
        worst = core_worse(
            worst, R(inverse_next)(desc, a, i, keep_factor, memory, traces ? &traces[i] : NULL,
                                   atn_tensor_matrix(x, i / x->heads, i % x->heads)));
    return core_inverse_end(context, worst);
}
