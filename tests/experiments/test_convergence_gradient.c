/* SPDX-License-Identifier: BSD-3-Clause */
/* convergence/gradient: its rows against the closed form in A's eigenbasis, and against what theory
 * says of converged and unconverged modes. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include <linear_algebra.h>
#include <newton.h>

#include "common/experiment.h"
#include "common/random.h"
#include "common/report.h"
#include "convergence/bottleneck.h"
#include "convergence/gradient.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(convergence_gradient, .init = scratch_begin, .fini = scratch_end);

static const experiment *const e = &convergence_gradient;

static int prepare(program_options *s, const char *options, void **state, int64_t *points)
{
    cr_assert_eq(parse_options(s, e, options), EXIT_PASS);
    return e->prepare(s, state, points);
}

/* ---- The closed form ---- */

enum { M = 49, SIZE = M * M };

/* A's eigenvalues and G in its eigenbasis, for the first sample of an input at stage 3, f64. */
typedef struct {
    double norm1, lambda[M], rotated[SIZE];
} spectrum;

static void find_spectrum(const char *options, spectrum *x)
{
    program_options s;
    void *state;
    int64_t points;
    static const int64_t stages[] = {3, 0};
    stage_defaults defaults = {NULL, stages, false};
    landmark_sweep draws;
    double *tokens, g[SIZE], *w = must_allocate(SIZE, sizeof *w);
    atn_context *context;
    cr_assert_eq(prepare(&s, options, &state, &points), EXIT_PASS);
    cr_assert_eq(landmark_sweep_open_stages(&draws, &s, &defaults), EXIT_PASS);
    cr_assert_eq(atn_context_create(NULL, &context), ATN_OK);
    const landmark_point *p = &draws.points[0];
    cr_assert_eq(p->m, M);
    bottleneck b = bottleneck_create(ATN_F64, M);
    cr_assert_eq(landmark_sweep_tokens(&draws, p, &tokens), EXIT_PASS);
    cr_assert_eq(bottleneck_from_tokens(&b, &draws, p, context, tokens, NULL), EXIT_PASS);
    cr_assert_eq(ref_eigenvalues(M, b.exact, x->lambda, w, NULL), ATN_OK);
    x->norm1 = ref_norm1(M, b.exact);
    random_stream *r = random_create(p->seed, "gradient", (uint64_t)p->sample);
    for (int i = 0; i < M; i++)
        for (int j = 0; j <= i; j++)
            g[i * M + j] = g[j * M + i] = (double)(float)random_normal(r);
    random_free(r);
    double *half = must_allocate(SIZE, sizeof *half);
    for (int i = 0; i < SIZE; i++) { /* G W */
        half[i] = 0;
        for (int j = 0; j < M; j++)
            half[i] += g[i / M * M + j] * w[j * M + i % M];
    }
    for (int i = 0; i < SIZE; i++) { /* W^T (G W) */
        x->rotated[i] = 0;
        for (int j = 0; j < M; j++)
            x->rotated[i] += w[j * M + i / M] * half[j * M + i % M];
    }
    free(half);
    free(w);
    free(tokens);
    bottleneck_free(&b);
    atn_context_free(context);
    landmark_sweep_close(&draws);
    e->release(state);
    options_free(&s);
}

/* f_k[x, y]; where x and y are close, the derivative between them, off by the square of their
 * distance. */
static double divided_difference(double alpha, int k, double x, double y)
{
    double middle = (x + y) / 2, r = 1 - alpha * middle * middle, steps = ldexp(1, k);
    if (fabs(x - y) > 1e-5 * middle)
        return (ref_filter(alpha, k, x) - ref_filter(alpha, k, y)) / (x - y);
    return 2 * alpha * steps * pow(r, steps - 1) - ref_filter(alpha, k, middle) / middle;
}

/* eq12_error and eq12_cosine from f_k alone. */
static void closed_form(const spectrum *x, double alpha, double ridge, int k, double *error,
                        double *cosine)
{
    double difference = 0, product = 0, eq12 = 0, exact = 0;
    for (int i = 0; i < SIZE; i++) {
        double first = x->lambda[i / M] + ridge, second = x->lambda[i % M] + ridge;
        double want = divided_difference(alpha, k, first, second) * x->rotated[i];
        double got = -ref_filter(alpha, k, first) * ref_filter(alpha, k, second) * x->rotated[i];
        difference += (got - want) * (got - want);
        product += got * want;
        eq12 += got * got;
        exact += want * want;
    }
    *error = sqrt(difference / exact);
    *cosine = product / sqrt(eq12 * exact);
}

Test(convergence_gradient, rows_are_the_closed_form)
{
    static const char *const inputs[] = {"smooth", "iid", "clusters"};
    int64_t compared = 0;
    for (int i = 0; i < 3; i++) {
        char options[128];
        snprintf(options, sizeof options,
                 "--input %s --samples 1 --stage 3 --dtype f64 --variant nr-paper,nr-soft",
                 inputs[i]);
        spectrum *x = must_allocate(1, sizeof *x);
        find_spectrum(options, x);
        table *t = run_first_points(e, options, INT64_MAX);
        cr_expect_eq(table_rows(t), 2 * 20);
        for (int64_t row = 0; row < table_rows(t); row++) {
            bool soft = cell_is(t, row, "variant", "nr-soft");
            double alpha = (soft ? 1.8 : 2) / (x->norm1 * x->norm1), error, cosine;
            int k = (int)cell_integer(t, row, "iteration");
            closed_form(x, alpha, soft ? 0.01 : 0, k, &error, &cosine);
            double got = cell_real(t, row, "eq12_error");
            /* alpha is good to a few u, and f_k magnifies that by up to 2^k. */
            cr_expect(fabs(got - error) <= 1e-7 * error + 1e-9, "%s %s k=%d: %.10g, %.10g",
                      inputs[i], soft ? "nr-soft" : "nr-paper", k, got, error);
            cr_expect(fabs(cell_real(t, row, "eq12_cosine") - cosine) <= 1e-7,
                      "%s k=%d: %.10g, %.10g", inputs[i], k, cell_real(t, row, "eq12_cosine"),
                      cosine);
            compared += error > 1e-6;
        }
        table_free(t);
        free(x);
    }
    cr_expect(compared >= 60, "%" PRId64, compared);
}

/* Converged: Eq. 12 is exact. Not converged: its error is as large as the derivative, and its sign
 * is wrong; backpropagation through the steps is right in both cases. */
Test(convergence_gradient, theory)
{
    table *t =
        run_first_points(e, "--input photos,smooth,iid:0.3 --samples 1 --stage 1,3", INT64_MAX);
    int64_t rows = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        bool f64 = cell_is(t, row, "dtype", "f64"), smooth = cell_is(t, row, "input", "smooth");
        double error = cell_real(t, row, "eq12_error");
        double steps = cell_real(t, row, "through_steps_error");
        cr_expect(steps <= (f64 ? 1e-12 : 1e-3), "row %" PRId64 ": %g", row, steps);
        if (cell_integer(t, row, "iteration") != 20)
            continue;
        rows++;
        if (smooth) /* condition numbers of 12 to 14 */
            cr_expect(error <= (f64 ? 1e-14 : 1e-5) && cell_real(t, row, "eq12_cosine") > 0.999999,
                      "row %" PRId64 ": %g", row, error);
        else
            cr_expect(error >= 0.9 && error <= 1.8 && cell_real(t, row, "eq12_cosine") < 0,
                      "row %" PRId64 ": %g, cosine %g", row, error,
                      cell_real(t, row, "eq12_cosine"));
    }
    cr_expect_eq(rows, 3 * 2 * 3 * 2);
    table_free(t);
}

/* Lengths 5 and 10, a product of 48. Without X_k there is nothing to compare. */
Test(convergence_gradient, errors_by_hand)
{
    const float narrow[] = {3, 4};
    const double wide[] = {3, 4}, want[] = {8, 6};
    for (int f64 = 0; f64 < 2; f64++) {
        atn_dtype dtype = f64 ? ATN_F64 : ATN_F32;
        const void *got = f64 ? (const void *)wide : narrow;
        for (int taken = 6; taken < 9; taken++) {
            gradient_error c = gradient_compare(2, dtype, got, want, 7, taken);
            if (taken < 7)
                cr_expect(isnan(c.error) && isnan(c.cosine), "%g %g", c.error, c.cosine);
            else
                cr_expect(close_to(c.error, sqrt(29) / 10, 1e-15) &&
                              close_to(c.cosine, 48.0 / 50, 1e-15),
                          "%g %g", c.error, c.cosine);
        }
    }
}

/* The iteration from a start that diverges: rows say nan, and the run goes on. */
Test(convergence_gradient, overflow_is_nan)
{
    table *t =
        run_first_points(e,
                         "--input constant --samples 1 --stage 3 --dtype f32 --variant nr-paper "
                         "--iterations 160",
                         INT64_MAX);
    int64_t lost = 0;
    cr_expect_eq(table_rows(t), 160);
    for (int64_t row = 0; row < table_rows(t); row++)
        lost += isnan(cell_real(t, row, "eq12_error")) != 0;
    cr_expect(lost > 0 && lost < 160, "%" PRId64, lost);
    table_free(t);
}

/* Equal tokens: A is all ones, and rows of one start differ in G alone. */
Test(convergence_gradient, every_sample_and_seed_has_its_direction)
{
    table *t = run_first_points(e,
                                "--input constant --samples 2 --seed 1,2 --stage 3 --dtype f64 "
                                "--variant nr-soft --iterations 1",
                                INT64_MAX);
    cr_assert_eq(table_rows(t), 4);
    for (int64_t row = 0; row < 4; row++)
        for (int64_t other = 0; other < row; other++)
            cr_expect_neq(cell_real(t, row, "eq12_error"), cell_real(t, other, "eq12_error"),
                          "rows %" PRId64 " and %" PRId64, other, row);
    table_free(t);
}

Test(convergence_gradient, condition_is_that_of_all_eigenvalues)
{
    write_pair_tokens("pair.npy");
    table *t = run_first_points(e, "--input pair.npy --scale 1 --variant nr-soft --iterations 1",
                                INT64_MAX);
    cr_assert_eq(table_rows(t), 2);
    for (int64_t row = 0; row < 2; row++)
        cr_expect(close_to(cell_real(t, row, "condition"), 2e6, 0.1), "%g",
                  cell_real(t, row, "condition"));
    table_free(t);
}

Test(convergence_gradient, only_newton_variants_have_steps)
{
    static const char *const variants[] = {"eig", "cholesky", "pivoted-cholesky", "nr"};
    for (int i = 0; i < 4; i++) {
        program_options s;
        void *state = NULL;
        int64_t points;
        char options[64];
        snprintf(options, sizeof options, "--variant nr-soft,%s", variants[i]);
        capture();
        cr_expect_eq(prepare(&s, options, &state, &points), EXIT_USAGE);
        cr_expect(is_one_line_with(captured(), variants[i]));
        e->release(state);
        options_free(&s);
    }
}
