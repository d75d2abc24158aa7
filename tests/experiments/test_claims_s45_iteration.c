/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S45 - S49, which need no evidence. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

TestSuite(claims_s45_iteration);

/* x = 1/10, 19/100, 3439/10000: x - x^2. (16/81, 2176/6561) = (0.1975, 0.3317). */
Test(claims_s45_iteration, the_other_residual_rises_first)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S45") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "S45", "from 0.82112 (k = 2) to 0.83814");
    ledger_expect_measured(&run, "S45", "= 9/100, ‖X₁AX₁ − X₁‖ = 1539/10000");
    ledger_expect_measured(&run, "S45",
                           "Of 999 modes 0 < 1 − αλ² < 1, 381 rise, those above "
                           "(√5 − 1)/2, and 618 fall, those below: 0 exceptions");
    ledger_expect_noted(&run, "S45", "| 2 | 22563279/100000000 |");
    ledger_expect_noted(&run, "S45", "| 0 | 0.1975 |");
    ledger_expect_noted(&run, "S45", "| 1 | 0.3317 |");
    ledger_close(&run);
}

/* 20 steps are 40 products of 2 m^3 flops; the times are not judged. */
Test(claims_s45_iteration, steps_are_timed_and_counted)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S46") == VERDICT_NOT_TESTABLE);
    ledger_expect_measured(&run, "S46", "40 products of m × m matrices, 80m³ flops");
    /* whether LAPACK's Cholesky breaks down there is its rounding, and told only */
    ledger_expect_measured(&run, "S46", "20 steps give finite numbers");
    ledger_expect_noted(&run, "S46", "| 20 steps of Alg. 2 |");
    ledger_close(&run);
}

/* m = 16: 4 levels, a root and 2 products with 256 processors; with 64 2 + 1 + 1 + 1 + 1 + 8; 5120
 * have no less to do than 3 m^2 operations in all, m (m - 1) + m + 2 m^2. */
Test(claims_s45_iteration, only_the_depth_is_logarithmic)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S47") == VERDICT_HOLDS_IF);
    ledger_expect_noted(&run, "S47", "| 16 | 7 | 14 | 7 | 768 |");
    char *notes = ledger_notes(&run, "S47");
    const char *last = strstr(notes, "| 16384 | 17 | ");
    /* (2 + 2) log2 m and the operations that are left of each level */
    cr_assert(last, "%s", notes);
    double few = strtod(last + strlen("| 16384 | 17 | "), NULL);
    cr_expect(few > 3 * 14 && few < 5 * 14, "%s", notes);
    cr_expect(strstr(last, "| 157295 |"), "%s", notes);
    free(notes);
    ledger_expect_measured(&run, "S47", "log₂m + 3 at most");
    ledger_expect_measured(&run, "S47", "Operations: 7203 for m = 49");
    ledger_close(&run);
}

static double number_after(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    cr_assert(at, "%s: no %s", text, before);
    return strtod(at + strlen(before), NULL);
}

/* ceil(log2(2^21 - 1)) = 21 rounds and one for each ordinary step at the end. E^2 to the end loses
 * what an ordinary last step gives back, as long as u kappa^2 is small. */
Test(claims_s45_iteration, an_ordinary_last_step_restores_the_accuracy)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S48") == VERDICT_NOT_TESTABLE);
    ledger_expect_measured(&run, "S48", "for 1 of 4 matrices two last steps");
    char *measured = ledger_measured(&run, "S48");
    cr_expect(strstr(measured, "all steps but the last take 22 rounds of products for T = 20 "
                               "instead of 40 one after another, in all but the last two 23"),
              "%s", measured);
    double condition = number_after(measured, "‖I − AX‖_F for κ(A) = ");
    double dependent = number_after(strstr(measured, "κ(A) = "), ": "),
           independent = number_after(strstr(measured, "κ(A) = "), "one after another, "),
           last = number_after(measured, "to the end, ");
    cr_expect(independent > dependent * condition / 10, "%s", measured);
    cr_expect(last < 3 * dependent, "%s", measured);
    free(measured);
    ledger_close(&run);
}

/* Y dX = [-1 0; 1 0], X dY = [0 0; -1 1]. Three landmarks: 2 Y dX = [-1 3 0; 3 -1 0; -1 -1 0], and
 * 2 X dY = -2 dX Y is less its transpose. */
Test(claims_s45_iteration, factors_of_a_differential_keep_their_order)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S49") == VERDICT_FAILS);
    ledger_expect_counterexample(&run, "S49",
                                 "Y dX + X dY = [-1 0; 0 1], dX Y + X dY = [0 0; 0 0]");
    ledger_expect_counterexample(&run, "S49",
                                 "Y dX + X dY = [0 0 0.5; 0 0 0.5; -0.5 -0.5 0], dX Y + X dY = "
                                 "[0 0 0; 0 0 0; 0 0 0]");
    char *measured = ledger_measured(&run, "S49");
    double cases = number_after(measured, "of "), right = number_after(measured, "dX Y + X dY in ");
    cr_expect(cases > 0 && cases == right, "%s", measured);
    free(measured);
    ledger_close(&run);
}
