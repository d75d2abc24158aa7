/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks, names, and the answers computed by two routes. */
#include "linear_algebra.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include <cblas.h>

#include "ref_memory.h"
#include "routes.h"

/* LAPACK's work space sizes are 32-bit integers, and some are several n^2. */
#define MOST_ELEMENTS ((int64_t)1 << 28)
#define ROUNDOFF      (DBL_EPSILON / 2)

#define NAME(code, name, description) name,
static const char *const svd_names[] = {REF_SVD_LIST(NAME)};
static const char *const eigen_names[] = {REF_EIGEN_LIST(NAME)};

static ref_svd_function *const svd_routes[REF_SVD_COUNT] = {
    [REF_DGESVD] = ref_route_dgesvd,
    [REF_DGESVJ] = ref_route_dgesvj,
    [REF_DGESDD] = ref_route_dgesdd,
    [REF_GSL_GOLUB_REINSCH] = ref_route_gsl_golub_reinsch,
};
static ref_eigen_function *const eigen_routes[REF_EIGEN_COUNT] = {
    [REF_DSYEVD] = ref_route_dsyevd,
    [REF_DSYEVR] = ref_route_dsyevr,
    [REF_GSL_SYMMV] = ref_route_gsl_symmv,
};

const char *ref_svd_name(ref_svd_route route)
{
    return (unsigned)route < REF_SVD_COUNT ? svd_names[route] : NULL;
}

const char *ref_eigen_name(ref_eigen_route route)
{
    return (unsigned)route < REF_EIGEN_COUNT ? eigen_names[route] : NULL;
}

bool ref_all_finite(int64_t count, const double *values)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

void ref_fill(int64_t count, double value, double *values)
{
    for (int64_t i = 0; values && i < count; i++)
        values[i] = value;
}

double *ref_allocate(int64_t count)
{
    if (count < 0 || (uint64_t)count > PTRDIFF_MAX / sizeof(double))
        return NULL;
    return ref_take((size_t)count, sizeof(double));
}

void ref_transpose(int64_t rows, int64_t cols, const double *from, double *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            to[j * rows + i] = from[i * cols + j];
}

/* The unit vector e_j that the first `column` columns of q represent least. */
static int64_t least_represented(int64_t length, int64_t k, int64_t column, const double *q)
{
    int64_t best = 0;
    double least = INFINITY;
    for (int64_t j = 0; j < length; j++) {
        double weight = 0;
        for (int64_t i = 0; i < column; i++)
            weight += q[j * k + i] * q[j * k + i];
        if (weight < least) {
            least = weight;
            best = j;
        }
    }
    return best;
}

void ref_complete_basis(int64_t length, int64_t k, int64_t first, double *q)
{
    for (int64_t column = first; column < k; column++) {
        int64_t start = least_represented(length, k, column, q);
        for (int64_t j = 0; j < length; j++)
            q[j * k + column] = j == start;
        /* Gram-Schmidt. e_start keeps at least 1 / sqrt(length) of itself: one pass is enough. */
        for (int64_t i = 0; i < column; i++) {
            double along = q[start * k + i];
            for (int64_t j = 0; j < length; j++)
                q[j * k + column] -= along * q[j * k + i];
        }
        double norm = cblas_dnrm2((int)length, q + column, (int)k);
        cblas_dscal((int)length, 1 / norm, q + column, (int)k);
    }
}

atn_status ref_spectral_matrix(int64_t n, const double *w, const double *f, double *x)
{
    if (n == 0) /* the reference BLAS refuses rows of length 0 */
        return ATN_OK;
    double *scaled = ref_allocate(n * n);
    if (!scaled)
        return ATN_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            scaled[i * n + j] = w[i * n + j] * f[j];
    int size = (int)n;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size, size, size, 1, scaled, size, w, size,
                0, x, size);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            x[j * n + i] = x[i * n + j];
    free(scaled);
    return ATN_OK;
}

atn_status ref_check_matrix(int64_t rows, int64_t cols, const double *a)
{
    if (rows < 0 || cols < 0 || rows > INT32_MAX || cols > INT32_MAX)
        return ATN_ERR_SHAPE;
    if (rows > 0 && cols > MOST_ELEMENTS / rows)
        return ATN_ERR_SHAPE;
    return rows > 0 && cols > 0 && !a ? ATN_ERR_NULL : ATN_OK;
}

static bool lower_finite(int64_t n, const double *a)
{
    for (int64_t i = 0; i < n; i++)
        if (!ref_all_finite(i + 1, a + i * n))
            return false;
    return true;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static double largest_magnitude(int64_t count, const double *values)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(values[i]));
    return largest;
}

/* A times the power of 2 that brings its largest entry into [1/2, 1), exact except for negligible
 * entries. Near the ends of the range dgesvj returns vectors that are not orthogonal, and GSL does
 * not return at all. */
static double *scaled_copy(int64_t count, const double *a, int *exponent)
{
    double *copy = ref_allocate(count);
    frexp(largest_magnitude(count, a), exponent);
    for (int64_t i = 0; copy && i < count; i++)
        copy[i] = ldexp(a[i], -*exponent);
    return copy;
}

/* The same for the symmetric matrix whose lower triangle a holds. */
static double *scaled_symmetric_copy(int64_t n, const double *a, int *exponent)
{
    double *full = ref_allocate(n * n);
    for (int64_t i = 0; full && i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            full[i * n + j] = full[j * n + i] = a[i * n + j];
    double *copy = full ? scaled_copy(n * n, full, exponent) : NULL;
    free(full);
    return copy;
}

/* Undoes the scaling. Fails if results overflow or were not finite before. */
static atn_status rescale(int64_t count, int exponent, double *values)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = ldexp(values[i], exponent);
    return ref_all_finite(count, values) ? ATN_OK : ATN_ERR_LIBRARY;
}

atn_status ref_svd(ref_svd_route route, int64_t rows, int64_t cols, const double *a, double *u,
                   double *sigma, double *vt)
{
    if ((unsigned)route >= REF_SVD_COUNT)
        return ATN_ERR_VALUE;
    atn_status status = ref_check_matrix(rows, cols, a);
    int64_t k = smaller(rows, cols);
    if (status != ATN_OK || k == 0)
        return status;
    if (!sigma || !u != !vt)
        return ATN_ERR_NULL;
    if (!ref_all_finite(rows * cols, a)) {
        ref_fill(k, NAN, sigma);
        ref_fill(rows * k, NAN, u);
        ref_fill(k * cols, NAN, vt);
        return ATN_NONFINITE;
    }
    int exponent = 0;
    double *copy = scaled_copy(rows * cols, a, &exponent);
    status = copy ? svd_routes[route](rows, cols, copy, u, sigma, vt) : ATN_ERR_MEMORY;
    free(copy);
    if (status == ATN_OK)
        status = rescale(k, exponent, sigma);
    bool finite = !u || (ref_all_finite(rows * k, u) && ref_all_finite(k * cols, vt));
    return status == ATN_OK && !finite ? ATN_ERR_LIBRARY : status;
}

atn_status ref_eigen(ref_eigen_route route, int64_t n, const double *a, double *lambda, double *w)
{
    if ((unsigned)route >= REF_EIGEN_COUNT)
        return ATN_ERR_VALUE;
    atn_status status = ref_check_matrix(n, n, a);
    if (status != ATN_OK || n == 0)
        return status;
    if (!lambda)
        return ATN_ERR_NULL;
    if (!lower_finite(n, a)) {
        ref_fill(n, NAN, lambda);
        ref_fill(n * n, NAN, w);
        return ATN_NONFINITE;
    }
    int exponent = 0;
    double *copy = scaled_symmetric_copy(n, a, &exponent);
    status = copy ? eigen_routes[route](n, copy, lambda, w) : ATN_ERR_MEMORY;
    free(copy);
    if (status == ATN_OK)
        status = rescale(n, exponent, lambda);
    return status == ATN_OK && w && !ref_all_finite(n * n, w) ? ATN_ERR_LIBRARY : status;
}

static double largest_difference(int64_t count, const double *first, const double *second)
{
    double worst = 0;
    for (int64_t i = 0; i < count; i++)
        worst = fmax(worst, fabs(first[i] - second[i]));
    return worst;
}

/* Divides by `largest` first, so that a subnormal one does not make the divisor 0. */
static double spectrum_disagreement(int64_t n, int64_t count, const double *first,
                                    const double *second)
{
    double apart = largest_difference(count, first, second);
    return apart > 0 ? apart / largest_magnitude(count, first) / ((double)n * ROUNDOFF) : 0;
}

atn_status ref_singular_values(int64_t rows, int64_t cols, const double *a, double *sigma,
                               double *disagreement)
{
    atn_status status = ref_svd(REF_DGESVD, rows, cols, a, NULL, sigma, NULL);
    if (disagreement)
        *disagreement = status == ATN_NONFINITE ? NAN : 0;
    int64_t k = smaller(rows, cols);
    if (status != ATN_OK || k == 0 || !disagreement)
        return status;
    double *second = ref_allocate(k);
    if (!second)
        return ATN_ERR_MEMORY;
    status = ref_svd(REF_DGESVJ, rows, cols, a, NULL, second, NULL);
    if (status == ATN_OK)
        *disagreement = spectrum_disagreement(larger(rows, cols), k, sigma, second);
    free(second);
    return status;
}

atn_status ref_eigenvalues(int64_t n, const double *a, double *lambda, double *w,
                           double *disagreement)
{
    atn_status status = ref_eigen(REF_DSYEVD, n, a, lambda, w);
    if (disagreement)
        *disagreement = status == ATN_NONFINITE ? NAN : 0;
    if (status != ATN_OK || n == 0 || !disagreement)
        return status;
    double *second = ref_allocate(n);
    if (!second)
        return ATN_ERR_MEMORY;
    status = ref_eigen(REF_DSYEVR, n, a, second, NULL);
    if (status == ATN_OK)
        *disagreement = spectrum_disagreement(n, n, lambda, second);
    free(second);
    return status;
}

atn_status ref_spectral_norm(int64_t rows, int64_t cols, const double *a, double *norm)
{
    atn_status status = ref_check_matrix(rows, cols, a);
    if (status != ATN_OK)
        return status;
    if (!norm)
        return ATN_ERR_NULL;
    double *sigma = ref_allocate(smaller(rows, cols));
    if (!sigma)
        return ATN_ERR_MEMORY;
    sigma[0] = 0;
    status = ref_svd(REF_DGESVD, rows, cols, a, NULL, sigma, NULL);
    if (status >= 0)
        *norm = sigma[0];
    free(sigma);
    return status;
}

/* The part of a spectrum that a pseudo-inverse kept: the number of values, and the largest and
 * smallest magnitude. */
typedef struct {
    int64_t rank;
    double largest, smallest;
} kept_spectrum;

/* inverse (or null) receives 1 / value where kept and 0 where dropped; kept (or null) 1 or 0.
 * decisive determines which are kept: values itself, or the same spectrum from another route. */
static kept_spectrum cut_spectrum(int64_t count, const double *values, const double *decisive,
                                  double rcond, double *inverse, double *kept)
{
    kept_spectrum result = {0, largest_magnitude(count, decisive), INFINITY};
    for (int64_t i = 0; i < count; i++) {
        double size = fabs(decisive[i]);
        bool keep = size > rcond * result.largest;
        if (inverse)
            inverse[i] = keep ? 1 / values[i] : 0;
        if (kept)
            kept[i] = keep;
        if (keep) {
            result.rank++;
            result.smallest = fmin(result.smallest, size);
        }
    }
    return result;
}

/* max |first - second| / (n u kappa |A+|_2), with kappa = largest / smallest, |A+|_2 = 1 / smallest
 */
static double pinv_disagreement(int64_t n, int64_t count, const double *first, const double *second,
                                kept_spectrum kept)
{
    double apart = largest_difference(count, first, second);
    if (!(apart > 0))
        return apart;
    return apart * kept.smallest * (kept.smallest / kept.largest) / ((double)n * ROUNDOFF);
}

/* Whether the input determines the pseudo-inverse: both routes kept the same number of values and
 * none below what rounding resolves; and it did not overflow. */
static atn_status pinv_status(int64_t n, int64_t count, const double *pinv, kept_spectrum first,
                              kept_spectrum second)
{
    if (!ref_all_finite(count, pinv))
        return ATN_SINGULAR;
    bool resolved = first.smallest >= (double)n * ROUNDOFF * first.largest;
    return first.rank == second.rank && resolved ? ATN_OK : ATN_BELOW_FLOOR;
}

/* A+ = V diag(1 / sigma) U^T by one route. */
static atn_status pinv_by(ref_svd_route route, int64_t rows, int64_t cols, const double *a,
                          double rcond, double *pinv, kept_spectrum *kept)
{
    int64_t k = smaller(rows, cols);
    double *u = ref_allocate(rows * k), *vt = ref_allocate(k * cols);
    double *sigma = ref_allocate(k), *inverse = ref_allocate(k);
    atn_status status = ATN_ERR_MEMORY;
    if (u && vt && sigma && inverse)
        status = ref_svd(route, rows, cols, a, u, sigma, vt);
    if (status == ATN_OK) {
        *kept = cut_spectrum(k, sigma, sigma, rcond, inverse, NULL);
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < cols; j++)
                vt[i * cols + j] *= inverse[i];
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasTrans, (int)cols, (int)rows, (int)k, 1, vt,
                    (int)cols, u, (int)k, 0, pinv, (int)rows);
    }
    free(inverse);
    free(sigma);
    free(vt);
    free(u);
    return status;
}

static void set_rank(int64_t *rank, int64_t value)
{
    if (rank)
        *rank = value;
}

atn_status ref_pinv(int64_t rows, int64_t cols, const double *a, double rcond, double *pinv,
                    int64_t *rank, double *disagreement)
{
    atn_status status = ref_check_matrix(rows, cols, a);
    if (status != ATN_OK)
        return status;
    int64_t count = rows * cols, n = larger(rows, cols);
    bool finite = ref_all_finite(count, a);
    if (count > 0 && !pinv)
        return ATN_ERR_NULL;
    if (disagreement)
        *disagreement = finite ? 0 : NAN;
    if (count == 0 || !finite) {
        set_rank(rank, 0);
        ref_fill(count, NAN, pinv);
        return finite ? ATN_OK : ATN_NONFINITE;
    }
    if (!(rcond >= 0))
        rcond = (double)n * ROUNDOFF;
    double *check = ref_allocate(count);
    kept_spectrum kept = {0, 0, 0}, second = {0, 0, 0};
    status = check ? pinv_by(REF_DGESVD, rows, cols, a, rcond, pinv, &kept) : ATN_ERR_MEMORY;
    if (status == ATN_OK)
        status = pinv_by(REF_DGESVJ, rows, cols, a, rcond, check, &second);
    if (status == ATN_OK) {
        set_rank(rank, kept.rank);
        if (disagreement)
            *disagreement = pinv_disagreement(n, count, pinv, check, kept);
        status = pinv_status(n, count, pinv, kept, second);
    }
    free(check);
    return status;
}

/* If `alone` is set, eigenvalues computed without vectors determine which are kept: those of dsyevr
 * come from another algorithm (dsterf), which computes a zero eigenvalue closer to 0. */
static atn_status symmetric_pinv_by(ref_eigen_route route, bool alone, int64_t n, const double *a,
                                    double rcond, double *pinv, double *projector,
                                    kept_spectrum *kept)
{
    double *w = ref_allocate(n * n), *lambda = ref_allocate(n), *decisive = ref_allocate(n);
    double *inverse = ref_allocate(n), *one = ref_allocate(n);
    atn_status status = ATN_ERR_MEMORY;
    if (w && lambda && decisive && inverse && one)
        status = ref_eigen(route, n, a, lambda, w);
    if (status == ATN_OK && alone)
        status = ref_eigen(route, n, a, decisive, NULL);
    if (status == ATN_OK) {
        *kept = cut_spectrum(n, lambda, alone ? decisive : lambda, rcond, inverse, one);
        status = ref_spectral_matrix(n, w, inverse, pinv);
        if (status == ATN_OK && projector)
            status = ref_spectral_matrix(n, w, one, projector);
    }
    free(one);
    free(inverse);
    free(decisive);
    free(lambda);
    free(w);
    return status;
}

atn_status ref_symmetric_pinv(int64_t n, const double *a, double rcond, double *pinv,
                              double *projector, int64_t *rank, double *disagreement)
{
    atn_status status = ref_check_matrix(n, n, a);
    if (status != ATN_OK)
        return status;
    if (n > 0 && !pinv)
        return ATN_ERR_NULL;
    bool finite = lower_finite(n, a);
    if (disagreement)
        *disagreement = finite ? 0 : NAN;
    if (n == 0 || !finite) {
        set_rank(rank, 0);
        ref_fill(n * n, NAN, pinv);
        ref_fill(n * n, NAN, projector);
        return finite ? ATN_OK : ATN_NONFINITE;
    }
    if (!(rcond >= 0))
        rcond = (double)n * ROUNDOFF;
    double *check = ref_allocate(n * n);
    kept_spectrum kept = {0, 0, 0}, second = {0, 0, 0};
    status = check ? symmetric_pinv_by(REF_DSYEVD, false, n, a, rcond, pinv, projector, &kept)
                   : ATN_ERR_MEMORY;
    if (status == ATN_OK)
        status = symmetric_pinv_by(REF_DSYEVR, true, n, a, rcond, check, NULL, &second);
    if (status == ATN_OK) {
        set_rank(rank, kept.rank);
        if (disagreement)
            *disagreement = pinv_disagreement(n, n * n, pinv, check, kept);
        status = pinv_status(n, n * n, pinv, kept, second);
    }
    free(check);
    return status;
}

atn_status ref_condition(int64_t rows, int64_t cols, const double *a, double *condition,
                         double *disagreement)
{
    atn_status status = ref_check_matrix(rows, cols, a);
    if (status != ATN_OK)
        return status;
    if (!condition)
        return ATN_ERR_NULL;
    int64_t k = smaller(rows, cols), n = larger(rows, cols);
    double *sigma = ref_allocate(k);
    if (!sigma)
        return ATN_ERR_MEMORY;
    status = ref_singular_values(rows, cols, a, sigma, disagreement);
    double first = k > 0 ? sigma[0] : 0, last = k > 0 ? sigma[k - 1] : INFINITY;
    free(sigma);
    if (status < 0)
        return status;
    *condition = status == ATN_NONFINITE ? NAN : last == 0 ? INFINITY : first / last;
    return status == ATN_OK && last < (double)n * ROUNDOFF * first ? ATN_BELOW_FLOOR : status;
}
