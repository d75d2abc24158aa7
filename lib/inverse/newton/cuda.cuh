/* SPDX-License-Identifier: BSD-3-Clause */
/* The Newton-Raphson inverse of one matrix, SOFT (IJCV) Eq. 10, and its start, as in
 * inverse/newton/cpu.c. */
#ifndef INVERSE_NEWTON_CUDA_CUH
#define INVERSE_NEWTON_CUDA_CUH

#include "inverse/cuda.cuh"

enum { NEWTON_MATRICES = 4 }; /* and one more with stopping best */

/* |I - alpha B|_1 in the arithmetic of `real`, as the published loops compute it. b is dense. */
static __device__ double start_norm(int64_t m, const real *b, real alpha)
{
    double norm = 0;
    BLOCK_EACH (i, m) { /* rows instead of columns: B is symmetric */
        real sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += real_abs((i == j ? (real)1 : (real)0) - alpha * b[j * m + i]);
        norm = larger(norm, (double)sum);
    }
    return block_max(norm);
}

/* next = 2 X - X B X, exactly symmetric, from b_x = B X, which is rounded to the storage first.
 * Returns |next - X|_F / |next|_F, and whether next may hold numbers that are not finite. */
static __device__ double newton_step(const matrix_shape &shape, atn_storage storage, const real *x,
                                     real *b_x, real *next, bool *suspect)
{
    matrix_store(shape, storage, b_x);
    matrix_multiply(shape, x, b_x, false, next);
    double change = 0, size = 0;
    MATRIX_ENTRIES (i, j, shape) {
        if (j > i)
            continue;
        real removed =
            storage_round(storage, (entry(shape, next, i, j) + entry(shape, next, j, i)) / 2);
        real before = entry(shape, x, i, j), stepped = 2 * before - removed;
        double moved = (double)before - (double)removed;
        double both = i == j ? 1 : 2; /* entries of that size */
        change += both * (moved * moved);
        size += both * ((double)stepped * (double)stepped);
        entry(shape, next, i, j) = entry(shape, next, j, i) = storage_round(storage, stepped);
    }
    block_sum_pair(&change, &size);
    *suspect = storage != ATN_STORAGE_NATIVE || !(size < HUGE_VAL);
    return relative_update(change, size);
}

/* The iteration of one matrix: X_k in x, room for X_{k+1} in next. */
typedef struct {
    const real *b;
    real *x, *next, *b_x;
    bool seeks_best;
    real *best; /* the X_k of smallest residual, with stopping best */
    core_stopping stopping;
    int steps; /* taken */
    atn_stop stop;
    int64_t products;
} newton_run;

/* Passes the residual of X_k to the stopping rule, with B X_k in b_x; next is scratch. Returns
 * whether to stop. */
static __device__ bool newton_stops(const inverse_problem &p, newton_run &run, int k)
{
    double residual = matrix_penrose_of_product(p.shape, run.b, run.b_x, run.next);
    double noise =
        p.call->roundoff * matrix_frobenius(p.shape, run.b) * matrix_frobenius(p.shape, run.x);
    run.products++;
    run.stop = core_stopping_take(&run.stopping, k, residual, noise);
    if (run.stopping.best == k)
        matrix_copy(p.shape, run.x, run.best);
    return run.stop != ATN_STOP_ITERATIONS;
}

/* Computes X_{k+1}; false if it overflows. */
static __device__ bool newton_advance(const inverse_problem &p, newton_run &run)
{
    bool suspect;
    double update = newton_step(p.shape, p.desc->storage, run.x, run.b_x, run.next, &suspect);
    run.products++;
    if (suspect && !matrix_finite(p.shape, run.next)) {
        run.stop = ATN_STOP_NONFINITE;
        return false;
    }
    real *previous = run.x;
    run.x = run.next;
    run.next = previous;
    record_update(p, ++run.steps, update);
    return true;
}

/* At most T steps from X_0. */
static __device__ void newton_iterate(const inverse_problem &p, newton_run &run)
{
    for (int k = 0;; k++) {
        record(p, run.x);
        if (k == p.desc->iterations && !run.seeks_best)
            return;
        matrix_multiply(p.shape, run.b, run.x, false, run.b_x);
        run.products++;
        if ((run.seeks_best && newton_stops(p, run, k)) || k == p.desc->iterations ||
            !newton_advance(p, run))
            return;
    }
}

static __device__ void newton_report(const inverse_problem &p, const newton_run &run)
{
    if (is_first_thread()) {
        p.info->stop = run.stop;
        p.info->products += run.products;
        p.info->returned = run.steps;
        if (run.seeks_best)
            p.info->returned = p.info->best_iteration = run.stopping.best;
    }
    __syncthreads();
}

/* Computes the residual of the returned X, after the rounding of the result if there is any. */
static __device__ void newton_judge(const inverse_problem &p, const newton_run &run, real *x)
{
    store_result(p, x);
    bool measured = run.seeks_best && p.call->result == ATN_STORAGE_NATIVE;
    double residual =
        measured ? run.stopping.smallest : matrix_penrose(p.shape, run.b, x, run.b_x, run.next);
    if (is_first_thread())
        p.info->residual = residual;
    __syncthreads();
}

/* Computes B and X_0 = alpha B. Returns whether that is finite: alpha may overflow. */
static __device__ bool newton_start(const inverse_problem &p, real *b, real *start)
{
    real alpha = (real)p.alpha;
    load_shifted(p, b);
    MATRIX_ENTRIES (i, j, p.shape)
        entry(p.shape, start, i, j) =
            storage_round(p.desc->storage, alpha * entry(p.shape, b, i, j));
    __syncthreads();
    if (is_first_thread())
        p.info->alpha = (double)alpha;
    return matrix_finite(p.shape, start);
}

static __device__ atn_status newton(const inverse_problem &p, real **x)
{
    if (p.alpha < 0)
        return without_start(p, ATN_STOP_NO_ALPHA, x);
    real *b = work_matrix(p, 0), *start = work_matrix(p, 1);
    bool best = p.desc->stopping == ATN_STOPPING_BEST;
    if (!newton_start(p, b, start))
        return without_start(p, ATN_STOP_NONFINITE, x);
    newton_run run = {b,
                      start,
                      work_matrix(p, 2),
                      work_matrix(p, 3),
                      best,
                      work_matrix(p, NEWTON_MATRICES),
                      {HUGE_VAL, 0},
                      0,
                      ATN_STOP_ITERATIONS,
                      0};
    newton_iterate(p, run);
    newton_report(p, run);
    *x = best ? run.best : run.x;
    if (best)
        run.next = run.x; /* not used any more */
    newton_judge(p, run, *x);
    return run.stop == ATN_STOP_NONFINITE && !best ? ATN_NOT_CONVERGED : ATN_OK;
}

#endif
