/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/matrices.h"

#include "cuda/device.h"
#include "cuda/launch.cuh"
#include "cuda/matrix.cuh"

typedef struct {
    void *memory;
    atn_dtype type;
    int64_t stride, rows, cols;
} caller_matrix;

static __device__ caller_matrix matrix_of(const atn_tensor &t, int64_t i)
{
    int64_t first = i / t.heads * t.batch_stride + i % t.heads * t.head_stride;
    caller_matrix m = {(char *)t.data + first * type_bytes(t.dtype), t.dtype, t.row_stride, t.rows,
                       t.cols};
    return m;
}

static __device__ __forceinline__ real get(const caller_matrix &m, int64_t i, int64_t j)
{
    return real_load(m.memory, m.type, i * m.stride + j);
}

static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    gather_matrices(const __grid_constant__ atn_tensor t, real *dense)
{
    for (int64_t i = blockIdx.x; i < t.batch * t.heads; i += gridDim.x) {
        caller_matrix m = matrix_of(t, i);
        BLOCK_EACH (e, m.rows * m.cols)
            dense[i * m.rows * m.cols + e] = get(m, e / m.cols, e % m.cols);
    }
}

static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    scatter_matrices(const real *dense, const __grid_constant__ atn_tensor t)
{
    for (int64_t i = blockIdx.x; i < t.batch * t.heads; i += gridDim.x) {
        caller_matrix m = matrix_of(t, i);
        BLOCK_EACH (e, m.rows * m.cols)
            real_store(m.memory, m.type, e / m.cols * m.stride + e % m.cols,
                       dense[i * m.rows * m.cols + e]);
    }
}

/* NaN counts as equal to NaN, and as a number of every storage type. */
static __device__ bool is_marked(const caller_matrix &m, atn_storage storage, int64_t i, int64_t j)
{
    real x = get(m, i, j);
    if (storage != ATN_STORAGE_NATIVE)
        return storage_round(storage, x) != x && !isnan(x);
    real mirrored = get(m, j, i);
    return x != mirrored && !(isnan(x) && isnan(mirrored));
}

static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    mark_matrices(atn_storage storage, const __grid_constant__ atn_tensor t, int *marks)
{
    for (int64_t i = blockIdx.x; i < t.batch * t.heads; i += gridDim.x) {
        caller_matrix m = matrix_of(t, i);
        bool marked = false;
        BLOCK_EACH (e, m.rows * m.cols)
            marked |= is_marked(m, storage, e / m.cols, e % m.cols);
        marked = __syncthreads_or(marked);
        if (threadIdx.x == 0)
            marks[i] = marked;
    }
}

static dim3 blocks_of(const atn_tensor *t)
{
    int64_t count = t->batch * t->heads;
    return dim3((unsigned)(count < INT32_MAX ? count : INT32_MAX));
}

static bool is_empty(const atn_tensor *t)
{
    return t->batch * t->heads == 0 || t->rows == 0 || t->cols == 0;
}

static atn_status gather(atn_context *context, const atn_tensor *from, void *dense)
{
    if (is_empty(from))
        return ATN_OK;
    return device_result(context,
                         cuda_launch(gather_matrices, blocks_of(from), dim3(BLOCK_THREADS), 0,
                                     (cudaStream_t)device_stream(context), *from, (real *)dense),
                         "reading matrices");
}

static atn_status scatter(atn_context *context, const void *dense, const atn_tensor *to)
{
    if (is_empty(to))
        return ATN_OK;
    return device_result(context,
                         cuda_launch(scatter_matrices, blocks_of(to), dim3(BLOCK_THREADS), 0,
                                     (cudaStream_t)device_stream(context), (const real *)dense,
                                     *to),
                         "writing matrices");
}

static atn_status mark(atn_context *context, atn_storage storage, const atn_tensor *a, int *marks)
{
    if (is_empty(a))
        return ATN_OK;
    return device_result(context,
                         cuda_launch(mark_matrices, blocks_of(a), dim3(BLOCK_THREADS), 0,
                                     (cudaStream_t)device_stream(context), storage, *a, marks),
                         "checking matrices");
}

extern "C" const cuda_matrices_table R(cuda_matrices) = {gather, scatter, mark};
