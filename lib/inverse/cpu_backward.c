/* SPDX-License-Identifier: BSD-3-Clause */
/* The derivative by A from that by X, its inverse, in each way of ATN_GRADIENT_LIST. */
#include <omp.h>
#include <string.h>

#include "cpu/blocks.h"

/* out = X G Z for dense m x m matrices; scratch is one more. */
static void sandwich(int64_t m, const real *x, const real *g, const real *z, real *scratch,
                     real *out)
{
    real_multiply(m, x, g, scratch);
    real_multiply(m, scratch, z, out);
}

/* SOFT (IJCV) Eq. 12 with the computed X: dA = -X G X. */
static void closed_backward(const inverse_adjoint *g)
{
    sandwich(g->m, g->x, g->grad_x, g->x, g->work, g->grad_a);
    for (int64_t i = 0; i < g->m * g->m; i++)
        g->grad_a[i] = -g->grad_a[i];
    *g->slope = 0;
}

/* Golub and Pereyra (1973) Eq. 4.12 for symmetric A at constant rank,
 *
 *   dX = -X dA X + X X dA (I - A X) + (I - X A) dA X X,
 *
 * whose adjoint is dA = -X G X + N + N^T, N = X X G (I - A X), G symmetric. */
static void pseudo_backward(const inverse_adjoint *g)
{
    int64_t m = g->m, size = m * m;
    real *scratch = g->work, *left = scratch + size, *right = left + size;
    R(symmetrise)(m, g->grad_x);
    sandwich(m, g->x, g->grad_x, g->x, scratch, g->grad_a);
    real_multiply(m, g->a, g->x, right);
    for (int64_t i = 0; i < size; i++)
        right[i] = (real)(i % (m + 1) == 0) - right[i];
    real_multiply(m, g->x, g->grad_x, left);
    sandwich(m, g->x, left, right, scratch, g->grad_x); /* N */
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            g->grad_a[i * m + j] =
                g->grad_x[i * m + j] + g->grad_x[j * m + i] - g->grad_a[i * m + j];
    *g->slope = 0;
}

static void (*const ways[ATN_GRADIENT_COUNT])(const inverse_adjoint *) = {
    [ATN_GRADIENT_CLOSED] = closed_backward,
    [ATN_GRADIENT_STEPS] = R(steps_backward),
    [ATN_GRADIENT_PSEUDO] = pseudo_backward,
};

int64_t R(inverse_backward_work)(const atn_inverse_desc *desc, atn_gradient gradient, int64_t m)
{
    return gradient == ATN_GRADIENT_STEPS ? R(steps_backward_work)(desc, m) : 3 * m * m;
}

void R(inverse_backward)(atn_gradient gradient, const inverse_adjoint *g)
{
    ways[gradient](g);
}

/* ---- All matrices of a call ---- */

static real *matrix_of(const atn_tensor *t, int64_t index)
{
    return atn_tensor_matrix(t, index / t->heads, index % t->heads);
}

/* Adds the derivative through |A|_1, on which alpha depends, to the row that attains the norm; then
 * symmetrises. */
static void finish_one(int64_t m, const real *a, double slope, real *grad_a)
{
    int64_t row = R(norm1_row)(m, a);
    for (int64_t j = 0; j < m; j++) {
        real entry = a[row * m + j];
        grad_a[row * m + j] += (real)slope * (real)((entry > 0) - (entry < 0));
    }
    R(symmetrise)(m, grad_a);
}

static void fill_nan(int64_t size, real *a)
{
    for (int64_t i = 0; i < size; i++)
        a[i] = (real)NAN;
}

atn_status R(inverse_backward_batch)(atn_context *context, const atn_inverse_desc *desc,
                                     atn_gradient gradient, const atn_tensor *a,
                                     const atn_tensor *dx, atn_tensor *da,
                                     cpu_inverse_adjoint *memory)
{
    int64_t m = a->rows, size = m * m, count = a->batch * a->heads;
    atn_tensor x = atn_tensor_dense(memory->x, REAL_DTYPE, a->batch, a->heads, m, m);
    atn_inverse_info *infos = memory->inverse.infos;
    atn_status status = R(inverse_batch)(context, desc, a, &x, false, &memory->inverse, NULL);
    if (status < 0)
        return status;
#pragma omp parallel for num_threads(context->threads) schedule(dynamic)
    for (int64_t i = 0; i < count; i++) {
        real *work = (real *)memory->work + omp_get_thread_num() * memory->reals;
        inverse_adjoint g = {
            desc,        m,         matrix_of(a, i),   matrix_of(&x, i), work, matrix_of(da, i),
            work + size, &infos[i], &memory->slopes[i]};
        memcpy(g.grad_x, matrix_of(dx, i), (size_t)size * sizeof(real));
        memory->slopes[i] = 0;
        if (infos[i].status != ATN_NONFINITE && R(all_finite)(m, m, g.grad_x, m))
            R(inverse_backward)(gradient, &g);
        else
            fill_nan(size, g.grad_a);
    }
    R(newton_norm_slopes)(desc, a, infos, memory->slopes);
    for (int64_t i = 0; i < count; i++) {
        finish_one(m, matrix_of(a, i), memory->slopes[i], matrix_of(da, i));
        if (!R(all_finite)(m, m, matrix_of(da, i), m)) {
            infos[i].status = status = ATN_NONFINITE;
            fill_nan(size, matrix_of(da, i));
        }
    }
    return status;
}
