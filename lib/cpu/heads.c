/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the operators that work head by head. */
#include "cpu/heads.h"

#include <omp.h>
#include <string.h>

/* SOFT and SOFT++ are not run here. */
#ifdef REAL_BF16 /* those that have a cpu_bf16.c (ATN_CAN_CPU_BF16), forward only */
static const head_operator *const operators[ATN_OPERATOR_COUNT] = {
    [ATN_SOFTMAX] = &R(cpu_operator_softmax),
    [ATN_SIMA] = &R(cpu_operator_sima),
};
#else
#define HEADS_ROW(code, name)       &R(cpu_operator_##name),
#define SOFT_ROW(code, name)        NULL,
#define CPU_ROW(code, name, family) family##_ROW(code, name)
static const head_operator *const operators[] = {OPERATOR_LIST(CPU_ROW)};
#endif

void R(store)(atn_storage storage, int64_t rows, int64_t cols, real *a, int64_t stride)
{
#ifdef REAL_F32
    if (storage == ATN_STORAGE_NATIVE)
        return;
    for (int64_t i = 0; i < rows; i++)
        atn_storage_round(storage, cols, a + i * stride);
#else
    (void)storage, (void)rows, (void)cols, (void)a, (void)stride;
#endif
}

/* Elements of one thread's gathered tokens: q, k, v, out or its gradient, gradients of q, k, v. */
static int64_t gathered_reals(const atn_attention_shape *s)
{
    return s->tokens * (2 * s->dim + s->value_dim) + s->key_tokens * 2 * (s->dim + s->value_dim);
}

static int64_t position_count(const atn_attention_shape *s)
{
    return s->tokens + s->key_tokens;
}

/* count pieces of `each` elements. */
static void *take_pieces(core_arena *arena, int64_t count, int64_t each, size_t size)
{
    arena->overflow |= each < 0 || core_too_large((double)count * (double)each);
    return arena->overflow ? NULL : core_take(arena, count * each, size);
}

/* Rounds up to whole cache lines, so that no two threads, and no two heads, share one. */
static int64_t whole_lines(int64_t reals)
{
    int64_t line = 64 / (int64_t)sizeof(real);
    return (reals + line - 1) / line * line;
}

void R(heads_layout)(core_arena *arena, cpu_heads *heads)
{
    const atn_attention_shape *s = &heads->shape;
    int64_t pieces = s->batch * s->heads, threads = heads->threads;
    operators[heads->desc.op]->sizes(&heads->desc, s, &heads->thread_reals, &heads->head_reals);
    heads->thread_reals = whole_lines(heads->thread_reals);
    heads->head_reals = whole_lines(heads->head_reals);
    heads->work = take_pieces(arena, threads, heads->thread_reals, sizeof(real));
    heads->state = take_pieces(arena, pieces, heads->head_reals, sizeof(real));
    heads->joined = take_pieces(arena, pieces, 1, sizeof(void *));
    heads->nonfinite = take_pieces(arena, pieces, 1, 1);
    if (heads->desc.padding) {
        heads->gathered = take_pieces(arena, threads, gathered_reals(s), sizeof(real));
        heads->positions = take_pieces(arena, threads, position_count(s), sizeof(int64_t));
    }
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        if (heads->parameters[p])
            heads->sums[p] =
                take_pieces(arena, s->heads,
                            heads->parameters[p]->rows * heads->parameters[p]->cols, sizeof(real));
}

/* ---- One head of a call ---- */

/* The tensors of a call; out is for forward, those after it for backward. */
typedef struct {
    cpu_heads *heads;
    const head_operator *op;
    const atn_attention_inputs *in;
    atn_tensor *out;
    const atn_tensor *dout;
    atn_gradients *gradients;
    bool after_forward; /* the states of the heads, and which are finite, are forward's */
    int threads;        /* that work on one head */
} call;

static bool masked(const call *c)
{
    return c->in->query_mask || c->in->key_mask;
}

/* The threads that work on one head: all of them, one head after the other, if a head's tokens give
 * work to more threads than there are heads. With padding one thread copies a head's tokens: it is
 * shared in part. */
static int threads_of_head(const call *c)
{
    const atn_attention_shape *s = &c->heads->shape;
    int64_t pieces = s->batch * s->heads, threads = c->heads->threads;
    int64_t groups = (head_smaller(s->tokens, s->key_tokens) + SUM_GROUP - 1) / SUM_GROUP;
    bool in_part = c->op->shares == HEAD_SHARED_IN_PART || c->heads->desc.causal || masked(c);
    bool pays = pieces == 1 || (!in_part && head_smaller(threads, groups) > pieces);
    return c->op->shares != HEAD_ALONE && pays ? (int)threads : 1;
}

/* Which thread's memory is used outside head_share. */
static int64_t thread_of(const call *c)
{
    return c->threads > 1 ? 0 : omp_get_thread_num();
}

static real *matrix_of(const atn_tensor *t, int64_t piece)
{
    return atn_tensor_matrix(t, piece / t->heads, piece % t->heads);
}

static void point_to_gradients(const call *c, int64_t piece, head *h)
{
    const atn_gradients *g = c->gradients;
    const atn_tensor *grad_k = g->k ? g->k : g->q;
    h->grad_out = matrix_of(c->dout, piece);
    h->y = g->y && !masked(c) ? matrix_of(g->y, piece) : NULL;
    h->y_stride = g->y ? g->y->row_stride : 0;
    h->grad_q = matrix_of(g->q, piece);
    h->grad_k = matrix_of(grad_k, piece);
    h->grad_v = matrix_of(g->v, piece);
    h->grad_out_stride = c->dout->row_stride;
    h->grad_q_stride = g->q->row_stride;
    h->grad_k_stride = grad_k->row_stride;
    h->grad_v_stride = g->v->row_stride;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        const atn_tensor *t = c->heads->parameters[p];
        if (g->parameters[p])
            h->grad_parameters[p] = (real *)c->heads->sums[p] + h->index * t->rows * t->cols;
    }
}

/* A head's view of the tensors themselves. */
static head direct_head(const call *c, int64_t piece)
{
    cpu_heads *heads = c->heads;
    const atn_attention_shape *s = &heads->shape;
    const atn_tensor *k = c->in->k ? c->in->k : c->in->q;
    int64_t thread = thread_of(c);
    head h = {
        .desc = &heads->desc,
        .index = piece % s->heads,
        .heads = s->heads,
        .batch = piece / s->heads,
        .n = s->tokens,
        .n_k = s->key_tokens,
        .d = s->dim,
        .dv = s->value_dim,
        .length = s->tokens,
        .key_length = s->key_tokens,
        .q = matrix_of(c->in->q, piece),
        .k = matrix_of(k, piece),
        .v = matrix_of(c->in->v, piece),
        .q_stride = c->in->q->row_stride,
        .k_stride = k->row_stride,
        .v_stride = c->in->v->row_stride,
        .threads = c->threads,
        .work = (real *)heads->work + thread * heads->thread_reals,
        .work_stride = heads->thread_reals,
        .state = (real *)heads->state + piece * heads->head_reals,
        .after_forward = c->after_forward,
        .nonfinite = &heads->nonfinite[piece],
    };
    if (c->out) {
        h.out = matrix_of(c->out, piece);
        h.out_stride = c->out->row_stride;
    }
    if (c->gradients)
        point_to_gradients(c, piece, &h);
    return h;
}

/* The positions of the tokens that are not padding; returns how many. */
static int64_t list_present(int64_t length, const unsigned char *mask, int64_t *positions)
{
    int64_t count = 0;
    for (int64_t i = 0; i < length; i++)
        if (!mask || mask[i])
            positions[count++] = i;
    return count;
}

void R(gather_rows)(int64_t count, const int64_t *rows, int64_t cols, const real *from,
                    int64_t stride, real *to)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * cols, from + rows[i] * stride, (size_t)cols * sizeof *to);
}

/* Copies to rows[0], rows[1], ... of `to`. */
static void scatter_rows(int64_t count, const int64_t *rows, int64_t cols, const real *from,
                         real *to, int64_t stride)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + rows[i] * stride, from + i * cols, (size_t)cols * sizeof *to);
}

static const real *gather_to(real **free, int64_t count, const int64_t *positions, int64_t cols,
                             const real *from, int64_t *stride)
{
    real *to = head_take(free, count * cols);
    R(gather_rows)(count, positions, cols, from, *stride, to);
    *stride = cols;
    return to;
}

static real *zeros_from(real **free, int64_t count, int64_t cols, int64_t *stride)
{
    real *to = head_take(free, count * cols);
    memset(to, 0, (size_t)(count * cols) * sizeof *to);
    *stride = cols;
    return to;
}

/* The head of `whole` with padding left out, in the thread's own memory. */
static head gathered_head(const call *c, const head *whole, int64_t piece)
{
    cpu_heads *heads = c->heads;
    const atn_attention_shape *s = &heads->shape;
    int64_t b = piece / s->heads, thread = thread_of(c);
    int64_t *positions = heads->positions + thread * position_count(s);
    int64_t *key_positions = positions + s->tokens;
    real *free = (real *)heads->gathered + thread * gathered_reals(s);
    const unsigned char *queries = c->in->query_mask, *keys = c->in->key_mask;
    head h = *whole;
    h.positions = positions;
    h.key_positions = key_positions;
    h.n = list_present(s->tokens, queries ? queries + b * s->tokens : NULL, positions);
    h.n_k = list_present(s->key_tokens, keys ? keys + b * s->key_tokens : NULL, key_positions);
    h.q = gather_to(&free, h.n, positions, h.d, h.q, &h.q_stride);
    h.k = gather_to(&free, h.n_k, key_positions, h.d, h.k, &h.k_stride);
    h.v = gather_to(&free, h.n_k, key_positions, h.dv, h.v, &h.v_stride);
    if (c->out) {
        h.out = head_take(&free, h.n * h.dv);
        h.out_stride = h.dv;
    }
    if (c->gradients) {
        h.grad_out = gather_to(&free, h.n, positions, h.dv, h.grad_out, &h.grad_out_stride);
        h.grad_q = zeros_from(&free, h.n, h.d, &h.grad_q_stride);
        h.grad_k = zeros_from(&free, h.n_k, h.d, &h.grad_k_stride);
        h.grad_v = zeros_from(&free, h.n_k, h.dv, &h.grad_v_stride);
    }
    return h;
}

static head open_head(const call *c, int64_t piece)
{
    head h = direct_head(c, piece);
    return masked(c) ? gathered_head(c, &h, piece) : h;
}

/* ---- Parts of a head ---- */

void R(head_share)(const head *h, int64_t tokens, int64_t group, const void *own, head_part *part,
                   head_part *add)
{
    if (tokens == 0)
        return;
    int64_t parts = (tokens + group - 1) / group;
    int threads = (int)head_smaller(h->threads, parts);
    if (threads < 2) {
        for (int64_t i = 0; i < tokens; i += group) {
            part(own, h, i, head_smaller(group, tokens - i));
            if (add)
                add(own, h, i, head_smaller(group, tokens - i));
        }
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        head mine = *h;
        mine.threads = 1;
        mine.work += omp_get_thread_num() * h->work_stride;
        if (add) {
#pragma omp for ordered schedule(dynamic)
            for (int64_t i = 0; i < tokens; i += group) {
                part(own, &mine, i, head_smaller(group, tokens - i));
#pragma omp ordered
                add(own, &mine, i, head_smaller(group, tokens - i));
            }
        } else {
#pragma omp for schedule(dynamic)
            for (int64_t i = 0; i < tokens; i += group)
                part(own, &mine, i, head_smaller(group, tokens - i));
        }
    }
}

void R(head_share_tokens)(const head *h, int64_t tokens, const void *own, head_part *part)
{
    int64_t blocks = tokens / (4 * h->threads) / HEAD_BLOCK;
    int64_t group = h->threads == 1 ? tokens : (blocks > 1 ? blocks : 1) * HEAD_BLOCK;
    R(head_share)(h, tokens, group, own, part, NULL);
}

typedef struct {
    const head *h;
    int64_t tokens, group;
    const void *own;
} scan;

/* Calls a part, if there is one, for the group from `first` on, with a thread's work. */
static void scan_group(const scan *s, head_part *part, int64_t first, int64_t thread)
{
    head mine = *s->h;
    mine.threads = 1;
    mine.work += thread * s->h->work_stride;
    if (part && first < s->tokens)
        part(s->own, &mine, first, head_smaller(s->group, s->tokens - first));
}

static void scan_alone(const scan *s, const head_scan_parts *parts)
{
    for (int64_t first = 0; first < s->tokens; first += s->group) {
        scan_group(s, parts->take, first, 0);
        scan_group(s, parts->part, first, 0);
        scan_group(s, parts->add, first, 0);
        scan_group(s, parts->after, first, 0);
    }
}

/* A group for each thread at a time, since with libgomp what follows an `ordered` region of a loop
 * waits for its turn, too. */
static void scan_by_team(const scan *s, const head_scan_parts *parts, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
        for (int64_t first = 0; first < s->tokens; first += team * s->group) {
            scan_group(s, parts->sum, first + me * s->group, me);
#pragma omp barrier
#pragma omp single
            for (int64_t t = 0; t < team; t++) {
                scan_group(s, parts->take, first + t * s->group, t);
                scan_group(s, parts->add, first + t * s->group, t);
            }
            scan_group(s, parts->part, first + me * s->group, me);
            if (parts->after) {
#pragma omp barrier
#pragma omp single
                for (int64_t t = 0; t < team; t++)
                    scan_group(s, parts->after, first + t * s->group, t);
            }
        }
    }
}

void R(head_scan)(const head *h, int64_t tokens, int64_t group, const void *own,
                  const head_scan_parts *parts)
{
    scan s = {h, tokens, group, own};
    int threads = (int)head_smaller(h->threads, (tokens + group - 1) / group);
    if (threads < 2)
        scan_alone(&s, parts);
    else
        scan_by_team(&s, parts, threads);
}

typedef struct {
    int64_t cols, stride;
    const real *x;
    unsigned char *nonfinite;
} searched_rows;

static void search_rows(const void *own, const head *h, int64_t first, int64_t count)
{
    const searched_rows *s = own;
    (void)h;
    if (!R(all_finite)(count, s->cols, s->x + first * s->stride, s->stride)) {
#pragma omp atomic write
        *s->nonfinite = 1;
    }
}

static bool finite_rows(const head *h, int64_t rows, int64_t cols, const real *x, int64_t stride)
{
    unsigned char nonfinite = 0;
    searched_rows s = {cols, stride, x, &nonfinite};
    R(head_share_tokens)(h, rows, &s, search_rows);
    return !nonfinite;
}

static bool finite_inputs(const call *c, const head *h)
{
    /* with K = Q two masks may leave other tokens as keys than as queries */
    bool keys_are_queries = !c->in->k && c->in->query_mask == c->in->key_mask;
    return finite_rows(h, h->n, h->d, h->q, h->q_stride) &&
           (keys_are_queries || finite_rows(h, h->n_k, h->d, h->k, h->k_stride)) &&
           finite_rows(h, h->n_k, h->dv, h->v, h->v_stride);
}

/* Whether the operator itself makes NaN or infinity of those in Q, K, V and dY: not with masks,
 * which may leave no query, no key, or tokens whose partner is padding. */
static bool propagates(const call *c)
{
    return c->op->propagates && !masked(c);
}

static void fill_nan(int64_t rows, int64_t cols, real *a, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < cols; c++)
            a[i * stride + c] = REAL_NAN;
}

/* ---- The passes over all heads ---- */

static void before(const call *c, int64_t piece)
{
    if (c->after_forward)
        return;
    head h = open_head(c, piece);
    c->heads->nonfinite[piece] = !propagates(c) && !c->op->searches && !finite_inputs(c, &h);
    if (!c->heads->nonfinite[piece] && c->op->before)
        c->op->before(&h);
}

/* join sees the states of the heads that are finite. */
static void run_join(const call *c, void (*join)(int64_t, real *const *))
{
    cpu_heads *heads = c->heads;
    int64_t count = 0, pieces = heads->shape.batch * heads->shape.heads;
    if (!join)
        return;
    for (int64_t i = 0; i < pieces; i++)
        if (!heads->nonfinite[i])
            heads->joined[count++] = (real *)heads->state + i * heads->head_reals;
    join(count, (real *const *)heads->joined);
}

static void forward(const call *c, int64_t piece)
{
    cpu_heads *heads = c->heads;
    head whole = direct_head(c, piece), h = open_head(c, piece);
    if (!heads->nonfinite[piece])
        c->op->forward(&h);
    if (heads->nonfinite[piece]) {
        fill_nan(whole.n, whole.dv, whole.out, whole.out_stride);
        return;
    }
    if (!masked(c))
        return;
    head_clear_rows(whole.n, whole.dv, whole.out, whole.out_stride);
    scatter_rows(h.n, h.positions, h.dv, h.out, whole.out, whole.out_stride);
}

/* Both passes over a head at once, where heads are independent: its tokens are still in a cache. */
static void before_and_forward(const call *c, int64_t piece)
{
    before(c, piece);
    forward(c, piece);
}

/* Runs one pass over all heads. A head's parameters are summed over the batch by one thread, in
 * order, so with parameters the threads share the heads rather than the pieces. */
static void over_heads(const call *c, bool in_order, void (*pass)(const call *, int64_t))
{
    const atn_attention_shape *s = &c->heads->shape;
    int64_t groups = in_order ? s->heads : s->batch * s->heads;
    int64_t members = in_order ? s->batch : 1;
    int threads = c->heads->threads;
    if (!pass)
        return;
    if (c->threads > 1) { /* not in a parallel region of one thread: those within it would start
                           * new threads every time */
        for (int64_t i = 0; i < groups * members; i++)
            pass(c, i);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < groups; i++)
        for (int64_t j = 0; j < members; j++)
            pass(c, i + j * groups);
}

void R(heads_forward)(cpu_heads *heads, const atn_attention_inputs *inputs, atn_tensor *out)
{
    call c = {.heads = heads, .op = operators[heads->desc.op], .in = inputs, .out = out};
    c.threads = threads_of_head(&c);
    if (!c.op->join) {
        over_heads(&c, false, before_and_forward);
        return;
    }
    over_heads(&c, false, before);
    run_join(&c, c.op->join);
    over_heads(&c, false, forward);
}

#ifndef REAL_BF16 /* ---- Backward ---- */

/* Adds to rows[0], rows[1], ... of `to`. */
static void scatter_add_rows(int64_t count, const int64_t *rows, int64_t cols, const real *from,
                             real *to, int64_t stride)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < cols; c++)
            to[rows[i] * stride + c] += from[i * cols + c];
}

static void close_gradients(const call *c, const head *whole, const head *h)
{
    if (!masked(c))
        return;
    scatter_add_rows(h->n, h->positions, h->d, h->grad_q, whole->grad_q, whole->grad_q_stride);
    scatter_add_rows(h->n_k, h->key_positions, h->d, h->grad_k, whole->grad_k,
                     whole->grad_k_stride);
    scatter_add_rows(h->n_k, h->key_positions, h->dv, h->grad_v, whole->grad_v,
                     whole->grad_v_stride);
}

void R(clear_gradients)(const head *h)
{
    head_clear_rows(h->n, h->d, h->grad_q, h->grad_q_stride);
    if (h->grad_k != h->grad_q)
        head_clear_rows(h->n_k, h->d, h->grad_k, h->grad_k_stride);
    head_clear_rows(h->n_k, h->dv, h->grad_v, h->grad_v_stride);
}

/* ---- Pairs of tokens ---- */

enum { QUERY_SPAN = 4096 };

int64_t R(pair_reals)(int64_t n, int64_t key_group, int64_t d)
{
    return (head_smaller(QUERY_SPAN, n) + key_group) * d;
}

typedef struct {
    int64_t first, count; /* the span of queries */
    void (*pairs)(const head *h);
} span;

/* A span of queries and a group of keys; dQ, and dK if that is the same array, go to h->work. */
static void run_pairs(const void *own, const head *h, int64_t first, int64_t count)
{
    const span *s = own;
    head part = *h;
    part.first = s->first;
    part.n = s->count;
    part.q += s->first * h->q_stride;
    part.grad_out += s->first * h->grad_out_stride;
    part.first_key = first;
    part.n_k = count;
    part.k += first * h->k_stride;
    part.v += first * h->v_stride;
    part.grad_v += first * h->grad_v_stride;
    part.grad_q = h->work;
    part.grad_q_stride = h->d;
    memset(part.grad_q, 0, (size_t)(part.n * h->d) * sizeof(real));
    if (h->grad_k == h->grad_q) {
        part.grad_k = h->work + part.n * h->d;
        part.grad_k_stride = h->d;
        memset(part.grad_k, 0, (size_t)(count * h->d) * sizeof(real));
    } else {
        part.grad_k += first * h->grad_k_stride;
    }
    s->pairs(&part);
}

static void add_pairs(const void *own, const head *h, int64_t first, int64_t count)
{
    const span *s = own;
    head_add_rows(s->count, h->d, h->work, h->grad_q + s->first * h->grad_q_stride,
                  h->grad_q_stride);
    if (h->grad_k == h->grad_q)
        head_add_rows(count, h->d, h->work + s->count * h->d, h->grad_k + first * h->grad_k_stride,
                      h->grad_k_stride);
}

void R(head_share_pairs)(const head *h, int64_t key_group, void (*pairs)(const head *h))
{
    for (int64_t i = 0; i < h->n; i += QUERY_SPAN) {
        span s = {i, head_smaller(QUERY_SPAN, h->n - i), pairs};
        R(head_share)(h, h->n_k, key_group, &s, run_pairs, add_pairs);
    }
}

/* ---- The passes of backward ---- */

static void backward(const call *c, int64_t piece)
{
    if (c->heads->nonfinite[piece])
        return;
    head whole = direct_head(c, piece), h = open_head(c, piece);
    /* not before join: a head's dY does not change what forward computes of the others */
    if (!propagates(c) && !c->op->searches &&
        !finite_rows(&h, h.n, h.dv, h.grad_out, h.grad_out_stride)) {
        c->heads->nonfinite[piece] = 1;
        return;
    }
    if (masked(c) || !c->op->overwrites)
        R(clear_gradients)(&whole);
    c->op->backward(&h);
    close_gradients(c, &whole, &h);
}

static void after(const call *c, int64_t piece)
{
    if (c->heads->nonfinite[piece])
        return;
    head whole = direct_head(c, piece), h = open_head(c, piece);
    c->op->after(&h);
    close_gradients(c, &whole, &h);
}

/* A head with NaN or infinity has NaN in all of its gradients. */
static void set_gradients_nan(const call *c, int64_t piece)
{
    head h = direct_head(c, piece);
    c->heads->nonfinite[piece] = 1;
    fill_nan(h.n, h.d, h.grad_q, h.grad_q_stride);
    fill_nan(h.n_k, h.d, h.grad_k, h.grad_k_stride);
    fill_nan(h.n_k, h.dv, h.grad_v, h.grad_v_stride);
}

static bool finite_gradients(const head *h)
{
    return finite_rows(h, h->n, h->d, h->grad_q, h->grad_q_stride) &&
           finite_rows(h, h->n_k, h->d, h->grad_k, h->grad_k_stride) &&
           finite_rows(h, h->n_k, h->dv, h->grad_v, h->grad_v_stride);
}

/* Notes gradients that are not finite. With masks and K = Q close_gradients adds dK to dQ: the sum
 * may overflow although both are finite. */
static void check_gradients(const call *c, int64_t piece)
{
    head h = direct_head(c, piece);
    bool searched = c->op->searches_gradients && !masked(c);
    if (c->heads->nonfinite[piece] || (!searched && !finite_gradients(&h)))
        set_gradients_nan(c, piece);
}

static void before_and_backward(const call *c, int64_t piece)
{
    before(c, piece);
    backward(c, piece);
}

static void all_of_backward(const call *c, int64_t piece)
{
    before_and_backward(c, piece);
    check_gradients(c, piece);
}

/* Whether head i has NaN or infinity in an entry of the batch. */
static bool any_bad(const cpu_heads *heads, int64_t i)
{
    bool bad = false;
    for (int64_t b = 0; b < heads->shape.batch; b++)
        bad |= heads->nonfinite[b * heads->shape.heads + i];
    return bad;
}

/* A parameter's gradient from the sums of the heads; heads with NaN or infinity make it NaN. */
static void finish_parameter(const call *c, int p)
{
    const cpu_heads *heads = c->heads;
    const atn_tensor *parameter = heads->parameters[p];
    atn_tensor *gradient = c->gradients->parameters[p];
    int64_t size = parameter->rows * parameter->cols;
    memset(gradient->data, 0, (size_t)(gradient->heads * size) * sizeof(real));
    for (int64_t i = 0; i < heads->shape.heads; i++) {
        real *to = head_matrix(gradient, i), *sum = (real *)heads->sums[p] + i * size;
        bool bad = any_bad(heads, i);
        for (int64_t e = 0; e < size; e++)
            to[e] += bad ? REAL_NAN : sum[e];
    }
}

/* If a parameter's gradient is not finite although all heads that contribute to it are, they count
 * as not finite. Returns whether there are such heads. */
static bool check_parameter(const call *c, int p)
{
    const cpu_heads *heads = c->heads;
    const atn_tensor *gradient = c->gradients->parameters[p];
    int64_t count = heads->shape.heads;
    bool found = false;
    for (int64_t matrix = 0; matrix < gradient->heads; matrix++) {
        int64_t first = gradient->heads == 1 ? 0 : matrix;
        int64_t end = gradient->heads == 1 ? count : matrix + 1;
        bool known = R(all_finite)(gradient->rows, gradient->cols, head_matrix(gradient, matrix),
                                   gradient->cols);
        for (int64_t i = first; i < end; i++)
            known |= any_bad(heads, i);
        for (int64_t i = first; i < end && !known; i++)
            for (int64_t b = 0; b < heads->shape.batch; b++)
                set_gradients_nan(c, b * count + i);
        found |= !known;
    }
    return found;
}

static void finish_parameters(const call *c)
{
    bool found = false;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        if (c->gradients->parameters[p])
            finish_parameter(c, p);
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        found |= c->gradients->parameters[p] && check_parameter(c, p);
    for (int p = 0; found && p < ATN_PARAMETER_COUNT; p++)
        if (c->gradients->parameters[p])
            finish_parameter(c, p);
}

static void backward_in_passes(const call *c, bool in_order)
{
    over_heads(c, false, before);
    run_join(c, c->after_forward ? NULL : c->op->join);
    over_heads(c, in_order, backward);
    run_join(c, c->op->backward_join);
    over_heads(c, in_order, c->op->after ? after : NULL);
}

void R(heads_backward)(cpu_heads *heads, const atn_attention_inputs *inputs, const atn_tensor *dout,
                       atn_gradients *gradients)
{
    call c = {.heads = heads,
              .op = operators[heads->desc.op],
              .in = inputs,
              .dout = dout,
              .gradients = gradients,
              .after_forward = gradients->after_forward};
    c.threads = threads_of_head(&c);
    bool in_order = false;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        if (gradients->parameters[p]) {
            in_order = true;
            memset(heads->sums[p], 0,
                   (size_t)(heads->shape.heads * heads->parameters[p]->rows *
                            heads->parameters[p]->cols) *
                       sizeof(real));
        }
    if (c.op->join || c.op->after)
        backward_in_passes(&c, in_order);
    else if (in_order) /* gradients that heads share are complete at the end */
        over_heads(&c, true, before_and_backward);
    else
        over_heads(&c, false, all_of_backward);
    if (in_order || c.op->join || c.op->after)
        over_heads(&c, false, check_gradients);
    finish_parameters(&c);
}

#endif
