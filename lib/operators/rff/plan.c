/* SPDX-License-Identifier: BSD-3-Clause */
/* Random Fourier features for the registry; the arithmetic is in operators/rff/cpu.c. */
#include <math.h>

#include "operators/checks.h"
#include "operators/features/plan.h"

static atn_status check(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    double s = atn_kernel_scale(desc->scale, desc->scale_value, shape->heads, shape->dim);
    atn_status status = core_check_choice(context, "scale", (int)desc->scale, ATN_SCALE_COUNT);
    if (status == ATN_OK && !(s > 0 && s < INFINITY))
        status = core_fail(context, ATN_ERR_VALUE, "scale is %g, expected positive and finite", s);
    return status == ATN_OK ? core_check_projection(context, &desc->rff.projection, desc, shape)
                            : status;
}

/* sqrt(2 s) x takes d, w.x 2 d per row of w, / sqrt(M) one per feature. */
static void count(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost)
{
    (void)context;
    double m = (double)desc->rff.projection.rows, d = (double)shape->dim;
    double tokens = (double)shape->tokens + (double)shape->key_tokens;
    cost->flops = tokens * (d + m * (2 * d + 2));
    cost->backward_flops = cost->flops + tokens * (m * (2 * d + 3) + d); /* cos du - sin du */
    cost->exps = cost->backward_exps = tokens * 2 * m;
    cost->bytes = core_projection_bytes(&desc->rff.projection);
    core_count_linear(desc, shape, 2 * m, false, cost);
}

static const atn_variant variants[] = {
    {.name = "fourier",
     .description = "cosines and sines of the same projections (Rahimi and Recht 2007)",
     .properties = ATN_IS_PERMUTABLE | ATN_IS_LINEAR,
     .duplication = 2,
     .desc = {.scale = ATN_SCALE_HEAD}},
};

const operator_row core_rff = {
    .info = {.op = ATN_RFF,
             .name = "rff",
             .formula = "Y = phi(Q) phi(K)^T V, E phi(x).phi(y) = exp(-s |x-y|^2)",
             .source = "Rahimi and Recht 2007; SOFT (IJCV) Eq. 4 for the kernel",
             .parameters = "scale, rff",
             .capabilities = OPERATOR_BASICS | ATN_CAN_MASK | ATN_CAN_CROSS | ATN_CAN_LENGTHS,
             .unsupported = "no causal form is published",
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check = check,
    .count = count,
};
