/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of N16 - N19, which need no evidence. */
#include <criterion/criterion.h>

#include "ledger.h"

TestSuite(claims_n16_soft_tables);

/* 15 (200704 + 200704 + 188160 + 51200) + 2508800 numbers */
Test(claims_n16_soft_tables, one_memory_is_printed_for_two_batches)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "N16") == VERDICT_NOT_TESTABLE);
    ledger_expect_measured(&run, "N16", "at least 12.12·10⁶ numbers an image: 23.1 GB for 1024");
    ledger_expect_measured(&run, "N16", "which one GPU cannot hold in 15.8");
    ledger_expect_noted(&run, "N16", "| 128 | 15.8 | 2.89 | 5.78 |");
    ledger_close(&run);
}

/* DeiT-S less 12 keys' projections of 384 * 385 and a class token, which SOFT's windows and norms
 * of 4 * 32 * 32 + 64 hardly make up for. */
Test(claims_n16_soft_tables, what_is_called_similar_is_counted)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "N17") == VERDICT_OBSERVED);
    ledger_expect_noted(&run, "N17", "| SOFT (IJCV) | SOFT++ in DeiT-S | 20.33 |");
    ledger_expect_noted(&run, "N17", "| SOFT (NeurIPS) | DeiT-S | 22.05 | 4.60 | 4.60 |");
    ledger_expect_measured(&run, "N17",
                           "parameters 1.34, multiply-adds 1.11 in IJCV's, 1.13 and 1.37");
    ledger_close(&run);
}

/* PVT's rows show that the heads are the right ones. */
Test(claims_n16_soft_tables, detectors_are_counted_with_their_heads)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "N18") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "N18", "PVT's rows: 8 of 8 agree.");
    ledger_expect_measured(&run, "N18", "6 of 9 agree and 3 more are within 2 %");
    ledger_expect_measured(&run, "N18", "1 and 6; in neither reading within 2 %: 0");
    ledger_expect_noted(&run, "N18", "| Tab. 4, RetinaNet | SOFT++-Tiny | 23 | 25.19 | 24.66 |");
    ledger_expect_noted(&run, "N18",
                        "| Tab. 5, Mask R-CNN | Tiny, 3 blocks in stage 3 | 32 | 32.83 | 32.31 |");
    ledger_expect_noted(&run, "N18", "| Tab. 7, UperNet | SOFT++-Large | 121 | 120.80 | 118.70 |");
    ledger_close(&run);
}

/* 306 - 253: 78 heads with m = 256, 20 steps of 2 * 256^3 multiply-adds each. Of the 253, 14 are P
 * A+, n m^2 for the heads of stages 1 to 3. */
Test(claims_n16_soft_tables, segmenters_are_counted_with_their_head)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "N19") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "N19", "6 of 6 printed numbers lie between");
    ledger_expect_measured(&run, "N19", "0 above both. They are 1.01 to 1.37 times the former");
    ledger_expect_measured(&run, "N19",
                           "Within 1.1 %, by which Swin's and ConvNext's rows differ with the same "
                           "head, 2 are the former and 0 the latter");
    ledger_expect_noted(&run, "N19",
                        "| SOFT++-Small | ADE20K, 512 × 512 | 237 | 236 | 253 | 306 |");
    ledger_expect_noted(&run, "N19",
                        "| SOFT++-Large | Cityscapes, 768 × 768 | 899 | 658 | 1083 | 3468 |");
    ledger_close(&run);
}
