/* SPDX-License-Identifier: BSD-3-Clause */
/* spectral/eigenvalues: its rows are the spectrum of one matrix, and the floor is where it should
 * be. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>

#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(spectral_eigenvalues, .init = scratch_begin, .fini = scratch_end);

static const double u = 0x1p-53;

Test(spectral_eigenvalues, eigenvalues_are_a_spectrum)
{
    cr_assert(run_experiment(&spectral_eigenvalues,
                             "--input smooth,constant --m 49,4 --out out --seed 5") == EXIT_PASS);
    table *t = read_output(&spectral_eigenvalues, "out", 0);
    cr_assert(table_rows(t) == 2 * (49 + 4), "%" PRId64 " rows", table_rows(t));
    double trace = 0, largest = 0, before = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        int64_t index = cell_integer(t, row, "index"), m = cell_integer(t, row, "m");
        double lambda = cell_real(t, row, "eigenvalue");
        bool constant = cell_is(t, row, "input", "constant");
        largest = index == 1 ? lambda : largest;
        trace = index == 1 ? lambda : trace + lambda;
        cr_expect(index == 1 || lambda <= before, "row %" PRId64 ": not descending", row);
        cr_expect(cell_boolean(t, row, "below_floor") == (fabs(lambda) < (double)m * u * largest),
                  "row %" PRId64 " lambda=%g", row, lambda);
        cr_expect(!constant || cell_boolean(t, row, "below_floor") == (index > 1), "row %" PRId64,
                  row);
        cr_expect(index < m || close_to(trace, (double)m, 1e-13), "m=%" PRId64 " trace=%.17g", m,
                  trace);
        before = lambda;
    }
    cr_expect(cell_integer(t, 0, "seed") == 5);
    table_free(t);
}

/* Photographs have eigenvalues on both sides of the floor, some close to it. */
Test(spectral_eigenvalues, the_floor_is_m_u_lambda_1)
{
    int64_t close = 0;
    cr_assert(run_experiment(&spectral_eigenvalues, "--input photos --m 441 --out out") ==
              EXIT_PASS);
    table *t = read_output(&spectral_eigenvalues, "out", 0);
    double floor = 441 * u * cell_real(t, 0, "eigenvalue");
    for (int64_t row = 0; row < table_rows(t); row++) {
        double lambda = cell_real(t, row, "eigenvalue");
        close += fabs(lambda) > floor / 2 && fabs(lambda) < 2 * floor;
        cr_expect(cell_boolean(t, row, "below_floor") == (fabs(lambda) < floor), "row %" PRId64,
                  row);
    }
    cr_expect(close > 4, "%" PRId64 " eigenvalues near the floor", close);
    table_free(t);
}
