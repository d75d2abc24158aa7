/* SPDX-License-Identifier: BSD-3-Clause */
#include "operators/soft/plan.h"

#include <inttypes.h>
#include <limits.h>

#include "inverse/plan.h"
#include "kernel/plan.h"
#include "operators/checks.h"
#include "sampling/plan.h"

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

atn_status core_check_soft(atn_context *context, const atn_attention_desc *desc,
                           const atn_attention_shape *shape, core_soft_plan *plan)
{
    atn_status status;
    *plan = (core_soft_plan){
        .desc = *desc,
        .s = atn_kernel_scale(desc->scale, desc->scale_value, shape->heads, shape->dim),
    };
    if ((status = core_check_kernel(context, desc, plan->s)) != ATN_OK ||
        (status = core_check_sampling(context, &desc->sampling, desc->dtype, shape->tokens,
                                      shape->dim, &plan->m)) != ATN_OK ||
        (status = core_check_inverse(context, &desc->inverse)) != ATN_OK ||
        (status = check_residual(context, desc, shape)) != ATN_OK)
        return status;
    if (!atn_gradient_name(desc->gradient))
        return core_fail(context, ATN_ERR_VALUE, "gradient: unknown choice %d",
                         (int)desc->gradient);
    if (!atn_soft_passes_name(desc->passes))
        return core_fail(context, ATN_ERR_VALUE, "passes: unknown choice %d", (int)desc->passes);
    if (desc->inverse.storage != ATN_STORAGE_NATIVE && desc->inverse.storage != desc->storage)
        return core_fail(context, ATN_ERR_VALUE, "inverse.storage is %s, expected storage, %s",
                         atn_storage_name(desc->inverse.storage), atn_storage_name(desc->storage));
    plan->desc.inverse.storage = desc->storage;
    plan->backward = desc->storage == ATN_STORAGE_NATIVE &&
                     core_check_gradient(NULL, &desc->inverse, desc->gradient) == ATN_OK;
    if (plan->m > INT_MAX / 64)
        return core_fail(context, ATN_ERR_SHAPE, "%" PRId64 " landmarks, expected at most %d",
                         plan->m, INT_MAX / 64);
    double heads = (double)shape->batch * (double)shape->heads, m = (double)plan->m + 64;
    double width = (double)shape->dim + (double)shape->value_dim + 64;
    if (core_too_large(heads * m * (3 * m + 4 * width)) ||
        core_too_large(heads * (double)shape->tokens * width))
        return core_fail(context, ATN_ERR_SHAPE, "the workspace does not fit into memory");
    return ATN_OK;
}

atn_status core_check_soft_values(atn_context *context, const atn_attention_desc *desc,
                                  const atn_attention_shape *shape)
{
    int64_t count;
    return atn_sampling_count(context, &desc->sampling, shape->tokens, shape->dim, &count);
}

void core_soft_count(core_soft_outcome *outcome, atn_status head)
{
    outcome->failures += head != ATN_OK;
    outcome->worst = head > outcome->worst ? head : outcome->worst;
}

atn_status core_check_soft_backward(atn_context *context, const atn_attention_desc *desc)
{
    return core_check_gradient(context, &desc->inverse, desc->gradient);
}

/* The number of times that leverage factorises A + lambda I. */
static double ridge_rounds(const atn_sampling *s)
{
    return s->ridge > 0 ? 1 : 2;
}

/* Additions and multiplications of the landmarks. */
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
    case ATN_SAMPLING_KMEANS:
        return 3 * n * m * d + (double)s->steps * (3 * n * m * d + (n + m) * d);
    case ATN_SAMPLING_LEVERAGE: /* equal tokens, twice; A, its factor and r for each lambda */
        return 6 * n * m * d + ridge_rounds(s) * (3 * (m * (m - 1) / 2 + n * m) * d +
                                                  m * m * m / 3 + n * m * (m + 2) + 2 * n);
    case ATN_SAMPLING_RPCHOLESKY:
    case ATN_SAMPLING_GREEDY: /* distances; column l: l products subtracted, scaling, downdate */
        return n * m * (3 * d + (m - 1) + 3);
    default:
        return 0;
    }
}

/* Of the derivatives of averages and convolution, by the tokens; chosen tokens take their gradient.
 */
static double sampling_backward_flops(const atn_sampling *s, double m, double n, double d)
{
    switch (s->kind) {
    case ATN_SAMPLING_POOL:
    case ATN_SAMPLING_WINDOW:
    case ATN_SAMPLING_CONV:
    case ATN_SAMPLING_CONV_CODE:
        return sampling_flops(s, m, n, d);
    case ATN_SAMPLING_KMEANS:
        return s->steps > 0 ? (n + m) * d : m * d;
    default:
        return m * d;
    }
}

static double sampling_exps(const atn_sampling *s, double m, double n)
{
    bool pivots = s->kind == ATN_SAMPLING_RPCHOLESKY || s->kind == ATN_SAMPLING_GREEDY;
    bool leverage = s->kind == ATN_SAMPLING_LEVERAGE;
    return pivots ? n * m : leverage ? ridge_rounds(s) * (m * (m - 1) / 2 + n * m) : 0;
}

static double inverse_flops(const atn_inverse_desc *inverse, double m)
{
    switch (inverse->method) {
    case ATN_INVERSE_EIG:
        return 9 * m * m * m;
    case ATN_INVERSE_CHOLESKY:
        return m * m * m;
    case ATN_INVERSE_PIVOTED_CHOLESKY:
        return m * m * m / 3;
    default:
        return 2 * core_inverse_products(inverse) * m * m * m;
    }
}

static double residual_flops(const atn_inverse_desc *inverse, double m)
{
    bool pivoted = inverse->method == ATN_INVERSE_PIVOTED_CHOLESKY;
    return pivoted ? 0 : (inverse->method == ATN_INVERSE_EIG ? 6 : 4) * m * m * m;
}

/* From dX = dW U^T, W = X U: closed, dA = -(X dW) W^T needs no dX; through the steps a product has
 * two; pseudo has (X G) X, A X and X (X G) (I - A X), and adds up three terms. */
static double inverse_backward_flops(const atn_attention_desc *desc, double m, double dv)
{
    double cube = m * m * m, narrow = 2 * m * m * dv;
    switch (desc->gradient) {
    case ATN_GRADIENT_STEPS:
        return narrow + 2 * inverse_flops(&desc->inverse, m);
    case ATN_GRADIENT_PSEUDO:
        return narrow + 5 * 2 * cube + 2 * m * m;
    default:
        return narrow;
    }
}

void core_count_soft(atn_context *context, const atn_attention_desc *desc,
                     const atn_attention_shape *shape, atn_cost *cost)
{
    int64_t landmarks = 0;
    core_check_sampling(context, &desc->sampling, desc->dtype, shape->tokens, shape->dim,
                        &landmarks);
    double n = (double)shape->tokens, d = (double)shape->dim, dv = (double)shape->value_dim;
    double m = (double)landmarks, size = (double)atn_dtype_size(desc->dtype);
    bool factored = desc->inverse.method == ATN_INVERSE_PIVOTED_CHOLESKY;
    double window = (double)desc->residual.rows * (double)desc->residual.cols;
    double pairs = m * m + 2 * n * m;
    cost->flops =
        sampling_flops(&desc->sampling, m, n, d) + pairs * core_pair_flops(desc->distance, d) +
        inverse_flops(&desc->inverse, m) + residual_flops(&desc->inverse, m) + 4 * n * m * dv +
        (factored ? 2 * n * m * m : 2 * m * m * dv) + (desc->op == ATN_SOFTPP ? 3 * m * m : 0) +
        (desc->residual.data ? 2 * n * dv * window : 0);
    cost->exps = pairs + sampling_exps(&desc->sampling, m, n);
    /* P once; U = P V, P dY, dV and both parts of dP; X U and X dW, in factor form also L^-1 P. */
    cost->backward_flops =
        sampling_flops(&desc->sampling, m, n, d) +
        sampling_backward_flops(&desc->sampling, m, n, d) +
        (m * m + n * m) * core_pair_flops(desc->distance, d) + core_kernel_backward_flops(m, m, d) +
        core_kernel_backward_flops(n, m, d) + inverse_flops(&desc->inverse, m) +
        inverse_backward_flops(desc, m, dv) + 5 * 2 * n * m * dv + 2 * 2 * m * m * dv +
        (factored ? n * m * m : 0) + (desc->op == ATN_SOFTPP ? (3 + 3) * m * m : 0) +
        (desc->residual.data ? 2 * n * dv * window : 0);
    cost->backward_exps = cost->exps - n * m;
    bool wide = desc->dtype == ATN_BF16 && context->kind == ATN_CPU; /* L, A+, K(L,Q) V are f32 */
    cost->state_bytes = (wide ? sizeof(float) : size) * m * (d + m + dv);
    cost->bytes = size * (desc->residual.data ? window * (double)shape->heads : 0);
    if (desc->sampling.kind == ATN_SAMPLING_CONV || desc->sampling.kind == ATN_SAMPLING_CONV_CODE)
        cost->bytes += size * (double)desc->sampling.weights.rows *
                       (double)desc->sampling.weights.cols * (double)desc->sampling.weights.heads;
}

static const atn_variant variants[] = {
    {.name = "paper",
     .description = "20 Newton-Raphson steps from 2/|A|_1^2 (IJCV Alg. 2)",
     .properties = ATN_IS_LINEAR,
     .duplication = 2,
     .desc = {.inverse = {.method = ATN_INVERSE_NR_PAPER}}},
    {.name = "code",
     .description = "start 1.8/|A|_1^2, A + 0.01 I inverted (published code, 2022 on)",
     .properties = ATN_IS_LINEAR,
     .duplication = 2,
     .desc = {.inverse = {.method = ATN_INVERSE_NR_SOFT}}},
    {.name = "exact",
     .description = "rank-revealing Cholesky in factor form",
     .properties = ATN_IS_LINEAR,
     .duplication = 2,
     .desc = {.inverse = {.method = ATN_INVERSE_PIVOTED_CHOLESKY}}},
};

const operator_row core_soft = {
    .info = {.op = ATN_SOFT,
             .name = "soft",
             .formula = "Y = K(Q,L) K(L,L)+ K(L,Q) V, K(x,y) = exp(-s |x-y|^2)",
             .source = "SOFT (IJCV) Eq. 4-9, Alg. 1-2",
             .parameters = "scale, distance, sampling, inverse, gradient, residual",
             .capabilities = OPERATOR_BASICS | ATN_CAN_CPU_BF16,
             .differentiable = SOFT_DIFFERENTIABLE,
             .unsupported = SOFT_UNSUPPORTED,
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check_values = core_check_soft_values,
    .count = core_count_soft,
};
