/* SPDX-License-Identifier: BSD-3-Clause */
/* Nystromformer's Z, its approximation of the pseudo-inverse of its m x m factor A, and its
 * derivative: the order-3 iteration (Xiong et al. 2021; Razavi et al. 2014), or by singular values.
 * As inverse/nystrom/cpu.c, under the rules of cuda/block.cuh; all matrices are dense. */
#ifndef INVERSE_NYSTROM_CUDA_CUH
#define INVERSE_NYSTROM_CUDA_CUH

#include "operators/norms/cuda.cuh"

/* What a head stores about the start Z_0 = A^T / norm. */
typedef struct {
    double own_norm;   /* |A|_1 */
    double norm;       /* its own or the batch's largest */
    double slope;      /* the derivative by norm */
    double is_largest; /* 1: norm is this head's own */
} nystrom_numbers;

enum { NYSTROM_NUMBER_REALS = sizeof(nystrom_numbers) / sizeof(real) };

/* The iteration needs Z_0 .. Z_T and seven more matrices; the pseudo-inverse needs Z, two scratch
 * matrices, U^T, W^T, and the singular values. */
static __host__ __device__ int64_t nystrom_inverse_reals(const atn_nystromformer_options &options,
                                                         int64_t m)
{
    if (options.inverse == ATN_NYSTROM_PINV)
        return 5 * m * m + m;
    return ((int64_t)options.iterations + 8) * m * m;
}

static __device__ void multiply(bool tf32, int64_t m, const real *a, const real *b, real *c)
{
    block_gemm(tf32, AS_IT_IS, AS_IT_IS, m, m, m, a, m, b, m, false, c, m);
}

/* ---- The iteration ---- */

/* With Y = A Z:   Z' = Z outer / 4,   outer = 13 I - Y inner,   inner = 15 I - Y (7 I - Y). */
typedef struct {
    bool tf32;
    int64_t m;
    const real *a;
    real *iterates; /* Z_0, Z_1, ... */
    real *y, *inner, *outer;
    real *slope, *slope_next, *grad_y, *other; /* backward */
} nystrom_steps;

static __device__ nystrom_steps nystrom_steps_of(int64_t iterations, bool tf32, int64_t m,
                                                 const real *a, real *work)
{
    int64_t size = m * m;
    real *rest = work + (iterations + 1) * size;
    nystrom_steps s = {tf32,
                       m,
                       a,
                       work,
                       rest,
                       rest + size,
                       rest + 2 * size,
                       rest + 3 * size,
                       rest + 4 * size,
                       rest + 5 * size,
                       rest + 6 * size};
    return s;
}

/* x = diagonal I - x */
static __device__ void subtract_from(int64_t m, real diagonal, real *x)
{
    BLOCK_EACH (e, m * m)
        x[e] = (e / m == e % m ? diagonal : 0) - x[e];
    __syncthreads();
}

static __device__ void find_brackets(const nystrom_steps &s, const real *z)
{
    multiply(s.tf32, s.m, s.a, z, s.y);
    BLOCK_EACH (e, s.m * s.m)
        s.outer[e] = s.y[e];
    __syncthreads();
    subtract_from(s.m, 7, s.outer);
    multiply(s.tf32, s.m, s.y, s.outer, s.inner);
    subtract_from(s.m, 15, s.inner);
    multiply(s.tf32, s.m, s.y, s.inner, s.outer);
    subtract_from(s.m, 13, s.outer);
}

static __device__ void divide_all(int64_t count, real by, real *x)
{
    BLOCK_EACH (e, count)
        x[e] /= by;
    __syncthreads();
}

static __device__ void nystrom_iterate(const nystrom_steps &s, int64_t iterations, double norm)
{
    int64_t m = s.m, size = m * m;
    real *z = s.iterates;
    BLOCK_EACH (e, size)
        z[e % m * m + e / m] = s.a[e] / (real)norm;
    __syncthreads();
    for (int64_t t = 0; t < iterations; t++, z += size) {
        find_brackets(s, z);
        multiply(s.tf32, m, z, s.outer, z + size);
        divide_all(size, 4, z + size);
    }
}

/* From grad (destroyed), the derivative by a step's Z': that by its Z into `into`, that by A added
 * to grad_a. slope is minus the derivative by outer, slope_next that by inner. */
static __device__ void step_backward(const nystrom_steps &s, const real *z, real *grad, real *into,
                                     real *grad_a)
{
    int64_t m = s.m;
    bool t = s.tf32;
    find_brackets(s, z);
    divide_all(m * m, 4, grad);
    block_gemm(t, AS_IT_IS, TRANSPOSED, m, m, m, grad, m, s.outer, m, false, into, m);
    block_gemm(t, TRANSPOSED, AS_IT_IS, m, m, m, z, m, grad, m, false, s.slope, m);
    subtract_from(m, 0, s.slope);
    block_gemm(t, AS_IT_IS, TRANSPOSED, m, m, m, s.slope, m, s.inner, m, false, s.grad_y, m);
    block_gemm(t, TRANSPOSED, AS_IT_IS, m, m, m, s.y, m, s.slope, m, false, s.slope_next, m);
    block_gemm(t, AS_IT_IS, TRANSPOSED, m, m, m, s.slope_next, m, s.y, m, true, s.grad_y, m);
    block_gemm(t, TRANSPOSED, AS_IT_IS, m, m, m, s.y, m, s.slope_next, m, true, s.grad_y, m);
    BLOCK_EACH (e, m * m)
        s.grad_y[e] -= 7 * s.slope_next[e];
    __syncthreads();
    block_gemm(t, AS_IT_IS, TRANSPOSED, m, m, m, s.grad_y, m, z, m, true, grad_a, m);
    block_gemm(t, TRANSPOSED, AS_IT_IS, m, m, m, s.a, m, s.grad_y, m, true, into, m);
}

static __device__ void nystrom_iterate_backward(const nystrom_steps &s, int64_t iterations,
                                                nystrom_numbers *numbers, real *grad_z,
                                                real *grad_a)
{
    int64_t m = s.m;
    real *grad = grad_z, *other = s.other;
    for (int64_t t = iterations - 1; t >= 0; t--) {
        step_backward(s, s.iterates + t * m * m, grad, other, grad_a);
        real *done = grad;
        grad = other;
        other = done;
    }
    double sum = 0, norm = numbers->norm; /* Z_0 = A^T / norm */
    BLOCK_EACH (e, m * m) {
        real by = grad[e % m * m + e / m];
        grad_a[e] += by / (real)norm;
        sum += (double)by * (double)s.a[e];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        numbers->slope = -(double)(real)(sum / (norm * norm));
    __syncthreads();
}

/* ---- The pseudo-inverse:   A = U S W^T,   Z = W S+ U^T ---- */

typedef struct {
    real *z, *scratch, *middle;
    real *left, *right; /* U^T and W^T */
    real *values;       /* S, largest first */
} nystrom_singular;

static __device__ nystrom_singular nystrom_singular_of(int64_t m, real *work)
{
    int64_t size = m * m;
    nystrom_singular s = {
        work, work + size, work + 2 * size, work + 3 * size, work + 4 * size, work + 5 * size};
    return s;
}

/* A's rows sum to 1, so |A| is about 1 or more: singular values below this are zeros perturbed by
 * rounding. They would be rotated forever and only get smaller. */
static __device__ __forceinline__ double vanishing_value(void)
{
    return sizeof(real) == sizeof(double) ? 1e-100 : 1e-30;
}

/* A plane rotation, by one warp, that makes rows p and q of g orthogonal; it is applied to the rows
 * of w, too. Returns whether a rotation was needed. */
static __device__ bool rotate_rows(int64_t m, real *g, real *w, int64_t p, int64_t q)
{
    int lane = threadIdx.x % 32;
    double of_p = 0, of_q = 0, both = 0, u = sizeof(real) == sizeof(double) ? 0x1p-53 : 0x1p-24;
    for (int64_t i = lane; i < m; i += 32) {
        double x = (double)g[p * m + i], y = (double)g[q * m + i];
        of_p += x * x;
        of_q += y * y;
        both += x * y;
    }
    of_p = warp_sum(of_p);
    of_q = warp_sum(of_q);
    both = warp_sum(both);
    double smaller = of_p < of_q ? of_p : of_q;
    if (smaller < vanishing_value() * vanishing_value())
        return false;
    /* no more than rounding */
    if (!(fabs(both) > (double)(m + 4) * u * sqrt(of_p) * sqrt(of_q)))
        return both != both; /* NaN would never converge: the caller's limit ends it */
    double zeta = (of_q - of_p) / (2 * both);
    double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    double c = 1 / sqrt(1 + t * t), s = c * t;
    for (int64_t i = lane; i < m; i += 32) {
        double x = (double)g[p * m + i], y = (double)g[q * m + i];
        g[p * m + i] = (real)(c * x - s * y);
        g[q * m + i] = (real)(s * x + c * y);
        x = (double)w[p * m + i];
        y = (double)w[q * m + i];
        w[p * m + i] = (real)(c * x - s * y);
        w[q * m + i] = (real)(s * x + c * y);
    }
    return true;
}

/* One-sided Jacobi (Hestenes 1958): rotates the rows of g, A^T at first, until they are orthogonal;
 * w, I at first, gets the same rotations, so that w A^T = g; in the end the rows of g are s_i
 * u_i^T, those of w are w_i^T. Rows are paired as in a tournament, so that all pairs of a round can
 * be rotated at once. */
static __device__ void orthogonalise(int64_t m, real *g, real *w)
{
    enum { MOST_SWEEPS = 60 };
    int64_t players = m + m % 2, others = players - 1;
    int rotated = 1;
    for (int sweep = 0; rotated && sweep < MOST_SWEEPS; sweep++) {
        rotated = 0;
        for (int64_t round = 0; round < others; round++) {
            for (int64_t pair = threadIdx.x / 32; pair < players / 2; pair += BLOCK_WARPS) {
                int64_t p = (round + pair) % others;
                int64_t q = pair == 0 ? others : (round + others - pair) % others;
                if (p < m && q < m)
                    rotated |= rotate_rows(m, g, w, p, q);
            }
            __syncthreads();
        }
        rotated = __syncthreads_or(rotated);
    }
    if (rotated) /* no convergence, which only NaN can cause */
        block_fill(m * m, (real)NAN, g);
}

/* Replaces row i of u, which is 0, by a unit vector orthogonal to the rows before it: the
 * normalised projection of the first coordinate vector whose projection is not too small. */
static __device__ void complete_row(int64_t m, real *u, int64_t i)
{
    for (int64_t k = 0; k < m; k++) {
        BLOCK_EACH (c, m)
            u[i * m + c] = c == k;
        __syncthreads();
        double left = 0;
        for (int again = 0; again < 2; again++)
            for (int64_t j = 0; j < i; j++) {
                double along = 0;
                BLOCK_EACH (c, m)
                    along += (double)u[i * m + c] * (double)u[j * m + c];
                along = block_sum(along);
                BLOCK_EACH (c, m)
                    u[i * m + c] -= (real)(along * (double)u[j * m + c]);
                __syncthreads();
            }
        BLOCK_EACH (c, m)
            left += (double)u[i * m + c] * (double)u[i * m + c];
        left = sqrt(block_sum(left));
        if (left * left * (double)m < 0.5) /* the largest of the m is at least 1/m */
            continue;
        BLOCK_EACH (c, m)
            u[i * m + c] = (real)((double)u[i * m + c] / left);
        __syncthreads();
        return;
    }
}

/* Sorts the rows of g and w by descending singular value into left, right and values. */
static __device__ void sort_values(int64_t m, const real *g, const real *w,
                                   const nystrom_singular &s, real *norms)
{
    for (int64_t i = threadIdx.x / 32; i < m; i += BLOCK_WARPS) {
        double sum = 0;
        for (int64_t c = threadIdx.x % 32; c < m; c += 32)
            sum += (double)g[i * m + c] * (double)g[i * m + c];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0)
            norms[i] = sqrt(sum) < vanishing_value() ? 0 : (real)sqrt(sum);
    }
    __syncthreads();
    for (int64_t i = threadIdx.x / 32; i < m; i += BLOCK_WARPS) {
        int64_t place = 0;
        for (int64_t j = 0; j < m; j++)
            place += norms[j] > norms[i] || (norms[j] == norms[i] && j < i);
        for (int64_t c = threadIdx.x % 32; c < m; c += 32) {
            real size = norms[i];
            s.left[place * m + c] = size > 0 ? (real)((double)g[i * m + c] / (double)size) : size;
            s.right[place * m + c] = w[i * m + c];
        }
        if (threadIdx.x % 32 == 0)
            s.values[place] = norms[i];
    }
    __syncthreads();
    for (int64_t i = 0; i < m; i++)
        if (s.values[i] == 0)
            complete_row(m, s.left, i);
}

/* 1 / s_i, or 0 where s_i is dropped. */
static __device__ real inverted_value(const atn_nystromformer_options &options,
                                      const nystrom_singular &s, int64_t m, int64_t i)
{
    double rcond = options.rcond;
    if (rcond < 0)
        rcond = (double)m * (sizeof(real) == sizeof(double) ? 0x1p-53 : 0x1p-24);
    if (s.values[i] != s.values[i])
        return s.values[i];
    return (double)s.values[i] > rcond * (double)s.values[0] ? 1 / s.values[i] : 0;
}

static __device__ void nystrom_decompose(const atn_nystromformer_options &options, bool tf32,
                                         int64_t m, const real *a, const nystrom_singular &s)
{
    real *g = s.scratch, *w = s.middle;
    BLOCK_EACH (e, m * m) {
        g[e] = a[e % m * m + e / m];
        w[e] = e / m == e % m;
    }
    __syncthreads();
    orthogonalise(m, g, w);
    sort_values(m, g, w, s, s.z);
    BLOCK_EACH (e, m * m)
        s.scratch[e] = inverted_value(options, s, m, e / m) * s.left[e];
    __syncthreads();
    block_gemm(tf32, TRANSPOSED, AS_IT_IS, m, m, m, s.right, m, s.scratch, m, false, s.z, m);
}

/* With H = U^T G^T W the derivative is U E W^T. Pairs of kept values: E_ij = -H_ji / (s_i s_j); i
 * kept, j dropped: E_ij = (s_i H_ij + s_j H_ji) / (s_i (s_i^2 - s_j^2)), E_ji the same with H
 * transposed; both dropped: 0. For s_j = 0 this is the derivative at constant rank with both its
 * projector terms (Golub and Pereyra 1973, Eq. 4.12); for s_j > 0, that of the truncated inverse.
 */
static __device__ void middle_pair(const atn_nystromformer_options &options,
                                   const nystrom_singular &s, int64_t m, int64_t i, int64_t j)
{
    real inverse_i = inverted_value(options, s, m, i), inverse_j = inverted_value(options, s, m, j);
    real *at = &s.middle[i * m + j], *mirrored = &s.middle[j * m + i];
    real h = *at, h_mirrored = *mirrored, direct = 0, crossed = -inverse_i * inverse_j;
    if (inverse_i != 0 && inverse_j == 0) { /* s_i >= s_j for i <= j */
        real ratio = s.values[j] / s.values[i];
        direct = inverse_i * inverse_i / (1 - ratio * ratio);
        crossed = ratio * direct;
    }
    *at = direct * h + crossed * h_mirrored;
    *mirrored = direct * h_mirrored + crossed * h;
}

static __device__ void nystrom_decompose_backward(const atn_nystromformer_options &options,
                                                  bool tf32, int64_t m, const nystrom_singular &s,
                                                  const real *grad_z, real *grad_a)
{
    block_gemm(tf32, TRANSPOSED, TRANSPOSED, m, m, m, grad_z, m, s.right, m, false, s.scratch, m);
    multiply(tf32, m, s.left, s.scratch, s.middle);
    BLOCK_EACH (e, m * m)
        if (e / m <= e % m)
            middle_pair(options, s, m, e / m, e % m);
    __syncthreads();
    block_gemm(tf32, TRANSPOSED, AS_IT_IS, m, m, m, s.left, m, s.middle, m, false, s.scratch, m);
    block_gemm(tf32, AS_IT_IS, AS_IT_IS, m, m, m, s.scratch, m, s.right, m, true, grad_a, m);
}

/* ---- Both methods ---- */

/* Z is left within work. */
static __device__ void nystrom_inverse(const atn_attention_desc &desc, bool tf32, int64_t m,
                                       const real *a, double norm, real *work)
{
    const atn_nystromformer_options &options = desc.nystromformer;
    if (options.inverse == ATN_NYSTROM_PINV)
        nystrom_decompose(options, tf32, m, a, nystrom_singular_of(m, work));
    else
        nystrom_iterate(nystrom_steps_of(options.iterations, tf32, m, a, work), options.iterations,
                        norm);
}

static __device__ const real *nystrom_z(const atn_attention_desc &desc, int64_t m, real *work)
{
    const atn_nystromformer_options &options = desc.nystromformer;
    return options.inverse == ATN_NYSTROM_PINV ? work : work + options.iterations * m * m;
}

/* From the derivative by Z (destroyed): adds that by A to grad_a and leaves that by norm in
 * numbers. work is as nystrom_inverse left it. */
static __device__ void nystrom_inverse_backward(const atn_attention_desc &desc, bool tf32,
                                                int64_t m, const real *a, nystrom_numbers *numbers,
                                                real *work, real *grad_z, real *grad_a)
{
    const atn_nystromformer_options &options = desc.nystromformer;
    if (options.inverse == ATN_NYSTROM_PINV)
        nystrom_decompose_backward(options, tf32, m, nystrom_singular_of(m, work), grad_z, grad_a);
    else
        nystrom_iterate_backward(nystrom_steps_of(options.iterations, tf32, m, a, work),
                                 options.iterations, numbers, grad_z, grad_a);
}

#endif
