/* SPDX-License-Identifier: BSD-3-Clause */
/* Y = X W for all matrices of a call, with X itself or with its factor. Each thread applies an X
 * while it is still in its caches. */
#include <omp.h>
#include <string.h>

#include "cpu/blocks.h"
#include "inverse/plan.h"

static real *row_of(const atn_tensor *t, int64_t matrix, int64_t row)
{
    real *first = atn_tensor_matrix(t, matrix / t->heads, matrix % t->heads);
    return first + row * t->row_stride;
}

static bool is_factored(const atn_inverse_desc *desc)
{
    return desc->method == ATN_INVERSE_PIVOTED_CHOLESKY;
}

/* Y[piv] = L^-T L^-1 W[piv], the other rows 0. */
static void solve_factor(const cpu_factor *factor, const real *l, const atn_tensor *w,
                         atn_tensor *y, int64_t matrix, real *work)
{
    int64_t m = w->rows, k = w->cols, rank = factor->rank, width = whole_vectors(k);
    for (int64_t i = 0; i < rank; i++) {
        memcpy(work + i * width, row_of(w, matrix, factor->pivots[i]), (size_t)k * sizeof(real));
        memset(work + i * width + k, 0, (size_t)(width - k) * sizeof(real));
    }
    real_solve(CblasNoTrans, rank, l, m, width, work, width);
    real_solve(CblasTrans, rank, l, m, width, work, width);
    for (int64_t i = 0; i < m && rank < m; i++)
        memset(row_of(y, matrix, i), 0, (size_t)k * sizeof(real));
    for (int64_t i = 0; i < rank; i++)
        memcpy(row_of(y, matrix, factor->pivots[i]), work + i * width, (size_t)k * sizeof(real));
}

/* X, then the work of solve_factor. */
int64_t R(inverse_apply_work)(const atn_inverse_desc *desc, int64_t m, int64_t k)
{
    return whole_vectors(m * m) + (is_factored(desc) ? m * whole_vectors(k) : 0);
}

atn_status R(inverse_apply)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                            atn_tensor *squares, cpu_inverse_memory *memory, const atn_tensor *w,
                            atn_tensor *y, void *work)
{
    int64_t m = w->rows, k = w->cols, count = w->batch * w->heads;
    int64_t reals = R(inverse_apply_work)(desc, m, k);
    int neighbours = core_inverse_neighbours(context, count);
    atn_status worst = ATN_OK;
    R(inverse_begin)(context, desc, a, squares, memory);
#pragma omp parallel for num_threads(context->threads) schedule(dynamic, neighbours)               \
    reduction(worst                                                                                \
              : worst)
    for (int64_t i = 0; i < count; i++) {
        real *x = (real *)work + omp_get_thread_num() * reals;
        worst = core_worse(worst, R(inverse_next)(desc, a, i, true, memory, NULL, x));
        if (is_factored(desc))
            solve_factor(&memory->factors[i], x, w, y, i, x + whole_vectors(m * m));
        else
            real_gemm(CblasNoTrans, CblasNoTrans, m, k, m, x, m, row_of(w, i, 0), w->row_stride,
                      false, row_of(y, i, 0), y->row_stride);
        R(store)(desc->storage, m, k, row_of(y, i, 0), y->row_stride);
    }
    return core_inverse_end(context, worst);
}
