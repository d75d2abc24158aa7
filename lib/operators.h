/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of the registry: what a plan needs of an operator. */
#ifndef OPERATORS_H
#define OPERATORS_H

#include "core/internal.h"

typedef struct {
    atn_operator_info info;
    size_t state_size; /* of the operator's planned state */
    /* Checks the description against the shape and fills the state. */
    atn_status (*prepare)(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, void *state);
    /* Adds up the state's memory or hands it out. */
    void (*layout)(core_arena *arena, void *state);
    atn_status (*forward)(atn_context *context, void *state, const atn_tensor *q,
                          const atn_tensor *k, const atn_tensor *v, atn_tensor *out,
                          atn_attention_info *info);
} operator_row;

/* null if out of range */
const operator_row *operator_row_get(atn_operator op);

#endif
