/* SPDX-License-Identifier: BSD-3-Clause */
/* The Newton-Raphson inverse, SOFT (IJCV) Eq. 10, with every published choice of its start. */
#include <string.h>

#include "cpu/blocks.h"
#include "inverse/plan.h"
#include "inverse/stopping.h"
#include "inverse/trace.h"

/* |I - alpha B|_1 in the arithmetic of `real`, as the published loops compute it; some columns at a
 * time, whose sums a vector unit adds side by side. */
static double start_norm(int64_t m, const real *b, real alpha)
{
    enum { COLUMNS = 64 };
    double norm = 0;
    for (int64_t first = 0; first < m; first += COLUMNS) {
        int64_t columns = m - first < COLUMNS ? m - first : COLUMNS;
        real sums[COLUMNS] = {0};
        for (int64_t i = 0; i < m; i++) {
            const real *row = b + i * m + first;
            bool diagonal = first <= i && i < first + columns;
            real before = diagonal ? sums[i - first] : 0;
            for (int64_t j = 0; j < columns; j++)
                sums[j] += real_abs(alpha * row[j]);
            if (diagonal)
                sums[i - first] = before + real_abs(1 - alpha * row[i - first]);
        }
        for (int64_t j = 0; j < columns; j++)
            norm = core_max(norm, (double)sums[j]);
    }
    return norm;
}

static real *matrix_of(const atn_tensor *t, int64_t index)
{
    return atn_tensor_matrix(t, index / t->heads, index % t->heads);
}

/* The halving rule (section 3.2: beta = 1/2; the published loop tests A^2): the smallest number of
 * halvings after which no finite matrix of the group first .. first + count - 1 exceeds the limit.
 * Returns alpha, or -1 if the cap comes first and the last alpha is not accepted. */
static double search_alpha(const atn_inverse_desc *desc, const atn_tensor *b,
                           const atn_inverse_info *infos, int64_t first, int64_t count,
                           double alpha, int *halvings)
{
    for (*halvings = 0;; ++*halvings) {
        double norm = 0;
        for (int64_t i = first; i < first + count; i++)
            if (infos[i].status != ATN_NONFINITE)
                norm = core_max(norm, start_norm(b->rows, matrix_of(b, i), (real)alpha));
        if (norm <= desc->search_limit)
            return alpha;
        if (*halvings == desc->search_cap)
            return desc->search_accepts_last ? alpha : -1;
        alpha /= 2;
    }
}

static void square_all(const atn_context *context, atn_storage storage, const atn_tensor *a,
                       atn_tensor *squares)
{
#pragma omp parallel for num_threads(context->threads) schedule(dynamic)
    for (int64_t i = 0; i < a->batch * a->heads; i++) {
        real_multiply_by_symmetric(a->rows, matrix_of(a, i), matrix_of(a, i),
                                   matrix_of(squares, i));
        R(symmetrise)(a->rows, matrix_of(squares, i));
        R(store)(storage, a->rows, a->rows, matrix_of(squares, i), a->rows);
    }
}

void R(newton_starts)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                      atn_tensor *squares, cpu_inverse_memory *memory)
{
    int64_t count = a->batch * a->heads;
    atn_inverse_info *infos = memory->infos;
    double *starts = memory->starts;
    double largest = 0;
    for (int64_t i = 0; i < count; i++) {
        bool finite = infos[i].status != ATN_NONFINITE;
        starts[i] = finite ? R(norm1)(a->rows, matrix_of(a, i)) : 0;
        largest = core_max(largest, starts[i]);
    }
    bool batch = desc->scope == ATN_SCOPE_BATCH;
    for (int64_t i = 0; i < count; i++)
        starts[i] = core_alpha_from_norm(desc, batch ? largest : starts[i]);
    if (desc->search == ATN_SEARCH_NONE)
        return;
    const atn_tensor *tested = a;
    if (desc->search == ATN_SEARCH_SQUARE) {
        square_all(context, desc->storage, a, squares);
        tested = squares;
    }
    int64_t group = batch ? count : 1;
    for (int64_t i = 0; i < count; i++)
        infos[i].products = desc->search == ATN_SEARCH_SQUARE;
    for (int64_t i = 0; i < count; i += group) {
        int halvings;
        double alpha = search_alpha(desc, tested, infos, i, group, starts[i], &halvings);
        for (int64_t j = i; j < i + group; j++) {
            starts[j] = alpha;
            infos[j].halvings = halvings;
        }
    }
}

void R(newton_shift)(int64_t m, const real *a, real ridge, real *b)
{
    memcpy(b, a, (size_t)(m * m) * sizeof *b);
    for (int64_t i = 0; i < m; i++)
        b[i * m + i] += ridge;
}

double R(newton_step)(atn_storage storage, int64_t m, const real *x, real *b_x, real *next)
{
    R(store)(storage, m, m, b_x, m);
    real_multiply_by_symmetric(m, x, b_x, next);
    R(symmetrise)(m, next);
    R(store)(storage, m, m, next, m);
    double change = R(squared_difference)(m * m, x, next);
    for (int64_t i = 0; i < m * m; i++)
        next[i] = 2 * x[i] - next[i];
    double size = R(squared_norm)(m * m, next);
    R(store)(storage, m, m, next, m);
    return R(relative_update)(change, size);
}

/* The iteration of one matrix: X_k in x, room for X_{k+1} in next. */
typedef struct {
    const inverse_problem *p;
    const real *b;
    real *x, *next, *b_x;
    real *best; /* the X_k of smallest residual, or null without stopping best */
    core_stopping stopping;
} newton_run;

/* Passes the residual of X_k to the stopping rule, with B X_k in b_x; next is scratch. Returns
 * whether to stop. */
static bool stops(newton_run *run, int k)
{
    const inverse_problem *p = run->p;
    int64_t size = p->m * p->m;
    double residual = R(penrose_of_product)(p->m, run->b, run->b_x, run->next);
    p->info->products++;
    double noise =
        R(inverse_roundoff)(p->desc) * R(frobenius)(size, run->b) * R(frobenius)(size, run->x);
    p->info->stop = core_stopping_take(&run->stopping, k, residual, noise);
    if (run->stopping.best == k)
        memcpy(run->best, run->x, (size_t)size * sizeof(real));
    return p->info->stop != ATN_STOP_ITERATIONS;
}

/* Computes X_{k+1}; false if it overflows. */
static bool advance(newton_run *run)
{
    const inverse_problem *p = run->p;
    atn_inverse_info *info = p->info;
    double update = R(newton_step)(p->desc->storage, p->m, run->x, run->b_x, run->next);
    info->products++;
    bool stored = p->desc->storage != ATN_STORAGE_NATIVE; /* after the update was measured */
    if ((stored || !R(is_finite_update)(update)) && !R(all_finite)(p->m, p->m, run->next, p->m)) {
        info->stop = ATN_STOP_NONFINITE;
        return false;
    }
    real *previous = run->x;
    run->x = run->next;
    run->next = previous;
    R(record_update)(info, info->iterations + 1, update);
    return true;
}

/* At most T steps from X_0 in p->x, where the result is left, too. */
static void iterate(newton_run *run)
{
    const inverse_problem *p = run->p;
    atn_inverse_info *info = p->info;
    int steps = p->desc->iterations;
    info->stop = ATN_STOP_ITERATIONS;
    for (int k = 0;; k++) {
        core_trace_record(p->trace, REAL_DTYPE, p->m, p->a, run->x, p->trace_work);
        if (k == steps && !run->best)
            break;
        real_multiply_by_symmetric(p->m, run->b, run->x, run->b_x);
        info->products++;
        if ((run->best && stops(run, k)) || k == steps || !advance(run))
            break;
    }
    info->returned = info->iterations;
    if (run->best)
        info->returned = info->best_iteration = run->stopping.best;
    const real *returned = run->best ? run->best : run->x;
    if (returned != p->x)
        memcpy(p->x, returned, (size_t)(p->m * p->m) * sizeof(real));
}

atn_status R(newton)(const inverse_problem *p)
{
    int64_t size = p->m * p->m;
    real *scratch = p->work, *other = scratch + size, *shifted = other + size;
    atn_inverse_info *info = p->info;
    if (p->alpha < 0)
        return R(without_start)(p, ATN_STOP_NO_ALPHA);
    const real *b = p->a;
    if (p->desc->ridge != 0) {
        R(newton_shift)(p->m, p->a, (real)p->desc->ridge, shifted);
        R(store)(p->desc->storage, p->m, p->m, shifted, p->m);
        b = shifted;
    }
    real alpha = (real)p->alpha;
    info->alpha = (double)alpha;
    for (int64_t i = 0; i < size; i++)
        p->x[i] = alpha * b[i];
    R(store)(p->desc->storage, p->m, p->m, p->x, p->m);
    if (!R(all_finite)(p->m, p->m, p->x, p->m)) /* alpha exceeds the range of the type */
        return R(without_start)(p, ATN_STOP_NONFINITE);
    bool best = p->desc->stopping == ATN_STOPPING_BEST;
    newton_run run = {p, b, p->x, other, scratch, best ? shifted + size : NULL, {INFINITY, 0}};
    iterate(&run);
    info->residual = best ? run.stopping.smallest : R(first_penrose)(p->m, b, p->x, scratch, other);
    return info->stop == ATN_STOP_NONFINITE && !best ? ATN_NOT_CONVERGED : ATN_OK;
}
