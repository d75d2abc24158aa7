/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without FLINT and Arb: every routine says so. */
#include <criterion/criterion.h>

#include "certified.h"

Test(certified, absent)
{
    double a[] = {1, 0.5, 0.5, 1}, lower[2], upper[2] = {7, 7};
    ref_exact_matrix matrix = {.m = 2, .matrix = a};
    ref_certified_soft soft = {1, 1, 1, 1, a, a, a, 0, false};
    ref_certified_spectrum spectrum;
    ref_exact_newton newton;
    cr_expect(!ref_certify_library());
    cr_expect(ref_certify_spectrum(&matrix, 128, &spectrum) == ATN_ERR_UNSUPPORTED);
    cr_expect(ref_certify_soft(&soft, 128, lower, upper, NULL) == ATN_ERR_UNSUPPORTED);
    cr_expect(ref_exact_newton_steps(2, a, (ref_rational_start){2, 1, true}, 1, a, &newton, lower,
                                     upper) == ATN_ERR_UNSUPPORTED);
    cr_expect(upper[0] == 7);
}
