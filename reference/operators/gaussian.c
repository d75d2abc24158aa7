/* SPDX-License-Identifier: BSD-3-Clause */
/* Y_i = sum_j exp(-s |q_i - k_j|^2) v_j: SOFT (IJCV) Eq. 4, Appendix D. */
#include "problem.h"

atn_status NUM(ref_gaussian)(const ref_head *h, num *out)
{
    long double s = NUM(ref_kernel_scale)(h);
    for (int64_t i = 0; i < h->n; i++)
        for (int64_t j = 0; ref_query(h, i) && j < h->n_k; j++) {
            num squared = 0;
            for (int64_t c = 0; c < h->d; c++) {
                num difference = h->q[i * h->d + c] - h->k[j * h->d + c];
                squared += difference * difference;
            }
            num weight = num_exp(-s * squared);
            for (int64_t c = 0; ref_key(h, j) && c < h->dv; c++)
                out[i * h->dv + c] += weight * h->v[j * h->dv + c];
        }
    return ATN_OK;
}
