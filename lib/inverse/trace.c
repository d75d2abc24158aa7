/* SPDX-License-Identifier: BSD-3-Clause */
#include "inverse/trace.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* Data kept from one iterate of a matrix to the next, at the start of its work. */
typedef struct {
    double a_norm, pinv_norm;
} kept;

enum { KEPT = sizeof(kept) / sizeof(double), MATRICES = 5 };

typedef struct {
    int64_t m;
    kept *norms;
    double *a, *x, *a_x, *product, *scratch, *values, *lapack_work;
    const atn_trace *trace;
} record;

int64_t core_trace_work(int64_t m)
{
    return KEPT + MATRICES * m * m + m + (2 * m + 1);
}

atn_status core_trace_check(atn_context *context, const atn_trace *trace, int entries,
                            const atn_tensor *x)
{
    atn_status status = ATN_OK;
    if (trace->capacity < entries)
        return core_fail(context, ATN_ERR_SHAPE, "trace: capacity is %d, expected at least %d",
                         trace->capacity, entries);
    if (trace->values[ATN_METRIC_INVERSE_ERROR] && !trace->pinv)
        return core_fail(context, ATN_ERR_NULL, "trace: inverse_error needs pinv");
    if (trace->values[ATN_METRIC_RANGE_RESIDUAL] && !trace->projector)
        return core_fail(context, ATN_ERR_NULL, "trace: range_residual needs projector");
    int64_t matrix = x->rows * x->rows * (int64_t)sizeof(double);
    if (trace->values[ATN_METRIC_INVERSE_ERROR])
        status = core_check_overlap(context, "x", x, "trace: pinv", trace->pinv, matrix);
    if (status == ATN_OK && trace->values[ATN_METRIC_RANGE_RESIDUAL])
        status = core_check_overlap(context, "x", x, "trace: projector", trace->projector, matrix);
    for (int i = 0; i < ATN_METRIC_COUNT && status == ATN_OK; i++)
        if (trace->values[i])
            status = core_check_overlap(context, "x", x, atn_metric_name((atn_metric)i),
                                        trace->values[i], entries * (int64_t)sizeof(double));
    return status;
}

static void widen(atn_dtype dtype, int64_t count, const void *from, double *to)
{
    if (dtype == ATN_F64)
        memcpy(to, from, (size_t)count * sizeof *to);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = (double)((const float *)from)[i];
}

static void multiply(int64_t m, const double *a, const double *b, double *c)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)m, (int)m, 1, a, (int)m, b,
                (int)m, 0, c, (int)m);
}

static double max_abs(int64_t count, const double *a)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = core_max(largest, fabs(a[i]));
    return largest;
}

/* max |lambda| of a symmetric matrix, which is destroyed. NaN or infinity if an entry is. */
static double symmetric_norm(const record *r, double *a)
{
    int64_t m = r->m;
    double scale = max_abs(m * m, a);
    if (!(scale > 0 && scale < INFINITY))
        return scale;
    for (int64_t i = 0; i < m * m; i++)
        a[i] /= scale; /* so that nothing below overflows */
    lapack_int unused;
    if (LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'N', 'U', (lapack_int)m, a, (lapack_int)m, r->values,
                            r->lapack_work, (lapack_int)(2 * m + 1), &unused, 1) != 0)
        return NAN;
    return scale * core_max(fabs(r->values[0]), fabs(r->values[m - 1]));
}

/* |M|_2 = sqrt(|M^T M|_2) for any square matrix; destroys it. */
static double general_norm(const record *r, double *a)
{
    int64_t m = r->m;
    double scale = max_abs(m * m, a);
    if (!(scale > 0 && scale < INFINITY))
        return scale;
    for (int64_t i = 0; i < m * m; i++)
        a[i] /= scale;
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)m, (int)m, 1, a, (int)m, a,
                (int)m, 0, r->scratch, (int)m);
    return scale * sqrt(symmetric_norm(r, r->scratch));
}

/* |a - b|_2 of symmetric matrices. */
static double distance(const record *r, const double *a, const double *b)
{
    for (int64_t i = 0; i < r->m * r->m; i++)
        r->scratch[i] = a[i] - b[i];
    return symmetric_norm(r, r->scratch);
}

static double norm_of(const record *r, const double *a)
{
    memcpy(r->scratch, a, (size_t)(r->m * r->m) * sizeof *a);
    return symmetric_norm(r, r->scratch);
}

static double relative(double error, double norm)
{
    return error == 0 ? 0 : error / norm;
}

static double residual(const record *r)
{
    multiply(r->m, r->a_x, r->a, r->product);
    return relative(distance(r, r->product, r->a), r->norms->a_norm);
}

static double inverse_error(const record *r)
{
    return relative(distance(r, r->x, r->trace->pinv), r->norms->pinv_norm);
}

static double range_residual(const record *r)
{
    for (int64_t i = 0; i < r->m * r->m; i++)
        r->product[i] = r->trace->projector[i] - r->a_x[i];
    return general_norm(r, r->product);
}

static double reflexive_residual(const record *r)
{
    multiply(r->m, r->x, r->a_x, r->product);
    return relative(distance(r, r->product, r->x), norm_of(r, r->x));
}

static double symmetry_defect(const record *r)
{
    double defect = 0;
    for (int64_t i = 0; i < r->m; i++)
        for (int64_t j = 0; j < i; j++)
            defect = core_max(defect, fabs(r->x[i * r->m + j] - r->x[j * r->m + i]));
    return defect;
}

static double iterate_norm(const record *r)
{
    return norm_of(r, r->x);
}

static double (*const metrics[ATN_METRIC_COUNT])(const record *) = {
    [ATN_METRIC_RESIDUAL] = residual,
    [ATN_METRIC_INVERSE_ERROR] = inverse_error,
    [ATN_METRIC_RANGE_RESIDUAL] = range_residual,
    [ATN_METRIC_REFLEXIVE] = reflexive_residual,
    [ATN_METRIC_SYMMETRY] = symmetry_defect,
    [ATN_METRIC_NORM] = iterate_norm,
};

void core_trace_record(atn_trace *trace, atn_dtype dtype, int64_t m, const void *a, const void *x,
                       double *work)
{
    if (!trace)
        return;
    record r = {.m = m, .norms = (kept *)work, .trace = trace};
    r.a = work + KEPT;
    r.x = r.a + m * m;
    r.a_x = r.x + m * m;
    r.product = r.a_x + m * m;
    r.scratch = r.product + m * m;
    r.values = r.scratch + m * m;
    r.lapack_work = r.values + m;
    if (trace->length == 0) {
        widen(dtype, m * m, a, r.a);
        r.norms->a_norm = norm_of(&r, r.a);
        r.norms->pinv_norm = trace->pinv ? norm_of(&r, trace->pinv) : 0;
    }
    widen(dtype, m * m, x, r.x);
    if (trace->iterates)
        memcpy(trace->iterates + trace->length * m * m, r.x, (size_t)(m * m) * sizeof *r.x);
    multiply(m, r.a, r.x, r.a_x);
    for (int i = 0; i < ATN_METRIC_COUNT; i++)
        if (trace->values[i])
            trace->values[i][trace->length] = m > 0 ? metrics[i](&r) : 0;
    trace->length++;
}
