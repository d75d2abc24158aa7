/* SPDX-License-Identifier: BSD-3-Clause */
#include "lsh_buckets.h"

#include <math.h>

#include "attention.h"

/* (x R)_b for bucket b < half, -(x R)_{b-half} for the others; size: the sum of absolute values. */
static long double project(int64_t d, int64_t half, const double *x, const double *rotation,
                           int64_t bucket, long double *size)
{
    long double sum = 0;
    *size = 0;
    for (int64_t c = 0; c < d; c++) {
        long double term = (long double)x[c] * rotation[c * half + bucket % half];
        sum += bucket < half ? term : -term;
        *size += fabsl(term);
    }
    return sum;
}

int64_t ref_lsh_bucket(int64_t d, int64_t half, const double *x, const double *rotation,
                       double *margin)
{
    int64_t best = 0;
    long double largest_size, size, narrowest = INFINITY;
    long double largest = project(d, half, x, rotation, 0, &largest_size);
    for (int64_t bucket = 1; bucket < 2 * half; bucket++) {
        long double value = project(d, half, x, rotation, bucket, &size);
        if (value > largest) {
            best = bucket;
            largest = value;
            largest_size = size;
        }
    }
    for (int64_t bucket = 0; bucket < 2 * half; bucket++) {
        long double gap = largest - project(d, half, x, rotation, bucket, &size);
        long double sizes = largest_size + size;
        if (bucket != best)
            narrowest = fminl(narrowest, sizes > 0 ? gap / sizes : 0);
    }
    if (margin)
        *margin = (double)narrowest;
    return best;
}

int64_t ref_lsh_buckets(const ref_attention_problem *problem, int64_t *buckets, double *margin)
{
    if (!problem || !problem->desc || !problem->q || !buckets)
        return ATN_ERR_NULL;
    const atn_attention_shape *s = &problem->shape;
    const atn_tensor *r = &problem->desc->lsh.rotations;
    if (!r->data)
        return ATN_ERR_NULL;
    if (r->rows != s->dim || r->cols < 1)
        return ATN_ERR_SHAPE;
    const unsigned char *mask = problem->query_mask ? problem->query_mask : problem->key_mask;
    int64_t count = s->batch * s->heads * r->heads * s->tokens;
    double narrowest = INFINITY, one;
    for (int64_t i = 0; i < count; i++) {
        int64_t token = i % s->tokens, round = i / s->tokens % r->heads;
        int64_t head = i / s->tokens / r->heads, batch = head / s->heads;
        buckets[i] = 0;
        if (mask && !mask[batch * s->tokens + token])
            continue;
        const double *x = problem->q + (head * s->tokens + token) * s->dim;
        const double *rotation = (const double *)r->data + round * r->rows * r->cols;
        buckets[i] = ref_lsh_bucket(s->dim, r->cols, x, rotation, &one);
        narrowest = fmin(narrowest, one);
    }
    if (margin)
        *margin = narrowest;
    return count;
}
