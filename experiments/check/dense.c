/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include <data.h>

#include "check/check.h"
#include "common/report.h"

/* x_ij / (d_i d_j)^power, where d holds the row sums of a. a is m x cols, x is m x m. */
static void divide_rows(int64_t m, int64_t cols, const double *a, double power, double *x)
{
    double *factors = must_allocate((size_t)m, sizeof *factors);
    for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += a[i * cols + j];
        factors[i] = pow(sum, -power);
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            x[i * m + j] *= factors[i] * factors[j];
    free(factors);
}

/* X P Z (m x dv), or X^T P Z; Z is n x dv. */
static void gather(int64_t m, int64_t n, int64_t dv, const double *p, const double *x,
                   bool transposed, const double *z, double *to)
{
    double *pz = must_allocate((size_t)(m * dv), sizeof *pz);
    for (int64_t l = 0; l < m; l++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < dv; c++)
                pz[l * dv + c] += p[l * n + i] * z[i * dv + c];
    for (int64_t i = 0; i < m * dv; i++)
        to[i] = 0;
    for (int64_t l = 0; l < m; l++)
        for (int64_t k = 0; k < m; k++)
            for (int64_t c = 0; c < dv; c++)
                to[l * dv + c] += x[transposed ? k * m + l : l * m + k] * pz[k * dv + c];
    free(pz);
}

/* Y = P^T X P V of one head; p is m x n. */
static void multiply(int64_t m, int64_t n, int64_t dv, const double *p, const double *x,
                     const double *v, double *out)
{
    double *xpv = must_allocate((size_t)(m * dv), sizeof *xpv);
    gather(m, n, dv, p, x, false, v, xpv);
    for (int64_t i = 0; i < n * dv; i++)
        out[i] = 0;
    for (int64_t l = 0; l < m; l++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < dv; c++)
                out[i * dv + c] += p[l * n + i] * xpv[l * dv + c];
    free(xpv);
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

/* x (1 + or - change), signs at random. */
static void change_each(int64_t count, double change, uint64_t *state, double *x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] *= data_next(state) & 1 ? 1 + change : 1 - change;
}

static double square(double x)
{
    return x * x;
}

/* Changes X at random as rounding does where X A X is formed or A is inverted. The change is at
 * most `change` times |X| |A| |X|, when all roundings have one sign (N. J. Higham, Accuracy and
 * Stability of Numerical Algorithms, sec. 14.1). Independent roundings add up in squares, to
 * `change` times the square root of the product of X, A and X with every number squared. */
static void change_inverse(int64_t m, double change, uint64_t *state, const double *a, double *x)
{
    double *xa = must_allocate((size_t)(2 * m * m), sizeof *xa), *xax = xa + m * m;
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < m; k++)
            for (int64_t j = 0; j < m; j++)
                xa[i * m + j] += square(x[i * m + k] * a[k * m + j]);
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < m; k++)
            for (int64_t j = 0; j < m; j++)
                xax[i * m + j] += xa[i * m + k] * square(x[k * m + j]);
    for (int64_t i = 0; i < m * m; i++)
        x[i] += (data_next(state) & 1 ? change : -change) * sqrt(xax[i]);
    free(xa);
}

/* ---- Other kernels and landmarks ---- */

static double product_of(int64_t d, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += x[c] * y[c];
    return sum;
}

/* exp(-s distance) of x and a landmark. */
const double distance_terms[DISTANCE_COUNT][3] = {
    [DISTANCE_RIGHT] = {1, 1, 2},   [DISTANCE_NO_2] = {1, 1, 1},
    [DISTANCE_NO_KEYS] = {1, 0, 2}, [DISTANCE_NO_QUERIES] = {0, 1, 2},
    [DISTANCE_PRODUCT] = {0, 0, 2}, [DISTANCE_ROOT] = {1, 1, 2},
    [DISTANCE_PLUS] = {1, 1, -2},
};

static double kernel_of(distance_form distance, double scale, int64_t d, const double *x,
                        const double *l)
{
    const double *terms = distance_terms[distance];
    double square = terms[0] * product_of(d, x, x) + terms[1] * product_of(d, l, l) -
                    terms[2] * product_of(d, x, l);
    return exp(-scale * (distance == DISTANCE_ROOT ? sqrt(fmax(square, 0)) : square));
}

/* A, whose rows are the kernel's x, and P (m x n), whose columns are. */
static void fill_kernels(const attention_case *c, distance_form distance, double scale,
                         const double *q, const double *l, int64_t m, double *a, double *p)
{
    int64_t n = c->shape.tokens, d = c->shape.dim;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < m; j++)
            a[i * m + j] = kernel_of(distance, scale, d, l + i * d, l + j * d);
        for (int64_t j = 0; j < n; j++)
            p[i * n + j] = kernel_of(distance, scale, d, q + j * d, l + i * d);
    }
}

/* x y, m x m. */
static void multiply_squares(int64_t m, const double *x, const double *y, double *to)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) {
            to[i * m + j] = 0;
            for (int64_t k = 0; k < m; k++)
                to[i * m + j] += x[i * m + k] * y[k * m + j];
        }
}

/* X <- 2 X - X B X from alpha B, B = A + ridge I, alpha = numerator / |A|_1^2, also for an A that
 * is not symmetric, as code that does not check would do it. */
static void iterate_inverse(const atn_inverse_desc *o, int64_t m, const double *a, double *x)
{
    double *b = must_allocate((size_t)(3 * m * m), sizeof *b), *xb = b + m * m, *xbx = xb + m * m;
    double norm = 0;
    for (int64_t j = 0; j < m; j++) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += fabs(a[i * m + j]);
        norm = fmax(norm, sum);
    }
    for (int64_t i = 0; i < m * m; i++) {
        b[i] = a[i] + (i % (m + 1) == 0 ? o->ridge : 0);
        x[i] = o->numerator / (norm * norm) * b[i];
    }
    for (int k = 0; k < o->iterations; k++) {
        multiply_squares(m, x, b, xb);
        multiply_squares(m, xb, x, xbx);
        for (int64_t i = 0; i < m * m; i++)
            x[i] = 2 * x[i] - xbx[i];
    }
    free(b);
}

/* Landmarks that are the means or largest numbers of about n/m consecutive tokens, or of every m-th
 * token (landmark_form). */
static void other_landmarks(landmark_form form, int64_t n, int64_t m, int64_t d, const double *q,
                            double *l)
{
    const bool apart = form == LANDMARKS_INTERLEAVED, largest = form == LANDMARKS_LARGEST;
    for (int64_t k = 0; k < m; k++) {
        int64_t first = (k * n + m - 1) / m, end = ((k + 1) * n + m - 1) / m;
        first = apart ? k : form == LANDMARKS_LAST ? end - 1 : first;
        end = apart ? n : form == LANDMARKS_SHORT && end > first + 1 ? end - 1 : end;
        int64_t step = apart ? m : 1, count = (end - first + step - 1) / step;
        for (int64_t c = 0; c < d; c++) {
            double sum = 0, most = -INFINITY;
            for (int64_t i = first; i < end; i += step) {
                sum += q[i * d + c] / (double)count;
                most = fmax(most, q[i * d + c]);
            }
            l[k * d + c] = largest ? most : sum;
        }
    }
}

/* ---- The factors ---- */

static atn_status factorise(atn_context *context, const attention_case *c, const dense_form *form,
                            factors *f)
{
    normaliser normalise = form->normalise;
    const atn_attention_desc *desc = &c->reference;
    const atn_attention_shape *s = &c->shape;
    double scale = atn_kernel_scale(desc->scale, desc->scale_value, s->heads, s->dim);
    int64_t heads = s->batch * s->heads, m = f->l.rows;
    double *a = f->a.data, *x = f->x.data;
    atn_tensor q = atn_tensor_dense((void *)c->q, ATN_F64, s->batch, s->heads, s->tokens, s->dim);
    atn_status status = atn_sample(context, &desc->sampling, &q, &f->l);
    for (int64_t i = 0; i < heads && form->landmarks; i++)
        other_landmarks(form->landmarks, s->tokens, m, s->dim, c->q + i * s->tokens * s->dim,
                        (double *)f->l.data + i * m * s->dim);
    for (int64_t i = 0; i < heads * m * s->dim; i++)
        ((double *)f->l.data)[i] *= form->landmark_factor;
    if (status == ATN_OK)
        status = atn_gaussian_self(context, desc->distance, scale, &f->l, &f->a);
    if (status == ATN_OK)
        status = atn_gaussian_cross(context, desc->distance, scale, &f->l, &q, &f->p);
    for (int64_t i = 0; status == ATN_OK && form->distance && i < heads; i++)
        fill_kernels(c, form->distance, scale, c->q + i * s->tokens * s->dim,
                     (double *)f->l.data + i * m * s->dim, m, a + i * m * m,
                     (double *)f->p.data + i * m * s->tokens);
    uint64_t state = form->seed;
    if (status == ATN_OK && form->change > 0)
        change_each(heads * m * s->tokens, form->change, &state, f->p.data);
    for (int64_t i = 0; status == ATN_OK && normalise == NORMALISE_INNER && i < heads; i++)
        divide_rows(m, m, a + i * m * m, 0.5, a + i * m * m);
    if (status == ATN_OK && form->inverse_missing)
        for (int64_t i = 0; i < heads * m * m; i++)
            x[i] = i % (m * m) % (m + 1) == 0;
    else if (form->distance == DISTANCE_NO_KEYS || form->distance == DISTANCE_NO_QUERIES)
        for (int64_t i = 0; i < heads; i++)
            iterate_inverse(&desc->inverse, m, a + i * m * m, x + i * m * m);
    else if (status == ATN_OK)
        status = atn_inverse(context, &desc->inverse, &f->a, &f->x, NULL, NULL);
    for (int64_t i = 0; status >= 0 && form->change > 0 && i < heads; i++)
        change_inverse(m, form->change, &state, a + i * m * m, x + i * m * m);
    static const double powers[] = {[NORMALISE_ROOT] = 0.5,
                                    [NORMALISE_FULL] = 1,
                                    [NORMALISE_TIMES] = -0.5,
                                    [NORMALISE_BY_TOKENS] = 0.5};
    bool by_tokens = normalise == NORMALISE_BY_TOKENS;
    for (int64_t i = 0; status >= 0 && i < heads; i++)
        if (normalise != NORMALISE_NOT && normalise != NORMALISE_INNER)
            divide_rows(m, by_tokens ? s->tokens : m,
                        by_tokens ? (double *)f->p.data + i * m * s->tokens : a + i * m * m,
                        powers[normalise], x + i * m * m);
    return status;
}

atn_status dense_soft(atn_context *context, const attention_case *c, const dense_form *form,
                      double *out)
{
    const atn_attention_shape *s = &c->shape;
    int64_t m = 0, n = s->tokens;
    atn_status status = c->reference.residual.data
                            ? ATN_ERR_UNSUPPORTED
                            : atn_sampling_count(context, &c->reference.sampling, n, s->dim, &m);
    if (status != ATN_OK)
        return status;
    factors f = {take(c, m, s->dim), take(c, m, m), take(c, m, m), take(c, m, n)};
    status = factorise(context, c, form, &f);
    for (int64_t i = 0; status >= 0 && i < s->batch * s->heads; i++)
        multiply(m, n, s->value_dim, (double *)f.p.data + i * m * n, (double *)f.x.data + i * m * m,
                 c->v + i * n * s->value_dim, out + i * n * s->value_dim);
    free(f.l.data), free(f.a.data), free(f.x.data), free(f.p.data);
    return status;
}

/* ---- Its gradient ---- */

/* dP^T = G (X U)^T + V (X^T P G)^T for P m x n, U = P V: the first term belongs to K(Q, L), the
 * second to K(L, Q). This adds a b^T to dP^T, for a n x dv and b m x dv. */
static void add_outer(int64_t m, int64_t n, int64_t dv, const double *a, const double *b,
                      double *dp)
{
    for (int64_t l = 0; l < m; l++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < dv; c++)
                dp[l * n + i] += a[i * dv + c] * b[l * dv + c];
}

/* Adds dK_li = dP_li K_li (-2 s) (q_i - l_l) to the gradient of q_i, and its negative to that of
 * l_l, which is passed on to the tokens that l_l averages (weights m x n; null: not passed on). */
static void scatter(int64_t m, int64_t n, int64_t d, double scale, const double *q, const double *l,
                    const double *p, const double *dp, const double *weights, double *out)
{
    double *dl = must_allocate((size_t)(m * d), sizeof *dl);
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < d; c++) {
                double slope =
                    -2 * scale * dp[j * n + i] * p[j * n + i] * (q[i * d + c] - l[j * d + c]);
                out[i * d + c] += slope;
                dl[j * d + c] -= slope;
            }
    for (int64_t j = 0; j < m && weights; j++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < d; c++)
                out[i * d + c] += weights[j * n + i] * dl[j * d + c];
    free(dl);
}

/* The weight of every token in every landmark, m x n: the landmarks of the unit vectors. */
static atn_status sampling_weights(atn_context *context, const atn_sampling *sampling, int64_t m,
                                   int64_t n, double *weights)
{
    static const unsigned averages = 1u << ATN_SAMPLING_POOL | 1u << ATN_SAMPLING_WINDOW |
                                     1u << ATN_SAMPLING_INDICES | 1u << ATN_SAMPLING_FIRST;
    const int64_t most_tokens = 2048;
    if (!(averages >> sampling->kind & 1) || n > most_tokens)
        return ATN_ERR_UNSUPPORTED;
    double *units = must_allocate((size_t)(n * n), sizeof *units);
    for (int64_t i = 0; i < n; i++)
        units[i * n + i] = 1;
    atn_tensor tokens = atn_tensor_dense(units, ATN_F64, 1, 1, n, n);
    atn_tensor to = atn_tensor_dense(weights, ATN_F64, 1, 1, m, n);
    atn_status status = atn_sample(context, sampling, &tokens, &to);
    free(units);
    return status;
}

static void head_gradient(const attention_case *c, const factors *f, int64_t head,
                          const double *dout, int parts, const double *weights, double *out)
{
    const atn_attention_shape *s = &c->shape;
    int64_t m = f->l.rows, n = s->tokens, d = s->dim, dv = s->value_dim;
    double scale = atn_kernel_scale(c->reference.scale, c->reference.scale_value, s->heads, d);
    const double *p = (double *)f->p.data + head * m * n, *x = (double *)f->x.data + head * m * m;
    const double *v = c->v + head * n * dv, *g = dout + head * n * dv;
    double *dp = must_allocate((size_t)(m * n + m * dv), sizeof *dp), *gathered = dp + m * n;
    if (parts & PART_QUERIES) {
        gather(m, n, dv, p, x, false, v, gathered);
        add_outer(m, n, dv, g, gathered, dp);
    }
    if (parts & PART_KEYS) {
        gather(m, n, dv, p, x, true, g, gathered);
        add_outer(m, n, dv, v, gathered, dp);
    }
    scatter(m, n, d, scale, c->q + head * n * d, (double *)f->l.data + head * m * d, p, dp,
            parts & PART_LANDMARKS ? weights : NULL, out + head * n * d);
    free(dp);
}

atn_status dense_soft_gradient(atn_context *context, const attention_case *c,
                               const dense_form *form, const double *dout, int parts, double *out)
{
    const atn_attention_shape *s = &c->shape;
    int64_t m = 0, n = s->tokens;
    atn_status status = c->key_mask || c->query_mask
                            ? ATN_ERR_UNSUPPORTED
                            : atn_sampling_count(context, &c->reference.sampling, n, s->dim, &m);
    if (status != ATN_OK)
        return status;
    double *weights = must_allocate((size_t)(m * n), sizeof *weights);
    factors f = {take(c, m, s->dim), take(c, m, m), take(c, m, m), take(c, m, n)};
    status = sampling_weights(context, &c->reference.sampling, m, n, weights);
    if (status >= 0)
        status = factorise(context, c, form, &f);
    for (int64_t i = 0; i < s->batch * s->heads * n * s->dim; i++)
        out[i] = 0;
    for (int64_t i = 0; status >= 0 && i < s->batch * s->heads; i++)
        head_gradient(c, &f, i, dout, parts, weights, out);
    free(weights);
    free(f.l.data), free(f.a.data), free(f.x.data), free(f.p.data);
    return status;
}

dense_form dense_claimed(const attention_case *c)
{
    return (dense_form){.normalise = c->reference.op == ATN_SOFTPP ? NORMALISE_ROOT : NORMALISE_NOT,
                        .landmark_factor = 1};
}
