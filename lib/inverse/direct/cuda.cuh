/* SPDX-License-Identifier: BSD-3-Clause */
/* The exact inverses of one matrix: eigendecomposition by Jacobi's rotations, Cholesky, pivoted
 * Cholesky.
 *
 * One block for each matrix whatever m is, also where iterations are batched
 * (inverse/cuda_batched.cuh). Neither cuBLAS nor cuSOLVER has a batched rank-revealing Cholesky. In
 * Cholesky the jitter grows until a factor exists, for each matrix separately; the host, which
 * reads nothing back, would have to enqueue the largest number of attempts for all. cuSOLVER's
 * batched Jacobi method sorts and stops by other rules and may report that it did not converge,
 * which ours never does. Only the operations after Cholesky's factor, trsm and a product, could be
 * left to a library. */
#ifndef INVERSE_DIRECT_CUDA_CUH
#define INVERSE_DIRECT_CUDA_CUH

#include "inverse/cuda.cuh"

enum { DIRECT_MATRICES = 4 };

/* Elements of memory for the rotations of a round, of which there are at most (m + 1) / 2. */
static inline __host__ __device__ int64_t rotation_reals(int64_t m)
{
    return 4 * ((m + 1) / 2);
}

static __device__ void direct_report(const inverse_problem &p, double residual, const real *x)
{
    record(p, x);
    if (is_first_thread()) {
        p.info->stop = ATN_STOP_DIRECT;
        p.info->residual = residual;
    }
    __syncthreads();
}

/* The shape of exact arithmetic: only iterations round factors. */
static __device__ matrix_shape exact_shape(const inverse_problem &p)
{
    matrix_shape shape = p.shape;
    shape.tf32 = false;
    return shape;
}

/* ---- Eigendecomposition ----
 *
 * Jacobi's method by rounds of disjoint rotations, every pair once a sweep (Brent and Luk 1985). */

/* The rotations of a round: cosines, sines, and the new values of the two diagonal entries. */
typedef struct {
    real *cosine, *sine, *first, *second;
} rotations;

/* The n-th pair of a round of a tournament of `players`, an even number: the last stays, the others
 * move on. */
static __device__ __forceinline__ void pair_of(int players, int round, int n, int *p, int *q)
{
    int circle = players - 1;
    int one = n == 0 ? circle : (round + n) % circle;
    int other = n == 0 ? round : (round + circle - n) % circle;
    *p = one < other ? one : other;
    *q = one < other ? other : one;
}

/* The rotation that makes entry (p, q) of W vanish, if it is above the floor. */
static __device__ bool choose_rotation(const matrix_shape &shape, const real *w, int p, int q,
                                       double floor, int n, const rotations &r)
{
    double off_diagonal = q < shape.m ? (double)entry(shape, w, p, q) : 0;
    r.cosine[n] = 1;
    r.sine[n] = 0;
    if (!(fabs(off_diagonal) > floor))
        return false;
    double first = (double)entry(shape, w, p, p), second = (double)entry(shape, w, q, q);
    double theta = (second - first) / (2 * off_diagonal);
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(1 + theta * theta));
    double c = 1 / sqrt(1 + t * t);
    r.cosine[n] = (real)c;
    r.sine[n] = (real)(t * c);
    r.first[n] = (real)(first - t * off_diagonal);
    r.second[n] = (real)(second + t * off_diagonal);
    return true;
}

static __device__ __forceinline__ void rotate(real c, real s, real &x, real &y)
{
    real rotated = c * x - s * y;
    y = s * x + c * y;
    x = rotated;
}

/* Rows of W and V, then columns of W. A rotation with sine 0 is none. */
static __device__ void apply_rotations(const matrix_shape &shape, int players, int round,
                                       const rotations &r, real *w, real *v)
{
    int p, q;
    for (int n = (int)threadIdx.x / 32; n < players / 2; n += BLOCK_WARPS) {
        real c = r.cosine[n], s = r.sine[n];
        pair_of(players, round, n, &p, &q);
        for (int j = (int)threadIdx.x % 32; j < shape.m && s != 0; j += 32) {
            rotate(c, s, entry(shape, w, p, j), entry(shape, w, q, j));
            rotate(c, s, entry(shape, v, p, j), entry(shape, v, q, j));
        }
    }
    __syncthreads();
    for (int i = (int)threadIdx.x / 32; i < shape.m; i += BLOCK_WARPS)
        for (int n = (int)threadIdx.x % 32; n < players / 2; n += 32) {
            if (r.sine[n] == 0)
                continue;
            pair_of(players, round, n, &p, &q);
            rotate(r.cosine[n], r.sine[n], entry(shape, w, i, p), entry(shape, w, i, q));
            if (i == p || i == q) {
                entry(shape, w, i, p) = i == p ? r.first[n] : 0;
                entry(shape, w, i, q) = i == q ? r.second[n] : 0;
            }
        }
    __syncthreads();
}

/* Makes W diagonal, with the eigenvalues as its entries; the rows of V become the eigenvectors. */
static __device__ void diagonalise(const matrix_shape &shape, const rotations &r, real *w, real *v)
{
    enum { MOST_SWEEPS = 40 };
    int players = shape.m + shape.m % 2, rotated = 1;
    double u = sizeof(real) == sizeof(double) ? 0x1p-53 : 0x1p-24;
    double floor = u * matrix_frobenius(shape, w) / shape.m;
    for (int sweep = 0; sweep < MOST_SWEEPS && rotated; sweep++) {
        rotated = 0;
        for (int round = 0; round < players - 1; round++) {
            bool any = false;
            BLOCK_EACH (n, players / 2) {
                int p, q;
                pair_of(players, round, (int)n, &p, &q);
                any |= choose_rotation(shape, w, p, q, floor, (int)n, r);
            }
            if (!__syncthreads_or(any))
                continue;
            rotated = 1;
            apply_rotations(shape, players, round, r, w, v);
        }
    }
}

/* scaled = rows of V divided by their eigenvalues above the cut; returns their number. */
static __device__ int scale_vectors(const inverse_problem &p, const real *w, const real *v,
                                    real *scaled)
{
    real largest = 0;
    int kept = 0;
    BLOCK_EACH (i, p.shape.m)
        largest = larger(real_abs(entry(p.shape, w, i, i)), largest);
    real cut = (real)p.call->cut * block_max(largest);
    BLOCK_EACH (i, p.shape.m)
        kept += real_abs(entry(p.shape, w, i, i)) > cut;
    MATRIX_ENTRIES (i, j, p.shape) {
        real lambda = entry(p.shape, w, i, i);
        entry(p.shape, scaled, i, j) =
            real_abs(lambda) > cut ? entry(p.shape, v, i, j) / lambda : 0;
    }
    __syncthreads();
    return block_sum(kept);
}

static __device__ atn_status eig(const inverse_problem &p, real **x)
{
    matrix_shape shape = exact_shape(p);
    real *w = work_matrix(p, 0), *v = work_matrix(p, 1), *scaled = work_matrix(p, 2);
    real *rest = work_matrix(p, DIRECT_MATRICES);
    int64_t pairs = rotation_reals(shape.m) / 4;
    rotations r = {rest, rest + pairs, rest + 2 * pairs, rest + 3 * pairs};
    matrix_load(shape, p.a, w);
    MATRIX_ENTRIES (i, j, shape)
        entry(shape, v, i, j) = (real)(i == j);
    __syncthreads();
    diagonalise(shape, r, w, v);
    int rank = scale_vectors(p, w, v, scaled);
    if (is_first_thread())
        p.info->rank = rank;
    *x = work_matrix(p, 3);
    matrix_transpose(shape, v, w);
    matrix_multiply(shape, w, scaled, false, *x);
    matrix_symmetrise(shape, *x);
    store_result(p, *x);
    matrix_load(shape, p.a, w);
    direct_report(p, matrix_penrose(shape, w, *x, v, scaled), *x);
    return ATN_OK;
}

/* ---- From a factor L (lower, r x r) to (L L^T)^-1 ---- */

/* inverse = L^-1, one column per thread; the other entries are 0 already. */
static __device__ void invert_factor(const matrix_shape &shape, int r, const real *factor,
                                     real *inverse)
{
    BLOCK_EACH (j, r) {
        entry(shape, inverse, j, j) = 1 / entry(shape, factor, j, j);
        for (int64_t i = j + 1; i < r; i++) {
            real sum = 0;
            for (int64_t k = j; k < i; k++)
                sum += entry(shape, factor, i, k) * entry(shape, inverse, k, j);
            entry(shape, inverse, i, j) = -sum / entry(shape, factor, i, i);
        }
    }
    __syncthreads();
}

/* out = L^-T L^-1; the same products in the same order on both sides of the diagonal. */
static __device__ void inverse_of_factor(const matrix_shape &shape, int r, const real *factor,
                                         real *inverse, real *transposed, real *out)
{
    matrix_fill(shape, 0, inverse);
    invert_factor(shape, r, factor, inverse);
    matrix_transpose(shape, inverse, transposed);
    matrix_multiply(shape, transposed, inverse, false, out);
}

/* ---- Cholesky ----
 *
 * A step subtracts c c^T / pivot, c the pivot's column, and leaves c unscaled: in the end the
 * columns are divided by the roots of their pivots to give L. So a step needs only one barrier. */

/* One attempt: the lower triangle of w becomes the Cholesky factor of A + jitter I. */
static __device__ bool factorise(const inverse_problem &p, real jitter, real *w)
{
    const matrix_shape &shape = p.shape;
    matrix_load(shape, p.a, w);
    matrix_add_diagonal(shape, jitter, w);
    for (int k = 0; k < shape.m; k++) {
        real pivot = entry(shape, w, k, k);
        if (!(pivot > 0))
            return false;
        for (int j = k + 1 + (int)threadIdx.x % 32; j < shape.m; j += 32) {
            real share = entry(shape, w, j, k) / pivot;
            for (int i = k + 1 + (int)threadIdx.x / 32; i < shape.m; i += BLOCK_WARPS)
                if (j <= i)
                    entry(shape, w, i, j) -= entry(shape, w, i, k) * share;
        }
        __syncthreads();
    }
    MATRIX_ENTRIES (i, j, shape)
        if (j < i)
            entry(shape, w, i, j) /= real_sqrt(entry(shape, w, j, j));
    __syncthreads();
    BLOCK_EACH (k, shape.m)
        entry(shape, w, k, k) = real_sqrt(entry(shape, w, k, k));
    __syncthreads();
    return true;
}

/* The residual is that of A + jitter I if the caller gave the jitter, and of A otherwise. */
static __device__ atn_status cholesky(const inverse_problem &p, real **x)
{
    matrix_shape shape = exact_shape(p);
    real *w = work_matrix(p, 0), *inverse = work_matrix(p, 1), *transposed = work_matrix(p, 2);
    double norm = matrix_norm1(shape.m, p.a, shape.m);
    double u = sizeof(real) == sizeof(double) ? 0x1p-53 : 0x1p-24;
    bool given = p.desc->jitter >= 0;
    double jitter = (given ? p.desc->jitter : u * sqrt((double)shape.m)) * norm;
    bool done = factorise(p, (real)jitter, w);
    while (!done && !given && jitter > 0 && jitter < norm) {
        __syncthreads();
        jitter *= 10;
        done = factorise(p, (real)jitter, w);
    }
    __syncthreads();
    if (is_first_thread())
        p.info->jitter = jitter;
    *x = work_matrix(p, 3);
    if (!done) {
        direct_report(p, 1, *x);
        return ATN_SINGULAR;
    }
    inverse_of_factor(shape, shape.m, w, inverse, transposed, *x);
    store_result(p, *x);
    matrix_load(shape, p.a, w);
    if (given)
        matrix_add_diagonal(shape, (real)jitter, w);
    direct_report(p, matrix_penrose(shape, w, *x, inverse, transposed), *x);
    return ATN_OK;
}

/* ---- Pivoted Cholesky ----
 *
 * As above, but rows and columns are not swapped. There are two copies of the diagonal, which steps
 * read and write alternately, so that a fast warp does not overwrite what a slow one still reads.
 * They have -infinity for rows that were pivots; the step of each pivot is recorded. */

typedef struct {
    real *diagonals; /* two of m */
    int *marks;      /* per row: the step that it was the pivot of; m: none */
} pivoting;

/* The diagonal that step k reads; it writes that of step k + 1. */
static __device__ __forceinline__ real *diagonal_of(const pivoting &v, int m, int k)
{
    return v.diagonals + (k % 2 ? m : 0);
}

/* Elements: two diagonals and the marks. */
static inline __host__ __device__ int64_t pivoting_reals(int64_t m)
{
    return 3 * m;
}

/* The row of the largest diagonal entry, the first of equals, among rows that are not pivots yet;
 * *pivot is its value. Every warp computes it. */
static __device__ int find_pivot(const pivoting &v, int m, int k, real *pivot)
{
    const real *diagonal = diagonal_of(v, m, k);
    real best = -REAL_INFINITY;
    int row = m;
    for (int i = (int)threadIdx.x % 32; i < m; i += 32)
        if (diagonal[i] != -REAL_INFINITY && (diagonal[i] > best || row == m)) {
            best = diagonal[i];
            row = i;
        }
    for (int away = 16; away > 0; away /= 2) {
        real value = __shfl_xor_sync(0xffffffffu, best, away);
        int other = __shfl_xor_sync(0xffffffffu, row, away);
        if (other < m && (row == m || value > best || (value == best && other < row))) {
            best = value;
            row = other;
        }
    }
    *pivot = best;
    return row;
}

/* Subtracts the pivot's outer product from the remaining rows and columns. */
static __device__ void eliminate(const matrix_shape &shape, const pivoting &v, int k, int row,
                                 real pivot, real *w)
{
    const real *diagonal = diagonal_of(v, shape.m, k), *column = w + row * shape.stride;
    real *next = diagonal_of(v, shape.m, k + 1);
    BLOCK_EACH (i, shape.m)
        if (i == row || diagonal[i] == -REAL_INFINITY)
            next[i] = -REAL_INFINITY;
    for (int j = (int)threadIdx.x % 32; j < shape.m; j += 32) {
        if (j == row || diagonal[j] == -REAL_INFINITY)
            continue;
        real share = column[j] / pivot;
        for (int i = (int)threadIdx.x / 32; i < shape.m; i += BLOCK_WARPS) {
            if (i == row || diagonal[i] == -REAL_INFINITY)
                continue;
            real left = entry(shape, w, i, j) - column[i] * share;
            entry(shape, w, i, j) = left;
            if (i == j)
                next[i] = left;
        }
    }
}

/* A[pivots, pivots] = L L^T up to the cut. Returns the rank; row pivots[k] of w then holds column k
 * of L times the root of the pivot, in the columns of rows that were not pivots before. */
static __device__ int factorise_pivoted(const matrix_shape &shape, real cut, real *w,
                                        const pivoting &v)
{
    for (int k = 0; k < shape.m; k++) {
        real pivot;
        int row = find_pivot(v, shape.m, k, &pivot);
        if (!(pivot > (k > 0 ? cut : 0)))
            return k;
        eliminate(shape, v, k, row, pivot, w);
        if (is_first_thread())
            v.marks[row] = k;
        __syncthreads();
    }
    return shape.m;
}

/* The pivots in their order, then the other rows in theirs. */
static __device__ void list_pivots(const inverse_problem &p, int rank, const int *marks)
{
    BLOCK_EACH (i, p.shape.m) {
        int place = marks[i];
        if (place >= rank) {
            place = rank;
            for (int64_t before = 0; before < i; before++)
                place += marks[before] >= rank;
        }
        p.pivots[place] = (int)i;
    }
    __syncthreads();
}

/* Copies L to factor, with rows in the order of the pivots; 0 elsewhere. */
static __device__ void gather_factor(const inverse_problem &p, int rank, const real *w,
                                     real *factor)
{
    MATRIX_ENTRIES (i, j, p.shape) {
        real value = 0;
        if (i < rank && j <= i) {
            const real *column = w + p.pivots[j] * p.shape.stride;
            value = column[p.pivots[i]] / real_sqrt(column[p.pivots[j]]);
        }
        entry(p.shape, factor, i, j) = storage_round(p.desc->storage, value);
    }
    __syncthreads();
}

static __device__ atn_status pivoted_cholesky(const inverse_problem &p, real **x)
{
    matrix_shape shape = exact_shape(p);
    real *w = work_matrix(p, 0), *columns = work_matrix(p, 1), *factor = work_matrix(p, 2);
    real *block = work_matrix(p, 3), largest = 0;
    matrix_load(shape, p.a, w);
    real *rest = work_matrix(p, DIRECT_MATRICES);
    pivoting v = {rest, (int *)(rest + 2 * shape.m)};
    BLOCK_EACH (i, shape.m) {
        v.marks[i] = shape.m;
        v.diagonals[i] = entry(shape, w, i, i);
        largest = larger(entry(shape, w, i, i), largest);
    }
    largest = block_max(largest);
    int rank = largest > 0 ? factorise_pivoted(shape, (real)p.call->cut * largest, w, v) : 0;
    __syncthreads();
    list_pivots(p, rank, v.marks);
    if (is_first_thread()) {
        p.info->rank = rank;
        p.info->stop = ATN_STOP_DIRECT;
    }
    gather_factor(p, rank, w, factor);
    *x = factor;
    if (p.call->keep_factor)
        return rank > 0 ? ATN_OK : ATN_SINGULAR;
    inverse_of_factor(shape, rank, factor, w, columns, block);
    matrix_fill(shape, 0, factor);
    MATRIX_ENTRIES (i, j, shape)
        if (i < rank && j < rank)
            entry(shape, factor, p.pivots[i], p.pivots[j]) = entry(shape, block, i, j);
    __syncthreads();
    store_result(p, factor);
    matrix_load(shape, p.a, w);
    direct_report(p, matrix_penrose(shape, w, factor, columns, block), factor);
    return rank > 0 ? ATN_OK : ATN_SINGULAR;
}

#endif
