/* SPDX-License-Identifier: BSD-3-Clause */
/* The GSL routes, apart from LAPACK's because cblas.h and GSL's headers declare the same names.
 * GSL is row-major, as we are. Two things to know: its Jacobi SVD is wrong from n about 48 on; and
 * its Golub-Reinsch, on top of OpenBLAS, was seen to fail or to return vectors far from orthogonal
 * on matrices of rank 1 (all ones) from n about 60 on, where intermediate numbers are subnormal. */
#include "routes.h"

#include <pthread.h>
#include <string.h>

#include <gsl/gsl_eigen.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>

/* GSL's default handler aborts. The switch is global and must be thrown once. */
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

typedef int decompose(gsl_matrix *a, gsl_matrix *v, gsl_vector *sigma);

static int golub_reinsch(gsl_matrix *a, gsl_matrix *v, gsl_vector *sigma)
{
    gsl_vector *work = gsl_vector_alloc(a->size2);
    if (!work)
        return GSL_ENOMEM;
    int code = gsl_linalg_SV_decomp(a, v, sigma, work);
    gsl_vector_free(work);
    return code;
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

/* GSL wants rows >= cols: a wide A is decomposed as A^T = V S U^T. */
static atn_status svd_by(decompose *method, int64_t rows, int64_t cols, const double *a, double *u,
                         double *sigma, double *vt)
{
    start();
    bool tall = rows >= cols;
    int64_t m = tall ? rows : cols, n = tall ? cols : rows;
    gsl_matrix *left = gsl_matrix_alloc((size_t)m, (size_t)n);
    gsl_matrix *right = gsl_matrix_alloc((size_t)n, (size_t)n);
    atn_status status = ATN_ERR_MEMORY;
    if (left && right) {
        if (tall)
            memcpy(left->data, a, (size_t)(m * n) * sizeof *a);
        else
            ref_transpose(rows, cols, a, left->data);
        gsl_vector_view values = gsl_vector_view_array(sigma, (size_t)n);
        status = from_gsl(method(left, right, &values.vector));
    }
    if (status == ATN_OK && u) {
        ref_complete_basis(m, n, columns_computed(left), left->data);
        if (tall) {
            memcpy(u, left->data, (size_t)(m * n) * sizeof *u);
            ref_transpose(n, n, right->data, vt);
        } else {
            ref_transpose(m, n, left->data, vt);
            memcpy(u, right->data, (size_t)(n * n) * sizeof *u);
        }
    }
    gsl_matrix_free(right);
    gsl_matrix_free(left);
    return status;
}

atn_status ref_route_gsl_golub_reinsch(int64_t rows, int64_t cols, double *a, double *u,
                                       double *sigma, double *vt)
{
    return svd_by(golub_reinsch, rows, cols, a, u, sigma, vt);
}

atn_status ref_route_gsl_jacobi(int64_t rows, int64_t cols, double *a, double *u, double *sigma,
                                double *vt)
{
    return svd_by(gsl_linalg_SV_decomp_jacobi, rows, cols, a, u, sigma, vt);
}

/* Vectors are computed in any case: one code path, and GSL's sort wants them. */
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
