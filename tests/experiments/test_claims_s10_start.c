/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S10 - S12. */
#include <certified.h>
#include <criterion/criterion.h>
#include <stdio.h>

#include "ledger.h"

/* What it rests on is computed by the judge: a fault in lib/inverse/newton/cpu.c must turn it. */
Test(claims_s10_start, the_limit_of_the_start)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S10") == VERDICT_HOLDS);
    ledger_expect_noted(&run, "S10", " | 1.52291e+283 |");
    ledger_expect_noted(&run, "S10", " | 8.41849e-287 |");
    ledger_expect_noted(&run, "S10", " | 1.90072e+19728 |");
    ledger_close(&run);
}

#define START_ROW(rule, cells) "m=3 dtype=f64 rule=" rule " " cells

/* One matrix on the boundary, and one that is not. */
Test(claims_s10_start, the_papers_start_fails_where_row_sums_are_equal)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "initialisation", 0);
    ledger_row(t, START_ROW("paper", "matrix=a margin=-1.0000000000000002 residual_t20=0.75"));
    ledger_row(t, START_ROW("safe", "matrix=a margin=-0.8 residual_t20=0.001"));
    ledger_row(t, START_ROW("paper", "matrix=b margin=-0.99 residual_t20=0.002"));
    ledger_row(t, START_ROW("safe", "matrix=b margin=-0.8 residual_t20=0.004"));
    cr_expect(ledger_judge(&run, "S11") == VERDICT_FAILS);
    ledger_expect_measured(&run, "S11", "between 0.75 and 0.75 for 1 larger");
    ledger_expect_measured(&run, "S11", "Of ordinary inputs: 1 for a blank image, 1 for landmarks");
    ledger_expect_measured(&run, "S11", "At most 0.001 for all of these");
    ledger_expect_noted(&run, "S11", "| line of 3: [1 ½ 1/16; ½ 1 ½; 1/16 ½ 1] | no | 0.8695 | ");
    ledger_expect_noted(&run, "S11", "| right angle: [1 ½ ¼; ½ 1 ½; ¼ ½ 1] | no | 0.9215 | ");
    ledger_expect_noted(&run, "S11", "| blank image: 3 equal landmarks | yes | 1.0000 | 1 | ");
    ledger_close(&run);
}

#define SEARCH_ROW(rule, cells) "matrix=a m=3 dtype=f32 norm1=2.5 rule=" rule " " cells

Test(claims_s10_start, the_searched_start_does_not_exist)
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
    ledger_expect_measured(&run, "S12",
                           "no n exists for 1 of 2 cases (matrices in f32 and in f64); "
                           "rounding finds one for 1");
    ledger_expect_measured(&run, "S12",
                           "residual of 0.5 to 0.5, where 1.8/‖A‖₁² leaves at most 0.001");
    ledger_expect_measured(&run, "S12", "exactly 116/100 for n = 0, 216/200 for n = 1");
    ledger_close(&run);
}

/* Rounding cannot be blamed where a build can show it. */
Test(claims_s10_start, the_boundary_is_exact)
{
    static const double a[4] = {1, 0.5, 0.5, 1}, ones[2] = {1, 1};
    ref_exact_newton exact;
    if (ref_exact_newton_steps(2, a, (ref_rational_start){2, 1, true}, 1, ones, &exact, NULL,
                               NULL) == ATN_ERR_UNSUPPORTED) {
        fputs("left out: no certified references\n", stderr);
        return;
    }
    cr_expect(exact.iterate_is_zero && exact.residual_is_full && exact.equal_row_sums);
}
