/* SPDX-License-Identifier: BSD-3-Clause */
/* The adaptive start of IJCV section 3.2: on which side of 1 |I - c B|_1 lies, c = 2
 * beta^n/|A|_1^2.
 *
 * Times |A|_1^2 > 0 everything is a sum of products of the entries: for a matrix of doubles, exact
 * in binary arithmetic of unbounded precision. The same code then decides equality too. */
#include "balls.h"

#include <math.h>

/* norm = |B|_1, for symmetric B the largest sum of a row; sum is scratch. */
static void largest_row(arb_t norm, const arb_mat_t b, arb_t sum, slong bits)
{
    arb_t entry;
    arb_init(entry);
    for (slong i = 0; i < arb_mat_nrows(b); i++) {
        arb_zero(sum);
        for (slong j = 0; j < arb_mat_ncols(b); j++) {
            arb_abs(entry, arb_mat_entry(b, i, j));
            arb_add(sum, sum, entry, bits);
        }
        if (i == 0)
            arb_set(norm, sum);
        else if (!arb_is_exact(norm) || !arb_is_exact(sum))
            arb_max(norm, norm, sum, bits);
        else if (arf_cmp(arb_midref(sum), arb_midref(norm)) > 0)
            arb_set(norm, sum);
    }
    arb_clear(entry);
}

/* B = A^2. */
static void square(arb_mat_t b, const arb_mat_t a, slong bits)
{
    for (slong i = 0; i < arb_mat_nrows(a); i++)
        for (slong j = 0; j < arb_mat_ncols(a); j++) {
            arb_ptr entry = arb_mat_entry(b, i, j);
            arb_zero(entry);
            for (slong k = 0; k < arb_mat_ncols(a); k++)
                arb_addmul(entry, arb_mat_entry(a, i, k), arb_mat_entry(a, k, j), bits);
        }
}

/* excess = the sum over row i of |t I - c B|, less t. */
static void row_excess(arb_t excess, const arb_mat_t b, slong i, const arb_t t, const arb_t c,
                       arb_t entry, slong bits)
{
    arb_neg(excess, t);
    for (slong j = 0; j < arb_mat_ncols(b); j++) {
        arb_mul(entry, c, arb_mat_entry(b, i, j), bits);
        if (i == j)
            arb_sub(entry, t, entry, bits);
        arb_abs(entry, entry);
        arb_add(excess, excess, entry, bits);
    }
}

/* The largest row decides: one above is enough, all must be within. */
static ref_start_sign decide(const arb_mat_t b, const arb_t t, const arb_t c, slong bits)
{
    arb_t excess, entry;
    arb_init(excess);
    arb_init(entry);
    ref_start_sign sign = REF_START_WITHIN;
    for (slong i = 0; i < arb_mat_nrows(b) && sign != REF_START_ABOVE; i++) {
        row_excess(excess, b, i, t, c, entry, bits);
        if (arb_is_positive(excess))
            sign = REF_START_ABOVE;
        else if (!arb_is_nonpositive(excess))
            sign = REF_START_UNDECIDED;
    }
    arb_clear(entry);
    arb_clear(excess);
    return sign;
}

/* All signs at one precision; ATN_ERR_VALUE for A = 0. */
static atn_status decide_all(const ref_exact_matrix *a, bool squared, double beta, int cap,
                             slong bits, ref_start_sign *signs)
{
    arb_mat_t matrix, power;
    arb_t t, c, b;
    arb_mat_init(matrix, a->m, a->m);
    arb_mat_init(power, a->m, a->m);
    arb_init(t);
    arb_init(c);
    arb_init(b);
    balls_matrix(matrix, a, bits);
    largest_row(t, matrix, c, bits);
    arb_mul(t, t, t, bits);
    if (squared)
        square(power, matrix, bits);
    atn_status status = arb_is_zero(t) ? ATN_ERR_VALUE : ATN_OK;
    arb_set_ui(c, 2);
    arb_set_d(b, beta);
    for (int n = 0; n <= cap && status >= 0; n++) {
        signs[n] = decide(squared ? power : matrix, t, c, bits);
        if (signs[n] == REF_START_UNDECIDED)
            status = ATN_BELOW_FLOOR;
        arb_mul(c, c, b, bits);
    }
    arb_clear(b);
    arb_clear(c);
    arb_clear(t);
    arb_mat_clear(power);
    arb_mat_clear(matrix);
    return status;
}

atn_status ref_certify_start(const ref_exact_matrix *a, bool squared, double beta, int cap,
                             int max_bits, ref_start_sign *signs)
{
    if (!signs)
        return ATN_ERR_NULL;
    atn_status status = balls_check(a);
    if (status < 0)
        return status;
    if (cap < 0 || cap > 1024 || beta <= 0 || (!a->matrix && !balls_bits_allowed(max_bits)))
        return ATN_ERR_VALUE;
    bool finite = status == ATN_OK && isfinite(beta);
    for (int n = 0; n <= cap && !finite; n++)
        signs[n] = REF_START_UNDECIDED;
    if (!finite)
        return ATN_NONFINITE;
    if (a->matrix)
        status = decide_all(a, squared, beta, cap, ARF_PREC_EXACT, signs);
    slong bits = max_bits < REF_CERTIFY_BITS ? max_bits : REF_CERTIFY_BITS;
    if (!a->matrix)
        do
            status = decide_all(a, squared, beta, cap, bits, signs);
        while (status == ATN_BELOW_FLOOR && (bits *= 2) <= max_bits);
    flint_cleanup();
    return status;
}
