/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan needs of an operator: its row of the registry, and the family that runs it. */
#ifndef OPERATORS_OPERATOR_H
#define OPERATORS_OPERATOR_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a family of operators is planned and run. Before forward and backward are called, tensors are
 * checked and have strides that BLAS accepts. */
typedef struct {
    size_t state_size; /* of the planned state */
    /* Checks the description against the shape and fills the state. */
    atn_status (*prepare)(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, void *state);
    /* The layout of the state's memory, on the device (core_arena). */
    void (*layout)(core_arena *arena, void *state);
    atn_status (*forward)(atn_context *context, void *state, const atn_attention_inputs *inputs,
                          atn_tensor *out, atn_attention_info *info);
    atn_status (*backward)(atn_context *context, void *state, const atn_attention_inputs *inputs,
                           const atn_tensor *dout, atn_gradients *gradients,
                           atn_attention_info *info);
    /* The status and info of the last call, once it has finished. */
    atn_status (*outcome)(atn_context *context, void *state, atn_attention_info *info);
    /* Whether a description that can run forward can run backward, too; null: it always can. */
    atn_status (*check_backward)(atn_context *context, const atn_attention_desc *desc);
} operator_family;

/* The families; every device has its own implementation of each (core/backend.h). */
typedef enum { OPERATOR_SOFT, OPERATOR_HEADS, OPERATOR_KIND_COUNT } operator_kind;

/* The capabilities that all operators have. */
#define OPERATOR_BASICS (ATN_CAN_F32 | ATN_CAN_F64 | ATN_CAN_CPU | ATN_CAN_CUDA | ATN_CAN_BACKWARD)

typedef struct {
    atn_operator_info info;
    /* Checks the operator's own fields. */
    atn_status (*check)(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape);
    /* Checks the current values of the arrays of a checked description, if wrong ones would make a
     * call read out of bounds or be meaningless; null: every value is allowed. */
    atn_status (*check_values)(atn_context *context, const atn_attention_desc *desc,
                               const atn_attention_shape *shape);
    /* Stores flops, exps and state_bytes of one head, those of backward, and the bytes of all
     * parameters read, in cost. Everything has been checked. */
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
