/* SPDX-License-Identifier: BSD-3-Clause */
/* spectral/softmax: its rows against closed forms. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <dominant.h>

#include "common/inputs.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "spectral/operator_norms.h"

TestSuite(spectral_softmax, .init = scratch_begin, .fini = scratch_end);

static const double u = 0x1p-53;

/* |S|_2 and the eigenvalue of the dominant token's S but for 1, from the 2 x 2 matrix that S is on
 * (e_1, the mean of the others): weights p of a token on the first, (1 - p) on all others. */
static void dominant(double n, double r, double *norm, double *eigenvalue)
{
    double first = 1 / (1 + (n - 1) * exp(r - r * r)), other = 1 / (1 + (n - 1) * exp(1 - r));
    double a = first, b = (1 - first) / sqrt(n - 1), c = other * sqrt(n - 1), d = 1 - other;
    double trace = a * a + b * b + c * c + d * d, root = fabs(a * d - b * c);
    *norm = (sqrt(trace + 2 * root) + sqrt(trace - 2 * root)) / 2;
    *eigenvalue = first - other;
}

Test(spectral_softmax, rows_of_softmax)
{
    int dominants = 0, others = 0, rotating = 0;
    cr_assert_eq(
        run_experiment(&spectral_softmax,
                       "--quick --input iid:0.3 --n 4,16 --samples 2 --seed 3,5 --out out"),
        EXIT_PASS);
    table *t = read_output(&spectral_softmax, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++) {
        double n = cell_number(t, row, "n"), r = cell_real(t, row, "r");
        double norm = cell_real(t, row, "norm"), allowance = cell_real(t, row, "allowance");
        bool same = cell_is(t, row, "keys", "tokens");
        cr_expect(close_to(cell_real(t, row, "norm_over_root"), norm / sqrt(n), 2 * u));
        cr_expect(norm >= 1 - allowance && norm <= sqrt(n) * (1 + allowance));
        cr_expect(close_to(cell_real(t, row, "radius"), 1, same ? allowance : sqrt(allowance)),
                  "row %" PRId64 ": radius %.17g", row, cell_real(t, row, "radius"));
        cr_expect(!same || cell_real(t, row, "largest_imaginary") == 0);
        rotating += cell_real(t, row, "largest_imaginary") > 0.01;
        cr_expect_eq(cell_missing(t, row, "r"), !cell_is(t, row, "input", "dominant"));
        others += !same;
        if (isnan(r)) {
            cr_expect(cell_missing(t, row, "closed_form"));
            cr_expect(allowance >= 10 * (n + 32) * u, "32 channels, logits of 1 at least");
            continue;
        }
        double want, eigenvalue;
        dominant(n, r, &want, &eigenvalue);
        cr_expect(close_to(allowance, 10 * (n + 32 * fmax(1, r * r)) * u, 1e-14), "n %g r %g", n,
                  r);
        cr_expect(close_to(norm, want, allowance) &&
                      close_to(cell_real(t, row, "closed_form"), want, 1e-14),
                  "n %g r %g: %.17g, want %.17g", n, r, norm, want);
        cr_expect(close_to(cell_real(t, row, "closed_form_ratio"),
                           fabs(norm - cell_real(t, row, "closed_form")) /
                               cell_real(t, row, "closed_form") / allowance,
                           1e-9));
        double lowest = n > 2 ? fmin(eigenvalue, 0) : eigenvalue;
        cr_expect(fabs(cell_real(t, row, "lowest") - lowest) <= allowance, "n %g r %g", n, r);
        dominants++;
    }
    cr_expect_eq(dominants, 3 * 12, "n = 2, 4, 16");
    /* two samples of two inputs for two seeds; those of other keys take a sample more */
    cr_expect_eq(others, 2 * 2 * 2 * 2);
    cr_expect(rotating > 0, "S of K != Q has complex eigenvalues");
    table_free(t);
}

/* A network that has keys is given these, on the grid nearest to the usual n, once. */
Test(spectral_softmax, keys_of_a_network_are_its_own)
{
    enum { SIDE = 14, TOKENS = SIDE * SIDE };
    static const char *const names[] = {"trained:softmax", "trained:softmax/keys"};
    static double parts[2][TOKENS * TOKEN_DIM];
    cr_assert_eq(run_experiment(&spectral_softmax, "--input trained:softmax,trained:soft --quick "
                                                   "--seed 3 --samples 2 --out out"),
                 EXIT_PASS);
    table *t = read_output(&spectral_softmax, "out", 0);
    int64_t seen = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        bool other = cell_is(t, row, "keys", "other");
        cr_expect(!(other && cell_is(t, row, "input", "trained:soft")));
        if (!other || !cell_is(t, row, "input", names[0]))
            continue;
        cross_norms want;
        for (int part = 0; part < 2; part++) {
            input *in;
            cr_assert_eq(input_open(names[part], 0, 0, &in), EXIT_PASS);
            cr_assert_eq(input_tokens(in, SIDE, SIDE, 1, 3, seen, parts[part]), EXIT_PASS);
            input_free(in);
        }
        cr_assert_eq(softmax_cross_measure(TOKENS, TOKEN_DIM, parts[0], parts[1], &want),
                     EXIT_PASS);
        cr_expect(cell_integer(t, row, "n") == TOKENS && cell_integer(t, row, "sample") == seen &&
                      cell_real(t, row, "norm") == want.norm,
                  "%.17g, not %.17g", cell_real(t, row, "norm"), want.norm);
        seen++;
    }
    cr_expect_eq(seen, 2);
    table_free(t);
}

/* Keys and values have no other keys. */
Test(spectral_softmax, parts_but_queries_have_no_other_keys)
{
    cr_assert_eq(run_experiment(&spectral_softmax,
                                "--input trained:softmax/keys,trained:softmax/values --n 16 "
                                "--samples 1 --out out"),
                 EXIT_PASS);
    table *t = read_output(&spectral_softmax, "out", 0);
    int64_t seen = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        bool network = strncmp(cell_text(t, row, "input"), "trained:", 8) == 0;
        cr_expect(!network || cell_is(t, row, "keys", "tokens"));
        seen += network;
    }
    cr_expect_eq(seen, 2);
    table_free(t);
}

Test(spectral_softmax, softmax_points_can_be_replayed)
{
    expect_replay(&spectral_softmax, "--input iid,smooth --n 16,64 --seed 4 --samples 2", 3);
    expect_replay(&spectral_softmax, "--input iid,smooth --n 16,64 --seed 4 --samples 2", 14);
}

Test(spectral_softmax, softmax_has_the_eigenvalues_of_prop_3_and_norms_to_the_root_of_n)
{
    int64_t dominant = 0, other = 0, above = 0;
    double negative = 0, complex_part = 0;
    cr_assert(run_experiment(&spectral_softmax,
                             "--input iid,smooth --n 4,16,64 --samples 3 --out out") == EXIT_PASS);
    table *t = read_output(&spectral_softmax, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++) {
        double n = (double)cell_integer(t, row, "n"), norm = cell_real(t, row, "norm");
        double r = cell_real(t, row, "r"), lowest = cell_real(t, row, "lowest");
        bool same = cell_is(t, row, "keys", "tokens");
        cr_expect(close_to(cell_real(t, row, "radius"), 1, 1e-12) && norm >= 1 - 1e-13 &&
                      norm <= sqrt(n) * (1 + 1e-13) &&
                      close_to(cell_real(t, row, "norm_over_root"), norm / sqrt(n), 4 * u),
                  "row %" PRId64, row);
        cr_expect(!same || (lowest >= -1e-13 && cell_real(t, row, "largest_imaginary") == 0));
        cr_expect(isnan(r) == !cell_is(t, row, "input", "dominant"));
        other += !same;
        negative = fmin(negative, lowest);
        complex_part = fmax(complex_part, cell_real(t, row, "largest_imaginary"));
        if (isnan(r))
            continue;
        dominant++;
        above += norm > 1 + 1e-9;
        double want = (double)ref_dominant_softmax((int64_t)n, 1, r).norm;
        cr_expect(cell_real(t, row, "closed_form") == want && close_to(norm, want, 1e-12) &&
                      cell_real(t, row, "closed_form_ratio") <= 1,
                  "n=%g r=%g: %.15g, want %.15g", n, r, norm, want);
        cr_expect(r != 48 || close_to(norm, sqrt(n), 1e-9), "n=%g: %g", n, norm);
    }
    cr_expect(dominant == 4 * 12 && above == 4 * 11, "%" PRId64 " rows, %" PRId64 " above 1",
              dominant, above);
    cr_expect(other == 3 * 3 * 3 && negative < -0.01 && complex_part > 0.01,
              "%" PRId64 " rows with other keys, %g, %g", other, negative, complex_part);
    table_free(t);
    t = read_output(&spectral_softmax, "out", 1);
    for (int64_t row = 0; row < table_rows(t); row++) {
        double r = cell_real(t, row, "r"), exponent = cell_real(t, row, "exponent");
        bool far = r == 48;
        cr_expect(!far || (fabs(exponent - 0.5) < 1e-9 && cell_integer(t, row, "points") == 4 &&
                           close_to(cell_real(t, row, "norm_max"), 8, 1e-9) &&
                           close_to(cell_real(t, row, "root_share_max"), 1, 1e-9)),
                  "r=48: %g", exponent);
        cr_expect(r != 1 || fabs(exponent) < 1e-12, "r=1: %g", exponent);
    }
    cr_expect(table_rows(t) == 3 * 2 + 12, "%" PRId64 " fits", table_rows(t));
    table_free(t);
}
