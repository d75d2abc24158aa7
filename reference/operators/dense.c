/* SPDX-License-Identifier: BSD-3-Clause */
#include "dense.h"

/* The sum is in a register: a long double in memory costs more than the strided access to b. */
void NUM(ref_multiply)(int64_t p, int64_t r, int64_t q, const num *a, const num *b, num *c)
{
    for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j < q; j++) {
            num sum = 0;
            for (int64_t l = 0; l < r; l++)
                sum += a[i * r + l] * b[l * q + j];
            c[i * q + j] = sum;
        }
}

num NUM(ref_norm1)(int64_t m, const num *a)
{
    num largest = 0;
    for (int64_t j = 0; j < m; j++) {
        num sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += num_abs(a[i * m + j]);
        largest = num_max(largest, sum);
    }
    return largest;
}

num NUM(ref_softmax_row)(int64_t count, num *logits)
{
    bool none = true;
    long double largest = -INFINITY;
    for (int64_t j = 0; j < count; j++) {
        none = none && num_value(logits[j]) == -INFINITY;
        largest = fmaxl(largest, num_value(logits[j]));
    }
    num sum = 0;
    for (int64_t j = 0; j < count; j++)
        sum += (logits[j] = none ? 0 : num_exp(logits[j] - largest));
    for (int64_t j = 0; !none && j < count; j++)
        logits[j] /= sum;
    return none ? (num)-INFINITY : num_log(sum) + largest;
}

void NUM(ref_weigh)(const ref_head *h, const num *weights, num *row)
{
    for (int64_t j = 0; j < h->n_k; j++)
        for (int64_t c = 0; ref_key(h, j) && c < h->dv; c++)
            row[c] += weights[j] * h->v[j * h->dv + c];
}

void NUM(ref_depthwise)(const ref_head *h, int64_t height, int64_t width, int64_t rows,
                        int64_t cols, const num *filter, num *out)
{
    for (int64_t i = 0; i < h->n; i++)
        for (int64_t f = 0; ref_query(h, i) && f < rows * cols; f++) {
            int64_t y = i / width + f / cols - rows / 2, x = i % width + f % cols - cols / 2;
            int64_t j = y * width + x;
            bool in_range = y >= 0 && y < height && x >= 0 && x < width && ref_key(h, j);
            for (int64_t c = 0; in_range && c < h->dv; c++)
                out[i * h->dv + c] += filter[f] * h->v[j * h->dv + c];
        }
}
