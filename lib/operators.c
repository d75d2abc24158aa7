/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry: one row per operator. */
#include "operators.h"

#include <string.h>

#include "core/soft.h"
#include "cpu/table.h"

static const operator_row rows[ATN_OPERATOR_COUNT] = {
    [ATN_SOFT] =
        {
            .info = {.op = ATN_SOFT,
                     .name = "soft",
                     .formula = "Y = K(Q,L) K(L,L)+ K(L,Q) V, K(x,y) = exp(-s |x-y|^2)",
                     .source = "SOFT (IJCV) Eq. 4-9, Alg. 1-2",
                     .parameters = "scale, distance, sampling, inverse, residual",
                     .capabilities = ATN_CAN_F32 | ATN_CAN_F64 | ATN_CAN_CPU,
                     .cost = core_soft_cost},
            .state_size = sizeof(cpu_soft),
            .prepare = core_soft_prepare,
            .layout = core_soft_layout,
            .forward = core_soft_forward,
        },
    [ATN_SOFTPP] =
        {
            .info = {.op = ATN_SOFTPP,
                     .name = "softpp",
                     .formula = "Y = K(Q,L) D^-1/2 K(L,L)+ D^-1/2 K(L,Q) V, D = diag(K(L,L) 1)",
                     .source = "SOFT (IJCV) Eq. 17",
                     .parameters = "scale, distance, sampling, inverse, residual",
                     .capabilities = ATN_CAN_F32 | ATN_CAN_F64 | ATN_CAN_CPU,
                     .cost = core_soft_cost},
            .state_size = sizeof(cpu_soft),
            .prepare = core_soft_prepare,
            .layout = core_soft_layout,
            .forward = core_soft_forward,
        },
};

const operator_row *operator_row_get(atn_operator op)
{
    return (unsigned)op < ATN_OPERATOR_COUNT ? &rows[op] : NULL;
}

const atn_operator_info *atn_operator_get(atn_operator op)
{
    const operator_row *row = operator_row_get(op);
    return row ? &row->info : NULL;
}

const atn_operator_info *atn_operator_find(const char *name)
{
    for (int i = 0; name && i < ATN_OPERATOR_COUNT; i++)
        if (strcmp(rows[i].info.name, name) == 0)
            return &rows[i].info;
    return NULL;
}
