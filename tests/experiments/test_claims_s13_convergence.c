/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S13 - S15. */
#include <certified.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/report.h"
#include "ledger.h"

#define RISE_ROW(precision, cells)                                                                 \
    "input=a m=3 sample=0 seed=1 u=0.0625 best_iteration=4 floor=0.001 precision=" precision       \
    " " cells

/* That it grows for the judge's own matrix is computed: a fault in lib/inverse/newton/cpu.c must
 * turn it.
 */
Test(claims_s13_convergence, rounding_ends_the_decrease)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "precision", 0), *curves = ledger_table(&run, "precision", 1);
    ledger_row(t, RISE_ROW("f64", "residual_rise=3 inverse_error_rise=2 divergence=9"));
    ledger_row(t, RISE_ROW("f32", "inverse_error_rise=2"));
    ledger_row(t, RISE_ROW("bf16", "residual_rise=7"));
    ledger_row(t, RISE_ROW("bf16", "residual_rise=4 inverse_error_rise=3"));
    ledger_row(curves, "input=a m=3 precision=bf16 iteration=3 residual=0.0625");
    ledger_row(t, RISE_ROW("f16", "inverse_error_rise=2"));
    ledger_row(curves, "input=a m=3 precision=f64 iteration=2 residual=0.125");
    ledger_row(curves, "input=a m=3 precision=f64 iteration=3 residual=9");
    ledger_row(curves, "input=b m=3 precision=bf16 iteration=6 residual=9");
    ledger_row(curves, "input=a m=4 precision=bf16 iteration=6 residual=9");
    ledger_row(curves, "input=a m=3 precision=bf16 iteration=6 residual=0.25");
    cr_expect(ledger_judge(&run, "S13") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "S13", "0 of 399 starts with αλ_max² < 2");
    ledger_expect_measured(&run, "S13", "0 of 399 between 2 and 4");
    ledger_expect_measured(&run, "S13",
                           "residual grows for 3 of 5 matrices, from a level of at most 1·√u on");
    ledger_expect_measured(&run, "S13", "‖X_k − A†‖₂ for 4");
    ledger_expect_measured(&run, "S13", "in ‖·‖₁ ‖X_k − A†‖ grows from all 8 of 8");
    ledger_expect_measured(&run, "S13", "λ_min = 2e-08 to 0.0053, in 90 steps");
    ledger_expect_noted(&run, "S13", "in the ratio 1.442 to 0.536 + 0.536, against the triangle");
    char *counterexample = ledger_counterexample(&run, "S13");
    cr_expect(strstr(counterexample, "‖X_k − A⁻¹‖₁ is 91/18 for k = 0 and 13177/2592, more,") &&
                  strstr(counterexample, "inside App. B's hypothesis but outside SOFT"),
              "%s", counterexample);
    free(counterexample);
    ledger_expect_noted(&run, "S13", "| f64 | 1 | 1 | 1 | 1 | 0.5 | 1 |");
    ledger_expect_noted(&run, "S13", "| bf16 | 2 | 2 | 1 | 0 | 1 | 1 |");
    ledger_row(t, RISE_ROW("tf32", "residual_rise=7"));
    ledger_expect_measured(&run, "S13", "at most nan·√u"); /* no such curve */
    ledger_close(&run);
}

/* As S13 has it. */
Test(claims_s13_convergence, the_matrix_of_the_decrease_is_singular)
{
    static const double a[9] = {1, 0.75, 0.125, 0.75, 1, 0.75, 0.125, 0.75, 1};
    static const double null_vector[3] = {2, -3, 2};
    ref_exact_newton exact;
    if (ref_exact_newton_steps(3, a, (ref_rational_start){2, 1, true}, 3, null_vector, &exact, NULL,
                               NULL) == ATN_ERR_UNSUPPORTED) {
        fputs("left out: no certified references\n", stderr);
        return;
    }
    cr_expect(exact.iterate_is_zero && exact.residual_is_zero, "A is not singular");
}

#define RANK_ROW(cells) "m=3 sample=0 seed=1 condition=10 " cells

#define FLOOR_ROW(cells) "m=3 lambda_max=2 " cells

Test(claims_s13_convergence, only_landmarks_that_coincide_are_singular)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "precision", 0);
    table *photographs = ledger_table(&run, "sampling-photos", 0);
    ledger_row(t, RANK_ROW("input=photos precision=f32 coincident=false rank=3 negative=0"));
    ledger_row(t, RANK_ROW("input=photos precision=f32 coincident=false rank=2 negative=2"));
    ledger_row(t, RANK_ROW("input=a precision=f32 coincident=true rank=1 negative=1"));
    ledger_row(t, RANK_ROW("input=a precision=bf16 coincident=false rank=1 negative=0"));
    ledger_row(photographs, "input=photos n=9 m=4 sampler=random pivots=3");
    ledger_row(photographs, "input=photos n=9 m=4 sampler=random pivots=4");
    ledger_row(photographs, "input=photos n=9 m=4 sampler=greedy pivots=2");
    table *pooled = ledger_table(&run, "norm-growth", 0);
    table *published = ledger_table(&run, "norm-growth-published", 0);
    table *trained = ledger_table(&run, "epochs", 0);
#define TRAINED_ROW(trained_with, cells) "m=3 trained_with=" trained_with " " cells
    ledger_row(trained,
               TRAINED_ROW("none", "rank_f64=3 rank_f32=2 residual=1e-4 inverse_residual=0.5"));
    ledger_row(trained, TRAINED_ROW("code-kernel",
                                    "rank_f64=3 rank_f32=3 residual=2e-3 inverse_residual=9e-4"));
    ledger_row(trained,
               TRAINED_ROW("none", "rank_f64=2 rank_f32=2 residual=4e-4 inverse_residual=9e-4"));
    ledger_row(trained,
               TRAINED_ROW("none", "rank_f64=3 rank_f32=1 residual=2e-4 inverse_residual=0.25"));
    ledger_row(trained, TRAINED_ROW("code-kernel",
                                    "rank_f64=3 rank_f32=2 residual=1e-3 inverse_residual=8e-4"));
#undef TRAINED_ROW
    ledger_row(pooled, FLOOR_ROW("input=photos sampling=pool lambda_min=1e-17 pinv_norm=1e15"));
    ledger_row(pooled, FLOOR_ROW("input=photos sampling=pool lambda_min=1e-7 pinv_norm=1e7"));
    ledger_row(pooled, FLOOR_ROW("input=photos sampling=pool lambda_min=nan pinv_norm=1e7"));
    ledger_row(pooled, FLOOR_ROW("input=smooth sampling=pool lambda_min=1e-17 pinv_norm=1e17"));
    ledger_row(published, FLOOR_ROW("input=photos sampling=published lambda_min=1 pinv_norm=1"));
    cr_expect(ledger_judge(&run, "S15") == VERDICT_OBSERVED);
    ledger_expect_measured(
        &run, "S15", "pool 2 in f64 and 3 in f32 of 3, published 0 in f64 and 0 in f32 of 1.");
    ledger_expect_noted(&run, "S15", "| pool | 3 | 2e+07 to 2e+15 | 2 | 3 | 3 | 3 | 3 |");
    ledger_expect_noted(&run, "S15", "| published | 1 | 2 to 2 | 0 | 0 | 0 | 0 | 0 |");
    ledger_expect_measured(&run, "S15",
                           "f64 0 of 0, f32 1 of 2, tf32 0 of 0, f16 0 of 0, bf16 1 of 1");
    ledger_expect_measured(&run, "S15", "two coincide in 1 of 2 draws");
    ledger_expect_noted(&run, "S15",
                        "| the papers' kernel | 3 | 1 | 3 | 0.0004 | 1 |\n"
                        "| code-kernel | 2 | 0 | 1 | 0.002 | 2 |\n\nNetworks of soft/code");
    ledger_expect_noted(&run, "S15", "| f32 | 2 | 1 | 2 | 1 | 1 | 10 |");
    ledger_expect_noted(&run, "S15", "| bf16 | 1 | 1 | 0 | 0 | 0 | 10 |");
    ledger_close(&run);
}

#define CURVE_ROW(variant, iteration, cells)                                                       \
    "input=photos stage=1 dtype=f64 rounding_ratio_max=0.1 attention_error_mean=0.25 "             \
    "attention_error_max=0.5 variant=" variant " iteration=" iteration " " cells

static verdict_kind judge_curves(const char *residual, const char *range)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "curves", 0);
    table *published = ledger_table(&run, "curves-published", 0);
    ledger_table(&run, "curves-fields", 0);
    ledger_table(&run, "epochs", 0);
    ledger_row(t, CURVE_ROW("nr-paper", "19",
                            "sampling=pool residual_max=1 range_residual_max=1 samples=2 "
                            "samples_on_range=0"));
    ledger_row(t, CURVE_ROW("nr-soft", "20",
                            "sampling=pool residual_max=1 range_residual_max=1 samples=2 "
                            "samples_on_range=1"));
    ledger_row(t, CURVE_ROW("nr-paper", "20",
                            "sampling=pool residual_max=1e-4 range_residual_max=1e-9 "
                            "condition_median=9 samples=2 samples_on_range=2"));
    char *cells = must_format(
        CURVE_ROW("nr-paper", "20",
                  "sampling=published residual_max=%s range_residual_max=%s condition_median=1e6 "
                  "samples=3 samples_on_range=0"),
        residual, range);
    ledger_row(published, cells);
    free(cells);
    verdict_kind kind = ledger_judge(&run, "S14");
    ledger_expect_measured(&run, "S14", "2 of 5 matrices do");
    ledger_expect_measured(&run, "S14",
                           "pool 2 of 2 (Ŝ off by 0.25 to 0.25), published 0 of 3 (Ŝ off by");
    ledger_expect_noted(&run, "S14", "| pool | nr-soft | 1 of 2 | 0.25 to 0.25 |");
    ledger_expect_noted(&run, "S14", "data/trained has no network of soft.");
    ledger_close(&run);
    return kind;
}

/* Also where it is only the published sampling that does not. */
Test(claims_s13_convergence, twenty_steps_converge_in_one_metric_and_not_in_the_other)
{
    cr_expect(judge_curves("9e-4", "0.9") == VERDICT_HOLDS_IF);
    cr_expect(judge_curves("9e-4", "nan") == VERDICT_FAILS);
    cr_expect(judge_curves("9e-4", "1e-4") == VERDICT_HOLDS);
    cr_expect(judge_curves("2e-3", "1e-4") == VERDICT_FAILS);
    cr_expect(judge_curves("nan", "1e-4") == VERDICT_FAILS);
    claim_run run;
    ledger_open(&run);
    ledger_table(&run, "curves", 0);
    ledger_table(&run, "curves-published", 0);
    ledger_table(&run, "curves-fields", 0);
    ledger_table(&run, "epochs", 0);
    cr_expect(ledger_judge(&run, "S14") == VERDICT_FAILS, "without a curve");
    ledger_close(&run);
}
