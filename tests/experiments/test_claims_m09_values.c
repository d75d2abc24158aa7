/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of M09 - M13, which compute all they need themselves. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

Test(claims_m09_values, channels_have_the_same_share)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M09") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "M09", "over all pairs of tokens: 1, without norms 1 to 1.");
    ledger_expect_measured(&run, "M09", "its largest |q̂_i k̂_j|: 0.000416 to 1.");
    ledger_expect_measured(&run, "M09",
                           "their parts of the first entry are 1 and 0.25, without norms 1 and 1");
    ledger_expect_noted(&run, "M09", "| one token of 49 | 1 | 1 | 1 |");
    ledger_expect_noted(&run, "M09", "| all tokens equal | 2401 | 1 | 0.0004165 |");
    ledger_close(&run);
}

Test(claims_m09_values, signs_are_those_of_normalised_vectors)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M10") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "M10", "k = (−1), at an angle of 180°, has the value -1;");
    ledger_expect_noted(&run, "M10", "| (2, 1, 1) | (2, −1, −1) | 2 | 70.5° | -1 |");
    ledger_expect_noted(&run, "M10", "| (2, 1), (2, 0) | (2, −1), (2, 0) | 3 | 53.1° | -0.75 |");
    ledger_expect_measured(&run, "M10", "q·k = -2, at 109.5°, the value 1.");
    ledger_expect_measured(&run, "M10", "another sign than q_i·k_j, 0 than q̂_i·k̂_j");
    ledger_expect_noted(&run, "M10", "| (1) | (−1) | -1 | 180.0° | -1 |");
    char *measured = ledger_measured(&run, "M10");
    double share = strtod(strstr(measured, "as large: ") + strlen("as large: "), NULL);
    cr_expect(share > 35 && share < 50, "%s", measured);
    /* 49 weights add up to 1, so the least of them is below 1/49 */
    double least = strtod(strstr(measured, "least weight ") + strlen("least weight "), NULL);
    cr_expect(least >= 0 && least < 1. / 49, "%s", measured);
    free(measured);
    ledger_close(&run);
}

Test(claims_m09_values, tokens_may_be_permuted_but_not_repeated)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M11") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "M11", "Y of the permuted tokens is off the permuted Y by 0;");
    ledger_expect_measured(&run, "M11", "off by (1, -2) for (1), (2)");
    ledger_expect_measured(&run, "M11", "are 0.5 of what they were, those of softmax attention 1");
    ledger_close(&run);
}

Test(claims_m09_values, a_number_may_be_absorbed)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M12") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "M12", "are off those with W_v/D by 0; D = 3: by 0.0");
    ledger_expect_measured(&run, "M12", "the output 80000 is not finite, with V/2 it is 40000;");
    ledger_expect_measured(&run, "M12",
                           "15.5 % are subnormal after division by 64 and 75.9 % by 384");
    ledger_expect_measured(&run, "M12", "rounded to 21840, and the output, 65520, is not finite;");
    ledger_close(&run);
}

Test(claims_m09_values, what_norms_do_is_observed)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M13") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "M13", "NaN without norms is seen");
    ledger_expect_measured(&run, "M13", "with norms the output is 0, which is exact");
    ledger_expect_measured(&run, "M13", "1 with ℓ1 norms, 14 with ℓ2");
    ledger_expect_measured(&run, "M13", "the outputs × 0.5 with ℓ1 norms, × 1 with ℓ2");
    ledger_expect_measured(&run, "M13", "of training, is not testable here.");
    ledger_expect_noted(&run, "M13", "| none | NaN | NaN |");
    ledger_expect_noted(&run, "M13", "| ℓ1 | 0 | 0 | 1 | × 0.5 |");
    ledger_close(&run);
}
