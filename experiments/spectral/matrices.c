/* SPDX-License-Identifier: BSD-3-Clause */
#include "spectral/matrices.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include <linear_algebra.h>
#include <ruler.h>

#include "common/random.h"
#include "common/report.h"
#include "common/staging.h"

void make_norms(uint64_t seed, int64_t sample, int64_t n, double *tokens)
{
    random_stream *r = random_create(seed, "iid-norms", (uint64_t)sample);
    for (int64_t i = 0; i < n; i++) {
        double size = exp(random_normal(r));
        for (int64_t j = 0; j < TOKEN_DIM; j++)
            tokens[i * TOKEN_DIM + j] = size * random_normal(r);
    }
    random_free(r);
}

static atn_tensor matrix_view(double *data, int64_t rows, int64_t cols)
{
    return atn_tensor_dense(data, ATN_F64, 1, 1, rows, cols);
}

static int make_scaled_kernel(const program_options *s, double scale, atn_context *context,
                              int64_t count, int64_t dim, double *tokens, double *kernel)
{
    atn_tensor from = matrix_view(tokens, count, dim), to = matrix_view(kernel, count, count);
    atn_status status = staged_gaussian_self(context, s->distance, scale, &from, &to);
    return check_status(context, status, "kernel matrix");
}

int make_kernel(const program_options *s, atn_context *context, int64_t count, int64_t dim,
                double *tokens, double *kernel)
{
    return make_scaled_kernel(s, kernel_scale(s, dim), context, count, dim, tokens, kernel);
}

int make_cross_kernel(const program_options *s, atn_context *context, int64_t rows, int64_t cols,
                      int64_t dim, double *x, double *y, double *kernel)
{
    atn_tensor left = matrix_view(x, rows, dim), right = matrix_view(y, cols, dim);
    atn_tensor to = matrix_view(kernel, rows, cols);
    atn_status status =
        staged_gaussian_cross(context, s->distance, kernel_scale(s, dim), &left, &right, &to);
    return check_status(context, status, "cross kernel");
}

int make_iterate_of(atn_context *context, atn_inverse_method method, int64_t m, double *a,
                    double *x)
{
    atn_inverse_desc desc = atn_inverse_defaults(method);
    atn_tensor from = matrix_view(a, m, m), to = matrix_view(x, m, m);
    desc.iterations = PAPER_STEPS;
    return check_status(context, staged_inverse(context, &desc, &from, &to, NULL, NULL),
                        atn_inverse_name(method));
}

int make_iterate(atn_context *context, int64_t m, double *a, double *x)
{
    return make_iterate_of(context, ATN_INVERSE_NR_PAPER, m, a, x);
}

int check_disagreement(double disagreement, const char *what, int64_t n)
{
    if (ref_judge(REF_SPECTRUM, disagreement) != REF_FAIL)
        return EXIT_PASS;
    report_error("%s of a %" PRId64 "x%" PRId64
                 " matrix: two routes are %.3g rounding errors apart, "
                 "expected less than %g",
                 what, n, n, disagreement, ref_threshold_get(REF_SPECTRUM)->fail);
    return EXIT_CHECK;
}

int checked_eigenvalues(int64_t n, const double *a, double *lambda, double *w)
{
    double disagreement = 0;
    atn_status status = ref_eigenvalues(n, a, lambda, w, &disagreement);
    if (status != ATN_OK) {
        report_error("eigenvalues of a %" PRId64 "x%" PRId64 " matrix: %s", n, n,
                     atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    return check_disagreement(disagreement, "eigenvalues", n);
}

int checked_ends(int64_t n, const double *a, double *lowest, double *highest)
{
    double *lambda = must_allocate((size_t)n, sizeof *lambda);
    int code = checked_eigenvalues(n, a, lambda, NULL);
    *lowest = lambda[n - 1];
    *highest = lambda[0];
    free(lambda);
    return code;
}

int checked_norm(int64_t n, const double *a, double *norm)
{
    double lowest, highest;
    int code = checked_ends(n, a, &lowest, &highest);
    *norm = fmax(fabs(highest), fabs(lowest));
    return code;
}

int64_t numerical_rank(int64_t m, const double *lambda, double u)
{
    int64_t count = 0;
    while (count < m && lambda[count] > (double)m * u * lambda[0])
        count++;
    return count;
}

int landmark_sweep_matrix(const landmark_sweep *sweep, const landmark_point *point,
                          atn_context *context, double **a)
{
    int64_t m = point->m;
    double *landmarks, scale;
    *a = NULL;
    int code = landmark_sweep_landmarks(sweep, point, context, &landmarks, &scale);
    if (code != EXIT_PASS)
        return code;
    *a = must_allocate((size_t)m, (size_t)m * sizeof **a);
    code = make_scaled_kernel(sweep->s, scale, context, m, input_dim(point->in), landmarks, *a);
    free(landmarks);
    if (code == EXIT_PASS)
        return code;
    free(*a);
    *a = NULL;
    return code;
}
