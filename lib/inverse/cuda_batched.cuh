/* SPDX-License-Identifier: BSD-3-Clause */
/* The iterations for matrices too large for one block (CUDA_INVERSE_BLOCK_MOST): all matrices of a
 * group take a step together. The host enqueues products of the whole group, cuBLAS's strided
 * batched ones, and between them kernels of two kinds:
 *
 *   one block for each strip of CUDA_INVERSE_STRIP rows: computes the entries of a step and the
 *   strip's partial sums;
 *   one warp for each matrix: adds up the partial sums, in order, and decides.
 *
 * The first and last kernels of a call, of O(m^2) work, use a block for each matrix as in
 * inverse/cuda.cuh.
 *
 * Nothing is read back: a matrix that has stopped keeps its X, since steps write X_{k+1} next to
 * X_k and products only into scratch; its further products are wasted. So the host's loop always
 * takes T steps, also with stopping best.
 *
 * Reproducibility: the order of sums over strips and of partial sums depends on m alone. The order
 * within a product is cuBLAS's: the same from run to run for one version of cuBLAS, on devices of
 * one architecture and number of multiprocessors, where the handle has one stream and its own
 * workspace (device_blas ensures both). It is not the order of the block form. Factors of products
 * are f32 or f64 (CUBLAS_COMPUTE_32F, _64F, default math mode: no TF32), except for the dtype tf32,
 * whose steps use CUBLAS_COMPUTE_32F_FAST_TF32. */
#ifndef INVERSE_CUDA_BATCHED_CUH
#define INVERSE_CUDA_BATCHED_CUH

#include "inverse/newton/cuda.cuh"
#include "inverse/polynomial/cuda.cuh"

/* The places of matrices in the work. Newton-Raphson needs those up to BEST; polynomial iterations
 * need a vector, too. */
enum {
    BATCHED_B,
    BATCHED_X, /* X_k for even k, and the next for odd */
    BATCHED_PRODUCT = 3,
    BATCHED_OTHER,
    BATCHED_BEST,
    BATCHED_POLYNOMIAL_E = 3, /* power, other, q follow */
    BATCHED_POLYNOMIAL_BEST = 7,
    BATCHED_PROBE
};

/* The arguments of every kernel. */
typedef struct {
    inverse_call call; /* its shape's stride is batched_stride's */
    int64_t first;     /* matrix of the call */
    int group;         /* matrices */
    int strips;
    int best; /* the place of the best X, or -1 */
    int k;    /* step */
    cuda_inverse_run *runs;
    double *partials;
} batched_call;

/* Rows begin at multiples of 16 bytes, as cuBLAS's faster kernels require. */
static inline __host__ __device__ int64_t batched_stride(int64_t m)
{
    return matrix_padded(m);
}

static inline __host__ __device__ int64_t batched_matrix(int64_t m)
{
    return m * batched_stride(m);
}

static inline __host__ __device__ int64_t batched_reals(const atn_inverse_desc &desc, int64_t m)
{
    bool polynomial = desc.method > ATN_INVERSE_NR_SOFTPP;
    return polynomial ? BATCHED_PROBE * batched_matrix(m) + batched_stride(m)
                      : (BATCHED_BEST + (desc.stopping == ATN_STOPPING_BEST)) * batched_matrix(m);
}

/* Place n of matrix `at` of the group. */
static inline __host__ __device__ real *batched_at(const batched_call &c, int64_t at, int n)
{
    return c.call.work + at * c.call.reals + n * batched_matrix(c.call.shape.m);
}

/* Where X_k is. */
static inline __host__ __device__ int place_of(int k)
{
    return BATCHED_X + k % 2;
}

static __device__ inverse_problem batched_problem(const batched_call &c, int64_t at)
{
    int64_t i = c.first + at;
    inverse_problem p = problem_of(c.call, i, batched_at(c, at, 0),
                                   c.call.recorded ? c.call.recorded + i : NULL, c.call.infos + i);
    p.alpha = c.call.desc.method <= ATN_INVERSE_NR_SOFTPP ? c.call.starts[i] : 0;
    return p;
}

/* ---- Strips ---- */

/* The block's threads share the entries of its strip, one row per warp. */
#define STRIP_ENTRIES(i, j, c)                                                                     \
    for (int i = (int)blockIdx.x * CUDA_INVERSE_STRIP + (int)threadIdx.x / 32,                     \
             i##_end = strip_end(c);                                                               \
         i < i##_end; i += BLOCK_WARPS)                                                            \
        for (int j = (int)threadIdx.x % 32; j < (c).call.shape.m; j += 32)

static __device__ __forceinline__ int strip_end(const batched_call &c)
{
    int end = ((int)blockIdx.x + 1) * CUDA_INVERSE_STRIP;
    return end < c.call.shape.m ? end : c.call.shape.m;
}

/* The Frobenius norm of the strip whose entries are value(i, j), as matrix_frobenius. */
template <class F> static __device__ double strip_norm(const batched_call &c, F value)
{
    double sum = 0, largest = 0;
    STRIP_ENTRIES(i, j, c)
    sum += (double)value(i, j) * (double)value(i, j);
    sum = block_sum(sum);
    if (is_safe_square(sum))
        return sqrt(sum);
    STRIP_ENTRIES(i, j, c)
    largest = larger(fabs((double)value(i, j)), largest);
    largest = block_max(largest);
    if (!(largest > 0 && largest < HUGE_VAL))
        return largest;
    int exponent;
    frexp(largest, &exponent);
    sum = 0;
    STRIP_ENTRIES(i, j, c)
    {
        double scaled = ldexp((double)value(i, j), -exponent);
        sum += scaled * scaled;
    }
    return ldexp(sqrt(block_sum(sum)), exponent);
}

static __device__ void leave_partials(const batched_call &c, double first, double second,
                                      double third)
{
    double *partials =
        c.partials + ((int64_t)blockIdx.y * c.strips + blockIdx.x) * CUDA_INVERSE_PARTIALS;
    if (!is_first_thread())
        return;
    partials[0] = first;
    partials[1] = second;
    partials[2] = third;
}

/* The sum of the strips' n-th partial sums, computed by every warp. */
static __device__ double sum_partials(const batched_call &c, int64_t at, int n)
{
    const double *partials = c.partials + at * c.strips * CUDA_INVERSE_PARTIALS + n;
    double sum = 0;
    for (int s = (int)threadIdx.x % 32; s < c.strips; s += 32)
        sum += partials[s * CUDA_INVERSE_PARTIALS];
    return warp_sum(sum);
}

/* The norm whose strips' norms are the n-th partials. */
static __device__ double norm_of_partials(const batched_call &c, int64_t at, int n)
{
    const double *partials = c.partials + at * c.strips * CUDA_INVERSE_PARTIALS + n;
    double sum = 0, largest = 0;
    for (int s = (int)threadIdx.x % 32; s < c.strips; s += 32)
        largest = larger(partials[s * CUDA_INVERSE_PARTIALS], largest);
    largest = warp_max(largest);
    if (!(largest > 0 && largest < HUGE_VAL))
        return largest;
    for (int s = (int)threadIdx.x % 32; s < c.strips; s += 32) {
        double part = partials[s * CUDA_INVERSE_PARTIALS] / largest;
        sum += part * part;
    }
    return largest * sqrt(warp_sum(sum));
}

/* ---- First and last kernels: a block for each matrix ---- */

static __device__ void open_run(const inverse_problem &p, bool has_start, cuda_inverse_run *run)
{
    double norm = has_start ? matrix_frobenius(p.shape, p.work) : 0;
    if (!has_start)
        for (int64_t n = BATCHED_B; n < BATCHED_PRODUCT; n++)
            matrix_fill(p.shape, 0, p.work + n * batched_matrix(p.shape.m));
    if (is_first_thread()) {
        run->stopping = core_stopping{HUGE_VAL, 0};
        run->before = run->update = 0;
        run->norm = norm;
        run->products = 0;
        run->at = run->returned = 0;
        run->kept = false;
        run->has_start = run->going = has_start;
        run->stop = ATN_STOP_ITERATIONS;
    }
}

static __device__ void open_problem(const batched_call &c, const inverse_problem &p)
{
    if (is_first_thread()) {
        open_info(c.call, c.first + blockIdx.x, p.info);
        if (p.recorded)
            *p.recorded = 0;
    }
    __syncthreads();
}

static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    open_newton(const __grid_constant__ batched_call c)
{
    inverse_problem p = batched_problem(c, blockIdx.x);
    open_problem(c, p);
    bool accepted = accepts(p), found = accepted && !(p.alpha < 0);
    bool has_start = found && newton_start(p, p.work, batched_at(c, blockIdx.x, BATCHED_X));
    if (accepted && !has_start)
        report_no_start(p, found ? ATN_STOP_NONFINITE : ATN_STOP_NO_ALPHA);
    open_run(p, has_start, c.runs + blockIdx.x);
}

/* The matrices as the functions of inverse/polynomial/cuda.cuh take them. */
static __device__ polynomial_run batched_polynomial(const batched_call &c, int64_t at)
{
    polynomial_run t = {};
    t.b = batched_at(c, at, BATCHED_B);
    t.x = batched_at(c, at, BATCHED_X);
    t.e = batched_at(c, at, BATCHED_POLYNOMIAL_E);
    t.power = batched_at(c, at, BATCHED_POLYNOMIAL_E + AT_POWER);
    t.other = batched_at(c, at, BATCHED_POLYNOMIAL_E + AT_OTHER);
    t.probe = batched_at(c, at, BATCHED_PROBE);
    t.gap = 1;
    return t;
}

static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    open_polynomial(const __grid_constant__ batched_call c)
{
    inverse_problem p = batched_problem(c, blockIdx.x);
    polynomial_run t = batched_polynomial(c, blockIdx.x);
    open_problem(c, p);
    bool accepted = accepts(p), has_start = accepted && polynomial_start(p, t, p.work);
    if (accepted && !has_start)
        report_no_start(p, ATN_STOP_NONFINITE);
    if (has_start)
        fill_probe(p, t);
    open_run(p, has_start, c.runs + blockIdx.x);
    if (is_first_thread())
        c.runs[blockIdx.x].gap = t.gap;
}

/* For traces: records X_k if it was accepted. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    record_step(const __grid_constant__ batched_call c)
{
    inverse_problem p = batched_problem(c, blockIdx.x);
    const cuda_inverse_run &run = c.runs[blockIdx.x];
    if (run.going && run.at == c.k)
        record(p, batched_at(c, blockIdx.x, place_of(c.k)));
}

/* Copies X, rounded to its final type, to the call's result; 0 if there is no X. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    collect(const __grid_constant__ batched_call c)
{
    inverse_problem p = batched_problem(c, blockIdx.x);
    const cuda_inverse_run &run = c.runs[blockIdx.x];
    const real *x = batched_at(c, blockIdx.x, run.kept ? c.best : place_of(run.at));
    matrix_shape dense = p.shape;
    dense.stride = dense.m;
    MATRIX_ENTRIES (i, j, p.shape)
        entry(dense, p.x, i, j) = run.has_start ? entry(p.shape, x, i, j) : 0;
    __syncthreads();
    p.shape = dense;
    store_result(p, p.x);
}

/* E = I - B X from B X. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    complement(const __grid_constant__ batched_call c)
{
    real *e = batched_at(c, blockIdx.y, BATCHED_PRODUCT);
    STRIP_ENTRIES(i, j, c)
    entry(c.call.shape, e, i, j) = (real)(i == j) - entry(c.call.shape, e, i, j);
}

/* Where the residual of X comes from: it was the smallest of all, or is computed from B X B or E B,
 * which are in OTHER. */
typedef enum { RESIDUAL_KNOWN, RESIDUAL_OF_PRODUCT, RESIDUAL_OF_ERROR } residual_source;

/* A strip's |B X B - B|_F or |E B|_F. */
static __device__ double strip_residual(const batched_call &c, residual_source source)
{
    const matrix_shape &shape = c.call.shape;
    const real *b = batched_at(c, blockIdx.y, BATCHED_B);
    const real *product = batched_at(c, blockIdx.y, BATCHED_OTHER);
    return strip_norm(c, [&](int i, int j) {
        return entry(shape, product, i, j) -
               (source == RESIDUAL_OF_PRODUCT ? entry(shape, b, i, j) : 0);
    });
}

static __device__ double residual_of_partials(const batched_call &c, int64_t at)
{
    double norm = c.runs[at].norm;
    return norm > 0 ? norm_of_partials(c, at, 0) / norm : 0;
}

static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    measure_returned(const __grid_constant__ batched_call c, residual_source source)
{
    leave_partials(c, strip_residual(c, source), 0, 0);
}

static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    judge(const __grid_constant__ batched_call c, residual_source source)
{
    inverse_problem p = batched_problem(c, blockIdx.x);
    const cuda_inverse_run &run = c.runs[blockIdx.x];
    bool best = c.call.desc.method <= ATN_INVERSE_NR_SOFTPP && c.best >= 0;
    if (!run.has_start)
        return;
    double residual =
        source == RESIDUAL_KNOWN ? run.stopping.smallest : residual_of_partials(c, blockIdx.x);
    if (is_first_thread()) {
        p.info->stop = run.stop;
        p.info->products += run.products;
        p.info->returned = run.returned;
        if (best)
            p.info->best_iteration = run.returned;
        p.info->residual = residual;
    }
    __syncthreads();
    p.shape.stride = p.shape.m;
    conclude(p, run.stop == ATN_STOP_NONFINITE && !best ? ATN_NOT_CONVERGED : ATN_OK, p.x);
}

/* ---- Steps: strips ---- */

/* Rounds the result of a product to the narrow storage. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    round_product(const __grid_constant__ batched_call c, int place)
{
    real *a = batched_at(c, blockIdx.y, place);
    STRIP_ENTRIES(i, j, c)
    entry(c.call.shape, a, i, j) = storage_round(c.call.desc.storage, entry(c.call.shape, a, i, j));
}

/* X_{k+1}(i, j) = stepped(i, j, moved) next to X_k, which is copied to the best place if it is the
 * best. `stepped` also gives X_{k+1} - X_k. The partial sums are |X_{k+1} - X_k|^2, |X_{k+1}|^2,
 * and whether X_{k+1} is finite. */
template <class F> static __device__ void take_step(const batched_call &c, F stepped)
{
    const matrix_shape &shape = c.call.shape;
    const real *x = batched_at(c, blockIdx.y, place_of(c.k));
    real *next = batched_at(c, blockIdx.y, place_of(c.k + 1));
    bool keep = c.best >= 0 && c.runs[blockIdx.y].stopping.best == c.k, bad = false;
    double change = 0, size = 0;
    STRIP_ENTRIES(i, j, c)
    {
        double moved, reached;
        real entered = stepped(entry(shape, x, i, j), i, j, &moved, &reached);
        change += moved * moved;
        size += reached * reached;
        bad |= !isfinite(entered);
        entry(shape, next, i, j) = entered;
        if (keep)
            entry(shape, batched_at(c, blockIdx.y, c.best), i, j) = entry(shape, x, i, j);
    }
    block_sum_pair(&change, &size);
    leave_partials(c, change, size, __syncthreads_or(bad) ? 1 : 0);
}

/* Newton-Raphson: from X (B X), in OTHER. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    step_newton(const __grid_constant__ batched_call c)
{
    const matrix_shape &shape = c.call.shape;
    const real *product = batched_at(c, blockIdx.y, BATCHED_OTHER);
    atn_storage storage = c.call.desc.storage;
    if (!c.runs[blockIdx.y].going)
        return;
    take_step(c, [&](real before, int i, int j, double *moved, double *reached) {
        real removed =
            storage_round(storage, (entry(shape, product, i, j) + entry(shape, product, j, i)) / 2);
        real stepped = 2 * before - removed;
        *moved = (double)before - (double)removed;
        *reached = (double)stepped;
        return storage_round(storage, stepped);
    });
}

/* Partial sums of |B X_k B - B| and |X_k|. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    measure_residual(const __grid_constant__ batched_call c)
{
    const matrix_shape &shape = c.call.shape;
    const real *x = batched_at(c, blockIdx.y, place_of(c.k));
    if (!c.runs[blockIdx.y].going)
        return;
    double residual = strip_residual(c, RESIDUAL_OF_PRODUCT);
    double size = strip_norm(c, [&](int i, int j) { return entry(shape, x, i, j); });
    leave_partials(c, residual, size, 0);
}

/* Whether X_k is still alpha I, which makes products with it scalings. */
static __device__ __forceinline__ bool starts_scalar(const batched_call &c)
{
    return c.k == 0 && c.call.desc.start == ATN_START_IDENTITY;
}

/* E = I - B X from B X, and partial sums of its norm and of |E B v|^2. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    measure_error(const __grid_constant__ batched_call c)
{
    inverse_problem p = batched_problem(c, blockIdx.y);
    const matrix_shape &shape = c.call.shape;
    const real *b = batched_at(c, blockIdx.y, BATCHED_B);
    const real alpha = *batched_at(c, blockIdx.y, BATCHED_X);
    const real *probe = batched_at(c, blockIdx.y, BATCHED_PROBE);
    real *e = batched_at(c, blockIdx.y, BATCHED_POLYNOMIAL_E);
    double squared = 0;
    if (!c.runs[blockIdx.y].going)
        return;
    STRIP_ENTRIES(i, j, c)
    {
        real product = starts_scalar(c) ? alpha * entry(shape, b, i, j) : entry(shape, e, i, j);
        entry(shape, e, i, j) = (real)(i == j) - storage_round(p.desc->storage, product);
    }
    double norm = strip_norm(c, [&](int i, int j) { return entry(shape, e, i, j); });
    for (int i = (int)blockIdx.x * CUDA_INVERSE_STRIP + (int)threadIdx.x / 32; i < strip_end(c);
         i += BLOCK_WARPS) {
        double sum = row_times(p, e + i * shape.stride, probe);
        squared += threadIdx.x % 32 == 0 ? sum * sum : 0;
    }
    leave_partials(c, norm, block_sum(squared), 0);
}

/* A map of Q's program. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    map_entries(const __grid_constant__ batched_call c, int map)
{
    const matrix_shape &shape = c.call.shape;
    int64_t size = batched_matrix(shape.m);
    real *e = batched_at(c, blockIdx.y, BATCHED_POLYNOMIAL_E);
    if (!c.runs[blockIdx.y].going)
        return;
    polynomial_numbers numbers = numbers_of(map, c.runs[blockIdx.y].gap);
    STRIP_ENTRIES(i, j, c)
    map_entry(map, numbers, (real)(i == j), entry(shape, e, i, j),
              entry(shape, e + AT_POWER * size, i, j), entry(shape, e + AT_OTHER * size, i, j),
              entry(shape, e + AT_Q * size, i, j));
}

/* Polynomial iterations: from X Q, in POWER, or from Q where X is alpha I. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    step_polynomial(const __grid_constant__ batched_call c)
{
    const matrix_shape &shape = c.call.shape;
    bool scalar = starts_scalar(c);
    const real *product =
        batched_at(c, blockIdx.y, BATCHED_POLYNOMIAL_E + (scalar ? AT_Q : AT_POWER));
    const real alpha = scalar ? *batched_at(c, blockIdx.y, BATCHED_X) : 1;
    if (!c.runs[blockIdx.y].going)
        return;
    take_step(c, [&](real before, int i, int j, double *moved, double *reached) {
        real below = alpha * entry(shape, product, i, j);
        real stepped =
            storage_round(c.call.desc.storage, (below + alpha * entry(shape, product, j, i)) / 2);
        *moved = (double)stepped - (double)before;
        *reached = (double)stepped;
        return stepped;
    });
}

/* ---- Steps: decisions, a warp for each matrix ---- */

/* Newton-Raphson, stopping best: X_k's residual is known. */
static __global__ void __launch_bounds__(32) decide_residual(const __grid_constant__ batched_call c)
{
    cuda_inverse_run &run = c.runs[blockIdx.x];
    if (!run.going)
        return;
    double residual = residual_of_partials(c, blockIdx.x);
    double size = norm_of_partials(c, blockIdx.x, 1);
    if (!is_first_thread())
        return;
    run.products += 2;
    run.stop = core_stopping_take(&run.stopping, c.k, residual, c.call.roundoff * run.norm * size);
    run.going = run.stop == ATN_STOP_ITERATIONS;
    run.returned = run.stopping.best;
    run.kept = run.returned != c.k;
}

/* Newton-Raphson: X_{k+1} has been computed. */
static __global__ void __launch_bounds__(32) decide_newton(const __grid_constant__ batched_call c)
{
    cuda_inverse_run &run = c.runs[blockIdx.x];
    inverse_problem p = batched_problem(c, blockIdx.x);
    if (!run.going)
        return;
    double change = sum_partials(c, blockIdx.x, 0), size = sum_partials(c, blockIdx.x, 1);
    bool bad = sum_partials(c, blockIdx.x, 2) > 0, best = c.best >= 0;
    if (!is_first_thread())
        return;
    run.products += best ? 1 : 2;
    if (bad) {
        run.stop = ATN_STOP_NONFINITE;
        run.going = false;
        return;
    }
    run.at = c.k + 1;
    if (!best)
        run.returned = run.at;
    record_update(p, run.at, relative_update(change, size));
}

/* Polynomial iterations: E_k has been computed; the guard (attnum/inverse.h). */
static __global__ void __launch_bounds__(32) decide_error(const __grid_constant__ batched_call c)
{
    cuda_inverse_run &run = c.runs[blockIdx.x];
    inverse_problem p = batched_problem(c, blockIdx.x);
    if (!run.going)
        return;
    double norm = norm_of_partials(c, blockIdx.x, 0), squared = sum_partials(c, blockIdx.x, 1);
    if (!is_first_thread())
        return;
    double error = norm * norm;
    if (c.k > 0 && !(error <= error_bound(p, run.before, run.gap))) {
        run.stop = ATN_STOP_DIVERGED;
        run.returned = run.stopping.best;
        run.kept = true;
        run.going = false;
        return;
    }
    if (c.k == 0 || squared < run.stopping.smallest) {
        run.stopping.smallest = squared;
        run.stopping.best = c.k;
    }
    run.before = error;
    run.at = run.returned = c.k;
    if (c.k > 0)
        record_update(p, c.k, run.update);
}

/* Polynomial iterations: X_{k+1} has been computed. */
static __global__ void __launch_bounds__(32)
    decide_polynomial(const __grid_constant__ batched_call c)
{
    cuda_inverse_run &run = c.runs[blockIdx.x];
    const core_polynomial &polynomial = c.call.polynomial;
    if (!run.going)
        return;
    double change = sum_partials(c, blockIdx.x, 0), size = sum_partials(c, blockIdx.x, 1);
    bool bad = sum_partials(c, blockIdx.x, 2) > 0;
    if (!is_first_thread())
        return;
    run.products += polynomial.products - (starts_scalar(c) ? 2 : 0);
    if (bad) {
        run.stop = ATN_STOP_NONFINITE;
        run.going = false;
        return;
    }
    run.update = relative_update(change, size);
    run.gap = polynomial.chebyshev ? core_next_gap(polynomial.order, run.gap) : 1;
}

#endif
