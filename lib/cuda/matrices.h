/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices of a caller's tensor on CUDA: dense copies, and the checks of their entries. */
#ifndef CUDA_MATRICES_H
#define CUDA_MATRICES_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dense: all matrices one after the other, in the type of the arithmetic. All is enqueued. */
typedef struct {
    atn_status (*gather)(atn_context *context, const atn_tensor *from, void *dense);
    atn_status (*scatter)(atn_context *context, const void *dense, const atn_tensor *to);
    /* Sets per matrix whether it is not symmetric (storage native), or holds numbers that the
     * storage type does not have. */
    atn_status (*mark)(atn_context *context, atn_storage storage, const atn_tensor *a, int *marks);
} cuda_matrices_table;

extern const cuda_matrices_table cuda_matrices_f32, cuda_matrices_f64;

/* The table for the caller's dtype. */
const cuda_matrices_table *cuda_matrices_get(atn_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
