/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of M14 - M16 and M21, which compute all they need themselves. */
#include <criterion/criterion.h>

#include "ledger.h"

Test(claims_m14_compared, four_times_the_flops_in_one_order)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M14") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "M14", "SimA: 4 with KᵀV first, 2.5 with QKᵀ first");
    ledger_expect_measured(&run, "M14", "all that the operators do, 4.02 to 4.04, KᵀV first");
    ledger_expect_noted(&run, "M14", "| 48 | 4 | 2.5 | 4.02");
    ledger_expect_measured(&run, "M14", "one value: 4 with KᵀV first, 2.5 with QKᵀ first");
    ledger_close(&run);
}

Test(claims_m14_compared, one_dot_product_is_enough)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M21") == VERDICT_FAILS);
    ledger_expect_measured(&run, "M21", "is off the library's CosFormer, of four terms, by ");
    ledger_expect_counterexample(&run, "M21", "add up to 1.5, and q·k cos²(π/4) is 1.5, with one");
    ledger_close(&run);
}

Test(claims_m14_compared, soft_reduces_its_exps)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M15") == VERDICT_FAILS);
    ledger_expect_measured(&run, "M15", "m = 49: 0.0159 to 0.312, by this library");
    ledger_expect_measured(&run, "M15", "P twice, 0.0315 to 0.562; in stage 4");
    ledger_expect_measured(&run, "M15", "nothing is reduced: 2");
    ledger_expect_noted(&run, "M15", "| 784 | 614656 | 40817 | 0.0664 | 79233 |");
    ledger_expect_counterexample(&run, "M15", "N = 2, m = 1, one head: 3 exps for N² = 4;");
    ledger_expect_counterexample(&run, "M15", "by this library N = 3, m = 1: 7 for 9");
    ledger_close(&run);
}

Test(claims_m14_compared, printed_cosines_are_not_local)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M16") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "M16", "negative first at 2, rising first at 4, 0.960 at 6");
    ledger_expect_measured(&run, "M16", "angle π(i − j)/2M: neither");
    ledger_expect_noted(&run, "M16", "| 7 | 0.7539 | 0.7071 |"); /* cos 7 and cos π/4 */
    ledger_expect_counterexample(&run, "M16", "cos 2 = -0.416");
    ledger_close(&run);
}
