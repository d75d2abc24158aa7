/* SPDX-License-Identifier: BSD-3-Clause */
/* Newton-Raphson iterates against the closed form, within the estimate of rounding; and that
 * estimate itself. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include <newton.h>
#include <ruler.h>

#include "common/report.h"
#include "convergence/bottleneck.h"
#include "convergence/rounding.h"
#include "latms.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(convergence_rounding, .init = scratch_begin, .fini = scratch_end);

enum { STEPS = 20 };

typedef struct {
    int points;   /* all */
    int relative; /* above 1e-9 and within 1e-6 of the closed form */
    int excess;   /* above 1e-9 and not */
    double worst; /* rounding ratio of all that are not within 1e-6 */
} tally;

static void report(const tally *t, atn_dtype dtype)
{
    cr_log_info("%s: %d points; residual above 1e-9: %d within 1e-6 of the closed form, %d not; "
                "largest rounding ratio %.3g",
                atn_dtype_name(dtype), t->points, t->relative, t->excess, t->worst);
}

/* Iterates of one method on b against the closed form. */
static void check_method(const bottleneck *source, atn_inverse_method method, const char *name,
                         tally *t)
{
    double residuals[STEPS + 1], norms[STEPS + 1], estimates[STEPS + 1];
    atn_trace trace = {.capacity = STEPS + 1,
                       .values = {[ATN_METRIC_RESIDUAL] = residuals, [ATN_METRIC_NORM] = norms}};
    bottleneck b = *source;
    atn_inverse_desc desc = atn_inverse_defaults(method);
    double norm1 = ref_norm1(b.m, b.exact);
    if (method == ATN_INVERSE_NR)
        desc.alpha = 1.8 / (norm1 * norm1);
    atn_inverse_info info;
    atn_context *context;
    cr_assert_eq(atn_context_create(NULL, &context), ATN_OK);
    cr_assert_eq(bottleneck_invert(&b, context, &desc, &info, &trace), EXIT_PASS);
    atn_context_free(context);
    double alpha = info.alpha;
    double ridge = bottleneck_round(b.dtype, desc.ridge);
    rounding_estimates(b.m, b.lambda, alpha, ridge, atn_dtype_roundoff(b.dtype), trace.length,
                       norms, estimates);
    for (int k = 0; k < trace.length; k++) {
        double want = ref_filter_residual(b.m, b.lambda, alpha, ridge, k);
        double difference = fabs(residuals[k] - want);
        t->points++;
        if (want > 1e-9 && difference <= 1e-6 * want) {
            t->relative++;
            continue;
        }
        double ratio = difference / estimates[k];
        t->excess += want > 1e-9;
        t->worst = fmax(t->worst, ratio);
        cr_expect(ref_judge(REF_ROUNDING, ratio) != REF_FAIL,
                  "%s %s %s k=%d: residual %.17g, closed form %.17g, ratio %.3g", name,
                  atn_inverse_name(method), atn_dtype_name(b.dtype), k, residuals[k], want, ratio);
    }
}

static void check_matrix(const bottleneck *b, const char *name, tally *t)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_NR, ATN_INVERSE_NR_PAPER,
                                                 ATN_INVERSE_NR_ADAPTIVE, ATN_INVERSE_NR_SOFT,
                                                 ATN_INVERSE_NR_SOFTPP};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        check_method(b, methods[i], name, t);
}

/* Prescribed spectra: n, mode and condition number of latms_symmetric. */
static void check_spectra(atn_dtype dtype, double most_condition, tally *t)
{
    static const int sizes[] = {1, 2, 7, 49};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int mode = 1; mode <= 5; mode++)
            for (double condition = 100; condition <= most_condition; condition *= 100) {
                char name[64];
                snprintf(name, sizeof name, "n=%d mode=%d condition=%g", sizes[i], mode, condition);
                bottleneck b = bottleneck_create(dtype, sizes[i]);
                double *a = must_allocate((size_t)sizes[i], (size_t)sizes[i] * sizeof *a);
                cr_assert_eq(latms_symmetric(sizes[i], mode, condition, 1, a, b.lambda), ATN_OK,
                             "%s", name);
                cr_assert_eq(bottleneck_from_matrix(&b, a), EXIT_PASS);
                check_matrix(&b, name, t);
                free(a);
                bottleneck_free(&b);
            }
}

/* A of inputs, where its condition number is at most the given one. Returns how many were. */
static int check_inputs(atn_dtype dtype, double most_condition, tally *t)
{
    partial_run r;
    int used = 0;
    prepare_run(&r, &convergence_curves,
                "--input photos,smooth,noisy,iid,iid:0.3,clusters --samples 1");
    landmark_sweep draws;
    static const int64_t stages[] = {1, 2, 3, 0};
    stage_defaults defaults = {NULL, stages, false};
    cr_assert_eq(landmark_sweep_open_stages(&draws, &r.s, &defaults), EXIT_PASS);
    atn_context *context;
    cr_assert_eq(atn_context_create(NULL, &context), ATN_OK);
    for (int64_t point = 0; point < draws.count; point++) {
        char name[128];
        double *tokens;
        const landmark_point *p = &draws.points[point];
        landmark_sweep_describe(&draws, point, name, sizeof name);
        bottleneck b = bottleneck_create(dtype, p->m);
        cr_assert_eq(landmark_sweep_tokens(&draws, p, &tokens), EXIT_PASS);
        cr_assert_eq(bottleneck_from_tokens(&b, &draws, p, context, tokens, NULL), EXIT_PASS);
        if (bottleneck_largest(&b) <= most_condition * bottleneck_smallest(&b, false)) {
            used++;
            check_matrix(&b, name, t);
        }
        free(tokens);
        bottleneck_free(&b);
    }
    atn_context_free(context);
    landmark_sweep_close(&draws);
    end_run(&r);
    return used;
}

Test(convergence_rounding, f64_residuals_follow_the_closed_form)
{
    tally t = {0};
    check_spectra(ATN_F64, 1e6, &t);
    cr_expect(check_inputs(ATN_F64, 1e6, &t) >= 10);
    report(&t, ATN_F64);
    cr_expect(t.relative > 5000 && t.excess == 0, "%d and %d of %d", t.relative, t.excess,
              t.points);
}

/* Where f32 follows the closed form to 1e-6, or the estimate of rounding explains it; also for
 * condition numbers beyond f32. */
Test(convergence_rounding, f32_residuals_stay_within_rounding)
{
    tally t = {0};
    check_spectra(ATN_F32, 1e4, &t);
    cr_expect(check_inputs(ATN_F32, INFINITY, &t) == 18);
    report(&t, ATN_F32);
    cr_expect(t.points > 1000);
}

/* An estimate that is never exceeded says nothing if it is large. */
Test(convergence_rounding, rounding_estimate_is_small_where_nothing_amplifies)
{
    double lambda[49], norms[STEPS + 1], estimates[STEPS + 1], alpha = 1.0 / (2 * 2);
    for (int i = 0; i < 49; i++)
        lambda[i] = 2 - i / 49.0; /* from 2 down to 1.02: r from 0 to 0.74 */
    for (int k = 0; k <= STEPS; k++) {
        norms[k] = 0;
        for (int i = 0; i < 49; i++)
            norms[k] = fmax(norms[k], ref_filter(alpha, k, lambda[i]));
    }
    rounding_estimates(49, lambda, alpha, 0, 0x1p-53, STEPS + 1, norms, estimates);
    for (int k = 0; k <= STEPS; k++)
        cr_expect(estimates[k] > 49 * 0x1p-53 && estimates[k] < 100 * 49 * 0x1p-53, "k=%d: %g", k,
                  estimates[k]);
}

/* r = -1: an error doubles in every step, and once it is of the size of the modes it explodes. */
Test(convergence_rounding, rounding_estimate_doubles_on_the_edge_of_convergence)
{
    double lambda = 1, norms[60] = {2}, estimates[60];
    rounding_estimates(1, &lambda, 2, 0, 0x1p-53, 60, norms, estimates);
    for (int k = 10; k < 40; k++)
        cr_expect(estimates[k] >= 1.9 * estimates[k - 1] && estimates[k] <= 2.1 * estimates[k - 1],
                  "k=%d", k);
    cr_expect(estimates[59] > 1, "%g", estimates[59]);
}
