/* SPDX-License-Identifier: BSD-3-Clause */
/* The GSL routes, in a file of their own because cblas.h and GSL's headers declare the same names.
 * GSL is row-major like this code. With some BLAS kernels its Golub-Reinsch SVD fails, or reports
 * success with vectors far from orthogonal, on matrices of rank 1 (all ones) from n about 60 on,
 * where intermediate numbers are subnormal. So a decomposition is checked against its definition
 * before it is returned. (GSL's Jacobi SVD is not a route: from n about 48 on it has reported
 * success with wrong singular values.) */
#include "routes.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include <gsl/gsl_eigen.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>

#include "ruler.h"

/* GSL's default handler aborts. The handler is global and must be switched off once. */
static void quiet(void)
{
    gsl_set_error_handler_off();
}

static atn_status from_gsl(int code)
{
    if (code == GSL_SUCCESS)
        return ATN_OK;
    return code == GSL_ENOMEM ? ATN_ERR_MEMORY : ATN_ERR_LIBRARY;
}

static void start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, quiet);
}

/* Columns of u (row-major) for sigma = 0 that GSL left at zero; they are the last ones. */
static int64_t columns_computed(const gsl_matrix *u)
{
    int64_t count = (int64_t)u->size2;
    while (count > 0) {
        gsl_vector_const_view column = gsl_matrix_const_column(u, (size_t)count - 1);
        if (!gsl_vector_isnull(&column.vector))
            break;
        count--;
    }
    return count;
}

/* Whether |L diag(s) R^T - A|_1 is backward stable and the columns of L, m x n, and R, n x n, are
 * orthonormal: none of the ruler's ratios FAILs. a(i, j) = a[i * row_step + j * column_step]. */
static bool is_decomposition(const gsl_matrix *left, const double *s, const gsl_matrix *right,
                             const double *a, int64_t row_step, int64_t column_step)
{
    const gsl_matrix *factors[2] = {left, right};
    size_t m = left->size1, n = left->size2;
    double norm = 0, residual = 0, departure[2] = {0}, units = (double)m * DBL_EPSILON / 2;
    for (size_t j = 0; j < n; j++) {
        double column = 0, error = 0, product[2] = {0};
        for (size_t i = 0; i < m; i++) {
            double entry = a[(int64_t)i * row_step + (int64_t)j * column_step], rest = entry;
            for (size_t k = 0; k < n; k++)
                rest -= gsl_matrix_get(left, i, k) * s[k] * gsl_matrix_get(right, j, k);
            column += fabs(entry);
            error += fabs(rest);
        }
        for (int f = 0; f < 2; f++) {
            for (size_t i = 0; i < n; i++) {
                double dot = i == j ? -1 : 0;
                for (size_t k = 0; k < factors[f]->size1; k++)
                    dot += gsl_matrix_get(factors[f], k, i) * gsl_matrix_get(factors[f], k, j);
                product[f] += fabs(dot);
            }
            departure[f] = fmax(departure[f], isnan(product[f]) ? INFINITY : product[f]);
        }
        norm = fmax(norm, column);
        residual = fmax(residual, isnan(error) ? INFINITY : error);
    }
    return ref_judge(REF_BACKWARD, residual == 0 ? 0 : residual / (units * norm)) != REF_FAIL &&
           ref_judge(REF_ORTHOGONALITY, departure[0] / units) != REF_FAIL &&
           ref_judge(REF_ORTHOGONALITY, departure[1] / units) != REF_FAIL;
}

/* GSL requires rows >= cols: a wide A is decomposed as A^T = V S U^T. */
atn_status ref_route_gsl_golub_reinsch(int64_t rows, int64_t cols, double *a, double *u,
                                       double *sigma, double *vt)
{
    start();
    bool tall = rows >= cols;
    int64_t m = tall ? rows : cols, n = tall ? cols : rows;
    gsl_matrix *left = gsl_matrix_alloc((size_t)m, (size_t)n);
    gsl_matrix *right = gsl_matrix_alloc((size_t)n, (size_t)n);
    gsl_vector *work = gsl_vector_alloc((size_t)n);
    atn_status status = ATN_ERR_MEMORY;
    if (left && right && work) {
        if (tall)
            memcpy(left->data, a, (size_t)(m * n) * sizeof *a);
        else
            ref_transpose(rows, cols, a, left->data);
        gsl_vector_view values = gsl_vector_view_array(sigma, (size_t)n);
        status = from_gsl(gsl_linalg_SV_decomp(left, right, &values.vector, work));
    }
    if (status == ATN_OK) {
        ref_complete_basis(m, n, columns_computed(left), left->data);
        if (!is_decomposition(left, sigma, right, a, tall ? cols : 1, tall ? 1 : cols))
            status = ATN_ERR_LIBRARY;
    }
    if (status == ATN_OK && u) {
        if (tall) {
            memcpy(u, left->data, (size_t)(m * n) * sizeof *u);
            ref_transpose(n, n, right->data, vt);
        } else {
            ref_transpose(m, n, left->data, vt);
            memcpy(u, right->data, (size_t)(n * n) * sizeof *u);
        }
    }
    gsl_vector_free(work);
    gsl_matrix_free(right);
    gsl_matrix_free(left);
    return status;
}

/* Vectors are always computed: there is one code path, and GSL's sort needs them. */
atn_status ref_route_gsl_symmv(int64_t n, double *a, double *lambda, double *w)
{
    start();
    size_t size = (size_t)n;
    gsl_matrix *work = gsl_matrix_alloc(size, size);
    gsl_matrix *vectors = gsl_matrix_alloc(size, size);
    gsl_eigen_symmv_workspace *space = gsl_eigen_symmv_alloc(size);
    atn_status status = ATN_ERR_MEMORY;
    if (work && vectors && space) {
        memcpy(work->data, a, size * size * sizeof *a);
        gsl_vector_view values = gsl_vector_view_array(lambda, size);
        int code = gsl_eigen_symmv(work, &values.vector, vectors, space);
        if (code == GSL_SUCCESS)
            code = gsl_eigen_symmv_sort(&values.vector, vectors, GSL_EIGEN_SORT_VAL_DESC);
        status = from_gsl(code);
    }
    if (status == ATN_OK && w)
        memcpy(w, vectors->data, size * size * sizeof *w);
    if (space)
        gsl_eigen_symmv_free(space);
    gsl_matrix_free(vectors);
    gsl_matrix_free(work);
    return status;
}
