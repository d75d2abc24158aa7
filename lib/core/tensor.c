/* SPDX-License-Identifier: BSD-3-Clause */
#include <attnum/tensor.h>

static const struct {
    const char *name;
    size_t size;
    double roundoff;
} dtypes[ATN_DTYPE_COUNT] = {
    [ATN_F32] = {"f32", 4, 0x1p-24},   [ATN_F64] = {"f64", 8, 0x1p-53},
    [ATN_TF32] = {"tf32", 4, 0x1p-11}, [ATN_BF16] = {"bf16", 2, 0x1p-8},
    [ATN_F16] = {"f16", 2, 0x1p-11},
};

static int dtype_known(atn_dtype dtype)
{
    return (int)dtype >= 0 && dtype < ATN_DTYPE_COUNT;
}

const char *atn_dtype_name(atn_dtype dtype)
{
    return dtype_known(dtype) ? dtypes[dtype].name : "unknown";
}

size_t atn_dtype_size(atn_dtype dtype)
{
    return dtype_known(dtype) ? dtypes[dtype].size : 0;
}

double atn_dtype_roundoff(atn_dtype dtype)
{
    return dtype_known(dtype) ? dtypes[dtype].roundoff : 0;
}

static int64_t saturated_product(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

atn_tensor atn_tensor_dense(void *data, atn_dtype dtype, int64_t batch, int64_t heads, int64_t rows,
                            int64_t cols)
{
    int64_t matrix = saturated_product(rows, cols);
    return (atn_tensor){
        .data = data,
        .dtype = dtype,
        .batch = batch,
        .heads = heads,
        .rows = rows,
        .cols = cols,
        .batch_stride = saturated_product(heads, matrix),
        .head_stride = matrix,
        .row_stride = cols,
    };
}

void *atn_tensor_matrix(const atn_tensor *tensor, int64_t batch, int64_t head)
{
    int64_t offset = batch * tensor->batch_stride + head * tensor->head_stride;
    return (char *)tensor->data + (ptrdiff_t)(offset * (int64_t)dtypes[tensor->dtype].size);
}

/* One level of the layout: `count` items of `extent` elements, `stride` apart. *extent becomes the
 * number of elements that the whole level spans. False if items overlap or the span overflows. */
static int span_level(int64_t count, int64_t stride, int64_t *extent)
{
    if (count <= 1)
        return 1;
    if (stride < *extent || stride < 0)
        return 0;
    int64_t steps;
    return !__builtin_mul_overflow(count - 1, stride, &steps) &&
           !__builtin_add_overflow(steps, *extent, extent);
}

typedef struct {
    int64_t count, stride;
} level;

atn_status atn_tensor_check(const atn_tensor *tensor)
{
    if (!tensor)
        return ATN_ERR_NULL;
    if (!dtype_known(tensor->dtype))
        return ATN_ERR_DTYPE;
    if (tensor->batch < 0 || tensor->heads < 0 || tensor->rows < 0 || tensor->cols < 0)
        return ATN_ERR_SHAPE;
    if (tensor->batch == 0 || tensor->heads == 0 || tensor->rows == 0 || tensor->cols == 0)
        return ATN_OK;
    if (!tensor->data)
        return ATN_ERR_NULL;
    /* From the innermost outwards: heads may lie between rows (batch x tokens x heads x d). */
    level levels[] = {{tensor->rows, tensor->row_stride},
                      {tensor->heads, tensor->head_stride},
                      {tensor->batch, tensor->batch_stride}};
    int64_t extent = tensor->cols, bytes;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 2; i++)
            if (levels[i].stride > levels[i + 1].stride) {
                level larger = levels[i];
                levels[i] = levels[i + 1];
                levels[i + 1] = larger;
            }
    for (int i = 0; i < 3; i++)
        if (!span_level(levels[i].count, levels[i].stride, &extent))
            return ATN_ERR_STRIDE;
    if (__builtin_mul_overflow(extent, (int64_t)dtypes[tensor->dtype].size, &bytes) ||
        bytes > PTRDIFF_MAX)
        return ATN_ERR_SHAPE;
    return ATN_OK;
}
