/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's side of batched calls, whose matrices take their steps together. */
#include "inverse/cuda_batched.cuh"

#include <cublas_v2.h>

/* A call that is being enqueued; after a failure nothing more is. */
typedef struct {
    atn_context *context;
    cublasHandle_t blas;
    atn_status status;
    batched_call c;
} batched;

/* ---- Products ---- */

/* One matrix for each of the group. */
typedef struct {
    real *data;
    int64_t row, matrix; /* strides between rows and between matrices */
} operand;

static operand at_place(const batched &b, int place)
{
    operand o = {batched_at(b.c, 0, place), b.c.call.shape.stride, b.c.call.reals};
    return o;
}

/* A dense operand in the caller's memory. */
static operand at_dense(const batched &b, const real *data)
{
    int64_t m = b.c.call.shape.m;
    operand o = {const_cast<real *>(data) + b.c.first * m * m, m, m * m};
    return o;
}

/* out = left right, or out += with `add`. cuBLAS sees the transposes: it is column-major. */
static void multiply(batched &b, bool tf32, operand left, operand right, bool add, operand out)
{
    const real one = 1, sum = add ? 1 : 0;
    const bool wide = sizeof(real) == sizeof(double);
    const cudaDataType type = wide ? CUDA_R_64F : CUDA_R_32F;
    const int m = b.c.call.shape.m;
    if (b.status != ATN_OK)
        return;
    cublasStatus_t status = cublasGemmStridedBatchedEx(
        b.blas, CUBLAS_OP_N, CUBLAS_OP_N, m, m, m, &one, right.data, type, (int)right.row,
        right.matrix, left.data, type, (int)left.row, left.matrix, &sum, out.data, type,
        (int)out.row, out.matrix, b.c.group,
        wide   ? CUBLAS_COMPUTE_64F
        : tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
               : CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS)
        b.status = core_fail(b.context, ATN_ERR_DEVICE, "cublasGemmStridedBatchedEx: %s",
                             cublasGetStatusString(status));
}

/* ---- Kernels ---- */

/* A block, or a warp, for each matrix. */
template <class... P, class... A>
static void by_matrix(batched &b, void (*kernel)(P...), int threads, A... more)
{
    if (b.status == ATN_OK)
        b.status =
            device_result(b.context,
                          cuda_launch(kernel, dim3((unsigned)b.c.group), dim3((unsigned)threads), 0,
                                      (cudaStream_t)device_stream(b.context), b.c, more...),
                          "batched inverses");
}

template <class... P, class... A> static void by_strip(batched &b, void (*kernel)(P...), A... more)
{
    if (b.status == ATN_OK)
        b.status =
            device_result(b.context,
                          cuda_launch(kernel, dim3((unsigned)b.c.strips, (unsigned)b.c.group),
                                      dim3(BLOCK_THREADS), 0,
                                      (cudaStream_t)device_stream(b.context), b.c, more...),
                          "batched inverses");
}

/* A product of a step; operands and result are places of the work. */
static void step_product(batched &b, int left, int right, bool add, int out)
{
    multiply(b, b.c.call.shape.tf32, at_place(b, left), at_place(b, right), add, at_place(b, out));
}

static void stored(batched &b, int place)
{
    if (b.c.call.desc.storage != ATN_STORAGE_NATIVE)
        by_strip(b, round_product, place);
}

static void recorded(batched &b)
{
    if (b.c.call.iterates)
        by_matrix(b, record_step, BLOCK_THREADS);
}

/* ---- Newton-Raphson ---- */

static void newton_step_of_all(batched &b)
{
    int x = place_of(b.c.k);
    stored(b, BATCHED_PRODUCT);
    step_product(b, x, BATCHED_PRODUCT, false, BATCHED_OTHER);
    by_strip(b, step_newton);
    by_matrix(b, decide_newton, 32);
}

/* As newton_iterate. */
static void run_newton(batched &b)
{
    bool best = b.c.best >= 0;
    int steps = b.c.call.desc.iterations;
    by_matrix(b, open_newton, BLOCK_THREADS);
    for (b.c.k = 0; b.status == ATN_OK; b.c.k++) {
        recorded(b);
        if (b.c.k == steps && !best)
            return;
        step_product(b, BATCHED_B, place_of(b.c.k), false, BATCHED_PRODUCT);
        if (best) {
            multiply(b, false, at_place(b, BATCHED_PRODUCT), at_place(b, BATCHED_B), false,
                     at_place(b, BATCHED_OTHER));
            by_strip(b, measure_residual);
            by_matrix(b, decide_residual, 32);
        }
        if (b.c.k == steps)
            return;
        newton_step_of_all(b);
    }
}

/* ---- Polynomial iterations ---- */

static void find_polynomials(batched &b)
{
    for (int n = 0; n < POLYNOMIAL_OPERATIONS; n++) {
        polynomial_operation o = b.c.call.program.operations[n];
        if (o.kind == POLYNOMIAL_END)
            break;
        if (o.kind == POLYNOMIAL_MAP) {
            by_strip(b, map_entries, (int)o.left);
            continue;
        }
        step_product(b, BATCHED_POLYNOMIAL_E + o.left, BATCHED_POLYNOMIAL_E + o.right,
                     o.kind == POLYNOMIAL_ADD, BATCHED_POLYNOMIAL_E + o.out);
        stored(b, BATCHED_POLYNOMIAL_E + o.out);
    }
    stored(b, BATCHED_POLYNOMIAL_E + AT_Q);
}

/* As polynomial_iterate. */
static void run_polynomial(batched &b)
{
    bool identity = b.c.call.desc.start == ATN_START_IDENTITY;
    by_matrix(b, open_polynomial, BLOCK_THREADS);
    for (b.c.k = 0; b.status == ATN_OK; b.c.k++) {
        bool scalar = identity && b.c.k == 0;
        if (!scalar)
            step_product(b, BATCHED_B, place_of(b.c.k), false, BATCHED_POLYNOMIAL_E);
        by_strip(b, measure_error);
        by_matrix(b, decide_error, 32);
        recorded(b);
        if (b.c.k == b.c.call.desc.iterations)
            return;
        find_polynomials(b);
        if (!scalar)
            step_product(b, place_of(b.c.k), BATCHED_POLYNOMIAL_E + AT_Q, false,
                         BATCHED_POLYNOMIAL_E + AT_POWER);
        by_strip(b, step_polynomial);
        by_matrix(b, decide_polynomial, 32);
    }
}

/* ---- Calls ---- */

/* Chooses as newton_judge and polynomial_residual do. */
static residual_source source_of(const batched &b)
{
    const inverse_call &call = b.c.call;
    bool newton = call.desc.method <= ATN_INVERSE_NR_SOFTPP;
    bool native = call.result == ATN_STORAGE_NATIVE;
    if (newton)
        return b.c.best >= 0 && native ? RESIDUAL_KNOWN : RESIDUAL_OF_PRODUCT;
    return native && call.desc.storage == ATN_STORAGE_NATIVE && !call.shape.tf32
               ? RESIDUAL_OF_ERROR
               : RESIDUAL_OF_PRODUCT;
}

static void finish(batched &b)
{
    residual_source source = source_of(b);
    by_matrix(b, collect, BLOCK_THREADS);
    if (source != RESIDUAL_KNOWN) {
        multiply(b, false, at_place(b, BATCHED_B), at_dense(b, b.c.call.x), false,
                 at_place(b, BATCHED_PRODUCT));
        if (source == RESIDUAL_OF_ERROR)
            by_strip(b, complement);
        multiply(b, false, at_place(b, BATCHED_PRODUCT), at_place(b, BATCHED_B), false,
                 at_place(b, BATCHED_OTHER));
        by_strip(b, measure_returned, source);
    }
    by_matrix(b, judge, BLOCK_THREADS, source);
}

static batched open_batched(atn_context *context, const cuda_inverse *inverse,
                            const inverse_call *call)
{
    batched b = {};
    void *blas;
    bool newton = call->desc.method <= ATN_INVERSE_NR_SOFTPP;
    b.context = context;
    b.status = device_blas(context, &blas);
    b.blas = (cublasHandle_t)blas;
    b.c.call = *call;
    b.c.call.shape.stride = batched_stride(inverse->m);
    b.c.strips = (int)((inverse->m + CUDA_INVERSE_STRIP - 1) / CUDA_INVERSE_STRIP);
    b.c.best = !newton                                    ? BATCHED_POLYNOMIAL_BEST
               : call->desc.stopping == ATN_STOPPING_BEST ? BATCHED_BEST
                                                          : -1;
    b.c.runs = inverse->runs;
    b.c.partials = inverse->partials;
    return b;
}

/* The next group; false after the last. */
static bool next_group(batched &b, const cuda_inverse *inverse)
{
    int64_t rest;
    b.c.first += b.c.group;
    rest = inverse->count - b.c.first;
    b.c.group = (int)(rest < inverse->blocks ? rest : inverse->blocks);
    return b.status == ATN_OK && rest > 0;
}

atn_status R(cuda_batched)(atn_context *context, const cuda_inverse *inverse,
                           const inverse_call *call)
{
    batched b = open_batched(context, inverse, call);
    while (next_group(b, inverse)) {
        if (call->desc.method <= ATN_INVERSE_NR_SOFTPP)
            run_newton(b);
        else
            run_polynomial(b);
        finish(b);
    }
    return b.status;
}

/* In X, which is dense; one thread handles both entries of a pair. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    symmetrise_squares(const __grid_constant__ batched_call c)
{
    int64_t m = c.call.shape.m;
    real *square = c.call.x + (c.first + blockIdx.y) * m * m;
    STRIP_ENTRIES(i, j, c)
    if (j <= i)
        square[i * m + j] = square[j * m + i] =
            storage_round(c.call.desc.storage, (square[i * m + j] + square[j * m + i]) / 2);
}

atn_status R(cuda_batched_squares)(atn_context *context, const cuda_inverse *inverse,
                                   const inverse_call *call)
{
    batched b = open_batched(context, inverse, call);
    while (next_group(b, inverse)) {
        multiply(b, call->shape.tf32, at_dense(b, call->a), at_dense(b, call->a), false,
                 at_dense(b, call->x));
        by_strip(b, symmetrise_squares);
    }
    return b.status;
}

int64_t R(cuda_batched_reals)(const atn_inverse_desc *desc, int64_t m)
{
    return batched_reals(*desc, m);
}
