/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the inverses' kernels, in which a block processes one matrix. */
#ifndef INVERSE_CUDA_CUH
#define INVERSE_CUDA_CUH

#include "cuda/device.h"
#include "cuda/launch.cuh"
#include "cuda/matrix.cuh"
#include "inverse/cuda.h"
#include "inverse/plan.h"
#include "inverse/stopping.h"

/* How Q(E) is computed from E, by products and elementwise maps (inverse/polynomial/cuda.cuh). */
enum { POLYNOMIAL_OPERATIONS = 5 };

typedef struct {
    signed char kind, left, right, out; /* of a map: left says which */
} polynomial_operation;

typedef struct {
    polynomial_operation operations[POLYNOMIAL_OPERATIONS];
} polynomial_program;

/* The arguments of a call's kernels. */
typedef struct {
    atn_inverse_desc desc;
    core_polynomial polynomial;
    polynomial_program program;
    matrix_shape shape;
    int64_t count, reals;
    bool in_shared, keep_factor, batched;
    bool started; /* starts, halvings and infos are set */
    atn_storage result;
    double roundoff;       /* u of the storage, the result or the dtype, for X */
    double dtype_roundoff; /* the dtype's */
    double tolerance, cut; /* relative */
    const real *a;
    real *x, *work;
    double *starts;
    unsigned char *accepted;
    int *pivots;
    atn_inverse_info *infos;
    real *iterates;
    int *recorded;
} inverse_call;

/* Batched calls (inverse/cuda_batched.cuh), whose starts are set; the second stores A^2 of all
 * matrices in X. */
atn_status R(cuda_batched)(atn_context *context, const cuda_inverse *inverse,
                           const inverse_call *call);
atn_status R(cuda_batched_squares)(atn_context *context, const cuda_inverse *inverse,
                                   const inverse_call *call);
int64_t R(cuda_batched_reals)(const atn_inverse_desc *desc, int64_t m);

/* One matrix. Thread 0 writes the info; conditions of branches agree in all threads. */
typedef struct {
    const inverse_call *call;
    const atn_inverse_desc *desc;
    matrix_shape shape;
    const real *a; /* dense, device memory */
    real *x;       /* likewise: scratch of the method */
    real *work;    /* zero */
    double alpha;  /* Newton-Raphson: the start after the halvings; < 0: the search found no n */
    int *pivots;
    real *iterates; /* where X_0 is recorded, or null */
    int *recorded;
    atn_inverse_info *info; /* shared memory */
} inverse_problem;

/* An upper bound of the kernels' static shared memory. */
enum { STATIC_SHARED = 2048 };

/* Bytes of dynamic shared memory that a block can have. */
static inline size_t cuda_most_shared(const atn_context *context)
{
    return device_shared(context) - STATIC_SHARED;
}

static __device__ __forceinline__ bool is_first_thread()
{
    return threadIdx.x == 0;
}

/* The n-th matrix of the work. */
static __device__ __forceinline__ real *work_matrix(const inverse_problem &p, int n)
{
    return p.work + n * matrix_reals(p.shape.m);
}

/* For traces: an iterate. */
static __device__ void record(const inverse_problem &p, const real *x)
{
    if (!p.iterates)
        return;
    int64_t size = (int64_t)p.shape.m * p.shape.m;
    matrix_save(p.shape, x, p.iterates + *p.recorded * size);
    if (is_first_thread())
        ++*p.recorded;
    __syncthreads();
}

/* Rounds X to the type in which it will be stored. */
static __device__ void store_result(const inverse_problem &p, real *x)
{
    matrix_store(p.shape, p.desc->storage, x);
    matrix_store(p.shape, p.call->result, x);
}

/* B = A + ridge I. */
static __device__ void load_shifted(const inverse_problem &p, real *b)
{
    matrix_load(p.shape, p.a, b);
    if (p.desc->ridge == 0)
        return;
    matrix_add_diagonal(p.shape, (real)p.desc->ridge, b);
    matrix_store(p.shape, p.desc->storage, b);
}

/* Sets X = 0 because there is no start. */
static __device__ void report_no_start(const inverse_problem &p, atn_stop stop)
{
    if (is_first_thread()) {
        p.info->status = ATN_NOT_CONVERGED;
        p.info->stop = stop;
        p.info->residual = 1;
    }
    __syncthreads();
}

static __device__ atn_status without_start(const inverse_problem &p, atn_stop stop, real **x)
{
    *x = work_matrix(p, 0);
    matrix_fill(p.shape, 0, *x);
    report_no_start(p, stop);
    return ATN_NOT_CONVERGED;
}

/* Records step k = 1, 2, ... and its update in the info. */
static __device__ void record_update(const inverse_problem &p, int k, double update)
{
    atn_inverse_info *info = p.info;
    if (!is_first_thread())
        return;
    info->iterations = k;
    info->last_update = update;
    if (update < HUGE_VAL && (info->best_iteration == 0 || update < info->best_update)) {
        info->best_update = update;
        info->best_iteration = k;
    }
}

static __device__ __forceinline__ double relative_update(double change, double size)
{
    return size > 0 ? sqrt(change / size) : (change > 0 ? HUGE_VAL : 0) + 0 * size;
}

/* ---- From A to an info ---- */

static __device__ inverse_problem problem_of(const inverse_call &call, int64_t i, real *work,
                                             int *recorded, atn_inverse_info *info)
{
    int64_t m = call.shape.m,
            entries = call.desc.method < ATN_INVERSE_EIG ? call.desc.iterations + 1 : 1;
    inverse_problem p = {&call,
                         &call.desc,
                         call.shape,
                         call.a + i * m * m,
                         call.x + i * m * m,
                         work,
                         0,
                         call.pivots + i * m,
                         call.iterates ? call.iterates + i * entries * m * m : NULL,
                         recorded,
                         info};
    return p;
}

/* Whether A is finite; if it is not, sets X = 0. */
static __device__ bool accepts(const inverse_problem &p)
{
    bool bad = false;
    BLOCK_EACH (e, (int64_t)p.shape.m * p.shape.m)
        bad |= !isfinite(p.a[e]);
    if (!__syncthreads_or(bad))
        return true;
    BLOCK_EACH (e, (int64_t)p.shape.m * p.shape.m)
        p.x[e] = 0;
    BLOCK_EACH (i, p.shape.m)
        p.pivots[i] = (int)i;
    if (is_first_thread()) {
        p.info->status = ATN_NONFINITE;
        p.info->stop = ATN_STOP_NONFINITE;
    }
    __syncthreads();
    return false;
}

/* Stores the X of a method, and judges it if the method did not fail. */
static __device__ void conclude(const inverse_problem &p, atn_status status, const real *x)
{
    bool finite = matrix_finite(p.shape, x);
    MATRIX_ENTRIES (i, j, p.shape) /* 1 / lambda may have exceeded the range of the type */
        p.x[(int64_t)i * p.shape.m + j] = finite ? entry(p.shape, x, i, j) : 0;
    if (!is_first_thread())
        return;
    bool good = p.call->keep_factor || p.info->residual <= p.call->tolerance;
    if (!finite)
        p.info->residual = 1;
    if (status == ATN_OK && !(good && finite))
        status = core_inverse_failure(p.info->stop);
    p.info->status = status;
}

static __device__ void open_info(const inverse_call &call, int64_t i, atn_inverse_info *info)
{
    atn_inverse_info none = {};
    if (call.started)
        none = call.infos[i];
    none.residual = NAN; /* until measured */
    none.status = ATN_OK;
    *info = none;
}

#endif
