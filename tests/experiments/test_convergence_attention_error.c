/* SPDX-License-Identifier: BSD-3-Clause */
/* The error of the attention matrix that the error of an inverse causes. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include <linear_algebra.h>

#include "common/report.h"
#include "convergence/attention_error.h"
#include "convergence/bottleneck.h"
#include "drawn_case.h"
#include "runs.h"

/* |P^T (X - A+) P|_2 / |P^T A+ P|_2 with the n x n matrices, by singular values. */
static double dense_error(const drawn_case *c, const double *pinv, const double *x)
{
    double *half = must_allocate(M * N, sizeof *half), norms[2];
    double *form = must_allocate((size_t)N * N, sizeof *form);
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                half[i * N + j] = 0;
                for (int k = 0; k < M; k++)
                    half[i * N + j] +=
                        ((which ? 0 : x[i * M + k]) - (which ? -1 : 1) * pinv[i * M + k]) *
                        c->cross[k * N + j];
            }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                form[i * N + j] = 0;
                for (int k = 0; k < M; k++)
                    form[i * N + j] += c->cross[k * N + i] * half[k * N + j];
            }
        cr_assert_eq(ref_spectral_norm(N, N, form, &norms[which]), ATN_OK);
    }
    free(form);
    free(half);
    return norms[0] / norms[1];
}

static void check_error(const char *options, int steps, double least)
{
    drawn_case c;
    double *pinv = must_allocate(M * M, sizeof *pinv);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    atn_inverse_info info;
    draw_case(&c, options);
    desc.iterations = steps;
    atn_context *context = make_context();
    cr_assert_eq(bottleneck_invert(&c.b, context, &desc, &info, NULL), EXIT_PASS);
    atn_context_free(context);
    cr_assert_eq(ref_symmetric_pinv(M, c.b.exact, -1, pinv, NULL, NULL, NULL), ATN_OK);
    attention_error e = attention_error_create(M);
    cr_assert_eq(attention_error_set(&e, N, c.b.exact, M * 0x1p-53, c.cross), EXIT_PASS);
    double want = dense_error(&c, pinv, c.b.x), got = attention_error_of(&e, c.b.x);
    cr_expect(want > least && fabs(got - want) <= 1e-8 * want, "%s: %.17g, expected %.17g", options,
              got, want);
    cr_expect(attention_error_of(&e, pinv) < 1e-8, "%s: A+ itself", options);
    attention_error_free(&e);
    free(pinv);
    free_case(&c);
}

Test(convergence_attention_error, attention_error_is_that_of_dense_matrices)
{
    check_error("--input iid --sampling pool --samples 1", 8, 1e-3);
    check_error("--input smooth --sampling pool --samples 1", 5, 1e-3);
    check_error("--input smooth --sampling published --samples 1", 3, 1e-3);
    check_error("--input photos --sampling published-centred --samples 1", 4, 1e-4);
}

/* Two equal landmarks: A has a null space, which A+ and the iterates leave alone. What is not
 * finite is NaN. */
Test(convergence_attention_error, attention_error_of_a_singular_matrix)
{
    double a[4] = {1, 1, 1, 1}, x[4] = {0.125, 0.125, 0.125, 0.125}, p[6] = {1, 0.5, 0, 1, 0.5, 0};
    attention_error e = attention_error_create(2);
    cr_assert_eq(attention_error_set(&e, 3, a, 2 * 0x1p-53, p), EXIT_PASS);
    /* A+ = A/4, X = A/8 */
    cr_expect(fabs(attention_error_of(&e, x) - 0.5) < 1e-15, "%.17g", attention_error_of(&e, x));
    cr_expect(fabs(e.norm - 1.25) < 1e-15, "%.17g", e.norm);
    x[0] = INFINITY;
    cr_expect(isnan(attention_error_of(&e, x)));
    p[2] = NAN;
    cr_assert_eq(attention_error_set(&e, 3, a, 2 * 0x1p-53, p), EXIT_PASS);
    cr_expect(isnan(attention_error_of(&e, x)));
    attention_error_free(&e);
}
