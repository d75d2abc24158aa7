/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/layers.h"

#include <cblas.h>
#include <math.h>
#include <stddef.h>

/* ---- Linear ---- */

void linear(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
            const real *bias, real *y)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < out; c++)
            y[r * out + c] = bias[c];
    cblas_gemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)out, (int)in, 1, x, (int)in,
               weight, (int)in, 1, y, (int)out);
}

void linear_backward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                     const real *dy, real keep, real *dx, real *dweight, real *dbias)
{
    if (dx)
        cblas_gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)in, (int)out, 1, dy,
                   (int)out, weight, (int)in, keep, dx, (int)in);
    cblas_gemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)out, (int)in, (int)rows, 1, dy,
               (int)out, x, (int)in, 0, dweight, (int)in);
    column_sums(rows, out, dy, NULL, dbias);
}

/* ---- Elementwise ---- */

void residual(int64_t rows, int64_t width, const real *x, const real *scale, const real *z, real *y)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++)
            y[r * width + c] = x[r * width + c] + (scale ? scale[c] : 1) * z[r * width + c];
}

void column_sums(int64_t rows, int64_t width, const real *x, const real *z, real *sums)
{
    for (int64_t c = 0; c < width; c++)
        sums[c] = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++)
            sums[c] += x[r * width + c] * (z ? z[r * width + c] : 1);
}

void gelu(int64_t count, const real *x, real *y, real *slope)
{
    const real rate = (real)1.5957691216057308, cubic = (real)0.044715; /* 2 sqrt(2/pi) */
    for (int64_t i = 0; i < count; i++) {
        real v = x[i], s = 1 / (1 + real_exp(-rate * (v + cubic * v * v * v)));
        y[i] = v * s;
        slope[i] = s + v * s * (1 - s) * rate * (1 + 3 * cubic * v * v);
    }
}

/* ---- LayerNorm ---- */

void layer_norm(int64_t rows, int64_t width, const real *x, const real *weight, const real *bias,
                real *y, real *moments)
{
    static const real epsilon = (real)1e-5;
    for (int64_t r = 0; r < rows; r++, x += width, y += width, moments += 2) {
        real sum = 0, squares = 0;
        for (int64_t c = 0; c < width; c++)
            sum += x[c];
        real mean = sum / (real)width;
        for (int64_t c = 0; c < width; c++)
            squares += (x[c] - mean) * (x[c] - mean);
        real rate = (real)(1 / sqrt((double)(squares / (real)width + epsilon)));
        for (int64_t c = 0; c < width; c++)
            y[c] = (x[c] - mean) * rate * weight[c] + bias[c];
        moments[0] = mean;
        moments[1] = rate;
    }
}

/* With u = (x - mean) rate and g = dy weight:   dx = rate (g - mean(g) - u mean(g u)). */
void layer_norm_backward(int64_t rows, int64_t width, const real *x, const real *weight,
                         const real *moments, const real *dy, real *dx, real *dweight, real *dbias)
{
    for (int64_t c = 0; c < width; c++)
        dweight[c] = dbias[c] = 0;
    for (int64_t r = 0; r < rows; r++, x += width, dy += width, dx += width, moments += 2) {
        real mean = moments[0], rate = moments[1], sum = 0, product = 0;
        for (int64_t c = 0; c < width; c++) {
            real u = (x[c] - mean) * rate;
            dweight[c] += dy[c] * u;
            dbias[c] += dy[c];
            sum += dy[c] * weight[c];
            product += dy[c] * weight[c] * u;
        }
        sum /= (real)width;
        product /= (real)width;
        for (int64_t c = 0; c < width; c++)
            dx[c] = rate * (dy[c] * weight[c] - sum - (x[c] - mean) * rate * product);
    }
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
