/* SPDX-License-Identifier: BSD-3-Clause */
#include "balls.h"

#include <math.h>
#include <stdlib.h>

#include "linear_algebra.h"
#include "routes.h"

/* The precision of products of doubles whose sums are only needed to u = 2^-53. */
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

/* residual >= |W^T S W - diag(lambda)|_F, loss >= |W^T W - I|_F. */
static void decomposition_errors(const arb_mat_t s, const double *lambda, const double *w,
                                 mag_t residual, mag_t loss)
{
    slong m = arb_mat_nrows(s);
    arb_mat_t vectors, transposed, product;
    arb_t number;
    arb_mat_init(vectors, m, m);
    arb_mat_init(transposed, m, m);
    arb_mat_init(product, m, m);
    arb_init(number);
    balls_doubles(vectors, w);
    arb_mat_transpose(transposed, vectors);
    arb_mat_mul(product, s, vectors, DOUBLE_BITS);
    arb_mat_mul(product, transposed, product, DOUBLE_BITS);
    for (slong i = 0; i < m; i++) {
        arb_ptr entry = arb_mat_entry(product, i, i);
        arb_set_d(number, lambda[i]);
        arb_sub(entry, entry, number, DOUBLE_BITS);
    }
    arb_mat_bound_frobenius_norm(residual, product);
    arb_mat_mul(product, transposed, vectors, DOUBLE_BITS);
    for (slong i = 0; i < m; i++)
        arb_sub_ui(arb_mat_entry(product, i, i), arb_mat_entry(product, i, i), 1, DOUBLE_BITS);
    arb_mat_bound_frobenius_norm(loss, product);
    arb_clear(number);
    arb_mat_clear(product);
    arb_mat_clear(transposed);
    arb_mat_clear(vectors);
}

/* In any order. If one is NaN the residual is infinite anyway. */
static double largest_of(balls_quantity quantity, slong m, const double *lambda)
{
    double largest = -INFINITY;
    for (slong i = 0; i < m; i++)
        largest = fmax(largest, quantity == BALLS_SPECTRAL_NORM ? fabs(lambda[i]) : lambda[i]);
    return largest;
}

/* With G = W^T W - I, E = W^T S W - Lambda: by Weyl the eigenvalues of W^T S W are those of Lambda
 * to |E|; by Ostrowski they are those of S times factors between 1 - |G| and 1 + |G|. The same
 * holds for the norm. */
void balls_top_from(arb_t top, balls_quantity quantity, const arb_mat_t s, const double *lambda,
                    const double *w)
{
    mag_t residual, loss;
    arb_t factor;
    mag_init(residual);
    mag_init(loss);
    arb_init(factor);
    decomposition_errors(s, lambda, w, residual, loss);
    arb_set_d(top, largest_of(quantity, arb_mat_nrows(s), lambda));
    arb_add_error_mag(top, residual);
    arb_one(factor);
    arb_add_error_mag(factor, loss);
    arb_div(top, top, factor, REF_CERTIFY_BITS);
    arb_clear(factor);
    mag_clear(loss);
    mag_clear(residual);
}

/* to = 2^-e S, with entries of at most 1; false if S is 0 or not finite. */
static bool scale_down(arb_mat_t to, fmpz_t e, const arb_mat_t s)
{
    mag_t bound;
    mag_init(bound);
    arb_mat_bound_inf_norm(bound, s);
    bool found = mag_is_finite(bound) && !mag_is_zero(bound);
    if (found) {
        fmpz_neg(e, MAG_EXPREF(bound));
        for (slong i = 0; i < arb_mat_nrows(s); i++)
            for (slong j = 0; j < arb_mat_ncols(s); j++)
                arb_mul_2exp_fmpz(arb_mat_entry(to, i, j), arb_mat_entry(s, i, j), e);
        fmpz_neg(e, e);
    }
    mag_clear(bound);
    return found;
}

static atn_status enclose_scaled(arb_t top, balls_quantity quantity, const arb_mat_t s)
{
    int64_t m = arb_mat_nrows(s);
    double *rounded = ref_allocate(m * m), *w = ref_allocate(m * m), *lambda = ref_allocate(m);
    atn_status status = ATN_ERR_MEMORY;
    if (rounded && w && lambda) {
        for (slong i = 0; i < m * m; i++)
            rounded[i] = arf_get_d(arb_midref(arb_mat_entry(s, i / m, i % m)), ARF_RND_NEAR);
        status = ref_eigen(REF_DSYEVD, m, rounded, lambda, w);
    }
    if (status == ATN_OK)
        balls_top_from(top, quantity, s, lambda, w);
    free(lambda);
    free(w);
    free(rounded);
    return status;
}

atn_status balls_top(arb_t top, balls_quantity quantity, const arb_mat_t s)
{
    atn_status status = ATN_OK;
    fmpz_t e;
    arb_mat_t scaled;
    fmpz_init(e);
    arb_mat_init(scaled, arb_mat_nrows(s), arb_mat_ncols(s));
    if (scale_down(scaled, e, s)) {
        status = enclose_scaled(top, quantity, scaled);
        arb_mul_2exp_fmpz(top, top, e);
    } else {
        arb_indeterminate(top);
    }
    arb_mat_clear(scaled);
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

/* B^-1 = (I - R)^-1 X. */
atn_status balls_inverse_norm(arb_t norm, const arb_mat_t x, const arb_mat_t r)
{
    mag_t residual;
    arb_t factor;
    mag_init(residual);
    arb_init(factor);
    atn_status status = ATN_OK;
    arb_mat_bound_frobenius_norm(residual, r);
    if (mag_cmp_2exp_si(residual, 0) < 0) {
        status = balls_top(norm, BALLS_SPECTRAL_NORM, x);
        arb_one(factor);
        arb_add_error_mag(factor, residual);
        arb_div(norm, norm, factor, REF_CERTIFY_BITS);
    } else {
        arb_indeterminate(norm);
    }
    arb_clear(factor);
    mag_clear(residual);
    return status;
}

void balls_normalise(arb_mat_t x, arb_mat_t r, arb_srcptr root, arb_srcptr inverse_root, slong bits)
{
    balls_scale_rows_columns(x, inverse_root, inverse_root, bits);
    balls_scale_rows_columns(r, inverse_root, root, bits);
}

/* Adds the error to every entry of a column. */
static void widen_column(arb_mat_t c, slong j, const mag_t factor)
{
    mag_t norm, entry;
    mag_init(norm);
    mag_init(entry);
    for (slong i = 0; i < arb_mat_nrows(c); i++) {
        arb_get_mag(entry, arb_mat_entry(c, i, j));
        mag_addmul(norm, entry, entry);
    }
    mag_sqrt(norm, norm);
    mag_mul(norm, norm, factor);
    for (slong i = 0; i < arb_mat_nrows(c); i++)
        arb_add_error_mag(arb_mat_entry(c, i, j), norm);
    mag_clear(entry);
    mag_clear(norm);
}

/* A^-1 w - X w = (I - R)^-1 R X w is at most r/(1 - r) |X w| in norm, r = |R|. */
void balls_solve(arb_mat_t c, const arb_mat_t x, const arb_mat_t r, const arb_mat_t w, slong bits)
{
    mag_t residual, rest;
    mag_init(residual);
    mag_init(rest);
    arb_mat_bound_frobenius_norm(residual, r);
    mag_one(rest);
    mag_sub_lower(rest, rest, residual); /* 0 if the residual may be 1 or more */
    mag_div(residual, residual, rest);   /* infinite in that case */
    arb_mat_mul(c, x, w, bits);
    for (slong j = 0; j < arb_mat_ncols(c); j++)
        widen_column(c, j, residual);
    mag_clear(rest);
    mag_clear(residual);
}

/* lower = an approximate Cholesky factor of A, exact; false if a pivot is not positive. */
static bool approximate_cholesky(arb_mat_t lower, const arb_mat_t a, slong bits)
{
    for (slong j = 0; j < arb_mat_nrows(a); j++)
        for (slong i = j; i < arb_mat_nrows(a); i++) {
            arb_ptr entry = arb_mat_entry(lower, i, j);
            arb_approx_dot(entry, arb_mat_entry(a, i, j), 1, arb_mat_entry(lower, i, 0), 1,
                           arb_mat_entry(lower, j, 0), 1, j, bits);
            mag_zero(arb_radref(entry));
            if (i == j && arf_sgn(arb_midref(entry)) <= 0)
                return false;
            if (i == j)
                arb_sqrt(entry, entry, bits);
            else
                arb_div(entry, entry, arb_mat_entry(lower, j, j), bits);
            mag_zero(arb_radref(entry));
        }
    return true;
}

/* L L^T is positive semi-definite, so that by Weyl no eigenvalue of A is below -|A - L L^T|; and
 * none is closer to 0 than 1/|A^-1|. */
bool balls_positive_definite(const arb_mat_t a, const arb_t norm, slong bits)
{
    slong m = arb_mat_nrows(a);
    arb_mat_t lower, product;
    mag_t distance, inverse;
    arb_mat_init(lower, m, m);
    arb_mat_init(product, m, m);
    mag_init(distance);
    mag_init(inverse);
    bool found = approximate_cholesky(lower, a, bits);
    if (found) {
        arb_mat_transpose(product, lower);
        arb_mat_mul(product, lower, product, bits);
        arb_mat_sub(product, a, product, bits);
        arb_mat_bound_frobenius_norm(distance, product);
        arb_get_mag(inverse, norm);
        mag_mul(distance, distance, inverse);
        found = mag_cmp_2exp_si(distance, 0) < 0;
    }
    mag_clear(inverse);
    mag_clear(distance);
    arb_mat_clear(product);
    arb_mat_clear(lower);
    return found;
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
