/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S31 - S33, which need no evidence. */
#include <criterion/criterion.h>

#include "ledger.h"

TestSuite(claims_s31_symmetry);

/* |q_1| = |q_2| for 9 of 25 pairs; 1/(1 + e) = 0.26894. */
Test(claims_s31_symmetry, softmax_of_equal_queries_and_keys_is_seldom_symmetric)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S31") == VERDICT_FAILS);
    ledger_expect_measured(&run, "S31", "9 of 25 matrices are symmetric");
    ledger_expect_counterexample(&run, "S31", "= [0.5000 0.5000; 0.2689 0.7311]");
    cr_expect(ledger_judge(&run, "S32") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "S32", "in 9 of 25 matrices");
    ledger_expect_measured(&run, "S32", "= 0.7689");
    ledger_expect_measured(&run, "S32", "as the paper concludes, for 25 of 25 matrices");
    ledger_expect_counterexample(&run, "S32", "3p − 1 = -0.1932");
    ledger_close(&run);
}

Test(claims_s31_symmetry, equal_ranks_are_all_that_nystroem_needs)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S33") == VERDICT_FAILS);
    ledger_expect_measured(&run, "S33", "Ŝ = S in 1000, of which");
    ledger_expect_measured(&run, "S33", "rank 3, in 0");
    ledger_expect_counterexample(&run, "S33", "1/3 for x = (1, 0), -1/3 for x = (3, −2)");
    ledger_close(&run);
}
