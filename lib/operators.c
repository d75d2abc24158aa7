/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry: one row per operator. */
#include "operators.h"

#include <stddef.h>
#include <string.h>

#include "core/rows.h"

static const operator_row *const rows[ATN_OPERATOR_COUNT] = {
    [ATN_SOFT] = &core_soft,
    [ATN_SOFTPP] = &core_softpp,
    [ATN_GAUSSIAN] = &core_gaussian_attention,
    [ATN_SOFTMAX] = &core_softmax,
    [ATN_LINFORMER] = &core_linformer,
    [ATN_SIMA] = &core_sima,
    [ATN_XNORM] = &core_xnorm,
    [ATN_XCA] = &core_xca,
    [ATN_EFFICIENT] = &core_efficient,
    [ATN_NYSTROMFORMER] = &core_nystromformer,
    [ATN_PERFORMER] = &core_performer,
    [ATN_RFF] = &core_rff,
    [ATN_ELU] = &core_elu,
    [ATN_COSFORMER] = &core_cosformer,
    [ATN_LSH] = &core_lsh,
};

const operator_row *operator_row_get(atn_operator op)
{
    return (unsigned)op < ATN_OPERATOR_COUNT ? rows[op] : NULL;
}

const atn_operator_info *atn_operator_get(atn_operator op)
{
    const operator_row *row = operator_row_get(op);
    return row ? &row->info : NULL;
}

const atn_operator_info *atn_operator_find(const char *name)
{
    for (int i = 0; name && i < ATN_OPERATOR_COUNT; i++)
        if (rows[i] && strcmp(rows[i]->info.name, name) == 0)
            return &rows[i]->info;
    return NULL;
}

/* Where each parameter's tensor stands in a description. */
static const size_t offsets[ATN_PARAMETER_COUNT] = {
    [ATN_PARAMETER_CONV] = offsetof(atn_attention_desc, sampling.weights),
    [ATN_PARAMETER_NORM_WEIGHT] = offsetof(atn_attention_desc, sampling.norm_weight),
    [ATN_PARAMETER_NORM_BIAS] = offsetof(atn_attention_desc, sampling.norm_bias),
    [ATN_PARAMETER_RESIDUAL] = offsetof(atn_attention_desc, residual),
    [ATN_PARAMETER_GAMMA] = offsetof(atn_attention_desc, xnorm.gamma),
    [ATN_PARAMETER_E] = offsetof(atn_attention_desc, linformer.e),
    [ATN_PARAMETER_F] = offsetof(atn_attention_desc, linformer.f),
    [ATN_PARAMETER_TEMPERATURE] = offsetof(atn_attention_desc, xca.temperature),
};

atn_tensor *atn_attention_parameter(atn_attention_desc *desc, atn_parameter parameter)
{
    if (!desc || (unsigned)parameter >= ATN_PARAMETER_COUNT)
        return NULL;
    return (atn_tensor *)((char *)desc + offsets[parameter]);
}
