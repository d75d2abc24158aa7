/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of M22 - M28, which count all they need themselves. */
#include <criterion/criterion.h>

#include "ledger.h"

/* 49 keys for each token: 3 heads and 3136 tokens in stage 1. */
Test(claims_m22_counts, windows_have_as_many_keys_as_tokens)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M22") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "M22", "four stages: 1 in blocks with windows, 1 in Twins");
    ledger_expect_measured(&run, "M22", "at 448 pixels 1 and 4");
    ledger_expect_noted(&run, "M22", "| 224 | 3136 | 460992 | 460992 | 307328 | 307328 | 307328 |");
    ledger_expect_noted(&run, "M22", "| 448 | 196 | 230496 | 230496 | 153664 | 153664 | 614656 |");
    ledger_close(&run);
}

Test(claims_m22_counts, reduced_keys_are_a_grid)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M23") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "M23", "0.125 to 1 with PVT's own R, 1 with R the number");
    ledger_expect_noted(&run, "M23", "| 784 | 2 | 4 | 76832 | 307328 | 76832 |");
    ledger_expect_noted(&run, "M23", "| 50 | 8 | 1 | 20000 | 20000 | 20000 |");
    ledger_expect_counterexample(&run, "M23", "49 keys: 153664 exps, where HN²/8 is 1229312");
    cr_expect(ledger_judge(&run, "M24") == VERDICT_FAILS);
    ledger_expect_measured(&run, "M24", "three stages: 0.25 to 0.2538");
    ledger_expect_noted(&run, "M24", "| 197 | 6 | 50 | 59100 | 232854 |");
    ledger_expect_counterexample(&run, "M24", "784 keys: 2458624 exps, where HN² is 9834496");
    ledger_close(&run);
}

Test(claims_m22_counts, cited_times_and_flops_are_compared)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M25") == VERDICT_NOT_TESTABLE);
    ledger_expect_measured(&run, "M25", "longer than 2 of the 2 others and has fewer flops than 2");
    ledger_expect_measured(&run, "M25", "25.77·10⁹ flops for Q, K and V, 4.295·10⁹ for QKᵀ, 33.55");
    ledger_expect_noted(&run, "M25", "| QKV projections | 333 | 25.7 | 77.2 |");
    ledger_close(&run);
}

Test(claims_m22_counts, printed_orders_are_upper_bounds)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M26") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "M26", "exps are 1 of HN², XCA's 0.006944 to 1 of HD²");
    /* 6 heads: 4 + 12/384 + 1/3136 times, and (4/3136 + 6/384) */
    ledger_expect_noted(&run, "M26", "| 6 | 3136 | 1 | 0.02778 | 4.032 | 0.0169 |");
    ledger_close(&run);
}

Test(claims_m22_counts, described_networks_have_the_printed_sizes)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M27") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "M27",
                           "XCiT-T12/8 as described are those of Tab. 1 to their digits or 2 %;");
    ledger_expect_noted(&run, "M27", "| XCiT-T12/8 | 8, 192, 4, 12 | 6.71 | 7 | 4.");
    ledger_expect_measured(&run, "M27", "6.72·10⁶ parameters with 12 layers, 12.12 with 24");
    ledger_expect_measured(&run, "M27", "CvT-13 has 13 blocks");
    ledger_expect_noted(&run, "M27", "| DeiT-S | 16, 384, 6, 12 | 22.05 | 22 | 4.");
    cr_expect(ledger_judge(&run, "M28") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "M28", "over those with patches of 16: 4; printed");
    ledger_expect_noted(&run, "M28", "| 800 | 10000 | 2500 |");
    ledger_close(&run);
}
