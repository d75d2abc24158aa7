/* SPDX-License-Identifier: BSD-3-Clause */
/* Nystromformer (Xiong et al. 2021): Y = F Z B V + residual, F = softmax(c Q K~^T),
 * A = softmax(c Q~ K~^T), B = softmax(c Q~ K^T), Z for A+. */
#include "dense.h"
#include "soft.h"

/* rows (p x q) of softmax(c X Y^T), over the y that are not masked (null: all). */
static void attend(const ref_head *h, int64_t p, int64_t q, const num *x, const num *y,
                   const unsigned char *mask, num *weights)
{
    long double c = NUM(ref_logit_scale)(h);
    for (int64_t i = 0; i < p; i++) {
        for (int64_t j = 0; j < q; j++) {
            num logit = c * NUM(ref_dot)(h->d, x + i * h->d, y + j * h->d);
            weights[i * q + j] = !mask || mask[j] ? logit : -INFINITY;
        }
        NUM(ref_softmax_row)(q, weights + i * q);
    }
}

/* Means of m segments of floor(n/m) tokens, the last n mod m one longer; padded tokens
 * count as zero vectors. */
static void segment_means(int64_t n, int64_t m, int64_t d, const num *x, const unsigned char *mask,
                          num *means)
{
    int64_t shorter = m - n % m, first = 0;
    for (int64_t l = 0; l < m; l++) {
        int64_t length = n / m + (l >= shorter);
        for (int64_t c = 0; c < d; c++) {
            means[l * d + c] = 0;
            for (int64_t i = first; i < first + length; i++)
                if (!mask || mask[i])
                    means[l * d + c] += x[i * d + c] / (long double)length;
        }
        first += length;
    }
}

/* A of one head; means holds 2 m d. */
static void landmark_attention(const ref_head *h, int64_t m, num *means, num *a)
{
    num *queries = means, *keys = means + m * h->d;
    segment_means(h->n, m, h->d, h->q, h->query_mask, queries);
    segment_means(h->n_k, m, h->d, h->k, h->key_mask, keys);
    attend(h, m, m, queries, keys, NULL, a);
}

/* The largest |A|_1 of the problem; work holds m m + 2 m d. */
static num batch_norm1(const problem *p, int64_t m, num *work)
{
    const atn_attention_shape *s = &p->shape;
    num largest = 0;
    for (int64_t i = 0; i < s->batch * s->heads; i++) {
        ref_head other = NUM(ref_head_of)(p, i / s->heads, i % s->heads);
        landmark_attention(&other, m, work + m * m, work);
        largest = num_max(largest, NUM(ref_norm1)(m, work));
    }
    return largest;
}

atn_status NUM(ref_nystrom_bottlenecks)(const problem *p, int64_t m, num *a)
{
    const atn_attention_shape *s = &p->shape;
    num *means = ref_zeros(2 * m * s->dim);
    for (int64_t i = 0; means && i < s->batch * s->heads; i++) {
        ref_head h = NUM(ref_head_of)(p, i / s->heads, i % s->heads);
        landmark_attention(&h, m, means, a + i * m * m);
    }
    free(means);
    return means ? ATN_OK : ATN_ERR_MEMORY;
}

/* to = factor I - a b */
static void subtract(int64_t m, int factor, const num *a, const num *b, num *to)
{
    NUM(ref_multiply)(m, m, m, a, b, to);
    for (int64_t i = 0; i < m * m; i++)
        to[i] = (i % (m + 1) == 0 ? factor : 0) - to[i];
}

/* Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4 from A^T / norm. work holds 3 m^2. */
static void iterate(int64_t m, int iterations, const num *a, num norm, num *work, num *z)
{
    num *az = work, *left = work + m * m, *right = work + 2 * m * m;
    for (int64_t i = 0; i < m * m; i++)
        z[i] = a[i % m * m + i / m] / norm;
    for (int k = 0; k < iterations; k++) {
        NUM(ref_multiply)(m, m, m, a, z, az);
        for (int64_t i = 0; i < m * m; i++)
            right[i] = (i % (m + 1) == 0 ? 7 : 0) - az[i];
        subtract(m, 15, az, right, left);
        subtract(m, 13, az, left, right);
        NUM(ref_multiply)(m, m, m, z, right, left);
        for (int64_t i = 0; i < m * m; i++)
            z[i] = left[i] / 4;
    }
}

/* Z; work holds 4 m^2 + 2 m d. */
static atn_status invert(const ref_head *h, int64_t m, const num *a, num *work, num *z)
{
    const atn_nystromformer_options *o = &h->desc->nystromformer;
    int64_t rank;
    if (o->inverse == ATN_NYSTROM_PINV)
        return NUM(ref_pseudo_inverse)(m, a, o->rcond, z, &rank);
    if (o->inverse != ATN_NYSTROM_ORIGINAL && o->inverse != ATN_NYSTROM_EXACT)
        return ATN_ERR_VALUE;
    num norm =
        o->inverse == ATN_NYSTROM_EXACT ? NUM(ref_norm1)(m, a) : batch_norm1(h->all, m, work);
    iterate(m, o->iterations, a, norm, work, z);
    return ATN_OK;
}

/* weights (n x n_k) = F Z B. work holds n m + m n_k + n m + 6 m^2 + 2 m d. */
static atn_status approximate(const ref_head *h, int64_t m, num *work, num *weights)
{
    num *f = work, *b = f + h->n * m, *fz = b + m * h->n_k, *a = fz + h->n * m, *z = a + m * m;
    num *means = z + m * m, *rest = means + 2 * m * h->d;
    landmark_attention(h, m, means, a);
    attend(h, h->n, m, h->q, means + m * h->d, NULL, f);
    attend(h, m, h->n_k, means, h->k, h->key_mask, b);
    atn_status status = invert(h, m, a, rest, z);
    NUM(ref_multiply)(h->n, m, m, f, z, fz);
    NUM(ref_multiply)(h->n, m, h->n_k, fz, b, weights);
    return status;
}

atn_status NUM(ref_nystromformer)(const ref_head *h, num *out)
{
    int64_t m = h->desc->nystromformer.landmarks, k = h->desc->residual.rows;
    const num *filter = NUM(ref_parameter)(h, ATN_PARAMETER_RESIDUAL);
    if (m < 1 || m > h->n || m > h->n_k || h->desc->causal)
        return ATN_ERR_VALUE;
    if (filter && (k % 2 == 0 || h->desc->residual.cols != 1 || h->n != h->n_k))
        return ATN_ERR_VALUE;
    num *weights = ref_zeros(h->n * h->n_k);
    num *work = ref_zeros(m * (2 * h->n + h->n_k + 6 * m + 4 * h->d));
    atn_status status = weights && work ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK && m == h->n && m == h->n_k)
        attend(h, h->n, h->n_k, h->q, h->k, h->key_mask, weights);
    else if (status == ATN_OK)
        status = approximate(h, m, work, weights);
    for (int64_t i = 0; status >= 0 && i < h->n; i++)
        if (ref_query(h, i))
            NUM(ref_weigh)(h, weights + i * h->n_k, out + i * h->dv);
    if (filter && status >= 0)
        NUM(ref_depthwise)(h, h->n, 1, k, 1, filter, out);
    free(weights), free(work);
    return status;
}
