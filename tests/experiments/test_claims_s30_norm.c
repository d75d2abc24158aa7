/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge of S30. */
#include <certified.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

/* One attention with a norm of 2 for S^, and `normalised` with SOFT++'s normalisation; two more
 * rows that are no pair of it. */
static void judge_with(double normalised, verdict_kind *kind, char **measured, char **notes)
{
    char row[128];
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "resolution", 0);
    snprintf(row, sizeof row,
             "input=a view=enlarged landmarks=m49 n=196 sample=0 seed=1 operator=softpp "
             "inverse=exact norm=%g",
             normalised);
    ledger_row(t, row);
    ledger_row(t, "input=a view=enlarged landmarks=m49 n=196 sample=0 seed=1 operator=soft "
                  "inverse=exact norm=2");
    ledger_row(t, "input=a view=enlarged landmarks=m49 n=784 sample=0 seed=1 operator=soft "
                  "inverse=exact norm=0.001");
    ledger_row(t, "input=a view=enlarged landmarks=m49 n=196 sample=0 seed=1 operator=soft "
                  "inverse=nr-soft norm=0.001");
    *kind = ledger_judge(&run, "S30");
    *measured = ledger_measured(&run, "S30");
    *notes = ledger_notes(&run, "S30");
    ledger_close(&run);
}

Test(claims_s30_norm, inputs_are_compared_with_their_own_norm)
{
    verdict_kind kind;
    char *measured, *notes;
    judge_with(0.5, &kind, &measured, &notes);
    cr_expect(kind == VERDICT_FAILS);
    cr_expect(strstr(measured, "lowered in 1 of 1 cases, to 0.25 to 0.25"), "%s", measured);
    free(measured);
    free(notes);
    judge_with(3, &kind, &measured, &notes);
    cr_expect(strstr(measured, "lowered in 0 of 1 cases, to 1.5"), "%s", measured);
    free(measured);
    free(notes);
}

/* 1.08859 also comes out of a Cholesky factorisation in 3000 bits at spacing 2^-40. */
Test(claims_s30_norm, ten_landmarks_exceed_the_number_of_tokens)
{
    verdict_kind kind;
    char *measured, *notes;
    judge_with(0.5, &kind, &measured, &notes);
    cr_expect(strstr(notes, "| 9 | 2.078 | 0.967564 | 0.850505 |"), "%s", notes);
    cr_expect(strstr(notes, "| 10 | 2.234 | 0.968446 | 1.08859 |"), "%s", notes);
    cr_expect(strstr(measured, "above n = 1 from m = 10 on"), "%s", measured);
    cr_expect(strstr(measured, "(m = 207, f64): Ŝ = 1.000000, normalised 1.716366"), "%s",
              measured);
    if (ref_certify_library()) {
        cr_expect(strstr(notes, "19/64, token 57/16 | 0.98390417 | 21.4141162 |"), "%s", notes);
        cr_expect(strstr(notes, "token 5/2 | 0.972443165 | 1.04939699 |"), "%s", notes);
    }
    free(measured);
    free(notes);
}
