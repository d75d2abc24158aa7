/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ backward. With X' = R X R, R = D^-1/2 (SOFT++, Eq. 17) or I, and
 *
 *   U = P V, T = P dY (m x d_v),   B1 = X' U, B2 = X' T,
 *
 * Y = P^T X' P V gives dV = P^T B2, dP_i = B1 dY_i + B2 V_i for token i, and dX' = T U^T, from
 * which come dA and dD. The tokens are streamed twice: once for U and T, once for dV and dP, of
 * which only a block is in memory at a time. In factor form X' = L^-T L^-1 on the pivots is applied
 * and never formed. */
#include <string.h>

#include "operators/soft/cpu.h"

typedef struct {
    cpu_soft *soft;
    const atn_tensor *q, *v, *dout;
    atn_gradients *gradients;
} call;

/* The arrays of a head's gradients: T, B2 and the landmarks' gradient. B1 is in `weights`. */
typedef struct {
    soft_head h;
    real *t, *b2, *landmark_partials, *landmarks;
} grad_head;

static grad_head grad_head_of(const cpu_soft *soft, int64_t head)
{
    int64_t m = soft->m, d = soft->shape.dim, dv = soft->shape.value_dim;
    return (grad_head){
        .h = R(soft_head_of)(soft, head),
        .t = (real *)soft->grad_sums + head * soft->chunks * m * dv,
        .b2 = (real *)soft->grad_weights + head * m * dv,
        .landmark_partials = (real *)soft->landmark_partials + head * soft->chunks * m * d,
        .landmarks = (real *)soft->grad_landmarks + head * m * d,
    };
}

int64_t R(soft_backward_work)(const cpu_soft *soft)
{
    int64_t m = soft->m, d = soft->shape.dim, dv = soft->shape.value_dim;
    bool closed = soft->desc.gradient == ATN_GRADIENT_CLOSED;
    int64_t inverse =
        closed ? 0 : R(inverse_backward_work)(&soft->desc.inverse, soft->desc.gradient, m);
    return soft_larger(2 * m * m + soft_larger(inverse, m * dv),
                       soft_larger(m * d, R(sample_backward_work)(&soft->desc.sampling, m, d)));
}

/* ---- First pass: U and T over one chunk of tokens ---- */

/* After forward the status of a head says what is not finite in q and v. */
static bool finite_block(const call *c, int64_t head, int64_t t, int64_t p)
{
    const atn_tensor *const inputs[] = {c->dout, c->q, c->v};
    for (int i = 0; i < (c->gradients->after_forward ? 1 : 3); i++)
        if (!R(all_finite)(p, inputs[i]->cols, soft_rows(inputs[i], head, t),
                           inputs[i]->row_stride))
            return false;
    return true;
}

static void add_product(const soft_head *h, int64_t p, const real *features,
                        const atn_tensor *values, int64_t head, int64_t t, real *sum)
{
    real_gemm(CblasTrans, CblasNoTrans, h->set.count, values->cols, p, features, h->set.padded,
              soft_rows(values, head, t), values->row_stride, 1, sum, values->cols);
}

/* P L^-T in `to`. */
static real *solved_copy(const soft_head *h, int64_t p, const real *block, real *to)
{
    memcpy(to, block, (size_t)(p * h->set.padded) * sizeof *to);
    R(soft_solve)(h, p, to);
    return to;
}

/* After forward, `sums` holds its U. */
static void sum_tokens(const call *c, int64_t piece, bool by_heads)
{
    cpu_soft *soft = c->soft;
    bool after_forward = c->gradients->after_forward;
    int64_t head = piece / soft->chunks, chunk = piece % soft->chunks;
    grad_head g = grad_head_of(soft, head);
    int64_t size = soft->m * soft->shape.value_dim, end = soft_chunk_end(soft, chunk);
    real *u = g.h.sums + chunk * size, *t = g.t + chunk * size;
    soft->nonfinite[piece] = soft->inverse.infos[head].status == ATN_NONFINITE;
    if (!after_forward)
        memset(u, 0, (size_t)size * sizeof *u);
    memset(t, 0, (size_t)size * sizeof *t);
    for (int64_t i = chunk * soft->chunk; i < end; i += soft->block) {
        int64_t p = soft_smaller(soft->block, end - i);
        if (!finite_block(c, head, i, p))
            soft->nonfinite[piece] = 1;
        real *features = soft_place(soft, by_heads, i);
        const real *ahead[] = {soft_ahead(after_forward ? c->q : c->v, head, i + p),
                               soft_ahead(c->dout, head, i + p)};
        R(soft_kernel)(&g.h, p, soft_rows(c->q, head, i), c->q->row_stride, features, ahead);
        if (g.h.factor) /* P itself is kept */
            features =
                solved_copy(&g.h, p, features, soft_thread(soft->slopes, soft->kernel_reals));
        if (!after_forward)
            add_product(&g.h, p, features, c->v, head, i, u);
        add_product(&g.h, p, features, c->dout, head, i, t);
    }
}

static bool is_bad(const cpu_soft *soft, int64_t head)
{
    bool bad = false;
    for (int64_t chunk = 0; chunk < soft->chunks; chunk++)
        bad |= soft->nonfinite[head * soft->chunks + chunk];
    return bad;
}

/* ---- Between the passes: A ---- */

/* The landmark at place i of the set. */
static int64_t landmark_at(const soft_head *h, int64_t i)
{
    return h->factor ? h->factor->pivots[i] : i;
}

/* D^1/2 of the landmark at place i, or 1. */
static real root_at(const soft_head *h, int64_t i)
{
    return h->soft->normalise ? h->roots[landmark_at(h, i)] : 1;
}

/* B = X' S for S = U or T; in factor form S holds L^-1 times that. */
static void apply_inverse(const soft_head *h, const real *s, real *b)
{
    int64_t m = h->soft->m, dv = h->soft->shape.value_dim, width = whole_vectors(dv);
    int64_t count = h->set.count;
    if (!h->factor) {
        real_gemm(CblasNoTrans, CblasNoTrans, m, dv, m, h->x, m, s, dv, 0, b, dv);
        return;
    }
    real *transposed = soft_thread(h->soft->block_work, h->soft->block_reals);
    for (int64_t i = 0; i < count; i++) {
        memcpy(transposed + i * width, s + i * dv, (size_t)dv * sizeof *s);
        memset(transposed + i * width + dv, 0, (size_t)(width - dv) * sizeof *transposed);
    }
    real_solve(CblasTrans, count, h->x, m, width, transposed, width);
    for (int64_t i = 0; i < count; i++)
        memcpy(b + i * dv, transposed + i * width, (size_t)dv * sizeof *b);
}

/* From L^-1 S back to S, in factor form. */
static void restore_sums(const soft_head *h, real *s)
{
    if (h->factor && h->set.count > 0)
        cblas_trmm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit,
                   (int)h->set.count, (int)h->soft->shape.value_dim, 1, h->x, (int)h->soft->m, s,
                   (int)h->soft->shape.value_dim);
}

/* Eq. 12, dA = -X dX X with dX = R T U^T R:  -(D^1/2 B2) (D^1/2 B1)^T. */
static void closed_gradient(const grad_head *g, real *product, real *grad_a)
{
    const soft_head *h = &g->h;
    int64_t m = h->soft->m, dv = h->soft->shape.value_dim, count = h->set.count;
    memset(grad_a, 0, (size_t)(m * m) * sizeof *grad_a);
    real_gemm(CblasNoTrans, CblasTrans, count, count, dv, g->b2, dv, h->weights, dv, 0, product, m);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < count; j++)
            grad_a[landmark_at(h, i) * m + landmark_at(h, j)] =
                -product[i * m + j] * root_at(h, i) * root_at(h, j);
}

/* The other gradients need dX itself, and X, which SOFT++ has replaced by X'. */
static void adjoint_gradient(const grad_head *g, int64_t head, real *grad_x, real *grad_a,
                             real *work)
{
    const soft_head *h = &g->h;
    const cpu_soft *soft = h->soft;
    int64_t m = soft->m, dv = soft->shape.value_dim;
    real_gemm(CblasNoTrans, CblasTrans, m, m, dv, g->t, dv, h->sums, dv, 0, grad_x, m);
    for (int64_t i = 0; i < m && soft->normalise; i++)
        for (int64_t j = 0; j < m; j++) {
            grad_x[i * m + j] /= h->roots[i] * h->roots[j];
            h->x[i * m + j] *= h->roots[i] * h->roots[j];
        }
    inverse_adjoint a = {
        &soft->desc.inverse,      m, h->a, h->x, grad_x, grad_a, work, &soft->inverse.infos[head],
        &soft->alpha_slopes[head]};
    R(inverse_backward)(soft->desc.gradient, &a);
}

/* SOFT++: X' = R X R has D_j in row and column j, to the power -1/2, so that
 * dD_j = -(T_j.B1_j + U_j.B2_j) / (2 D_j); every entry of row j of A receives it. */
static void row_sum_gradient(const grad_head *g, real *t, real *grad_a)
{
    const soft_head *h = &g->h;
    int64_t m = h->soft->m, dv = h->soft->shape.value_dim;
    memcpy(t, g->t, (size_t)(m * dv) * sizeof *t);
    restore_sums(h, t);
    restore_sums(h, h->sums);
    for (int64_t i = 0; i < h->set.count; i++) {
        double sum = 0, root = (double)root_at(h, i);
        for (int64_t c = i * dv; c < (i + 1) * dv; c++)
            sum += (double)t[c] * (double)h->weights[c] + (double)h->sums[c] * (double)g->b2[c];
        real slope = (real)(-sum / (2 * root * root));
        for (int64_t j = 0; j < m; j++)
            grad_a[landmark_at(h, i) * m + j] += slope;
    }
}

/* With weight w = dK K:  d x -= 2 s w (x - y), d y the opposite. */
static inline void distance_backward(real two_s_w, int64_t d, const real *x, const real *y,
                                     real *grad_x, real *grad_y)
{
    for (int64_t c = 0; c < d; c++) {
        real change = two_s_w * (x[c] - y[c]);
        grad_x[c] -= change;
        grad_y[c] += change;
    }
}

/* The gradient by L through both arguments of A = K(L, L). */
static void self_kernel_backward(const grad_head *g, const real *grad_a)
{
    int64_t m = g->h.soft->m, d = g->h.soft->shape.dim;
    real two_s = (real)(2 * g->h.soft->s);
    const real *l = g->h.landmarks;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < i; j++)
            distance_backward(two_s * (grad_a[i * m + j] + grad_a[j * m + i]) * g->h.a[i * m + j],
                              d, l + i * d, l + j * d, g->landmarks + i * d, g->landmarks + j * d);
}

static void differentiate_inverse(const call *c, int64_t head)
{
    cpu_soft *soft = c->soft;
    grad_head g = grad_head_of(soft, head);
    int64_t m = soft->m, d = soft->shape.dim, size = m * soft->shape.value_dim;
    real *grad_x = soft_thread(soft->grad_work, soft->grad_reals), *grad_a = grad_x + m * m;
    real *rest = grad_a + m * m;
    if (!c->gradients->after_forward)
        R(soft_add_chunks)(soft, size, g.h.sums);
    R(soft_add_chunks)(soft, size, g.t);
    apply_inverse(&g.h, g.h.sums, g.h.weights);
    apply_inverse(&g.h, g.t, g.b2);
    soft->alpha_slopes[head] = 0;
    if (soft->desc.gradient == ATN_GRADIENT_CLOSED)
        closed_gradient(&g, grad_x, grad_a);
    else
        adjoint_gradient(&g, head, grad_x, grad_a, rest);
    if (soft->normalise)
        row_sum_gradient(&g, rest, grad_a);
    memset(g.landmarks, 0, (size_t)(m * d) * sizeof(real));
    self_kernel_backward(&g, grad_a);
    if (is_bad(soft, head))
        soft->alpha_slopes[head] = 0; /* so that its NaN does not reach the other heads */
}

/* ---- Second pass: the tokens' gradients over one chunk ---- */

/* dV = P^T B2 = (L^-1 P)^T (L^-1 T): in factor form the second expression is the accurate one.
 * block holds P, scratch is of the same size. */
static void value_gradient(const grad_head *g, int64_t p, const real *block, real *scratch,
                           real *grad_v, int64_t stride)
{
    const soft_head *h = &g->h;
    int64_t dv = h->soft->shape.value_dim;
    if (h->factor)
        block = solved_copy(h, p, block, scratch);
    real_gemm(CblasNoTrans, CblasNoTrans, p, dv, h->set.count, block, h->set.padded,
              h->factor ? g->t : g->b2, dv, 0, grad_v, stride);
}

/* With weights w = dK K: d x_i += 2 s w_ij (l_j - x_i), d l_j the opposite. slopes holds dK, then
 * the weights. The landmarks' gradients are summed first in block_partials, then in
 * landmark_partials, so that f32 sums stay short. */
static void finish_tokens(const grad_head *g, int64_t p, const real *tokens, int64_t stride,
                          const real *block, real *slopes, real *grad_q, int64_t grad_stride,
                          real *block_partials, real *landmark_partials)
{
    const soft_head *h = &g->h;
    int64_t d = h->set.d, count = h->set.count;
    int64_t padded = h->set.padded;
    real two_s = (real)(2 * h->soft->s);
    for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j < count; j++)
            slopes[i * padded + j] *= two_s * block[i * padded + j];
    for (int64_t i = 0; i < p; i++)
        memset(grad_q + i * grad_stride, 0, (size_t)d * sizeof *grad_q);
    memset(block_partials, 0, (size_t)(count * d) * sizeof(real));
    R(simd).add_differences(&(weighted_pairs){.p = p,
                                              .count = count,
                                              .d = d,
                                              .weights = slopes,
                                              .weight_row = padded,
                                              .x = tokens,
                                              .x_row = stride,
                                              .y = h->set.rows,
                                              .y_row = d,
                                              .grad_x = grad_q,
                                              .grad_x_row = grad_stride,
                                              .grad_y = block_partials,
                                              .grad_y_row = d});
    for (int64_t i = 0; i < count * d; i++)
        landmark_partials[i] += block_partials[i];
}

/* dK = dY B1^T + V B2^T for p tokens from `first` on. A few last landmarks are sums over channels,
 * as the last distances are (simd.h): a tile would compute a whole vector of them. */
static void kernel_gradient(const call *c, const grad_head *g, int64_t head, int64_t first,
                            int64_t p, real *slopes)
{
    enum { TOKENS = 64 };
    const atn_tensor *tokens[] = {c->dout, c->v};
    const real *b[] = {g->h.weights, g->b2};
    const real *ahead[2][2] = {
        {soft_ahead(c->dout, head, first + p), soft_ahead(c->v, head, first + p)},
        {soft_ahead(c->gradients->q, head, first + p),
         soft_ahead(c->gradients->v, head, first + p)}};
    int64_t count = g->h.set.count, padded = g->h.set.padded, dv = c->v->cols;
    int64_t left = count % SIMD_COLUMNS;
    int64_t whole = count > SIMD_COLUMNS && left <= SIMD_FEW_COLUMNS ? count - left : count;
    for (int k = 0; k < 2; k++) {
        const real *x = soft_rows(tokens[k], head, first);
        int64_t stride = tokens[k]->row_stride;
        real_gemm_ahead(real_terms(CblasNoTrans, CblasTrans, p, whole, dv, x, stride, b[k], dv,
                                   k > 0, slopes, padded),
                        ahead[k][0], ahead[k][1]);
        for (int64_t j = whole; j < count; j++)
            for (int64_t i = 0; i < p; i += TOKENS) {
                real column[TOKENS];
                int64_t rows = soft_smaller(TOKENS, p - i);
                R(multiply_vector)(rows, dv, x + i * stride, stride, b[k] + j * dv, column);
                for (int64_t t = 0; t < rows; t++) {
                    real *slope = slopes + (i + t) * padded + j;
                    *slope = k > 0 ? *slope + column[t] : column[t];
                }
            }
    }
}

static void differentiate_tokens(const call *c, int64_t piece, bool by_heads)
{
    cpu_soft *soft = c->soft;
    int64_t head = piece / soft->chunks, chunk = piece % soft->chunks;
    grad_head g = grad_head_of(soft, head);
    const soft_head *h = &g.h;
    int64_t dv = soft->shape.value_dim, size = soft->m * soft->shape.dim;
    int64_t end = soft_chunk_end(soft, chunk);
    const atn_tensor *grad_q = c->gradients->q, *grad_v = c->gradients->v;
    real *slopes = soft_thread(soft->slopes, soft->kernel_reals);
    real *work = soft_thread(soft->grad_work, soft->grad_reals);
    real *landmark_partials = g.landmark_partials + chunk * size;
    memset(landmark_partials, 0, (size_t)size * sizeof *landmark_partials);
    for (int64_t i = chunk * soft->chunk; i < end; i += soft->block) {
        int64_t p = soft_smaller(soft->block, end - i);
        const real *tokens = soft_rows(c->q, head, i);
        real *block = soft_place(soft, by_heads, i);
        if (!soft_is_kept(soft, by_heads, i))
            R(soft_kernel)(h, p, tokens, c->q->row_stride, block, NULL);
        value_gradient(&g, p, block, slopes, soft_rows(grad_v, head, i), grad_v->row_stride);
        if (!R(all_finite)(p, dv, soft_rows(grad_v, head, i), grad_v->row_stride))
            soft->nonfinite[piece] = 1;
        kernel_gradient(c, &g, head, i, p, slopes);
        finish_tokens(&g, p, tokens, c->q->row_stride, block, slopes, soft_rows(grad_q, head, i),
                      grad_q->row_stride, work, landmark_partials);
    }
}

/* ---- After the passes: backward from landmarks to the tokens they are sampled from ---- */

/* The derivative through |A|_1, on which alpha depends: it goes to the row that attains the norm. A
 * > 0. */
static void finish_norm_row(const grad_head *g, double slope)
{
    int64_t m = g->h.soft->m, d = g->h.soft->shape.dim, row = R(norm1_row)(m, g->h.a);
    real two_s_slope = (real)(2 * g->h.soft->s * slope);
    const real *l = g->h.landmarks;
    for (int64_t j = 0; j < m; j++)
        if (j != row)
            distance_backward(two_s_slope * g->h.a[row * m + j], d, l + row * d, l + j * d,
                              g->landmarks + row * d, g->landmarks + j * d);
}

static void differentiate_landmarks(const call *c, int64_t head)
{
    const cpu_soft *soft = c->soft;
    grad_head g = grad_head_of(soft, head);
    int64_t m = soft->m, d = soft->shape.dim;
    const atn_tensor *grad_q = c->gradients->q;
    double *norm_sums = soft->norm_sums + head * 2 * d;
    R(soft_add_chunks)(soft, m * d, g.landmark_partials);
    for (int64_t i = 0; i < g.h.set.count * d; i++)
        g.landmarks[landmark_at(&g.h, i / d) * d + i % d] += g.landmark_partials[i];
    if (soft->alpha_slopes[head] != 0)
        finish_norm_row(&g, soft->alpha_slopes[head]);
    memset(norm_sums, 0, (size_t)(2 * d) * sizeof *norm_sums);
    R(sample_backward)
    (&soft->desc.sampling, soft->shape.tokens, d, soft_rows(c->q, head, 0), c->q->row_stride, m,
     soft->choices + head * soft->choice_count, g.landmarks, soft_rows(grad_q, head, 0),
     grad_q->row_stride, norm_sums, soft_thread(soft->grad_work, soft->grad_reals));
}

static void differentiate_residual(const call *c, int64_t piece)
{
    const cpu_soft *soft = c->soft;
    const atn_tensor *filter = &soft->desc.residual, *grad_v = c->gradients->v;
    int64_t head = piece / soft->chunks, chunk = piece % soft->chunks;
    int64_t width = soft->desc.residual_width, height = soft->desc.residual_height;
    int64_t y0 = chunk * height / soft->chunks, y1 = (chunk + 1) * height / soft->chunks;
    R(depthwise_back_rows)
    (height, width, c->v->cols, filter->rows, filter->cols,
     soft_rows(filter, head % filter->heads, 0), soft_rows(c->dout, head, 0), c->dout->row_stride,
     y0, y1, soft_rows(grad_v, head, 0), grad_v->row_stride);
}

/* ---- NaN and infinity ---- */

/* dQ and, if the residual was added to it after it was checked, dV. */
static void check_gradients(const call *c, int64_t piece)
{
    cpu_soft *soft = c->soft;
    int64_t head = piece / soft->chunks, chunk = piece % soft->chunks;
    int64_t first = chunk * soft->chunk, rows = soft_chunk_end(soft, chunk) - first;
    const atn_tensor *q = c->gradients->q, *v = c->gradients->v;
    if (!R(all_finite)(rows, q->cols, soft_rows(q, head, first), q->row_stride) ||
        (soft->desc.residual.data &&
         !R(all_finite)(rows, v->cols, soft_rows(v, head, first), v->row_stride)))
        soft->nonfinite[piece] = 1;
}

static void fill_nan(const atn_tensor *t, int64_t head)
{
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->cols; j++)
            soft_rows(t, head, i)[j] = (real)NAN;
}

static void set_gradients_nan(const call *c, int64_t head)
{
    if (!is_bad(c->soft, head))
        return;
    c->soft->inverse.infos[head].status = ATN_NONFINITE;
    fill_nan(c->gradients->q, head);
    fill_nan(c->gradients->v, head);
}

/* What follows differentiate_tokens for a whole head. */
static void finish_head(const call *c, int64_t head)
{
    int64_t first = head * c->soft->chunks, end = first + c->soft->chunks;
    for (int64_t piece = first; piece < end && c->soft->desc.residual.data; piece++)
        differentiate_residual(c, piece);
    differentiate_landmarks(c, head);
    for (int64_t piece = first; piece < end; piece++)
        check_gradients(c, piece);
}

/* ---- Parameters: every entry is one sum over batch and heads, in order, by one thread ---- */

static bool any_bad(const cpu_soft *soft, int64_t first, int64_t step)
{
    bool bad = false;
    for (int64_t i = first; i < soft->shape.batch * soft->shape.heads; i += step)
        bad |= soft->inverse.infos[i].status == ATN_NONFINITE;
    return bad;
}

static void conv_channel(const call *c, int64_t channel)
{
    const cpu_soft *soft = c->soft;
    const atn_tensor *gradient = c->gradients->parameters[ATN_PARAMETER_CONV];
    for (int64_t head = 0; head < soft->shape.batch * soft->shape.heads; head++) {
        R(conv_weights_backward)
        (&soft->desc.sampling, soft->shape.dim, soft_rows(c->q, head, 0), c->q->row_stride, soft->m,
         grad_head_of(soft, head).landmarks, channel, gradient->data,
         soft_thread(soft->grad_work, soft->grad_reals));
    }
}

/* A head's part of an entry of a parameter's gradient; flags the head if it overflows. */
static double part_of(const call *c, int64_t head, double part)
{
    unsigned char *nonfinite = &c->soft->nonfinite[head * c->soft->chunks];
    if (!isfinite((real)part)) {
#pragma omp atomic write
        *nonfinite = 1;
    }
    return part;
}

/* One entry of the norm's weight and of its bias. */
static void norm_entry(const call *c, int64_t entry)
{
    const cpu_soft *soft = c->soft;
    int64_t d = soft->shape.dim;
    for (int part = 0; part < 2; part++) {
        const atn_tensor *gradient = c->gradients->parameters[ATN_PARAMETER_NORM_WEIGHT + part];
        double sum = 0;
        for (int64_t i = 0; gradient && i < soft->shape.batch * soft->shape.heads; i++)
            sum += part_of(c, i, soft->norm_sums[i * 2 * d + part * d + entry]);
        if (gradient)
            ((real *)gradient->data)[entry] = (real)sum;
    }
}

/* One entry of one head's filter. */
static void filter_entry(const call *c, int64_t index)
{
    const cpu_soft *soft = c->soft;
    const atn_tensor *gradient = c->gradients->parameters[ATN_PARAMETER_RESIDUAL];
    int64_t window = gradient->rows, size = window * window, entry = index % size;
    double sum = 0;
    for (int64_t b = 0; b < soft->shape.batch; b++) {
        int64_t head = b * soft->shape.heads + index / size;
        double part = R(depthwise_entry_sum)(
            soft->desc.residual_height, soft->desc.residual_width, c->v->cols,
            entry / window - window / 2, entry % window - window / 2, soft_rows(c->v, head, 0),
            c->v->row_stride, soft_rows(c->dout, head, 0), c->dout->row_stride);
        sum += part_of(c, head, part);
    }
    soft_rows(gradient, index / size, 0)[entry] = (real)sum;
}

static void sum_piece(const call *c, int64_t piece)
{
    sum_tokens(c, piece, false);
}

static void differentiate_piece(const call *c, int64_t piece)
{
    differentiate_tokens(c, piece, false);
}

/* Both passes and what is between them, by one thread. */
static void differentiate_head(const call *c, int64_t head)
{
    int64_t first = head * c->soft->chunks, end = first + c->soft->chunks;
    for (int64_t piece = first; piece < end; piece++)
        sum_tokens(c, piece, true);
    differentiate_inverse(c, head);
    for (int64_t piece = first; piece < end; piece++)
        differentiate_tokens(c, piece, true);
}

/* A head from its first token to its last gradient, while they are in a cache. */
static void whole_head(const call *c, int64_t head)
{
    differentiate_head(c, head);
    finish_head(c, head);
}

/* Runs a pass over `count` independent pieces. */
static void over(const call *c, int64_t count, void (*pass)(const call *, int64_t))
{
    int threads = c->soft->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < count; i++)
        pass(c, i);
}

/* Flags heads that contribute to a parameter's gradient which is not finite. */
static void reject_heads(const call *c, int64_t first, int64_t step)
{
    cpu_soft *soft = c->soft;
    for (int64_t head = first; head < soft->shape.batch * soft->shape.heads; head += step) {
        soft->nonfinite[head * soft->chunks] = 1;
        set_gradients_nan(c, head);
    }
}

/* Flags heads if a parameter's gradient is not finite although their own parts are. */
static void check_parameters(const call *c)
{
    const cpu_soft *soft = c->soft;
    atn_tensor *const *gradients = c->gradients->parameters;
    int64_t heads = soft->shape.heads;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        for (int64_t i = 0; gradients[p] && i < gradients[p]->heads; i++) {
            int64_t first = p == ATN_PARAMETER_RESIDUAL ? i : 0;
            int64_t step = p == ATN_PARAMETER_RESIDUAL ? heads : 1;
            if (!R(all_finite)(gradients[p]->rows, gradients[p]->cols,
                               soft_rows(gradients[p], i, 0), gradients[p]->cols) &&
                !any_bad(soft, first, step))
                reject_heads(c, first, step);
        }
}

/* Sets gradients of parameters to NaN that flagged heads contribute to. */
static void set_parameters_nan(const call *c)
{
    const cpu_soft *soft = c->soft;
    atn_tensor *const *gradients = c->gradients->parameters;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        for (int64_t i = 0; gradients[p] && i < gradients[p]->heads; i++)
            if (p == ATN_PARAMETER_RESIDUAL ? any_bad(soft, i, soft->shape.heads)
                                            : any_bad(soft, 0, 1))
                fill_nan(gradients[p], i);
}

static void differentiate_parameters(const call *c)
{
    const cpu_soft *soft = c->soft;
    atn_tensor *const *gradients = c->gradients->parameters;
    const atn_tensor *residual = gradients[ATN_PARAMETER_RESIDUAL];
    int64_t d = soft->shape.dim;
    if (gradients[ATN_PARAMETER_CONV])
        over(c, d, conv_channel);
    if (gradients[ATN_PARAMETER_NORM_WEIGHT] || gradients[ATN_PARAMETER_NORM_BIAS])
        over(c, d, norm_entry);
    if (residual)
        over(c, soft->shape.heads * residual->rows * residual->cols, filter_entry);
    over(c, soft->shape.batch * soft->shape.heads, set_gradients_nan);
    check_parameters(c);
    set_parameters_nan(c);
}

atn_status R(soft_backward)(atn_context *context, cpu_soft *soft,
                            const atn_attention_inputs *inputs, const atn_tensor *dout,
                            atn_gradients *gradients)
{
    call c = {soft, inputs->q, inputs->v, dout, gradients};
    int64_t m = soft->m, heads = soft->shape.batch * soft->shape.heads;
    int64_t pieces = heads * soft->chunks;
    atn_tensor a =
        atn_tensor_dense(soft->a, REAL_DTYPE, soft->shape.batch, soft->shape.heads, m, m);
    atn_status status = gradients->after_forward ? ATN_OK : R(soft_open)(context, soft, inputs->q);
    if (status < 0)
        return status;
    bool by_heads = soft_by_heads(soft);
    /* Heads may share their alpha: none is finished before all have their slopes by it. */
    bool through_steps = soft->desc.gradient == ATN_GRADIENT_STEPS;
    if (by_heads)
        over(&c, heads, through_steps ? differentiate_head : whole_head);
    else {
        over(&c, pieces, sum_piece);
        over(&c, heads, differentiate_inverse);
        over(&c, pieces, differentiate_piece);
    }
    if (through_steps)
        R(newton_norm_slopes)(&soft->desc.inverse, &a, soft->inverse.infos, soft->alpha_slopes);
    if (by_heads && through_steps)
        over(&c, heads, finish_head);
    if (!by_heads) {
        if (soft->desc.residual.data)
            over(&c, pieces, differentiate_residual);
        over(&c, heads, differentiate_landmarks);
        over(&c, pieces, check_gradients);
    }
    over(&c, heads, set_gradients_nan);
    differentiate_parameters(&c);
    return ATN_OK;
}
