/* SPDX-License-Identifier: BSD-3-Clause */
/* The derivative by A from that by X, its inverse, in each way of ATN_GRADIENT_LIST, by one block
 * for each matrix; inverse/cpu_backward.c and inverse/newton/cpu_backward.c have the formulas. */
#include "inverse/newton/cuda.cuh"

typedef struct {
    cuda_inverse inverse;
    atn_gradient gradient;
    matrix_shape shape;
    int64_t reals;
    bool in_shared;
    real *work;
    double *slopes, *norms;
    const real *a, *x, *grad_x;
    real *grad_a;
} adjoint_call;

enum { CLOSED_MATRICES = 4, PSEUDO_MATRICES = 6, STEPS_MATRICES = 5 };

/* One matrix; pointers to dense matrices in device memory, and to the work, which is zero. */
typedef struct {
    const atn_inverse_desc *desc;
    const atn_inverse_info *info;
    matrix_shape shape;
    const real *a, *x, *grad_x;
    real *work;
} adjoint;

static __device__ __forceinline__ real *adjoint_matrix(const adjoint &g, int64_t n)
{
    return g.work + n * matrix_reals(g.shape.m);
}

/* SOFT (IJCV) Eq. 12 with the computed X: dA = -X G X, in matrix 0 of the work like all results. */
static __device__ double closed_backward(const adjoint &g)
{
    real *out = adjoint_matrix(g, 0), *x = adjoint_matrix(g, 1), *grad = adjoint_matrix(g, 2);
    real *x_g = adjoint_matrix(g, 3);
    matrix_load(g.shape, g.x, x);
    matrix_load(g.shape, g.grad_x, grad);
    matrix_multiply(g.shape, x, grad, false, x_g);
    matrix_multiply(g.shape, x_g, x, false, out);
    MATRIX_ENTRIES (i, j, g.shape)
        entry(g.shape, out, i, j) = -entry(g.shape, out, i, j);
    __syncthreads();
    return 0;
}

/* The adjoint of Golub and Pereyra (1973) Eq. 4.12 for symmetric A at constant rank: dA = -X G X +
 * N + N^T, N = X X G (I - A X), G symmetric. */
static __device__ double pseudo_backward(const adjoint &g)
{
    const matrix_shape &shape = g.shape;
    real *out = adjoint_matrix(g, 0), *x = adjoint_matrix(g, 1), *grad = adjoint_matrix(g, 2);
    real *x_g = adjoint_matrix(g, 3), *right = adjoint_matrix(g, 4),
         *scratch = adjoint_matrix(g, 5);
    matrix_load(shape, g.x, x);
    matrix_load(shape, g.grad_x, grad);
    matrix_load(shape, g.a, scratch);
    matrix_symmetrise(shape, grad);
    matrix_multiply(shape, scratch, x, false, right);
    MATRIX_ENTRIES (i, j, shape)
        entry(shape, right, i, j) = (real)(i == j) - entry(shape, right, i, j);
    __syncthreads();
    matrix_multiply(shape, x, grad, false, x_g);
    matrix_multiply(shape, x_g, x, false, out);
    matrix_multiply(shape, x, x_g, false, scratch);
    matrix_multiply(shape, scratch, right, false, grad); /* N */
    MATRIX_ENTRIES (i, j, shape)
        entry(shape, out, i, j) =
            entry(shape, grad, i, j) + entry(shape, grad, j, i) - entry(shape, out, i, j);
    __syncthreads();
    return 0;
}

/* Computes X_0 .. X_{K-1} again, with the same bits unless the forward call was batched. False if
 * there is no X_0: X is then the constant 0. */
static __device__ bool recompute_iterates(const adjoint &g, const real *b, real *scratch,
                                          real *iterates)
{
    const matrix_shape &shape = g.shape;
    int64_t size = matrix_reals(shape.m);
    real alpha = (real)g.info->alpha;
    bool suspect;
    if (g.info->stop == ATN_STOP_NO_ALPHA)
        return false;
    MATRIX_ENTRIES (i, j, shape)
        entry(shape, iterates, i, j) = alpha * entry(shape, b, i, j);
    __syncthreads();
    for (int k = 1; k < g.info->returned; k++) {
        real *x = iterates + (k - 1) * size;
        matrix_multiply(shape, b, x, false, scratch);
        newton_step(shape, ATN_STORAGE_NATIVE, x, scratch, x + size, &suspect);
    }
    return matrix_finite(shape, iterates);
}

/* From G, the derivative by X_{k+1} = 2 X - X B X, that by X: 2 G - (G X B + B X G). Adds X G X,
 * the derivative by -B, to sum. */
static __device__ void step_backward(const matrix_shape &shape, const real *b, const real *x,
                                     real *grad, real *sum, real *x_g, real *b_x_g)
{
    matrix_multiply(shape, x, grad, false, x_g);
    matrix_multiply(shape, x_g, x, true, sum);
    matrix_multiply(shape, b, x_g, false, b_x_g);
    MATRIX_ENTRIES (i, j, shape)
        if (j <= i)
            entry(shape, grad, i, j) = entry(shape, grad, j, i) =
                2 * entry(shape, grad, i, j) -
                (entry(shape, b_x_g, i, j) + entry(shape, b_x_g, j, i));
    __syncthreads();
}

/* Backward through the steps taken and through X_0 = alpha B. Returns the derivative by alpha. */
static __device__ double steps_backward(const adjoint &g)
{
    const matrix_shape &shape = g.shape;
    real *sum = adjoint_matrix(g, 0), *b = adjoint_matrix(g, 1), *grad = adjoint_matrix(g, 2);
    real *x_g = adjoint_matrix(g, 3), *b_x_g = adjoint_matrix(g, 4);
    real *iterates = adjoint_matrix(g, STEPS_MATRICES), alpha = (real)g.info->alpha;
    double slope = 0;
    matrix_load(shape, g.a, b);
    if (g.desc->ridge != 0)
        matrix_add_diagonal(shape, (real)g.desc->ridge, b);
    if (!recompute_iterates(g, b, b_x_g, iterates))
        return 0;
    matrix_load(shape, g.grad_x, grad);
    matrix_symmetrise(shape, grad);
    for (int64_t k = g.info->returned - 1; k >= 0; k--)
        step_backward(shape, b, iterates + k * matrix_reals(shape.m), grad, sum, x_g, b_x_g);
    MATRIX_ENTRIES (i, j, shape) {
        entry(shape, sum, i, j) = alpha * entry(shape, grad, i, j) - entry(shape, sum, i, j);
        slope += (double)entry(shape, grad, i, j) * (double)entry(shape, b, i, j);
    }
    return block_sum(slope);
}

typedef double (*adjoint_way)(const adjoint &g);

static __device__ bool dense_finite(int64_t count, const real *a)
{
    bool bad = false;
    BLOCK_EACH (e, count)
        bad |= !isfinite(a[e]);
    return !__syncthreads_or(bad);
}

/* Each matrix's derivative by A for constant alpha. */
template <adjoint_way WAY>
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    differentiate(const __grid_constant__ adjoint_call call)
{
    int64_t m = call.shape.m, size = m * m;
    real *work = call.in_shared ? cuda_shared<real>() : call.work + blockIdx.x * call.reals;
    for (int64_t i = blockIdx.x; i < call.inverse.count; i += gridDim.x) {
        adjoint g = {&call.inverse.desc, &call.inverse.infos[i], call.shape, call.a + i * size,
                     call.x + i * size,  call.grad_x + i * size, work};
        bool good = g.info->status != ATN_NONFINITE && dense_finite(size, g.grad_x);
        double slope = 0;
        block_fill(call.reals, 0, work);
        if (good) {
            slope = WAY(g);
            __syncthreads();
            matrix_save(g.shape, adjoint_matrix(g, 0), call.grad_a + i * size);
        } else
            block_fill(size, (real)NAN, call.grad_a + i * size);
        double norm = matrix_norm1((int)m, g.a, m);
        if (is_first_thread()) {
            call.slopes[i] = slope;
            call.norms[i] = norm;
        }
        __syncthreads();
    }
}

/* Replaces every matrix's derivative by alpha by that by its |A|_1. If all matrices share an alpha,
 * it depends on the largest norm only, the first of equals. One thread: it is one sum. */
static __global__ void find_norm_slopes(const __grid_constant__ adjoint_call call)
{
    const atn_inverse_desc &desc = call.inverse.desc;
    bool shared = desc.alpha <= 0 && desc.scope == ATN_SCOPE_BATCH;
    int64_t largest = -1;
    double sum = 0;
    for (int64_t i = 0; i < call.inverse.count; i++) {
        const atn_inverse_info &info = call.inverse.infos[i];
        if (!shared) {
            call.slopes[i] *= desc.alpha > 0 ? 0 : core_alpha_slope(&info, call.norms[i]);
            continue;
        }
        sum += call.slopes[i];
        call.slopes[i] = 0;
        if (info.status != ATN_NONFINITE && (largest < 0 || call.norms[i] > call.norms[largest]))
            largest = i;
    }
    if (largest >= 0)
        call.slopes[largest] =
            sum * core_alpha_slope(&call.inverse.infos[largest], call.norms[largest]);
}

/* Adds the derivative through |A|_1, on which alpha depends, to the row that attains the norm; then
 * symmetrises. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    finish(const __grid_constant__ adjoint_call call)
{
    int64_t m = call.shape.m, size = m * m;
    matrix_shape dense = call.shape;
    dense.stride = m;
    for (int64_t i = blockIdx.x; i < call.inverse.count; i += gridDim.x) {
        const real *a = call.a + i * size;
        real *grad = call.grad_a + i * size, slope = (real)call.slopes[i];
        int64_t row = matrix_norm1_row((int)m, a, m);
        BLOCK_EACH (j, m) {
            real sign = (real)((a[row * m + j] > 0) - (a[row * m + j] < 0));
            grad[row * m + j] += slope * sign;
        }
        __syncthreads();
        matrix_symmetrise(dense, grad);
        if (dense_finite(size, grad))
            continue;
        block_fill(size, (real)NAN, grad);
        if (is_first_thread())
            call.inverse.infos[i].status = ATN_NONFINITE;
    }
}

/* ---- A call ---- */

typedef void (*adjoint_kernel)(const adjoint_call call);

static const adjoint_kernel ways[ATN_GRADIENT_COUNT] = {
    differentiate<closed_backward>,
    differentiate<steps_backward>,
    differentiate<pseudo_backward>,
};

static atn_status enqueue(atn_context *context, const cuda_inverse_adjoint *adjoint,
                          adjoint_kernel kernel, const adjoint_call *call)
{
    int64_t blocks = call->in_shared ? call->inverse.count : adjoint->blocks;
    size_t shared = call->in_shared ? (size_t)call->reals * sizeof(real) : 0;
    bool one = kernel == find_norm_slopes;
    blocks = blocks < INT32_MAX ? blocks : INT32_MAX;
    return device_result(context,
                         cuda_launch(kernel, dim3(one ? 1 : (unsigned)blocks),
                                     dim3(one ? 1 : BLOCK_THREADS), one ? 0 : shared,
                                     (cudaStream_t)device_stream(context), *call),
                         "inverses' gradients");
}

static atn_status backward(atn_context *context, const cuda_inverse_adjoint *adjoint, const void *a,
                           const void *x, const void *grad_x, void *grad_a)
{
    const cuda_inverse *inverse = adjoint->inverse;
    adjoint_call call = {};
    atn_status status = ATN_OK;
    if (inverse->count == 0 || inverse->m == 0)
        return ATN_OK;
    call.inverse = *inverse;
    call.gradient = adjoint->gradient;
    call.shape.m = (int)inverse->m;
    call.shape.stride = matrix_stride(inverse->m);
    call.shape.tf32 = inverse->dtype == ATN_TF32;
    call.reals = adjoint->reals;
    call.in_shared = (size_t)call.reals * sizeof(real) <= cuda_most_shared(context);
    call.work = (real *)adjoint->work;
    call.slopes = adjoint->slopes;
    call.norms = adjoint->slopes + inverse->count;
    call.a = (const real *)a;
    call.x = (const real *)x;
    call.grad_x = (const real *)grad_x;
    call.grad_a = (real *)grad_a;
    const adjoint_kernel kernels[] = {ways[adjoint->gradient], find_norm_slopes, finish};
    for (int i = 0; status == ATN_OK && i < 3; i++)
        status = enqueue(context, adjoint, kernels[i], &call);
    return status;
}

static int64_t work_reals(const atn_inverse_desc *desc, atn_gradient gradient, int64_t m)
{
    int64_t kept = desc->iterations > 0 ? desc->iterations : 1; /* X_0 .. X_{T-1} */
    const int64_t matrices[ATN_GRADIENT_COUNT] = {CLOSED_MATRICES, STEPS_MATRICES + kept,
                                                  PSEUDO_MATRICES};
    return matrices[gradient] * matrix_reals(m);
}

extern "C" const cuda_adjoint_table R(cuda_adjoint) = {work_reals, backward};
