/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact Gaussian kernel attention, SOFT (IJCV) Appendix D: Y = K(Q,K) V, in blocks of queries and
 * keys. */
#include <string.h>

#include "cpu/heads.h"
#include "cpu/simd.h"

/* Keys of a group of head_share_pairs. */
enum { KEY_GROUP = 8 * HEAD_BLOCK };

/* work: what head_share_pairs needs; a block's prepared keys, the kernel block, the block of dY V^T
 * (backward). */
typedef struct {
    landmark_set set;
    real *kernel, *slopes;
    double s;
} pieces;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    (void)desc;
    int64_t block = HEAD_BLOCK * R(landmark_padded)(HEAD_BLOCK);
    *thread_reals = R(pair_reals)(shape->tokens, KEY_GROUP, shape->dim) + HEAD_BLOCK * shape->dim +
                    R(landmark_elements)(HEAD_BLOCK, shape->dim) + 2 * block;
    *head_reals = 0;
}

static pieces split(const head *h)
{
    int64_t padded = R(landmark_padded)(HEAD_BLOCK);
    pieces p = {.set = {.d = h->d, .rows = h->work + R(pair_reals)(h->length, KEY_GROUP, h->d)}};
    p.set.transposed = p.set.rows + HEAD_BLOCK * h->d;
    p.kernel = p.set.transposed + R(landmark_elements)(HEAD_BLOCK, h->d);
    p.slopes = p.kernel + HEAD_BLOCK * padded;
    p.s = atn_kernel_scale(h->desc->scale, h->desc->scale_value, h->heads, h->d);
    return p;
}

/* Prepares keys first .. first + count - 1. */
static void load_keys(const head *h, pieces *p, int64_t first, int64_t count)
{
    p->set.count = count;
    p->set.padded = R(landmark_padded)(count);
    p->set.norms = p->set.transposed + h->d * p->set.padded;
    for (int64_t j = 0; j < count; j++)
        memcpy(p->set.rows + j * h->d, h->k + (first + j) * h->k_stride,
               (size_t)h->d * sizeof(real));
    R(landmark_prepare)(&p->set);
}

/* Rows i .. i + rows - 1 of the kernel, in the columns of the prepared keys. */
static void kernel_block(const head *h, const pieces *p, int64_t i, int64_t rows)
{
    R(gaussian_block)
    (h->desc->distance, p->s, rows, h->q + i * h->q_stride, h->q_stride, &p->set, p->kernel,
     p->set.padded, NULL);
    R(store)(h->desc->storage, rows, p->set.count, p->kernel, p->set.padded);
}

static void forward_part(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    real *out = h->out + first * h->out_stride;
    (void)own;
    for (int64_t i = 0; i < count; i++)
        memset(out + i * h->out_stride, 0, (size_t)h->dv * sizeof(real));
    for (int64_t j = 0; j < h->n_k; j += HEAD_BLOCK) {
        int64_t keys = head_smaller(HEAD_BLOCK, h->n_k - j);
        load_keys(h, &p, j, keys);
        for (int64_t i = 0; i < count; i += HEAD_BLOCK) {
            int64_t rows = head_smaller(HEAD_BLOCK, count - i);
            kernel_block(h, &p, first + i, rows);
            real_gemm(CblasNoTrans, CblasNoTrans, rows, h->dv, keys, p.kernel, p.set.padded,
                      h->v + j * h->v_stride, h->v_stride, 1, out + i * h->out_stride,
                      h->out_stride);
        }
    }
    head_finish_rows(h, first, count);
}

static void forward(const head *h)
{
    R(head_share_tokens)(h, h->n, NULL, forward_part);
}

/* With W_ij = 2 s K_ij dY_i.v_j, in place of the slopes:
 *   dq_i += sum_j W_ij (k_j - q_i),   dk_j += sum_i W_ij (q_i - k_j) */
static void distance_gradients(const head *h, const pieces *p, int64_t i0, int64_t rows, int64_t j0)
{
    real two_s = (real)(2 * p->s);
    const real *q = h->q + i0 * h->q_stride;
    int64_t count = p->set.count, padded = p->set.padded;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t at = i * padded; at < i * padded + count; at++)
            p->slopes[at] *= two_s * p->kernel[at];
    R(simd).add_differences(&(weighted_pairs){.p = rows,
                                              .count = count,
                                              .d = h->d,
                                              .weights = p->slopes,
                                              .weight_row = padded,
                                              .x = q,
                                              .x_row = h->q_stride,
                                              .y = p->set.rows,
                                              .y_row = h->d,
                                              .grad_x = h->grad_q + i0 * h->grad_q_stride,
                                              .grad_x_row = h->grad_q_stride,
                                              .grad_y = h->grad_k + j0 * h->grad_k_stride,
                                              .grad_y_row = h->grad_k_stride});
}

static void backward_pairs(const head *h)
{
    pieces p = split(h);
    for (int64_t j = 0; j < h->n_k; j += HEAD_BLOCK) {
        int64_t keys = head_smaller(HEAD_BLOCK, h->n_k - j);
        load_keys(h, &p, j, keys);
        for (int64_t i = 0; i < h->n; i += HEAD_BLOCK) {
            int64_t rows = head_smaller(HEAD_BLOCK, h->n - i);
            const real *dy = h->grad_out + i * h->grad_out_stride;
            kernel_block(h, &p, i, rows);
            real_gemm(CblasTrans, CblasNoTrans, keys, h->dv, rows, p.kernel, p.set.padded, dy,
                      h->grad_out_stride, 1, h->grad_v + j * h->grad_v_stride, h->grad_v_stride);
            real_gemm(CblasNoTrans, CblasTrans, rows, keys, h->dv, dy, h->grad_out_stride,
                      h->v + j * h->v_stride, h->v_stride, 0, p.slopes, p.set.padded);
            distance_gradients(h, &p, i, rows, j);
        }
    }
}

static void backward(const head *h)
{
    R(head_share_pairs)(h, KEY_GROUP, backward_pairs);
}

const head_operator R(cpu_operator_gaussian) = {
    .sizes = sizes,
    .forward = forward,
    .backward = backward,
    .shares = HEAD_SHARED,
};
