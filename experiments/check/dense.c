/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "check/check.h"
#include "common/report.h"

/* a_ij / (d_i d_j)^power, d the row sums of a. */
static void divide_rows(int64_t m, const double *a, double power, double *x)
{
    double *factors = must_allocate((size_t)m, sizeof *factors);
    for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += a[i * m + j];
        factors[i] = pow(sum, -power);
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            x[i * m + j] *= factors[i] * factors[j];
    free(factors);
}

/* Y = P^T X P V of one head; p is m x n. */
static void multiply(int64_t m, int64_t n, int64_t dv, const double *p, const double *x,
                     const double *v, double *out)
{
    double *pv = must_allocate((size_t)(2 * m * dv), sizeof *pv), *xpv = pv + m * dv;
    for (int64_t l = 0; l < m; l++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < dv; c++)
                pv[l * dv + c] += p[l * n + i] * v[i * dv + c];
    for (int64_t l = 0; l < m; l++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t c = 0; c < dv; c++)
                xpv[l * dv + c] += x[l * m + i] * pv[i * dv + c];
    for (int64_t i = 0; i < n * dv; i++)
        out[i] = 0;
    for (int64_t l = 0; l < m; l++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < dv; c++)
                out[i * dv + c] += p[l * n + i] * xpv[l * dv + c];
    free(pv);
}

/* Every head's matrices: L, A, X, P. */
typedef struct {
    atn_tensor l, a, x, p;
} factors;

static atn_tensor take(const attention_case *c, int64_t rows, int64_t cols)
{
    const atn_attention_shape *s = &c->shape;
    double *values = must_allocate((size_t)(s->batch * s->heads * rows * cols), sizeof *values);
    return atn_tensor_dense(values, ATN_F64, s->batch, s->heads, rows, cols);
}

static atn_status factorise(atn_context *context, const attention_case *c, normaliser normalise,
                            double landmark_factor, factors *f)
{
    const atn_attention_desc *desc = &c->reference;
    const atn_attention_shape *s = &c->shape;
    double scale = atn_kernel_scale(desc->scale, desc->scale_value, s->heads, s->dim);
    int64_t heads = s->batch * s->heads, m = f->l.rows;
    double *a = f->a.data, *x = f->x.data;
    atn_tensor q = atn_tensor_dense((void *)c->q, ATN_F64, s->batch, s->heads, s->tokens, s->dim);
    atn_status status = atn_sample(context, &desc->sampling, &q, &f->l);
    for (int64_t i = 0; i < heads * m * s->dim; i++)
        ((double *)f->l.data)[i] *= landmark_factor;
    if (status == ATN_OK)
        status = atn_gaussian_self(context, desc->distance, scale, &f->l, &f->a);
    if (status == ATN_OK)
        status = atn_gaussian_cross(context, desc->distance, scale, &f->l, &q, &f->p);
    for (int64_t i = 0; status == ATN_OK && normalise == NORMALISE_INNER && i < heads; i++)
        divide_rows(m, a + i * m * m, 0.5, a + i * m * m);
    if (status == ATN_OK)
        status = atn_inverse(context, &desc->inverse, &f->a, &f->x, NULL, NULL);
    for (int64_t i = 0; status >= 0 && i < heads; i++)
        if (normalise == NORMALISE_ROOT || normalise == NORMALISE_FULL)
            divide_rows(m, a + i * m * m, normalise == NORMALISE_ROOT ? 0.5 : 1, x + i * m * m);
    return status;
}

atn_status dense_soft(atn_context *context, const attention_case *c, normaliser normalise,
                      double landmark_factor, double *out)
{
    const atn_attention_shape *s = &c->shape;
    int64_t m = 0, n = s->tokens;
    atn_status status = c->reference.residual.data
                            ? ATN_ERR_UNSUPPORTED
                            : atn_sampling_count(context, &c->reference.sampling, n, s->dim, &m);
    if (status != ATN_OK)
        return status;
    factors f = {take(c, m, s->dim), take(c, m, m), take(c, m, m), take(c, m, n)};
    status = factorise(context, c, normalise, landmark_factor, &f);
    for (int64_t i = 0; status >= 0 && i < s->batch * s->heads; i++)
        multiply(m, n, s->value_dim, (double *)f.p.data + i * m * n, (double *)f.x.data + i * m * m,
                 c->v + i * n * s->value_dim, out + i * n * s->value_dim);
    free(f.l.data), free(f.a.data), free(f.x.data), free(f.p.data);
    return status;
}
