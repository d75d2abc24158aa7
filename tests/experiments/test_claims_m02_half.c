/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of M02, M04 and M06: what half precision does to SimA. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/m01_sima.h"
#include "common/report.h"
#include "ledger.h"

/* The judge's own examples and one row of the sweep. */
static verdict_kind judge_half(const char *id, const char *const *rows)
{
    claim_run run;
    ledger_open(&run);
    ledger_table(&run, "accuracy", 0);
    ledger_table(&run, "accuracy", 1);
    table *t = ledger_table(&run, "half", 0);
    for (int i = 0; rows[i]; i++)
        ledger_row(t, rows[i]);
    verdict_kind kind = ledger_judge(&run, id);
    ledger_close(&run);
    return kind;
}

static verdict_kind judge_half_row(const char *id, const char *row)
{
    return judge_half(id, (const char *const[]){row, NULL});
}

/* A rounding bound of 1e-15. */
#define M02_ROW(subnormal, difference)                                                             \
    "input=normal norm=l1 storage=f64 norm_form=wide order=tokens n=49 d=32 seed=1 kappa=10 "      \
    "rounding=1e-16 first_vanished=0 factors_subnormal=0 factors_vanished=0 "                      \
    "first_subnormal=" subnormal " order_difference=" difference

Test(claims_m02_half, orders_agree_unless_something_underflows)
{
    cr_expect(judge_half_row("M02", M02_ROW("0", "1.9e-15")) == VERDICT_HOLDS_IF);
    cr_expect(judge_half_row("M02", M02_ROW("0", "3e-15")) == VERDICT_FAILS);
    claim_run run;
    ledger_open(&run);
    ledger_row(ledger_table(&run, "half", 0), M02_ROW("0", "1e-15"));
    ledger_expect_noted(&run, "M02", "three rotations of one matrix of tokens");
    ledger_expect_counterexample(&run, "M02",
                                 "the first output is not finite tokens first and 0 channels");
    char *measured = ledger_measured(&run, "M02");
    cr_expect(strstr(measured, "off the exact Y by 0. "), "%s", measured);
    cr_expect(strstr(measured, "two tokens: apart by 100 % of the second output"), "%s", measured);
    cr_expect(strstr(measured, "huge values: not finite tokens first, 0 channels"), "%s", measured);
    cr_expect(strstr(measured, "Q = K = V = 1: 1.0133e-06"), "%s", measured);
    cr_expect(strstr(measured, "2.98e-07 instead of 3.18e-07 for 3145728"), "%s", measured);
    cr_expect(strstr(measured, "1/N itself is 0 for 33554434"), "%s", measured);
    /* channels first does not keep its digits either */
    double digits = strtod(strstr(measured, "channels first: ") + strlen("channels first: "), NULL);
    cr_expect(digits > 2.3 && digits < 2.9, "%s", measured);
    double fewer = strtod(strstr(measured, "N = 12544, ") + strlen("N = 12544, "), NULL);
    cr_expect(fewer > 0.5 && fewer < 1.3, "%s", measured);
    free(measured);
    ledger_close(&run);
    const char *both[] = {M02_ROW("0.5", "1"), M02_ROW("0", "1e-15"), NULL};
    cr_expect(judge_half("M02", both) == VERDICT_HOLDS_IF);
    const char *late[] = {M02_ROW("0", "nan"), M02_ROW("0", "1e-15"), NULL};
    cr_expect(judge_half("M02", late) == VERDICT_FAILS);
}

#define M04_ROW(form, outcome, first, factors, digits)                                              \
    "input=normal norm=l1 storage=f16 order=tokens n=49 seed=1 first_vanished=0.25 norm_form=" form \
    " outcome=" outcome " first_nonfinite=" first " factors_nonfinite=" factors " digits=" digits

Test(claims_m02_half, wide_norms_do_not_overflow)
{
    const char *stored = M04_ROW("stored", "ATN_NONFINITE", "1", "1", "0");
    const char *safe[] = {M04_ROW("wide", "ATN_OK", "0", "0", "3"), stored, NULL};
    cr_expect(judge_half("M04", safe) == VERDICT_HOLDS_IF);
    static const char *const unsafe[] = {
        M04_ROW("wide", "ATN_NONFINITE", "0", "0", "3"), M04_ROW("wide", "ATN_OK", "0.1", "0", "3"),
        M04_ROW("wide", "ATN_OK", "0", "0.1", "3"), M04_ROW("wide", "ATN_OK", "nan", "0", "3")};
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        cr_expect(judge_half("M04", (const char *const[]){safe[0], unsafe[i], stored, NULL}) ==
                      VERDICT_FAILS,
                  "%s", unsafe[i]);
}

/* The example of attention/half.md: D max|V| = 65472 is below f16's largest number and overflows,
 * as K^^T V = 21832.3 becomes 21840. M04's 60000 does not. */
Test(claims_m02_half, just_below_the_largest_number_rounding_overflows)
{
    enum { N = 53, D = 3 };
    float q[N * D] = {1, 1, 1}, k[N * D], v[N], y[N];
    const sima_narrow channels = {ATN_STORAGE_F16,
                                  {.norm = ATN_SIMA_L1, .order = ATN_ORDER_CHANNELS}};
    claim_run run;
    ledger_open(&run);
    for (int i = 0; i < N * D; i++)
        k[i] = 1;
    for (int most = 0; most < 2; most++) {
        for (int i = 0; i < N; i++)
            v[i] = most ? 21824 : 20000;
        cr_expect(sima_narrow_forward(&run, &channels, N, D, q, k, v, y) == EXIT_PASS);
        cr_expect(isfinite(y[0]) == !most, "%g: %g", (double)v[0], (double)y[0]);
    }
    ledger_close(&run);
}

/* Rows of tokens whose values are their own are shown, too. */
Test(claims_m02_half, independent_values_are_shown)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "half", 0);
    ledger_row(t, "input=independent norm=l1 storage=f16 order=tokens n=49 seed=1 norm_form=wide "
                  "first_vanished=0.25 outcome=ATN_OK first_nonfinite=0 factors_nonfinite=0 "
                  "digits=0.5");
    ledger_row(t, "input=independent norm=l1 storage=f16 order=channels n=49 seed=1 norm_form=wide "
                  "first_vanished=0 outcome=ATN_OK first_nonfinite=0 factors_nonfinite=0 "
                  "digits=2.5");
    ledger_expect_noted(&run, "M04", "| independent | 49 | 2.5 | 0.5 | 25.0 % |");
    ledger_close(&run);
}

Test(claims_m02_half, what_half_precision_loses_is_counted)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "half", 0);
    ledger_row(t, M04_ROW("wide", "ATN_OK", "0", "0", "3"));
    ledger_row(t, M04_ROW("stored", "ATN_OK", "0", "0", "3"));
    ledger_row(t, M04_ROW("stored", "ATN_OK", "0", "0", "0"));
    ledger_row(t, M04_ROW("stored", "ATN_NONFINITE", "1", "0", "0"));
    char *measured = ledger_measured(&run, "M04");
    cr_expect(strstr(measured, "wide: 0 of 1 outputs in f16 are not finite"), "%s", measured);
    cr_expect(strstr(measured, "1 of 3 not finite, 1 finite without a correct"), "%s", measured);
    cr_expect(strstr(measured, "up to 25 % of the weights are 0"), "%s", measured);
    /* (1 + 2^-11)^2 (1 + 2^-5) (1 + 2^-24) / (1 - 2^-5) ..., and sums that stop at 2^24 */
    cr_expect(strstr(measured, "at most 1.082 times for N = 2¹⁹"), "%s", measured);
    cr_expect(strstr(measured, "1.004 times for N = 2¹⁴; a running"), "%s", measured);
    cr_expect(strstr(measured, "in f32 stops at 16777216. "), "%s", measured);
    free(measured);
    ledger_close(&run);
}

#define M06_ROW(input, norm, largest)                                                              \
    "storage=f64 norm_form=wide order=tokens n=49 seed=1 input=" input " norm=" norm               \
    " first_largest=" largest

static verdict_kind judge_range(const char *bare, const char *normed)
{
    const char *rows[] = {M06_ROW("normal", "none", "3"), M06_ROW("normal", "l1", "0.5"), bare,
                          normed, NULL};
    return judge_half("M06", rows);
}

Test(claims_m02_half, products_grow_with_the_scales_of_their_factors)
{
    const char *bare = M06_ROW("normal-x8", "none", "192");
    const char *more = M06_ROW("normal-x64", "none", "12288");
    const char *normed = M06_ROW("normal-x64", "l1", "0.5");
    cr_expect(judge_range(bare, normed) == VERDICT_HOLDS);
    cr_expect(judge_range(more, normed) == VERDICT_HOLDS);
    cr_expect(judge_range(M06_ROW("normal-x8", "none", "24"), normed) == VERDICT_FAILS);
    cr_expect(judge_range(M06_ROW("normal-x64", "none", "nan"), normed) == VERDICT_FAILS);
    cr_expect(judge_range(bare, M06_ROW("normal-x64", "l1", "2")) == VERDICT_FAILS);
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "half", 0);
    ledger_row(t, M06_ROW("normal", "none", "3"));
    ledger_row(t, M06_ROW("normal-x8", "none", "192"));
    ledger_row(t, M06_ROW("normal-x64", "none", "3"));
    ledger_table(&run, "accuracy", 1);
    t = ledger_table(&run, "accuracy", 0);
    ledger_row(t, "network=a operator=sima change=no-norm pictures=8 accuracy=0.25 "
                  "accuracy_error=0.125 difference=0.5 difference_error=0.25 not_finite=3");
    ledger_expect_measured(&run, "M06", "without norms, 1 with them, in 1 of 2 rows");
    ledger_expect_measured(&run, "M06",
                           "one network of sima, one seed, 8 pictures: without norms "
                           "after training 25 ± 12 %");
    ledger_close(&run);
}
