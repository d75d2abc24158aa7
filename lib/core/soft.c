/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/soft.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "core/inverse.h"
#include "core/sampling.h"
#include "cpu/table.h"

static atn_status check_residual(atn_context *context, const atn_attention_desc *desc,
                                 const atn_attention_shape *shape)
{
    const atn_tensor *filter = &desc->residual;
    int64_t cells;
    if (!filter->data)
        return ATN_OK;
    atn_status status = core_check_tensor(context, "residual", filter, (int)desc->dtype, 1,
                                          shape->heads, -1, filter->rows);
    if (status != ATN_OK)
        return status;
    if (filter->rows % 2 == 0 || filter->row_stride != filter->cols)
        return core_fail(context, ATN_ERR_SHAPE,
                         "residual: a dense window of odd size is expected, not %" PRId64
                         "x%" PRId64,
                         filter->rows, filter->cols);
    if (desc->residual_height < 1 || desc->residual_width < 1 ||
        __builtin_mul_overflow(desc->residual_height, desc->residual_width, &cells) ||
        cells != shape->tokens)
        return core_fail(context, ATN_ERR_SHAPE,
                         "residual: grid %" PRId64 "x%" PRId64 " does not hold %" PRId64 " tokens",
                         desc->residual_height, desc->residual_width, shape->tokens);
    return ATN_OK;
}

static atn_status check_kernel(atn_context *context, const atn_attention_desc *desc, double s)
{
    if (!atn_scale_name(desc->scale))
        return core_fail(context, ATN_ERR_VALUE, "scale: unknown choice %d", (int)desc->scale);
    if (!atn_distance_name(desc->distance))
        return core_fail(context, ATN_ERR_VALUE, "distance: unknown choice %d",
                         (int)desc->distance);
    if (!(s > 0 && s <= 1.7976931348623157e308))
        return core_fail(context, ATN_ERR_VALUE, "scale is %g, expected positive and finite", s);
    return ATN_OK;
}

atn_status core_soft_prepare(atn_context *context, const atn_attention_desc *desc,
                             const atn_attention_shape *shape, void *state)
{
    cpu_soft *soft = state;
    atn_status status;
    *soft = (cpu_soft){
        .desc = *desc,
        .shape = *shape,
        .normalise = desc->op == ATN_SOFTPP,
        .threads = context->threads,
        .s = atn_kernel_scale(desc->scale, desc->scale_value, shape->heads, shape->dim),
    };
    if ((status = check_kernel(context, desc, soft->s)) != ATN_OK ||
        (status = core_check_sampling(context, &desc->sampling, desc->dtype, shape->tokens,
                                      shape->dim, &soft->m)) != ATN_OK ||
        (status = core_check_inverse(context, &desc->inverse)) != ATN_OK ||
        (status = check_residual(context, desc, shape)) != ATN_OK)
        return status;
    if (soft->m > INT_MAX / 64 || shape->dim > INT_MAX / 64 || shape->value_dim > INT_MAX / 64)
        return core_fail(context, ATN_ERR_SHAPE,
                         "%" PRId64 " landmarks, dim %" PRId64 ", value_dim %" PRId64
                         ": expected at most %d each",
                         soft->m, shape->dim, shape->value_dim, INT_MAX / 64);
    double heads = (double)shape->batch * (double)shape->heads, m = (double)soft->m + 64;
    double width = (double)shape->dim + (double)shape->value_dim + 64;
    if (core_too_large(heads * m * (3 * m + 4 * width)) ||
        core_too_large(heads * (double)shape->tokens * width) ||
        core_too_large(context->threads * m * (256 + 2 * width)) ||
        core_inverse_too_large(soft->m, (int64_t)heads, context->threads))
        return core_fail(context, ATN_ERR_SHAPE, "the workspace does not fit into memory");
    return ATN_OK;
}

void core_soft_layout(core_arena *arena, void *state)
{
    cpu_soft *soft = state;
    cpu_table_get(soft->desc.dtype)->soft_layout(arena, soft);
}

/* The call's outcome from the heads': the worst positive status. */
static atn_status outcome(const cpu_soft *soft, atn_attention_info *info)
{
    int64_t heads = soft->shape.batch * soft->shape.heads;
    atn_status worst = ATN_OK;
    int64_t failures = 0;
    for (int64_t i = 0; i < heads; i++) {
        atn_status status = soft->inverse.infos[i].status;
        failures += status != ATN_OK;
        worst = status > worst ? status : worst;
    }
    if (info) {
        info->landmarks = soft->m;
        info->failures = failures;
        if (info->inverses)
            memcpy(info->inverses, soft->inverse.infos, (size_t)heads * sizeof *info->inverses);
    }
    return worst;
}

/* A view fit for BLAS, which counts strides in 32 bits and looks at them even where there is but
 * one row. */
static atn_status blas_view(atn_context *context, const char *name, const atn_tensor *tensor,
                            atn_tensor *view)
{
    *view = *tensor;
    if (view->rows == 1)
        view->row_stride = view->cols;
    if (view->row_stride > INT_MAX)
        return core_fail(context, ATN_ERR_STRIDE,
                         "%s: row_stride is %" PRId64 ", expected at most %d", name,
                         view->row_stride, INT_MAX);
    return ATN_OK;
}

atn_status core_soft_forward(atn_context *context, void *state, const atn_tensor *q,
                             const atn_tensor *k, const atn_tensor *v, atn_tensor *out,
                             atn_attention_info *info)
{
    cpu_soft *soft = state;
    if (k)
        return core_fail(context, ATN_ERR_UNSUPPORTED,
                         "k must be null: SOFT has Q = K (IJCV Eq. 5)");
    atn_tensor tokens, values, output;
    atn_status status;
    if ((status = blas_view(context, "q", q, &tokens)) != ATN_OK ||
        (status = blas_view(context, "v", v, &values)) != ATN_OK ||
        (status = blas_view(context, "out", out, &output)) != ATN_OK)
        return status;
    status =
        cpu_table_get(soft->desc.dtype)->soft_forward(context, soft, &tokens, &values, &output);
    return status < 0 ? status : outcome(soft, info);
}

/* Additions and multiplications of one landmark from its tokens. */
static double sampling_flops(const atn_sampling *s, double m, double n, double d)
{
    double cells = (double)s->stride * (double)s->stride;
    switch (s->kind) {
    case ATN_SAMPLING_POOL:
        return m * (cells + 1) * d;
    case ATN_SAMPLING_WINDOW:
        return (n + m) * d;
    case ATN_SAMPLING_CONV:
    case ATN_SAMPLING_CONV_CODE:
        return 2 * m * cells * d * d;
    default:
        return 0;
    }
}

static double inverse_flops(const atn_inverse_desc *inverse, double m)
{
    switch (inverse->method) {
    case ATN_INVERSE_EIG:
        return 9 * m * m * m + 6 * m * m * m;
    case ATN_INVERSE_CHOLESKY:
        return m * m * m + 4 * m * m * m;
    case ATN_INVERSE_PIVOTED_CHOLESKY:
        return m * m * m / 3;
    default:
        return (4.0 * inverse->iterations + 4 + (inverse->search == ATN_SEARCH_SQUARE ? 2 : 0)) *
               m * m * m;
    }
}

static double pair_flops(atn_distance distance, double d)
{
    return distance == ATN_DISTANCE_DIRECT ? 3 * d : 2 * d + 3;
}

atn_status core_soft_cost(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, atn_cost *cost)
{
    cpu_soft soft;
    core_arena arena = {0};
    atn_status status = core_soft_prepare(context, desc, shape, &soft);
    if (status != ATN_OK)
        return status;
    core_soft_layout(&arena, &soft);
    double n = (double)shape->tokens, d = (double)shape->dim, dv = (double)shape->value_dim;
    double m = (double)soft.m, heads = (double)shape->batch * (double)shape->heads;
    bool factored = desc->inverse.method == ATN_INVERSE_PIVOTED_CHOLESKY;
    double window = (double)desc->residual.rows * (double)desc->residual.cols;
    double pairs = m * m + 2 * n * m;
    double flops = sampling_flops(&desc->sampling, m, n, d) +
                   pairs * pair_flops(desc->distance, d) + inverse_flops(&desc->inverse, m) +
                   4 * n * m * dv + (factored ? 2 * n * m * m : 2 * m * m * dv) +
                   (soft.normalise ? 3 * m * m : 0) +
                   (desc->residual.data ? 2 * n * dv * window : 0);
    *cost = (atn_cost){
        .flops = heads * flops,
        .exps = heads * pairs,
        .bytes = heads * n * (d + 2 * dv) * (double)atn_dtype_size(desc->dtype),
        .workspace_bytes = (double)arena.used,
    };
    return ATN_OK;
}
