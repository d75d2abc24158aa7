/* SPDX-License-Identifier: BSD-3-Clause */
/* The published SOFT code's residual: a depthwise convolution on V's grid, one filter per head;
 * and its backward. */
#include "cpu/blocks.h"

/* `step` is the stride of the filter's entries: 1, or -1 from the last one if mirrored. */
static void one_token(int64_t height, int64_t width, int64_t dv, int64_t tall, int64_t wide,
                      const real *filter, int64_t step, const real *values, int64_t value_stride,
                      int64_t y, int64_t x, real *out)
{
    for (int64_t dy = 0; dy < tall; dy++) {
        int64_t row = y + dy - tall / 2;
        for (int64_t dx = 0; dx < wide && row >= 0 && row < height; dx++) {
            int64_t col = x + dx - wide / 2;
            if (col < 0 || col >= width)
                continue; /* zero padding */
            const real *value = values + (row * width + col) * value_stride;
            real weight = filter[(dy * wide + dx) * step];
            for (int64_t c = 0; c < dv; c++)
                out[c] += weight * value[c];
        }
    }
}

void R(depthwise_rows)(int64_t height, int64_t width, int64_t dv, int64_t tall, int64_t wide,
                       const real *filter, const real *values, int64_t value_stride, int64_t y0,
                       int64_t y1, real *out, int64_t out_stride)
{
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = 0; x < width; x++)
            one_token(height, width, dv, tall, wide, filter, 1, values, value_stride, y, x,
                      out + (y * width + x) * out_stride);
}

void R(depthwise_back_rows)(int64_t height, int64_t width, int64_t dv, int64_t tall, int64_t wide,
                            const real *filter, const real *grad_out, int64_t grad_out_stride,
                            int64_t y0, int64_t y1, real *grad, int64_t grad_stride)
{
    const real *last = filter + tall * wide - 1;
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = 0; x < width; x++)
            one_token(height, width, dv, tall, wide, last, -1, grad_out, grad_out_stride, y, x,
                      grad + (y * width + x) * grad_stride);
}

double R(depthwise_entry_sum)(int64_t height, int64_t width, int64_t dv, int64_t down,
                              int64_t right, const real *values, int64_t value_stride,
                              const real *grad_out, int64_t grad_out_stride)
{
    enum { RUN = 64 }; /* tokens of a row at a time */
    double sum = 0, dots[RUN];
    int64_t left = right < 0 ? -right : 0, end = right < 0 ? width : width - right;
    for (int64_t y = down < 0 ? -down : 0; y < height && y + down < height; y++)
        for (int64_t x = left; x < end; x += RUN) {
            int64_t count = end - x < RUN ? end - x : RUN;
            R(row_dots)
            (count, dv, grad_out + (y * width + x) * grad_out_stride, grad_out_stride,
             values + ((y + down) * width + x + right) * value_stride, value_stride, dots);
            for (int64_t i = 0; i < count; i++)
                sum += dots[i];
        }
    return sum;
}
