/* SPDX-License-Identifier: BSD-3-Clause */
/* The polynomial iterations for the inverse: iterates against their closed forms, the guard, the
 * interval, the count of products. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "filters.h"
#include "fixture.h"
#include "latms.h"
#include "linear_algebra.h"
#include "matrices.h"
#include "newton.h"
#include "pairs.h"

enum { FIRST = ATN_INVERSE_NEWTON_SCHULZ, LAST = ATN_INVERSE_CHEBYSHEV_9, MOST_STEPS = 80 };

/* Order, products of a step, of the first step from alpha I. */
static const struct {
    int order, products, first;
} kinds[ATN_INVERSE_COUNT] = {
    [ATN_INVERSE_NEWTON_SCHULZ] = {2, 2, 0}, [ATN_INVERSE_HYPERPOWER_3] = {3, 3, 1},
    [ATN_INVERSE_HYPERPOWER_7] = {7, 5, 3},  [ATN_INVERSE_HYPERPOWER_9] = {9, 5, 3},
    [ATN_INVERSE_NYSTROMFORMER] = {3, 4, 2}, [ATN_INVERSE_CHEBYSHEV_2] = {2, 2, 0},
    [ATN_INVERSE_CHEBYSHEV_3] = {3, 3, 1},   [ATN_INVERSE_CHEBYSHEV_9] = {9, 5, 3},
};

static bool is_chebyshev(int method)
{
    return method >= ATN_INVERSE_CHEBYSHEV_2;
}

typedef struct {
    int64_t m;
    double *values; /* A, as the dtype holds it */
    guarded a, x;
    atn_inverse_info info;
    atn_status status;
} single;

static single single_make(atn_dtype dtype, int64_t m)
{
    single s = {.m = m, .values = data_allocate(m * m)};
    s.a = guarded_make(dtype, GUARDED_DENSE, 1, 1, m, m);
    s.x = guarded_make(dtype, GUARDED_DENSE, 1, 1, m, m);
    return s;
}

static void single_free(single *s)
{
    guarded_free(&s->x);
    guarded_free(&s->a);
    free(s->values);
}

static void single_run(atn_context *context, single *s, const atn_inverse_desc *desc,
                       atn_trace *trace)
{
    data_round(s->a.view.dtype, s->m * s->m, s->values);
    guarded_set(&s->a, s->values);
    guarded_poison(&s->x);
    memset(&s->info, 0xff, sizeof s->info);
    s->status = fixture_inverse(context, desc, &s->a, &s->x, &s->info, trace);
}

static bool sound(const single *s)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < i; j++)
            if (guarded_at(&s->x, 0, 0, i, j) != guarded_at(&s->x, 0, 0, j, i))
                return false;
    return guarded_unwritten(&s->x) == 0 && guarded_damaged(&s->x) == 0;
}

/* ---- Iterates against closed forms ---- */

static long double map_once(const ref_iteration *it, long double e, long double d)
{
    if (it->kind == REF_NYSTROMFORMER)
        return e * e * e * (3 + e) / 4;
    if (it->kind == REF_POWER || d == 0)
        return powl(e, it->order);
    long double t = e / d, s = 1 / d, t2 = t * t, s2 = s * s;
    return it->order == 2   ? (2 * t2 - 1) / (2 * s2 - 1)
           : it->order == 3 ? t * (4 * t2 - 3) / (s * (4 * s2 - 3))
                            : t * ((((256 * t2 - 576) * t2 + 432) * t2 - 120) * t2 + 9) /
                                  (s * ((((256 * s2 - 576) * s2 + 432) * s2 - 120) * s2 + 9));
}

/* With E the error of X_k in the eigenbasis of B, 1 - B X_{k+1} = r(1 - B X_k) gives
 * E_ij <- r[e_i, e_j] E_ij, a divided difference, to first order; so the error grows by the largest
 * |r'|, and rounding adds, in Frobenius norms and g = m u:
 *   of B X       g |B| |X|, which reaches X through |X| max |q'|, q = (1 - r) / (1 - e)
 *   of q(E)      (p + 4) g |X| sum |q_i| |e|^i, for p products and their sums, where the
 *                coefficients, up to 256 / (4 - 3 d^2)^3.., are bounded by max |q| times 20 p
 *   of B, alpha  u and the reference's 10 m u64, as what B X has. */
typedef struct {
    double growth, largest_q, steepest_q;
} step_bounds;

static step_bounds bounds_of(const ref_iteration *it, double least, double most, double d)
{
    enum { POINTS = 400 };
    step_bounds b = {0};
    long double r_before = 0, q_before = 0, width = (long double)most - least + 1e-6L;
    for (int i = 0; i <= POINTS; i++) {
        long double e = least + width * i / POINTS, h = width / POINTS;
        long double r = map_once(it, e, d), near = map_once(it, e + 1e-7L, d);
        long double q = fabsl(1 - e) > 1e-6L ? (1 - r) / (1 - e) : (near - r) / 1e-7L;
        if (i > 0) {
            b.growth = fmax(b.growth, (double)fabsl((r - r_before) / h));
            b.steepest_q = fmax(b.steepest_q, (double)fabsl((q - q_before) / h));
        }
        b.largest_q = fmax(b.largest_q, (double)fabsl(q));
        r_before = r;
        q_before = q;
    }
    b.growth = fmax(b.growth, 1e-3);
    return b;
}

typedef struct {
    ref_iteration it;
    int64_t m;
    const double *lambda;
    double u, error, d;
} model;

static void model_norms(const model *r, int k, double *b, double *x, double *least, double *most)
{
    *b = *x = 0, *least = INFINITY, *most = -INFINITY;
    for (int64_t i = 0; i < r->m; i++) {
        double mu = r->lambda[i] + r->it.ridge, f = ref_iteration_filter(&r->it, k, mu);
        double e = ref_iteration_error(&r->it, k, mu);
        *b += mu * mu, *x += f * f;
        *least = fmin(*least, e), *most = fmax(*most, e);
    }
    *b = sqrt(*b), *x = sqrt(*x);
}

static void model_start(model *r)
{
    double b, x, least, most, low = r->it.low, high = r->it.high;
    model_norms(r, 0, &b, &x, &least, &most);
    r->error = (4 * r->u + 10 * (double)r->m * 0x1p-53) * x;
    if (r->it.from_matrix)
        low *= low, high *= high;
    r->d = r->it.kind == REF_CHEBYSHEV ? (high - low) / (high + low) : 0;
}

static void model_step(model *r, int k)
{
    double b, x, least, most, g = (double)r->m * r->u;
    double order = r->it.order;
    model_norms(r, k, &b, &x, &least, &most);
    step_bounds s = bounds_of(&r->it, least, most, r->d);
    r->error = s.growth * r->error +
               (g * b * x + (r->u + 10 * (double)r->m * 0x1p-53) * b * x) * x * s.steepest_q +
               20 * order * (order + 4) * g * x * fmax(s.largest_q, 1);
    if (r->it.kind == REF_CHEBYSHEV)
        r->d = r->d == 0 ? 0 : (double)fabsl(map_once(&r->it, r->d, r->d));
}

/* X_0, X_1, .. while the bound says anything; returns the worst ratio, and in *judged one more than
 * the last k judged. */
static double follow(atn_context *context, single *s, atn_inverse_desc desc, int *judged)
{
    int64_t m = s->m;
    double *want = data_allocate(m * m), *lambda = data_allocate(m), worst = 0;
    data_round(s->a.view.dtype, m * m, s->values);
    ref_eigenvalues(m, s->values, lambda, NULL, NULL);
    model r = {.m = m, .lambda = lambda, .u = atn_dtype_roundoff(s->a.view.dtype)};
    ref_iteration_of(&desc, m, s->values, &r.it);
    *judged = 0;
    for (int k = 0; k <= 20; k++) {
        if (k > 0)
            model_step(&r, k - 1);
        if (!fixture_looks_at(k))
            continue;
        desc.iterations = k;
        single_run(context, s, &desc, NULL);
        r.it.low = s->info.interval_low, r.it.high = s->info.interval_high;
        if (k == 0)
            model_start(&r);
        if (s->status < 0 || ref_iteration_matrix(m, s->values, &r.it, k, want) != ATN_OK)
            break;
        ref_difference difference = guarded_compare(&s->x, 0, 0, want);
        if (!(r.error <= 0.1 * difference.want_frobenius))
            break;
        double ratio = difference.frobenius / r.error;
        if (!(ratio <= worst))
            worst = ratio;
        *judged = k + 1;
        int saved = desc.start == ATN_START_IDENTITY && k > 0 ? 2 : 0;
        cr_expect(sound(s) && s->info.iterations == k && s->info.stop == ATN_STOP_ITERATIONS &&
                      s->info.products == kinds[desc.method].products * k - saved,
                  "%s k=%d: %d steps, %ld products, %s", atn_inverse_name(desc.method), k,
                  s->info.iterations, (long)s->info.products, atn_stop_name(s->info.stop));
    }
    free(lambda);
    free(want);
    return worst;
}

/* Method, start, whether Chebyshev's interval is given, dtype, matrix. */
static bool can_be_given(const int *v)
{
    return !v[2] || is_chebyshev(FIRST + v[0]);
}

static void check(atn_context *context, single *s, const int *v, const char *what, int fewest)
{
    atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)(FIRST + v[0]));
    int judged;
    desc.start = (atn_start)v[1];
    if (v[2])
        desc.interval_low = 0.05, desc.interval_high = 1.2 * ref_norm1(s->m, s->values);
    double ratio = follow(context, s, desc, &judged);
    cr_expect(ref_judge(REF_ROUNDING, ratio) == REF_PASS && judged >= fewest,
              "%s %s %s m=%ld start %d interval %d: ratio=%.3g, %d iterates judged", what,
              atn_inverse_name(desc.method), atn_dtype_name(s->a.view.dtype), (long)s->m, v[1],
              v[2], ratio, judged);
}

Test(inverse_polynomial, prescribed_spectra)
{
    static const struct {
        int64_t m;
        double kappa;
    } rows[] = {{1, 10}, {2, 1e3}, {5, 10}, {17, 1e3}, {49, 10}, {49, 1e3}};
    static const int sizes[] = {LAST - FIRST + 1, 2, 2, ATN_CPU_DTYPE_COUNT,
                                sizeof rows / sizeof *rows};
    atn_context *context = fixture_context(1, NULL);
    pairs chosen = pairs_make(5, sizes, can_be_given);
    for (int i = 0; i < chosen.count; i++) {
        const int *v = chosen.combination[i];
        int64_t m = rows[v[4]].m;
        double kappa = rows[v[4]].kappa, lambda[64];
        char what[32];
        single s = single_make((atn_dtype)v[3], m);
        snprintf(what, sizeof what, "kappa=%g", kappa);
        latms_symmetric(m, m < 3 ? 2 : 3, kappa, 7 + v[4], s.values, lambda);
        check(context, &s, v, what, m == 1 ? 1 : v[3] == ATN_F64 ? 4 : kappa > 10 ? 1 : 2);
        single_free(&s);
    }
    pairs_free(&chosen);
    atn_context_free(context);
}

/* The last row is diagonal. */
Test(inverse_polynomial, diagonal_and_known_matrices)
{
    static const struct {
        ref_matrix matrix;
        int64_t m;
        double value;
    } rows[] = {{REF_EQUICORRELATED, 9, 0.5}, {REF_CIRCULANT, 16, 2},    {REF_TWO, 2, 0.8},
                {REF_BLOCKS, 11, 0.7},        {REF_DUPLICATES, 12, 0.3}, {REF_IDENTITY, 7, 0}};
    enum { ROWS = sizeof rows / sizeof *rows, M = 8 };
    static const int sizes[] = {LAST - FIRST + 1, 2, 2, ATN_CPU_DTYPE_COUNT, ROWS + 1};
    atn_context *context = fixture_context(1, NULL);
    pairs chosen = pairs_make(5, sizes, can_be_given);
    for (int i = 0; i < chosen.count; i++) {
        const int *v = chosen.combination[i];
        bool diagonal = v[4] == ROWS;
        single s = single_make((atn_dtype)v[3], diagonal ? M : rows[v[4]].m);
        if (!diagonal)
            ref_matrix_make(rows[v[4]].matrix, s.m, rows[v[4]].value, s.values, NULL);
        for (int k = 0; diagonal && k < M; k++)
            s.values[k * (M + 1)] = pow(2, -k);
        check(context, &s, v, diagonal ? "diagonal" : ref_matrix_name(rows[v[4]].matrix),
              diagonal ? 3 : 1);
        single_free(&s);
    }
    pairs_free(&chosen);
    atn_context_free(context);
}

/* The matrix that is inverted and judged is A + ridge I. */
Test(inverse_polynomial, ridge)
{
    atn_context *context = fixture_context(1, NULL);
    single s = single_make(ATN_F64, 12);
    ref_matrix_make(REF_ONES, 12, 0, s.values, NULL);
    for (int method = FIRST; method <= LAST; method++) {
        atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
        desc.ridge = 0.5;
        desc.iterations = 20;
        single_run(context, &s, &desc, NULL);
        double on = guarded_at(&s.x, 0, 0, 3, 3), off = guarded_at(&s.x, 0, 0, 3, 4);
        cr_expect(s.status == ATN_OK && fabs(on - (2 - 1 / 6.25)) < 1e-13 &&
                      fabs(off + 1 / 6.25) < 1e-13 && s.info.residual < 1e-14,
                  "%s: %s %g %g residual %g", atn_inverse_name(desc.method),
                  atn_status_name(s.status), on, off, s.info.residual);
    }
    single_free(&s);
    atn_context_free(context);
}

/* alpha, where it is given. */
Test(inverse_polynomial, alpha)
{
    atn_context *context = fixture_context(1, NULL);
    single s = single_make(ATN_F64, 2);
    s.values[0] = 1, s.values[3] = 0.5;
    for (int method = FIRST; method < ATN_INVERSE_CHEBYSHEV_2; method++)
        for (int start = 0; start < 2; start++) {
            atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
            desc.start = (atn_start)start;
            desc.alpha = 0.75;
            desc.iterations = 0;
            single_run(context, &s, &desc, NULL);
            cr_expect(s.info.alpha == 0.75 && guarded_at(&s.x, 0, 0, 0, 0) == 0.75 &&
                      guarded_at(&s.x, 0, 0, 1, 1) == (start ? 0.75 : 0.375));
        }
    single_free(&s);
    atn_context_free(context);
}

/* ---- The interval ---- */

/* high is |A|_1; low a Ritz value: in the spectrum's hull, for m <= the steps its lower end. */
Test(inverse_polynomial, estimated_interval)
{
    static const int64_t sizes[] = {1, 2, 3, 8, 16, 17, 40};
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int i = 0; i < 7; i++)
            for (int singular = 0; singular < 2; singular++) {
                double lambda[64], u = atn_dtype_roundoff((atn_dtype)dtype);
                int64_t m = sizes[i];
                single s = single_make((atn_dtype)dtype, m);
                atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_CHEBYSHEV_2);
                if (singular)
                    ref_matrix_make(REF_ONES, m, 0, s.values, lambda);
                else
                    latms_symmetric(m, m < 3 ? 2 : 3, 100, 5, s.values, lambda);
                single_run(context, &s, &desc, NULL);
                double low = s.info.interval_low, high = s.info.interval_high;
                double norm = ref_norm1(m, s.values), floor = sqrt(u) * norm;
                double least = fmax(lambda[m - 1], floor), slack = 50 * (double)m * u * norm;
                cr_expect(fabs(high - norm) <= (double)m * u * norm && low >= least - slack &&
                              low <= lambda[0] + slack &&
                              (m > ATN_INTERVAL_STEPS || low <= least + slack),
                          "m=%ld %d: [%g, %g], expected from %g to %g", (long)m, singular, low,
                          high, least, norm);
                single_free(&s);
            }
    atn_context_free(context);
}

Test(inverse_polynomial, given_interval)
{
    atn_context *context = fixture_context(1, NULL);
    single s = single_make(ATN_F64, 6);
    double lambda[6];
    latms_symmetric(6, 3, 50, 4, s.values, lambda);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_CHEBYSHEV_3);
    desc.interval_low = 0.02;
    desc.interval_high = 1;
    single_run(context, &s, &desc, NULL);
    cr_expect(s.info.interval_low == 0.02 && s.info.interval_high == 1 && s.info.alpha == 2 / 1.02);
    desc.start = ATN_START_MATRIX;
    single_run(context, &s, &desc, NULL);
    cr_expect_float_eq(s.info.alpha, 2 / (1 + 0.0004), 1e-15);
    desc.interval_high = 0; /* |A|_1 */
    desc.interval_low = 100;
    single_run(context, &s, &desc, NULL);
    cr_expect(s.info.interval_low == s.info.interval_high, "low is cut at high");
    static const double bad[][2] = {{2, 1}, {-1, 1}, {NAN, 1}, {0.1, NAN}, {0.1, INFINITY}};
    for (int i = 0; i < 5; i++) {
        desc.interval_low = bad[i][0], desc.interval_high = bad[i][1];
        single_run(context, &s, &desc, NULL);
        cr_expect(s.status == ATN_ERR_VALUE, "[%g, %g]: %s", bad[i][0], bad[i][1],
                  atn_status_name(s.status));
    }
    single_free(&s);
    atn_context_free(context);
}

/* What goes with some methods only. */
Test(inverse_polynomial, constants_out_of_range)
{
    atn_context *context = fixture_context(1, NULL);
    single s = single_make(ATN_F64, 2);
    s.values[0] = s.values[3] = 1;
    for (int method = 1; method < ATN_INVERSE_COUNT; method++) {
        bool polynomial = method >= FIRST && method <= LAST;
        const struct {
            const char *what;
            int start, search, scope;
            double low, alpha;
            bool good;
        } rows[] = {
            {"start", 1, 0, 0, 0, 0, polynomial},
            {"start", 2, 0, 0, 0, 0, false},
            {"search", 0, 1, 0, 0, 0, !polynomial},
            {"scope", 0, 0, 1, 0, 0, !polynomial},
            {"low", 0, 0, 0, 0.5, 0, is_chebyshev(method) && polynomial},
            {"alpha", 0, 0, 0, 0, 0.5, polynomial && !is_chebyshev(method)},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
            desc.start = (atn_start)rows[i].start;
            desc.search = (atn_alpha_search)rows[i].search;
            desc.scope = (atn_alpha_scope)rows[i].scope;
            desc.interval_low = rows[i].low;
            desc.alpha = rows[i].alpha;
            single_run(context, &s, &desc, NULL);
            cr_expect(rows[i].good ? s.status >= 0 : s.status == ATN_ERR_VALUE, "%s, %s: %s",
                      atn_inverse_name(desc.method), rows[i].what, atn_status_name(s.status));
        }
    }
    single_free(&s);
    atn_context_free(context);
}

/* ---- The guard ---- */

static void check_guarded(atn_context *context, single *s, const char *what, double tolerance)
{
    for (int method = FIRST; method < ATN_INVERSE_CHEBYSHEV_2; method++) {
        double residuals[MOST_STEPS + 1], best = INFINITY;
        atn_trace trace = {.capacity = MOST_STEPS + 1,
                           .values = {[ATN_METRIC_RESIDUAL] = residuals}};
        atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
        desc.start = ATN_START_IDENTITY;
        desc.numerator = 1.8;
        desc.iterations = MOST_STEPS;
        single_run(context, s, &desc, &trace);
        for (int k = 0; k < trace.length; k++)
            best = fmin(best, residuals[k]);
        const atn_inverse_info *info = &s->info;
        cr_expect(s->status == ATN_OK && info->stop == ATN_STOP_DIVERGED && sound(s) &&
                      info->returned < trace.length && info->iterations == trace.length - 1 &&
                      trace.length <= MOST_STEPS &&
                      info->products == kinds[method].products * trace.length - 2 &&
                      info->residual <= tolerance &&
                      residuals[info->returned] <= fmax(10 * best, tolerance / 10),
                  "%s %s %s: %s, %s after %d of %d, %ld products, residual %.3g, best %.3g", what,
                  atn_inverse_name(desc.method), atn_dtype_name(s->a.view.dtype),
                  atn_status_name(s->status), atn_stop_name(info->stop), info->returned,
                  trace.length, (long)info->products, info->residual, best);
    }
}

/* A times a power of 2 has the same iterates to the bit, as far as squares under- or overflow too.
 */
Test(inverse_polynomial, powers_of_two_change_nothing)
{
    enum { M = 12 };
    atn_context *context = fixture_context(1, NULL);
    single s = single_make(ATN_F64, M);
    for (int method = FIRST; method <= LAST; method++) {
        atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
        atn_inverse_info first = {0};
        double x[M * M];
        desc.start = ATN_START_IDENTITY;
        desc.iterations = MOST_STEPS;
        static const int powers[] = {0, -700, 700};
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < M * M; k++)
                s.values[k] = k % (M + 1) ? 0 : ldexp(k / M < M - 1 ? 1 + k : -1e-9, powers[i]);
            single_run(context, &s, &desc, NULL);
            for (int k = 0; k < M * M; k++) {
                double entry = ldexp(guarded_at(&s.x, 0, 0, k / M, k % M), powers[i]);
                cr_expect(i == 0 || entry == x[k], "%s 2^%d, %d: %g, %g",
                          atn_inverse_name(desc.method), powers[i], k, entry, x[k]);
                x[k] = entry;
            }
            first = i == 0 ? s.info : first;
            cr_expect(s.info.stop == ATN_STOP_DIVERGED && s.info.returned > 0 &&
                          s.info.returned == first.returned &&
                          s.info.iterations == first.iterations &&
                          s.info.residual == first.residual,
                      "%s 2^%d: %s, X_%d of %d, residual %g; X_%d of %d, %g",
                      atn_inverse_name(desc.method), powers[i], atn_stop_name(s.info.stop),
                      s.info.returned, s.info.iterations, s.info.residual, first.returned,
                      first.iterations, first.residual);
        }
    }
    single_free(&s);
    atn_context_free(context);
}

/* Rank 1, rank m / 2 with duplicated tokens, and an eigenvalue of -u m. */
Test(inverse_polynomial, rank_deficient_from_the_identity)
{
    enum { M = 48 };
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++) {
        double tolerance = sqrt(atn_dtype_roundoff((atn_dtype)dtype));
        single s = single_make((atn_dtype)dtype, M);
        ref_matrix_make(REF_ONES, M, 0, s.values, NULL);
        check_guarded(context, &s, "ones", tolerance);
        ref_matrix_make(REF_DUPLICATES, M, 0, s.values, NULL);
        check_guarded(context, &s, "duplicates", tolerance);
        memset(s.values, 0, M * M * sizeof *s.values);
        for (int i = 0; i < M; i++)
            s.values[i * (M + 1)] = i < M - 1 ? 1 : -M * atn_dtype_roundoff((atn_dtype)dtype);
        check_guarded(context, &s, "negative", tolerance);
        single_free(&s);
    }
    atn_context_free(context);
}

/* From alpha A iterates have no part in the null space of exact duplicates: no guard is needed. */
Test(inverse_polynomial, duplicates_from_the_matrix)
{
    enum { M = 12 };
    atn_context *context = fixture_context(1, NULL);
    single s = single_make(ATN_F64, M);
    double want[M * M];
    ref_matrix_make(REF_DUPLICATES, M, 0, s.values, NULL);
    ref_symmetric_pinv(M, s.values, 1e-8, want, NULL, NULL, NULL);
    for (int method = FIRST; method < ATN_INVERSE_CHEBYSHEV_2; method++) {
        atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
        desc.start = ATN_START_MATRIX;
        desc.iterations = kinds[method].order == 2 ? 7 : kinds[method].order == 3 ? 8 : 3;
        single_run(context, &s, &desc, NULL);
        ref_difference difference = guarded_compare(&s.x, 0, 0, want);
        cr_expect(s.status == ATN_OK && s.info.stop == ATN_STOP_ITERATIONS &&
                      difference.relative_frobenius < 1e-12,
                  "%s: %s off by %g", atn_inverse_name(desc.method), atn_status_name(s.status),
                  difference.relative_frobenius);
    }
    single_free(&s);
    atn_context_free(context);
}

/* An alpha that does not fit, and an interval that leaves the largest eigenvalue out. */
Test(inverse_polynomial, starts_that_do_not_fit)
{
    enum { M = 6 };
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int method = FIRST; method <= LAST; method++)
            for (double size = 1; size < 1e40; size *= 1e13) {
                single s = single_make((atn_dtype)dtype, M);
                ref_matrix_make(REF_EQUICORRELATED, M, 0.5, s.values, NULL);
                atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
                desc.iterations = 60;
                if (is_chebyshev(method))
                    desc.interval_low = 1e-3 / size, desc.interval_high = 0.6 / size;
                else
                    desc.alpha = 3 * size;
                single_run(context, &s, &desc, NULL);
                double most = 0;
                for (int i = 0; i < M * M; i++)
                    most = fmax(most, fabs(guarded_at(&s.x, 0, 0, i / M, i % M)));
                cr_expect(s.status == ATN_NOT_CONVERGED && s.info.stop != ATN_STOP_ITERATIONS &&
                              isfinite(most) && sound(&s),
                          "%s %s size %g: %s, %s, max %g", atn_inverse_name(desc.method),
                          atn_dtype_name((atn_dtype)dtype), size, atn_status_name(s.status),
                          atn_stop_name(s.info.stop), most);
                single_free(&s);
            }
    atn_context_free(context);
}

/* The guard does not stop an iteration that converges, however long it takes: rounding noise is not
 * divergence. */
Test(inverse_polynomial, long_runs_stay)
{
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int method = FIRST; method <= LAST; method++)
            for (int start = 0; start < 2; start++) {
                single s = single_make((atn_dtype)dtype, 20);
                double lambda[20];
                latms_symmetric(20, 3, 30, 4, s.values, lambda);
                atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
                desc.start = (atn_start)start;
                desc.iterations = MOST_STEPS;
                single_run(context, &s, &desc, NULL);
                cr_expect(s.status == ATN_OK && s.info.stop == ATN_STOP_ITERATIONS &&
                              s.info.residual < 100 * atn_dtype_roundoff((atn_dtype)dtype),
                          "%s %s start %d: %s, %s, residual %g", atn_inverse_name(desc.method),
                          atn_dtype_name((atn_dtype)dtype), start, atn_status_name(s.status),
                          atn_stop_name(s.info.stop), s.info.residual);
                single_free(&s);
            }
    atn_context_free(context);
}

/* ---- Statuses and traces ---- */

Test(inverse_polynomial, statuses)
{
    enum { M = 10 };
    atn_context *context = fixture_context(1, NULL);
    single s = single_make(ATN_F64, M);
    double lambda[M];
    for (int method = FIRST; method <= LAST; method++) {
        atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
        latms_symmetric(M, 3, 100, 4, s.values, lambda);
        desc.iterations = 1;
        single_run(context, &s, &desc, NULL);
        cr_expect_eq(s.status, ATN_NOT_CONVERGED);
        desc.tolerance = s.info.residual * 1.001;
        single_run(context, &s, &desc, NULL);
        cr_expect_eq(s.status, ATN_OK);
        s.values[3] = s.values[3 * M] = NAN;
        single_run(context, &s, &desc, NULL);
        cr_expect(s.status == ATN_NONFINITE && s.info.stop == ATN_STOP_NONFINITE &&
                  guarded_at(&s.x, 0, 0, 1, 1) == 0);
        memset(s.values, 0, M * M * sizeof *s.values); /* X = 0 is its pseudo-inverse */
        single_run(context, &s, &desc, NULL);
        cr_expect(s.status == ATN_OK && s.info.residual == 0 && s.info.alpha == 0 &&
                  guarded_at(&s.x, 0, 0, 1, 1) == 0);
    }
    single_free(&s);
    atn_context_free(context);
}

/* One entry per X_0 .. X_T, equal to a run of k steps; updates follow from them. */
Test(inverse_polynomial, traces_and_updates)
{
    enum { M = 9, T = 6 };
    atn_context *context = fixture_context(1, NULL);
    for (int method = FIRST; method <= LAST; method++) {
        single s = single_make(ATN_F64, M);
        double lambda[M], norms[T + 1], x[M * M], before[M * M], best = INFINITY;
        int best_iteration = 0;
        atn_trace trace = {.capacity = T, .values = {[ATN_METRIC_NORM] = norms}};
        latms_symmetric(M, 3, 20, 4, s.values, lambda);
        atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
        desc.iterations = T;
        single_run(context, &s, &desc, &trace);
        cr_expect_eq(s.status, ATN_ERR_SHAPE, "a trace too short by one");
        trace.capacity = T + 1;
        single_run(context, &s, &desc, &trace);
        cr_expect_eq(trace.length, T + 1);
        for (int k = 0; k <= T; k++) {
            desc.iterations = k;
            single_run(context, &s, &desc, NULL);
            guarded_get(&s.x, x);
            double values[M], update = 0;
            ref_eigenvalues(M, x, values, NULL, NULL);
            double norm = fmax(fabs(values[0]), fabs(values[M - 1]));
            cr_expect(fabs(norms[k] - norm) <= 1e-13 * norm, "%s k=%d: %g %g",
                      atn_inverse_name(desc.method), k, norms[k], norm);
            if (k > 0)
                update = ref_compare_f64(M, M, before, M, x, M).relative_frobenius;
            if (k > 0 && update < best)
                best = update, best_iteration = k;
            cr_expect(fabs(s.info.last_update - update) <= 1e-12 + 1e-9 * update, "%s k=%d: %g %g",
                      atn_inverse_name(desc.method), k, s.info.last_update, update);
            memcpy(before, x, sizeof x);
        }
        cr_expect(s.info.best_iteration == best_iteration &&
                      fabs(s.info.best_update - best) <= 1e-12 + 1e-9 * best,
                  "%s: best %g at %d, expected %g at %d", atn_inverse_name(desc.method),
                  s.info.best_update, s.info.best_iteration, best, best_iteration);
        single_free(&s);
    }
    atn_context_free(context);
}

/* The other methods count their products too. */
Test(inverse_polynomial, products_of_other_methods)
{
    atn_context *context = fixture_context(1, NULL);
    single s = single_make(ATN_F64, 5);
    double lambda[5];
    latms_symmetric(5, 3, 4, 4, s.values, lambda);
    for (int method = 1; method < ATN_INVERSE_COUNT; method++) {
        atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
        if (method >= FIRST && method <= LAST)
            continue;
        desc.iterations = 7;
        desc.search_limit = 10;
        single_run(context, &s, &desc, NULL);
        int64_t want = fixture_iterates(method) ? 14 + (method == ATN_INVERSE_NR_SOFTPP) : 0;
        cr_expect_eq(s.info.products, want, "%s: %ld", atn_inverse_name(desc.method),
                     (long)s.info.products);
    }
    single_free(&s);
    atn_context_free(context);
}
