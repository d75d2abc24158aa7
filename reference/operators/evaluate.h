/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators' references for attention.c: all arrays are f64. */
#ifndef REFERENCE_EVALUATE_H
#define REFERENCE_EVALUATE_H

#include "../attention.h"

/* Y of a checked problem with key_tokens filled in. */
atn_status ref_evaluate_real(const ref_attention_problem *problem,
                             const ref_attention_arrays *direction, double *out);

/* Its derivative in a direction. */
atn_status ref_evaluate_complex(const ref_attention_problem *problem,
                                const ref_attention_arrays *direction, double *out);

/* ref_attention_bottlenecks of a checked problem. */
int64_t ref_evaluate_bottlenecks_real(const ref_attention_problem *problem, double *a,
                                      double *alpha);
int64_t ref_evaluate_bottlenecks_complex(const ref_attention_problem *problem, double *a,
                                         double *alpha);

#endif
