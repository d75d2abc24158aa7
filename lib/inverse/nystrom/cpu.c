/* SPDX-License-Identifier: BSD-3-Clause */
/* Nystromformer's Z: the order-3 iteration (Xiong et al. 2021; Razavi et al. 2014) or the
 * pseudo-inverse by singular values, and their derivatives. */
#include <string.h>

#include "inverse/nystrom/cpu.h"

static bool by_singular_values(const atn_nystromformer_options *options)
{
    return options->inverse == ATN_NYSTROM_PINV;
}

/* Elements for a double. */
enum { SQUARES = sizeof(double) / sizeof(real) };

int64_t R(nystrom_inverse_work)(const atn_nystromformer_options *options, int64_t m)
{
    if (by_singular_values(options))
        return 5 * m * m + m + SQUARES * (m + 1); /* one more to begin at a multiple of 8 */
    return ((int64_t)options->iterations + 1 + 7) * m * m;
}

static void store_matrix(const nystrom_problem *p, real *x)
{
    R(store)(p->desc->storage, p->m, p->m, x, p->m);
}

/* ---- The iteration ---- */

/* With Y = A Z:   Z' = Z outer / 4,   outer = 13 I - Y inner,   inner = 15 I - Y (7 I - Y). */
typedef struct {
    real *iterates; /* Z_0, Z_1, ... */
    real *y, *inner, *outer;
    real *slope, *slope_next, *grad_y, *other; /* backward */
} steps;

static steps split_steps(const nystrom_problem *p)
{
    int64_t size = p->m * p->m;
    real *rest = p->work + (p->desc->nystromformer.iterations + 1) * size;
    return (steps){p->work,         rest,
                   rest + size,     rest + 2 * size,
                   rest + 3 * size, rest + 4 * size,
                   rest + 5 * size, rest + 6 * size};
}

/* x = diagonal I - x */
static void subtract_from(int64_t m, real diagonal, real *x)
{
    for (int64_t i = 0; i < m * m; i++)
        x[i] = -x[i];
    for (int64_t i = 0; i < m; i++)
        x[i * m + i] += diagonal;
}

static void brackets(const nystrom_problem *p, const steps *s, const real *z)
{
    int64_t m = p->m;
    real_multiply(m, p->a, z, s->y);
    store_matrix(p, s->y);
    memcpy(s->outer, s->y, (size_t)(m * m) * sizeof(real));
    subtract_from(m, 7, s->outer);
    store_matrix(p, s->outer);
    real_multiply(m, s->y, s->outer, s->inner);
    subtract_from(m, 15, s->inner);
    store_matrix(p, s->inner);
    real_multiply(m, s->y, s->inner, s->outer);
    subtract_from(m, 13, s->outer);
    store_matrix(p, s->outer);
}

static const real *iterate(const nystrom_problem *p)
{
    int64_t m = p->m, size = m * m;
    steps s = split_steps(p);
    real *z = s.iterates;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            z[j * m + i] = p->a[i * m + j] / p->norm;
    store_matrix(p, z);
    for (int t = 0; t < p->desc->nystromformer.iterations; t++, z += size) {
        real *next = z + size;
        brackets(p, &s, z);
        real_multiply(m, z, s.outer, next);
        for (int64_t i = 0; i < size; i++)
            next[i] /= 4;
        store_matrix(p, next);
    }
    return z;
}

/* From grad (destroyed), the derivative by a step's Z': that by its Z into `into`, that by A added
 * to grad_a. slope is minus the derivative by outer, slope_next that by inner. */
static void step_backward(const nystrom_problem *p, const steps *s, const real *z, real *grad,
                          real *into, real *grad_a)
{
    int64_t m = p->m, size = m * m;
    brackets(p, s, z);
    for (int64_t i = 0; i < size; i++)
        grad[i] /= 4;
    real_gemm(CblasNoTrans, CblasTrans, m, m, m, grad, m, s->outer, m, 0, into, m);
    real_gemm(CblasTrans, CblasNoTrans, m, m, m, z, m, grad, m, 0, s->slope, m);
    subtract_from(m, 0, s->slope);
    real_gemm(CblasNoTrans, CblasTrans, m, m, m, s->slope, m, s->inner, m, 0, s->grad_y, m);
    real_gemm(CblasTrans, CblasNoTrans, m, m, m, s->y, m, s->slope, m, 0, s->slope_next, m);
    real_gemm(CblasNoTrans, CblasTrans, m, m, m, s->slope_next, m, s->y, m, 1, s->grad_y, m);
    real_gemm(CblasTrans, CblasNoTrans, m, m, m, s->y, m, s->slope_next, m, 1, s->grad_y, m);
    for (int64_t i = 0; i < size; i++)
        s->grad_y[i] -= 7 * s->slope_next[i];
    real_gemm(CblasNoTrans, CblasTrans, m, m, m, s->grad_y, m, z, m, 1, grad_a, m);
    real_gemm(CblasTrans, CblasNoTrans, m, m, m, p->a, m, s->grad_y, m, 1, into, m);
}

static void iterate_backward(const nystrom_problem *p, real *grad_z, real *grad_a, real *grad_norm)
{
    int64_t m = p->m, size = m * m;
    steps s = split_steps(p);
    real *grad = grad_z, *other = s.other;
    for (int t = p->desc->nystromformer.iterations - 1; t >= 0; t--) {
        step_backward(p, &s, s.iterates + t * size, grad, other, grad_a);
        real *done = grad;
        grad = other;
        other = done;
    }
    double sum = 0; /* Z_0 = A^T / norm */
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) {
            grad_a[i * m + j] += grad[j * m + i] / p->norm;
            sum += (double)grad[j * m + i] * (double)p->a[i * m + j];
        }
    *grad_norm -= (real)(sum / ((double)p->norm * (double)p->norm));
}

/* ---- The pseudo-inverse:   A = U S W^T,   Z = W S+ U^T ---- */

typedef struct {
    double *squares;
    real *z, *scratch, *middle;
    real *left, *right; /* U^T and W^T */
    real *values;       /* S */
} singular;

static singular split_singular(const nystrom_problem *p)
{
    int64_t size = p->m * p->m;
    uintptr_t odd = (uintptr_t)p->work % sizeof(double);
    real *squares = p->work + (odd > 0 ? 1 : 0), *w = squares + SQUARES * p->m;
    return (singular){(double *)squares, w,           w + size, w + 2 * size, w + 3 * size,
                      w + 4 * size,      w + 5 * size};
}

/* 1 / s_i, or 0 where s_i is dropped. */
static real inverted(const nystrom_problem *p, const singular *s, int64_t i)
{
    double rcond = p->desc->nystromformer.rcond;
    if (rcond < 0)
        rcond = (double)p->m * atn_dtype_roundoff(REAL_DTYPE);
    return (double)s->values[i] > rcond * (double)s->values[0] ? 1 / s->values[i] : 0;
}

static const real *decompose(const nystrom_problem *p)
{
    int64_t m = p->m;
    singular s = split_singular(p);
    memcpy(s.right, p->a, (size_t)(m * m) * sizeof(real));
    bool found = R(singular_values)(m, s.right, s.left, s.values, s.squares);
    for (int64_t i = 0; i < m; i++) {
        real inverse = found ? inverted(p, &s, i) : (real)NAN;
        for (int64_t j = 0; j < m; j++)
            s.scratch[i * m + j] = inverse * s.right[i * m + j];
    }
    real_gemm(CblasTrans, CblasNoTrans, m, m, m, s.scratch, m, s.left, m, 0, s.z, m);
    store_matrix(p, s.z);
    return s.z;
}

/* With H = U^T G^T W the derivative is U E W^T. Pairs of kept values: E_ij = -H_ji / (s_i s_j); i
 * kept, j dropped: E_ij = (s_i H_ij + s_j H_ji) / (s_i (s_i^2 - s_j^2)), E_ji the same with H
 * transposed; both dropped: 0. For s_j = 0 this is the derivative at constant rank with both its
 * projector terms (Golub and Pereyra 1973, Eq. 4.12); for s_j > 0, that of the truncated inverse.
 */
static void middle_pair(const nystrom_problem *p, const singular *s, int64_t i, int64_t j)
{
    real inverse_i = inverted(p, s, i), inverse_j = inverted(p, s, j); /* s_i >= s_j for i <= j */
    real *at = &s->middle[i * p->m + j], *mirrored = &s->middle[j * p->m + i];
    real h = *at, h_mirrored = *mirrored, direct = 0, crossed = -inverse_i * inverse_j;
    if (inverse_i != 0 && inverse_j == 0) {
        real ratio = s->values[j] / s->values[i];
        direct = inverse_i * inverse_i / (1 - ratio * ratio);
        crossed = ratio * direct;
    }
    *at = direct * h + crossed * h_mirrored;
    *mirrored = direct * h_mirrored + crossed * h;
}

static void decompose_backward(const nystrom_problem *p, const real *grad_z, real *grad_a)
{
    int64_t m = p->m;
    singular s = split_singular(p);
    real_gemm(CblasTrans, CblasTrans, m, m, m, grad_z, m, s.right, m, 0, s.scratch, m);
    real_multiply(m, s.left, s.scratch, s.middle);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = i; j < m; j++)
            middle_pair(p, &s, i, j);
    real_gemm(CblasTrans, CblasNoTrans, m, m, m, s.left, m, s.middle, m, 0, s.scratch, m);
    real_gemm(CblasNoTrans, CblasNoTrans, m, m, m, s.scratch, m, s.right, m, 1, grad_a, m);
}

const real *R(nystrom_inverse)(const nystrom_problem *p)
{
    return by_singular_values(&p->desc->nystromformer) ? decompose(p) : iterate(p);
}

void R(nystrom_inverse_backward)(const nystrom_problem *p, real *grad_z, real *grad_a,
                                 real *grad_norm)
{
    if (by_singular_values(&p->desc->nystromformer))
        decompose_backward(p, grad_z, grad_a);
    else
        iterate_backward(p, grad_z, grad_a, grad_norm);
}
