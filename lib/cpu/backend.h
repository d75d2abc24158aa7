/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU's entries of core_backend, and its families. */
#ifndef CPU_BACKEND_H
#define CPU_BACKEND_H

#include "operators/operator.h"

/* inverse/plan_cpu.c */
atn_status cpu_find_asymmetric(atn_context *context, const atn_tensor *a, int64_t *index);
atn_status cpu_find_unstored(atn_context *context, atn_storage storage, const atn_tensor *a,
                             int64_t *index);
atn_status cpu_inverse(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                       atn_tensor *x, atn_inverse_info *infos, atn_trace *traces);
atn_status cpu_inverse_apply(atn_context *context, const atn_inverse_desc *desc,
                             const atn_tensor *a, const atn_tensor *w, atn_tensor *y,
                             atn_inverse_info *infos);
atn_status cpu_inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                atn_gradient gradient, const atn_tensor *a, const atn_tensor *dx,
                                atn_tensor *da, atn_inverse_info *infos);

/* kernel/plan_cpu.c */
atn_status cpu_gaussian(atn_context *context, atn_distance distance, double s, const atn_tensor *x,
                        const atn_tensor *y, const atn_tensor *out);

/* sampling/plan_cpu.c */
atn_status cpu_sample(atn_context *context, const atn_sampling *sampling, int64_t m,
                      const atn_tensor *tokens, const atn_tensor *landmarks);

/* timing.c */
atn_status cpu_mark(atn_context *context, void **mark);
void cpu_free_mark(atn_context *context, void *mark);
atn_status cpu_between(atn_context *context, const void *from, const void *to, double *seconds);
atn_status cpu_multiply_add(atn_context *context, atn_dtype dtype, int64_t steps, void *scratch,
                            double *flops);

/* heads_plan.c: refuses bf16, which has forward alone. */
atn_status cpu_check_backward_dtype(atn_context *context, const atn_attention_desc *desc);
/* operators/soft/plan_cpu.c, heads_plan.c */
extern const operator_family cpu_soft_family, cpu_heads_family;

#endif
