/* SPDX-License-Identifier: BSD-3-Clause */
/* Cut-offs: what is dropped, drawn, halved, stopped or refused at a number, with a case at it or
 * just on either side. Those of blocks and vectors are among the shapes of the other tests. */
#include <criterion/criterion.h>

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"
#include "inverse/stopping.h"

/* ---- Exact inverses ---- */

/* The rank that a method leaves of diag(2, 3/2, 1, ..., 1, last), by all routes: X, X W, and an
 * operator's plan, which keeps the factor, as X W does. */
static int64_t rank_of(atn_context *context, const atn_inverse_desc *desc, atn_dtype dtype,
                       int64_t m, double last, bool apply)
{
    guarded a = guarded_make(dtype, GUARDED_DENSE, 1, 1, m, m);
    guarded x = guarded_make(dtype, GUARDED_DENSE, 1, 1, m, apply ? 1 : m);
    guarded w = guarded_make(dtype, GUARDED_DENSE, 1, 1, m, 1);
    double *values = data_allocate(m * m), *sides = data_allocate(m);
    atn_inverse_info info;
    for (int64_t i = 0; i < m; i++) {
        values[i * m + i] = i == m - 1 ? last : i == 0 ? 2 : i == 1 ? 1.5 : 1;
        sides[i] = (double)(i + 1);
    }
    guarded_set(&a, values);
    guarded_set(&w, sides);
    atn_status status = apply ? atn_inverse_apply(context, desc, &a.view, &w.view, &x.view, &info)
                              : atn_inverse(context, desc, &a.view, &x.view, &info, NULL);
    cr_expect(status == ATN_OK || status == ATN_SINGULAR, "%s", atn_status_name(status));
    double got = guarded_at(&x, 0, 0, m - 1, apply ? 0 : m - 1);
    double want = info.rank < m ? 0 : (apply ? (double)m : 1) / last;
    cr_expect(fabs(got - want) <= 4 * atn_dtype_roundoff(dtype) * want,
              "%s m=%ld rank %ld: the last entry is %g, not %g", atn_inverse_name(desc->method),
              (long)m, (long)info.rank, got, want);
    free(sides);
    free(values);
    guarded_free(&w);
    guarded_free(&x);
    guarded_free(&a);
    return info.rank;
}

static double after(atn_dtype dtype, double x, int steps)
{
    for (; steps > 0; steps--)
        x = dtype == ATN_F64 ? nextafter(x, 4) : (double)nextafterf((float)x, 4);
    return x;
}

/* An eigenvalue or a pivot at the cut is dropped, one above it is kept: for a given rcond and for m
 * u, up to 400 rows by our own pivoted Cholesky and from 401 on by LAPACK's, formed and applied.
 * LAPACK scales what eig divides and conquers (from 26 rows on), and has its own rounding there. */
Test(cutoffs, eigenvalues_and_pivots)
{
    static const struct {
        atn_inverse_method method;
        int64_t m;
        bool apply;
        int steps; /* that are above the cut for certain */
    } routes[] = {
        {ATN_INVERSE_EIG, 5, false, 1},
        {ATN_INVERSE_EIG, 5, true, 1},
        {ATN_INVERSE_EIG, 60, true, 4},
        {ATN_INVERSE_PIVOTED_CHOLESKY, 5, false, 1},
        {ATN_INVERSE_PIVOTED_CHOLESKY, 5, true, 1},
        {ATN_INVERSE_PIVOTED_CHOLESKY, 400, true, 1},
        {ATN_INVERSE_PIVOTED_CHOLESKY, 401, true, 1},
    };
    atn_context *context;
    cr_assert_eq(atn_context_create(&(atn_context_options){.threads = 1}, &context), ATN_OK);
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
            for (int given = 0; given < 2; given++) {
                int64_t m = routes[i].m;
                atn_inverse_desc desc = atn_inverse_defaults(routes[i].method);
                double u = atn_dtype_roundoff((atn_dtype)dtype);
                double cut = 2 * (given ? 0x1p-9 : (double)m * u);
                desc.rcond = given ? 0x1p-9 : -1;
                int steps = routes[i].steps > 1 ? routes[i].steps : 0;
                int64_t at = rank_of(context, &desc, (atn_dtype)dtype, m, cut * (1 - 2 * u * steps),
                                     routes[i].apply);
                int64_t above =
                    rank_of(context, &desc, (atn_dtype)dtype, m,
                            after((atn_dtype)dtype, cut, routes[i].steps), routes[i].apply);
                cr_expect(at == m - 1 && above == m,
                          "%s m=%ld %s rcond=%g: rank %ld at the cut, "
                          "%ld above",
                          atn_inverse_name(desc.method), (long)m, atn_dtype_name((atn_dtype)dtype),
                          desc.rcond, (long)at, (long)above);
            }
    atn_context_free(context);
}

/* With an rcond of 1 no pivot is above the cut; the first is kept, as LAPACK keeps it. */
Test(cutoffs, the_first_pivot)
{
    static const int64_t sizes[] = {5, 400, 401};
    atn_context *context;
    cr_assert_eq(atn_context_create(&(atn_context_options){.threads = 1}, &context), ATN_OK);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_PIVOTED_CHOLESKY);
    desc.rcond = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t rank = rank_of(context, &desc, ATN_F64, sizes[i], 1, true);
        cr_expect_eq(rank, 1, "m=%ld: rank %ld", (long)sizes[i], (long)rank);
    }
    atn_context_free(context);
}

/* The plan's factor has the rcond of its description: landmarks of which one is nearly another. */
Test(cutoffs, rcond_of_an_operator)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_EIG, ATN_INVERSE_PIVOTED_CHOLESKY};
    enum { N = 6, M = 3 };
    double q[N] = {0, 2, 0.25, -1, 3, 0.5}, v[N] = {1, -2, 3, 0.5, -1.5, 2}, y[N];
    atn_context *context = fixture_context(1, NULL);
    if (fixture_device() == ATN_CPU)
        for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
            for (int k = 0; k < 2; k++)
                for (int kept = 0; kept < 2; kept++) {
                    /* 1 - exp(-2 s / 16) of the third landmark: 0.06 of the pivot, 0.03 of l_max */
                    atn_attention_desc desc = atn_attention_defaults((atn_operator)op, ATN_F64);
                    atn_attention_shape shape = {1, 1, N, 1, 1, 0};
                    atn_inverse_info inverse;
                    atn_attention_info info = {.inverses = &inverse};
                    atn_plan *plan;
                    desc.inverse = atn_inverse_defaults(methods[k]);
                    desc.gradient = ATN_GRADIENT_CLOSED;
                    desc.inverse.rcond = kept ? 0.01 : 0.2;
                    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = M};
                    atn_tensor tq = atn_tensor_dense(q, ATN_F64, 1, 1, N, 1), tv = tq, ty = tq;
                    tv.data = v, ty.data = y;
                    cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
                    atn_status status = atn_attention_forward(
                        plan, &(atn_attention_inputs){.q = &tq, .v = &tv}, &ty, &info);
                    cr_expect(status >= 0 && inverse.rank == (kept ? M : M - 1),
                              "%s %s rcond=%g: %s, rank %ld", atn_operator_get(desc.op)->name,
                              atn_inverse_name(methods[k]), desc.inverse.rcond,
                              atn_status_name(status), (long)inverse.rank);
                    atn_plan_free(plan);
                }
    atn_context_free(context);
}

/* Nystromformer's pseudo-inverse of a 2 x 2 matrix of known singular values, the smaller of which
 * is a millionth above or below rcond times the larger. */
Test(cutoffs, rcond_of_nystromformer)
{
    attention_choice choice = {.op = ATN_NYSTROMFORMER,
                               .variant = 2,
                               .dtype = ATN_F64,
                               .shape = {1, 1, 6, 3, 2, 0},
                               .cross = true,
                               .landmarks = 2,
                               .seed = 74};
    atn_context *context = fixture_context(1, NULL);
    attention_case c = attention_case_make(&choice);
    double a[2][2], y[2][12], want[12];
    for (int i = 0; i < 2; i++) {
        double sum = 0;
        for (int j = 0; j < 2; j++) {
            double dot = 0;
            for (int col = 0; col < 3; col++) {
                double query = 0, key = 0;
                for (int t = 0; t < 3; t++) {
                    query += c.q[(3 * i + t) * 3 + col] / 3;
                    key += c.k[(3 * j + t) * 3 + col] / 3;
                }
                dot += query * key;
            }
            a[i][j] = exp(dot / sqrt(3));
            sum += a[i][j];
        }
        a[i][0] /= sum, a[i][1] /= sum;
    }
    double squares = a[0][0] * a[0][0] + a[0][1] * a[0][1] + a[1][0] * a[1][0] + a[1][1] * a[1][1];
    double det = fabs(a[0][0] * a[1][1] - a[0][1] * a[1][0]);
    double larger = sqrt((squares + sqrt(squares * squares - 4 * det * det)) / 2);
    double ratio = det / larger / larger;
    cr_assert_eq(c.desc.nystromformer.landmarks, 2);
    for (int kept = 0; kept < 2; kept++) {
        c.desc.nystromformer.rcond = ratio * (kept ? 1 - 1e-6 : 1 + 1e-6);
        c.reference.nystromformer.rcond = c.desc.nystromformer.rcond;
        attention_run r = attention_run_make(&c, 0);
        cr_expect_eq(attention_run_forward(&r, context), ATN_OK);
        cr_expect_eq(attention_expect(&c, want), ATN_OK);
        guarded_get(&r.out, y[kept]);
        double apart = judge_relative(12, y[kept], want);
        cr_expect(apart <= JUDGE_LAW, "%s: off by %.3g", kept ? "kept" : "dropped", apart);
        attention_run_free(&r);
    }
    cr_expect(judge_relative(12, y[0], y[1]) > 0.01, "the smaller value is of no account: %.3g",
              judge_relative(12, y[0], y[1]));
    attention_case_free(&c);
    atn_context_free(context);
}

/* An rcond of 0 keeps what is not 0, here singular values that are noise, which none drops; one of
 * 1 drops all of them. */
Test(cutoffs, no_rcond_of_nystromformer)
{
    attention_choice choice = {.op = ATN_NYSTROMFORMER,
                               .variant = 2,
                               .dtype = ATN_F64,
                               .shape = {1, 1, 64, 1, 2, 0},
                               .cross = true,
                               .landmarks = 16,
                               .seed = 75};
    atn_context *context = fixture_context(1, NULL);
    attention_case c = attention_case_make(&choice);
    double y[3][128];
    for (int given = 0; given < 3; given++) {
        c.desc.nystromformer.rcond = given - 1;
        attention_run r = attention_run_make(&c, 0);
        cr_expect_eq(attention_run_forward(&r, context), ATN_OK);
        guarded_get(&r.out, y[given]);
        attention_run_free(&r);
    }
    cr_expect(judge_relative(128, y[1], y[0]) > 1e-3, "%.3g", judge_relative(128, y[1], y[0]));
    for (int i = 0; i < 128; i++)
        cr_expect_eq(y[2][i], 0, "%d: %g", i, y[2][i]);
    attention_case_free(&c);
    atn_context_free(context);
}

/* ---- Iterations ---- */

/* |I - alpha A|_1 = 1 with alpha = 2 and A = I: at the limit nothing is halved, below it once is
 * enough, as it is for A^2; the cap is the largest number of halvings. */
Test(cutoffs, halvings)
{
    static const struct {
        double limit;
        int cap, halvings;
        atn_stop stop;
    } rows[] = {{1, 0, 0, ATN_STOP_ITERATIONS},
                {0x1.fffffffffffffp-1, 1, 1, ATN_STOP_ITERATIONS},
                {0x1.fffffffffffffp-1, 0, 0, ATN_STOP_NO_ALPHA},
                {0, 1, 1, ATN_STOP_ITERATIONS}};
    atn_context *context = fixture_context(1, NULL);
    for (int search = ATN_SEARCH_MATRIX; search <= ATN_SEARCH_SQUARE; search++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            guarded a = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, 3, 3), x = a;
            x = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, 3, 3);
            const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
            atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_ADAPTIVE);
            atn_inverse_info info;
            guarded_set(&a, identity);
            desc.search = (atn_alpha_search)search;
            desc.search_limit = rows[i].limit;
            desc.search_cap = rows[i].cap;
            fixture_inverse(context, &desc, &a, &x, &info, NULL);
            cr_expect(info.halvings == rows[i].halvings && info.stop == rows[i].stop,
                      "search %d, limit %.17g, cap %d: %d halvings, %s", search, rows[i].limit,
                      rows[i].cap, info.halvings, atn_stop_name(info.stop));
            guarded_free(&x);
            guarded_free(&a);
        }
    atn_context_free(context);
}

/* A residual equal to the tolerance is within it. */
Test(cutoffs, tolerance)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_HYPERPOWER_3,
                                                 ATN_INVERSE_EIG, ATN_INVERSE_CHOLESKY};
    static const double values[9] = {4, 1, 0.5, 1, 3, 0.25, 0.5, 0.25, 2};
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        guarded a = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, 3, 3);
        guarded x = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, 3, 3);
        atn_inverse_desc desc = atn_inverse_defaults(methods[i]);
        atn_inverse_info info;
        guarded_set(&a, values);
        desc.iterations = 3;
        fixture_inverse(context, &desc, &a, &x, &info, NULL);
        desc.tolerance = info.residual;
        atn_status at = fixture_inverse(context, &desc, &a, &x, &info, NULL);
        desc.tolerance = nextafter(info.residual, 0);
        atn_status below = fixture_inverse(context, &desc, &a, &x, &info, NULL);
        cr_expect(info.residual > 0 && at == ATN_OK &&
                      below == (i < 2 ? ATN_NOT_CONVERGED : ATN_SINGULAR),
                  "%s: residual %g, %s at it and %s below", atn_inverse_name(methods[i]),
                  info.residual, atn_status_name(at), atn_status_name(below));
        guarded_free(&x);
        guarded_free(&a);
    }
    atn_context_free(context);
}

/* The rule that ends an iteration: what rounding explains ends it after four steps that were no
 * better or at over ten times the smallest residual; what it does not explain at over ten times. */
Test(cutoffs, stopping)
{
    static const struct {
        const char *what;
        double residuals[7], noise;
        int count, best;
        atn_stop stop;
    } runs[] = {
        {"ten times", {1, 10}, 0, 2, 0, ATN_STOP_ITERATIONS},
        {"over ten times", {1, 0x1.4000000000001p3}, 0, 2, 0, ATN_STOP_DIVERGED},
        {"over ten times, explained", {1, 0x1.4000000000001p3}, 11, 2, 0, ATN_STOP_ROUNDING},
        {"ten times, explained", {1, 10}, 10, 2, 0, ATN_STOP_ITERATIONS},
        {"three steps", {1, 2, 2, 2}, 2, 4, 0, ATN_STOP_ITERATIONS},
        {"four steps", {1, 2, 2, 2, 2}, 2, 5, 0, ATN_STOP_ROUNDING},
        {"four steps, the last above rounding", {1, 2, 2, 2, 2.5}, 2, 5, 0, ATN_STOP_ITERATIONS},
        {"four equal ones", {1, 1, 1, 1, 1}, 1, 5, 0, ATN_STOP_ROUNDING},
        {"one better between", {2, 3, 3, 1, 2, 2, 2}, 3, 7, 3, ATN_STOP_ITERATIONS},
        {"not a number", {1, NAN}, 0, 2, 0, ATN_STOP_DIVERGED},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        core_stopping s = {INFINITY, 0};
        atn_stop stop = ATN_STOP_ITERATIONS;
        int k = 0;
        for (; k < runs[i].count && stop == ATN_STOP_ITERATIONS; k++)
            stop = core_stopping_take(&s, k, runs[i].residuals[k], runs[i].noise);
        cr_expect(stop == runs[i].stop && k == runs[i].count && s.best == runs[i].best,
                  "%s: %s after %d, X_%d", runs[i].what, atn_stop_name(stop), k, s.best);
    }
}

/* Norms whose squares leave f64's range are scaled, from 2^-450 down and from 2^500 up: a power of
 * two in A is one in X, and the residual keeps its bits. */
Test(cutoffs, norms_at_the_end_of_the_range)
{
    static const int powers[] = {-453, -452, -451, -450, -449, 497, 498, 499, 500, 501};
    static const double values[9] = {4, 1, 0.5, 1, 3, 0.25, 0.5, 0.25, 2};
    atn_context *context = fixture_context(1, NULL);
    guarded a = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, 3, 3);
    guarded x = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, 3, 3);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NEWTON_SCHULZ);
    double first[9], residual = 0;
    desc.iterations = 4;
    for (size_t i = 0; i <= sizeof powers / sizeof *powers; i++) {
        int power = i == 0 ? 0 : powers[i - 1];
        double scaled[9], got[9];
        atn_inverse_info info;
        for (int k = 0; k < 9; k++)
            scaled[k] = ldexp(values[k], power);
        guarded_set(&a, scaled);
        fixture_inverse(context, &desc, &a, &x, &info, NULL);
        guarded_get(&x, got);
        residual = i == 0 ? info.residual : residual;
        for (int k = 0; k < 9; k++) {
            got[k] = ldexp(got[k], power);
            first[k] = i == 0 ? got[k] : first[k];
        }
        cr_expect(memcmp(got, first, sizeof got) == 0 && info.residual == residual && residual > 0,
                  "2^%d: residual %g, %g at 2^0", power, info.residual, residual);
    }
    guarded_free(&x);
    guarded_free(&a);
    atn_context_free(context);
}

/* A step of Newton-Schulz on A = 1 squares E. From alpha = 1 + e, |E|^2 grows by e^2: by less than
 * 1 % the step is kept, by more X_0 is. */
Test(cutoffs, guard_of_the_polynomial_iterations)
{
    atn_context *context = fixture_context(1, NULL);
    for (int side = -1; side <= 1; side += 2) {
        double a = 1, x, e = sqrt(1.01 * (1 + side * 0x1p-20));
        atn_tensor ta = atn_tensor_dense(&a, ATN_F64, 1, 1, 1, 1);
        atn_tensor tx = atn_tensor_dense(&x, ATN_F64, 1, 1, 1, 1);
        atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NEWTON_SCHULZ);
        atn_inverse_info info;
        desc.iterations = 1;
        desc.alpha = 1 + e;
        cr_expect_eq(atn_inverse(context, &desc, &ta, &tx, &info, NULL), ATN_NOT_CONVERGED);
        cr_expect(info.stop == (side < 0 ? ATN_STOP_ITERATIONS : ATN_STOP_DIVERGED) &&
                      info.returned == (side < 0),
                  "e^2 = %.9g: %s, step %d", e * e, atn_stop_name(info.stop), info.returned);
        cr_expect_float_eq(x, side < 0 ? 1 - e * e : 1 + e, 1e-12);
    }
    atn_context_free(context);
}

/* ---- Choices ---- */

/* With a scale of k 2^-53 the residual of a token at distance 1 from the first landmark is k 2^-52.
 * Two landmarks: 8 of them are rounding, m 2^-50, and the earlier token at distance 1/2 is taken,
 * for which there is nothing either; 9 are not. */
Test(cutoffs, residuals_of_choices)
{
    static const double uniforms[2] = {0, 0.5};
    static const atn_sampling_kind kinds[] = {ATN_SAMPLING_RPCHOLESKY, ATN_SAMPLING_GREEDY};
    double tokens[3] = {3, 3.5, 4}, l[2];
    atn_context *context = fixture_context(1, NULL);
    for (int k = 0; k < 2; k++)
        for (int units = 8; units <= 9; units++) {
            atn_sampling s = {.kind = kinds[k],
                              .count = 2,
                              .uniforms = uniforms,
                              .uniform_count = 2,
                              .scale = units * 0x1p-53};
            atn_tensor q = atn_tensor_dense(tokens, ATN_F64, 1, 1, 3, 1);
            atn_tensor out = atn_tensor_dense(l, ATN_F64, 1, 1, 2, 1);
            cr_expect_eq(fixture_sample(context, &s, &q, &out), ATN_OK);
            cr_expect(l[0] == 3 && l[1] == (units == 8 ? 3.5 : 4), "%s, %d units: %g and %g",
                      atn_sampling_name(kinds[k]), units, l[0], l[1]);
        }
    atn_context_free(context);
}

/* A Lloyd step gives a token as far from two centroids to the first, and to the second from the
 * next number on. */
Test(cutoffs, the_nearest_centroid)
{
    atn_context *context = fixture_context(1, NULL);
    for (int beyond = 0; beyond < 2; beyond++) {
        double tokens[3] = {1, 5, beyond ? nextafter(3, 4) : 3}, l[2];
        double drawn[2] = {0, 0.2}; /* 16 of 20 lie with token 1 */
        atn_sampling s = {.kind = ATN_SAMPLING_KMEANS,
                          .count = 2,
                          .uniforms = drawn,
                          .uniform_count = 2,
                          .steps = 1};
        atn_tensor q = atn_tensor_dense(tokens, ATN_F64, 1, 1, 3, 1);
        atn_tensor out = atn_tensor_dense(l, ATN_F64, 1, 1, 2, 1);
        cr_expect_eq(fixture_sample(context, &s, &q, &out), ATN_OK);
        cr_expect(beyond ? l[0] == 1 && l[1] == (5 + tokens[2]) / 2 : l[0] == 2 && l[1] == 5,
                  "%.17g: %.17g and %.17g", tokens[2], l[0], l[1]);
    }
    atn_context_free(context);
}

/* ---- Sizes that BLAS can count, and what memory holds ---- */

typedef struct {
    const char *what;
    atn_operator op;
    int variant;
    int64_t most;
    void (*set)(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value);
    atn_status beyond;
} size_limit;

static double element;

static void set_dim(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    (void)desc;
    shape->dim = value;
}

static void set_value_dim(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    (void)desc;
    shape->value_dim = value;
}

static void set_projected(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    desc->linformer.e = atn_tensor_dense(&element, ATN_F64, 1, 1, shape->tokens, value);
}

static void set_features(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    desc->performer.projection = desc->rff.projection =
        atn_tensor_dense(&element, ATN_F64, 1, 1, value, shape->dim);
}

static void set_segments(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    shape->tokens = INT_MAX;
    desc->nystromformer.landmarks = value;
}

static void set_landmarks(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    shape->tokens = INT_MAX;
    desc->inverse = atn_inverse_defaults(ATN_INVERSE_CHOLESKY);
    desc->sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = value};
}

static void set_stride(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    shape->tokens = value * value;
    desc->sampling = (atn_sampling){
        .kind = ATN_SAMPLING_CONV,
        .height = value,
        .width = value,
        .stride = value,
        .weights = atn_tensor_dense(&element, ATN_F64, 1, shape->dim, shape->dim, value * value)};
}

static void set_tokens(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    shape->tokens = value;
    desc->lsh.chunk = 1;
    desc->lsh.rotations = atn_tensor_dense(&element, ATN_F64, 1, 1, shape->dim, 1);
}

static void set_buckets(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    desc->lsh.chunk = 1;
    desc->lsh.rotations = atn_tensor_dense(&element, ATN_F64, 1, 1, shape->dim, value);
}

static void set_rcond(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    set_landmarks(desc, shape, 2);
    desc->inverse.rcond = (double)value;
}

static void set_iterations(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    set_landmarks(desc, shape, 2);
    desc->inverse.iterations = (int)value;
}

static void set_nystrom(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    (void)shape;
    desc->nystromformer.landmarks = 2;
    desc->nystromformer.iterations = (int)value;
}

static void set_search_cap(atn_attention_desc *desc, atn_attention_shape *shape, int64_t value)
{
    set_landmarks(desc, shape, 2);
    desc->inverse = atn_inverse_defaults(ATN_INVERSE_NR_ADAPTIVE);
    desc->inverse.search_cap = (int)value;
}

/* The largest can be planned (its cost is computed without memory), the next one is refused. */
Test(cutoffs, largest_sizes)
{
    static const size_limit limits[] = {
        {"dim", ATN_SIMA, 5, INT_MAX / 64, set_dim, ATN_ERR_SHAPE},
        {"value_dim", ATN_SOFTMAX, 0, INT_MAX / 64, set_value_dim, ATN_ERR_SHAPE},
        {"columns of E", ATN_LINFORMER, 0, INT_MAX / 64, set_projected, ATN_ERR_SHAPE},
        {"features", ATN_PERFORMER, 0, INT_MAX / 64, set_features, ATN_ERR_SHAPE},
        {"features", ATN_RFF, 0, INT_MAX / 64, set_features, ATN_ERR_SHAPE},
        {"segments", ATN_NYSTROMFORMER, 2, INT_MAX / 256, set_segments, ATN_ERR_SHAPE},
        {"landmarks", ATN_SOFT, 0, INT_MAX / 64, set_landmarks, ATN_ERR_SHAPE},
        {"a window", ATN_SOFT, 0, 26754, set_stride, ATN_ERR_SHAPE}, /* 3 k^2 < 2^31 */
        {"tokens to sort", ATN_LSH, 0, INT32_MAX, set_tokens, ATN_ERR_SHAPE},
        {"pairs of buckets", ATN_LSH, 0, INT32_MAX / 2, set_buckets, ATN_ERR_SHAPE},
        {"rcond", ATN_SOFT, 0, 1, set_rcond, ATN_ERR_VALUE},
        {"iterations", ATN_SOFT, 0, INT_MAX - 1, set_iterations, ATN_ERR_VALUE},
        {"iterations", ATN_NYSTROMFORMER, 0, INT_MAX - 1, set_nystrom, ATN_ERR_VALUE},
        {"halvings", ATN_SOFT, 0, 2000, set_search_cap, ATN_ERR_VALUE},
    };
    atn_context *context;
    cr_assert_eq(atn_context_create(&(atn_context_options){.threads = 1}, &context), ATN_OK);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int beyond = 0; beyond < 2; beyond++) {
            const size_limit *l = &limits[i];
            atn_attention_desc desc = atn_attention_variant(l->op, l->variant, ATN_F64);
            atn_attention_shape shape = {1, 1, 12, 3, 2, 0};
            atn_cost cost;
            l->set(&desc, &shape, l->most + beyond);
            atn_status status = atn_attention_cost(context, &desc, &shape, &cost);
            cr_expect_eq(status, beyond ? l->beyond : ATN_OK, "%s, %s of %ld: %s (%s)",
                         atn_operator_get(l->op)->name, l->what, (long)(l->most + beyond),
                         atn_status_name(status), beyond || status ? atn_last_error(context) : "");
        }
    atn_context_free(context);
}
