/* SPDX-License-Identifier: BSD-3-Clause */
#include "../pseudo_inverse.h"

#include "dense.h"

atn_status NUM(ref_pseudo_inverse)(int64_t m, const num *a, double rcond, num *x, int64_t *rank)
{
    long double *value = ref_take((size_t)(2 * m * m + 1), sizeof *value), *inverse = value + m * m;
    if (!value)
        return ATN_ERR_MEMORY;
    for (int64_t i = 0; i < m * m; i++)
        value[i] = num_value(a[i]);
    *rank = ref_pseudo_inverse_long(m, value, rcond, inverse);
    for (int64_t i = 0; i < m * m; i++)
        x[i] = inverse[i];
    free(value);
    return *rank < 0 ? ATN_ERR_MEMORY : NUM(ref_inverse_slope)(m, a, true, x);
}

/* sum += a b c; work holds 2 m^2. */
static void add_product(int64_t m, const num *a, const num *b, const num *c, num *work, num *sum)
{
    num *ab = work, *abc = work + m * m;
    NUM(ref_multiply)(m, m, m, a, b, ab);
    NUM(ref_multiply)(m, m, m, ab, c, abc);
    for (int64_t i = 0; i < m * m; i++)
        sum[i] += abc[i];
}

/* c = a b, or I - a b. */
static void product(int64_t m, bool complement, const num *a, const num *b, num *c)
{
    NUM(ref_multiply)(m, m, m, a, b, c);
    for (int64_t i = 0; complement && i < m * m; i++)
        c[i] = (i % (m + 1) == 0) - c[i];
}

/* Golub and Pereyra 1973, Eq. 4.12:
 * dX = -X dA X + X X^T dA^T (I - A X) + (I - X A) dA^T X^T X, the last two only if `pseudo`. */
atn_status NUM(ref_inverse_slope)(int64_t m, const num *a, bool pseudo, num *x)
{
    enum { A, X, X_T, MINUS_X, DA, DA_T, LEFT, RIGHT, WORK, WORK_TOO, SUM, PARTS };
    num *all = ref_zeros(PARTS * m * m), *part[PARTS];
    if (!all)
        return ATN_ERR_MEMORY;
    for (int i = 0; i < PARTS; i++)
        part[i] = all + i * m * m;
    for (int64_t i = 0; i < m * m; i++) {
        int64_t mirrored = i % m * m + i / m;
        part[A][i] = num_value(a[i]);
        part[X][i] = part[X_T][mirrored] = num_value(x[i]);
        part[MINUS_X][i] = -num_value(x[i]);
        part[DA][i] = part[DA_T][mirrored] = num_slope(a[i]);
    }
    add_product(m, part[MINUS_X], part[DA], part[X], part[WORK], part[SUM]);
    if (pseudo) {
        product(m, false, part[X], part[X_T], part[LEFT]);
        product(m, true, part[A], part[X], part[RIGHT]);
        add_product(m, part[LEFT], part[DA_T], part[RIGHT], part[WORK], part[SUM]);
        product(m, true, part[X], part[A], part[LEFT]);
        product(m, false, part[X_T], part[X], part[RIGHT]);
        add_product(m, part[LEFT], part[DA_T], part[RIGHT], part[WORK], part[SUM]);
    }
    for (int64_t i = 0; i < m * m; i++)
        x[i] = num_with_slope(num_value(x[i]), num_value(part[SUM][i]));
    free(all);
    return ATN_OK;
}
