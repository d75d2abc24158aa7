/* SPDX-License-Identifier: BSD-3-Clause */
/* cuBLAS over the CPU's BLAS: the same column-major conventions, checks and refusals. */
#include <vector>

#include <cblas.h>

#include "cublas_v2.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "library.h"

struct cublasContext : handle_base {
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
    bool workspace = false; /* the caller's */
};

/* A product without a workspace of the caller's may take its own memory: here it always does. */
static cublasStatus_t take_workspace(cublasHandle_t handle)
{
    void *memory = nullptr;
    if (handle->workspace)
        return CUBLAS_STATUS_SUCCESS;
    if (cudaMalloc(&memory, 1) != cudaSuccess)
        return CUBLAS_STATUS_ALLOC_FAILED;
    cudaFree(memory);
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" {

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    return create(handle, CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_ALLOC_FAILED,
                  CUBLAS_STATUS_SUCCESS);
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    delete handle;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->workspace = false; /* as the library documents it */
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t size)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (size > 0 && !emulator_on_device(workspace, size))
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = size > 0;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    static const struct {
        cublasStatus_t status;
        const char *text;
    } texts[] = {
        {CUBLAS_STATUS_SUCCESS, "success"},
        {CUBLAS_STATUS_NOT_INITIALIZED, "the library was not initialized"},
        {CUBLAS_STATUS_ALLOC_FAILED, "the resource allocation failed"},
        {CUBLAS_STATUS_INVALID_VALUE,
         "an unsupported value or parameter was passed to the function"},
        {CUBLAS_STATUS_EXECUTION_FAILED, "the function failed to launch on the GPU"},
        {CUBLAS_STATUS_INTERNAL_ERROR, "an internal operation failed"},
        {CUBLAS_STATUS_NOT_SUPPORTED, "the functionality requested is not supported"},
    };
    for (const auto &row : texts)
        if (row.status == status)
            return row.text;
    return "unknown status";
}

} /* extern "C" */

static size_t type_size(cudaDataType type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

template <class T> static T load(const void *data, cudaDataType type, long long at)
{
    switch (type) {
    case CUDA_R_32F:
        return static_cast<T>(static_cast<const float *>(data)[at]);
    case CUDA_R_64F:
        return static_cast<T>(static_cast<const double *>(data)[at]);
    case CUDA_R_16F:
        return static_cast<T>(__half2float(static_cast<const __half *>(data)[at]));
    case CUDA_R_16BF:
        return static_cast<T>(__bfloat162float(static_cast<const __nv_bfloat16 *>(data)[at]));
    }
    return NAN;
}

template <class T> static void store(void *data, cudaDataType type, long long at, T x)
{
    switch (type) {
    case CUDA_R_32F:
        static_cast<float *>(data)[at] = static_cast<float>(x);
        break;
    case CUDA_R_64F:
        static_cast<double *>(data)[at] = x;
        break;
    case CUDA_R_16F:
        static_cast<__half *>(data)[at] = __float2half_rn(static_cast<float>(x));
        break;
    case CUDA_R_16BF:
        static_cast<__nv_bfloat16 *>(data)[at] = __float2bfloat16_rn(static_cast<float>(x));
        break;
    }
}

static float to_tf32(float x) /* 11 bits, ties to even */
{
    unsigned bits = __float_as_uint(x);
    if (!std::isfinite(x))
        return x;
    bits += 0xfff + (bits >> 13 & 1);
    return __uint_as_float(bits & ~0x1fffu);
}

static double to_tf32(double x)
{
    return x; /* not asked for */
}

static CBLAS_TRANSPOSE transposed(cublasOperation_t op)
{
    return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}

struct gemm_matrix {
    const void *data;
    cudaDataType type;
    int leading;
    long long stride;
    long long rows, cols; /* as stored */
};

struct gemm_call {
    cublasOperation_t transa, transb;
    int m, n, k;
    gemm_matrix a, b, c;
    int count;
    bool tf32;
};

static void multiply(const gemm_call &g, float alpha, const float *a, const float *b, float beta,
                     float *c)
{
    cblas_sgemm(CblasColMajor, transposed(g.transa), transposed(g.transb), g.m, g.n, g.k, alpha, a,
                max(1, (int)g.a.rows), b, max(1, (int)g.b.rows), beta, c, g.m);
}

static void multiply(const gemm_call &g, double alpha, const double *a, const double *b,
                     double beta, double *c)
{
    cblas_dgemm(CblasColMajor, transposed(g.transa), transposed(g.transb), g.m, g.n, g.k, alpha, a,
                max(1, (int)g.a.rows), b, max(1, (int)g.b.rows), beta, c, g.m);
}

/* One matrix of a batch without gaps, in the type that is computed in. */
template <class T> static std::vector<T> packed(const gemm_matrix &m, long long index, bool tf32)
{
    std::vector<T> copy((size_t)(m.rows * m.cols));
    for (long long j = 0; j < m.cols; j++) {
        for (long long i = 0; i < m.rows; i++) {
            T x = load<T>(m.data, m.type, index * m.stride + j * m.leading + i);
            copy[(size_t)(j * m.rows + i)] = tf32 ? to_tf32(x) : x;
        }
    }
    return copy;
}

static matrices extent_of(const gemm_matrix &m, int count)
{
    return {m.data, type_size(m.type), m.rows, m.cols, m.leading, m.stride, count};
}

template <class T> static cublasStatus_t gemm(gemm_call g, const void *alpha, const void *beta)
{
    bool a_transposed = g.transa != CUBLAS_OP_N, b_transposed = g.transb != CUBLAS_OP_N;
    if (g.m < 0 || g.n < 0 || g.k < 0 || g.count < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    g.a.rows = a_transposed ? g.k : g.m;
    g.a.cols = a_transposed ? g.m : g.k;
    g.b.rows = b_transposed ? g.n : g.k;
    g.b.cols = b_transposed ? g.k : g.n;
    g.c.rows = g.m;
    g.c.cols = g.n;
    if (g.a.leading < max(1LL, g.a.rows) || g.b.leading < max(1LL, g.b.rows) ||
        g.c.leading < max(1, g.m) || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (g.m == 0 || g.n == 0 || g.count == 0)
        return CUBLAS_STATUS_SUCCESS;
    if (!enqueue() || !reachable("gemm's A", extent_of(g.a, g.count)) ||
        !reachable("gemm's B", extent_of(g.b, g.count)) ||
        !reachable("gemm's C", extent_of(g.c, g.count)))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    emulator_access access;
    for (int index = 0; index < g.count; index++) {
        std::vector<T> a = packed<T>(g.a, index, g.tf32), b = packed<T>(g.b, index, g.tf32);
        std::vector<T> c = packed<T>(g.c, index, false);
        multiply(g, *(const T *)alpha, a.data(), b.data(), *(const T *)beta, c.data());
        for (long long j = 0; j < g.n; j++)
            for (long long i = 0; i < g.m; i++)
                store(const_cast<void *>(g.c.data), g.c.type,
                      index * g.c.stride + j * g.c.leading + i, c[(size_t)(j * g.m + i)]);
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* Types of A and B, of C, and of the sums, that go together. */
static bool supported(cudaDataType factors, cudaDataType result, cublasComputeType_t compute)
{
    bool narrow = factors == CUDA_R_16F || factors == CUDA_R_16BF;
    if (compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC)
        return factors == CUDA_R_64F && result == CUDA_R_64F;
    if (narrow && compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        return false;
    return (narrow || factors == CUDA_R_32F) && (result == factors || result == CUDA_R_32F);
}

extern "C" {

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void *alpha, const void *A, cudaDataType Atype,
                                          int lda, long long int strideA, const void *B,
                                          cudaDataType Btype, int ldb, long long int strideB,
                                          const void *beta, void *C, cudaDataType Ctype, int ldc,
                                          long long int strideC, int batchCount,
                                          cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (Atype != Btype || !supported(Atype, Ctype, computeType))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    bool tf32 = computeType == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                (computeType == CUBLAS_COMPUTE_32F && Atype == CUDA_R_32F &&
                 handle->math == CUBLAS_TF32_TENSOR_OP_MATH);
    gemm_call g = {transa,
                   transb,
                   m,
                   n,
                   k,
                   {A, Atype, lda, strideA, 0, 0},
                   {B, Btype, ldb, strideB, 0, 0},
                   {C, Ctype, ldc, strideC, 0, 0},
                   batchCount,
                   tf32};
    cublasStatus_t status = take_workspace(handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return Atype == CUDA_R_64F ? gemm<double>(g, alpha, beta) : gemm<float>(g, alpha, beta);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const float *alpha, const float *A, int lda,
                                         long long int strideA, const float *B, int ldb,
                                         long long int strideB, const float *beta, float *C,
                                         int ldc, long long int strideC, int batchCount)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, CUDA_R_32F, lda,
                                      strideA, B, CUDA_R_32F, ldb, strideB, beta, C, CUDA_R_32F,
                                      ldc, strideC, batchCount, CUBLAS_COMPUTE_32F,
                                      CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const double *alpha, const double *A, int lda,
                                         long long int strideA, const double *B, int ldb,
                                         long long int strideB, const double *beta, double *C,
                                         int ldc, long long int strideC, int batchCount)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, CUDA_R_64F, lda,
                                      strideA, B, CUDA_R_64F, ldb, strideB, beta, C, CUDA_R_64F,
                                      ldc, strideC, batchCount, CUBLAS_COMPUTE_64F,
                                      CUBLAS_GEMM_DEFAULT);
}

} /* extern "C" */

struct trsm_call {
    cublasSideMode_t side;
    cublasFillMode_t uplo;
    cublasOperation_t trans;
    cublasDiagType_t diag;
    int m, n, lda, ldb;
};

static void solve(const trsm_call &t, float alpha, const float *a, float *b)
{
    cblas_strsm(CblasColMajor, t.side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight,
                t.uplo == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper, transposed(t.trans),
                t.diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit, t.m, t.n, alpha, a, t.lda, b,
                t.ldb);
}

static void solve(const trsm_call &t, double alpha, const double *a, double *b)
{
    cblas_dtrsm(CblasColMajor, t.side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight,
                t.uplo == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper, transposed(t.trans),
                t.diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit, t.m, t.n, alpha, a, t.lda, b,
                t.ldb);
}

template <class T>
static cublasStatus_t trsm(cublasHandle_t handle, trsm_call t, const T *alpha, const T *const a[],
                           T *const b[], int count)
{
    int order = t.side == CUBLAS_SIDE_LEFT ? t.m : t.n;
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (t.m < 0 || t.n < 0 || count < 0 || t.lda < max(1, order) || t.ldb < max(1, t.m) || !alpha)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (t.m == 0 || t.n == 0 || count == 0)
        return CUBLAS_STATUS_SUCCESS;
    if (!enqueue() || !reachable_array("trsm's list of A", a, count) ||
        !reachable_array("trsm's list of B", b, count))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    emulator_access access;
    for (int i = 0; i < count; i++) {
        if (!reachable("trsm's A", {a[i], sizeof(T), order, order, t.lda, 0, 1}) ||
            !reachable("trsm's B", {b[i], sizeof(T), t.m, t.n, t.ldb, 0, 1}))
            return CUBLAS_STATUS_EXECUTION_FAILED;
        solve(t, *alpha, a[i], b[i]);
    }
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" {

cublasStatus_t cublasStrsmBatched(cublasHandle_t handle, cublasSideMode_t side,
                                  cublasFillMode_t uplo, cublasOperation_t trans,
                                  cublasDiagType_t diag, int m, int n, const float *alpha,
                                  const float *const A[], int lda, float *const B[], int ldb,
                                  int batchCount)
{
    return trsm(handle, {side, uplo, trans, diag, m, n, lda, ldb}, alpha, A, B, batchCount);
}

cublasStatus_t cublasDtrsmBatched(cublasHandle_t handle, cublasSideMode_t side,
                                  cublasFillMode_t uplo, cublasOperation_t trans,
                                  cublasDiagType_t diag, int m, int n, const double *alpha,
                                  const double *const A[], int lda, double *const B[], int ldb,
                                  int batchCount)
{
    return trsm(handle, {side, uplo, trans, diag, m, n, lda, ldb}, alpha, A, B, batchCount);
}

} /* extern "C" */
