/* SPDX-License-Identifier: BSD-3-Clause */
/* The norm of a matrix without negative entries, from bounds on both sides. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include <data.h>
#include <linear_algebra.h>

#include "common/report.h"
#include "runs.h"
#include "spectral/nonnegative.h"

static const double u = 0x1p-53;

typedef struct {
    int64_t n;
    const double *values; /* n x n, or (outer) x and y, each n: M = x y^T */
    bool outer;
    int64_t calls;
} source_state;

static int give_rows(void *state, int64_t first, int64_t count, double *out)
{
    source_state *s = state;
    s->calls++;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < s->n; j++)
            out[i * s->n + j] = s->outer ? s->values[first + i] * s->values[s->n + j]
                                         : s->values[(first + i) * s->n + j];
    return EXIT_PASS;
}

static int refuse_rows(void *state, int64_t first, int64_t count, double *out)
{
    return EXIT_ENVIRONMENT;
}

/* Neither symmetric nor a whole number of blocks. */
Test(spectral_nonnegative, two_bounds_hold_the_dense_norm)
{
    static const int sizes[] = {1, 2, 5, 64, 65, 150};
    for (int k = 0; k < 6; k++) {
        int n = sizes[k];
        double *a = make_matrix(n, n), norm, total = 0, largest = 0;
        norm_bracket got;
        data_uniform(7, n * n, a);
        for (int i = 0; i < n; i++) {
            double row = 0;
            for (int j = 0; j < n; j++)
                row += a[i * n + j] = pow(a[i * n + j], 8) * (i == j ? 30 : 1);
            total += row;
            largest = fmax(largest, row);
        }
        cr_assert(ref_spectral_norm(n, n, a, &norm) == ATN_OK);
        source_state state = {n, a, false, 0};
        cr_assert(nonnegative_norm(&(row_source){n, give_rows, &state}, &got) == EXIT_PASS);
        double slack = 10 * n * u;
        cr_expect(got.lower <= norm * (1 + slack) && got.upper >= norm * (1 - slack) &&
                      got.upper <= got.lower * (1 + 1e-6),
                  "n=%d: %.17g in %.17g .. %.17g", n, norm, got.lower, got.upper);
        cr_expect(close_to(got.lower, norm, 1e-9), "n=%d: %.17g, want %.17g", n, got.lower, norm);
        cr_expect(close_to(got.row_sum_mean, total / n, slack) &&
                      close_to(got.row_sum_max, largest, slack),
                  "n=%d: rows %g %g, want %g %g", n, got.row_sum_mean, got.row_sum_max, total / n,
                  largest);
        cr_expect(state.calls == 1, "n=%d: made %" PRId64 " times", n, state.calls);
        free(a);
    }
}

/* If the matrix is reducible, later vectors may have zeros: the upper bound is an earlier one's.
 */
Test(spectral_nonnegative, two_bounds_hold_for_reducible_matrices)
{
    double a[9] = {1, 0, 0, 0, 3, 0, 0, 0, 2}, zero[4] = {0, 0, 1, 0};
    norm_bracket got;
    source_state state = {3, a, false, 0};
    cr_assert(nonnegative_norm(&(row_source){3, give_rows, &state}, &got) == EXIT_PASS);
    cr_expect(close_to(got.lower, 3, 1e-13) && close_to(got.upper, 3, 1e-13), "%g .. %g", got.lower,
              got.upper);
    state = (source_state){2, zero, false, 0};
    cr_assert(nonnegative_norm(&(row_source){2, give_rows, &state}, &got) == EXIT_PASS);
    cr_expect(close_to(got.lower, 1, 1e-13) && close_to(got.upper, 1, 1e-13), "%g .. %g", got.lower,
              got.upper);
}

/* Small and full of zeros: Ritz vectors on the way have entries of either sign. */
Test(spectral_nonnegative, two_bounds_hold_for_sparse_matrices)
{
    int64_t wide = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        int n = 3 + (int)(seed % 6);
        double *a = make_matrix(n, n), norm;
        norm_bracket got;
        data_uniform(seed, n * n, a);
        for (int i = 0; i < n * n; i++)
            a[i] = a[i] < 0.7 ? 0 : floor(40 * (a[i] - 0.7)) + 1;
        cr_assert(ref_spectral_norm(n, n, a, &norm) == ATN_OK);
        source_state state = {n, a, false, 0};
        cr_assert(nonnegative_norm(&(row_source){n, give_rows, &state}, &got) == EXIT_PASS);
        cr_expect(got.lower <= norm * (1 + 1e-14) && got.upper >= norm * (1 - 1e-14) &&
                      close_to(got.lower, norm, 1e-6),
                  "seed %d: %.17g in %.17g .. %.17g", (int)seed, norm, got.lower, got.upper);
        wide += got.upper > got.lower * (1 + 1e-6);
        free(a);
    }
    cr_expect(wide > 0 && wide < 2000, "%" PRId64 " without a tight upper bound", wide);
}

/* Too large to be stored: |x y^T|_2 = |x| |y|. */
Test(spectral_nonnegative, large_matrices_are_made_again_in_every_step)
{
    enum { COUNT = 4100 };
    double *xy = make_matrix(2, COUNT), x = 0, y = 0, total = 0;
    norm_bracket got;
    data_uniform(3, 2 * COUNT, xy);
    for (int i = 0; i < COUNT; i++) {
        x += xy[i] * xy[i];
        y += xy[COUNT + i] * xy[COUNT + i];
        total += xy[COUNT + i];
    }
    source_state state = {COUNT, xy, true, 0};
    cr_assert(nonnegative_norm(&(row_source){COUNT, give_rows, &state}, &got) == EXIT_PASS);
    cr_expect(close_to(got.lower, sqrt(x * y), 1e-12) && close_to(got.upper, sqrt(x * y), 1e-6),
              "%g .. %g, want %g", got.lower, got.upper, sqrt(x * y));
    cr_expect(got.row_sum_max <= total * (1 + 1e-12) && got.row_sum_max > 0.9 * total);
    cr_expect(got.steps > 1 && state.calls == got.steps * ((COUNT + 63) / 64),
              "%d steps, %" PRId64 " calls", got.steps, state.calls);
    cr_expect(nonnegative_norm(&(row_source){3, refuse_rows, NULL}, &got) == EXIT_ENVIRONMENT);
    cr_expect(nonnegative_norm(&(row_source){5000, refuse_rows, NULL}, &got) == EXIT_ENVIRONMENT);
    free(xy);
}
