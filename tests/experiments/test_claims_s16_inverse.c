/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S16 - S19. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/report.h"
#include "ledger.h"

static verdict_kind judge_gradients(const char *id, const char *error)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "gradient", 0);
    table *published = ledger_table(&run, "gradient-published", 0);
    char *cells = must_format("input=a variant=nr-paper dtype=f64 iteration=20 condition=12 "
                              "eq12_error=%s eq12_cosine=1 seed=1",
                              error);
    ledger_row(published, cells);
    free(cells);
    ledger_row(t, "input=c variant=nr-paper dtype=f64 iteration=20 condition=12 eq12_error=1e-16 "
                  "eq12_cosine=1 seed=1");
    ledger_row(t, "input=b variant=nr-paper dtype=f64 iteration=20 condition=1e6 eq12_error=1 "
                  "eq12_cosine=-0.5 seed=1");
    ledger_row(t, "input=b variant=nr-paper dtype=f64 iteration=5 condition=12 eq12_error=1");
    ledger_row(t, "input=b variant=nr-soft dtype=f64 iteration=20 condition=12 eq12_error=1");
    verdict_kind kind = ledger_judge(&run, id);
    ledger_close(&run);
    return kind;
}

Test(claims_s16_inverse, eq12_is_right_where_the_inverse_has_converged)
{
    cr_expect(judge_gradients("S16", "1e-15") == VERDICT_HOLDS);
    cr_expect(judge_gradients("S16", "1e-6") == VERDICT_FAILS);
    cr_expect(judge_gradients("S16", "nan") == VERDICT_FAILS);
    cr_expect(judge_gradients("S19", "1e-15") == VERDICT_HOLDS_IF);
    cr_expect(judge_gradients("S19", "1e-6") == VERDICT_FAILS);
    cr_expect(judge_gradients("S19", "nan") == VERDICT_FAILS);
}

/* -64/63 = -1/(2.625 * 0.375), both converged; (f(m) - f(l))/(m - l) for l = 4, f = 1/4, and m of
 * 5e-10, where f is nearly 0: 1/16. */
Test(claims_s16_inverse, across_eigenvectors_the_derivative_is_the_divided_difference)
{
    claim_run run;
    ledger_open(&run);
    ledger_table(&run, "gradient", 0);
    ledger_table(&run, "gradient-published", 0);
    ledger_expect_measured(&run, "S19", "in 9 directions");
    /* of rank 1 for every t, but a_22 = (1 + t)^2 */
    ledger_expect_noted(&run, "S19",
                        "A singular A whose diagonal leaves 1, as no kernel matrix's "
                        "does: [1 1; 1 1] moved");
    ledger_expect_measured(&run, "S19", "5 of 5 with the wrong sign");
    ledger_expect_noted(&run, "S19", "| 2.62 | 0.375 | -1.01587 | -1.01587 | -1.01587 |");
    ledger_expect_noted(&run, "S19", "| 4 | 4.66e-10 | +0.0624891 | +0.0624891 | -1.37");
    ledger_close(&run);
}

#define CURVE_ROW(variant, iteration, cells)                                                       \
    "input=a stage=1 dtype=f64 samples=2 rounding_ratio_max=0.1 variant=" variant                  \
    " iteration=" iteration " " cells

Test(claims_s16_inverse, four_inverses_are_told_apart)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "curves", 0);
    ledger_row(t, CURVE_ROW("nr-paper", "20", "residual_mean=0.25 range_residual_mean=1"));
    ledger_row(t, CURVE_ROW("nr-paper", "10", "residual_mean=9 range_residual_mean=9"));
    ledger_row(t, CURVE_ROW("nr-soft", "20", "residual_mean=0.5 range_residual_mean=1"));
    ledger_row(t, "input=a stage=1 dtype=f64 samples=0 iteration=0 variant=nr-adaptive");
    cr_expect(ledger_judge(&run, "S18") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "S18",
                           "nr-paper 0.25 to 0.25; nr-adaptive finds no start; nr-soft 0.5 "
                           "to 0.5; nr-softpp finds no start");
    ledger_expect_measured(&run, "S18", "by 0.67 where it is not");
    ledger_close(&run);
}

#define SPEED_ROW(cells)                                                                           \
    "statement=S17 n=784 d=32 pairs=3 ratio_max=3 a_seconds=1 b_workspace_bytes=100 " cells

/* 20 iterates of 2 x 2 in f32 are 320 bytes. */
Test(claims_s16_inverse, times_are_observed_with_their_spread)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "time", 0);
    ledger_row(t, SPEED_ROW("m=2 dirty=1 ratio_median=2 ratio_min=1.5 a_workspace_bytes=420"));
    ledger_row(t, SPEED_ROW("m=2 dirty=2 ratio_median=1.25 ratio_min=0.9 a_workspace_bytes=419"));
    ledger_row(t, "statement=S29 ratio_median=9 ratio_min=9 pairs=9 dirty=9");
    cr_expect(ledger_judge(&run, "S17") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "S17",
                           "at 1 of 2 sizes: the backward through the steps takes 1.25 to 2");
    ledger_expect_measured(&run, "S17",
                           "at 1 sizes at least the 20 iterates more memory (6 pairs; in 3");
    char *bound = ledger_bound(&run, "S17");
    cr_expect(strstr(bound, "with and without Eq. 12: it has the throughput of NeurIPS Tab. 1"),
              "%s", bound);
    free(bound);
    ledger_row(t, SPEED_ROW("m=2 ratio_median=nan ratio_min=nan a_workspace_bytes=420"));
    ledger_expect_measured(&run, "S17", "at 1 of 3 sizes");
    ledger_expect_measured(&run, "S17", "to nan times");
    ledger_expect_measured(&run, "S17", "(9 pairs; the machine does not say");
    ledger_close(&run);
}
