/* SPDX-License-Identifier: BSD-3-Clause */
/* The Nystrom approximation against dense matrices. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "dense_soft.h"
#include <linear_algebra.h>

#include "common/report.h"
#include "runs.h"
#include "scratch.h"
#include "spectral/nystrom.h"

TestSuite(spectral_nystrom, .init = scratch_begin, .fini = scratch_end);

static const double u = 0x1p-53;

/* S^ of tokens in the plane, at 0 .. 11, landmarks among and between them; against ref_soft, whose
 * pseudo-inverse costs kappa(A). */
Test(spectral_nystrom, nystrom_is_the_dense_matrix)
{
    enum { NY_N = 12, NY_M = 4, NY_D = 2 };
    double tokens[NY_N * NY_D], landmarks[NY_M * NY_D] = {0, 0, 3, 1, 4.5, 0.5, 11, 1};
    double got[NY_N * NY_N], want[NY_N * NY_N], a[NY_M * NY_M], kappa, trace = 0;
    int64_t pivots[NY_M];
    nystrom_approximation made = {.pivots = pivots};
    for (int i = 0; i < NY_N; i++) {
        tokens[2 * i] = i;
        tokens[2 * i + 1] = i % 2;
    }
    nystrom_make(NY_N, NY_M, NY_D, tokens, landmarks, 0.2, got, &made);
    cr_assert(ref_soft(NY_N, NY_M, NY_D, 0, tokens, landmarks, NULL, 0.2, NULL, false, want,
                       NULL) == ATN_OK);
    ref_gaussian(NY_M, NY_M, NY_D, landmarks, landmarks, 0.2, a);
    cr_assert(ref_condition(NY_M, NY_M, a, &kappa, NULL) == ATN_OK);
    for (int i = 0; i < NY_N * NY_N; i++) {
        cr_expect(fabs(got[i] - want[i]) <= 10 * NY_M * kappa * u, "%d: %.17g, expected %.17g", i,
                  got[i], want[i]);
        trace += i % (NY_N + 1) == 0 ? want[i] : 0;
    }
    cr_expect_eq(made.kept, NY_M);
    cr_expect(close_to(made.shortfall, NY_N - trace, 1e-12), "%.17g", made.shortfall);
    cr_expect(made.rounding > NY_M * u && made.rounding < 1e-12, "%.3g", made.rounding);
}

/* So far away that the distances leave the range of f64: S^ is 0, and nothing is rounded. */
Test(spectral_nystrom, nystrom_of_far_landmarks_is_0)
{
    static const double tokens[] = {1e200, 2e200, 3e200}, landmarks[] = {-1e200, -2e200};
    double got[9];
    int64_t pivots[2];
    nystrom_approximation made = {.pivots = pivots};
    nystrom_make(3, 2, 1, tokens, landmarks, 0.5, got, &made);
    for (int i = 0; i < 9; i++)
        cr_expect(got[i] == 0, "%g", got[i]);
    cr_expect(made.rounding == 0 && made.shortfall == 3, "%g %g", made.rounding, made.shortfall);
}

/* A landmark twice, and two 1e-9 apart: S^ is that of one each, whichever it is. With all tokens as
 * landmarks nothing is left. */
Test(spectral_nystrom, nystrom_leaves_out_what_is_rounding)
{
    enum { NY_N = 6 };
    double tokens[NY_N] = {0, 1, 2, 3, 4, 5}, landmarks[] = {1, 4, 1, 4 + 1e-9}, lambda[NY_N];
    double with[NY_N * NY_N], without[NY_N * NY_N];
    int64_t pivots[NY_N];
    nystrom_approximation made = {.pivots = pivots};
    nystrom_make(NY_N, 4, 1, tokens, landmarks, 0.5, with, &made);
    cr_expect(made.kept == 2 && made.rounding < 1e-13, "%" PRId64 " %.3g", made.kept,
              made.rounding);
    nystrom_make(NY_N, 2, 1, tokens, landmarks, 0.5, without, &made);
    for (int i = 0; i < NY_N * NY_N; i++)
        cr_expect(fabs(with[i] - without[i]) < 2e-9, "%d: %g, %g", i, with[i], without[i]);
    ref_gaussian(NY_N, NY_N, 1, tokens, tokens, 0.5, without);
    for (int i = 0; i < NY_N * NY_N; i++)
        with[i] = without[i] - with[i];
    cr_assert(ref_eigenvalues(NY_N, with, lambda, NULL, NULL) == ATN_OK);
    cr_expect(lambda[NY_N - 1] > -1e-14 && lambda[0] > 0.1, "%g %g", lambda[NY_N - 1], lambda[0]);
    nystrom_make(NY_N, NY_N, 1, tokens, tokens, 0.5, with, &made);
    cr_expect(made.kept == NY_N && fabs(made.shortfall) < 1e-13, "%g", made.shortfall);
    for (int i = 0; i < NY_N * NY_N; i++)
        cr_expect(fabs(with[i] - without[i]) <= made.rounding, "%d: %g", i, with[i] - without[i]);
}

Test(spectral_nystrom, nystrom_judges_what_is_proved)
{
    const nystrom_errors good = {-1e-15, 1e-15, 0.5, 0.1, 1e-14, 0.4, 0.05};
    const double wrong[4][2] = {
        {-2e-14, NAN}, {2e-14, NAN}, {0.3, NAN}, {0.04, NAN}}; /* lowest, exact, trace, norm */
    cr_expect_eq(nystrom_judge("good", &good), EXIT_PASS);
    cr_assert(freopen("/dev/null", "w", stderr));
    for (int field = 0; field < 4; field++)
        for (int k = 0; k < 2; k++) {
            nystrom_errors bad = good;
            double *const fields[] = {&bad.lowest, &bad.exact, &bad.trace, &bad.norm};
            *fields[field] = wrong[field][k];
            cr_expect_eq(nystrom_judge("bad", &bad), EXIT_CHECK, "field %d: %g", field,
                         *fields[field]);
        }
}
