/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ for the registry: checks, memory, counts. The arithmetic is in cpu/soft.c. */
#ifndef CORE_SOFT_H
#define CORE_SOFT_H

#include "core/internal.h"

atn_status core_soft_prepare(atn_context *context, const atn_attention_desc *desc,
                             const atn_attention_shape *shape, void *state);
void core_soft_layout(core_arena *arena, void *state);
atn_status core_soft_forward(atn_context *context, void *state, const atn_tensor *q,
                             const atn_tensor *k, const atn_tensor *v, atn_tensor *out,
                             atn_attention_info *info);
atn_status core_soft_cost(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, atn_cost *cost);

#endif
