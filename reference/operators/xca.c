/* SPDX-License-Identifier: BSD-3-Clause */
/* Y_i = A v_i, A the d x d softmax of tau q^^T k^: XCiT (El-Nouby et al. 2021), Eq. 3. */
#include "problem.h"

/* Token i is one query, key and value: it counts unless one of the masks excludes it. */
static bool is_present(const ref_head *h, int64_t i)
{
    return ref_query(h, i) && ref_key(h, i);
}

/* x_:a.y_:b over the tokens. */
static num column_dot(const ref_head *h, const num *x, int64_t a, const num *y, int64_t b)
{
    num sum = 0;
    for (int64_t i = 0; i < h->n; i++)
        if (is_present(h, i))
            sum += x[i * h->d + a] * y[i * h->d + b];
    return sum;
}

static num column_norm(const ref_head *h, const num *x, int64_t a)
{
    return num_max(num_sqrt(column_dot(h, x, a, x, a)), h->desc->xca.epsilon);
}

atn_status NUM(ref_xca)(const ref_head *h, num *out)
{
    if (h->desc->causal)
        return ATN_ERR_VALUE; /* A is a sum over every token */
    if (h->n_k != h->n || h->dv != h->d)
        return ATN_ERR_SHAPE;
    const num *given = NUM(ref_parameter)(h, ATN_PARAMETER_TEMPERATURE);
    num tau = given ? given[0] : 1;
    num *row = ref_zeros(h->d);
    for (int64_t a = 0; row && a < h->d; a++) {
        for (int64_t b = 0; b < h->d; b++)
            row[b] = tau * column_dot(h, h->q, a, h->k, b) /
                     (column_norm(h, h->q, a) * column_norm(h, h->k, b));
        NUM(ref_soft_weights)(h->d, row);
        for (int64_t i = 0; i < h->n; i++)
            if (is_present(h, i))
                out[i * h->d + a] = NUM(ref_dot)(h->d, row, h->v + i * h->d);
    }
    free(row);
    return row ? ATN_OK : ATN_ERR_MEMORY;
}
