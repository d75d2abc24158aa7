/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S31 - S36, which need no evidence. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

TestSuite(claims_soft_derivation);

static void expect_counterexample(const claim_run *run, const char *id, const char *text)
{
    char *counterexample = ledger_counterexample(run, id);
    cr_expect(strstr(counterexample, text), "%s: %s, expected: %s", id, counterexample, text);
    free(counterexample);
}

/* |q_1| = |q_2| for 9 of 25 pairs; 1/(1 + e) = 0.26894. */
Test(claims_soft_derivation, softmax_of_equal_queries_and_keys_is_seldom_symmetric)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S31") == VERDICT_FAILS);
    ledger_expect_measured(&run, "S31", "9 of 25 matrices are symmetric");
    expect_counterexample(&run, "S31", "= [0.5000 0.5000; 0.2689 0.7311]");
    cr_expect(ledger_judge(&run, "S32") == VERDICT_FAILS);
    ledger_expect_measured(&run, "S32", "in 9 of 25 matrices");
    ledger_expect_measured(&run, "S32", "= 0.7689");
    expect_counterexample(&run, "S32", "3p − 1 = -0.1932");
    ledger_close(&run);
}

Test(claims_soft_derivation, equal_ranks_are_all_that_nystroem_needs)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S33") == VERDICT_FAILS);
    ledger_expect_measured(&run, "S33", "Ŝ = S in 1000, of which");
    ledger_expect_measured(&run, "S33", "rank 3, in 0");
    expect_counterexample(&run, "S33", "1/3 for x = (1, 0), -1/3 for x = (3, −2)");
    ledger_close(&run);
}

/* 1 - 1/e */
Test(claims_soft_derivation, no_finite_sum_is_the_kernel)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S34") == VERDICT_HOLDS_IF);
    expect_counterexample(&run, "S34", "1 − e⁻¹ = 0.6321");
    /* (1 - 1/e)^2 (1 - 1/e^2) */
    ledger_expect_noted(&run, "S34", "| 3 | 0.3455 | 0.3455 |");
    ledger_close(&run);
}

static double number_after(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    cr_assert(at, "%s: no %s", text, before);
    return strtod(at + strlen(before), NULL);
}

/* The bound is one of the mean: with 20 draws of 49 landmarks the root stays well below twice it,
 * and it is not so large that it says nothing. */
Test(claims_soft_derivation, eigenvalues_are_estimated_to_n_over_root_m)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S35") == VERDICT_HOLDS_IF);
    char *measured = ledger_measured(&run, "S35");
    double root = number_after(measured, "(estimate − λ_i)²: ");
    cr_expect(root > 2.8 && root < 28, "%s", measured);
    free(measured);
    expect_counterexample(&run, "S35", "(n/m)λ₁^(m) = 2, and λ₁(S) = 1 + e⁻⁸ = 1.00034");
    ledger_close(&run);
}

/* sqrt((1 + 1/e)/2), and (2/3) (e^-4 - e^-1)/(2 (1 - e^-1)) */
Test(claims_soft_derivation, extended_eigenvectors_are_not_orthonormal)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S36") == VERDICT_HOLDS_IF);
    expect_counterexample(&run, "S36", "has length 0.8270");
    expect_counterexample(&run, "S36", "ũ₁·ũ₂ = -0.1843");
    ledger_close(&run);
}
