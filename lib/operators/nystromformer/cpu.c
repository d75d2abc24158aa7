/* SPDX-License-Identifier: BSD-3-Clause */
/* Nystromformer (Xiong et al. 2021): Y = F Z (B V), with three softmax attentions: tokens to
 * landmarks (F), landmarks among themselves (A, which Z inverts), landmarks to tokens (B). F and B
 * are heads for operators/softmax/cpu.c, which never stores their weights. */
#include <string.h>

#include "inverse/nystrom/cpu.h"
#include "operators/checks.h"
#include "operators/norms/cpu.h"
#include "operators/softmax/cpu.h"

/* ---- Memory ---- */

/* The head's state begins with these numbers. */
enum {
    OWN_NORM,   /* |A|_1 */
    NORM,       /* the norm that Z_0 is divided by: this head's or the largest of the batch */
    IS_LARGEST, /* 1: NORM is this head's own */
    NORM_SLOPE, /* the derivative by NORM; after backward_join, that by OWN_NORM */
    IS_COUPLED, /* 1: NORM is the batch's */
    NUMBERS
};

typedef struct {
    bool exact; /* m = n = n_k */
    int64_t m;
    /* state */
    real *numbers, *a, *query_means, *key_means;
    real *grad_a, *grad_query_means, *grad_key_means;
    real *summary;                            /* U = B V */
    real *tokens_softmax, *landmarks_softmax; /* the states of F's and B's */
    /* work, after that of the softmax */
    double *tap_sums;
    real *grad_summary;
    real *solved, *grad_solved; /* Z U */
    real *grad_z, *inverse_work;
} pieces;

static bool is_exact(const atn_attention_desc *desc, int64_t n, int64_t n_k)
{
    return desc->nystromformer.landmarks == n && n == n_k;
}

static int64_t residual_taps(const atn_attention_desc *desc)
{
    return desc->residual.data ? desc->residual.rows : 0;
}

/* For F, of n tokens that attend to m landmarks, and B, of m landmarks that attend to n_k tokens.
 */
static int64_t softmax_work(int64_t m, int64_t n, int64_t n_k, int64_t d, int64_t dv)
{
    int64_t f = R(softmax_reals)(n, m, d, dv), b = R(softmax_reals)(m, n_k, d, dv);
    return f > b ? f : b;
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    int64_t m = desc->nystromformer.landmarks, d = shape->dim, dv = shape->value_dim;
    *head_reals = NUMBERS;
    *thread_reals = softmax_work(m, shape->tokens, shape->key_tokens, d, dv) +
                    R(norm_doubles)(residual_taps(desc));
    if (is_exact(desc, shape->tokens, shape->key_tokens)) {
        *head_reals += R(softmax_state)(shape->tokens, m);
        return;
    }
    *head_reals += R(softmax_state)(shape->tokens, m) + R(softmax_state)(m, shape->key_tokens);
    *head_reals += 2 * m * m + 4 * m * d + m * dv;
    *thread_reals += m * (3 * dv + m) + R(nystrom_inverse_work)(&desc->nystromformer, m);
}

static pieces split(const head *h)
{
    int64_t m = h->desc->nystromformer.landmarks;
    real *state = h->state,
         *work = h->work + softmax_work(m, h->length, h->key_length, h->d, h->dv);
    pieces p = {.exact = is_exact(h->desc, h->length, h->key_length), .m = m};
    p.numbers = head_take(&state, NUMBERS);
    p.tokens_softmax = state;
    if (p.exact) {
        p.tap_sums = R(norm_take)(&work, residual_taps(h->desc));
        return p;
    }
    head_take(&state, R(softmax_state)(h->length, m));
    p.landmarks_softmax = head_take(&state, R(softmax_state)(m, h->key_length));
    p.a = head_take(&state, m * m);
    p.query_means = head_take(&state, m * h->d);
    p.key_means = head_take(&state, m * h->d);
    p.grad_a = head_take(&state, m * m);
    p.grad_query_means = head_take(&state, m * h->d);
    p.grad_key_means = head_take(&state, m * h->d);
    p.summary = head_take(&state, m * h->dv);
    p.grad_summary = head_take(&work, m * h->dv);
    p.solved = head_take(&work, m * h->dv);
    p.grad_solved = head_take(&work, m * h->dv);
    p.grad_z = head_take(&work, m * m);
    p.inverse_work = head_take(&work, R(nystrom_inverse_work)(&h->desc->nystromformer, m));
    p.tap_sums = R(norm_take)(&work, residual_taps(h->desc));
    return p;
}

/* B: the landmarks attend to the tokens. */
static head landmarks_to_tokens(const head *h, const pieces *p)
{
    head b = *h;
    b.n = b.length = p->m;
    b.state = p->landmarks_softmax;
    b.q = p->query_means;
    b.out = p->summary;
    b.y = p->summary; /* as solve leaves it */
    b.y_stride = h->dv;
    b.grad_out = p->grad_summary;
    b.grad_q = p->grad_query_means;
    b.q_stride = b.grad_q_stride = h->d;
    b.out_stride = b.grad_out_stride = h->dv;
    return b;
}

/* What forward's last softmax wrote, if Y is that; or null. */
static const real *softmax_output(const head *h)
{
    return h->desc->residual.data ? NULL : h->y;
}

/* m = n = n_k: the tokens attend to the tokens. */
static head tokens_to_tokens(const head *h, const pieces *p)
{
    head s = *h;
    s.state = p->tokens_softmax;
    s.y = softmax_output(h);
    return s;
}

/* F: the tokens attend to the landmarks, whose values are Z B V. */
static head tokens_to_landmarks(const head *h, const pieces *p)
{
    head f = *h;
    f.n_k = f.key_length = p->m;
    f.state = p->tokens_softmax;
    f.k = p->key_means;
    f.v = p->solved;
    f.y = softmax_output(h);
    f.grad_k = p->grad_key_means;
    f.grad_v = p->grad_solved;
    f.k_stride = f.grad_k_stride = h->d;
    f.v_stride = f.grad_v_stride = h->dv;
    return f;
}

/* ---- Segment means ---- */

/* m segments of `length` positions: the first `few` hold `size` of them, the others one more. */
typedef struct {
    int64_t size, few;
} segments;

static segments segments_of(int64_t m, int64_t length)
{
    return (segments){length / m, m - length % m};
}

static int64_t segment_begin(const segments *s, int64_t segment)
{
    int64_t extra = segment - s->few;
    return segment * s->size + (extra > 0 ? extra : 0);
}

static int64_t segment_size(const segments *s, int64_t segment)
{
    return s->size + (segment >= s->few);
}

/* Sums over a segment in double; padded tokens count as zeros. */
static void one_mean(int64_t first, int64_t last, int64_t d, const real *x, int64_t stride,
                     int64_t size, real *mean)
{
    for (int64_t c0 = 0; c0 < d; c0 += HEAD_BLOCK) {
        double sums[HEAD_BLOCK] = {0};
        int64_t channels = head_smaller(HEAD_BLOCK, d - c0);
        for (int64_t i = first; i < last; i++)
            for (int64_t c = 0; c < channels; c++)
                sums[c] += (double)x[i * stride + c0 + c];
        for (int64_t c = 0; c < channels; c++)
            mean[c0 + c] = (real)(sums[c] / (double)size);
    }
}

/* Tokens x and the means of their segments; backward: the gradients of both. */
typedef struct {
    segments s;
    int64_t count;
    const int64_t *positions;
    const real *x;
    real *grad, *means;
    int64_t stride;
} averaged;

static averaged averaged_queries(const head *h, const real *x, real *grad, int64_t stride,
                                 real *means)
{
    segments s = segments_of(h->desc->nystromformer.landmarks, h->length);
    return (averaged){s, h->n, h->positions, x, grad, means, stride};
}

static averaged averaged_keys(const head *h, const real *x, real *grad, int64_t stride, real *means)
{
    segments s = segments_of(h->desc->nystromformer.landmarks, h->key_length);
    return (averaged){s, h->n_k, h->key_positions, x, grad, means, stride};
}

static int64_t segment_first(const averaged *a, int64_t segment)
{
    return core_count_before(a->positions, a->count, segment_begin(&a->s, segment));
}

static void form_means(const void *own, const head *h, int64_t first, int64_t count)
{
    const averaged *a = own;
    for (int64_t i = first; i < first + count; i++)
        one_mean(segment_first(a, i), segment_first(a, i + 1), h->d, a->x, a->stride,
                 segment_size(&a->s, i), a->means + i * h->d);
}

static void means_backward(const void *own, const head *h, int64_t first, int64_t count)
{
    const averaged *a = own;
    for (int64_t i = first; i < first + count; i++) {
        const real *mean = a->means + i * h->d, size = (real)segment_size(&a->s, i);
        int64_t last = segment_first(a, i + 1);
        for (int64_t t = segment_first(a, i); t < last; t++)
            for (int64_t c = 0; c < h->d; c++)
                a->grad[t * a->stride + c] += mean[c] / size;
    }
}

static void share_means(const head *h, const averaged *a, head_part *part)
{
    R(head_share)(h, h->desc->nystromformer.landmarks, 8, a, part, NULL);
}

/* ---- A and its norm ---- */

/* |A|_1: the largest column sum (A >= 0), and the first column that has it. */
static real column_norm(int64_t m, const real *a, int64_t *column)
{
    double norm = 0;
    *column = 0;
    for (int64_t j = 0; j < m; j++) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += (double)a[i * m + j];
        if (sum > norm) {
            norm = sum;
            *column = j;
        }
    }
    return (real)norm;
}

static void before(const head *h)
{
    pieces p = split(h);
    int64_t m = p.m, d = h->d, column;
    memset(p.numbers, 0, NUMBERS * sizeof(real));
    if (p.exact)
        return;
    averaged q = averaged_queries(h, h->q, NULL, h->q_stride, p.query_means);
    averaged k = averaged_keys(h, h->k, NULL, h->k_stride, p.key_means);
    share_means(h, &q, form_means);
    share_means(h, &k, form_means);
    R(store)(h->desc->storage, m, d, p.query_means, d);
    R(store)(h->desc->storage, m, d, p.key_means, d);
    real_gemm(CblasNoTrans, CblasTrans, m, m, d, p.query_means, d, p.key_means, d, 0, p.a, m);
    R(softmax_rows)(m, m, core_logit_scale(h->desc, d), p.a, m, p.a, m);
    R(store)(h->desc->storage, m, m, p.a, m);
    p.numbers[OWN_NORM] = p.numbers[NORM] = column_norm(m, p.a, &column);
    p.numbers[IS_LARGEST] = 1;
    p.numbers[IS_COUPLED] = h->desc->nystromformer.inverse == ATN_NYSTROM_ORIGINAL;
}

/* The published code starts all heads of a batch from one norm, the largest. */
static void join(int64_t count, real *const *states)
{
    int64_t largest = 0;
    if (count == 0 || states[0][IS_COUPLED] == 0)
        return;
    for (int64_t i = 0; i < count; i++) {
        states[i][IS_LARGEST] = 0;
        if (states[i][OWN_NORM] > states[largest][OWN_NORM])
            largest = i;
    }
    states[largest][IS_LARGEST] = 1;
    for (int64_t i = 0; i < count; i++)
        states[i][NORM] = states[largest][OWN_NORM];
}

/* The derivatives of all heads by the norm are added to that of the head that attains it, except
 * those that are not finite: they affect their own head only. */
static void backward_join(int64_t count, real *const *states)
{
    double sum = 0;
    if (count == 0 || states[0][IS_COUPLED] == 0)
        return;
    for (int64_t i = 0; i < count; i++)
        sum += real_abs(states[i][NORM_SLOPE]) < INFINITY ? (double)states[i][NORM_SLOPE] : 0;
    for (int64_t i = 0; i < count; i++)
        states[i][NORM_SLOPE] = states[i][IS_LARGEST] != 0 ? (real)sum : 0;
}

/* ---- The residual on V ---- */

/* Adds to queries the keys' values under the filter. */
static void residual(const void *own, const head *h, int64_t first, int64_t count)
{
    const atn_tensor *filter = &h->desc->residual;
    const real *taps = head_matrix(filter, h->index);
    (void)own;
    for (int64_t i = first; i < first + count; i++) {
        int64_t start = core_position(h->positions, i) - filter->rows / 2;
        for (int64_t j = core_count_before(h->key_positions, h->n_k, start); j < h->n_k; j++) {
            int64_t tap = core_position(h->key_positions, j) - start;
            if (tap >= filter->rows)
                break;
            for (int64_t c = 0; c < h->dv; c++)
                h->out[i * h->out_stride + c] += taps[tap] * h->v[j * h->v_stride + c];
        }
    }
}

/* dV of some keys, and their sums for the derivatives of the taps. */
static void residual_backward(const void *own, const head *h, int64_t first, int64_t count)
{
    const atn_tensor *filter = &h->desc->residual;
    const real *taps = head_matrix(filter, h->index);
    double *sums = split(h).tap_sums;
    bool wanted = h->grad_parameters[ATN_PARAMETER_RESIDUAL] != NULL;
    (void)own;
    memset(sums, 0, (size_t)filter->rows * sizeof *sums);
    for (int64_t j = first; j < first + count; j++) {
        int64_t last = core_position(h->key_positions, j) + filter->rows / 2;
        int64_t i = core_count_before(h->positions, h->n, last - filter->rows + 1);
        for (; i < h->n && core_position(h->positions, i) <= last; i++) {
            const real *dy = h->grad_out + i * h->grad_out_stride;
            int64_t tap = last - core_position(h->positions, i);
            if (wanted)
                sums[tap] += R(dot)(h->dv, dy, h->v + j * h->v_stride);
            for (int64_t c = 0; c < h->dv; c++)
                h->grad_v[j * h->grad_v_stride + c] += taps[tap] * dy[c];
        }
    }
}

static void add_tap_sums(const void *own, const head *h, int64_t first, int64_t count)
{
    const double *sums = split(h).tap_sums;
    real *grad = h->grad_parameters[ATN_PARAMETER_RESIDUAL];
    (void)own, (void)first, (void)count;
    for (int64_t tap = 0; grad && tap < h->desc->residual.rows; tap++)
        grad[tap] += (real)sums[tap];
}

/* ---- Forward ---- */

static nystrom_problem inverse_problem_of(const head *h, const pieces *p)
{
    return (nystrom_problem){h->desc, p->m, p->a, p->numbers[NORM], p->inverse_work};
}

/* U = B V, unless forward left it, and Z U; returns Z. */
static const real *solve(const head *h, const pieces *p)
{
    head b = landmarks_to_tokens(h, p);
    nystrom_problem inverse = inverse_problem_of(h, p);
    const real *z = R(nystrom_inverse)(&inverse);
    if (!h->after_forward)
        R(softmax_forward)(&b);
    real_gemm(CblasNoTrans, CblasNoTrans, p->m, h->dv, p->m, z, p->m, p->summary, h->dv, 0,
              p->solved, h->dv);
    R(store)(h->desc->storage, p->m, h->dv, p->solved, h->dv);
    return z;
}

static void forward(const head *h)
{
    pieces p = split(h);
    if (p.exact) {
        head s = tokens_to_tokens(h, &p);
        R(softmax_forward)(&s);
    } else {
        solve(h, &p);
        head f = tokens_to_landmarks(h, &p);
        R(softmax_forward)(&f);
    }
    if (h->desc->residual.data) {
        R(head_share_tokens)(h, h->n, NULL, residual);
        head_finish_rows(h, 0, h->n);
    }
}

/* ---- Backward ---- */

static void clear(int64_t count, real *values)
{
    memset(values, 0, (size_t)count * sizeof *values);
}

static void backward(const head *h)
{
    pieces p = split(h);
    int64_t m = p.m, dv = h->dv;
    if (h->desc->residual.data)
        R(head_share)(h, h->n_k, SUM_GROUP, NULL, residual_backward, add_tap_sums);
    if (p.exact) {
        head s = tokens_to_tokens(h, &p);
        R(softmax_backward)(&s);
        return;
    }
    clear(m * m, p.grad_a);
    clear(m * h->d, p.grad_query_means);
    clear(m * h->d, p.grad_key_means);
    clear(m * dv, p.grad_solved);
    const real *z = solve(h, &p);
    head f = tokens_to_landmarks(h, &p), b = landmarks_to_tokens(h, &p);
    R(softmax_backward)(&f);
    real_gemm(CblasTrans, CblasNoTrans, m, dv, m, z, m, p.grad_solved, dv, 0, p.grad_summary, dv);
    real_gemm(CblasNoTrans, CblasTrans, m, m, dv, p.grad_solved, dv, p.summary, dv, 0, p.grad_z, m);
    R(softmax_backward)(&b);
    nystrom_problem inverse = inverse_problem_of(h, &p);
    R(nystrom_inverse_backward)(&inverse, p.grad_z, p.grad_a, &p.numbers[NORM_SLOPE]);
}

/* Backward through A, its softmax and the means, once the derivative by the norm is known. */
static void after(const head *h)
{
    pieces p = split(h);
    int64_t m = p.m, d = h->d, column;
    if (p.exact)
        return;
    column_norm(m, p.a, &column);
    for (int64_t i = 0; i < m; i++)
        p.grad_a[i * m + column] += p.numbers[NORM_SLOPE];
    R(softmax_rows_backward)(m, m, core_logit_scale(h->desc, d), p.a, m, p.grad_a, m);
    real_gemm(CblasNoTrans, CblasNoTrans, m, d, m, p.grad_a, m, p.key_means, d, 1,
              p.grad_query_means, d);
    real_gemm(CblasTrans, CblasNoTrans, m, d, m, p.grad_a, m, p.query_means, d, 1, p.grad_key_means,
              d);
    averaged q = averaged_queries(h, NULL, h->grad_q, h->grad_q_stride, p.grad_query_means);
    averaged k = averaged_keys(h, NULL, h->grad_k, h->grad_k_stride, p.grad_key_means);
    share_means(h, &q, means_backward);
    share_means(h, &k, means_backward);
}

const head_operator R(cpu_operator_nystromformer) = {.sizes = sizes,
                                                     .forward = forward,
                                                     .backward = backward,
                                                     .before = before,
                                                     .join = join,
                                                     .backward_join = backward_join,
                                                     .after = after,
                                                     .shares = HEAD_SHARED_IN_PART};
