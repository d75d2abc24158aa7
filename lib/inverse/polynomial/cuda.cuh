/* SPDX-License-Identifier: BSD-3-Clause */
/* Polynomial iterations for the inverse of one matrix, X_{k+1} = X_k Q(E_k), E_k = I - B X_k
 * (attnum/inverse.h); inverse/polynomial/cpu.c derives the constants. */
#ifndef INVERSE_POLYNOMIAL_CUDA_CUH
#define INVERSE_POLYNOMIAL_CUDA_CUH

#include "inverse/cuda.cuh"

enum { POLYNOMIAL_MATRICES = 8 }; /* and a vector */

typedef struct {
    const real *b;
    real *x, *next;
    real *e, *power, *other, *q;
    real *best, *probe;   /* the X with the smallest |E B v|, and B v, scaled */
    double best_residual; /* |E B v|^2, scaled */
    int best_step, returned;
    double gap; /* 1 - d, which stays accurate where d rounds to 1; 1 for hyperpowers */
    atn_stop stop;
    int64_t products;
} polynomial_run;

/* out = a b, or a b + out */
static __device__ void polynomial_product(const inverse_problem &p, const real *a, const real *b,
                                          bool add, real *out)
{
    matrix_multiply(p.shape, a, b, add, out);
    matrix_store(p.shape, p.desc->storage, out);
}

/* ---- Q(E) into q, destroying e, power and other; z = d^2 ----
 *
 * It is computed by a program of at most five operations on E, power, other and q, four consecutive
 * matrices of the work. */

typedef enum { POLYNOMIAL_END, POLYNOMIAL_PRODUCT, POLYNOMIAL_ADD, POLYNOMIAL_MAP } polynomial_kind;

/* The places of the four matrices. */
enum { AT_E, AT_POWER, AT_OTHER, AT_Q };

typedef enum {
    MAP_ORDER_2,
    MAP_ORDER_3,
    MAP_ORDER_7,
    MAP_ORDER_9_FACTOR,
    MAP_ORDER_9,
    MAP_PUBLISHED
} polynomial_map;

/* Order 2: 2 (1 + e) / (2 - z); Pan and Schreiber (1991), with d = 0 Newton-Schulz.
 * Order 3: (4 (1 + e + e^2) - 3 z) / (4 - 3 z), from T_3(x) = 4 x^3 - 3 x.
 * Order 7: 1 + (e + e^2) (1 + e^2 + e^4).
 * Order 9: with y = e^2 (e^2 + e / 2): s ((y + f e^2 + g e)(y + h e^2) + w y + c2 (e^2 + e) + c0).
 * As published, Xiong et al. (2021): (13 - y (15 - y (7 - y))) / 4 with y = 1 - e is
 * 1 + e (1 + e (1 + e / 4)). */
static inline polynomial_program polynomial_program_of(bool published, int order)
{
    const polynomial_program second = {{{POLYNOMIAL_MAP, MAP_ORDER_2, 0, 0}}};
    const polynomial_program third = {
        {{POLYNOMIAL_PRODUCT, AT_E, AT_E, AT_POWER}, {POLYNOMIAL_MAP, MAP_ORDER_3, 0, 0}}};
    const polynomial_program seventh = {{{POLYNOMIAL_PRODUCT, AT_E, AT_E, AT_POWER},
                                         {POLYNOMIAL_PRODUCT, AT_POWER, AT_POWER, AT_OTHER},
                                         {POLYNOMIAL_MAP, MAP_ORDER_7, 0, 0},
                                         {POLYNOMIAL_ADD, AT_E, AT_OTHER, AT_Q}}};
    const polynomial_program ninth = {{{POLYNOMIAL_PRODUCT, AT_E, AT_E, AT_POWER},
                                       {POLYNOMIAL_MAP, MAP_ORDER_9_FACTOR, 0, 0},
                                       {POLYNOMIAL_PRODUCT, AT_POWER, AT_OTHER, AT_Q},
                                       {POLYNOMIAL_MAP, MAP_ORDER_9, 0, 0},
                                       {POLYNOMIAL_ADD, AT_E, AT_POWER, AT_Q}}};
    const polynomial_program xiong = {{{POLYNOMIAL_MAP, MAP_PUBLISHED, 0, 0},
                                       {POLYNOMIAL_ADD, AT_E, AT_OTHER, AT_POWER},
                                       {POLYNOMIAL_ADD, AT_E, AT_POWER, AT_Q}}};
    return published    ? xiong
           : order == 2 ? second
           : order == 3 ? third
           : order == 7 ? seventh
                        : ninth;
}

typedef struct {
    real factor;
    double c0, c2, f, g, h, w, s;
} polynomial_numbers;

static __device__ polynomial_numbers numbers_of(int map, double gap)
{
    polynomial_numbers n = {};
    double z = (1 - gap) * (1 - gap), third = 4 - 3 * z;
    if (map == MAP_ORDER_2)
        n.factor = (real)(2 / (2 - z));
    if (map == MAP_ORDER_3)
        n.factor = (real)(4 / third);
    if (map != MAP_ORDER_9)
        return n;
    double c6 = 1 - 9 * z / 4, c4 = c6 + 27 * z * z / 16;
    n.c2 = c4 - 15 * z * z * z / 32;
    n.c0 = n.c2 + 9 * z * z * z * z / 256;
    n.g = c6 / 2 + 0.125;
    n.h = (sqrt(0.25 + 2 * n.g + 4 * c4) - 0.5) / 2;
    n.f = c6 - 0.25 - n.h;
    n.w = 2 * (c4 - n.g * n.h);
    n.s = 256 / (third * (4 * third * third - 3 * z * z * z));
    return n;
}

/* One entry of the four matrices; one: 1 on the diagonal, else 0. */
static __device__ __forceinline__ void map_entry(int map, const polynomial_numbers &n, real one,
                                                 real &e, real &power, real &other, real &q)
{
    if (map == MAP_ORDER_2)
        q = n.factor * (e + one);
    else if (map == MAP_ORDER_3)
        q = n.factor * (power + e) + one;
    else if (map == MAP_ORDER_7) {
        real square = power;
        e += square;
        other += square + one;
        q = one;
    } else if (map == MAP_ORDER_9_FACTOR)
        other = power + e / 2;
    else if (map == MAP_ORDER_9) {
        double first = (double)e, second = (double)power, y = (double)q;
        e = (real)(n.s * (y + n.f * second + n.g * first));
        power = (real)(y + n.h * second);
        q = (real)(n.s * (n.w * y + n.c2 * (second + first) + (one != 0 ? n.c0 : 0)));
    } else {
        other = e / 4 + one;
        power = q = one;
    }
}

static __device__ void find_polynomial(const inverse_problem &p, const polynomial_run &t)
{
    int64_t size = matrix_reals(p.shape.m);
    for (int n = 0; n < POLYNOMIAL_OPERATIONS; n++) {
        polynomial_operation o = p.call->program.operations[n];
        if (o.kind == POLYNOMIAL_END)
            break;
        if (o.kind != POLYNOMIAL_MAP) {
            polynomial_product(p, t.e + o.left * size, t.e + o.right * size,
                               o.kind == POLYNOMIAL_ADD, t.e + o.out * size);
            continue;
        }
        polynomial_numbers numbers = numbers_of(o.left, t.gap);
        MATRIX_ENTRIES (i, j, p.shape)
            map_entry(o.left, numbers, (real)(i == j), entry(p.shape, t.e, i, j),
                      entry(p.shape, t.power, i, j), entry(p.shape, t.other, i, j),
                      entry(p.shape, t.q, i, j));
        __syncthreads();
    }
    matrix_store(p.shape, p.desc->storage, t.q);
}

/* ---- Vectors of m elements, computed by every warp ---- */

/* Row i times v. */
static __device__ __forceinline__ double row_times(const inverse_problem &p, const real *row,
                                                   const real *v)
{
    double sum = 0;
    for (int j = (int)threadIdx.x % 32; j < p.shape.m; j += 32)
        sum += (double)row[j] * (double)v[j];
    return warp_sum(sum);
}

static __device__ double vector_norm(const inverse_problem &p, const real *v)
{
    double sum = row_times(p, v, v), largest = 0;
    if (is_safe_square(sum))
        return sqrt(sum);
    for (int j = (int)threadIdx.x % 32; j < p.shape.m; j += 32)
        largest = larger(largest, fabs((double)v[j]));
    largest = warp_max(largest);
    if (!(largest > 0 && largest < HUGE_VAL))
        return largest;
    int exponent;
    frexp(largest, &exponent);
    sum = 0;
    for (int j = (int)threadIdx.x % 32; j < p.shape.m; j += 32) {
        double scaled = ldexp((double)v[j], -exponent);
        sum += scaled * scaled;
    }
    return ldexp(sqrt(warp_sum(sum)), exponent);
}

/* out = B v, one row per warp. */
static __device__ void apply(const inverse_problem &p, const real *b, const real *v, real *out)
{
    for (int i = (int)threadIdx.x / 32; i < p.shape.m; i += BLOCK_WARPS) {
        double sum = row_times(p, b + i * p.shape.stride, v);
        if (threadIdx.x % 32 == 0)
            out[i] = (real)sum;
    }
    __syncthreads();
}

/* A vector without symmetry: multiples of the golden section, modulo 1. */
static __device__ void fill_generic(const inverse_problem &p, real *v)
{
    BLOCK_EACH (i, p.shape.m) {
        double ignored;
        v[i] = (real)(0.5 - modf(0.6180339887498949 * (double)(i + 1), &ignored));
    }
    __syncthreads();
}

/* ---- The interval ---- */

/* A symmetric tridiagonal matrix, in shared memory. */
typedef struct {
    double diagonal[ATN_INTERVAL_STEPS], off_diagonal[ATN_INTERVAL_STEPS],
        along[ATN_INTERVAL_STEPS];
} tridiagonal;

/* Whether all eigenvalues are above x: the pivots of T - x I are positive. */
static __device__ bool is_below(const tridiagonal &t, int count, double x)
{
    double pivot = t.diagonal[0] - x;
    for (int i = 1; i < count && pivot > 0; i++)
        pivot = t.diagonal[i] - x - t.off_diagonal[i - 1] * (t.off_diagonal[i - 1] / pivot);
    return pivot > 0;
}

/* The smallest eigenvalue by multisection: every thread tries a point between Gershgorin's bounds;
 * seven rounds narrow these to 2^-56 of their distance. NaN if an entry is not finite. */
static __device__ double smallest_eigenvalue(const tridiagonal &t, int count)
{
    enum { ROUNDS = 7 };
    double low = HUGE_VAL, high = HUGE_VAL;
    for (int i = 0; i < count; i++) {
        double radius = (i > 0 ? fabs(t.off_diagonal[i - 1]) : 0) +
                        (i < count - 1 ? fabs(t.off_diagonal[i]) : 0);
        low = t.diagonal[i] - radius < low ? t.diagonal[i] - radius : low;
        high = t.diagonal[i] < high ? t.diagonal[i] : high;
    }
    if (!(high - low < HUGE_VAL))
        return NAN;
    for (int round = 0; round < ROUNDS; round++) {
        double part = (high - low) / (BLOCK_THREADS + 1);
        bool below = is_below(t, count, low + part * (double)(threadIdx.x + 1));
        int passed = block_sum((int)below);
        high = passed < BLOCK_THREADS ? low + part * (passed + 1) : high;
        low += part * passed;
    }
    return low + (high - low) / 2;
}

/* Subtracts from v its components along the rows of basis; stores these in along, which is shared
 * memory. */
static __device__ void orthogonalise(const inverse_problem &p, int count, const real *basis,
                                     real *v, double *along)
{
    for (int k = (int)threadIdx.x / 32; k < count; k += BLOCK_WARPS) {
        double length = row_times(p, basis + k * p.shape.stride, v);
        if (threadIdx.x % 32 == 0)
            along[k] = length;
    }
    __syncthreads();
    BLOCK_EACH (i, p.shape.m) {
        double rest = (double)v[i];
        for (int k = 0; k < count; k++)
            rest -= along[k] * (double)basis[k * p.shape.stride + i];
        v[i] = (real)rest;
    }
    __syncthreads();
}

/* The smallest Ritz value of `steps` Lanczos steps with full orthogonalisation; basis has room for
 * `steps` rows, v and next for one each. */
static __device__ double smallest_ritz_value(const inverse_problem &p, int steps, const real *b,
                                             real *basis, real *v, real *next)
{
    __shared__ tridiagonal t;
    double scale = matrix_norm1(p.shape.m, b, p.shape.stride);
    int count = 0;
    fill_generic(p, v);
    while (count < steps) {
        double length = vector_norm(p, v);
        if (count > 0 && is_first_thread())
            t.off_diagonal[count - 1] = length;
        if (!(length > p.shape.m * p.call->dtype_roundoff * (count > 0 ? scale : 0)))
            break; /* the subspace is invariant */
        real *row = basis + count * p.shape.stride;
        BLOCK_EACH (i, p.shape.m)
            row[i] = (real)((double)v[i] / length);
        __syncthreads();
        apply(p, b, row, next);
        real *last = v;
        v = next;
        next = last;
        count++;
        orthogonalise(p, count, basis, v, t.along);
        if (is_first_thread())
            t.diagonal[count - 1] = t.along[count - 1];
        __syncthreads();
        orthogonalise(p, count, basis, v, t.along);
    }
    __syncthreads();
    return smallest_eigenvalue(t, count);
}

static __device__ void choose_interval(const inverse_problem &p, const polynomial_run &t,
                                       double norm, double *low, double *high)
{
    int steps = p.shape.m < ATN_INTERVAL_STEPS ? p.shape.m : (int)ATN_INTERVAL_STEPS;
    *high = p.desc->interval_high;
    *low = p.desc->interval_low;
    if (*high == 0)
        *high = norm;
    if (*low == 0)
        *low = larger(sqrt(p.call->dtype_roundoff) * *high,
                      smallest_ritz_value(p, steps, t.b, t.other, t.e, t.power));
    *low = *low < *high ? *low : *high;
    if (is_first_thread()) {
        p.info->interval_low = *low;
        p.info->interval_high = *high;
    }
    __syncthreads();
}

/* alpha, and for Chebyshev d: [low, high] or its squares become alpha [1 - d, 1 + d] / alpha. */
static __device__ real choose_start(const inverse_problem &p, polynomial_run &t)
{
    bool squared = p.desc->start == ATN_START_MATRIX;
    double numerator = p.desc->numerator, norm = matrix_norm1(p.shape.m, t.b, p.shape.stride);
    t.gap = 1;
    if (norm > 0 && p.call->polynomial.chebyshev) {
        double low, high;
        choose_interval(p, t, norm, &low, &high);
        double ratio = low / high;
        ratio *= squared ? ratio : 1;
        numerator = 2 / (1 + ratio);
        norm = high;
        t.gap = numerator * ratio;
    }
    double alpha = norm > 0 ? numerator / norm : 0; /* A = 0: X = 0 is its pseudo-inverse */
    return (real)(p.desc->alpha > 0 ? p.desc->alpha : squared && norm > 0 ? alpha / norm : alpha);
}

static __device__ void fill_start(const inverse_problem &p, const polynomial_run &t, real alpha)
{
    bool identity = p.desc->start == ATN_START_IDENTITY;
    MATRIX_ENTRIES (i, j, p.shape)
        entry(p.shape, t.x, i, j) = storage_round(
            p.desc->storage, alpha * (identity ? (real)(i == j) : entry(p.shape, t.b, i, j)));
    __syncthreads();
}

/* ---- Steps ---- */

/* Whether X is still alpha I, which makes products with it scalings. */
static __device__ bool is_scalar(const inverse_problem &p, int k)
{
    return k == 0 && p.desc->start == ATN_START_IDENTITY;
}

/* E = I - B X. Returns |E|_F^2. */
static __device__ double find_error(const inverse_problem &p, const polynomial_run &t, int k)
{
    bool scalar = is_scalar(p, k);
    if (!scalar)
        polynomial_product(p, t.b, t.x, false, t.e);
    MATRIX_ENTRIES (i, j, p.shape) {
        real product = scalar ? storage_round(p.desc->storage, t.x[0] * entry(p.shape, t.b, i, j))
                              : entry(p.shape, t.e, i, j);
        entry(p.shape, t.e, i, j) = (real)(i == j) - product;
    }
    __syncthreads();
    double norm = matrix_frobenius(p.shape, t.e);
    return norm * norm;
}

/* X_{k+1} = X_k Q(E_k) into next, exactly symmetric. Returns |X_{k+1} - X_k|_F / |X_{k+1}|_F, and
 * whether next may hold numbers that are not finite. */
static __device__ double polynomial_step(const inverse_problem &p, polynomial_run &t, int k,
                                         bool *suspect)
{
    bool scalar = is_scalar(p, k);
    double change = 0, size = 0;
    find_polynomial(p, t);
    if (!scalar)
        polynomial_product(p, t.x, t.q, false, t.next);
    t.products += p.call->polynomial.products - (scalar ? 2 : 0);
    MATRIX_ENTRIES (i, j, p.shape) {
        if (j > i)
            continue;
        real below = scalar ? t.x[0] * entry(p.shape, t.q, i, j) : entry(p.shape, t.next, i, j);
        real above = scalar ? t.x[0] * entry(p.shape, t.q, j, i) : entry(p.shape, t.next, j, i);
        real stepped = storage_round(p.desc->storage, (below + above) / 2);
        double moved = (double)stepped - (double)entry(p.shape, t.x, i, j);
        double both = i == j ? 1 : 2; /* entries of that size */
        change += both * (moved * moved);
        size += both * ((double)stepped * (double)stepped);
        entry(p.shape, t.next, i, j) = entry(p.shape, t.next, j, i) = stepped;
    }
    block_sum_pair(&change, &size);
    *suspect = !(size < HUGE_VAL);
    return relative_update(change, size);
}

/* B v, over a power of 2 that keeps squares in the range of f64. */
static __device__ void fill_probe(const inverse_problem &p, const polynomial_run &t)
{
    int exponent;
    fill_generic(p, t.e);
    apply(p, t.b, t.e, t.probe);
    frexp(vector_norm(p, t.probe), &exponent);
    __syncthreads();
    BLOCK_EACH (i, p.shape.m)
        t.probe[i] = (real)ldexp((double)t.probe[i], -exponent);
    __syncthreads();
}

/* Keeps X if |E B v| is the smallest so far, for the guard to return. */
static __device__ void keep_best(const inverse_problem &p, polynomial_run &t, int k)
{
    double squared = 0;
    for (int i = (int)threadIdx.x / 32; i < p.shape.m; i += BLOCK_WARPS) {
        double sum = row_times(p, t.e + i * p.shape.stride, t.probe);
        squared += threadIdx.x % 32 == 0 ? sum * sum : 0;
    }
    squared = block_sum(squared);
    if (k == 0 || squared < t.best_residual) {
        t.best_residual = squared;
        t.best_step = k;
        matrix_copy(p.shape, t.x, t.best);
    }
}

static __device__ void polynomial_accept(const inverse_problem &p, polynomial_run &t, int k,
                                         double update)
{
    record(p, t.x);
    keep_best(p, t, k);
    t.returned = k;
    if (k > 0)
        record_update(p, k, update);
}

static __device__ void return_to_best(const inverse_problem &p, polynomial_run &t)
{
    t.stop = ATN_STOP_DIVERGED;
    t.returned = t.best_step;
    matrix_copy(p.shape, t.best, t.x);
    find_error(p, t, t.best_step);
}

/* The guard's bound of |E_k|_F^2, k > 0, where |E_{k-1}|_F^2 was `before`. */
static __device__ double error_bound(const inverse_problem &p, double before, double gap)
{
    double slack = 1.01, half = 1 - gap;
    return larger(1.0, slack * (before + (double)p.shape.m * half * half));
}

/* Runs the steps; leaves in e the E of the final X. X_k is accepted once its E is known, which the
 * guard checks (attnum/inverse.h). */
static __device__ void polynomial_iterate(const inverse_problem &p, polynomial_run &t)
{
    double update = 0, before = 0;
    bool suspect;
    for (int k = 0;; k++) {
        double error = find_error(p, t, k);
        if (k > 0 && !(error <= error_bound(p, before, t.gap))) {
            return_to_best(p, t);
            return;
        }
        polynomial_accept(p, t, k, update);
        if (k == p.desc->iterations)
            return;
        before = error;
        update = polynomial_step(p, t, k, &suspect);
        if (suspect && !matrix_finite(p.shape, t.next)) {
            t.stop = ATN_STOP_NONFINITE;
            find_error(p, t, k);
            return;
        }
        real *x = t.x;
        t.x = t.next;
        t.next = x;
        t.gap = p.call->polynomial.chebyshev ? core_next_gap(p.call->polynomial.order, t.gap) : 1;
    }
}

/* |B X B - B|_F / |B|_F = |E B|_F / |B|_F; in a narrow type E comes from a rounded B X, and the
 * residual of X is computed afresh. */
static __device__ double polynomial_residual(const inverse_problem &p, const polynomial_run &t)
{
    bool rounded = p.desc->storage != ATN_STORAGE_NATIVE || p.call->result != ATN_STORAGE_NATIVE ||
                   p.shape.tf32;
    if (rounded)
        return matrix_penrose(p.shape, t.b, t.x, t.e, t.q);
    double norm = matrix_frobenius(p.shape, t.b);
    matrix_multiply(p.shape, t.e, t.b, false, t.q);
    return norm > 0 ? matrix_frobenius(p.shape, t.q) / norm : 0;
}

static __device__ void polynomial_report(const inverse_problem &p, const polynomial_run &t)
{
    double residual = polynomial_residual(p, t);
    if (is_first_thread()) {
        p.info->residual = residual;
        p.info->stop = t.stop;
        p.info->returned = t.returned;
        p.info->products = t.products;
    }
    __syncthreads();
}

/* Computes B, X_0 and d. Returns whether X_0 is finite: alpha may exceed the range of the type. */
static __device__ bool polynomial_start(const inverse_problem &p, polynomial_run &t, real *b)
{
    load_shifted(p, b);
    real alpha = choose_start(p, t);
    if (is_first_thread())
        p.info->alpha = (double)alpha;
    fill_start(p, t, alpha);
    return matrix_finite(p.shape, t.x);
}

static __device__ atn_status polynomial(const inverse_problem &p, real **x)
{
    real *b = work_matrix(p, 0);
    polynomial_run t = {b,
                        work_matrix(p, 1),
                        work_matrix(p, 2),
                        work_matrix(p, 3),
                        work_matrix(p, 4),
                        work_matrix(p, 5),
                        work_matrix(p, 6),
                        work_matrix(p, 7),
                        work_matrix(p, POLYNOMIAL_MATRICES),
                        0,
                        0,
                        0,
                        1,
                        ATN_STOP_ITERATIONS,
                        0};
    if (!polynomial_start(p, t, b))
        return without_start(p, ATN_STOP_NONFINITE, x);
    fill_probe(p, t);
    polynomial_iterate(p, t);
    store_result(p, t.x);
    polynomial_report(p, t);
    *x = t.x;
    return t.stop == ATN_STOP_NONFINITE ? ATN_NOT_CONVERGED : ATN_OK;
}

#endif
