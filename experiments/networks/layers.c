/* SPDX-License-Identifier: BSD-3-Clause */
#include "networks/layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/report.h"
#include "cost/operators.h"

layer_count layer_add(layer_count a, layer_count b)
{
    return (layer_count){a.parameters + b.parameters, a.macs + b.macs,
                         a.inverse_macs + b.inverse_macs};
}

layer_count layer_times(int64_t times, layer_count a)
{
    return (layer_count){times * a.parameters, (double)times * a.macs,
                         (double)times * a.inverse_macs};
}

layer_count layer_conv(int64_t in, int64_t out, int64_t kernel, int64_t groups, bool bias,
                       int64_t side)
{
    int64_t weights = in / groups * out * kernel * kernel;
    return (layer_count){.parameters = weights + (bias ? out : 0),
                         .macs = (double)weights * (double)(side * side)};
}

layer_count layer_linear(int64_t in, int64_t out, bool bias, int64_t rows)
{
    return (layer_count){.parameters = in * out + (bias ? out : 0),
                         .macs = (double)(in * out) * (double)rows};
}

layer_count layer_norm(int64_t width)
{
    return (layer_count){.parameters = 2 * width};
}

layer_count layer_embedding(int64_t rows, int64_t width)
{
    return (layer_count){.parameters = rows * width};
}

layer_count layer_mlp(int64_t width, int64_t ratio, int64_t rows)
{
    return layer_add(layer_linear(width, ratio * width, true, rows),
                     layer_linear(ratio * width, width, true, rows));
}

/* ---- Attention ---- */

static bool is_soft(atn_operator op)
{
    return op == ATN_SOFT || op == ATN_SOFTPP;
}

static int64_t features(const attention_layer *a)
{
    return (int64_t)((double)a->dim * log((double)a->dim)); /* floor(d ln d), as in cost/counts */
}

static int64_t sampling_parameters(const attention_layer *a)
{
    if (!is_soft(a->op) && !a->sampled)
        return 0;
    int64_t filter = a->dim * a->dim * a->stride * a->stride;
    switch (a->sampling) {
    case ATN_SAMPLING_CONV:
        return filter;
    case ATN_SAMPLING_CONV_CODE:
        return filter + layer_norm(a->dim).parameters;
    default:
        return 0;
    }
}

static int64_t operator_parameters(const attention_layer *a)
{
    switch (a->op) {
    case ATN_LINFORMER:
        return a->key_tokens * a->landmarks; /* E, shared by the heads; F = E */
    case ATN_XCA:                            /* tau */
    case ATN_XNORM:                          /* gamma */
        return a->heads;
    default:
        return sampling_parameters(a) + a->heads * a->residual * a->residual;
    }
}

/* At least as many numbers as the largest tensor of the description has. Costs depend on shapes
 * alone: the numbers are never read. */
static float *make_room(const attention_layer *a)
{
    int64_t room = a->dim * a->dim * a->stride * a->stride + a->heads * a->residual * a->residual +
                   a->key_tokens * a->landmarks + features(a) * a->dim;
    return must_allocate((size_t)room, sizeof(float));
}

static atn_attention_desc description(const attention_layer *a, float *room)
{
    atn_attention_desc desc =
        atn_attention_variant(a->op, cost_variant(a->op, a->variant), ATN_F32);
    int64_t grid = a->grid;
    desc.distance = ATN_DISTANCE_EXPANDED; /* products, as in the published configurations */
    desc.sampling = (atn_sampling){.kind = a->sampling,
                                   .height = grid,
                                   .width = grid,
                                   .stride = a->stride,
                                   .count = a->landmarks};
    desc.sampling.weights =
        atn_tensor_dense(room, ATN_F32, 1, a->dim, a->dim, a->stride * a->stride);
    if (a->residual > 0) {
        desc.residual = atn_tensor_dense(room, ATN_F32, 1, a->heads, a->residual, a->residual);
        desc.residual_height = desc.residual_width = grid;
    }
    desc.linformer.e = atn_tensor_dense(room, ATN_F32, 1, 1, a->key_tokens, a->landmarks);
    desc.performer.projection = atn_tensor_dense(room, ATN_F32, 1, 1, features(a), a->dim);
    desc.nystromformer.landmarks = a->landmarks;
    return desc;
}

/* The inverse's share, from the cost of one more step. */
static atn_status count_inverse(atn_context *context, const atn_attention_desc *desc,
                                const atn_attention_shape *shape, double flops, layer_count *count)
{
    atn_attention_desc longer = *desc;
    bool nystrom = desc->op == ATN_NYSTROMFORMER;
    if (!is_soft(desc->op) && !nystrom)
        return ATN_OK;
    int steps = nystrom ? longer.nystromformer.iterations++ : longer.inverse.iterations++;
    atn_cost cost;
    atn_status status = atn_attention_cost(context, &longer, shape, &cost);
    count->inverse_macs = steps * (cost.flops - flops) / 2;
    return status;
}

/* From the library's multiply-adds of a Gaussian kernel to those of the published code's products:
 * a distance is a product of d, without the two sums and the scale that make it one. SOFT forms P
 * once and multiplies (P A+) (P^T V), where the library, which streams the tokens, forms P twice
 * and multiplies P (A+ (P^T V)), and reports a residual of A+, two more products. */
static atn_status count_as_published(atn_context *context, const attention_layer *a,
                                     const atn_sampling *sampling, double *macs)
{
    const double apart = 1.5; /* what is not a product of a distance, in multiply-adds */
    double heads = (double)a->heads, n = (double)a->tokens, d = (double)a->dim;
    if (a->op == ATN_GAUSSIAN)
        *macs -= heads * apart * n * (double)a->key_tokens;
    if (!is_soft(a->op))
        return ATN_OK;
    int64_t landmarks;
    atn_status status = atn_sampling_count(context, sampling, a->tokens, a->dim, &landmarks);
    if (status != ATN_OK)
        return status;
    double m = (double)landmarks, twice = n * m * (d + apart), residual = 2 * m * m * m;
    *macs -= heads * (twice + apart * (n * m + m * m) + residual);
    *macs += heads * (n * m * m - m * m * d);
    return ATN_OK;
}

int layer_attention(atn_context *context, const attention_layer *a, layer_count *count)
{
    float *room = make_room(a);
    atn_attention_desc desc = description(a, room);
    atn_attention_shape shape = {.batch = 1,
                                 .heads = a->heads,
                                 .tokens = a->tokens,
                                 .dim = a->dim,
                                 .value_dim = a->dim,
                                 .key_tokens = a->key_tokens};
    atn_cost cost;
    *count = (layer_count){.parameters = operator_parameters(a)};
    atn_status status = atn_attention_cost(context, &desc, &shape, &cost);
    if (status == ATN_OK) {
        count->macs = cost.flops / 2;
        status = count_inverse(context, &desc, &shape, cost.flops, count);
    }
    if (status == ATN_OK)
        status = count_as_published(context, a, &desc.sampling, &count->macs);
    if (a->op == ATN_GAUSSIAN && a->sampled) /* L = Q W, heads share W */
        count->macs += layer_linear(a->dim, a->dim, false, a->tokens * a->heads).macs;
    free(room);
    if (status == ATN_OK)
        return EXIT_PASS;
    report_error("%s/%s n=%" PRId64 " h=%" PRId64 ": %s", atn_operator_get(a->op)->name, a->variant,
                 a->tokens, a->heads, atn_last_error(context));
    return EXIT_ENVIRONMENT;
}
