/* SPDX-License-Identifier: BSD-3-Clause */
/* The published SOFT code's residual: a depthwise convolution on V's grid, one filter per head. */
#include "cpu/blocks.h"

static void one_token(int64_t height, int64_t width, int64_t dv, int64_t tall, int64_t wide,
                      const real *filter, const real *values, int64_t value_stride, int64_t y,
                      int64_t x, real *out)
{
    for (int64_t dy = 0; dy < tall; dy++) {
        int64_t row = y + dy - tall / 2;
        for (int64_t dx = 0; dx < wide && row >= 0 && row < height; dx++) {
            int64_t col = x + dx - wide / 2;
            if (col < 0 || col >= width)
                continue; /* zero padding */
            const real *value = values + (row * width + col) * value_stride;
            for (int64_t c = 0; c < dv; c++)
                out[c] += filter[dy * wide + dx] * value[c];
        }
    }
}

void R(depthwise_rows)(int64_t height, int64_t width, int64_t dv, int64_t tall, int64_t wide,
                       const real *filter, const real *values, int64_t value_stride, int64_t y0,
                       int64_t y1, real *out, int64_t out_stride)
{
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = 0; x < width; x++)
            one_token(height, width, dv, tall, wide, filter, values, value_stride, y, x,
                      out + (y * width + x) * out_stride);
}
