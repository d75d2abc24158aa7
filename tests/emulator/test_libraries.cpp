/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated cuBLAS and cuSOLVER against their definitions, and what they refuse. Inputs are
 * small integers and sums are exact, unless said otherwise. */
#include <criterion/criterion.h>

#include <cmath>

#include "cublas_v2.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cusolverDn.h"
#include "device_array.h"
#include "emulator.h"

template <class T> static std::vector<T> integers(size_t count, unsigned seed)
{
    std::vector<T> x(count);
    for (T &each : x) {
        seed = seed * 1664525 + 1013904223;
        each = (T)((int)(seed >> 24) % 9 - 4);
    }
    return x;
}

/* ---- cuBLAS ---- */

static cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m,
                           int n, int k, float alpha, const device_array<float> &a, int lda,
                           long long sa, const device_array<float> &b, int ldb, long long sb,
                           float beta, device_array<float> &c, int ldc, long long sc, int count)
{
    return cublasSgemmStridedBatched(handle, ta, tb, m, n, k, &alpha, a.data, lda, sa, b.data, ldb,
                                     sb, &beta, c.data, ldc, sc, count);
}

static cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m,
                           int n, int k, double alpha, const device_array<double> &a, int lda,
                           long long sa, const device_array<double> &b, int ldb, long long sb,
                           double beta, device_array<double> &c, int ldc, long long sc, int count)
{
    return cublasDgemmStridedBatched(handle, ta, tb, m, n, k, &alpha, a.data, lda, sa, b.data, ldb,
                                     sb, &beta, c.data, ldc, sc, count);
}

template <class T> static void check_gemm(cublasHandle_t handle, int transposes, T beta)
{
    const int m = 5, n = 4, k = 3, count = 3, ld = 7;
    const long long sa = 50, sb = 40, sc = 30;
    bool ta = transposes & 1, tb = transposes & 2;
    std::vector<T> a = integers<T>(150, 1), b = integers<T>(130, 2), c = integers<T>(90, 3);
    if (beta == 0)
        for (T &each : c)
            each = (T)NAN; /* not read */
    device_array<T> on_a(a), on_b(b), on_c(c);
    cr_assert(gemm(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k,
                   (T)2, on_a, ld, sa, on_b, ld, sb, beta, on_c, ld, sc,
                   count) == CUBLAS_STATUS_SUCCESS);
    std::vector<T> got = on_c.host();
    for (int at = 0; at < 90; at++) {
        int index = at / 30, col = at % 30 / ld, row = at % 30 % ld;
        T want = c[(size_t)at];
        if (row < m && col < n) {
            T sum = 0;
            for (int p = 0; p < k; p++)
                sum += a[(size_t)(index * sa + (ta ? row * ld + p : p * ld + row))] *
                       b[(size_t)(index * sb + (tb ? p * ld + col : col * ld + p))];
            want = 2 * sum + (beta == 0 ? 0 : beta * want);
        }
        T is = got[(size_t)at];
        cr_expect(is == want || (std::isnan(is) && std::isnan(want)),
                  "transposes %d, %d: %g, not %g", transposes, at, (double)is, (double)want);
    }
}

Test(emulator, products)
{
    cublasHandle_t handle;
    cr_assert(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    for (int transposes = 0; transposes < 4; transposes++) {
        for (int beta = 0; beta < 3; beta++) {
            check_gemm<float>(handle, transposes, (float)beta);
            check_gemm<double>(handle, transposes, (double)beta);
        }
    }
    cr_expect(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

/* (1 + 2^-e) * 1, as a product of types and a way to compute leaves it. */
static float product_of(cublasHandle_t handle, int e, cudaDataType type, cudaDataType result,
                        cublasComputeType_t compute, cublasStatus_t want)
{
    float x = 1 + std::ldexp(1.0F, -e), one = 1, zero = 0, got = NAN;
    unsigned short narrow = type == CUDA_R_16F ? __half_as_ushort(__float2half_rn(x))
                                               : __bfloat16_as_ushort(__float2bfloat16_rn(x));
    unsigned short unit = type == CUDA_R_16F ? 0x3c00 : 0x3f80, out;
    device_array<char> a(4), b(4), c(4);
    bool wide = type == CUDA_R_32F;
    cudaMemcpy(a.data, wide ? (void *)&x : &narrow, wide ? 4 : 2, cudaMemcpyHostToDevice);
    cudaMemcpy(b.data, wide ? (void *)&one : &unit, wide ? 4 : 2, cudaMemcpyHostToDevice);
    cublasStatus_t status = cublasGemmStridedBatchedEx(
        handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.data, type, 1, 0, b.data, type, 1, 0,
        &zero, c.data, result, 1, 0, 1, compute, CUBLAS_GEMM_DEFAULT);
    cr_expect(status == want, "%s", cublasGetStatusString(status));
    if (result == CUDA_R_32F) {
        cudaMemcpy(&got, c.data, 4, cudaMemcpyDeviceToHost);
    } else {
        cudaMemcpy(&out, c.data, 2, cudaMemcpyDeviceToHost);
        got = result == CUDA_R_16F ? __half2float(__ushort_as_half(out))
                                   : __bfloat162float(__ushort_as_bfloat16(out));
    }
    return got;
}

Test(emulator, products_of_types)
{
    static const struct {
        cudaDataType type, result;
        cublasComputeType_t compute;
        cublasMath_t math;
        int bits; /* below one that are kept; 0: not supported */
    } cases[] = {
        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH, 23},
        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_TF32_TENSOR_OP_MATH, 10},
        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_DEFAULT_MATH, 10},
        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_TF32_TENSOR_OP_MATH, 23},
        {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH, 10},
        {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH, 10},
        {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH, 7},
        {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH, 7},
        {CUDA_R_16BF, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH, 0},
        {CUDA_R_32F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH, 0},
        {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_64F, CUBLAS_DEFAULT_MATH, 0},
    };
    cublasHandle_t handle;
    cr_assert(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int bits = cases[i].bits;
        cublasStatus_t want = bits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
        cublasSetMathMode(handle, cases[i].math);
        float kept =
            product_of(handle, bits, cases[i].type, cases[i].result, cases[i].compute, want);
        float lost =
            product_of(handle, bits + 1, cases[i].type, cases[i].result, cases[i].compute, want);
        if (bits)
            cr_expect(kept == 1 + std::ldexp(1.0F, -bits) && lost == 1, "%zu: %a %a", i,
                      (double)kept, (double)lost);
    }
    cublasDestroy(handle);
}

Test(emulator, products_refused)
{
    cublasHandle_t handle;
    device_array<float> a(12), b(12), c(12);
    const auto N = CUBLAS_OP_N;
    cr_assert(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    static const struct {
        int m, n, k, lda, ldb, ldc, count;
        cublasStatus_t want;
    } cases[] = {
        {3, 4, 2, 3, 2, 3, 1, CUBLAS_STATUS_SUCCESS},
        {3, 4, 2, 9, 2, 3, 1, CUBLAS_STATUS_SUCCESS}, /* nothing after A's last column */
        {0, 4, 2, 3, 2, 3, 1, CUBLAS_STATUS_SUCCESS},
        {3, 4, 0, 3, 2, 3, 1, CUBLAS_STATUS_SUCCESS},
        {3, 4, 2, 3, 2, 3, 0, CUBLAS_STATUS_SUCCESS},
        {-1, 4, 2, 3, 2, 3, 1, CUBLAS_STATUS_INVALID_VALUE},
        {3, 4, 2, 2, 2, 3, 1, CUBLAS_STATUS_INVALID_VALUE},
        {3, 4, 2, 3, 1, 3, 1, CUBLAS_STATUS_INVALID_VALUE},
        {3, 4, 2, 3, 2, 2, 1, CUBLAS_STATUS_INVALID_VALUE},
        {3, 4, 2, 3, 2, 3, -1, CUBLAS_STATUS_INVALID_VALUE},
        {3, 4, 2, 3, 2, 4, 1, CUBLAS_STATUS_EXECUTION_FAILED}, /* beyond C */
        {3, 4, 2, 10, 2, 3, 1, CUBLAS_STATUS_EXECUTION_FAILED},
        {3, 4, 2, 3, 2, 3, 2, CUBLAS_STATUS_EXECUTION_FAILED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto s = cases[i];
        cublasStatus_t got = gemm(handle, N, N, s.m, s.n, s.k, 1.0F, a, s.lda, 12, b, s.ldb, 12,
                                  0.0F, c, s.ldc, 12, s.count);
        cr_expect(got == s.want, "%zu: %s", i, cublasGetStatusString(got));
        cr_expect((cudaGetLastError() == cudaErrorIllegalAddress) ==
                  (got == CUBLAS_STATUS_EXECUTION_FAILED));
        emulator_reset();
    }
    cr_expect(gemm(handle, CUBLAS_OP_T, CUBLAS_OP_T, 3, 4, 2, 1.0F, a, 2, 0, b, 4, 0, 0.0F, c, 3, 0,
                   1) == CUBLAS_STATUS_SUCCESS);
    emulator_fail_launch(1);
    cr_expect(gemm(handle, N, N, 3, 4, 2, 1.0F, a, 3, 0, b, 2, 0, 0.0F, c, 3, 0, 1) ==
              CUBLAS_STATUS_EXECUTION_FAILED);
    emulator_reset();
    cublasDestroy(handle);
    emulator_fail_allocation(1);
    cr_expect(cublasCreate(&handle) == CUBLAS_STATUS_ALLOC_FAILED);
    emulator_devices(0);
    cr_expect(cublasCreate(&handle) == CUBLAS_STATUS_NOT_INITIALIZED);
    emulator_reset();
}

/* Lists of matrices, on the device. */
template <class T> static std::vector<T *> pointers(T *first, size_t stride, size_t count)
{
    std::vector<T *> list(count);
    for (size_t i = 0; i < count; i++)
        list[i] = first + i * stride;
    return list;
}

static cublasStatus_t trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                           cublasOperation_t trans, float alpha, float **a, float **b, int count)
{
    return cublasStrsmBatched(handle, side, uplo, trans, CUBLAS_DIAG_NON_UNIT, 3, 3, &alpha, a, 3,
                              b, 3, count);
}

static cublasStatus_t trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                           cublasOperation_t trans, double alpha, double **a, double **b, int count)
{
    return cublasDtrsmBatched(handle, side, uplo, trans, CUBLAS_DIAG_NON_UNIT, 3, 3, &alpha, a, 3,
                              b, 3, count);
}

/* With ones on the diagonal the solution of integer systems is of integers: op(A) X = 2 B. */
template <class T> static void check_trsm(cublasHandle_t handle, int choice)
{
    const size_t count = 2;
    bool left = choice & 1, lower = choice & 2, transposed = choice & 4;
    std::vector<T> a = integers<T>(9 * count, 5), b = integers<T>(9 * count, 6);
    for (size_t i = 0; i < 9 * count; i++) {
        size_t row = i % 3, col = i % 9 / 3;
        a[i] = row == col ? 1 : (row > col) == lower ? a[i] : (T)NAN; /* that is not read */
    }
    device_array<T> on_a(a), on_b(b);
    device_array<T *> list_a(pointers(on_a.data, 9, count)), list_b(pointers(on_b.data, 9, count));
    cr_assert(trsm(handle, left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT,
                   lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER,
                   transposed ? CUBLAS_OP_T : CUBLAS_OP_N, (T)2, list_a.data, list_b.data,
                   (int)count) == CUBLAS_STATUS_SUCCESS);
    std::vector<T> x = on_b.host();
    for (size_t i = 0; i < 9 * count; i++) {
        size_t row = i % 3, col = i % 9 / 3, first = i / 9 * 9;
        T sum = 0;
        for (size_t k = 0; k < 3; k++) {
            size_t r = left ? row : k, c = left ? k : col;
            T factor = a[first + (transposed ? r * 3 + c : c * 3 + r)];
            T other = x[first + (left ? col * 3 + k : k * 3 + row)];
            sum += std::isnan(factor) ? 0 : factor * other;
        }
        cr_expect(sum == 2 * b[i], "choice %d, %zu: %g", choice, i, (double)sum);
    }
}

Test(emulator, triangular_systems)
{
    cublasHandle_t handle;
    cr_assert(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    for (int choice = 0; choice < 8; choice++) {
        check_trsm<float>(handle, choice);
        check_trsm<double>(handle, choice);
    }
    device_array<float> a(9);
    device_array<float *> list(pointers(a.data, 9, 1)), beyond(pointers(a.data + 1, 9, 1));
    cr_expect(trsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, 1.0F, list.data,
                   beyond.data, 1) == CUBLAS_STATUS_EXECUTION_FAILED);
    emulator_reset();
    cublasDestroy(handle);
}

/* ---- cuSOLVER: decompositions multiplied out, in units of rounding times the order ---- */

struct solver {
    cusolverDnHandle_t handle;
    syevjInfo_t eigen;
    gesvdjInfo_t singular;

    solver()
    {
        cr_assert(cusolverDnCreate(&handle) == CUSOLVER_STATUS_SUCCESS);
        cusolverDnCreateSyevjInfo(&eigen);
        cusolverDnCreateGesvdjInfo(&singular);
    }

    solver(const solver &) = delete;
    solver &operator=(const solver &) = delete;

    ~solver()
    {
        cusolverDnDestroyGesvdjInfo(singular);
        cusolverDnDestroySyevjInfo(eigen);
        cusolverDnDestroy(handle);
    }
};

/* Numbers in [-1, 1] that are not integers. */
static std::vector<double> fractions(size_t count, unsigned seed)
{
    std::vector<double> x = integers<double>(count, seed), y = integers<double>(count, seed + 7);
    for (size_t i = 0; i < count; i++)
        x[i] = (x[i] + y[i] / 9) / 5;
    return x;
}

/* The largest entry of L diag(d) R^T - A, column-major, R of n x k. */
static double residual(const std::vector<double> &a, size_t at, size_t lda, const double *left,
                       size_t ldl, const double *d, const double *right, size_t ldr, bool as_rows,
                       size_t m, size_t n, size_t k)
{
    double worst = 0;
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = -a[at + j * lda + i];
            for (size_t p = 0; p < k; p++)
                sum += left[p * ldl + i] * d[p] * right[as_rows ? j * ldr + p : p * ldr + j];
            worst = std::fabs(sum) <= worst ? worst : std::fabs(sum);
        }
    }
    return worst;
}

static const double roundoff = 0x1p-53;

static void check_eigen(const solver &s, bool jacobi, bool lower)
{
    const size_t n = 40, lda = 43, count = jacobi ? 3 : 1;
    std::vector<double> a = fractions(lda * n * count, 11), symmetric = a;
    for (size_t at = 0; at < a.size(); at++) {
        size_t row = at % lda, col = at / lda % n, first = at / (lda * n) * (lda * n);
        if (row < n && (row > col) != lower && row != col) {
            symmetric[at] = a[first + row * lda + col];
            a[at] = NAN; /* not read */
        }
    }
    int lwork = 0;
    cublasFillMode_t uplo = lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    const auto vectors = CUSOLVER_EIG_MODE_VECTOR;
    device_array<double> on_a(a), w(n * count);
    device_array<int> info(count);
    cr_assert((jacobi ? cusolverDnDsyevjBatched_bufferSize(s.handle, vectors, uplo, n, on_a.data,
                                                           lda, w.data, &lwork, s.eigen, (int)count)
                      : cusolverDnDsyevd_bufferSize(s.handle, vectors, uplo, n, on_a.data, lda,
                                                    w.data, &lwork)) == CUSOLVER_STATUS_SUCCESS);
    device_array<double> work((size_t)lwork);
    cr_assert((jacobi ? cusolverDnDsyevjBatched(s.handle, vectors, uplo, n, on_a.data, lda, w.data,
                                                work.data, lwork, info.data, s.eigen, (int)count)
                      : cusolverDnDsyevd(s.handle, vectors, uplo, n, on_a.data, lda, w.data,
                                         work.data, lwork, info.data)) == CUSOLVER_STATUS_SUCCESS);
    std::vector<double> v = on_a.host(), values = w.host();
    for (size_t i = 0; i < count; i++) {
        size_t at = i * lda * n;
        double worst =
            residual(symmetric, at, lda, &v[at], lda, &values[i * n], &v[at], lda, false, n, n, n);
        cr_expect(worst <= 10 * (double)n * roundoff, "%zu: %g", i, worst);
        cr_expect(info.host()[i] == 0);
        for (size_t p = 1; p < n; p++)
            cr_expect(values[i * n + p - 1] <= values[i * n + p], "%zu", p);
    }
}

Test(emulator, eigenvalues)
{
    solver s;
    for (int choice = 0; choice < 4; choice++)
        check_eigen(s, choice & 1, choice & 2);
    float diagonal[] = {3, 0, 0, -1};
    device_array<float> a(std::vector<float>(diagonal, diagonal + 4)), w(2), work(1000);
    device_array<int> info(1);
    cr_expect(cusolverDnSsyevjBatched(s.handle, CUSOLVER_EIG_MODE_NOVECTOR, CUBLAS_FILL_MODE_LOWER,
                                      2, a.data, 2, w.data, work.data, 1000, info.data, s.eigen,
                                      1) == CUSOLVER_STATUS_SUCCESS);
    cr_expect(w.host()[0] == -1 && w.host()[1] == 3);
    cr_expect(cusolverDnSsyevjBatched(s.handle, CUSOLVER_EIG_MODE_NOVECTOR, CUBLAS_FILL_MODE_LOWER,
                                      2, a.data, 2, w.data, work.data, 1, info.data, s.eigen,
                                      1) == CUSOLVER_STATUS_INVALID_VALUE);
    cr_expect(cusolverDnSsyevjBatched(s.handle, CUSOLVER_EIG_MODE_NOVECTOR, CUBLAS_FILL_MODE_LOWER,
                                      2, a.data, 2, w.data, work.data, 1000, info.data, s.eigen,
                                      2) == CUSOLVER_STATUS_EXECUTION_FAILED);
    emulator_reset();
}

Test(emulator, singular_values)
{
    solver s;
    const size_t m = 49, n = 30;
    int lwork = 0;
    std::vector<double> a = fractions(m * n, 21);
    device_array<double> on_a(a), sigma(n), u(m * m), vt(n * n);
    device_array<int> info(1);
    cr_assert(cusolverDnDgesvd_bufferSize(s.handle, m, n, &lwork) == CUSOLVER_STATUS_SUCCESS);
    device_array<double> work((size_t)lwork);
    cr_assert(cusolverDnDgesvd(s.handle, 'A', 'A', m, n, on_a.data, m, sigma.data, u.data, m,
                               vt.data, n, work.data, lwork, nullptr,
                               info.data) == CUSOLVER_STATUS_SUCCESS);
    std::vector<double> values = sigma.host(), left = u.host(), right = vt.host();
    double worst = residual(a, 0, m, left.data(), m, values.data(), right.data(), n, true, m, n, n);
    cr_expect(worst <= 10 * (double)m * roundoff && info.host()[0] == 0, "%g", worst);
    for (size_t p = 1; p < n; p++)
        cr_expect(values[p - 1] >= values[p] && values[p] >= 0);
    cr_expect(cusolverDnDgesvd_bufferSize(s.handle, n, m, &lwork) == CUSOLVER_STATUS_INVALID_VALUE,
              "more columns than rows");
}

static void check_jacobi_singular(const solver &s, size_t m, size_t n)
{
    const size_t count = 2, few = m < n ? m : n;
    int lwork = 0;
    std::vector<double> a = fractions(m * n * count, 31);
    device_array<double> on_a(a), sigma(few * count), u(m * m * count), v(n * n * count);
    device_array<int> info(count);
    const auto vectors = CUSOLVER_EIG_MODE_VECTOR;
    int rows = (int)m, cols = (int)n;
    cusolverStatus_t status = cusolverDnDgesvdjBatched_bufferSize(
        s.handle, vectors, rows, cols, on_a.data, rows, sigma.data, u.data, rows, v.data, cols,
        &lwork, s.singular, (int)count);
    if (m > 32 || n > 32) {
        cr_expect(status == CUSOLVER_STATUS_INVALID_VALUE, "%zu x %zu", m, n);
        return;
    }
    cr_assert(status == CUSOLVER_STATUS_SUCCESS);
    device_array<double> work((size_t)lwork);
    cr_assert(cusolverDnDgesvdjBatched(s.handle, vectors, rows, cols, on_a.data, rows, sigma.data,
                                       u.data, rows, v.data, cols, work.data, lwork, info.data,
                                       s.singular, (int)count) == CUSOLVER_STATUS_SUCCESS);
    std::vector<double> values = sigma.host(), left = u.host(), right = v.host();
    for (size_t i = 0; i < count; i++) {
        double worst = residual(a, i * m * n, m, &left[i * m * m], m, &values[i * few],
                                &right[i * n * n], n, false, m, n, few);
        cr_expect(worst <= 10 * 32 * roundoff && info.host()[i] == 0, "%zu: %g", i, worst);
    }
}

Test(emulator, jacobi_singular_values)
{
    solver s;
    check_jacobi_singular(s, 32, 32);
    check_jacobi_singular(s, 9, 5);
    check_jacobi_singular(s, 5, 9);
    check_jacobi_singular(s, 33, 32);
    check_jacobi_singular(s, 32, 33);
}

template <class T>
static void check_cholesky(cusolverStatus_t (*potrf)(cusolverDnHandle_t, cublasFillMode_t, int,
                                                     T **, int, int *, int),
                           cublasFillMode_t uplo)
{
    solver s;
    /* L L^T of L = (2 . ; 1 3), then one whose second minor is -1 */
    const T both[] = {4, 2, 2, 10, 1, 1, 1, 0};
    bool lower = uplo == CUBLAS_FILL_MODE_LOWER;
    device_array<T> a(std::vector<T>(both, both + 8));
    device_array<T *> list(pointers(a.data, 4, 2));
    device_array<int> info(2);
    cr_expect(potrf(s.handle, uplo, 2, list.data, 2, info.data, 2) == CUSOLVER_STATUS_SUCCESS);
    std::vector<T> got = a.host();
    cr_expect(got[0] == 2 && got[3] == 3);
    cr_expect(got[1] == (lower ? 1 : 2) && got[2] == (lower ? 2 : 1), "the other triangle stays");
    cr_expect(info.host()[0] == 0 && info.host()[1] == 2);
    cr_expect(potrf(s.handle, uplo, 2, list.data, 1, info.data, 2) ==
              CUSOLVER_STATUS_INVALID_VALUE);
}

Test(emulator, cholesky_factors)
{
    check_cholesky<float>(cusolverDnSpotrfBatched, CUBLAS_FILL_MODE_LOWER);
    check_cholesky<float>(cusolverDnSpotrfBatched, CUBLAS_FILL_MODE_UPPER);
    check_cholesky<double>(cusolverDnDpotrfBatched, CUBLAS_FILL_MODE_LOWER);
    check_cholesky<double>(cusolverDnDpotrfBatched, CUBLAS_FILL_MODE_UPPER);
}
