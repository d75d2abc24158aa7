/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of U17 - U21, which compute all they need themselves. */
#include <criterion/criterion.h>

#include "ledger.h"

Test(claims_u17_springs, a_velocity_is_no_force)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U17") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "U17", "after 1, 1, 2: velocity 1, force 1; after 0, 1, 2:");
    ledger_expect_counterexample(&run, "U17",
                                 "the residual is 1 in both, and no force acts: the "
                                 "velocity changes by 0");
    ledger_close(&run);
}

Test(claims_u17_springs, a_dot_product_is_no_vector)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U18") == VERDICT_FAILS);
    ledger_expect_measured(&run, "U18", "x = 2: −k·x is -6, −dU/dx -6.");
    ledger_expect_counterexample(&run, "U18",
                                 "product is 0, where U = 1 is not at its least and "
                                 "pulls with (-1, 1)");
    ledger_close(&run);
}

/* -4 for springs of 1 and 3 at 0; -1 (1 + 1) - 3 (1 - 1) = -2 at -1 and 1, and rest at 2/4. */
Test(claims_u17_springs, clusters_have_centres)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U19") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "U19",
                           "the force -4; clusters at 0 and 0 give -4, those at −1 "
                           "and 1 -2. A particle rests at 0 between the former, at "
                           "0.5 between");
    ledger_close(&run);
}

/* (1 - 1.25)^24 / (1 - 0.5)^24 = 2^-24. */
Test(claims_u17_springs, particles_turn_to_the_smaller_k_too)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U20") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "U20",
                           "for k = (4, ½), 1 for (1.75, ½), 5.96e-08 for (1.25, ½) "
                           "and 0 for (1, ½)");
    ledger_expect_noted(&run, "U20", "| (4, 0.5) | 4.5 | 1 | 2.82e+11 |");
    ledger_close(&run);
}

Test(claims_u17_springs, a_network_drives_each_token_by_itself)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U21") == VERDICT_FAILS);
    ledger_expect_measured(&run, "U21", "1 apart without a further term, 1 with g(t) = 3, 2 with");
    ledger_close(&run);
}
