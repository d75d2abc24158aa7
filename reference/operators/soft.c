/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ (IJCV): Y = P^T X P V, P = K(L, Q), X in place of A+, A = K(L, L) (Eq. 9);
 * softpp: D^-1/2 X D^-1/2 in place of X, D = diag(A 1) (Eq. 17). */
#include "soft.h"

#include "dense.h"

void NUM(ref_kernel)(const ref_head *h, int64_t p, int64_t q, const num *x, const num *y, num *k)
{
    const atn_attention_desc *desc = h->desc;
    int64_t heads = desc->scale == ATN_SCALE_EMBED ? h->all->shape.heads : 1;
    long double s = desc->scale == ATN_SCALE_VALUE ? (long double)desc->scale_value
                                                   : 1 / (2 * sqrtl((long double)(heads * h->d)));
    for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j < q; j++) {
            num squared = 0;
            for (int64_t c = 0; c < h->d; c++) {
                num difference = x[i * h->d + c] - y[j * h->d + c];
                squared += difference * difference;
            }
            k[i * q + j] = num_exp(-s * squared);
        }
}

static void normalise(int64_t m, const num *a, num *root, num *x)
{
    for (int64_t i = 0; i < m; i++) {
        root[i] = 0;
        for (int64_t j = 0; j < m; j++)
            root[i] += a[i * m + j];
        root[i] = num_sqrt(root[i]);
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            x[i * m + j] /= root[i] * root[j];
}

/* out (n x dv) = P^T from (m x dv). */
static void spread(const ref_head *h, int64_t m, const num *p, const num *from, num *out)
{
    for (int64_t i = 0; i < h->n; i++)
        for (int64_t l = 0; l < m; l++)
            for (int64_t c = 0; c < h->dv; c++)
                out[i * h->dv + c] += p[l * h->n + i] * from[l * h->dv + c];
}

/* Everything but the residual. work holds m d + m + 2 m m + m n + 2 m dv. */
static atn_status attention(const ref_head *h, int64_t m, num *work, num *out)
{
    num *landmarks = work, *root = landmarks + m * h->d, *a = root + m, *x = a + m * m;
    num *p = x + m * m, *pv = p + m * h->n, *xpv = pv + m * h->dv;
    atn_status status = NUM(ref_landmarks)(h, landmarks);
    if (status < 0)
        return status;
    NUM(ref_kernel)(h, m, m, landmarks, landmarks, a);
    NUM(ref_kernel)(h, m, h->n, landmarks, h->q, p);
    status = NUM(ref_bottleneck_inverse)(h, m, a, x);
    if (status < 0)
        return status;
    if (h->desc->op == ATN_SOFTPP)
        normalise(m, a, root, x);
    NUM(ref_multiply)(m, h->n, h->dv, p, h->v, pv);
    NUM(ref_multiply)(m, m, h->dv, x, pv, xpv);
    spread(h, m, p, xpv, out);
    for (int64_t i = 0; status == ATN_SINGULAR && i < h->n * h->dv; i++)
        out[i] = num_with_slope(NAN, NAN);
    return status;
}

atn_status NUM(ref_soft)(const ref_head *h, num *out)
{
    const atn_attention_desc *desc = h->desc;
    const num *filter = NUM(ref_parameter)(h, ATN_PARAMETER_RESIDUAL);
    int64_t m = NUM(ref_landmark_count)(h), k = desc->residual.rows;
    int64_t height = desc->residual_height, width = desc->residual_width;
    /* SOFT has Q = K, and no published form has masks or causal attention */
    if (m < 1 || ref_has_keys(h) || h->key_mask || h->query_mask || desc->causal)
        return ATN_ERR_VALUE;
    if (filter && (k % 2 == 0 || desc->residual.cols != k || height * width != h->n))
        return ATN_ERR_VALUE;
    num *work = ref_zeros(m * (h->d + 1 + 2 * m + h->n + 2 * h->dv));
    atn_status status = work ? attention(h, m, work, out) : ATN_ERR_MEMORY;
    free(work);
    if (filter && status >= 0)
        NUM(ref_depthwise)(h, height, width, k, k, filter, out);
    return status;
}
