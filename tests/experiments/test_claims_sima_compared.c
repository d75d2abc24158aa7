/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of M14 - M16, which compute all they need themselves. */
#include <criterion/criterion.h>

#include "ledger.h"

Test(claims_sima_compared, four_times_the_flops_in_one_order)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M14") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "M14", "4 to 4 with KᵀV first, 2.5 to 2.5 with QKᵀ first");
    ledger_expect_measured(&run, "M14", "all that the operators do, 4.02 to 4.04, KᵀV first");
    ledger_expect_noted(&run, "M14", "| 48 | 4 | 2.5 | 4.02");
    ledger_expect_counterexample(&run, "M14",
                                 "2.5 times the flops with QKᵀ first, 4 with KᵀV first");
    ledger_close(&run);
}

Test(claims_sima_compared, soft_reduces_its_exps)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M15") == VERDICT_FAILS);
    ledger_expect_measured(&run, "M15", "m = 49: 0.0315 to 0.562");
    ledger_expect_noted(&run, "M15", "| 784 | 614656 | 79233 | 0.129 | 40817 |");
    ledger_expect_counterexample(&run, "M15", "N = 3, m = 1, one head: 7 exps for N² = 9;");
    ledger_expect_counterexample(&run, "M15", "N = 2, m = 1: 3 for 4");
    ledger_close(&run);
}

Test(claims_sima_compared, printed_cosines_are_not_local)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M16") == VERDICT_FAILS);
    ledger_expect_measured(&run, "M16", "negative first at 2, rising first at 4, 0.960 at 6");
    ledger_expect_measured(&run, "M16", "angle π(i − j)/2M: neither");
    ledger_expect_counterexample(&run, "M16", "cos 2 = -0.416");
    ledger_close(&run);
}
