/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cpu/simd_set.h"
#include "train/rows.h"

/* The vector at c. Loops over elements process what is left over at the end of a row. */
#define AT(row, c) (*(lanes *)((row) + (c)))
#define OF(row, c) (*(const lanes *)((row) + (c)))

static int64_t whole_lanes(int64_t count)
{
    return count - count % LANES;
}

/* The sum of the elements, by halving the vector. */
static inline real total(lanes x)
{
    real part[LANES];
    memcpy(part, &x, sizeof part);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            part[i] += part[i + half];
    return part[0];
}

/* ---- Elementwise ---- */

static inline void gelu_lanes(lanes *x, lanes *y)
{
    const real rate = (real)1.5957691216057308, cubic = (real)0.044715; /* 2 sqrt(2/pi) */
    lanes v = *x, square = cubic * v * v, s = 1 / (1 + (lanes)EXP(-rate * v * (1 + square)));
    *y = v * s;
    *x = s + v * s * (1 - s) * rate * (1 + 3 * square);
}

static void gelu(int64_t count, real *x, real *y)
{
    int64_t whole = whole_lanes(count);
    size_t rest = (size_t)(count - whole) * sizeof *x;
    lanes last = {0}, last_y;
    for (int64_t i = 0; i < whole; i += LANES)
        gelu_lanes(&AT(x, i), &AT(y, i));
    memcpy(&last, x + whole, rest);
    gelu_lanes(&last, &last_y);
    memcpy(x + whole, &last, rest);
    memcpy(y + whole, &last_y, rest);
}

static void relu(int64_t count, real *x, real *y)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] <= 0 ? 0 : x[i];
        x[i] = x[i] > 0 ? 1 : 0;
    }
}

static void residual(int64_t rows, int64_t width, const real *x, const real *scale, const real *z,
                     real *y)
{
    const lanes ones = (lanes){0} + 1;
    int64_t whole = whole_lanes(width);
    for (int64_t r = 0; r < rows; r++, x += width, y += width, z += width) {
        for (int64_t c = 0; c < whole; c += LANES)
            AT(y, c) = OF(x, c) + (scale ? OF(scale, c) : ones) * OF(z, c);
        for (int64_t c = whole; c < width; c++)
            y[c] = x[c] + (scale ? scale[c] : 1) * z[c];
    }
}

static void repeat(int64_t rows, int64_t width, const real *row, real *y)
{
    int64_t whole = whole_lanes(width);
    for (int64_t r = 0; r < rows; r++, y += width) {
        for (int64_t c = 0; c < whole; c += LANES)
            AT(y, c) = OF(row, c);
        for (int64_t c = whole; c < width; c++)
            y[c] = row[c];
    }
}

static void column_sums(int64_t rows, int64_t width, const real *x, const real *z, real *sums)
{
    const lanes ones = (lanes){0} + 1;
    int64_t whole = whole_lanes(width);
    memset(sums, 0, (size_t)width * sizeof *sums);
    for (int64_t r = 0; r < rows; r++, x += width) {
        const real *other = z ? z + r * width : NULL;
        for (int64_t c = 0; c < whole; c += LANES)
            AT(sums, c) += OF(x, c) * (z ? OF(other, c) : ones);
        for (int64_t c = whole; c < width; c++)
            sums[c] += x[c] * (z ? other[c] : 1);
    }
}

static void multiply(int64_t count, const real *x, real *y)
{
    int64_t whole = whole_lanes(count);
    for (int64_t i = 0; i < whole; i += LANES)
        AT(y, i) *= OF(x, i);
    for (int64_t i = whole; i < count; i++)
        y[i] *= x[i];
}

/* ---- LayerNorm ---- */

static inline real row_sum(int64_t width, const real *x)
{
    int64_t whole = whole_lanes(width);
    lanes sums = {0};
    for (int64_t c = 0; c < whole; c += LANES)
        sums += OF(x, c);
    real sum = total(sums);
    for (int64_t c = whole; c < width; c++)
        sum += x[c];
    return sum;
}

static inline real squares_from(int64_t width, const real *x, real mean)
{
    int64_t whole = whole_lanes(width);
    lanes sums = {0};
    for (int64_t c = 0; c < whole; c += LANES)
        sums += (OF(x, c) - mean) * (OF(x, c) - mean);
    real sum = total(sums);
    for (int64_t c = whole; c < width; c++)
        sum += (x[c] - mean) * (x[c] - mean);
    return sum;
}

static void layer_norm(int64_t rows, int64_t width, const real *x, const real *weight,
                       const real *bias, real *y, real *moments)
{
    static const real epsilon = (real)1e-5;
    int64_t whole = whole_lanes(width);
    for (int64_t r = 0; r < rows; r++, x += width, y += width, moments += 2) {
        real mean = row_sum(width, x) / (real)width;
        real variance = squares_from(width, x, mean) / (real)width;
        real rate = (real)(1 / sqrt((double)(variance + epsilon)));
        for (int64_t c = 0; c < whole; c += LANES)
            AT(y, c) = (OF(x, c) - mean) * rate * OF(weight, c) + OF(bias, c);
        for (int64_t c = whole; c < width; c++)
            y[c] = (x[c] - mean) * rate * weight[c] + bias[c];
        moments[0] = mean;
        moments[1] = rate;
    }
}

/* Sums over a row of g = dy weight and of g u, where u = (x - mean) rate. */
typedef struct {
    real gradient, product;
} row_sums;

/* Adds the row's contribution to the gradients of weight and bias. */
static inline row_sums add_row(int64_t width, const real *x, real mean, real rate, const real *dy,
                               const real *weight, real *dweight, real *dbias)
{
    int64_t whole = whole_lanes(width);
    lanes gradients = {0}, products = {0};
    for (int64_t c = 0; c < whole; c += LANES) {
        lanes u = (OF(x, c) - mean) * rate, g = OF(dy, c) * OF(weight, c);
        AT(dweight, c) += OF(dy, c) * u;
        AT(dbias, c) += OF(dy, c);
        gradients += g;
        products += g * u;
    }
    row_sums sums = {total(gradients), total(products)};
    for (int64_t c = whole; c < width; c++) {
        real u = (x[c] - mean) * rate;
        dweight[c] += dy[c] * u;
        dbias[c] += dy[c];
        sums.gradient += dy[c] * weight[c];
        sums.product += dy[c] * weight[c] * u;
    }
    return sums;
}

/* dx = rate (g - mean(g) - u mean(g u)) */
static void layer_norm_backward(int64_t rows, int64_t width, const real *x, const real *weight,
                                const real *moments, const real *dy, bool add, real *dx,
                                real *dweight, real *dbias)
{
    int64_t whole = whole_lanes(width);
    memset(dweight, 0, (size_t)width * sizeof *dweight);
    memset(dbias, 0, (size_t)width * sizeof *dbias);
    for (int64_t r = 0; r < rows; r++, x += width, dy += width, dx += width, moments += 2) {
        real mean = moments[0], rate = moments[1];
        row_sums sums = add_row(width, x, mean, rate, dy, weight, dweight, dbias);
        real shift = sums.gradient / (real)width, slope = rate * sums.product / (real)width;
        for (int64_t c = 0; c < whole; c += LANES) {
            lanes before = add ? OF(dx, c) : (lanes){0};
            AT(dx, c) =
                before + rate * (OF(dy, c) * OF(weight, c) - shift - (OF(x, c) - mean) * slope);
        }
        for (int64_t c = whole; c < width; c++)
            dx[c] = (add ? dx[c] : 0) + rate * (dy[c] * weight[c] - shift - (x[c] - mean) * slope);
    }
}

const row_kernels R(rows) = {
    .gelu = gelu,
    .relu = relu,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .residual = residual,
    .repeat = repeat,
    .column_sums = column_sums,
    .multiply = multiply,
};
