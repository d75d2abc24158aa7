/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of M17 - M20, which compute all they need themselves. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

/* The number behind a text of what is measured. */
static double number_after(const char *measured, const char *text)
{
    const char *at = strstr(measured, text);
    cr_assert(at, "%s in: %s", text, measured);
    return strtod(at + strlen(text), NULL);
}

/* One head adds five matrices of the others' size to each head's own: sqrt(5) for SimA. */
Test(claims_m17_network, one_head_is_the_sum_of_the_heads)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M17") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "M17", "not testable here (A15). Whole numbers: the attention");
    ledger_expect_measured(&run, "M17", "is off the sum of those of two by 0.");
    ledger_expect_measured(&run, "M17", "1 times the flops with QKᵀ first, 6 with KᵀV first");
    char *measured = ledger_measured(&run, "M17");
    double changed = number_after(measured, "the output changes by ");
    cr_expect(changed > 1.9 && changed < 2.6, "%s", measured);
    free(measured);
    ledger_close(&run);
}

Test(claims_m17_network, exps_remain_in_gelu)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M18") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "M18", "exps of SimA's attention: 0.");
    ledger_expect_measured(&run, "M18", "3631104, where DeiT-S has 6425352; 43 % are removed");
    ledger_expect_noted(&run, "M18", "| 224 | 2794248 | 0 | 3631104 | 43.5 % |");
    ledger_expect_counterexample(&run, "M18", "0 exps in attention, and 3631104 activations");
    ledger_close(&run);
}

Test(claims_m17_network, sizes_follow_magnitudes)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M19") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "M19", "in a trained network is not testable here. 96 normal");
    char *measured = ledger_measured(&run, "M19");
    double sizes = number_after(measured, "of |entries| ");
    double entries = number_after(measured, "of the entries ");
    cr_expect(sizes > 0.4 && sizes < 0.8 && entries > -0.2 && entries < 0.2, "%s", measured);
    free(measured);
    ledger_expect_counterexample(
        &run, "M19", "2 with k = (1, 1) and 0 with k = (1, −1), where |q̂||k̂| is 2 and 2");
    ledger_close(&run);
}

/* N/d = 1 but for the norms of XCA and the scaling and sums of softmax. */
Test(claims_m17_network, xca_pays_from_the_width_of_a_head_on)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M20") == VERDICT_HOLDS);
    char *measured = ledger_measured(&run, "M20");
    double one = number_after(measured, "attention from N = ");
    double many = number_after(measured, " with 6, ");
    cr_expect(one > 380 && one < 390 && many > 30 && many < 36, "%s", measured);
    free(measured);
    ledger_expect_noted(&run, "M20", "DeiT-B, D = 768, H = 12, N = 96: N is D/8, and XCA takes 19");
    ledger_close(&run);
}
