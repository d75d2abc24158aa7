/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S01 - S03. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/inputs.h"
#include "common/report.h"
#include "ledger.h"
#include "scratch.h"

TestSuite(claims_s01_kernel, .init = scratch_begin, .fini = scratch_end);

/* What it rests on is computed by the judge: a fault in lib/kernel/cpu.c must turn it. The
 * published code's distance, which the paper does not print, must not. */
Test(claims_s01_kernel, the_bottom_entries_alone_need_a_condition)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "S01") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "S01", "is 0 in f32 and f64");
    ledger_expect_measured(&run, "S01", "by input, 1 for equal tokens");
    ledger_expect_noted(&run, "S01", "is not Eq. 5 but the published code's");
    ledger_expect_noted(&run, "S01", "| smooth | 512 | ");
    char *counterexample = ledger_counterexample(&run, "S01");
    cr_expect(strstr(counterexample, "two equal tokens, S = [1 1; 1 1], smallest entry 1;"), "%s",
              counterexample);
    free(counterexample);
    ledger_close(&run);
}

/* A 2 x 2 matrix of spectral/eigenvalues. */
static void add_spectrum(table *t, const char *tokens, const char *first, const char *last,
                         const char *below)
{
    char *row = must_format("input=%s m=2 index=1 eigenvalue=%s below_floor=false sample=0 seed=1",
                            tokens, first);
    ledger_row(t, row);
    free(row);
    row = must_format("input=%s m=2 index=2 eigenvalue=%s below_floor=%s sample=0 seed=1", tokens,
                      last, below);
    ledger_row(t, row);
    free(row);
}

static verdict_kind judge_spectrum(const char *last)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "eigenvalues", 0);
    add_spectrum(t, "iid", "1.5", "0.5", "false");
    if (last)
        add_spectrum(t, "smooth", "2", last, "false");
    verdict_kind kind = ledger_judge(&run, "S02");
    ledger_close(&run);
    return kind;
}

/* What rounding explains of a 2 x 2 matrix: 2 u (2 + 36/e + 3) = 4.05e-15. */
Test(claims_s01_kernel, a_negative_eigenvalue_beyond_rounding_refutes)
{
    cr_expect(judge_spectrum("-4e-15") == VERDICT_HOLDS);
    cr_expect(judge_spectrum("-4.2e-15") == VERDICT_FAILS);
    cr_expect(judge_spectrum("-0.1") == VERDICT_FAILS);
    cr_expect(judge_spectrum("nan") == VERDICT_FAILS);
    claim_run run;
    ledger_open(&run);
    add_spectrum(ledger_table(&run, "eigenvalues", 0), "iid", "1.5", "0.5", "false");
    ledger_expect_measured(&run, "S02", "expanded distance, f32: an eigenvalue of -");
    ledger_table(&run, "eigenvalues", 0);
    cr_expect(ledger_judge(&run, "S02") == VERDICT_FAILS, "without a matrix");
    ledger_close(&run);
}

/* kappa = 3, 4 and 30; and one that cannot be compared. */
Test(claims_s01_kernel, scales_are_compared_matrix_by_matrix)
{
    static const char *const names[] = {"scale-head", "scale-64", "scale-512"};
    static const char *const last[] = {"0.5", "0.375", "0.05"};
    claim_run run;
    ledger_open(&run);
    for (int i = 0; i < 3; i++) {
        table *t = ledger_table(&run, names[i], 0);
        add_spectrum(t, "iid", "1.5", last[i], "false");
        add_spectrum(t, "photos", "2", "1e-17", i == 2 ? "true" : "false");
    }
    cr_expect(ledger_judge(&run, "S03") == VERDICT_OBSERVED);
    char *measured = ledger_measured(&run, "S03");
    cr_expect(strstr(measured, "in 2 of 4 comparisons (1 are beyond f64)"), "%s", measured);
    cr_expect(strstr(measured, "factor of 10 to 10"), "%s", measured);
    free(measured);
    ledger_close(&run);
}

/* The evidence names its scales by numbers. */
Test(claims_s01_kernel, evidence_has_the_scales_of_the_embedding)
{
    static const struct {
        const char *name;
        int64_t heads;
    } scales[] = {{"scale-64", 2}, {"scale-512", 16}};
    for (int i = 0; i < 2; i++) {
        const char *option = strstr(evidence_find(scales[i].name)->options, "--scale ");
        cr_assert(option);
        double given = strtod(option + strlen("--scale "), NULL);
        double expected = atn_kernel_scale(ATN_SCALE_EMBED, 0, scales[i].heads, TOKEN_DIM);
        cr_expect(fabs(given - expected) <= 0x1p-52 * expected, "%s: %.17g, expected %.17g",
                  scales[i].name, given, expected);
    }
}
