/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S41 - S44, which need no evidence. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

TestSuite(claims_s41_comparison);

static double number_after(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    cr_assert(at, "%s: no %s", text, before);
    return strtod(at + strlen(before), NULL);
}

/* (3 e^3 + e^4)/4 six times from 1 - 0.1^2 is 2.08e-5. From 2/|A|_1^2 SOFT inverts no 2 x 2. */
Test(claims_s41_comparison, steps_that_suffice_invert_nearly_singular_matrices)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S41") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "S41", "over ½ for 4 of 7 matrices after Nyströmformer's 6");
    ledger_expect_measured(&run, "S41", "for 2 after SOFT's 20");
    ledger_expect_measured(&run, "S41", "for 7 from the paper's 2/‖A‖₁²");
    ledger_expect_measured(&run, "S41", "for 7 of 7, with up to 22 steps");
    ledger_expect_noted(&run, "S41", "| 0.1 | 2.08e-05 | 2.08e-05 | 7 |");
    /* rounding grows by 13/4 a step on the null space: 3e20-fold in 40 */
    char *measured = ledger_measured(&run, "S41");
    double early = number_after(measured, "‖X − A†‖_F is "),
           late = number_after(measured, "after 30, ");
    cr_expect(early < 1e-9, "%s", measured);
    cr_expect(late > 1, "%s", measured);
    free(measured);
    ledger_close(&run);
}

/* 1 + (e^(x/4) - 1)(e^(y/4) - 1)/(e^(1/16) - 1) at x = -3, summed over y = 0, 1/4, -3, 3: -1.3493
 */
Test(claims_s41_comparison, row_sums_need_no_square_matrix_but_may_be_negative)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S42") == VERDICT_HOLDS_IF);
    ledger_expect_counterexample(&run, "S42",
                                 "tokens 0, 1, 0, landmarks 0 and 1: Ê = E, and D̂⁻¹Ê is S");
    ledger_expect_noted(&run, "S42", "| independent | 0 of 8 |");
    ledger_expect_measured(&run, "S42", "Some row sum of Ê is ≤ 0 for 2 of 8 draws of smooth");
    char *example = ledger_counterexample(&run, "S42");
    cr_expect(number_after(example, "D̂⁻¹Ê is S to ") < 1e-14, "%s", example);
    free(example);
    ledger_expect_counterexample(&run, "S42", "the row of −3 sums to -1.3493");
    ledger_close(&run);
}

/* 1/3 + tanh(1/2)/tanh(1/8) (e/(1 + e^(1/4) + e) - 1/3) = 1.1140 at t = 2; SOFT stays below 1. */
Test(claims_s41_comparison, three_softmaxes_have_no_bound)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S43") == VERDICT_HOLDS);
    ledger_expect_noted(&run, "S43", "| 1.114 | 1.114 |");
    ledger_expect_measured(&run, "S43", "growing as t^2.06");
    ledger_close(&run);
}

/* sqrt(1 - 1/2): two singular values of 1 */
Test(claims_s41_comparison, spatial_reduction_mixes_more_than_linformer)
{
    claim_run run;
    ledger_open(&run);
    /* a linear projection cannot, Linformer's convolution of kernel and stride n/k can */
    cr_expect(ledger_judge(&run, "S44") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "S44", "below is 0.7071 of its Frobenius norm away");
    char *measured = ledger_measured(&run, "S44");
    const char *pooling = strstr(measured, "to average pooling ");
    cr_assert(pooling, "%s", measured);
    cr_expect(strtod(pooling + strlen("to average pooling "), NULL) < 1e-14, "%s", measured);
    free(measured);
    ledger_close(&run);
}
