/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/layers.h"

#include <math.h>
#include <stddef.h>

#include <attnum/timing.h>

/* ---- Instruction sets ---- */

/* As in lib/meson.build. */
extern const row_kernels R_IN(rows, base);
#ifdef __x86_64__
extern const row_kernels R_IN(rows, avx2), R_IN(rows, avx512);
#endif

const row_kernels *row_kernels_of(const atn_context *context)
{
    static const row_kernels *const sets[ATN_ISA_COUNT] = {
        [ATN_ISA_BASE] = &R_IN(rows, base),
#ifdef __x86_64__
        [ATN_ISA_AVX2] = &R_IN(rows, avx2),
        [ATN_ISA_AVX512] = &R_IN(rows, avx512),
#endif
    };
    return sets[atn_context_isa(context)];
}

/* ---- Linear ---- */

void linear(atn_context *context, int64_t rows, int64_t in, int64_t out, const real *x,
            const real *weight, const real *bias, real *y)
{
    atn_product_shape product = {
        .transpose_b = true, .rows = rows, .cols = out, .inner = in, .add = true};
    row_kernels_of(context)->repeat(rows, out, bias, y);
    atn_product(context, REAL_DTYPE, &product, x, weight, y);
}

void linear_backward(atn_context *context, int64_t rows, int64_t in, int64_t out, const real *x,
                     const real *weight, const real *dy, bool add, real *dx, real *dweight,
                     real *dbias)
{
    atn_product_shape by_x = {.rows = rows, .cols = in, .inner = out, .add = add};
    atn_product_shape by_weight = {.transpose_a = true, .rows = out, .cols = in, .inner = rows};
    if (dx)
        atn_product(context, REAL_DTYPE, &by_x, dy, weight, dx);
    atn_product(context, REAL_DTYPE, &by_weight, dy, x, dweight);
    row_kernels_of(context)->column_sums(rows, out, dy, NULL, dbias);
}

/* ---- The loss ---- */

void cross_entropy(int64_t images, int64_t classes, const real *logits, const unsigned char *labels,
                   double smoothing, double weight, double *loss, int64_t *correct, real *dlogits)
{
    for (int64_t i = 0; i < images; i++, logits += classes) {
        double most = -INFINITY, sum = 0, mean = 0;
        int64_t best = -1;
        for (int64_t c = 0; c < classes; c++) {
            if ((double)logits[c] > most) {
                most = (double)logits[c];
                best = c;
            }
            mean += (double)logits[c] / (double)classes;
        }
        for (int64_t c = 0; c < classes; c++)
            sum += exp((double)logits[c] - most);
        double right = (double)logits[labels[i]], log_sum = most + log(sum);
        *loss += log_sum - (1 - smoothing) * right - smoothing * mean;
        *correct += best == labels[i] && isfinite(mean);
        for (int64_t c = 0; dlogits && c < classes; c++) {
            double target = (c == labels[i] ? 1 - smoothing : 0) + smoothing / (double)classes;
            dlogits[i * classes + c] = (real)(weight * (exp((double)logits[c] - log_sum) - target));
        }
    }
}

/* ---- A step ---- */

void adamw(const adamw_rule *rule, int64_t count, const real *gradient, real *x,
           real *const moments[2])
{
    static const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    real first = (real)(1 - pow(beta1, (double)rule->step));
    real second = (real)(1 - pow(beta2, (double)rule->step));
    real kept = (real)(1 - rule->rate * rule->decay), rate = (real)rule->rate;
    real *m = moments[0], *v = moments[1];
    for (int64_t i = 0; i < count; i++) {
        real g = (real)rule->scale * gradient[i];
        m[i] += (real)(1 - beta1) * (g - m[i]);
        v[i] += (real)(1 - beta2) * (g * g - v[i]);
        x[i] = kept * x[i] - rate * (m[i] / first) / (real_sqrt(v[i] / second) + (real)epsilon);
    }
}
