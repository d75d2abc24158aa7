/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan needs of an operator: its row of the registry, and the family that runs it. */
#ifndef OPERATORS_OPERATOR_H
#define OPERATORS_OPERATOR_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a family of operators is planned and run. Tensors are checked, and fit for BLAS, before
 * forward and backward see them. */
typedef struct {
    size_t state_size; /* of the planned state */
    /* Checks the description against the shape and fills the state. */
    atn_status (*prepare)(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, void *state);
    /* Adds up the state's memory, the device's, or hands it out. */
    void (*layout)(core_arena *arena, void *state);
    atn_status (*forward)(atn_context *context, void *state, const atn_attention_inputs *inputs,
                          atn_tensor *out, atn_attention_info *info);
    atn_status (*backward)(atn_context *context, void *state, const atn_attention_inputs *inputs,
                           const atn_tensor *dout, atn_gradients *gradients,
                           atn_attention_info *info);
    /* What the last call said, once it has finished. */
    atn_status (*outcome)(atn_context *context, void *state, atn_attention_info *info);
    /* Whether the description, which can run forward, can run backward; null: it always can. */
    atn_status (*check_backward)(atn_context *context, const atn_attention_desc *desc);
} operator_family;

/* The families, which every device has its own of (core/backend.h). */
typedef enum { OPERATOR_SOFT, OPERATOR_HEADS, OPERATOR_KIND_COUNT } operator_kind;

typedef struct {
    atn_operator_info info;
    /* Checks what is the operator's own. */
    atn_status (*check)(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape);
    /* Checks the values that the arrays of a checked description have now, where a wrong one would
     * make a call read other memory or mean nothing; null: any value will do. */
    atn_status (*check_values)(atn_context *context, const atn_attention_desc *desc,
                               const atn_attention_shape *shape);
    /* flops, exps and state_bytes of one head, and the bytes of all parameters read, into cost.
     * Everything has been checked. */
    void (*count)(atn_context *context, const atn_attention_desc *desc,
                  const atn_attention_shape *shape, atn_cost *cost);
} operator_row;

/* null if out of range */
const operator_row *operator_row_get(atn_operator op);

/* Of a known operator. */
operator_kind operator_kind_get(atn_operator op);

#ifdef __cplusplus
}
#endif
#endif
