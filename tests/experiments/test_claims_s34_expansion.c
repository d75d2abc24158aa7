/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S34 - S37, which need no evidence. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

TestSuite(claims_s34_expansion);

/* 1 - 1/e */
Test(claims_s34_expansion, no_finite_sum_is_the_kernel)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S34") == VERDICT_HOLDS_IF);
    ledger_expect_counterexample(&run, "S34", "1 − e⁻¹ = 0.6321");
    /* (1 - 1/e)^2 (1 - 1/e^2) */
    ledger_expect_noted(&run, "S34", "| 3 | 0.3455 | 0.3455 |");
    ledger_close(&run);
}

/* sqrt(2), sqrt(9) */
Test(claims_s34_expansion, the_extension_has_a_factor_too_many)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S35") == VERDICT_FAILS);
    ledger_expect_measured(&run, "S35", "1.0000 to 3.0000 as printed");
    ledger_expect_counterexample(&run, "S35", "= 1.4142");
    ledger_expect_noted(&run, "S35",
                        "| 4 | 2.000000 to 2.000000 | 2.000000 | 1.000000 to 1.000000");
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
Test(claims_s34_expansion, eigenvalues_are_estimated_to_n_over_root_m)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S36") == VERDICT_HOLDS_IF);
    char *measured = ledger_measured(&run, "S36");
    double root = number_after(measured, "(estimate − λ_i)²: ");
    cr_expect(root > 2.8 && root < 28, "%s", measured);
    /* n/sqrt(m) = 28 times a root of less than 1 */
    char *bound = ledger_bound(&run, "S36");
    double most = number_after(bound, "root of the mean: ");
    cr_expect(root < 2 * most && most < 28, "%s", bound);
    free(bound);
    free(measured);
    ledger_expect_counterexample(&run, "S36", "(n/m)λ₁^(m) = 2, and λ₁(S) = 1 + e⁻⁸ = 1.00034");
    ledger_close(&run);
}

/* sqrt((1 + 1/e)/2), and (2/3) (e^-4 - e^-1)/(2 (1 - e^-1)) */
Test(claims_s34_expansion, extended_eigenvectors_are_not_orthonormal)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S37") == VERDICT_HOLDS_IF);
    ledger_expect_counterexample(&run, "S37", "has length 0.8270");
    ledger_expect_counterexample(&run, "S37", "|ũ₁·ũ₂| = 0.1843");
    /* the first eigenvalue of close tokens is far from all others */
    char *bound = ledger_bound(&run, "S37");
    cr_expect(number_after(bound, "γ > ε for ") >= 1, "%s", bound);
    cr_expect(strstr(bound, "0 of them outside"), "%s", bound);
    free(bound);
    /* epsilon, in the last column, is mostly below 1/sqrt(m) */
    char *notes = ledger_notes(&run, "S37");
    const char *cell = strstr(notes, "| close | 1 |");
    cr_assert(cell, "%s", notes);
    for (int i = 0; i < 6; i++)
        cell = strchr(cell, '|') + 1;
    cr_expect(strtod(cell, NULL) > 0 && strtod(cell, NULL) < 1. / 7, "%s", notes);
    free(notes);
    ledger_close(&run);
}
