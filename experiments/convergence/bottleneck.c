/* SPDX-License-Identifier: BSD-3-Clause */
#include "convergence/bottleneck.h"

#include <math.h>
#include <stdlib.h>

#include "common/report.h"
#include "common/staging.h"
#include "spectral/matrices.h"

bottleneck bottleneck_create(atn_dtype dtype, int64_t m)
{
    size_t size = (size_t)m * (size_t)m;
    bottleneck b = {.dtype = dtype, .m = m};
    b.a = must_allocate(size, atn_dtype_size(dtype));
    b.x = must_allocate(size, atn_dtype_size(dtype));
    b.exact = must_allocate(size, sizeof *b.exact);
    b.lambda = must_allocate((size_t)m, sizeof *b.lambda);
    return b;
}

void bottleneck_free(bottleneck *b)
{
    free(b->a);
    free(b->x);
    free(b->exact);
    free(b->lambda);
    *b = (bottleneck){0};
}

double bottleneck_round(atn_dtype dtype, double value)
{
    return dtype == ATN_F32 ? (double)(float)value : value;
}

static void narrow(atn_dtype dtype, int64_t count, const double *from, void *to)
{
    for (int64_t i = 0; i < count; i++)
        if (dtype == ATN_F32)
            ((float *)to)[i] = (float)from[i];
        else
            ((double *)to)[i] = from[i];
}

static void widen(atn_dtype dtype, int64_t count, const void *from, double *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = dtype == ATN_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

static int find_spectrum(bottleneck *b)
{
    widen(b->dtype, b->m * b->m, b->a, b->exact);
    b->finite = true;
    for (int64_t i = 0; i < b->m * b->m; i++)
        b->finite &= isfinite(b->exact[i]) != 0;
    if (b->finite)
        return checked_eigenvalues(b->m, b->exact, b->lambda, NULL);
    for (int64_t i = 0; i < b->m; i++)
        b->lambda[i] = NAN;
    return EXIT_PASS;
}

/* A = K(L, L) and, unless cross is null, P = K(L, Q). */
static int compute_kernels(bottleneck *b, atn_distance distance, double scale, atn_context *context,
                           const atn_tensor *q, const atn_tensor *l, double *cross)
{
    int64_t n = q->rows;
    atn_tensor a = atn_tensor_dense(b->a, b->dtype, 1, 1, b->m, b->m);
    atn_status status = staged_gaussian_self(context, distance, scale, l, &a);
    if (status < 0 || !cross)
        return check_status(context, status, "bottleneck matrix");
    void *narrow = must_allocate((size_t)(n * b->m), atn_dtype_size(b->dtype));
    atn_tensor k = atn_tensor_dense(narrow, b->dtype, 1, 1, b->m, n);
    status = staged_gaussian_cross(context, distance, scale, l, q, &k);
    widen(b->dtype, n * b->m, narrow, cross);
    free(narrow);
    return check_status(context, status, "cross kernel");
}

int bottleneck_from_tokens(bottleneck *b, const landmark_sweep *sweep, const landmark_point *point,
                           atn_context *context, const double *tokens, double *cross)
{
    int64_t n = grid_tokens(&point->grid), dim = input_dim(point->in);
    double scale = landmark_point_scale(sweep->s, point);
    size_t size = atn_dtype_size(b->dtype);
    void *rounded = must_allocate((size_t)n * (size_t)dim, size);
    void *landmarks = must_allocate((size_t)b->m * (size_t)dim, size);
    narrow(b->dtype, n * dim, tokens, rounded);
    atn_tensor q = atn_tensor_dense(rounded, b->dtype, 1, 1, n, dim);
    atn_tensor l = atn_tensor_dense(landmarks, b->dtype, 1, 1, b->m, dim);
    int code = landmark_point_sample(point, context, &q, &l);
    if (code == EXIT_PASS)
        code = compute_kernels(b, sweep->s->distance, sampling_kernel_scale(point->sampling, scale),
                               context, &q, &l, cross);
    free(landmarks);
    free(rounded);
    return code == EXIT_PASS ? find_spectrum(b) : code;
}

int bottleneck_from_matrix(bottleneck *b, const double *matrix)
{
    narrow(b->dtype, b->m * b->m, matrix, b->a);
    return find_spectrum(b);
}

int bottleneck_invert(bottleneck *b, atn_context *context, const atn_inverse_desc *desc,
                      atn_inverse_info *info, atn_trace *trace)
{
    atn_tensor a = atn_tensor_dense(b->a, b->dtype, 1, 1, b->m, b->m);
    atn_tensor x = atn_tensor_dense(b->x, b->dtype, 1, 1, b->m, b->m);
    atn_status status = staged_inverse(context, desc, &a, &x, info, trace);
    if (status >= 0)
        return EXIT_PASS;
    report_error("%s: %s", atn_inverse_name(desc->method), atn_last_error(context));
    return EXIT_ENVIRONMENT;
}

double bottleneck_largest(const bottleneck *b)
{
    if (!b->finite)
        return NAN;
    return fmax(fabs(b->lambda[0]), fabs(b->lambda[b->m - 1]));
}

double bottleneck_smallest(const bottleneck *b, bool range_only)
{
    double largest = bottleneck_largest(b), smallest = largest;
    double cut = range_only ? (double)b->m * atn_dtype_roundoff(b->dtype) * largest : -1;
    for (int64_t i = 0; i < b->m; i++)
        if (fabs(b->lambda[i]) > cut)
            smallest = fmin(smallest, fabs(b->lambda[i]));
    return smallest;
}
