/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensor views: batch x heads x rows x cols, the last dimension contiguous. The strides, which
 * count elements, put the others in any order: heads may lie between the rows, as in memory that
 * is batch x tokens x heads x d.
 *
 * A view owns nothing and no function copies behind the caller's back.
 * Vectors and matrices are tensors with batch = heads = 1. Sizes are int64_t throughout. */
#ifndef ATTNUM_TENSOR_H
#define ATTNUM_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include <attnum/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. The CPU computes in the first ATN_CPU_DTYPE_COUNT of them, and forward of some
 * operators in bf16 (ATN_CAN_CPU_BF16); CUDA in all: tf32 is f32 in memory, but matrix products,
 * and nothing else, round their factors to 11 bits; bf16 and f16 are types of memory only, every
 * sum is in f32. */
typedef enum {
    ATN_F32,
    ATN_F64,
    ATN_TF32,
    ATN_BF16,
    ATN_F16,
    ATN_DTYPE_COUNT,
    ATN_CPU_DTYPE_COUNT = ATN_TF32
} atn_dtype;

typedef struct {
    void *data;
    atn_dtype dtype;
    int64_t batch, heads, rows, cols;
    int64_t batch_stride, head_stride, row_stride; /* in elements; row_stride >= cols */
} atn_tensor;

/* A view of dense memory: row_stride = cols, head_stride = rows cols, batch_stride = heads rows
 * cols; INT64_MAX where the product is more than that. */
atn_tensor atn_tensor_dense(void *data, atn_dtype dtype, int64_t batch, int64_t heads, int64_t rows,
                            int64_t cols);

/* The first element of matrix (batch, head) of a view. No bounds check. */
void *atn_tensor_matrix(const atn_tensor *tensor, int64_t batch, int64_t head);

/* ATN_OK, or why a view cannot be used: null data where the view has elements, unknown dtype,
 * negative sizes, rows, heads or batches that overlap, a size in bytes over PTRDIFF_MAX. */
atn_status atn_tensor_check(const atn_tensor *tensor);

/* "f32", "f64", "tf32", "bf16", "f16"; bytes per element; the unit roundoff u = 2^-24, 2^-53,
 * 2^-11, 2^-8, 2^-11. */
const char *atn_dtype_name(atn_dtype dtype);
size_t atn_dtype_size(atn_dtype dtype);
double atn_dtype_roundoff(atn_dtype dtype);

/* to[i] = from[i] for host memory, rounded to nearest, ties to even; overflow gives infinity. The
 * types may be any; f32 stored as tf32 is rounded to 11 bits. */
void atn_convert(atn_dtype to_type, void *to, atn_dtype from_type, const void *from, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
