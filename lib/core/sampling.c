/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/sampling.h"

#include <inttypes.h>
#include <limits.h>
#include <omp.h>

#include "cpu/table.h"

static atn_status count_grid(atn_context *context, const atn_sampling *s, int64_t n, int64_t *count)
{
    int64_t cells;
    if (s->height < 1 || s->width < 1 || s->stride < 1)
        return core_fail(context, ATN_ERR_VALUE,
                         "sampling: grid %" PRId64 "x%" PRId64 " stride %" PRId64
                         ", expected all at least 1",
                         s->height, s->width, s->stride);
    if (__builtin_mul_overflow(s->height, s->width, &cells) || cells != n)
        return core_fail(context, ATN_ERR_SHAPE,
                         "sampling: grid %" PRId64 "x%" PRId64 " does not hold %" PRId64 " tokens",
                         s->height, s->width, n);
    if (s->stride > s->height || s->stride > s->width)
        return core_fail(context, ATN_ERR_SHAPE,
                         "sampling: stride %" PRId64 " is larger than the grid %" PRId64
                         "x%" PRId64,
                         s->stride, s->height, s->width);
    *count = (s->height / s->stride) * (s->width / s->stride);
    return ATN_OK;
}

static atn_status count_window(atn_context *context, const atn_sampling *s, int64_t n,
                               int64_t *count)
{
    if (s->stride < 1)
        return core_fail(context, ATN_ERR_VALUE,
                         "sampling: stride is %" PRId64 ", expected at least 1", s->stride);
    *count = n / s->stride + (n % s->stride != 0);
    return ATN_OK;
}

static atn_status count_first(atn_context *context, const atn_sampling *s, int64_t n,
                              int64_t *count)
{
    if (s->count < 1 || s->count > n)
        return core_fail(context, ATN_ERR_SHAPE,
                         "sampling: %" PRId64 " landmarks, expected 1 to %" PRId64 " (the tokens)",
                         s->count, n);
    *count = s->count;
    return ATN_OK;
}

static atn_status count_indices(atn_context *context, const atn_sampling *s, int64_t n,
                                int64_t *count)
{
    atn_status status = count_first(context, s, n, count);
    if (status != ATN_OK)
        return status;
    if (!s->indices)
        return core_fail(context, ATN_ERR_NULL, "sampling: indices is null");
    for (int64_t i = 0; i < s->count; i++)
        if (s->indices[i] < 0 || s->indices[i] >= n)
            return core_fail(context, ATN_ERR_VALUE,
                             "sampling: index %" PRId64 " is %" PRId64 ", expected 0 to %" PRId64,
                             i, s->indices[i], n - 1);
    return ATN_OK;
}

static atn_status (*const counters[ATN_SAMPLING_COUNT])(atn_context *, const atn_sampling *,
                                                        int64_t, int64_t *) = {
    [ATN_SAMPLING_POOL] = count_grid,       [ATN_SAMPLING_WINDOW] = count_window,
    [ATN_SAMPLING_CONV] = count_grid,       [ATN_SAMPLING_CONV_CODE] = count_grid,
    [ATN_SAMPLING_INDICES] = count_indices, [ATN_SAMPLING_FIRST] = count_first,
};

atn_status atn_sampling_count(atn_context *context, const atn_sampling *sampling, int64_t tokens,
                              int64_t dim, int64_t *count)
{
    if (!context || !sampling || !count)
        return core_fail(context, ATN_ERR_NULL, "sampling or count is null");
    if (!atn_sampling_name(sampling->kind))
        return core_fail(context, ATN_ERR_VALUE, "sampling: unknown kind %d", (int)sampling->kind);
    if (tokens < 1 || dim < 1)
        return core_fail(context, ATN_ERR_SHAPE,
                         "sampling: %" PRId64 " tokens of width %" PRId64
                         ", expected at least 1 each",
                         tokens, dim);
    return counters[sampling->kind](context, sampling, tokens, count);
}

/* A weight tensor must be dense: it is handed to BLAS as one matrix. */
static atn_status check_weight(atn_context *context, const char *name, const atn_tensor *weight,
                               atn_dtype dtype, int64_t heads, int64_t rows, int64_t cols)
{
    atn_status status = core_check_tensor(context, name, weight, dtype, 1, heads, rows, cols);
    if (status == ATN_OK &&
        (weight->row_stride != cols || (heads > 1 && weight->head_stride != rows * cols)))
        return core_fail(context, ATN_ERR_STRIDE, "%s is not dense", name);
    return status;
}

static atn_status check_conv(atn_context *context, const atn_sampling *s, atn_dtype dtype,
                             int64_t dim)
{
    if ((double)dim * (double)s->stride * (double)s->stride > INT_MAX) /* BLAS counts in 32 bits */
        return core_fail(context, ATN_ERR_SHAPE,
                         "sampling: a window of %" PRId64 "x%" PRId64 "x%" PRId64
                         " is more than %d numbers",
                         s->stride, s->stride, dim, INT_MAX);
    atn_status status = check_weight(context, "sampling weights", &s->weights, dtype, dim, dim,
                                     s->stride * s->stride);
    if (status == ATN_OK && s->kind == ATN_SAMPLING_CONV_CODE && s->norm_weight.data)
        status = check_weight(context, "norm_weight", &s->norm_weight, dtype, 1, 1, dim);
    if (status == ATN_OK && s->kind == ATN_SAMPLING_CONV_CODE && s->norm_bias.data)
        status = check_weight(context, "norm_bias", &s->norm_bias, dtype, 1, 1, dim);
    return status;
}

atn_status core_check_sampling(atn_context *context, const atn_sampling *sampling, atn_dtype dtype,
                               int64_t tokens, int64_t dim, int64_t *count)
{
    atn_status status = atn_sampling_count(context, sampling, tokens, dim, count);
    if (status == ATN_OK &&
        (sampling->kind == ATN_SAMPLING_CONV || sampling->kind == ATN_SAMPLING_CONV_CODE))
        status = check_conv(context, sampling, dtype, dim);
    return status;
}

atn_status atn_sample(atn_context *context, const atn_sampling *sampling, const atn_tensor *tokens,
                      atn_tensor *landmarks)
{
    atn_status status;
    int64_t m;
    void *work;
    if (!context)
        return ATN_ERR_NULL;
    if ((status = core_check_tensor(context, "tokens", tokens, -1, -1, -1, -1, -1)) != ATN_OK ||
        (status = core_check_sampling(context, sampling, tokens->dtype, tokens->rows, tokens->cols,
                                      &m)) != ATN_OK ||
        (status = core_check_tensor(context, "landmarks", landmarks, tokens->dtype, tokens->batch,
                                    tokens->heads, m, tokens->cols)) != ATN_OK ||
        (status = core_check_alias(context, "landmarks", landmarks, "tokens", tokens)) != ATN_OK)
        return status;
    const cpu_table *cpu = cpu_table_get(tokens->dtype);
    int64_t heads = tokens->heads, elements = cpu->sample_work(sampling, tokens->cols);
    size_t piece = (size_t)elements * atn_dtype_size(tokens->dtype);
    status = core_allocate(context, piece * (size_t)context->threads, &work);
    if (status != ATN_OK)
        return status;
#pragma omp parallel for num_threads(context->threads) schedule(static)
    for (int64_t i = 0; i < tokens->batch * heads; i++)
        cpu->sample(sampling, tokens->rows, tokens->cols,
                    atn_tensor_matrix(tokens, i / heads, i % heads), tokens->row_stride, m,
                    atn_tensor_matrix(landmarks, i / heads, i % heads), landmarks->row_stride,
                    (char *)work + piece * (size_t)omp_get_thread_num());
    core_release(context, work);
    return ATN_OK;
}
