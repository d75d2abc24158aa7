/* SPDX-License-Identifier: BSD-3-Clause */
/* All inverses of a call: one block each, working in shared memory if it fits; or the starts of
 * batched ones (inverse/cuda_batched.cuh). */
#include "inverse/direct/cuda.cuh"
#include "inverse/newton/cuda.cuh"
#include "inverse/polynomial/cuda.cuh"

/* ---- One matrix ---- */

typedef atn_status (*inverse_method)(const inverse_problem &p, real **x);

template <inverse_method METHOD> static __device__ void invert_one(const inverse_problem &p)
{
    if (!accepts(p))
        return;
    BLOCK_EACH (e, p.call->reals)
        p.work[e] = 0;
    __syncthreads();
    real *x;
    atn_status status = METHOD(p, &x);
    __syncthreads();
    conclude(p, status, x);
}

/* The start; computed here from the matrix's own norm if no earlier kernel did. */
static __device__ double start_of(const inverse_problem &p, int64_t i)
{
    if (p.desc->method > ATN_INVERSE_NR_SOFTPP)
        return 0;
    if (p.call->started)
        return p.call->starts[i];
    return core_alpha_from_norm(p.desc, matrix_norm1(p.shape.m, p.a, p.shape.m));
}

/* A template, so that the compiler knows whether the work is in shared memory. */
template <bool SHARED> static __device__ __forceinline__ real *work_of(const inverse_call &call)
{
    return SHARED ? cuda_shared<real>() : call.work + blockIdx.x * call.reals;
}

template <inverse_method METHOD, bool SHARED>
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    invert(const __grid_constant__ inverse_call call)
{
    __shared__ atn_inverse_info info;
    __shared__ int recorded;
    real *work = work_of<SHARED>(call);
    for (int64_t i = blockIdx.x; i < call.count; i += gridDim.x) {
        inverse_problem p = problem_of(call, i, work, &recorded, &info);
        if (is_first_thread()) {
            open_info(call, i, &info);
            recorded = 0;
        }
        __syncthreads();
        p.alpha = start_of(p, i);
        invert_one<METHOD>(p);
        if (is_first_thread()) {
            call.infos[i] = info;
            if (call.recorded)
                call.recorded[i] = recorded;
        }
        __syncthreads();
    }
}

/* ---- Starts of Newton-Raphson that need more than one pass over their matrix ---- */

/* Whether A is finite; stores |A|_1 in starts (0 if it is not) and, for the search, A^2 in X,
 * unless products are batched. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    measure(const __grid_constant__ inverse_call call)
{
    __shared__ atn_inverse_info info;
    __shared__ int recorded;
    real *work = call.in_shared ? work_of<true>(call) : work_of<false>(call);
    for (int64_t i = blockIdx.x; i < call.count; i += gridDim.x) {
        inverse_problem p = problem_of(call, i, work, &recorded, &info);
        if (is_first_thread())
            info = atn_inverse_info{};
        __syncthreads();
        bool finite = accepts(p), square = call.desc.search == ATN_SEARCH_SQUARE;
        double norm = finite ? matrix_norm1(p.shape.m, p.a, p.shape.m) : 0;
        if (finite && square && !call.batched) {
            BLOCK_EACH (e, 2 * matrix_reals(p.shape.m))
                work[e] = 0;
            __syncthreads();
            matrix_load(p.shape, p.a, work);
            real *squared = work_matrix(p, 1);
            matrix_multiply(p.shape, work, work, false, squared);
            matrix_symmetrise(p.shape, squared);
            matrix_store(p.shape, call.desc.storage, squared);
            matrix_save(p.shape, squared, p.x);
        }
        if (is_first_thread()) {
            info.products = square;
            call.infos[i] = info;
            call.starts[i] = norm;
        }
        __syncthreads();
    }
}

/* alpha from the matrix's norm, or from the batch's. One block. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    choose_alphas(const __grid_constant__ inverse_call call)
{
    double largest = 0;
    BLOCK_EACH (i, call.count)
        largest = larger(largest, call.starts[i]);
    largest = block_max(largest);
    bool batch = call.desc.scope == ATN_SCOPE_BATCH;
    BLOCK_EACH (k, call.count)
        call.starts[k] = core_alpha_from_norm(&call.desc, batch ? largest : call.starts[k]);
}

/* The halving rule (section 3.2: beta = 1/2; the published loop tests A^2) for each matrix: which
 * numbers of halvings it accepts; a matrix with its own alpha stops at the first. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    try_alphas(const __grid_constant__ inverse_call call)
{
    int64_t m = call.shape.m, cap = call.desc.search_cap;
    bool batch = call.desc.scope == ATN_SCOPE_BATCH;
    const real *tested = call.desc.search == ATN_SEARCH_SQUARE ? call.x : call.a;
    for (int64_t i = blockIdx.x; i < call.count; i += gridDim.x) {
        bool finite = call.infos[i].status != ATN_NONFINITE, accepted = false;
        double alpha = call.starts[i];
        int64_t n = 0;
        __syncthreads(); /* all threads have read the start */
        for (; n <= cap && !(accepted && !batch); n++) {
            accepted =
                !finite || start_norm(m, tested + i * m * m, (real)alpha) <= call.desc.search_limit;
            if (is_first_thread())
                call.accepted[i * (cap + 1) + n] = accepted;
            alpha = n == cap || (accepted && !batch) ? alpha : alpha / 2;
        }
        if (is_first_thread() && !batch) {
            call.starts[i] = accepted || call.desc.search_accepts_last ? alpha : -1;
            call.infos[i].halvings = (int)(n - 1);
        }
        __syncthreads();
    }
}

/* The fewest halvings that all matrices accept. One block. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    agree(const __grid_constant__ inverse_call call)
{
    int64_t cap = call.desc.search_cap;
    double alpha = call.starts[0];
    int n = 0;
    bool refused = true;
    __syncthreads();
    for (;; n++) {
        bool mine = false;
        BLOCK_EACH (i, call.count)
            mine |= !call.accepted[i * (cap + 1) + n];
        refused = __syncthreads_or(mine);
        if (!refused || n == cap)
            break;
        alpha /= 2;
    }
    BLOCK_EACH (k, call.count) {
        call.starts[k] = refused && !call.desc.search_accepts_last ? -1 : alpha;
        call.infos[k].halvings = n;
    }
}

/* ---- A call ---- */

static inverse_call call_of(const cuda_inverse *inverse, const void *a, void *x)
{
    const atn_inverse_desc *desc = &inverse->desc;
    const core_polynomial *polynomial = core_polynomial_of(desc->method);
    atn_dtype computed = sizeof(real) == sizeof(double) ? ATN_F64 : ATN_F32;
    int64_t m = inverse->m;
    double own = atn_dtype_roundoff(computed);
    inverse_call call = {};
    call.desc = *desc;
    if (polynomial) {
        call.polynomial = *polynomial;
        call.program =
            polynomial_program_of(desc->method == ATN_INVERSE_NYSTROMFORMER, polynomial->order);
    }
    call.shape.m = (int)m;
    call.shape.stride = matrix_stride(m);
    call.shape.tf32 = inverse->dtype == ATN_TF32;
    call.batched = inverse->batched;
    call.count = inverse->count;
    call.reals = inverse->reals;
    call.keep_factor = inverse->keep_factor;
    call.result = inverse->result;
    call.dtype_roundoff = call.shape.tf32 ? atn_dtype_roundoff(ATN_TF32) : own;
    call.roundoff = desc->storage != ATN_STORAGE_NATIVE     ? atn_storage_roundoff(desc->storage)
                    : inverse->result != ATN_STORAGE_NATIVE ? atn_storage_roundoff(inverse->result)
                                                            : call.dtype_roundoff;
    call.tolerance = desc->tolerance >= 0 ? desc->tolerance : sqrt(call.roundoff);
    call.cut = desc->rcond >= 0 ? desc->rcond : (double)m * own;
    call.a = (const real *)a;
    call.x = (real *)x;
    call.work = (real *)inverse->work;
    call.starts = inverse->starts;
    call.accepted = inverse->accepted;
    call.pivots = inverse->pivots;
    call.infos = inverse->infos;
    call.iterates = (real *)inverse->iterates;
    call.recorded = inverse->recorded;
    return call;
}

typedef void (*inverse_kernel)(const inverse_call call);

template <bool SHARED> static inverse_kernel kernel_of(const inverse_call *call)
{
    switch (call->desc.method) {
    case ATN_INVERSE_EIG:
        return invert<eig, SHARED>;
    case ATN_INVERSE_CHOLESKY:
        return invert<cholesky, SHARED>;
    case ATN_INVERSE_PIVOTED_CHOLESKY:
        return invert<pivoted_cholesky, SHARED>;
    default:
        return call->polynomial.order > 0 ? invert<polynomial, SHARED> : invert<newton, SHARED>;
    }
}

/* One block for each matrix, or as many as there is work memory for. */
static atn_status enqueue(atn_context *context, const cuda_inverse *inverse, inverse_kernel kernel,
                          const inverse_call *call, bool one)
{
    int64_t blocks = call->in_shared ? call->count : inverse->blocks;
    size_t shared = call->in_shared ? (size_t)call->reals * sizeof(real) : 0;
    blocks = blocks < INT32_MAX ? blocks : INT32_MAX;
    return device_result(context,
                         cuda_launch(kernel, dim3(one ? 1 : (unsigned)blocks), dim3(BLOCK_THREADS),
                                     one ? 0 : shared, (cudaStream_t)device_stream(context), *call),
                         "inverses");
}

static atn_status find_starts(atn_context *context, const cuda_inverse *inverse,
                              const inverse_call *call)
{
    atn_status status = enqueue(context, inverse, measure, call, false);
    if (status == ATN_OK && call->batched && call->desc.search == ATN_SEARCH_SQUARE)
        status = R(cuda_batched_squares)(context, inverse, call);
    if (status == ATN_OK)
        status = enqueue(context, inverse, choose_alphas, call, true);
    if (status == ATN_OK && call->desc.search != ATN_SEARCH_NONE)
        status = enqueue(context, inverse, try_alphas, call, false);
    if (status == ATN_OK && call->desc.search != ATN_SEARCH_NONE &&
        call->desc.scope == ATN_SCOPE_BATCH)
        status = enqueue(context, inverse, agree, call, true);
    return status;
}

static atn_status batch(atn_context *context, const cuda_inverse *inverse, const void *a, void *x)
{
    inverse_call call = call_of(inverse, a, x);
    atn_status status = ATN_OK;
    if (call.count == 0 || call.shape.m == 0)
        return ATN_OK;
    call.in_shared =
        !call.batched && (size_t)call.reals * sizeof(real) <= cuda_most_shared(context);
    if (call.desc.method <= ATN_INVERSE_NR_SOFTPP &&
        (call.batched || call.desc.search != ATN_SEARCH_NONE ||
         call.desc.scope == ATN_SCOPE_BATCH)) {
        status = find_starts(context, inverse, &call);
        call.started = true;
    }
    if (status != ATN_OK)
        return status;
    if (call.batched)
        return R(cuda_batched)(context, inverse, &call);
    inverse_kernel kernel = call.in_shared ? kernel_of<true>(&call) : kernel_of<false>(&call);
    return enqueue(context, inverse, kernel, &call, false);
}

static int64_t work_reals(const atn_inverse_desc *desc, int64_t m, bool batched)
{
    int64_t size = matrix_reals(m);
    if (batched)
        return R(cuda_batched_reals)(desc, m);
    if (core_polynomial_of(desc->method))
        return POLYNOMIAL_MATRICES * size + matrix_stride(m);
    if (desc->method < ATN_INVERSE_EIG)
        return (NEWTON_MATRICES + (desc->stopping == ATN_STOPPING_BEST)) * size;
    return DIRECT_MATRICES * size + (desc->method == ATN_INVERSE_EIG ? rotation_reals(m)
                                     : desc->method == ATN_INVERSE_PIVOTED_CHOLESKY
                                         ? pivoting_reals(m)
                                         : 0);
}

extern "C" const cuda_inverse_table R(cuda_inverse) = {work_reals, batch};
