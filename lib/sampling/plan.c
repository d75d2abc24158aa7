/* SPDX-License-Identifier: BSD-3-Clause */
#include "sampling/plan.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "core/arrays.h"
#include "core/backend.h"

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

/* Checks number i of an array of the description against a bound. */
static atn_status check_index(atn_context *context, int64_t i, const void *value, double bound)
{
    int64_t index;
    memcpy(&index, value, sizeof index);
    if (index >= 0 && (double)index < bound)
        return ATN_OK;
    return core_fail(context, ATN_ERR_VALUE,
                     "sampling: index %" PRId64 " is %" PRId64 ", expected 0 to %.0f", i, index,
                     bound - 1);
}

static atn_status check_uniform(atn_context *context, int64_t i, const void *value, double bound)
{
    double uniform;
    memcpy(&uniform, value, sizeof uniform);
    if (uniform >= 0 && uniform < bound)
        return ATN_OK;
    return core_fail(context, ATN_ERR_VALUE,
                     "sampling: uniform %" PRId64 " is %g, expected 0 <= u < 1", i, uniform);
}

/* Checks all numbers, fetching a few at a time from the device; both types have 8 bytes. */
static atn_status check_numbers(atn_context *context, const void *numbers, int64_t count,
                                double bound,
                                atn_status (*check)(atn_context *, int64_t, const void *, double))
{
    int64_t fetched[256];
    enum { FETCHED = sizeof fetched / sizeof *fetched };
    atn_status status = ATN_OK;
    if (count > 0)
        status = context->backend->check_memory(context, "sampling numbers", numbers);
    for (int64_t i = 0; i < count && status == ATN_OK; i += FETCHED) {
        int64_t some = count - i < FETCHED ? count - i : FETCHED;
        status = context->backend->download(context, fetched, (const int64_t *)numbers + i,
                                            (size_t)some * sizeof *fetched);
        for (int64_t j = 0; j < some && status == ATN_OK; j++)
            status = check(context, i + j, &fetched[j], bound);
    }
    return status;
}

static atn_status count_indices(atn_context *context, const atn_sampling *s, int64_t n,
                                int64_t *count)
{
    atn_status status = count_first(context, s, n, count);
    if (status != ATN_OK)
        return status;
    if (!s->indices)
        return core_fail(context, ATN_ERR_NULL, "sampling: indices is null");
    return check_numbers(context, s->indices, s->count, (double)n, check_index);
}

bool core_sampling_chooses(atn_sampling_kind kind)
{
    return kind == ATN_SAMPLING_KMEANS || kind == ATN_SAMPLING_LEVERAGE ||
           kind == ATN_SAMPLING_RPCHOLESKY || kind == ATN_SAMPLING_GREEDY;
}

int64_t core_sampling_choices(const atn_sampling *s, int64_t tokens)
{
    if (!core_sampling_chooses(s->kind))
        return 0;
    return s->kind == ATN_SAMPLING_KMEANS && s->steps > 0 ? 2 * s->count + tokens : s->count;
}

int64_t core_sampling_uniforms(const atn_sampling *s)
{
    bool draws = core_sampling_chooses(s->kind) && s->kind != ATN_SAMPLING_GREEDY;
    int64_t each = draws ? s->kind == ATN_SAMPLING_LEVERAGE ? 2 : 1 : 0, needed;
    return __builtin_mul_overflow(each, s->count, &needed) ? INT64_MAX : needed;
}

static atn_status check_uniforms(atn_context *context, const atn_sampling *s)
{
    int64_t needed = core_sampling_uniforms(s);
    if (needed > 0 && !s->uniforms)
        return core_fail(context, ATN_ERR_NULL, "sampling: uniforms is null");
    if (s->uniform_count < needed)
        return core_fail(context, ATN_ERR_SHAPE,
                         "sampling: %" PRId64 " uniforms, expected at least %" PRId64,
                         s->uniform_count, needed);
    return check_numbers(context, s->uniforms, needed, 1, check_uniform);
}

static atn_status count_chosen(atn_context *context, const atn_sampling *s, int64_t n,
                               int64_t *count)
{
    atn_status status = count_first(context, s, n, count);
    if (status == ATN_OK)
        status = check_uniforms(context, s);
    if (status != ATN_OK)
        return status;
    if (s->kind == ATN_SAMPLING_KMEANS && s->steps < 0)
        return core_fail(context, ATN_ERR_VALUE, "sampling: %" PRId64 " steps, expected at least 0",
                         s->steps);
    const double numbers[] = {s->scale, s->ridge};
    int used = s->kind == ATN_SAMPLING_KMEANS ? 0 : s->kind == ATN_SAMPLING_LEVERAGE ? 2 : 1;
    for (int i = 0; i < used; i++)
        if (!(numbers[i] >= 0 && numbers[i] <= 1.7976931348623157e308))
            return core_fail(context, ATN_ERR_VALUE,
                             "sampling: %s is %g, expected 0 or more, and finite",
                             i == 0 ? "scale" : "ridge", numbers[i]);
    return ATN_OK;
}

static atn_status (*const counters[ATN_SAMPLING_COUNT])(atn_context *, const atn_sampling *,
                                                        int64_t, int64_t *) = {
    [ATN_SAMPLING_POOL] = count_grid,         [ATN_SAMPLING_WINDOW] = count_window,
    [ATN_SAMPLING_CONV] = count_grid,         [ATN_SAMPLING_CONV_CODE] = count_grid,
    [ATN_SAMPLING_INDICES] = count_indices,   [ATN_SAMPLING_FIRST] = count_first,
    [ATN_SAMPLING_KMEANS] = count_chosen,     [ATN_SAMPLING_LEVERAGE] = count_chosen,
    [ATN_SAMPLING_RPCHOLESKY] = count_chosen, [ATN_SAMPLING_GREEDY] = count_chosen,
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
    atn_status status = counters[sampling->kind](context, sampling, tokens, count);
    if (status == ATN_OK && core_sampling_chooses(sampling->kind) &&
        core_too_large(((double)tokens + (double)dim) * ((double)*count + 4)))
        return core_fail(context, ATN_ERR_SHAPE,
                         "sampling: %" PRId64 " landmarks of %" PRId64
                         " tokens do not fit into memory",
                         *count, tokens);
    return status;
}

/* A weight tensor must be dense: BLAS gets it as one matrix. */
static atn_status check_weight(atn_context *context, const char *name, const atn_tensor *weight,
                               atn_dtype dtype, int64_t heads, int64_t rows, int64_t cols)
{
    atn_status status = core_check_tensor(context, name, weight, dtype, 1, heads, rows, cols);
    if (status == ATN_OK &&
        (weight->row_stride != cols || (heads > 1 && weight->head_stride != rows * cols)))
        return core_fail(context, ATN_ERR_STRIDE, "%s is not dense", name);
    return status == ATN_OK ? core_check_device(context, name, weight) : status;
}

static atn_status check_conv(atn_context *context, const atn_sampling *s, atn_dtype dtype,
                             int64_t dim)
{
    if ((double)dim * (double)s->stride * (double)s->stride > INT_MAX) /* BLAS: int */
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

static atn_status check_arrays_apart(atn_context *context, const atn_sampling *sampling,
                                     const atn_tensor *landmarks)
{
    atn_attention_desc desc = {.op = ATN_SOFT, .sampling = *sampling};
    return core_check_arrays_overlap(context, "landmarks", landmarks, &desc,
                                     &(atn_attention_shape){0});
}

atn_status atn_sample(atn_context *context, const atn_sampling *sampling, const atn_tensor *tokens,
                      atn_tensor *landmarks)
{
    atn_status status;
    int64_t m;
    if (!context)
        return ATN_ERR_NULL;
    if ((status = core_check_tensor(context, "tokens", tokens, -1, -1, -1, -1, -1)) != ATN_OK ||
        (status = core_check_sampling(context, sampling, tokens->dtype, tokens->rows, tokens->cols,
                                      &m)) != ATN_OK ||
        (status = core_check_tensor(context, "landmarks", landmarks, tokens->dtype, tokens->batch,
                                    tokens->heads, m, tokens->cols)) != ATN_OK ||
        (status = core_check_alias(context, "landmarks", landmarks, "tokens", tokens)) != ATN_OK ||
        (status = check_arrays_apart(context, sampling, landmarks)) != ATN_OK ||
        (status = core_check_device(context, "tokens", tokens)) != ATN_OK ||
        (status = core_check_device(context, "landmarks", landmarks)) != ATN_OK)
        return status;
    return context->backend->sample(context, sampling, m, tokens, landmarks);
}
