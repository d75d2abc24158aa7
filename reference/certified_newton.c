/* SPDX-License-Identifier: BSD-3-Clause */
/* Newton-Raphson (IJCV Eq. 10) over the rationals. */
#include <flint/fmpq.h>
#include <flint/fmpq_mat.h>

#include "balls.h"
#include "routes.h"
#include <math.h>

enum { MOST_STEPS = 10 };

/* to (set up, rows x cols) = from. */
static void set_rationals(fmpq_mat_t to, const double *from)
{
    arf_t number;
    arf_init(number);
    slong cols = fmpq_mat_ncols(to);
    for (slong i = 0; i < fmpq_mat_nrows(to); i++)
        for (slong j = 0; j < cols; j++) {
            arf_set_d(number, from[i * cols + j]);
            arf_get_fmpq(fmpq_mat_entry(to, i, j), number);
        }
    arf_clear(number);
}

/* norm = |A|_1 for symmetric A. Returns whether A 1 = |A|_1 1. */
static bool rational_norm1(fmpq_t norm, const fmpq_mat_t a)
{
    fmpq_t sum, plain, entry, first;
    fmpq_init(sum);
    fmpq_init(plain);
    fmpq_init(entry);
    fmpq_init(first);
    bool equal = true;
    for (slong i = 0; i < fmpq_mat_nrows(a); i++) {
        fmpq_zero(sum);
        fmpq_zero(plain);
        for (slong j = 0; j < fmpq_mat_ncols(a); j++) {
            fmpq_abs(entry, fmpq_mat_entry(a, i, j));
            fmpq_add(sum, sum, entry);
            fmpq_add(plain, plain, fmpq_mat_entry(a, i, j));
        }
        if (i == 0) {
            fmpq_set(norm, sum);
            fmpq_set(first, plain);
        } else if (fmpq_cmp(sum, norm) > 0) {
            fmpq_set(norm, sum);
        }
        equal = equal && fmpq_equal(plain, first);
    }
    equal = equal && fmpq_equal(first, norm);
    fmpq_clear(first);
    fmpq_clear(entry);
    fmpq_clear(plain);
    fmpq_clear(sum);
    return equal;
}

/* X_k. */
static void iterate(fmpq_mat_t x, const fmpq_mat_t a, const fmpq_t alpha, int k)
{
    slong m = fmpq_mat_nrows(a);
    fmpq_mat_t product;
    fmpz_t two;
    fmpq_mat_init(product, m, m);
    fmpz_init_set_ui(two, 2);
    fmpq_mat_scalar_mul_fmpq(x, a, alpha);
    for (int step = 0; step < k; step++) {
        fmpq_mat_mul(product, x, a);
        fmpq_mat_mul(product, product, x);
        fmpq_mat_scalar_mul_fmpz(x, x, two);
        fmpq_mat_sub(x, x, product);
    }
    fmpz_clear(two);
    fmpq_mat_clear(product);
}

static void write_vector(const fmpq_mat_t vector, double *lower, double *upper)
{
    arb_t ball;
    arb_init(ball);
    for (slong i = 0; i < fmpq_mat_nrows(vector); i++) {
        arb_set_fmpq(ball, fmpq_mat_entry(vector, i, 0), REF_CERTIFY_BITS);
        balls_bounds(ball, lower + i, upper + i);
    }
    arb_clear(ball);
}

/* The properties of X along v. */
static void judge(const fmpq_mat_t a, const fmpq_mat_t x, const fmpq_mat_t v,
                  ref_exact_newton *result, double *lower, double *upper)
{
    slong m = fmpq_mat_nrows(a);
    fmpq_mat_t image, step;
    fmpq_mat_init(image, m, 1);
    fmpq_mat_init(step, m, 1);
    fmpq_mat_mul(step, x, v);
    result->iterate_is_zero = fmpq_mat_is_zero(step);
    fmpq_mat_mul(image, a, v);
    fmpq_mat_mul(step, x, image);
    fmpq_mat_mul(step, a, step);
    result->residual_is_full = fmpq_mat_is_zero(step);
    fmpq_mat_sub(step, step, image);
    result->residual_is_zero = fmpq_mat_is_zero(step);
    if (lower)
        write_vector(step, lower, upper);
    fmpq_mat_clear(step);
    fmpq_mat_clear(image);
}

/* False if it would divide by |A|_1 = 0. */
static bool make_alpha(fmpq_t alpha, ref_rational_start start, const fmpq_t norm)
{
    fmpq_t divisor;
    if (start.over_norm1 && fmpq_is_zero(norm))
        return false;
    fmpq_init(divisor);
    fmpz_set_si(fmpq_numref(alpha), start.numerator);
    fmpz_set_si(fmpq_denref(alpha), start.denominator);
    fmpq_canonicalise(alpha);
    if (start.over_norm1) {
        fmpq_mul(divisor, norm, norm);
        fmpq_div(alpha, alpha, divisor);
    }
    fmpq_clear(divisor);
    return true;
}

static atn_status check_newton(int64_t m, const double *a, ref_rational_start start, int k,
                               const double *v, const double *lower, const double *upper)
{
    atn_status status = ref_check_matrix(m, m, a);
    if (status != ATN_OK)
        return status;
    if (!a || !v || !lower != !upper)
        return ATN_ERR_NULL;
    if (m < 1 || m > REF_CERTIFY_MOST)
        return ATN_ERR_SHAPE;
    if (k < 0 || k > MOST_STEPS || start.denominator <= 0)
        return ATN_ERR_VALUE;
    if (!ref_all_finite(m * m, a) || !ref_all_finite(m, v))
        return ATN_NONFINITE;
    return balls_symmetric(m, a) ? ATN_OK : ATN_ERR_VALUE;
}

atn_status ref_exact_newton_steps(int64_t m, const double *a, ref_rational_start alpha, int k,
                                  const double *v, ref_exact_newton *result, double *residual_lower,
                                  double *residual_upper)
{
    if (!result)
        return ATN_ERR_NULL;
    atn_status status = check_newton(m, a, alpha, k, v, residual_lower, residual_upper);
    if (status == ATN_NONFINITE) {
        *result = (ref_exact_newton){false, false, false, false};
        ref_fill(residual_lower ? m : 0, NAN, residual_lower);
        ref_fill(residual_upper ? m : 0, NAN, residual_upper);
    }
    if (status != ATN_OK)
        return status;
    fmpq_mat_t matrix, x, vector;
    fmpq_t norm, start;
    fmpq_mat_init(matrix, m, m);
    fmpq_mat_init(x, m, m);
    fmpq_mat_init(vector, m, 1);
    fmpq_init(norm);
    fmpq_init(start);
    set_rationals(matrix, a);
    set_rationals(vector, v);
    bool equal = rational_norm1(norm, matrix);
    if (make_alpha(start, alpha, norm)) {
        result->equal_row_sums = equal;
        iterate(x, matrix, start, k);
        judge(matrix, x, vector, result, residual_lower, residual_upper);
    } else {
        status = ATN_ERR_VALUE;
    }
    fmpq_clear(start);
    fmpq_clear(norm);
    fmpq_mat_clear(vector);
    fmpq_mat_clear(x);
    fmpq_mat_clear(matrix);
    flint_cleanup();
    return status;
}
