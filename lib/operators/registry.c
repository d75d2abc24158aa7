/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry: the operators' rows, each in its folder's plan.c. */
#include "operators/operator.h"

#include <stddef.h>
#include <string.h>

#include "operators/list.h"

#define EXTERN(code, name, family) extern const operator_row core_##name;
OPERATOR_LIST(EXTERN)

#define POSITION(code, name, family) POSITION_##name,
enum { OPERATOR_LIST(POSITION) POSITIONS };
/* Tables may rely on the order. */
#define IN_ORDER(code, name, family)                                                               \
    _Static_assert((int)(code) == (int)POSITION_##name, #name " is out of order in list.h");
OPERATOR_LIST(IN_ORDER)
_Static_assert((int)POSITIONS == (int)ATN_OPERATOR_COUNT, "an operator is missing in list.h");

#define ROW(code, name, family) &core_##name,
static const operator_row *const rows[] = {OPERATOR_LIST(ROW)};

#define FAMILY(code, name, family) OPERATOR_##family,
static const operator_kind kinds[] = {OPERATOR_LIST(FAMILY)};

const operator_row *operator_row_get(atn_operator op)
{
    return (unsigned)op < ATN_OPERATOR_COUNT ? rows[op] : NULL;
}

operator_kind operator_kind_get(atn_operator op)
{
    return kinds[op];
}

const atn_operator_info *atn_operator_get(atn_operator op)
{
    const operator_row *row = operator_row_get(op);
    return row ? &row->info : NULL;
}

const atn_operator_info *atn_operator_find(const char *name)
{
    for (int i = 0; name && i < ATN_OPERATOR_COUNT; i++)
        if (strcmp(rows[i]->info.name, name) == 0)
            return &rows[i]->info;
    return NULL;
}

/* The offset of each parameter's tensor in a description. */
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
