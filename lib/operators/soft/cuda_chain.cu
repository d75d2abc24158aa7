/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT's passes over the tokens as a chain of library calls. */
#include "operators/soft/cuda_chain.h"

#include <cublas_v2.h>
#include <limits.h>

#include "cuda/device.h"
#include "cuda/launch.cuh"

#define REAL_F32
#include "cuda/real.cuh"

enum { THREADS = 256, COLUMNS = 32, ROWS = THREADS / COLUMNS };

/* ---- Elementwise kernels ---- */

static __device__ int64_t head_offset(const atn_tensor &t, int64_t piece)
{
    return piece / t.heads * t.batch_stride + piece % t.heads * t.head_stride;
}

/* norms[i] = |row i|^2, eight lanes for each row; flags heads whose rows are not finite. */
static __global__ void __launch_bounds__(THREADS)
    square_norms(const __grid_constant__ atn_tensor t, float *norms, int64_t stride, int *nonfinite)
{
    int64_t rows = t.batch * t.heads * t.rows, lane = threadIdx.x % 8;
    for (int64_t first = (int64_t)blockIdx.x * (THREADS / 8); first < rows;
         first += (int64_t)gridDim.x * (THREADS / 8)) {
        int64_t row = first + threadIdx.x / 8, piece = row / t.rows;
        float sum = 0;
        bool bad = false;
        for (int64_t c = lane; c < t.cols && row < rows; c += 8) {
            float x =
                real_load(t.data, t.dtype, head_offset(t, piece) + row % t.rows * t.row_stride + c);
            bad |= !isfinite(x);
            sum = fmaf(x, x, sum);
        }
        for (int away = 4; away > 0; away /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, away);
        if (row < rows && lane == 0)
            norms[piece * stride + row % t.rows] = sum;
        if (bad && nonfinite)
            nonfinite[piece] = 1;
    }
}

/* Replaces x.l by K(x, l); each token has one row of a block's threads. */
static __global__ void __launch_bounds__(THREADS)
    exponentials(const __grid_constant__ soft_chain c, int64_t n, int64_t pieces, atn_dtype dtype)
{
    int64_t m = c.f.m;
    for (int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / COLUMNS; row < pieces * n;
         row += (int64_t)gridDim.x * ROWS) {
        const float *norms = c.norms + row / n * (n + m);
        for (int64_t j = threadIdx.x % COLUMNS; j < m; j += COLUMNS) {
            float squared = norms[row % n] + norms[n + j] - 2 * c.products[row * m + j];
            if (c.f.clamp && squared < 0)
                squared = 0;
            real_store(c.kernel, dtype, row * m + j, expf((float)-c.f.s * squared));
        }
    }
}

/* Converts a head's rows x cols numbers from f32 to factors; flags it if they are not finite. */
static __global__ void __launch_bounds__(THREADS)
    to_factors(const float *from, int64_t from_stride, void *to, int64_t to_stride, int64_t count,
               int64_t pieces, atn_dtype dtype, int *nonfinite)
{
    for (int64_t piece = blockIdx.x; piece < pieces; piece += gridDim.x)
        for (int64_t e = threadIdx.x; e < count; e += THREADS) {
            float x = from[piece * from_stride + e];
            if (!isfinite(x))
                nonfinite[piece] = 1;
            real_store(to, dtype, piece * to_stride + e, x);
        }
}

static __global__ void __launch_bounds__(THREADS)
    inspect(const __grid_constant__ atn_tensor t, int *nonfinite)
{
    int64_t rows = t.batch * t.heads * t.rows;
    for (int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / COLUMNS; row < rows;
         row += (int64_t)gridDim.x * ROWS) {
        int64_t at = head_offset(t, row / t.rows) + row % t.rows * t.row_stride;
        for (int64_t c = threadIdx.x % COLUMNS; c < t.cols; c += COLUMNS)
            if (!isfinite(real_load(t.data, t.dtype, at + c)))
                nonfinite[row / t.rows] = 1;
    }
}

/* ---- Products ---- */

/* A matrix for each head, column-major as in cuBLAS. */
typedef struct {
    char *memory;
    cudaDataType type;
    int64_t rows, batch, heads; /* strides of columns, of entries of the batch, of heads */
} matrices;

static cudaDataType type_of(atn_dtype dtype)
{
    return dtype == ATN_BF16 ? CUDA_R_16BF : dtype == ATN_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static matrices of_view(const atn_tensor *t)
{
    matrices m = {(char *)t->data, type_of(t->dtype), t->row_stride, t->batch_stride,
                  t->head_stride};
    return m;
}

static matrices dense(void *memory, atn_dtype dtype, int64_t rows, int64_t each, int64_t heads)
{
    matrices m = {(char *)memory, type_of(dtype), rows, each * heads, each};
    return m;
}

static void *entry(const matrices *m, int64_t b)
{
    return m->memory + b * m->batch * (m->type == CUDA_R_32F ? 4 : 2);
}

/* C (rows x cols) = op(A) B or op(A) op(B) with inner size `inner`, for every head: one call for
 * each entry of the batch, whose heads have one stride. */
static atn_status multiply(atn_context *context, const soft_chain *chain, const atn_tensor *q,
                           cublasOperation_t a_op, cublasOperation_t b_op, int64_t rows,
                           int64_t cols, int64_t inner, matrices a, matrices b, matrices c)
{
    const float one = 1, zero = 0;
    cublasComputeType_t compute =
        q->dtype == ATN_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    int64_t heads = q->heads, whole = q->batch * heads;
    bool even =
        (a.batch == heads * a.heads && b.batch == heads * b.heads && c.batch == heads * c.heads) ||
        q->batch == 1;
    for (int64_t i = 0; i < (even ? 1 : q->batch); i++) {
        cublasStatus_t status = cublasGemmStridedBatchedEx(
            (cublasHandle_t)chain->blas, a_op, b_op, (int)rows, (int)cols, (int)inner, &one,
            entry(&a, i), a.type, (int)a.rows, a.heads, entry(&b, i), b.type, (int)b.rows, b.heads,
            &zero, entry(&c, i), c.type, (int)c.rows, c.heads, (int)(even ? whole : heads), compute,
            CUBLAS_GEMM_DEFAULT);
        if (status != CUBLAS_STATUS_SUCCESS)
            return core_fail(context, ATN_ERR_DEVICE, "cublasGemmStridedBatchedEx: %s",
                             cublasGetStatusString(status));
    }
    return ATN_OK;
}

/* ---- Calls ---- */

static dim3 blocks_for(int64_t rows, int64_t each)
{
    int64_t blocks = (rows + each - 1) / each;
    return dim3((unsigned)(blocks < 1 ? 1 : blocks < 1 << 20 ? blocks : 1 << 20));
}

static atn_status norms_of(atn_context *context, const atn_tensor *t, float *norms, int64_t stride,
                           int *nonfinite)
{
    return device_result(context,
                         cuda_launch(square_norms, blocks_for(t->batch * t->heads * t->rows, 32),
                                     dim3(THREADS), 0, (cudaStream_t)device_stream(context), *t,
                                     norms, stride, nonfinite),
                         "norms");
}

static atn_status factors_of(atn_context *context, const soft_chain *chain, const atn_tensor *q,
                             const float *from, int64_t width, int64_t stride)
{
    int64_t pieces = q->batch * q->heads;
    return device_result(context,
                         cuda_launch(to_factors, blocks_for(pieces, 1), dim3(THREADS), 0,
                                     (cudaStream_t)device_stream(context), from,
                                     chain->f.head_stride, chain->factors, stride,
                                     chain->f.m * width, pieces, q->dtype, chain->f.nonfinite),
                         "factors");
}

static atn_status form_kernel(atn_context *context, const soft_chain *chain, const atn_tensor *q)
{
    int64_t pieces = q->batch * q->heads;
    return device_result(context,
                         cuda_launch(exponentials, blocks_for(pieces * q->rows, ROWS),
                                     dim3(THREADS), 0, (cudaStream_t)device_stream(context), *chain,
                                     q->rows, pieces, q->dtype),
                         "exponentials");
}

atn_status soft_chain_sum(atn_context *context, const soft_chain *chain, const atn_tensor *q,
                          const atn_tensor *v)
{
    int64_t n = q->rows, m = chain->f.m, d = q->cols, dv = v->cols, heads = q->heads;
    int64_t stride = m * (d > dv ? d : dv);
    atn_tensor landmarks = atn_tensor_dense(chain->factors, q->dtype, q->batch, heads, m, d);
    landmarks.head_stride = stride;
    landmarks.batch_stride = stride * heads;
    matrices u = dense(chain->f.partials, ATN_F32, dv, chain->f.partial_stride, heads);
    matrices kernel = dense(chain->kernel, q->dtype, m, n * m, heads);
    atn_status status = factors_of(context, chain, q, chain->f.landmarks, d, stride);
    if (status == ATN_OK)
        status = norms_of(context, q, chain->norms, n + m, chain->f.nonfinite);
    if (status == ATN_OK)
        status = norms_of(context, &landmarks, chain->norms + n, n + m, NULL);
    if (status == ATN_OK) /* (Q L^T)^T = L Q^T */
        status = multiply(context, chain, q, CUBLAS_OP_T, CUBLAS_OP_N, m, n, d, of_view(&landmarks),
                          of_view(q), dense(chain->products, ATN_F32, m, n * m, heads));
    if (status == ATN_OK)
        status = form_kernel(context, chain, q);
    if (status == ATN_OK) /* U^T = V^T K(Q, L) */
        status =
            multiply(context, chain, q, CUBLAS_OP_N, CUBLAS_OP_T, dv, m, n, of_view(v), kernel, u);
    return status;
}

atn_status soft_chain_write(atn_context *context, const soft_chain *chain, const atn_tensor *q,
                            const atn_tensor *y)
{
    int64_t n = q->rows, m = chain->f.m, dv = y->cols, heads = q->heads;
    int64_t stride = m * (q->cols > dv ? q->cols : dv);
    matrices weights = dense(chain->factors, q->dtype, dv, stride, heads);
    matrices kernel = dense(chain->kernel, q->dtype, m, n * m, heads);
    atn_status status = factors_of(context, chain, q, chain->f.weights, dv, stride);
    if (status == ATN_OK) /* Y^T = W^T K(Q, L)^T */
        status = multiply(context, chain, q, CUBLAS_OP_N, CUBLAS_OP_N, dv, n, m, weights, kernel,
                          of_view(y));
    if (status == ATN_OK)
        status = device_result(context,
                               cuda_launch(inspect, blocks_for(y->batch * heads * n, ROWS),
                                           dim3(THREADS), 0, (cudaStream_t)device_stream(context),
                                           *y, chain->f.nonfinite),
                               "the search for NaN");
    return status;
}

/* ---- Plans ---- */

bool soft_chain_fits(const atn_attention_desc *desc, const atn_attention_shape *shape, int64_t m,
                     const char **reason)
{
    const char *against = NULL;
    if (desc->dtype == ATN_F64)
        against = "the dtype";
    else if (desc->distance == ATN_DISTANCE_DIRECT)
        against = "distance direct";
    else if (desc->inverse.method == ATN_INVERSE_PIVOTED_CHOLESKY)
        against = "the inverse in factor form";
    else if (desc->residual.data)
        against = "the residual";
    else if (shape->tokens > INT_MAX || shape->batch * shape->heads > INT_MAX || m < 1)
        against = "the shape";
    *reason = against ? against : "";
    return !against;
}

void soft_chain_layout(core_arena *arena, const atn_attention_desc *desc,
                       const atn_attention_shape *shape, int64_t m, soft_chain *chain)
{
    int64_t pieces = shape->batch * shape->heads, n = shape->tokens;
    int64_t wide = shape->dim > shape->value_dim ? shape->dim : shape->value_dim;
    size_t size = atn_dtype_size(desc->dtype);
    arena->overflow |= core_too_large((double)pieces * (double)m * ((double)n + (double)wide));
    if (arena->overflow)
        return;
    chain->factors = core_take(arena, pieces * m * wide, size);
    chain->products = (float *)core_take(arena, pieces * n * m, sizeof(float));
    chain->kernel =
        size == sizeof(float) ? chain->products : core_take(arena, pieces * n * m, size);
    chain->norms = (float *)core_take(arena, pieces * (n + m), sizeof(float));
}
