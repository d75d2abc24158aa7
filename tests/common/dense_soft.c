/* SPDX-License-Identifier: BSD-3-Clause */
#include "dense_soft.h"

#include <math.h>
#include <stdlib.h>

#include <linear_algebra.h>
#include <ref_memory.h>
#include <routes.h>

/* x = X as in Eq. 9, or D^-1/2 X D^-1/2 with D = diag(A 1), Eq. 17. */
static void weigh_inverse(int64_t m, const double *a, const double *inverse, bool normalise,
                          long double *x, long double *root)
{
    for (int64_t i = 0; i < m; i++) {
        long double sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += a[i * m + j];
        root[i] = normalise ? sqrtl(sum) : 1;
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            x[i * m + j] = inverse[i * m + j] / (root[i] * root[j]);
}

/* to (p x q) = from (p x r) times right (r x q); right is f64. */
static void multiply(int64_t p, int64_t r, int64_t q, const long double *from, const double *right,
                     long double *to)
{
    for (int64_t i = 0; i < p; i++) {
        for (int64_t j = 0; j < q; j++) {
            long double sum = 0;
            for (int64_t c = 0; c < r; c++)
                sum += from[i * r + c] * right[c * q + j];
            to[i * q + j] = sum;
        }
    }
}

/* to (n x q) = P^T (n x m) times right (m x q). */
static void multiply_transposed(int64_t n, int64_t m, int64_t q, const double *p,
                                const long double *right, double *to)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < q; j++) {
            long double sum = 0;
            for (int64_t c = 0; c < m; c++)
                sum += p[c * n + i] * right[c * q + j];
            to[i * q + j] = (double)sum;
        }
    }
}

typedef struct {
    double *a, *p, *pinv; /* m x m, m x n, m x m */
    /* X, X P, X P V, D^1/2: m x m, m x n, m x dv, m */
    long double *x, *xp, *xpv, *root;
} soft_work;

static long double *allocate_long(int64_t count)
{
    if ((uint64_t)count > PTRDIFF_MAX / sizeof(long double))
        return NULL;
    return ref_take((size_t)(count > 0 ? count : 0), sizeof(long double));
}

static void free_work(soft_work *work)
{
    free(work->root);
    free(work->xpv);
    free(work->xp);
    free(work->x);
    free(work->pinv);
    free(work->p);
    free(work->a);
}

static bool allocate_work(int64_t n, int64_t m, int64_t dv, soft_work *work)
{
    *work = (soft_work){
        .a = ref_allocate(m * m),
        .p = ref_allocate(m * n),
        .pinv = ref_allocate(m * m),
        .x = allocate_long(m * m),
        .xp = allocate_long(m * n),
        .xpv = allocate_long(m * dv),
        .root = allocate_long(m),
    };
    return work->a && work->p && work->pinv && work->x && work->xp && work->xpv && work->root;
}

/* Eq. 9: S^ = P^T X P and out = P^T (X P V), from one product X P. */
static atn_status soft(int64_t n, int64_t m, int64_t d, int64_t dv, const double *tokens,
                       const double *landmarks, const double *values, double s,
                       const double *inverse, bool normalise, double *s_hat, double *out,
                       soft_work *work)
{
    atn_status status = ATN_OK;
    ref_gaussian(m, m, d, landmarks, landmarks, s, work->a);
    ref_gaussian(m, n, d, landmarks, tokens, s, work->p);
    if (!inverse) {
        status = ref_symmetric_pinv(m, work->a, -1, work->pinv, NULL, NULL, NULL);
        inverse = work->pinv;
    }
    if (status < 0)
        return status;
    weigh_inverse(m, work->a, inverse, normalise, work->x, work->root);
    multiply(m, m, n, work->x, work->p, work->xp);
    if (s_hat)
        multiply_transposed(n, m, n, work->p, work->xp, s_hat);
    if (out) {
        multiply(m, n, dv, work->xp, values, work->xpv);
        multiply_transposed(n, m, dv, work->p, work->xpv, out);
    }
    return status;
}

atn_status ref_soft(int64_t n, int64_t m, int64_t d, int64_t dv, const double *tokens,
                    const double *landmarks, const double *values, double s, const double *inverse,
                    bool normalise, double *s_hat, double *out)
{
    const struct {
        int64_t rows, cols;
        const double *data;
        bool used;
    } inputs[] = {
        {n, d, tokens, true},
        {m, d, landmarks, true},
        {n, dv, values, out != NULL},
        {m, m, inverse, inverse != NULL},
    };
    bool finite = true;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const double *data = inputs[i].used ? inputs[i].data : &s;
        atn_status status = ref_check_matrix(inputs[i].rows, inputs[i].cols, data);
        if (status != ATN_OK)
            return status;
        if (inputs[i].used)
            finite = finite && ref_all_finite(inputs[i].rows * inputs[i].cols, data);
    }
    if (ref_check_matrix(m, n, &s) != ATN_OK || (s_hat && ref_check_matrix(n, n, &s) != ATN_OK))
        return ATN_ERR_SHAPE;
    if (!(s >= 0) || isinf(s))
        return ATN_ERR_VALUE;
    if (!finite) {
        ref_fill(s_hat ? n * n : 0, NAN, s_hat);
        ref_fill(out ? n * dv : 0, NAN, out);
        return ATN_NONFINITE;
    }
    soft_work work;
    atn_status status = ATN_ERR_MEMORY;
    if (allocate_work(n, m, dv, &work))
        status =
            soft(n, m, d, dv, tokens, landmarks, values, s, inverse, normalise, s_hat, out, &work);
    free_work(&work);
    return status;
}

void ref_window(int64_t n, int64_t d, int64_t k, const double *tokens, double *landmarks)
{
    if (k < 1)
        return;
    for (int64_t first = 0; first < n; first += k) {
        int64_t end = n - first < k ? n : first + k;
        for (int64_t c = 0; c < d; c++) {
            long double sum = 0;
            for (int64_t i = first; i < end; i++)
                sum += tokens[i * d + c];
            landmarks[first / k * d + c] = (double)(sum / (long double)(end - first));
        }
    }
}

void ref_conv(int64_t height, int64_t width, int64_t d, int64_t k, const double *weights,
              const double *tokens, double *landmarks)
{
    if (k < 1)
        return;
    int64_t across = width / k;
    for (int64_t window = 0; window < height / k * across; window++) {
        for (int64_t to = 0; to < d; to++) {
            long double sum = 0;
            for (int64_t i = 0; i < d * k * k; i++) {
                int64_t from = i / (k * k);
                int64_t y = window / across * k + i % (k * k) / k;
                int64_t x = window % across * k + i % k;
                sum +=
                    (long double)weights[to * d * k * k + i] * tokens[(y * width + x) * d + from];
            }
            landmarks[window * d + to] = (double)sum;
        }
    }
}

void ref_norm_gelu(int64_t rows, int64_t d, const double *weight, const double *bias, double *x)
{
    const long double epsilon = 1e-5L;
    for (int64_t i = 0; i < rows; i++) {
        double *row = x + i * d;
        long double mean = 0, variance = 0;
        for (int64_t c = 0; c < d; c++)
            mean += row[c] / (long double)d;
        for (int64_t c = 0; c < d; c++)
            variance += (row[c] - mean) * (row[c] - mean) / (long double)d;
        for (int64_t c = 0; c < d; c++) {
            long double z = (row[c] - mean) / sqrtl(variance + epsilon);
            z = z * (weight ? weight[c] : 1) + (bias ? bias[c] : 0);
            row[c] = (double)(z * erfcl(-z / sqrtl(2)) / 2);
        }
    }
}

void ref_depthwise(int64_t height, int64_t width, int64_t dv, int64_t k, const double *filter,
                   const double *values, double *out)
{
    if (k < 1)
        return;
    for (int64_t token = 0; token < height * width; token++) {
        for (int64_t c = 0; c < dv; c++) {
            long double sum = out[token * dv + c];
            for (int64_t i = 0; i < k * k; i++) {
                int64_t y = token / width + i / k - k / 2, x = token % width + i % k - k / 2;
                if (y >= 0 && y < height && x >= 0 && x < width)
                    sum += (long double)filter[i] * values[(y * width + x) * dv + c];
            }
            out[token * dv + c] = (double)sum;
        }
    }
}
