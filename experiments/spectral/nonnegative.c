/* SPDX-License-Identifier: BSD-3-Clause */
#include "spectral/nonnegative.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include <linear_algebra.h>

#include "common/report.h"

enum { MOST_STEPS = 80, BLOCK_ROWS = 64, MOST_KEPT = 4096 };

static const double wanted = 1e-6; /* upper / lower - 1 */

/* ---- Products ---- */

typedef struct {
    const row_source *source;
    double *rows; /* all of M, or one block */
    bool kept;
} streamed_matrix;

static double *allocate_vectors(int64_t n, int64_t count)
{
    return must_allocate((size_t)n, (size_t)count * sizeof(double));
}

static int open_matrix(streamed_matrix *m, const row_source *source)
{
    int64_t n = source->n;
    *m = (streamed_matrix){source, NULL, n <= MOST_KEPT};
    m->rows = allocate_vectors(n, m->kept ? n : BLOCK_ROWS);
    return m->kept ? source->rows(source->state, 0, n, m->rows) : EXIT_PASS;
}

/* image = M x and y = M^T M x, in one pass over M. */
static int multiply(streamed_matrix *m, const double *x, double *image, double *y)
{
    int64_t n = m->source->n;
    for (int64_t first = 0; first < n; first += BLOCK_ROWS) {
        int64_t count = n - first < BLOCK_ROWS ? n - first : BLOCK_ROWS;
        double *rows = m->kept ? m->rows + first * n : m->rows;
        int code = m->kept ? EXIT_PASS : m->source->rows(m->source->state, first, count, rows);
        if (code != EXIT_PASS)
            return code;
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)count, (int)n, 1, rows, (int)n, x, 1, 0,
                    image + first, 1);
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)count, (int)n, 1, rows, (int)n, image + first,
                    1, first > 0, y, 1);
    }
    return EXIT_PASS;
}

/* ---- The Krylov space ---- */

/* An orthonormal basis v_1, ..., v_count, the images B v_j and H = V^T B V. */
typedef struct {
    int64_t n;
    int count;
    double *basis, *images, *h;
    double *ritz, *ritz_image; /* the best x of the space, and B x */
} krylov;

static krylov open_krylov(int64_t n)
{
    return (krylov){.n = n,
                    .basis = allocate_vectors(n, MOST_STEPS),
                    .images = allocate_vectors(n, MOST_STEPS),
                    .h = allocate_vectors(MOST_STEPS, MOST_STEPS),
                    .ritz = allocate_vectors(n, 1),
                    .ritz_image = allocate_vectors(n, 1)};
}

static void close_krylov(krylov *k)
{
    free(k->basis);
    free(k->images);
    free(k->h);
    free(k->ritz);
    free(k->ritz_image);
}

/* Adds the newest image to H and finds the best x of the larger space. */
static int add_image(krylov *k)
{
    int n = (int)k->n, last = k->count++, count = k->count;
    double *packed = allocate_vectors(count, count), *w = allocate_vectors(count, count);
    double *theta = allocate_vectors(count, 1);
    for (int i = 0; i <= last; i++)
        k->h[last * MOST_STEPS + i] =
            cblas_ddot(n, k->basis + i * k->n, 1, k->images + last * k->n, 1);
    for (int i = 0; i < count; i++) /* the lower triangle is the one read */
        memcpy(packed + i * count, k->h + i * MOST_STEPS, (size_t)(i + 1) * sizeof *packed);
    atn_status status = ref_eigen(REF_DSYEVD, count, packed, theta, w);
    memset(k->ritz, 0, (size_t)n * sizeof *k->ritz);
    memset(k->ritz_image, 0, (size_t)n * sizeof *k->ritz_image);
    for (int j = 0; j < count; j++) {
        cblas_daxpy(n, w[j * count], k->basis + j * k->n, 1, k->ritz, 1);
        cblas_daxpy(n, w[j * count], k->images + j * k->n, 1, k->ritz_image, 1);
    }
    free(theta);
    free(w);
    free(packed);
    if (status == ATN_OK)
        return EXIT_PASS;
    report_error("eigenvalues of a %dx%d matrix: %s", count, count, atn_status_message(status));
    return EXIT_ENVIRONMENT;
}

/* max_i (B x)_i / x_i; infinity where some x_i is not positive. */
static double collatz_wielandt(int64_t n, const double *x, const double *image)
{
    double sign = x[0] < 0 ? -1 : 1, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(sign * x[i] > 0))
            return INFINITY;
        largest = fmax(largest, image[i] / x[i]);
    }
    return largest;
}

/* Updates both bounds from the best x. Until the end they bound the square of the norm. */
static void narrow(const krylov *k, norm_bracket *bracket)
{
    int n = (int)k->n;
    double square = cblas_ddot(n, k->ritz, 1, k->ritz, 1);
    double rayleigh = cblas_ddot(n, k->ritz, 1, k->ritz_image, 1) / square;
    bracket->lower = fmax(bracket->lower, rayleigh);
    bracket->upper = fmin(bracket->upper, collatz_wielandt(k->n, k->ritz, k->ritz_image));
}

/* The next direction: the part of B x outside of the space. False if that is only rounding. */
static bool extend(krylov *k)
{
    int n = (int)k->n;
    double *next = k->basis + k->count * k->n, before = cblas_dnrm2(n, k->ritz_image, 1);
    memcpy(next, k->ritz_image, (size_t)n * sizeof *next);
    for (int pass = 0; pass < 2; pass++) /* twice is enough (Kahan, Parlett) */
        for (int j = 0; j < k->count; j++)
            cblas_daxpy(n, -cblas_ddot(n, k->basis + j * k->n, 1, next, 1), k->basis + j * k->n, 1,
                        next, 1);
    double left = cblas_dnrm2(n, next, 1);
    if (!(left > 1e-14 * before))
        return false;
    cblas_dscal(n, 1 / left, next, 1);
    return true;
}

static void sum_rows(int64_t n, const double *image, norm_bracket *bracket)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        total += image[i];
        bracket->row_sum_max = fmax(bracket->row_sum_max, image[i] * sqrt((double)n));
    }
    bracket->row_sum_mean = total / sqrt((double)n);
}

static int iterate(streamed_matrix *m, krylov *k, double *image, norm_bracket *bracket)
{
    bool more = true;
    int code = EXIT_PASS;
    for (int64_t i = 0; i < k->n; i++)
        k->basis[i] = 1 / sqrt((double)k->n);
    while (more && code == EXIT_PASS) {
        code = multiply(m, k->basis + k->count * k->n, image, k->images + k->count * k->n);
        if (code == EXIT_PASS && k->count == 0)
            sum_rows(k->n, image, bracket);
        if (code == EXIT_PASS)
            code = add_image(k);
        if (code == EXIT_PASS)
            narrow(k, bracket);
        more = k->count < MOST_STEPS && !(sqrt(bracket->upper / bracket->lower) <= 1 + wanted) &&
               extend(k);
    }
    return code;
}

int nonnegative_norm(const row_source *source, norm_bracket *bracket)
{
    streamed_matrix m;
    *bracket = (norm_bracket){.upper = INFINITY};
    int code = open_matrix(&m, source);
    krylov k = open_krylov(source->n);
    double *image = allocate_vectors(source->n, 1);
    if (code == EXIT_PASS)
        code = iterate(&m, &k, image, bracket);
    bracket->lower = sqrt(bracket->lower);
    bracket->upper = sqrt(bracket->upper);
    bracket->steps = k.count;
    free(image);
    close_krylov(&k);
    free(m.rows);
    return code;
}
