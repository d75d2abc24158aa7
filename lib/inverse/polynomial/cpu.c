/* SPDX-License-Identifier: BSD-3-Clause */
/* Polynomial iterations for the inverse, X_{k+1} = X_k Q(E_k), E_k = I - B X_k (attnum/inverse.h).
 * Q(e) = (1 - r(e)) / (1 - e) with the map r of a step, so that I - B X_{k+1} = r(E_k). */
#include <string.h>

#include "cpu/blocks.h"
#include "inverse/plan.h"
#include "inverse/trace.h"

enum { WORK_MATRICES = 7 };

typedef struct {
    const inverse_problem *p;
    const core_polynomial *kind;
    const real *b;
    real *x, *next;
    real *e, *power, *other, *q;
    real *best, *probe;   /* the X with the smallest |E B v|, and B v, scaled */
    double best_residual; /* |E B v|^2, scaled */
    int best_step;
    double gap; /* 1 - d, which stays accurate where d rounds to 1; 1 for hyperpowers */
} iteration;

int64_t R(polynomial_work)(int64_t m)
{
    return WORK_MATRICES * m * m + m;
}

static int64_t size_of(const iteration *t)
{
    return t->p->m * t->p->m;
}

/* a += c I */
static void add_identity(const iteration *t, real c, real *a)
{
    for (int64_t i = 0; i < size_of(t); i += t->p->m + 1)
        a[i] += c;
}

/* out = a b, or a b + out */
static void product(const iteration *t, const real *a, const real *b, bool add, real *out)
{
    int64_t m = t->p->m;
    real_gemm(CblasNoTrans, CblasNoTrans, m, m, m, a, m, b, m, add, out, m);
    R(store)(t->p->desc->storage, m, m, out, m);
}

/* out = a b, a symmetric */
static void product_by_symmetric(const iteration *t, const real *a, const real *b, real *out)
{
    int64_t m = t->p->m;
    real_multiply_by_symmetric(m, a, b, out);
    R(store)(t->p->desc->storage, m, m, out, m);
}

/* ---- Q(E) into q, destroying e, power and other; z = d^2 ---- */

/* 2 (1 + e) / (2 - z); Pan and Schreiber (1991), with d = 0 Newton-Schulz. */
static void order_2(const iteration *t, double z)
{
    real factor = (real)(2 / (2 - z));
    add_identity(t, 1, t->e);
    for (int64_t i = 0; i < size_of(t); i++)
        t->q[i] = factor * t->e[i];
}

/* (4 (1 + e + e^2) - 3 z) / (4 - 3 z), from T_3(x) = 4 x^3 - 3 x. */
static void order_3(const iteration *t, double z)
{
    real factor = (real)(4 / (4 - 3 * z));
    product(t, t->e, t->e, false, t->power);
    for (int64_t i = 0; i < size_of(t); i++)
        t->q[i] = factor * (t->power[i] + t->e[i]);
    add_identity(t, 1, t->q);
}

/* 1 + (e + e^2) (1 + e^2 + e^4) */
static void order_7(const iteration *t, double z)
{
    (void)z;
    product(t, t->e, t->e, false, t->power);
    product(t, t->power, t->power, false, t->other);
    for (int64_t i = 0; i < size_of(t); i++) {
        t->e[i] += t->power[i];
        t->q[i] = 0;
    }
    add_identity(t, 1, t->power);
    for (int64_t i = 0; i < size_of(t); i++)
        t->other[i] += t->power[i];
    add_identity(t, 1, t->q);
    product(t, t->e, t->other, true, t->q);
}

/* T_9(x) = 256 x^9 - 576 x^7 + 432 x^5 - 120 x^3 + 9 x makes Q, over its leading coefficient s,
 *
 *   e^8 + e^7 + c6 (e^6 + e^5) + c4 (e^4 + e^3) + c2 (e^2 + e) + c0.
 *
 * With y = e^2 (e^2 + e / 2) it is (y + f e^2 + g e)(y + h e^2) + w y + c2 (e^2 + e) + c0, 3
 * products: e^7 fixes the 1/2, e^6 and e^5 f + h = c6 - 1/4 and g = c6 / 2 + 1/8, e^3 then w =
 * 2 (c4 - g h), and e^4 h^2 + h / 2 = g / 2 + c4, whose discriminant is above 0.8 for 0 <= z <= 1.
 */
static void order_9(const iteration *t, double z)
{
    double c6 = 1 - 9 * z / 4, c4 = c6 + 27 * z * z / 16, c2 = c4 - 15 * z * z * z / 32;
    double c0 = c2 + 9 * z * z * z * z / 256, g = c6 / 2 + 0.125;
    double h = (sqrt(0.25 + 2 * g + 4 * c4) - 0.5) / 2, f = c6 - 0.25 - h, w = 2 * (c4 - g * h);
    double third = 4 - 3 * z, s = 256 / (third * (4 * third * third - 3 * z * z * z));
    product(t, t->e, t->e, false, t->power);
    for (int64_t i = 0; i < size_of(t); i++)
        t->other[i] = t->power[i] + t->e[i] / 2;
    product(t, t->power, t->other, false, t->q);
    int64_t diagonal = 0;
    for (int64_t i = 0; i < size_of(t); i++) {
        double e = (double)t->e[i], e2 = (double)t->power[i], y = (double)t->q[i];
        bool on_diagonal = i == diagonal;
        diagonal += on_diagonal ? t->p->m + 1 : 0;
        t->e[i] = (real)(s * (y + f * e2 + g * e));
        t->power[i] = (real)(y + h * e2);
        t->q[i] = (real)(s * (w * y + c2 * (e2 + e) + (on_diagonal ? c0 : 0)));
    }
    product(t, t->e, t->power, true, t->q);
}

/* Xiong et al. (2021): (13 - y (15 - y (7 - y))) / 4 with y = 1 - e is 1 + e (1 + e (1 + e / 4)),
 * again 2 products. */
static void published(const iteration *t, double z)
{
    (void)z;
    for (int64_t i = 0; i < size_of(t); i++) {
        t->other[i] = t->e[i] / 4;
        t->power[i] = t->q[i] = 0;
    }
    add_identity(t, 1, t->other);
    add_identity(t, 1, t->power);
    add_identity(t, 1, t->q);
    product(t, t->e, t->other, true, t->power);
    product(t, t->e, t->power, true, t->q);
}

static void (*const polynomials[ATN_INVERSE_COUNT])(const iteration *, double) = {
    [ATN_INVERSE_NEWTON_SCHULZ] = order_2,   [ATN_INVERSE_HYPERPOWER_3] = order_3,
    [ATN_INVERSE_HYPERPOWER_7] = order_7,    [ATN_INVERSE_HYPERPOWER_9] = order_9,
    [ATN_INVERSE_NYSTROMFORMER] = published, [ATN_INVERSE_CHEBYSHEV_2] = order_2,
    [ATN_INVERSE_CHEBYSHEV_3] = order_3,     [ATN_INVERSE_CHEBYSHEV_9] = order_9,
};

/* ---- The interval ---- */

/* A vector without symmetry: multiples of the golden section, modulo 1. */
static void fill_generic(int64_t m, real *v)
{
    double ignored;
    for (int64_t i = 0; i < m; i++)
        v[i] = (real)(0.5 - modf(0.6180339887498949 * (double)(i + 1), &ignored));
}

/* A growing orthonormal basis: `count` of at most `steps` rows, and its transpose, m x steps, with
 * 0 for the missing ones. */
typedef struct {
    int count, steps;
    real *rows, *transposed;
} lanczos_basis;

/* v <- v - Q^T Q v */
static void remove_components(int64_t m, const lanczos_basis *q, real *v)
{
    real along[ATN_INTERVAL_STEPS];
    real_gemm(CblasNoTrans, CblasNoTrans, 1, q->steps, m, v, m, q->transposed, q->steps, false,
              along, q->steps);
    for (int k = 0; k < q->count; k++)
        along[k] = -along[k];
    real_gemm(CblasNoTrans, CblasNoTrans, 1, m, q->count, along, q->count, q->rows, m, true, v, m);
}

/* Appends v divided by its length; returns the row. */
static const real *append(int64_t m, const real *v, double length, lanczos_basis *q)
{
    real *row = q->rows + q->count * m;
    for (int64_t i = 0; i < m; i++) {
        row[i] = (real)((double)v[i] / length);
        q->transposed[i * q->steps + q->count] = row[i];
    }
    q->count++;
    return row;
}

/* The smallest Ritz value of q->steps Lanczos steps with full orthogonalisation; v has m elements.
 * NaN if they overflow. */
static double smallest_ritz_value(int64_t m, const real *b, lanczos_basis *q, real *v)
{
    _Static_assert((int)ATN_INTERVAL_STEPS <= (int)SIMD_TRIDIAGONAL, "more steps than it takes");
    double diagonal[ATN_INTERVAL_STEPS], off_diagonal[ATN_INTERVAL_STEPS], scale = R(norm1)(m, b);
    memset(q->transposed, 0, (size_t)(m * q->steps) * sizeof(real));
    fill_generic(m, v);
    while (q->count < q->steps) {
        double length = R(frobenius)(m, v);
        if (q->count > 0)
            off_diagonal[q->count - 1] = length;
        if (!(length > (double)m * atn_dtype_roundoff(REAL_DTYPE) * (q->count > 0 ? scale : 0)))
            break; /* the subspace is invariant */
        const real *row = append(m, v, length, q);
        real_gemm(CblasNoTrans, CblasNoTrans, 1, m, m, row, m, b, m, false, v, m); /* B = B^T */
        diagonal[q->count - 1] = R(dot)(m, row, v);
        for (int pass = 0; pass < 2; pass++)
            remove_components(m, q, v);
    }
    return R(simd).smallest_eigenvalue(q->count, diagonal, off_diagonal);
}

static void choose_interval(iteration *t)
{
    int64_t m = t->p->m;
    const atn_inverse_desc *desc = t->p->desc;
    atn_inverse_info *info = t->p->info;
    lanczos_basis q = {.steps = m < ATN_INTERVAL_STEPS ? (int)m : ATN_INTERVAL_STEPS,
                       .rows = t->other,
                       .transposed = t->power};
    double high = desc->interval_high, low = desc->interval_low;
    if (high == 0)
        high = R(norm1)(m, t->b);
    if (low == 0)
        low = core_max(sqrt(atn_dtype_roundoff(REAL_DTYPE)) * high,
                       smallest_ritz_value(m, t->b, &q, t->e));
    info->interval_high = high;
    info->interval_low = low < high ? low : high;
}

/* alpha, and for Chebyshev d: [low, high] or its squares become alpha [1 - d, 1 + d] / alpha. */
static real choose_start(iteration *t)
{
    const atn_inverse_desc *desc = t->p->desc;
    atn_inverse_info *info = t->p->info;
    bool squared = desc->start == ATN_START_MATRIX;
    double numerator = desc->numerator, norm = R(norm1)(t->p->m, t->b);
    t->gap = 1;
    if (norm > 0 && t->kind->chebyshev) {
        choose_interval(t);
        double ratio = info->interval_low / info->interval_high;
        ratio *= squared ? ratio : 1;
        numerator = 2 / (1 + ratio);
        norm = info->interval_high;
        t->gap = numerator * ratio;
    }
    double alpha = norm > 0 ? numerator / norm : 0; /* A = 0: X = 0 is its pseudo-inverse */
    return (real)(desc->alpha > 0 ? desc->alpha : squared && norm > 0 ? alpha / norm : alpha);
}

static void fill_start(const iteration *t, real alpha)
{
    bool identity = t->p->desc->start == ATN_START_IDENTITY;
    for (int64_t i = 0; i < size_of(t); i++)
        t->x[i] = identity ? 0 : alpha * t->b[i];
    if (identity)
        add_identity(t, alpha, t->x);
    R(store)(t->p->desc->storage, t->p->m, t->p->m, t->x, t->p->m);
}

/* ---- Steps ---- */

/* Whether X is still alpha I, which makes products with it scalings. */
static bool is_scalar(const iteration *t, int k)
{
    return k == 0 && t->p->desc->start == ATN_START_IDENTITY;
}

/* E = I - B X. Returns |E|_F^2. */
static double find_error(const iteration *t, int k)
{
    int64_t m = t->p->m;
    if (is_scalar(t, k)) {
        for (int64_t i = 0; i < m * m; i++)
            t->e[i] = t->x[0] * t->b[i];
        R(store)(t->p->desc->storage, m, m, t->e, m);
    } else
        product_by_symmetric(t, t->b, t->x, t->e);
    for (int64_t i = 0; i < m * m; i++)
        t->e[i] = 0 - t->e[i];
    add_identity(t, 1, t->e);
    double norm = R(frobenius)(m * m, t->e);
    return norm * norm;
}

/* X_{k+1} = X_k Q(E_k) into next, exactly symmetric. Returns |X_{k+1} - X_k|_F / |X_{k+1}|_F. */
static double step(iteration *t, int k)
{
    int64_t m = t->p->m;
    polynomials[t->p->desc->method](t, (1 - t->gap) * (1 - t->gap));
    R(store)(t->p->desc->storage, m, m, t->q, m);
    if (is_scalar(t, k))
        for (int64_t i = 0; i < m * m; i++)
            t->next[i] = t->x[0] * t->q[i];
    else
        product_by_symmetric(t, t->x, t->q, t->next);
    t->p->info->products += t->kind->products - (is_scalar(t, k) ? 2 : 0);
    R(symmetrise)(m, t->next);
    R(store)(t->p->desc->storage, m, m, t->next, m);
    return R(relative_update)(R(squared_difference)(m * m, t->next, t->x),
                              R(squared_norm)(m * m, t->next));
}

static void exchange(iteration *t)
{
    real *x = t->x;
    t->x = t->next;
    t->next = x;
}

/* B v, over a power of 2 that keeps squares in the range of f64. */
static void fill_probe(iteration *t)
{
    int64_t m = t->p->m;
    int exponent;
    fill_generic(m, t->e);
    for (int64_t i = 0; i < m; i++)
        t->probe[i] = (real)R(dot)(m, t->b + i * m, t->e);
    frexp(R(frobenius)(m, t->probe), &exponent);
    for (int64_t i = 0; i < m; i++)
        t->probe[i] = (real)ldexp((double)t->probe[i], -exponent);
}

/* Keeps X if |E B v| is the smallest so far, for the guard to return. */
static void keep_best(iteration *t, int k)
{
    int64_t m = t->p->m;
    R(multiply_vector)(m, m, t->e, m, t->probe, t->q);
    double squared = R(dot)(m, t->q, t->q);
    if (k == 0 || squared < t->best_residual) {
        t->best_residual = squared;
        t->best_step = k;
        memcpy(t->best, t->x, (size_t)(m * m) * sizeof(real));
    }
}

static void accept(iteration *t, int k, double update)
{
    core_trace_record(t->p->trace, REAL_DTYPE, t->p->m, t->p->a, t->x, t->p->trace_work);
    keep_best(t, k);
    t->p->info->returned = k;
    if (k > 0)
        R(record_update)(t->p->info, k, update);
}

static void return_to_best(iteration *t)
{
    t->p->info->stop = ATN_STOP_DIVERGED;
    t->p->info->returned = t->best_step;
    memcpy(t->x, t->best, (size_t)(t->p->m * t->p->m) * sizeof(real));
    find_error(t, t->best_step);
}

/* Runs the steps; leaves in e the E of the final X. X_k is accepted once its E is known, which the
 * guard checks (attnum/inverse.h). */
static void iterate(iteration *t)
{
    const inverse_problem *p = t->p;
    double slack = 1.01, update = 0, before = 0;
    p->info->stop = ATN_STOP_ITERATIONS;
    for (int k = 0;; k++) {
        double error = find_error(t, k), half = 1 - t->gap;
        double bound = core_max(1, slack * (before + (double)p->m * half * half));
        if (k > 0 && !(error <= bound)) {
            return_to_best(t);
            return;
        }
        accept(t, k, update);
        if (k == p->desc->iterations)
            return;
        before = error;
        update = step(t, k);
        if (!R(is_finite_update)(update) && !R(all_finite)(p->m, p->m, t->next, p->m)) {
            p->info->stop = ATN_STOP_NONFINITE;
            find_error(t, k);
            return;
        }
        exchange(t);
        t->gap = t->kind->chebyshev ? core_next_gap(t->kind->order, t->gap) : 1;
    }
}

/* |B X B - B|_F / |B|_F = |E B|_F / |B|_F; in a narrow type E comes from a rounded B X, and the
 * residual of X is computed afresh. */
static double residual(const iteration *t)
{
    int64_t size = t->p->m * t->p->m;
    if (t->p->desc->storage != ATN_STORAGE_NATIVE)
        return R(first_penrose)(t->p->m, t->b, t->x, t->e, t->q);
    double norm = R(frobenius)(size, t->b);
    real_multiply(t->p->m, t->e, t->b, t->q);
    return norm > 0 ? R(frobenius)(size, t->q) / norm : 0;
}

atn_status R(polynomial)(const inverse_problem *p)
{
    int64_t size = p->m * p->m;
    real *w = p->work, *shifted = w + 6 * size;
    iteration t = {
        .p = p,
        .kind = core_polynomial_of(p->desc->method),
        .b = p->a,
        .x = p->x,
        .next = w,
        .e = w + size,
        .power = w + 2 * size,
        .other = w + 3 * size,
        .q = w + 4 * size,
        .best = w + 5 * size,
        .probe = w + 7 * size,
    };
    if (p->desc->ridge != 0) {
        R(newton_shift)(p->m, p->a, (real)p->desc->ridge, shifted);
        R(store)(p->desc->storage, p->m, p->m, shifted, p->m);
        t.b = shifted;
    }
    real alpha = choose_start(&t);
    p->info->alpha = (double)alpha;
    fill_start(&t, alpha);
    if (!R(all_finite)(p->m, p->m, t.x, p->m)) /* alpha exceeds the range of the type */
        return R(without_start)(p, ATN_STOP_NONFINITE);
    fill_probe(&t);
    iterate(&t);
    p->info->residual = residual(&t);
    if (t.x != p->x)
        memcpy(p->x, t.x, (size_t)size * sizeof(real));
    return p->info->stop == ATN_STOP_NONFINITE ? ATN_NOT_CONVERGED : ATN_OK;
}
