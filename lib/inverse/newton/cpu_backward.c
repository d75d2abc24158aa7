/* SPDX-License-Identifier: BSD-3-Clause */
/* Backward through the Newton-Raphson steps that were taken, SOFT (IJCV) Eq. 10, and through their
 * start X_0 = alpha B. Needs all T iterates, which Eq. 12 avoids. */
#include <string.h>

#include "cpu/blocks.h"
#include "inverse/plan.h"

/* Computes X_0 .. X_{K-1} again, with the same bits. False if there is no X_0: X is then 0. */
static bool recompute_iterates(const inverse_adjoint *g, const real *b, real *scratch,
                               real *iterates)
{
    int64_t m = g->m, size = m * m;
    real alpha = (real)g->info->alpha;
    if (g->info->stop == ATN_STOP_NO_ALPHA)
        return false;
    for (int64_t i = 0; i < size; i++)
        iterates[i] = alpha * b[i];
    for (int64_t k = 1; k < g->info->returned; k++) {
        real *x = iterates + (k - 1) * size;
        real_multiply_by_symmetric(m, b, x, scratch);
        R(newton_step)(ATN_STORAGE_NATIVE, m, x, scratch, x + size);
    }
    return R(all_finite)(m, m, iterates, m);
}

/* From G, the derivative by X_{k+1} = 2 X - X B X, that by X: 2 G - (G X B + B X G). Adds X G X,
 * the derivative by -B, to sum. */
static void step_backward(int64_t m, const real *b, const real *x, real *grad, real *sum, real *x_g,
                          real *b_x_g)
{
    real_multiply_by_symmetric(m, x, grad, x_g);
    real_gemm(CblasNoTrans, CblasNoTrans, m, m, m, x_g, m, x, m, 1, sum, m);
    real_multiply_by_symmetric(m, b, x_g, b_x_g);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i; j++)
            grad[i * m + j] = grad[j * m + i] =
                2 * grad[i * m + j] - (b_x_g[i * m + j] + b_x_g[j * m + i]);
}

int64_t R(steps_backward_work)(const atn_inverse_desc *desc, int64_t m)
{
    int64_t kept = desc->iterations > 0 ? desc->iterations : 1; /* X_0 .. X_{T-1} */
    return (kept + 3) * m * m;
}

void R(steps_backward)(const inverse_adjoint *g)
{
    int64_t m = g->m, size = m * m;
    real *b = g->work, *x_g = b + size, *b_x_g = x_g + size, *iterates = b_x_g + size;
    real *sum = g->grad_a, *grad = g->grad_x, alpha = (real)g->info->alpha;
    double slope = 0;
    memset(sum, 0, (size_t)size * sizeof *sum);
    *g->slope = 0;
    R(newton_shift)(m, g->a, (real)g->desc->ridge, b);
    if (!recompute_iterates(g, b, b_x_g, iterates))
        return;
    R(symmetrise)(m, grad);
    for (int64_t k = g->info->returned - 1; k >= 0; k--)
        step_backward(m, b, iterates + k * size, grad, sum, x_g, b_x_g);
    for (int64_t i = 0; i < size; i++) {
        sum[i] = alpha * grad[i] - sum[i];
        slope += (double)grad[i] * (double)b[i];
    }
    *g->slope = slope;
}

static const real *matrix_of(const atn_tensor *t, int64_t index)
{
    return atn_tensor_matrix(t, index / t->heads, index % t->heads);
}

/* For an alpha that all matrices share, which depends on the first largest norm only. */
static void shared_norm_slopes(const atn_tensor *a, const atn_inverse_info *infos, double *slopes)
{
    int64_t largest = -1;
    double sum = 0, norm = 0;
    for (int64_t i = 0; i < a->batch * a->heads; i++) {
        sum += slopes[i];
        slopes[i] = 0;
        if (infos[i].status == ATN_NONFINITE)
            continue;
        double one = R(norm1)(a->rows, matrix_of(a, i));
        if (largest < 0 || one > norm) {
            largest = i;
            norm = one;
        }
    }
    if (largest >= 0)
        slopes[largest] = sum * core_alpha_slope(&infos[largest], norm);
}

void R(newton_norm_slopes)(const atn_inverse_desc *desc, const atn_tensor *a,
                           const atn_inverse_info *infos, double *slopes)
{
    if (desc->alpha <= 0 && desc->scope == ATN_SCOPE_BATCH) {
        shared_norm_slopes(a, infos, slopes);
        return;
    }
    for (int64_t i = 0; i < a->batch * a->heads; i++) {
        double norm = R(norm1)(a->rows, matrix_of(a, i));
        slopes[i] *= desc->alpha > 0 ? 0 : core_alpha_slope(&infos[i], norm);
    }
}

int64_t R(norm1_row)(int64_t m, const real *a)
{
    int64_t row = 0;
    double norm = -1;
    for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += (double)real_abs(a[i * m + j]);
        if (sum > norm) {
            norm = sum;
            row = i;
        }
    }
    return row;
}
