/* SPDX-License-Identifier: BSD-3-Clause */
/* SimA for the registry; the arithmetic is in operators/sima/cpu.c. */
#include "operators/sima/plan.h"

#include "operators/checks.h"

/* The CPU in bf16 (cpu_bf16.c). */
static bool has_channels_only(const atn_context *context, const atn_attention_desc *desc)
{
    return desc->dtype == ATN_BF16 && context->kind == ATN_CPU;
}

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    (void)shape;
    const atn_sima_options *o = &desc->sima;
    atn_status status = core_check_choice(context, "sima.norm", (int)o->norm, ATN_SIMA_NORM_COUNT);
    if (status == ATN_OK)
        status = core_check_choice(context, "sima.order", (int)o->order, ATN_ORDER_COUNT);
    if (status == ATN_OK && has_channels_only(context, desc) && o->order == ATN_ORDER_TOKENS)
        status = core_fail(context, ATN_ERR_UNSUPPORTED,
                           "sima.order tokens: the CPU has channels first in bf16");
    return status == ATN_OK ? core_check_epsilon(context, "sima.epsilon", o->epsilon) : status;
}

static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    /* Flops per element: adding |x| (l1) or x^2 (l2), and scaling. */
    static const double norm_flops[ATN_SIMA_NORM_COUNT] = {
        [ATN_SIMA_L1] = 2, [ATN_SIMA_L2] = 3, [ATN_SIMA_NONE] = 0};
    double n = (double)shape->tokens, n_k = (double)shape->key_tokens;
    double d = (double)shape->dim, dv = (double)shape->value_dim;
    bool tokens = !has_channels_only(context, desc) &&
                  core_sima_tokens_first(&desc->sima, shape->tokens, shape->key_tokens, shape->dim,
                                         shape->value_dim);
    double norms = desc->sima.norm == ATN_SIMA_NONE ? 0 : 2 * d;
    cost->flops =
        norm_flops[desc->sima.norm] * (n + n_k) * d +
        (tokens ? core_sima_tokens_flops(n, n_k, d, dv) : core_sima_channels_flops(n, n_k, d, dv));
    /* The derivative of a norm: of an element of x/|x|_1 the scale and a difference, of one of
     * x/|x|_2 also a product. The sums of x^ dx^ over tokens, the same for Q and K, are those of a
     * matrix and its derivative: K^^T V, or for both the tokens' own. */
    static const double norm_backward_flops[ATN_SIMA_NORM_COUNT] = {
        [ATN_SIMA_L1] = 2, [ATN_SIMA_L2] = 3, [ATN_SIMA_NONE] = 0};
    double sums = tokens ? 2 * (n + n_k) * d : 2 * d * dv;
    cost->backward_flops =
        (norm_flops[desc->sima.norm] + norm_backward_flops[desc->sima.norm]) * (n + n_k) * d +
        (desc->sima.norm == ATN_SIMA_NONE ? 0 : sums) +
        (tokens ? 2 * n * n_k * (3 * d + 2 * dv) : core_context_backward_flops(n, n_k, d, dv));
    cost->state_bytes = (norms + (tokens ? 0 : d * dv)) * (double)atn_dtype_size(desc->dtype);
}

/* If every token is given twice, an l1 norm doubles, so Q^ and K^ are halved, and the sum over keys
 * doubles: 1/2. An l2 norm grows by sqrt(2): (1/sqrt(2))^2 2 = 1. Without norms only the sum
 * doubles: 2. */
static const atn_variant variants[] = {
    {.name = "paper",
     .description = "l1 norms, no epsilon, fewer flops first (SimA Eq. 1-2)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_COLUMN_FREE,
     .duplication = 0.5,
     .desc = {.sima = {.norm = ATN_SIMA_L1}}},
    {.name = "code",
     .description = "norms of at least 1e-12 (published code, blocks)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_COLUMN_FREE,
     .duplication = 0.5,
     .desc = {.sima = {.norm = ATN_SIMA_L1, .epsilon = 1e-12}}},
    {.name = "class-attention",
     .description = "norms of at least 1e-6 (published code, class attention)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_COLUMN_FREE,
     .duplication = 0.5,
     .desc = {.sima = {.norm = ATN_SIMA_L1, .epsilon = 1e-6}}},
    {.name = "l2",
     .description = "l2 norms (SimA section 4.6, ablation)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_COLUMN_FREE,
     .duplication = 1,
     .desc = {.sima = {.norm = ATN_SIMA_L2}}},
    {.name = "none",
     .description = "no norms: Q K^T V (SimA section 4.6, ablation)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR,
     .duplication = 2,
     .desc = {.sima = {.norm = ATN_SIMA_NONE}}},
    {.name = "tokens",
     .description = "(Q^ K^^T) V whatever it costs (SimA section 2.2, small n)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_COLUMN_FREE,
     .duplication = 0.5,
     .desc = {.sima = {.norm = ATN_SIMA_L1, .order = ATN_ORDER_TOKENS}}},
    {.name = "channels",
     .description = "Q^ (K^^T V) whatever it costs (SimA section 2.2, large n)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR | ATN_IS_COLUMN_FREE,
     .duplication = 0.5,
     .desc = {.sima = {.norm = ATN_SIMA_L1, .order = ATN_ORDER_CHANNELS}}},
};

const operator_row core_sima = {
    .info = {.op = ATN_SIMA,
             .name = "sima",
             .formula = "Y = Q^ K^^T V, Q^ and K^ with columns of l1 norm 1",
             .source = "SimA Eq. 1-2, section 4.6",
             .parameters = "sima.norm, sima.order, sima.epsilon",
             .capabilities = OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_LENGTHS |
                             ATN_CAN_CPU_BF16,
             .unsupported = "no causal form is published: the norms run over all tokens",
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
