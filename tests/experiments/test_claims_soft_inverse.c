/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S10 - S18. */
#include <certified.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "ledger.h"

/* What it rests on is computed by the judge: a fault in lib/cpu/newton.c must turn it. */
Test(claims_soft_inverse, the_limit_of_the_start)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S10") == VERDICT_HOLDS_IF);
    ledger_close(&run);
}

static void expect_measured(const claim_run *run, const char *id, const char *text)
{
    char *measured = ledger_measured(run, id);
    cr_expect(strstr(measured, text), "%s: %s, expected: %s", id, measured, text);
    free(measured);
}

#define START_ROW(rule, cells) "m=3 dtype=f64 rule=" rule " " cells

/* One matrix on the boundary, and one that is not. */
Test(claims_soft_inverse, the_papers_start_fails_where_row_sums_are_equal)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "initialisation", 0);
    ledger_row(t, START_ROW("paper", "matrix=a margin=-1.0000000000000002 residual_t20=0.75"));
    ledger_row(t, START_ROW("safe", "matrix=a margin=-0.8 residual_t20=0.001"));
    ledger_row(t, START_ROW("paper", "matrix=b margin=-0.99 residual_t20=0.002"));
    ledger_row(t, START_ROW("safe", "matrix=b margin=-0.8 residual_t20=0.004"));
    cr_expect(ledger_judge(&run, "S11") == VERDICT_FAILS);
    expect_measured(&run, "S11", "between 0.75 and 0.75 for 1 larger");
    expect_measured(&run, "S11", "at most 0.001 for all of these");
    ledger_close(&run);
}

#define SEARCH_ROW(rule, cells) "matrix=a m=3 dtype=f32 norm1=2.5 rule=" rule " " cells

Test(claims_soft_inverse, the_searched_start_does_not_exist)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "initialisation", 0);
    ledger_row(t, SEARCH_ROW("safe", "residual_t20=0.001"));
    ledger_row(t, SEARCH_ROW("adaptive", "search_exact=false search_found=true search_n=21 "
                                         "residual_t20=0.5"));
    ledger_row(t, SEARCH_ROW("safe", "residual_t20=0.1"));
    ledger_row(t, SEARCH_ROW("adaptive", "search_exact=true search_found=true search_n=0 "
                                         "residual_t20=0.7"));
    cr_expect(ledger_judge(&run, "S12") == VERDICT_FAILS);
    expect_measured(&run, "S12", "no n exists for 1 of 2 matrices; rounding finds one for 1");
    expect_measured(&run, "S12", "residual of 0.5 to 0.5, where 1.8/‖A‖₁² leaves at most 0.001");
    expect_measured(&run, "S12", "exactly 116/100 for n = 0, 216/200 for n = 1");
    ledger_close(&run);
}

#define CURVE_ROW(variant, iteration, cells)                                                       \
    "input=a stage=1 dtype=f64 samples=2 rounding_ratio_max=0.1 variant=" variant                  \
    " iteration=" iteration " " cells

static verdict_kind judge_curves(const char *residual, const char *range)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "curves", 0);
    ledger_row(t, CURVE_ROW("nr-paper", "19", "residual_max=1 range_residual_max=1"));
    ledger_row(t, CURVE_ROW("nr-soft", "20", "residual_max=1 range_residual_max=1"));
    ledger_row(t, CURVE_ROW("nr-paper", "20",
                            "residual_max=1e-4 range_residual_max=1e-9 condition_median=9"));
    char *cells = must_format(
        CURVE_ROW("nr-paper", "20", "residual_max=%s range_residual_max=%s condition_median=1e6"),
        residual, range);
    ledger_row(t, cells);
    free(cells);
    verdict_kind kind = ledger_judge(&run, "S14");
    ledger_close(&run);
    return kind;
}

Test(claims_soft_inverse, twenty_steps_converge_in_one_metric_and_not_in_the_other)
{
    cr_expect(judge_curves("9e-4", "0.9") == VERDICT_HOLDS_IF);
    cr_expect(judge_curves("9e-4", "nan") == VERDICT_FAILS);
    cr_expect(judge_curves("9e-4", "1e-4") == VERDICT_HOLDS);
    cr_expect(judge_curves("2e-3", "1e-4") == VERDICT_FAILS);
    cr_expect(judge_curves("nan", "1e-4") == VERDICT_FAILS);
    claim_run run;
    ledger_open(&run);
    ledger_table(&run, "curves", 0);
    cr_expect(ledger_judge(&run, "S14") == VERDICT_FAILS, "without a curve");
    ledger_close(&run);
}

static verdict_kind judge_gradients(const char *error)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "gradient", 0);
    char *cells = must_format("input=a variant=nr-paper dtype=f64 iteration=20 condition=12 "
                              "eq12_error=%s eq12_cosine=1 seed=1",
                              error);
    ledger_row(t, cells);
    free(cells);
    ledger_row(t, "input=c variant=nr-paper dtype=f64 iteration=20 condition=12 eq12_error=1e-16 "
                  "eq12_cosine=1 seed=1");
    ledger_row(t, "input=b variant=nr-paper dtype=f64 iteration=20 condition=1e6 eq12_error=1 "
                  "eq12_cosine=-0.5 seed=1");
    ledger_row(t, "input=b variant=nr-paper dtype=f64 iteration=5 condition=12 eq12_error=1");
    ledger_row(t, "input=b variant=nr-soft dtype=f64 iteration=20 condition=12 eq12_error=1");
    verdict_kind kind = ledger_judge(&run, "S16");
    ledger_close(&run);
    return kind;
}

Test(claims_soft_inverse, eq12_is_right_where_the_inverse_has_converged)
{
    cr_expect(judge_gradients("1e-15") == VERDICT_HOLDS_IF);
    cr_expect(judge_gradients("1e-6") == VERDICT_FAILS);
    cr_expect(judge_gradients("nan") == VERDICT_FAILS);
}

Test(claims_soft_inverse, four_inverses_are_told_apart)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "curves", 0);
    ledger_row(t, CURVE_ROW("nr-paper", "20", "residual_mean=0.25 range_residual_mean=1"));
    ledger_row(t, CURVE_ROW("nr-paper", "10", "residual_mean=9 range_residual_mean=9"));
    ledger_row(t, CURVE_ROW("nr-soft", "20", "residual_mean=0.5 range_residual_mean=1"));
    ledger_row(t, "input=a stage=1 dtype=f64 samples=0 iteration=0 variant=nr-adaptive");
    cr_expect(ledger_judge(&run, "S18") == VERDICT_OBSERVED);
    expect_measured(&run, "S18",
                    "nr-paper 0.25 to 0.25; nr-adaptive finds no start; nr-soft 0.5 "
                    "to 0.5; nr-softpp finds no start");
    expect_measured(&run, "S18", "by 0.67 where it is not");
    ledger_close(&run);
}

/* Rounding cannot be blamed where a build can show it. */
Test(claims_soft_inverse, the_boundary_is_exact)
{
    static const double a[4] = {1, 0.5, 0.5, 1}, ones[2] = {1, 1};
    ref_exact_newton exact;
    if (ref_exact_newton_steps(2, a, (ref_rational_start){2, 1, true}, 1, ones, &exact, NULL,
                               NULL) == ATN_ERR_UNSUPPORTED)
        cr_skip_test("no certified references");
    cr_expect(exact.iterate_is_zero && exact.residual_is_full && exact.equal_row_sums);
}
