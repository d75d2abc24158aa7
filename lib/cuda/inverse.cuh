/* SPDX-License-Identifier: BSD-3-Clause */
/* What the inverses' kernels share: one matrix in the hands of one block. */
#ifndef CUDA_INVERSE_CUH
#define CUDA_INVERSE_CUH

#include "core/inverse.h"
#include "core/stopping.h"
#include "cuda/device.h"
#include "cuda/inverse.h"
#include "cuda/launch.cuh"
#include "cuda/matrix.cuh"

/* What every block of a call is told. */
typedef struct {
    atn_inverse_desc desc;
    core_polynomial polynomial;
    matrix_shape shape;
    int64_t count, reals;
    bool in_shared, keep_factor, started; /* starts, halvings and infos are there */
    atn_storage result;
    double roundoff;       /* what X is judged by: the storage's, the result's or the dtype's */
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

/* One matrix. Thread 0 writes the info; what decides about the way is known to all threads. */
typedef struct {
    const inverse_call *call;
    const atn_inverse_desc *desc;
    matrix_shape shape;
    const real *a; /* dense, device memory */
    real *x;       /* likewise: scratch of the method */
    real *work;    /* zero */
    double alpha;  /* Newton-Raphson: the start, halved already; < 0: no such n */
    int *pivots;
    real *iterates; /* where X_0 goes, or null */
    int *recorded;
    atn_inverse_info *info; /* shared memory */
} inverse_problem;

/* What kernels have of their own in shared memory is less than this. */
enum { STATIC_SHARED = 2048 };

/* Bytes of shared memory that a block can ask for beside that. */
static inline atn_status cuda_most_shared(atn_context *context, size_t *bytes)
{
    int ordinal, most = 0;
    atn_status status = device_result(context, cudaGetDevice(&ordinal), "cudaGetDevice");
    if (status == ATN_OK)
        status = device_result(
            context,
            cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal),
            "the limit of shared memory");
    *bytes = most > STATIC_SHARED ? (size_t)(most - STATIC_SHARED) : 0;
    return status;
}

static __device__ __forceinline__ bool is_scribe()
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
    if (is_scribe())
        ++*p.recorded;
    __syncthreads();
}

/* Rounds X to what it will be stored as. */
static __device__ void store_result(const inverse_problem &p, real *x)
{
    matrix_store(p.shape, p.desc->storage, x);
    matrix_store(p.shape, p.call->result, x);
}

/* X = 0 for want of a start. */
static __device__ atn_status without_start(const inverse_problem &p, atn_stop stop, real **x)
{
    *x = work_matrix(p, 0);
    matrix_fill(p.shape, 0, *x);
    if (is_scribe()) {
        p.info->stop = stop;
        p.info->residual = 1;
    }
    __syncthreads();
    return ATN_NOT_CONVERGED;
}

/* Step k = 1, 2, ... was taken, with this update. */
static __device__ void take_update(const inverse_problem &p, int k, double update)
{
    atn_inverse_info *info = p.info;
    if (!is_scribe())
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

#endif
