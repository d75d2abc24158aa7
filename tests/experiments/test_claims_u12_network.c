/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of U12 - U16, which count all they need themselves. */
#include <criterion/criterion.h>

#include "ledger.h"

/* (2 16 N^2 D + 4 4 N D^2) / (2 N^2 D + 4 N D^2) = 4 (4 N + 2 D) / (N + 2 D), D = 384. */
Test(claims_u12_network, sixteen_times_without_projections)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U12") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "U12", "two products and exps: 16 times");
    ledger_expect_measured(&run, "U12", "6.44 times from 224 to 448 pixels, 10.06 to 896, 13.64");
    ledger_expect_noted(&run, "U12", "| 448 → 896 | 16 | 16 | 10.062 | ");
    ledger_expect_counterexample(&run, "U12", "(472055808 + 462422016) multiply-adds");
    ledger_close(&run);
}

Test(claims_u12_network, learned_positions_depend_on_the_resolution)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U13") == VERDICT_FAILS);
    ledger_expect_measured(&run, "U13", "grow by 72960 to 194560 parameters, all others by 0");
    ledger_expect_counterexample(&run, "U13", "37632 for 14 × 14 tokens, 110592 for 24 × 24");
    ledger_close(&run);
}

Test(claims_u12_network, counts_favour_linear_attention_at_high_resolutions)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U14") == VERDICT_NOT_TESTABLE);
    ledger_expect_measured(&run, "U14", "a lower one is not to be expected by counts, for DeiT");
    ledger_expect_measured(&run, "U14", "3.14 times at 1024");
    ledger_close(&run);
}

/* Powers of two 4 apart: 2 to 8 times the memory, both ends excluded. */
Test(claims_u12_network, doubled_batches_tell_little_of_memory)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U15") == VERDICT_NOT_TESTABLE);
    ledger_expect_measured(&run, "U15", "images that take 2.01 to 7.99 times the memory");
    ledger_close(&run);
}

/* At 224 pixels DeiT-S holds 5 197 384 + 6 197^2 numbers, UFO-ViT-S's MLP 5 196 384, Swin-T's first
 * stage 3136 (5 96 + 3 49). */
Test(claims_u12_network, stored_matrices_make_the_difference)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U16") == VERDICT_NOT_TESTABLE);
    ledger_expect_measured(&run, "U16", "less is to be expected: DeiT-S's are 1.62 times");
    ledger_expect_measured(&run, "U16", "1.005 and 1.000 times if not; Swin-T's 5.22 and 5.22");
    ledger_expect_noted(&run, "U16", "| 896 | 10.807 | 1.000 | 5.225 |");
    ledger_close(&run);
}
