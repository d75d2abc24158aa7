/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S38 - S40. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

TestSuite(claims_s38_dependence);

#define NORM_ROW(input, m, norm)                                                                   \
    "statement=S06-printed input=" input " n=4 m=" m " sample=0 seed=1 bound=9 measured=" norm

/* log(1 + e^-1/2)/(1 + e^-1) over log 2; 6 = 2 * 3^1, and 5/5 over log 4 */
Test(claims_s38_dependence, norms_do_not_grow_with_the_square_of_m)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "bounds-landmarks", 0);
    ledger_row(t, NORM_ROW("a", "1", "2"));
    ledger_row(t, "statement=S06-corrected input=a n=4 m=3 sample=0 seed=1 bound=9 measured=100");
    ledger_row(t, NORM_ROW("a", "3", "6"));
    ledger_row(t, NORM_ROW("b", "1", "5"));
    ledger_row(t, NORM_ROW("b", "4", "5"));
    cr_expect(ledger_judge(&run, "S38") == VERDICT_FAILS);
    ledger_expect_measured(&run, "S38", "0.232 for the pair below; 0 to 1 on inputs");
    ledger_expect_noted(&run, "S38", "| a | 4 | 3 | 6 | 18 |");
    ledger_expect_noted(&run, "S38", "| b | 4 | 4 | 5 | 80 |");
    ledger_expect_counterexample(&run, "S38",
                                 "= 1.3679 with the first for landmark, 1 + e^-½ = 1.6065");
    ledger_close(&run);
}

/* Errors fall with more random tokens: proved of nested draws, and these are. */
Test(claims_s38_dependence, random_landmarks_are_compared_with_pooling)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S39") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "S39", "falls in 3 of 3 inputs step by step");
    ledger_expect_noted(&run, "S39", "| independent | 36 |");
    ledger_expect_measured(&run, "S39", "79.3 and 79.3 %; S05");
    char *measured = ledger_measured(&run, "S39");
    const char *spread = strstr(measured, "draws is 1 to ");
    cr_assert(spread, "%s", measured);
    /* 16 tokens of 8 clusters: some draws miss one, some do not */
    cr_expect(strtod(spread + strlen("draws is 1 to "), NULL) > 1.5, "%s", measured);
    free(measured);
    ledger_close(&run);
}

/* The jump is 2s k(0, 1)^2 = e^-1 in the limit. */
Test(claims_s38_dependence, separating_two_landmarks_moves_the_approximation_far)
{
    claim_run run;
    ledger_open(&run);
    ledger_table(&run, "accuracy", 1);
    table *t = ledger_table(&run, "accuracy", 0);
    ledger_row(t, "network=a operator=soft change=noise-0.25 pictures=8 accuracy=0.5 "
                  "accuracy_error=0.25");
    ledger_row(t, "network=b operator=gaussian change=noise-0.25 pictures=8 accuracy=0.75 "
                  "accuracy_error=0.125");
    ledger_row(t, "network=c operator=softmax change=noise-0.25 pictures=8 accuracy=0.25 "
                  "accuracy_error=0.125");
    cr_expect(ledger_judge(&run, "S40") == VERDICT_OBSERVED);
    ledger_expect_noted(&run, "S40", "| 2^-8 | 110.2 | 0.3693 |");
    ledger_expect_measured(&run, "S40", "at most at these ε with 20 published steps");
    ledger_expect_noted(&run, "S40", "| clusters | 0.5 |");
    ledger_expect_measured(&run, "S40", "below 1 in 24 of 27 cases; relative");
    ledger_expect_noted(&run, "S40", "| trained:soft | 0.5 | 0.9");
    ledger_expect_measured(&run, "S40", "network (4 heads): 0.912 to 0.982");
    ledger_expect_measured(&run, "S40", "below 1 in 36 of 36 cases; relative");
    ledger_expect_measured(&run, "S40",
                           "with noise of 0.25 standard deviations on its pixels 50 ± 25 %");
    ledger_expect_measured(&run, "S40", "With exact Gaussian attention: In miniature");
    ledger_expect_measured(&run, "S40", "on its pixels 75 ± 12 %");
    ledger_expect_measured(&run, "S40", "With softmax, which reconstructs nothing either: In mini");
    ledger_expect_counterexample(&run, "S40", "goes from e⁻¹ = 0.3679 to 0.7358");
    ledger_close(&run);
}
