/* SPDX-License-Identifier: BSD-3-Clause */
#include "balls.h"

#include <math.h>
#include <stdlib.h>

#include "linear_algebra.h"
#include "routes.h"

/* Products of doubles whose sums need no more than what they are judged by: u = 2^-53. */
enum { DOUBLE_BITS = 64 };

/* ---- Checks ---- */

bool balls_bits_allowed(int max_bits)
{
    return max_bits >= 53 && max_bits <= 1 << 16;
}

bool balls_symmetric(int64_t m, const double *a)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < i; j++)
            if (a[i * m + j] != a[j * m + i])
                return false;
    return true;
}

atn_status balls_check(const ref_exact_matrix *a)
{
    if (!a || (!a->matrix && !a->tokens))
        return ATN_ERR_NULL;
    if (a->m < 1 || a->m > REF_CERTIFY_MOST || (!a->matrix && a->d < 1))
        return ATN_ERR_SHAPE;
    int64_t cols = a->matrix ? a->m : a->d, count;
    if (__builtin_mul_overflow(a->m, cols, &count))
        return ATN_ERR_SHAPE;
    if (!ref_all_finite(count, a->matrix ? a->matrix : a->tokens) ||
        (!a->matrix && !isfinite(a->scale)))
        return ATN_NONFINITE;
    if (a->matrix ? !balls_symmetric(a->m, a->matrix) : a->scale < 0)
        return ATN_ERR_VALUE;
    return ATN_OK;
}

/* ---- Matrices ---- */

void balls_scale(arb_t s, double scale, int64_t d, slong bits)
{
    if (scale > 0) {
        arb_set_d(s, scale);
        return;
    }
    arb_sqrt_ui(s, (ulong)d, bits);
    arb_mul_2exp_si(s, s, 1);
    arb_inv(s, s, bits);
}

/* exp(-s |x - y|^2); difference has room for d. */
static void kernel_entry(arb_t entry, int64_t d, const double *x, const double *y, const arb_t s,
                         arb_ptr difference, slong bits)
{
    for (int64_t k = 0; k < d; k++) {
        arb_set_d(difference + k, x[k]);
        arb_set_d(entry, y[k]);
        arb_sub(difference + k, difference + k, entry, bits);
    }
    arb_dot(entry, NULL, 0, difference, 1, difference, 1, d, bits);
    arb_mul(entry, entry, s, bits);
    arb_neg(entry, entry);
    arb_exp(entry, entry, bits);
}

void balls_kernel(arb_mat_t kernel, int64_t d, const double *x, const double *y, const arb_t s,
                  slong bits)
{
    arb_ptr difference = _arb_vec_init(d);
    for (slong i = 0; i < arb_mat_nrows(kernel); i++) {
        slong columns = y ? arb_mat_ncols(kernel) : i;
        for (slong j = 0; j < columns; j++) {
            const double *other = (y ? y : x) + j * d;
            kernel_entry(arb_mat_entry(kernel, i, j), d, x + i * d, other, s, difference, bits);
            if (!y)
                arb_set(arb_mat_entry(kernel, j, i), arb_mat_entry(kernel, i, j));
        }
        if (!y)
            arb_one(arb_mat_entry(kernel, i, i));
    }
    _arb_vec_clear(difference, d);
}

void balls_doubles(arb_mat_t to, const double *from)
{
    slong cols = arb_mat_ncols(to);
    for (slong i = 0; i < arb_mat_nrows(to); i++)
        for (slong j = 0; j < cols; j++)
            arb_set_d(arb_mat_entry(to, i, j), from[i * cols + j]);
}

void balls_matrix(arb_mat_t to, const ref_exact_matrix *a, slong bits)
{
    if (a->matrix) {
        balls_doubles(to, a->matrix);
        return;
    }
    arb_t s;
    arb_init(s);
    balls_scale(s, a->scale, a->d, bits);
    balls_kernel(to, a->d, a->tokens, NULL, s, bits);
    arb_clear(s);
}

void balls_row_sums(arb_ptr d, const arb_mat_t a, slong bits)
{
    for (slong i = 0; i < arb_mat_nrows(a); i++) {
        arb_zero(d + i);
        for (slong j = 0; j < arb_mat_ncols(a); j++)
            arb_add(d + i, d + i, arb_mat_entry(a, i, j), bits);
    }
}

void balls_scale_rows_columns(arb_mat_t s, arb_srcptr r, arb_srcptr c, slong bits)
{
    for (slong i = 0; i < arb_mat_nrows(s); i++)
        for (slong j = 0; j < arb_mat_ncols(s); j++) {
            arb_ptr entry = arb_mat_entry(s, i, j);
            if (r)
                arb_mul(entry, entry, r + i, bits);
            if (c)
                arb_mul(entry, entry, c + j, bits);
        }
}

/* ---- Norms ---- */

/* The exponent e with |S_ij| <= 2^e for all i, j; false if S is 0 or not finite. */
static bool magnitude(fmpz_t e, const arb_mat_t s)
{
    mag_t bound;
    mag_init(bound);
    arb_mat_bound_inf_norm(bound, s);
    bool found = mag_is_finite(bound) && !mag_is_zero(bound);
    if (found)
        fmpz_set(e, MAG_EXPREF(bound));
    mag_clear(bound);
    return found;
}

/* rounded = the midpoints of 2^-e S as doubles, the lower triangle twice; *error >= |2^-e S -
 * rounded|_F. */
static void round_scaled(int64_t m, const arb_mat_t s, const fmpz_t e, double *rounded, mag_t error)
{
    fmpz_t down;
    arb_mat_t rest;
    arb_t entry;
    fmpz_init(down);
    arb_mat_init(rest, m, m);
    arb_init(entry);
    fmpz_neg(down, e);
    for (slong i = 0; i < m; i++)
        for (slong j = 0; j < m; j++) {
            slong row = i > j ? i : j, col = i > j ? j : i;
            arb_mul_2exp_fmpz(entry, arb_mat_entry(s, row, col), down);
            rounded[i * m + j] = arf_get_d(arb_midref(entry), ARF_RND_NEAR);
            arb_mul_2exp_fmpz(entry, arb_mat_entry(s, i, j), down);
            arb_set_d(arb_mat_entry(rest, i, j), rounded[i * m + j]);
            arb_sub(arb_mat_entry(rest, i, j), entry, arb_mat_entry(rest, i, j), DOUBLE_BITS);
        }
    arb_mat_bound_frobenius_norm(error, rest);
    arb_clear(entry);
    arb_mat_clear(rest);
    fmpz_clear(down);
}

/* residual >= |W^T S W - diag(lambda)|_F, loss >= |W^T W - I|_F. */
static void decomposition_errors(int64_t m, const double *s, const double *lambda, const double *w,
                                 mag_t residual, mag_t loss)
{
    arb_mat_t a, b, c;
    arb_mat_init(a, m, m);
    arb_mat_init(b, m, m);
    arb_mat_init(c, m, m);
    balls_doubles(a, s);
    balls_doubles(b, w);
    arb_mat_mul(c, a, b, DOUBLE_BITS);
    arb_mat_transpose(a, b);
    arb_mat_mul(c, a, c, DOUBLE_BITS);
    arb_t number;
    arb_init(number);
    for (slong i = 0; i < m; i++) {
        arb_set_d(number, lambda[i]);
        arb_sub(arb_mat_entry(c, i, i), arb_mat_entry(c, i, i), number, DOUBLE_BITS);
    }
    arb_mat_bound_frobenius_norm(residual, c);
    arb_mat_mul(c, a, b, DOUBLE_BITS);
    for (slong i = 0; i < m; i++)
        arb_sub_ui(arb_mat_entry(c, i, i), arb_mat_entry(c, i, i), 1, DOUBLE_BITS);
    arb_mat_bound_frobenius_norm(loss, c);
    arb_clear(number);
    arb_mat_clear(c);
    arb_mat_clear(b);
    arb_mat_clear(a);
}

/* S = 2^-e times the given matrix, rounded to doubles; G = W^T W - I, E = W^T S W - Lambda. By Weyl
 * the eigenvalues of W^T S W are those of Lambda to |E|, and by Ostrowski those of S times factors
 * within 1 - |G| and 1 + |G|; the same goes for norms. What rounding S took comes on top. */
static void combine(arb_t top, double approximate, const mag_t residual, const mag_t loss,
                    const mag_t rounding, const fmpz_t e)
{
    arb_t factor;
    arb_init(factor);
    arb_set_d(top, approximate);
    arb_add_error_mag(top, residual);
    arb_one(factor);
    arb_add_error_mag(factor, loss);
    arb_div(top, top, factor, REF_CERTIFY_BITS);
    arb_add_error_mag(top, rounding);
    arb_mul_2exp_fmpz(top, top, e);
    arb_clear(factor);
}

static atn_status enclose_top(arb_t top, balls_quantity quantity, const arb_mat_t s, const fmpz_t e)
{
    int64_t m = arb_mat_nrows(s);
    double *rounded = ref_allocate(m * m), *w = ref_allocate(m * m), *lambda = ref_allocate(m);
    atn_status status = ATN_ERR_MEMORY;
    mag_t rounding, residual, loss;
    mag_init(rounding);
    mag_init(residual);
    mag_init(loss);
    if (rounded && w && lambda) {
        round_scaled(m, s, e, rounded, rounding);
        status = ref_eigen(REF_DSYEVD, m, rounded, lambda, w);
    }
    if (status == ATN_OK) {
        decomposition_errors(m, rounded, lambda, w, residual, loss);
        double approximate = quantity == BALLS_LARGEST_EIGENVALUE
                                 ? lambda[0]
                                 : fmax(fabs(lambda[0]), fabs(lambda[m - 1]));
        combine(top, approximate, residual, loss, rounding, e);
    }
    mag_clear(loss);
    mag_clear(residual);
    mag_clear(rounding);
    free(lambda);
    free(w);
    free(rounded);
    return status;
}

atn_status balls_top(arb_t top, balls_quantity quantity, const arb_mat_t s)
{
    atn_status status = ATN_OK;
    fmpz_t e;
    fmpz_init(e);
    if (magnitude(e, s))
        status = enclose_top(top, quantity, s, e);
    else
        arb_indeterminate(top);
    fmpz_clear(e);
    return status;
}

/* ---- Inverses ---- */

/* X = the midpoints of (X + X^T) / 2. */
static void symmetrise(arb_mat_t x, slong bits)
{
    for (slong i = 0; i < arb_mat_nrows(x); i++)
        for (slong j = 0; j <= i; j++) {
            arb_ptr entry = arb_mat_entry(x, i, j);
            arb_add(entry, entry, arb_mat_entry(x, j, i), bits);
            arb_mul_2exp_si(entry, entry, -1);
            mag_zero(arb_radref(entry));
            arb_set(arb_mat_entry(x, j, i), entry);
        }
}

bool balls_inverse(arb_mat_t x, arb_mat_t r, const arb_mat_t a, slong bits)
{
    if (!arb_mat_approx_inv(x, a, bits))
        return false;
    symmetrise(x, bits);
    arb_mat_mul(r, x, a, bits);
    arb_mat_neg(r, r);
    for (slong i = 0; i < arb_mat_nrows(r); i++)
        arb_add_ui(arb_mat_entry(r, i, i), arb_mat_entry(r, i, i), 1, bits);
    return true;
}

/* ---- Doubles ---- */

void balls_bounds(const arb_t x, double *lower, double *upper)
{
    arf_t bound;
    arf_init(bound);
    arb_get_lbound_arf(bound, x, REF_CERTIFY_BITS);
    *lower = arf_get_d(bound, ARF_RND_FLOOR);
    arb_get_ubound_arf(bound, x, REF_CERTIFY_BITS);
    *upper = arf_get_d(bound, ARF_RND_CEIL);
    arf_clear(bound);
}

ref_enclosure balls_nothing(slong bits)
{
    return (ref_enclosure){NAN, NAN, (int)bits, false};
}

ref_enclosure balls_enclosure(const arb_t x, double width, slong bits)
{
    ref_enclosure e = balls_nothing(bits);
    double lower, upper;
    balls_bounds(x, &lower, &upper);
    double smaller = fmin(fabs(lower), fabs(upper));
    if (arb_is_finite(x) && isfinite(lower) && isfinite(upper) && smaller > 0 &&
        upper - lower <= width * smaller)
        e = (ref_enclosure){lower, upper, (int)bits, true};
    return e;
}
