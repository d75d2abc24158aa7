/* SPDX-License-Identifier: BSD-3-Clause */
/* Reformer's LSH attention for the registry; the arithmetic is in operators/lsh/cpu.c. */
#include "operators/lsh/plan.h"

#include <inttypes.h>
#include <math.h>

#include "operators/checks.h"

static atn_status check_buckets(atn_context *context, const atn_attention_desc *desc,
                                const atn_attention_shape *shape)
{
    const atn_lsh_options *options = &desc->lsh;
    const atn_tensor *rotations = &options->rotations;
    if (options->buckets && options->rounds < 1)
        return core_fail(context, ATN_ERR_VALUE, "lsh.rounds is %" PRId64 ", expected at least 1",
                         options->rounds);
    if (options->buckets)
        return ATN_OK;
    if (!rotations->data)
        return core_fail(context, ATN_ERR_NULL, "lsh: neither rotations nor buckets are given");
    if (rotations->heads < 1 || rotations->cols < 1 || rotations->cols > INT32_MAX / 2)
        return core_fail(context, ATN_ERR_SHAPE,
                         "lsh.rotations: %" PRId64 " rounds of %" PRId64
                         " pairs of buckets, expected at least 1 and 1",
                         rotations->heads, rotations->cols);
    return core_check_dense(context, "lsh.rotations", rotations, (int)desc->dtype, 1, -1,
                            shape->dim, -1);
}

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    const atn_lsh_options *options = &desc->lsh;
    atn_status status = core_check_logit_scale(context, desc);
    if (status == ATN_OK)
        status = check_buckets(context, desc, shape);
    if (status != ATN_OK)
        return status;
    if (!(fabs(options->self_logit) < INFINITY))
        return core_fail(context, ATN_ERR_VALUE, "lsh.self_logit is %g, expected finite",
                         options->self_logit);
    if (options->chunk < 1)
        return core_fail(context, ATN_ERR_VALUE, "lsh.chunk is %" PRId64 ", expected at least 1",
                         options->chunk);
    if (shape->tokens % options->chunk != 0 || shape->tokens > INT32_MAX)
        return core_fail(context, ATN_ERR_SHAPE,
                         "lsh: tokens is %" PRId64 ", expected a multiple of chunk, %" PRId64
                         ", and less than 2^31",
                         shape->tokens, options->chunk);
    double per_token =
        (double)core_lsh_rounds(options) + 2 * (double)shape->dim + (double)shape->value_dim;
    if (core_too_large((double)shape->tokens * (per_token + 8)))
        return core_fail(context, ATN_ERR_SHAPE, "the workspace does not fit into memory");
    return ATN_OK;
}

static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    const atn_lsh_options *options = &desc->lsh;
    double n = (double)shape->tokens, d = (double)shape->dim, dv = (double)shape->value_dim;
    double rounds = (double)core_lsh_rounds(options), element = (double)atn_dtype_size(desc->dtype);
    core_count_softmax(n, rounds * 2 * (double)options->chunk, d, dv, cost);
    cost->flops += 3 * n * d; /* |q| and q / |q| */
    cost->backward_flops += (3 + 5) * n * d;
    cost->state_bytes = rounds * n * (double)sizeof(int32_t) + 3 * n * element;
    if (options->buckets) {
        cost->bytes =
            (double)shape->batch * (double)shape->heads * rounds * n * (double)sizeof(int64_t);
        return;
    }
    double half = (double)options->rotations.cols;
    cost->flops += rounds * n * 2 * d * half;
    cost->backward_flops += rounds * n * 2 * d * half;
    cost->bytes = rounds * d * half * element;
}

static const atn_variant variants[] = {
    {.name = "reformer",
     .description =
         "chunks of 64, a token sees itself last, rounds by their weight (published code)",
     .properties = ATN_IS_LINEAR | ATN_IS_STOCHASTIC,
     .desc = {.lsh = {.rounds = 8, .chunk = 64, .self_logit = -5e4}}},
};

const operator_row core_lsh = {
    .info = {.op = ATN_LSH,
             .name = "lsh",
             .formula = "Y = softmax attention within chunks of equal hash, K = Q / |Q|",
             .source = "Kitaev et al. 2020 (Reformer)",
             .parameters = "lsh, logit_scale",
             .capabilities = OPERATOR_BASICS,
             .unsupported = "keys are the queries; a padded token's bucket would shift the chunks "
                            "of the others; the causal form is left out",
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
