/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans SOFT and SOFT++ on the CPU (cpu.c, cpu_backward.c and cpu_bf16.c run them). */
#include <string.h>

#include "cpu/backend.h"
#include "cpu/table.h"
#include "inverse/plan.h"
#include "operators/soft/plan.h"
#include "sampling/plan.h"

/* In bf16 landmarks, A and A+ are f32, and what is built is the passes by an explicit A+. */
static atn_status check_bf16(atn_context *context, const atn_attention_desc *desc)
{
    const atn_sampling_kind kind = desc->sampling.kind;
    const char *what = desc->inverse.method == ATN_INVERSE_PIVOTED_CHOLESKY
                           ? "inverse pivoted-cholesky (cholesky and eig are as exact)"
                       : kind == ATN_SAMPLING_CONV || kind == ATN_SAMPLING_CONV_CODE
                           ? "sampling conv or conv-code"
                       : desc->residual.data ? "residual filter"
                                             : NULL;
    if (desc->dtype != ATN_BF16 || !what)
        return ATN_OK;
    return core_fail(context, ATN_ERR_UNSUPPORTED, "in bf16 the CPU has no %s", what);
}

static atn_status prepare(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, void *state)
{
    cpu_soft *soft = state;
    core_soft_plan plan;
    atn_status status = check_bf16(context, desc);
    if (status != ATN_OK || (status = core_check_soft(context, desc, shape, &plan)) != ATN_OK)
        return status;
    bool narrow = desc->dtype == ATN_BF16;
    if (desc->passes != ATN_SOFT_AUTO && desc->passes != ATN_SOFT_TILES)
        return core_fail(context, ATN_ERR_UNSUPPORTED,
                         "passes are %s, expected auto or tiles on "
                         "the CPU",
                         atn_soft_passes_name(desc->passes));
    *soft = (cpu_soft){
        .cpu = cpu_table_get(context, desc->dtype),
        .wide = cpu_table_get(context, narrow ? ATN_F32 : desc->dtype),
        .desc = plan.desc,
        .shape = *shape,
        .normalise = desc->op == ATN_SOFTPP,
        .threads = context->threads,
        .s = plan.s,
        .m = plan.m,
        .backward = plan.backward && !narrow,
    };
    double m = (double)soft->m + 64;
    double width = (double)shape->dim + (double)shape->value_dim + 64;
    if (core_too_large(core_sampling_chooses(desc->sampling.kind)
                           ? context->threads * (double)shape->tokens *
                                 (m + (narrow ? (double)shape->dim : 0))
                           : 0) ||
        core_too_large(context->threads * m * (256 + 2 * width)) ||
        core_too_large(narrow ? context->threads * 1024 * (m + width) : 0) ||
        core_inverse_too_large(soft->m, shape->batch * shape->heads, context->threads) ||
        (soft->backward && core_inverse_backward_too_large(&desc->inverse, desc->gradient, soft->m,
                                                           context->threads)))
        return core_fail(context, ATN_ERR_SHAPE, "the workspace does not fit into memory");
    return ATN_OK;
}

static void layout(core_arena *arena, void *state)
{
    cpu_soft *soft = state;
    soft->cpu->soft_layout(arena, soft);
}

static atn_status outcome(atn_context *context, void *state, atn_attention_info *info)
{
    (void)context;
    const cpu_soft *soft = state;
    int64_t heads = soft->shape.batch * soft->shape.heads;
    core_soft_outcome all = {ATN_OK, 0};
    for (int64_t i = 0; i < heads; i++)
        core_soft_count(&all, soft->inverse.infos[i].status);
    if (info) {
        info->landmarks = soft->m;
        info->failures = all.failures;
        if (info->inverses)
            memcpy(info->inverses, soft->inverse.infos, (size_t)heads * sizeof *info->inverses);
    }
    return all.worst;
}

static atn_status forward(atn_context *context, void *state, const atn_attention_inputs *inputs,
                          atn_tensor *out, atn_attention_info *info)
{
    cpu_soft *soft = state;
    atn_status status = soft->cpu->soft_forward(context, soft, inputs->q, inputs->v, out);
    return status < 0 ? status : outcome(context, soft, info);
}

static atn_status backward(atn_context *context, void *state, const atn_attention_inputs *inputs,
                           const atn_tensor *dout, atn_gradients *gradients,
                           atn_attention_info *info)
{
    cpu_soft *soft = state;
    atn_status status = soft->cpu->soft_backward(context, soft, inputs, dout, gradients);
    return status < 0 ? status : outcome(context, soft, info);
}

static atn_status check_backward(atn_context *context, const atn_attention_desc *desc)
{
    atn_status status = cpu_check_backward_dtype(context, desc);
    return status == ATN_OK ? core_check_soft_backward(context, desc) : status;
}

const operator_family cpu_soft_family = {sizeof(cpu_soft), prepare, layout,        forward,
                                         backward,         outcome, check_backward};
