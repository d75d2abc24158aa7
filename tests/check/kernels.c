/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators as lists of matrix operations, for one head, from their formulas in
 * attnum/operators.h. Bugs are where they would be made. */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

#define ARRANGEMENT_NAME(code, name, operators) name,
#define ARRANGEMENT_OPS(code, name, operators)  operators,
static const char *const arrangement_names[] = {ARRANGEMENT_LIST(ARRANGEMENT_NAME)};
static const unsigned arrangement_operators[] = {ARRANGEMENT_LIST(ARRANGEMENT_OPS)};

const char *arrangement_name(arrangement a)
{
    return arrangement_names[a];
}

bool arrangement_is_of(arrangement a, atn_operator op)
{
    return arrangement_operators[a] >> op & 1;
}

#define BUG_INFO(code, name, operators, needs, words) {#code, name, operators, needs, words},
const bug_info bugs[BUG_COUNT] = {BUG_LIST(BUG_INFO)};

/* ---- A head ---- */

typedef struct {
    tape *t;
    const attention_case *c;
    const kernel_choice *choice;
    int64_t batch, head;
    node q, k, v;
    node q_given, k_given;       /* including padding */
    node query_there, key_there; /* n x 1 flags */
    int64_t first_key;           /* the token in row 0 of k */
    node parameters[ATN_PARAMETER_COUNT];
    double *state; /* the previous head's, for BUG_STATE_STALE; or null */
} head;

static bool has(const head *h, bug b)
{
    return h->choice->bug == b;
}

static bool is(const head *h, arrangement a)
{
    return h->choice->arrangement == a;
}

/* ---- Short names of operations ---- */

static node plus(head *h, node a, node b)
{
    return tape_with(h->t, TAPE_ADD, a, b);
}
static node minus(head *h, node a, node b)
{
    return tape_with(h->t, TAPE_SUB, a, b);
}
static node times(head *h, node a, node b)
{
    return tape_with(h->t, TAPE_MUL, a, b);
}
static node over(head *h, node a, node b)
{
    return tape_with(h->t, TAPE_DIV, a, b);
}
static node scaled(head *h, node x, double f)
{
    return tape_of(h->t, TAPE_SCALE, x, f);
}
static node shifted(head *h, node x, double f)
{
    return tape_of(h->t, TAPE_SHIFT, x, f);
}
static node at_least(head *h, node x, double f)
{
    return tape_of(h->t, TAPE_LEAST, x, f);
}
static node square(head *h, node x)
{
    return tape_of(h->t, TAPE_SQUARE, x, 0);
}
static node root(head *h, node x)
{
    return tape_of(h->t, TAPE_SQRT, x, 0);
}
static node dot(head *h, node a, node b)
{
    return tape_product(h->t, false, false, a, b);
}
static node dot_tn(head *h, node a, node b)
{
    return tape_product(h->t, true, false, a, b);
}
static node dot_nt(head *h, node a, node b)
{
    return tape_product(h->t, false, true, a, b);
}
static node sum(head *h, tape_axis axis, node x)
{
    return tape_sum(h->t, axis, x);
}
static node detached(head *h, node x)
{
    return tape_detached(h->t, x);
}
static int64_t rows_of(const head *h, node x)
{
    return tape_rows(h->t, x);
}

static node detached_if(head *h, bug b, node x)
{
    return has(h, b) ? detached(h, x) : x;
}

static node filled(head *h, int64_t rows, int64_t cols, double value)
{
    double *values = must_allocate((size_t)(rows * cols), sizeof *values);
    for (int64_t i = 0; i < rows * cols; i++)
        values[i] = value;
    node x = tape_constant(h->t, rows, cols, values);
    free(values);
    return x;
}

static node identity(head *h, int64_t m, double value)
{
    double *values = must_allocate((size_t)(m * m), sizeof *values);
    for (int64_t i = 0; i < m; i++)
        values[i * m + i] = value;
    node x = tape_constant(h->t, m, m, values);
    free(values);
    return x;
}

static node exponential(head *h, node x)
{
    return tape_of(h->t, has(h, BUG_EXP2) ? TAPE_EXP2 : TAPE_EXP, x, 0);
}

static node there(head *h, node flags, node x)
{
    return tape_where(h->t, flags, x, 0);
}

/* ---- Masks ---- */

static bool sees(const head *h, int64_t i, int64_t j)
{
    if (has(h, BUG_CAUSAL_NEXT))
        return j <= i + 1;
    if (has(h, BUG_CAUSAL_STRICT))
        return j < i || j == 0;
    if (has(h, BUG_CAUSAL_REVERSED))
        return j >= i;
    if (has(h, BUG_CAUSAL_TILES))
        return j / 16 <= i / 16;
    return j <= i;
}

/* Flags of the keys that each query sees, n x n_k, or 1 x n_k. */
static node seen(head *h, bool causal)
{
    int64_t n = causal ? rows_of(h, h->q) : 1, keys = rows_of(h, h->k);
    double *flags = must_allocate((size_t)(n * keys), sizeof *flags);
    const double *key = tape_value(h->t, h->key_there);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < keys; j++)
            flags[i * keys + j] = key[j] != 0 && (!causal || sees(h, i, j + h->first_key));
    node x = tape_constant(h->t, n, keys, flags);
    free(flags);
    return x;
}

static bool is_causal(const head *h)
{
    return h->c->reference.causal && !has(h, BUG_CAUSAL_IGNORED);
}

/* ---- Sums over tokens ---- */

int64_t tail_of(int64_t tokens, int64_t tile)
{
    int64_t tail = tokens % tile;
    return tokens <= tile ? 1 : tail > 0 ? tail : tile;
}

/* a^T b tile by tile, with the partial sums rounded to bf16. */
static node sum_of_tiles(head *h, node a, node b)
{
    int64_t n = rows_of(h, a), tile = 16;
    node total = NO_NODE;
    for (int64_t first = 0; first < n; first += tile) {
        int64_t count = n - first < tile ? n - first : tile;
        node s = dot_tn(h, tape_slice(h->t, a, first, count), tape_slice(h->t, b, first, count));
        total = tape_of(h->t, TAPE_AS_BF16, first ? plus(h, total, s) : s, 0);
    }
    return total;
}

/* a^T b, a sum over tokens, which are the rows of both. */
static node over_tokens(head *h, node a, node b)
{
    int64_t n = rows_of(h, a), tail = tail_of(n, 16), tile = n < 16 ? n : 16;
    if (has(h, BUG_STATE_TAIL))
        return dot_tn(h, tape_slice(h->t, a, 0, n - tail), tape_slice(h->t, b, 0, n - tail));
    if (has(h, BUG_STATE_TWICE))
        return dot_tn(h, tape_below(h->t, a, tape_slice(h->t, a, 0, tile)),
                      tape_below(h->t, b, tape_slice(h->t, b, 0, tile)));
    if (has(h, BUG_STATE_OF_LAST_TILE))
        return dot_tn(h, tape_slice(h->t, a, n - tail, tail), tape_slice(h->t, b, n - tail, tail));
    if (has(h, BUG_PARTIALS_BF16))
        return sum_of_tiles(h, a, b);
    if (has(h, BUG_STATE_TF32))
        return dot_tn(h, tape_of(h->t, TAPE_AS_TF32, a, 0), tape_of(h->t, TAPE_AS_TF32, b, 0));
    return dot_tn(h, a, b);
}

/* The same for a state that a kernel keeps. */
static node state(head *h, node a, node b)
{
    node s = over_tokens(h, a, b);
    int64_t rows = rows_of(h, s), cols = tape_cols(h->t, s);
    if (has(h, BUG_STATE_INITIAL))
        return shifted(h, s, 0.1);
    if (has(h, BUG_STATE_TRANSPOSED) && rows == cols)
        return tape_transposed(h->t, s);
    if (has(h, BUG_STATE_STALE)) {
        node before = tape_constant(h->t, rows, cols, h->state);
        memcpy(h->state, tape_value(h->t, s), (size_t)(rows * cols) * sizeof(double));
        return plus(h, s, before);
    }
    return s;
}

/* 0 for a tenth of the numbers, 1 / 0.9 for the others, by a hash. */
double dropout(uint64_t i)
{
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
    i = (i ^ i >> 27) * 0x94d049bb133111ebu;
    return (i ^ i >> 31) % 10 ? 1 / 0.9 : 0;
}

static node dropped(head *h, node weights)
{
    int64_t rows = rows_of(h, weights), cols = tape_cols(h->t, weights);
    double *kept = must_allocate((size_t)(rows * cols), sizeof *kept);
    for (int64_t i = 0; i < rows * cols; i++)
        kept[i] = dropout((uint64_t)((h->batch * h->c->shape.heads + h->head) * rows * cols + i));
    node x = times(h, weights, tape_constant(h->t, rows, cols, kept));
    free(kept);
    return x;
}

/* Weights (n x n_k) times values. */
static node weigh(head *h, node weights, node values)
{
    static const bug of_sums[] = {BUG_STATE_TAIL, BUG_STATE_TWICE, BUG_PARTIALS_BF16,
                                  BUG_STATE_OF_LAST_TILE, BUG_STATE_TF32};
    bool spoilt = false;
    for (size_t i = 0; i < sizeof of_sums / sizeof *of_sums; i++)
        spoilt |= has(h, of_sums[i]);
    if (has(h, BUG_WEIGHTS_DROPPED))
        weights = dropped(h, weights);
    if (spoilt)
        return over_tokens(h, tape_transposed(h->t, weights), values);
    return dot(h, weights, values);
}

/* ---- Scales ---- */

static double spoilt_scale(const head *h, double half, double scale)
{
    double d = (double)h->c->shape.dim, heads = (double)h->c->shape.heads;
    if (has(h, BUG_SCALE_MISSING))
        return 1;
    if (has(h, BUG_SCALE_TWICE))
        return scale * scale;
    if (has(h, BUG_SCALE_NO_ROOT))
        return half / d;
    if (has(h, BUG_SCALE_D_PLUS_1))
        return half / sqrt(d + 1);
    if (has(h, BUG_SCALE_EMBED))
        return half / sqrt(d * heads);
    if (has(h, BUG_SCALE_NO_HALF))
        return 1 / sqrt(d);
    if (has(h, BUG_SCALE_BF16))
        return round_to(ATN_BF16, scale);
    return scale;
}

static double logit_scale(const head *h)
{
    return spoilt_scale(h, 1, 1 / sqrt((double)h->c->shape.dim));
}

static double kernel_scale(const head *h)
{
    return spoilt_scale(h, 0.5, 0.5 / sqrt((double)h->c->shape.dim));
}

/* ---- Softmax ---- */

/* The logits. For BUG_KEYS_OF_LAST_TILE their derivative by Q has the keys of the last tile
 * alone. */
static node logits_of(head *h)
{
    int64_t keys = rows_of(h, h->k), tail = tail_of(keys, 16);
    node right = dot_nt(h, h->q, h->k);
    if (!has(h, BUG_KEYS_OF_LAST_TILE))
        return right;
    node part = tape_transposed(
        h->t, dot_nt(h, tape_slice(h->t, detached(h, h->k), keys - tail, tail), h->q));
    node others = filled(h, rows_of(h, h->q), keys - tail, 0);
    node of_q = tape_transposed(
        h->t, tape_below(h->t, tape_transposed(h->t, others), tape_transposed(h->t, part)));
    return plus(h, dot_nt(h, detached(h, h->q), h->k), minus(h, of_q, detached(h, of_q)));
}

/* exp(x - max). The maximum needs no derivative, because it cancels. */
static node weights_of(head *h, tape_axis axis, node x)
{
    if (has(h, BUG_EXP_OVERFLOW))
        return tape_of(h->t, TAPE_AS_F16, exponential(h, x), 0);
    if (!is(h, ARRANGED_UNSHIFTED))
        x = minus(h, x, detached(h, tape_largest(h->t, axis, x)));
    return exponential(h, x);
}

static tape_axis other(const head *h, bug b, tape_axis axis)
{
    return has(h, b) == (axis == OVER_COLS) ? OVER_ROWS : OVER_COLS;
}

static node softmax_over(head *h, tape_axis axis, node x)
{
    node e = weights_of(h, axis, x);
    if (has(h, BUG_NOT_DIVIDED))
        return e;
    return over(h, e, detached_if(h, BUG_SUM_DETACHED, sum(h, axis, e)));
}

/* Softmax in blocks of keys with a running maximum (Milakov and Gimelshein 2018). */
static node online_softmax(head *h, node logits)
{
    int64_t keys = tape_cols(h->t, logits), block = keys >= 128 ? 64 : 16, turn = 0;
    node most = NO_NODE, total = NO_NODE, result = NO_NODE;
    for (int64_t first = 0; first < keys; first += block, turn++) {
        int64_t count = keys - first < block ? keys - first : block;
        node x = tape_columns(h->t, logits, first, count);
        node m = detached(h, tape_largest(h->t, OVER_COLS, x));
        if (turn > 0)
            m = detached(h, tape_with(h->t, TAPE_MAX, most, m));
        m = at_least(h, m, -1e30); /* for rows that have seen no key yet */
        node e = exponential(h, minus(h, x, m)), s = sum(h, OVER_COLS, e);
        node y = weigh(h, e, tape_slice(h->t, h->v, first, count));
        if (turn > 0) {
            node grown = minus(h, most, m), factor = exponential(h, grown);
            if (has(h, BUG_RESCALE_BASE_2))
                factor = tape_of(h->t, TAPE_EXP2, grown, 0);
            bool sum_kept = has(h, BUG_SUM_NOT_RESCALED);
            bool kept = (has(h, BUG_RESCALE_FORGOTTEN) && turn == 1) ||
                        (has(h, BUG_RESCALE_LAST) && first + block >= keys);
            if (!has(h, BUG_SUM_OF_LAST_BLOCK))
                s = plus(h, sum_kept ? total : times(h, total, factor), s);
            y = plus(h, kept ? result : times(h, result, factor), y);
        }
        most = m, total = s, result = y;
    }
    return over(h, result, total);
}

/* 10 tanh(x / 10) = 10 (1 - 2 / (exp(x / 5) + 1)) */
static node capped(head *h, node x)
{
    if (!has(h, BUG_LOGITS_CAPPED))
        return x;
    node e = shifted(h, tape_of(h->t, TAPE_EXP, scaled(h, x, 0.2), 0), 1);
    node two = filled(h, 1, 1, 2);
    return scaled(h, shifted(h, scaled(h, over(h, two, e), -1), 1), 10);
}

static node attend(head *h, node logits, node flags, node v)
{
    if (flags != NO_NODE)
        logits = tape_where(h->t, flags, logits, -INFINITY);
    if (is(h, ARRANGED_DIVIDED_LATE)) {
        node e = weights_of(h, OVER_COLS, logits);
        node s = detached_if(h, BUG_SUM_DETACHED, sum(h, OVER_COLS, e));
        return has(h, BUG_NOT_DIVIDED) ? weigh(h, e, v) : over(h, weigh(h, e, v), s);
    }
    node p = softmax_over(h, other(h, BUG_WRONG_AXIS, OVER_COLS), logits);
    return weigh(h, flags == NO_NODE ? p : there(h, flags, p), v);
}

/* The mean over two halves of the keys, each with its own softmax. */
static node two_splits(head *h, node logits, node flags)
{
    int64_t keys = tape_cols(h->t, logits), half = (keys + 1) / 2;
    node sum = NO_NODE;
    for (int64_t first = 0; first < keys; first += half) {
        int64_t count = keys - first < half ? keys - first : half;
        node y =
            attend(h, tape_columns(h->t, logits, first, count),
                   tape_columns(h->t, flags, first, count), tape_slice(h->t, h->v, first, count));
        sum = first ? plus(h, sum, y) : y;
    }
    return scaled(h, sum, 0.5);
}

/* The value of one with the derivatives of another. */
static node with_derivatives_of(head *h, node value, node other)
{
    return plus(h, detached(h, value), minus(h, other, detached(h, other)));
}

/* Derivatives as of a backward pass that recomputes the weights as exp(x - log sum) and subtracts
 * the row term sum_j dW_ij W_ij, times a factor. They are those of E V - y sum E. */
static node with_recomputed_weights(head *h, node y, node logits, node flags)
{
    node most = detached(h, tape_largest(h->t, OVER_COLS, logits));
    node e = exponential(h, minus(h, logits, most));
    double base = has(h, BUG_SUM_IN_BASE_2) ? 1.4426950408889634 : 1;
    double row_term = has(h, BUG_ROW_TERM_SIGN) ? -1 : has(h, BUG_ROW_TERM_TWICE) ? 2 : 1;
    node whole = plus(h, most, tape_of(h->t, TAPE_LOG, sum(h, OVER_COLS, e), 0));
    node w = exponential(h, minus(h, logits, scaled(h, detached(h, whole), base)));
    w = there(h, flags, w);
    node row_of = detached(h, has(h, BUG_ROW_TERM_OF_VALUES) ? h->v : y);
    node row = times(h, row_of, scaled(h, sum(h, OVER_COLS, w), row_term));
    return with_derivatives_of(h, y, minus(h, weigh(h, w, h->v), row));
}

static node softmax(head *h)
{
    static const bug online[] = {BUG_RESCALE_FORGOTTEN, BUG_SUM_NOT_RESCALED, BUG_SUM_OF_LAST_BLOCK,
                                 BUG_RESCALE_LAST, BUG_RESCALE_BASE_2};
    static const bug recomputed[] = {BUG_SUM_IN_BASE_2, BUG_ROW_TERM_SIGN, BUG_ROW_TERM_TWICE,
                                     BUG_ROW_TERM_OF_VALUES};
    node logits = capped(h, scaled(h, logits_of(h), logit_scale(h)));
    node flags = seen(h, is_causal(h));
    bool blocks = is(h, ARRANGED_ONLINE);
    for (size_t i = 0; i < sizeof online / sizeof *online; i++)
        blocks |= has(h, online[i]);
    if (blocks)
        return online_softmax(h, tape_where(h->t, flags, logits, -INFINITY));
    if (has(h, BUG_BACKWARD_UNMASKED) && is_causal(h))
        return with_derivatives_of(h, attend(h, logits, flags, h->v),
                                   attend(h, logits, seen(h, false), h->v));
    if (has(h, BUG_SPLITS_AVERAGED))
        return two_splits(h, logits, flags);
    for (size_t i = 0; i < sizeof recomputed / sizeof *recomputed; i++)
        if (has(h, recomputed[i]))
            return with_recomputed_weights(h, attend(h, logits, flags, h->v),
                                           tape_where(h->t, flags, logits, -1e30), flags);
    return attend(h, logits, flags, h->v);
}

/* ---- Distances ---- */

/* exp(-s |x - y|^2) */
static node kernel_of(head *h, node x, node y)
{
    node squares;
    bool expanded =
        is(h, ARRANGED_EXPANDED) || has(h, BUG_DISTANCE_CROSS) || has(h, BUG_DISTANCE_KEYS);
    if (!expanded)
        squares = tape_distances(h->t, x, y);
    else {
        node xx = sum(h, OVER_COLS, square(h, x)), yy = sum(h, OVER_COLS, square(h, y));
        node xy = scaled(h, dot_nt(h, x, y), has(h, BUG_DISTANCE_CROSS) ? 1 : 2);
        node both = has(h, BUG_DISTANCE_KEYS) ? xx : plus(h, xx, tape_transposed(h->t, yy));
        squares = minus(h, both, xy);
    }
    if (has(h, BUG_DISTANCE_ROOT))
        squares = root(h, at_least(h, squares, 1e-12));
    return exponential(h, scaled(h, squares, -kernel_scale(h)));
}

static node gaussian(head *h)
{
    return weigh(h, there(h, seen(h, false), kernel_of(h, h->q, h->k)), h->v);
}

/* ---- SOFT ---- */

/* The landmark to which token i of the grid belongs; -1: none. */
static int64_t landmark_of(const head *h, int64_t i, int64_t m)
{
    const atn_sampling *s = &h->c->reference.sampling;
    int64_t y = i / s->width / s->stride, x = i % s->width / s->stride;
    if (has(h, BUG_LANDMARKS_FIRST))
        return i < m ? i : -1;
    if (has(h, BUG_LANDMARKS_LAST)) {
        int64_t n = s->height * s->width, next = (i + 1) * m / n;
        return i + 1 == n || next > i * m / n ? i * m / n : -1;
    }
    if (has(h, BUG_LANDMARKS_WINDOW))
        return i * m / (s->height * s->width);
    bool inside = y < s->height / s->stride && x < s->width / s->stride;
    return inside ? y * (s->width / s->stride) + x : -1;
}

static node landmarks_of(head *h)
{
    const atn_sampling *s = &h->c->reference.sampling;
    int64_t n = h->c->shape.tokens, m = s->height / s->stride * (s->width / s->stride);
    double *member = must_allocate((size_t)(m * n), sizeof *member);
    for (int64_t i = 0; i < n; i++)
        if (landmark_of(h, i, m) >= 0)
            member[landmark_of(h, i, m) * n + i] = 1;
    bool one = has(h, BUG_LANDMARKS_FIRST) || has(h, BUG_LANDMARKS_LAST);
    double count = one || has(h, BUG_LANDMARKS_SUM) ? 1
                   : has(h, BUG_LANDMARKS_WINDOW)   ? (double)n / (double)m
                                                    : (double)(s->stride * s->stride);
    node l = scaled(h, dot(h, tape_constant(h->t, m, n, member), h->q), 1 / count);
    free(member);
    return detached_if(h, BUG_LANDMARKS_DETACHED, l);
}

static node norm_1(head *h, node a)
{
    return tape_largest(h->t, OVER_COLS, sum(h, OVER_ROWS, tape_of(h->t, TAPE_ABS, a, 0)));
}

static int steps_of(const head *h, int published)
{
    return has(h, BUG_STEPS_FEW) ? published / 2 : published - has(h, BUG_STEPS_ONE_LESS);
}

/* Newton-Raphson (IJCV Eq. 10). Its derivative is -X dA X (Eq. 12) with the last iterate X; it
 * comes from a term whose value is 0. */
static node soft_inverse(head *h, node a)
{
    const atn_inverse_desc *o = &h->c->reference.inverse;
    double ridge = has(h, BUG_RIDGE) ? 0.01 - o->ridge : o->ridge;
    node b = ridge > 0 ? plus(h, a, identity(h, rows_of(h, a), ridge)) : a;
    node alpha = over(h, filled(h, 1, 1, o->numerator), square(h, norm_1(h, a)));
    node x = times(h, b, detached(h, alpha));
    for (int i = 0; i < steps_of(h, o->iterations); i++)
        x = detached(h, minus(h, scaled(h, x, 2), dot(h, dot(h, x, b), x)));
    if (has(h, BUG_INVERSE_DETACHED))
        return x;
    node xbx = dot(h, dot(h, x, b), x);
    return minus(h, x, minus(h, xbx, detached(h, xbx)));
}

static node soft(head *h)
{
    node l = landmarks_of(h), a = kernel_of(h, l, l), p = kernel_of(h, h->q, l);
    node x = soft_inverse(h, a), right = detached_if(h, BUG_SIDE_DETACHED, p);
    node d = sum(h, OVER_COLS, a);
    if (!has(h, BUG_NORMALISATION_ROOT))
        d = root(h, d);
    if (h->c->choice.op == ATN_SOFTPP && !has(h, BUG_NORMALISATION_MISSING))
        x = over(h, over(h, x, d), tape_transposed(h->t, d));
    node state_v = over_tokens(h, right, h->v);
    return dot(h, p, has(h, BUG_INVERSE_MISSING) ? state_v : dot(h, x, state_v));
}

/* ---- Norms ---- */

/* The sums in a norm, of |x| or of squares, along an axis. */
static node norm_sums(head *h, node x, tape_axis axis, bool squares)
{
    const tape_single absolute = has(h, BUG_SIGN_MISSING) ? TAPE_ABS_UNSIGNED : TAPE_ABS;
    int64_t count = axis == OVER_ROWS ? rows_of(h, x) : tape_cols(h->t, x);
    if (has(h, BUG_NORM_TILE) && axis == OVER_ROWS && count > 16)
        x = tape_slice(h->t, x, 0, count > 64 ? 64 : 16);
    node terms = squares                   ? square(h, x)
                 : has(h, BUG_NORM_SIGNED) ? x
                                           : tape_of(h->t, absolute, x, 0);
    node s = has(h, BUG_NORM_LARGEST) ? tape_largest(h->t, axis, terms) : sum(h, axis, terms);
    if (has(h, BUG_NORM_ALL))
        s = sum(h, axis == OVER_ROWS ? OVER_COLS : OVER_ROWS, s);
    if (has(h, BUG_NORM_MEAN))
        s = scaled(h, s, 1 / (double)count);
    return has(h, BUG_EPSILON_LARGE) ? shifted(h, s, 0.01 * (double)count) : s;
}

/* l1 or l2 norms of at least epsilon. Sums of squares are limited before the root, whose derivative
 * at 0 is infinite. */
static node norms(head *h, node x, tape_axis axis, bool squares, double epsilon)
{
    if (has(h, BUG_NORM_OTHER))
        squares = !squares;
    node s = norm_sums(h, x, axis, squares);
    bool unraised = has(h, BUG_EPSILON_FORGOTTEN) || has(h, BUG_NORM_SIGNED);
    bool raised = epsilon > 0 && !unraised, late = has(h, BUG_ROOT_OF_ZERO);
    if (raised && !late)
        s = at_least(h, s, squares ? epsilon * epsilon : epsilon);
    if (squares && !has(h, BUG_NORM_SQUARED))
        s = root(h, s);
    if (raised && late)
        s = at_least(h, s, epsilon);
    return detached_if(h, BUG_NORM_DETACHED, s);
}

/* Divides columns by their norms over the tokens. */
static node column_norms(head *h, node x, double epsilon, bool keys, bool squares)
{
    bool wrong = has(h, BUG_NORM_AXIS) || (keys && has(h, BUG_NORM_AXIS_KEYS));
    return norms(h, x, wrong ? OVER_COLS : OVER_ROWS, squares, epsilon);
}

static node normalised(head *h, node x, double epsilon, bool keys, bool squares)
{
    if (has(h, keys ? BUG_NORM_OF_K_MISSING : BUG_NORM_OF_Q_MISSING))
        return x;
    int64_t n = rows_of(h, x), tile = 16;
    if (has(h, BUG_NORM_TILES) && n > tile) {
        node all = NO_NODE;
        for (int64_t first = 0; first < n; first += tile) {
            node part = tape_slice(h->t, x, first, n - first < tile ? n - first : tile);
            part = over(h, part, column_norms(h, part, epsilon, keys, squares));
            all = first ? tape_below(h->t, all, part) : part;
        }
        return all;
    }
    node given = keys ? h->k_given : h->q_given;
    node from = has(h, BUG_NORM_OF_K) && !keys ? h->k : has(h, BUG_NORM_PADDED) ? given : x;
    return over(h, x, column_norms(h, from, epsilon, keys, squares));
}

static node sima(head *h)
{
    double epsilon = h->c->reference.sima.epsilon;
    h->q = there(h, h->query_there, h->q);
    h->k = there(h, h->key_there, h->k);
    if (has(h, BUG_LOGITS_SCALED))
        h->v = scaled(h, h->v, 1 / sqrt((double)h->c->shape.dim));
    node k = normalised(h, h->k, epsilon, true, false);
    if (is(h, ARRANGED_DIVIDED_LATE) && !has(h, BUG_NORM_AXIS) && !has(h, BUG_NORM_OF_K) &&
        !has(h, BUG_NORM_OF_Q_MISSING)) {
        node s = state(h, k, h->v);
        node norm = tape_transposed(h->t, column_norms(h, h->q, epsilon, false, false));
        return dot(h, h->q, over(h, s, norm));
    }
    node q = normalised(h, h->q, epsilon, false, false);
    if (is(h, ARRANGED_TOKENS_FIRST))
        return weigh(h, dot_nt(h, q, k), h->v);
    return dot(h, q, state(h, k, h->v));
}

/* The sum of squares of a token's channels in the other heads, n x 1. */
static node squares_of_other_heads(head *h)
{
    const atn_attention_shape *s = &h->c->shape;
    double *sums = must_allocate((size_t)s->tokens, sizeof *sums);
    for (int64_t other = 0; other < s->heads; other++)
        for (int64_t i = 0; other != h->head && i < s->tokens * s->dim; i++) {
            double x = h->c->q[(h->batch * s->heads + other) * s->tokens * s->dim + i];
            sums[i / s->dim] += x * x;
        }
    node x = tape_constant(h->t, s->tokens, 1, sums);
    free(sums);
    return x;
}

static node xnorm(head *h)
{
    node gamma = h->parameters[ATN_PARAMETER_GAMMA];
    if (has(h, BUG_TAU_EXP))
        gamma = tape_of(h->t, TAPE_EXP, gamma, 0);
    h->k = there(h, h->key_there, h->k);
    bool wrong = has(h, BUG_NORM_AXIS);
    node s = state(h, h->k, h->v), q_norm = norms(h, h->q, OVER_COLS, true, 0);
    if (has(h, BUG_NORM_BEFORE_HEADS))
        q_norm = root(h, plus(h, square(h, q_norm), squares_of_other_heads(h)));
    node unit = over(h, s, norms(h, s, wrong ? OVER_COLS : OVER_ROWS, true, 0));
    if (!has(h, BUG_GAMMA_IGNORED) && !has(h, BUG_GAMMA_ONCE))
        unit = times(h, unit, gamma);
    if (is(h, ARRANGED_DIVIDED_LATE))
        return times(h, over(h, dot(h, h->q, unit), q_norm), gamma);
    node q = has(h, BUG_NORM_OF_Q_MISSING) ? h->q : over(h, h->q, q_norm);
    return dot(h, has(h, BUG_GAMMA_IGNORED) ? q : times(h, q, gamma), unit);
}

static node xca(head *h)
{
    double epsilon = h->c->reference.xca.epsilon;
    node tau = h->parameters[ATN_PARAMETER_TEMPERATURE];
    if (has(h, BUG_TAU_EXP))
        tau = tape_of(h->t, TAPE_EXP, tau, 0);
    if (has(h, BUG_TAU_WIDTH))
        tau = scaled(h, tau, 1 / sqrt((double)h->c->shape.dim));
    node present = times(h, h->query_there, h->key_there);
    h->q = there(h, present, h->q);
    h->k = there(h, present, h->k);
    node q = normalised(h, h->q, epsilon, false, true);
    node k = normalised(h, h->k, epsilon, true, true);
    node logits = state(h, q, k);
    if (!has(h, BUG_GAMMA_IGNORED) && !has(h, BUG_TAU_LATE))
        logits = tape_with(h->t, has(h, BUG_TAU_DIVIDES) ? TAPE_DIV : TAPE_MUL, logits, tau);
    node a = softmax_over(h, other(h, BUG_WRONG_AXIS, OVER_COLS), logits);
    if (has(h, BUG_TAU_LATE))
        a = times(h, a, tau);
    if (has(h, BUG_MATRIX_TRANSPOSED))
        a = tape_transposed(h->t, a);
    return there(h, present, dot_nt(h, h->v, a));
}

static node efficient(head *h)
{
    if (has(h, BUG_LOGITS_SCALED))
        h->q = scaled(h, h->q, 1 / sqrt((double)h->c->shape.dim));
    node keys = tape_where(h->t, h->key_there, h->k, -INFINITY);
    tape_axis axis = has(h, BUG_WRONG_AXIS) || has(h, BUG_KEY_WEIGHTS) ? OVER_COLS : OVER_ROWS;
    if (axis == OVER_COLS)
        keys = h->k;
    node k = softmax_over(h, axis, has(h, BUG_NORM_PADDED) ? h->k : keys);
    if (has(h, BUG_NORM_PADDED))
        k = there(h, h->key_there, k);
    node q = has(h, BUG_QUERY_WEIGHTS) ? h->q
                                       : softmax_over(h, other(h, BUG_WRONG_AXIS, OVER_COLS), h->q);
    if (is(h, ARRANGED_TOKENS_FIRST))
        return weigh(h, dot_nt(h, q, k), h->v);
    return dot(h, q, state(h, k, h->v));
}

/* ---- Ratios: phi(q) phi(k)^T V over phi(q) phi(k)^T 1 ---- */

typedef struct {
    node q, k; /* features */
    double epsilon;
    bool clamped; /* max(sum, epsilon), not sum + epsilon */
} features;

static node safe(head *h, const features *f, node s)
{
    double epsilon = f->epsilon;
    if (has(h, BUG_EPSILON_LARGE))
        s = shifted(h, s, 0.01 * (double)rows_of(h, h->k));
    s = f->clamped ? at_least(h, s, epsilon) : shifted(h, s, epsilon);
    return detached_if(h, BUG_SUM_DETACHED, s);
}

static node ratio_by_tokens(head *h, const features *f)
{
    node all = there(h, seen(h, false), dot_nt(h, f->q, f->k));
    node a = is_causal(h) ? there(h, seen(h, true), all) : all;
    node for_sum = has(h, BUG_CAUSAL_DENOMINATOR) ? there(h, seen(h, true), all)
                   : has(h, BUG_FULL_DENOMINATOR) ? all
                                                  : a;
    node y = weigh(h, a, h->v);
    return has(h, BUG_NOT_DIVIDED) ? y : over(h, y, safe(h, f, sum(h, OVER_COLS, for_sum)));
}

static node ratio(head *h, features f)
{
    bool late_mask = has(h, BUG_CAUSAL_DENOMINATOR) || has(h, BUG_FULL_DENOMINATOR);
    f.k = there(h, h->key_there, f.k);
    if (is(h, ARRANGED_TOKENS_FIRST) || h->c->reference.causal || late_mask)
        return ratio_by_tokens(h, &f);
    node y = dot(h, f.q, state(h, f.k, h->v));
    node summed = has(h, BUG_SUM_OF_QUERIES) ? f.q : f.k;
    if (has(h, BUG_DENOMINATOR_TAIL))
        summed = tape_slice(h->t, f.k, 0, rows_of(h, f.k) - tail_of(rows_of(h, f.k), 16));
    node z = sum(h, OVER_ROWS, summed);
    if (has(h, BUG_NOT_DIVIDED))
        return y;
    if (has(h, BUG_DIVIDED_BY_N))
        return scaled(h, y, 1 / (double)rows_of(h, f.k));
    return over(h, y, safe(h, &f, dot_nt(h, f.q, detached_if(h, BUG_KEY_SUM_DETACHED, z))));
}

static node elu_features(head *h, node x)
{
    if (has(h, BUG_ELU_WITHOUT_1))
        return tape_of(h->t, TAPE_ELU, x, 0);
    if (has(h, BUG_ELU_BRANCH))
        return tape_of(h->t, TAPE_ELU_BRANCH, x, 0);
    return tape_of(h->t, TAPE_ELU_1, x, 0);
}

static node elu(head *h)
{
    if (has(h, BUG_LOGITS_SCALED))
        h->q = scaled(h, h->q, 1 / sqrt((double)h->c->shape.dim));
    features f = {.q = has(h, BUG_FEATURES_OF_K_ONLY) ? h->q : elu_features(h, h->q),
                  .k = has(h, BUG_KEYS_RELU) ? tape_of(h->t, TAPE_RELU, h->k, 0)
                                             : elu_features(h, h->k),
                  .epsilon = h->c->reference.elu.epsilon};
    return ratio(h, f);
}

/* [x cos, x sin] of each token's angle; sign: of the sines. */
static node turned(head *h, node x, int64_t first, double sign)
{
    int64_t n = rows_of(h, x), q = h->c->shape.tokens;
    int64_t most = q > h->c->shape.key_tokens ? q : h->c->shape.key_tokens;
    double length =
        (double)(h->c->reference.cosformer.length > 0 ? h->c->reference.cosformer.length : most);
    length += has(h, BUG_LENGTH_WRONG) ? 64 : 0;
    length *= has(h, BUG_LENGTH_OTHER) ? 3 : 1;
    double *cosines = must_allocate((size_t)n, sizeof *cosines);
    double *sines = must_allocate((size_t)n, sizeof *sines);
    for (int64_t i = 0; i < n; i++) {
        double angle = 1.5707963267948966 * (double)(i + first) / length;
        cosines[i] = cos(angle), sines[i] = sign * sin(angle);
    }
    node c = times(h, x, tape_constant(h->t, n, 1, cosines));
    node s = times(h, x, tape_constant(h->t, n, 1, sines));
    free(cosines), free(sines);
    if (has(h, BUG_SIN_MISSING))
        return c;
    return tape_transposed(h->t,
                           tape_below(h->t, tape_transposed(h->t, c), tape_transposed(h->t, s)));
}

static node cosformer(head *h)
{
    node q = has(h, BUG_FEATURES_OF_K_ONLY) ? h->q : tape_of(h->t, TAPE_RELU, h->q, 0);
    node k = tape_of(h->t, TAPE_RELU, h->k, 0);
    bool plain = has(h, BUG_WEIGHTS_IGNORED);
    double sign = has(h, BUG_SIN_SIGN) ? -1 : 1;
    int64_t first = h->first_key + has(h, BUG_POSITIONS_SHIFTED);
    features f = {.q = plain ? q : turned(h, q, 0, sign),
                  .k = plain ? k : turned(h, k, first, 1),
                  .epsilon = h->c->reference.cosformer.epsilon,
                  .clamped = true};
    return ratio(h, f);
}

/* This head's matrix of a tensor, as a constant. */
static node constant_of(head *h, const atn_tensor *w)
{
    const double *values = w->data;
    int64_t which = w->heads == 1 ? 0 : h->head;
    return tape_constant(h->t, w->rows, w->cols, values + which * w->rows * w->cols);
}

static node performer_features(head *h, node x, bool keys)
{
    const atn_performer_options *o = &h->c->reference.performer;
    double scale = has(h, BUG_SCALE_MISSING) ? 1 : 1 / sqrt(sqrt((double)h->c->shape.dim));
    node w = constant_of(h, &o->projection);
    if (has(h, BUG_FEATURES_HALF))
        w = tape_slice(h->t, w, 0, o->projection.rows / 2);
    node y = scaled(h, x, scale), wx = dot_nt(h, y, w);
    node half = scaled(h, sum(h, OVER_COLS, square(h, y)), 0.5);
    node most =
        tape_largest(h->t, OVER_COLS, keys ? tape_where(h->t, h->key_there, wx, -INFINITY) : wx);
    if (keys && !has(h, BUG_STABILISER_PER_KEY))
        most = tape_largest(h->t, OVER_ROWS, most);
    node exponent = has(h, BUG_HALF_SQUARE) ? wx : minus(h, wx, half);
    exponent = minus(h, exponent, detached_if(h, BUG_STABILISER_DETACHED, most));
    node e = tape_of(h->t, TAPE_EXP, exponent, 0);
    if (!has(h, BUG_FEATURE_EPSILON))
        e = shifted(h, e, o->feature_epsilon);
    return scaled(h, e, 1 / sqrt((double)o->projection.rows));
}

static node performer(head *h)
{
    features f = {.q = performer_features(h, h->q, false),
                  .k = performer_features(h, h->k, true),
                  .epsilon = 0};
    return ratio(h, f);
}

static node fourier(head *h, node x, bool keys)
{
    const atn_tensor *w = &h->c->reference.rff.projection;
    double s = kernel_scale(h), factor = has(h, BUG_FEATURE_SCALE) ? 1 : 2;
    node wx = scaled(h, dot_nt(h, x, constant_of(h, w)), sqrt(factor * s));
    node c = tape_of(h->t, TAPE_COS, wx, 0), sine = tape_of(h->t, TAPE_SIN, wx, 0);
    if (has(h, BUG_SIN_SIGN) && !keys)
        sine = scaled(h, sine, -1);
    node both = has(h, BUG_SIN_MISSING)
                    ? c
                    : tape_transposed(h->t, tape_below(h->t, tape_transposed(h->t, c),
                                                       tape_transposed(h->t, sine)));
    return has(h, BUG_FEATURE_COUNT) ? both : scaled(h, both, 1 / sqrt((double)w->rows));
}

static node rff(head *h)
{
    node k = there(h, h->key_there, fourier(h, h->k, true));
    return dot(h, fourier(h, h->q, false), state(h, k, h->v));
}

/* ---- Linformer, Nystromformer ---- */

static node linformer(head *h)
{
    node e = h->parameters[ATN_PARAMETER_E], f = h->parameters[ATN_PARAMETER_F];
    int64_t keys = rows_of(h, h->k);
    if (f == NO_NODE || has(h, BUG_PROJECTION_ONE))
        f = e;
    if (has(h, BUG_PROJECTIONS_SWAPPED)) {
        node kept = e;
        e = f, f = kept;
    }
    e = tape_slice(h->t, e, has(h, BUG_PROJECTION_SHIFTED), keys);
    f = tape_slice(h->t, f, 0, keys);
    h->k = there(h, h->key_there, h->k);
    h->v = there(h, h->key_there, h->v);
    node k = over_tokens(h, e, h->k), v = over_tokens(h, f, h->v);
    if (has(h, BUG_PROJECTION_HALF)) {
        k = tape_slice(h->t, k, 0, rows_of(h, k) / 2);
        v = tape_slice(h->t, v, 0, rows_of(h, v) / 2);
    }
    node logits = capped(h, scaled(h, dot_nt(h, h->q, k), logit_scale(h)));
    return dot(h, softmax_over(h, OVER_COLS, logits), v);
}

/* Means of m segments of consecutive tokens; the last n mod m segments have one token more. */
static node segment_means(head *h, node x, int64_t m)
{
    int64_t n = rows_of(h, x), shorter = m - n % m, i = 0;
    double *member = must_allocate((size_t)(m * n), sizeof *member);
    double *factor = must_allocate((size_t)m, sizeof *factor);
    bool last = has(h, BUG_LANDMARKS_LAST);
    for (int64_t l = 0; l < m; l++) {
        int64_t length = n / m + (l >= shorter);
        factor[l] = last || has(h, BUG_LANDMARKS_SUM) ? 1 : 1 / (double)length;
        for (int64_t end = i + length; i < end; i++)
            member[l * n + i] = !last || i + 1 == end;
    }
    node means = dot(h, tape_constant(h->t, m, n, member), x);
    means = times(h, means, tape_constant(h->t, m, 1, factor));
    free(member), free(factor);
    return detached_if(h, BUG_LANDMARKS_DETACHED, means);
}

/* factor I - x */
static node from_identity(head *h, double factor, node x)
{
    return minus(h, identity(h, rows_of(h, x), factor), x);
}

static node nystrom_inverse(head *h, node a)
{
    int steps = steps_of(h, h->c->reference.nystromformer.iterations);
    node norm = detached_if(h, BUG_ALPHA_DETACHED, norm_1(h, a));
    node z = over(h, has(h, BUG_START_TRANSPOSED) ? a : tape_transposed(h->t, a), norm);
    for (int i = 0; i < steps; i++) {
        node az = dot(h, a, z);
        node inner = from_identity(h, 15, dot(h, az, from_identity(h, 7, az)));
        z = scaled(h, dot(h, z, from_identity(h, 13, dot(h, az, inner))), 0.25);
    }
    return detached_if(h, BUG_INVERSE_DETACHED, z);
}

static node nystromformer(head *h)
{
    int64_t m = h->c->reference.nystromformer.landmarks / (has(h, BUG_LANDMARKS_HALF) ? 2 : 1);
    double c = logit_scale(h);
    node q = segment_means(h, there(h, h->query_there, h->q), m);
    node k = segment_means(h, there(h, h->key_there, h->k), m);
    node f = softmax_over(h, OVER_COLS, scaled(h, dot_nt(h, h->q, k), c));
    node a = softmax_over(h, OVER_COLS, scaled(h, dot_nt(h, q, k), c));
    node b = attend(h, scaled(h, dot_nt(h, q, h->k), c), seen(h, false), h->v);
    return dot(h, f, has(h, BUG_INVERSE_MISSING) ? b : dot(h, nystrom_inverse(h, a), b));
}

/* ---- All operators ---- */

static node (*const kernels[ATN_OPERATOR_COUNT])(head *) = {
    [ATN_SOFT] = soft,
    [ATN_SOFTPP] = soft,
    [ATN_GAUSSIAN] = gaussian,
    [ATN_SOFTMAX] = softmax,
    [ATN_SIMA] = sima,
    [ATN_XNORM] = xnorm,
    [ATN_LINFORMER] = linformer,
    [ATN_XCA] = xca,
    [ATN_EFFICIENT] = efficient,
    [ATN_ELU] = elu,
    [ATN_COSFORMER] = cosformer,
    [ATN_PERFORMER] = performer,
    [ATN_RFF] = rff,
    [ATN_NYSTROMFORMER] = nystromformer,
};

bool kernel_exists(atn_operator op)
{
    return kernels[op] != NULL;
}

/* ---- Inputs ---- */

/* This head's matrix of x, which is b x h x rows x cols. shift: its rows are moved by one. */
static node input_of(head *h, const double *x, int64_t batch, int64_t which, int64_t rows,
                     int64_t cols, bool shift)
{
    const double *from = x + (batch * h->c->shape.heads + which) * rows * cols;
    node whole = tape_input(h->t, rows, cols, from);
    if (!shift)
        return whole;
    return tape_below(h->t, tape_slice(h->t, whole, 1, rows - 1), tape_slice(h->t, whole, 0, 1));
}

/* The row, among those of all heads, that is read as row i of the head's K or V; -1: none, it is
 * 0. */
static int64_t misread_row(const head *h, int64_t rows, int64_t i)
{
    const atn_attention_shape *s = &h->c->shape;
    int64_t at = h->batch * s->heads + h->head, groups = s->heads / 2;
    if (has(h, BUG_GROUPS_MODULO)) /* two heads in a group, with the same keys */
        at = h->batch * s->heads + h->head % groups * 2;
    if (has(h, BUG_KEYS_HEADS_FIRST))
        at = h->head * s->batch + h->batch;
    if (has(h, BUG_KEYS_TOKENS_FIRST))
        return (h->batch * rows + i) * s->heads + h->head;
    if (has(h, BUG_KEYS_ONE_ROW_ON))
        return at * rows + i + 1 < s->batch * s->heads * rows ? at * rows + i + 1 : -1;
    if (has(h, BUG_CACHE_NOT_WRITTEN) && i == rows - 1)
        return -1;
    return at * rows + i - (has(h, BUG_CACHE_STALE) && i == rows - 1);
}

static node misread_input(head *h, const double *x, int64_t rows, int64_t cols)
{
    double *read = must_allocate((size_t)(rows * cols), sizeof *read);
    for (int64_t i = 0; i < rows; i++)
        if (misread_row(h, rows, i) >= 0)
            memcpy(read + i * cols, x + misread_row(h, rows, i) * cols,
                   (size_t)cols * sizeof *read);
    node whole = tape_input(h->t, rows, cols, read);
    free(read);
    return whole;
}

static node flags_of(head *h, const unsigned char *mask, int64_t rows)
{
    int64_t batch = has(h, BUG_PADDING_OF_BATCH_0) ? 0 : h->batch;
    if (!mask || has(h, BUG_PADDING_IGNORED))
        return tape_flags(h->t, rows, NULL);
    node flags = tape_flags(h->t, rows, mask + batch * rows);
    if (!has(h, BUG_PADDING_INVERTED))
        return flags;
    return minus(h, filled(h, rows, 1, 1), flags);
}

/* Q and K with channels left out, or rotated by i 10000^(-2 p / d) in neighbouring pairs. */
static node channels_changed(head *h, node x)
{
    int64_t rows = rows_of(h, x), d = tape_cols(h->t, x);
    if (has(h, BUG_CHANNELS_HALF)) {
        node some = filled(h, 1, d / 2, 1), others = filled(h, 1, d - d / 2, 0);
        node flags = tape_below(h->t, tape_transposed(h->t, some), tape_transposed(h->t, others));
        return times(h, x, tape_transposed(h->t, flags));
    }
    if (!has(h, BUG_ROTARY))
        return x;
    double *turns = must_allocate((size_t)(2 * rows * d + d * d), sizeof *turns);
    double *of_other = turns + rows * d, *swap = turns + 2 * rows * d;
    for (int64_t i = 0; i < rows * d; i++) {
        double angle = (double)(i / d) * pow(10000, -2 * (double)(i % d / 2) / (double)d);
        turns[i] = cos(angle);
        of_other[i] = i % 2 ? sin(angle) : -sin(angle);
    }
    for (int64_t i = 0; i < d; i++)
        swap[(i ^ 1) * d + i] = 1;
    node other = dot(h, x, tape_constant(h->t, d, d, swap));
    node y = plus(h, times(h, x, tape_constant(h->t, rows, d, turns)),
                  times(h, other, tape_constant(h->t, rows, d, of_other)));
    free(turns);
    return y;
}

/* Appends `count` rows of x from `first` on. */
static node with_rows(head *h, node above, node x, int64_t first, int64_t count)
{
    return count > 0 ? tape_below(h->t, above, tape_slice(h->t, x, first, count)) : above;
}

/* K or V with misread tiles of 16 tokens. */
static node tiles_changed(head *h, node x, bool keys)
{
    int64_t n = rows_of(h, x), tile = 16, tail = n % tile, whole = n - tail;
    if (n <= tile)
        return x;
    node first = tape_slice(h->t, x, 0, tile);
    int64_t second = n - tile < tile ? n - tile : tile;
    if (has(h, BUG_TILE_AGAIN) && !keys)
        return with_rows(h, with_rows(h, first, x, 0, second), x, tile + second, n - tile - second);
    if (has(h, BUG_TILE_OUT) && n > 2 * tile)
        return with_rows(h, first, x, 2 * tile, n - 2 * tile);
    if (has(h, BUG_TAIL_OVERLAPS) && tail > 0)
        return with_rows(h, tape_slice(h->t, x, 0, whole), x, n - tile, tile);
    if (has(h, BUG_KEYS_TAIL_ZERO) && keys && tail > 0)
        return tape_below(h->t, tape_slice(h->t, x, 0, whole),
                          filled(h, tail, tape_cols(h->t, x), 0));
    return x;
}

static void change_reading(head *h)
{
    h->k = tiles_changed(h, h->k, true);
    h->v = tiles_changed(h, h->v, false);
    h->key_there = tiles_changed(h, h->key_there, false);
    h->q = channels_changed(h, h->q);
    h->k = h->c->k || !has(h, BUG_ROTARY) ? channels_changed(h, h->k) : h->q;
}

/* Removes keys, or appends zeros. */
static void change_length(head *h)
{
    int64_t n = rows_of(h, h->k), first = has(h, BUG_FIRST_TOKEN);
    int64_t out = has(h, BUG_LAST_TOKEN) ? 1
                  : has(h, BUG_LAST_4)   ? 4
                  : has(h, BUG_TAIL_16)  ? tail_of(n, 16)
                  : has(h, BUG_TAIL_64)  ? tail_of(n, 64)
                                         : first;
    if (out > 0) {
        h->first_key = first;
        h->k = tape_slice(h->t, h->k, first, n - out);
        h->v = tape_slice(h->t, h->v, first, n - out);
        h->key_there = tape_slice(h->t, h->key_there, first, n - out);
    }
    int64_t more = (64 - n % 64) % 64;
    if (has(h, BUG_ZEROS_BEHIND) && more > 0) {
        h->k = tape_below(h->t, h->k, filled(h, more, h->c->shape.dim, 0));
        h->v = tape_below(h->t, h->v, filled(h, more, h->c->shape.value_dim, 0));
        h->key_there = tape_below(h->t, h->key_there, filled(h, more, 1, 1));
    }
}

static void give_parameters(head *h)
{
    attention_case c = *h->c;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        const atn_tensor *w = atn_attention_parameter(&c.reference, (atn_parameter)p);
        int64_t which = w->heads == 1 || has(h, BUG_GAMMA_OF_HEAD_0) ? 0 : h->head;
        h->parameters[p] = NO_NODE;
        if (w->data)
            h->parameters[p] = tape_input(h->t, w->rows, w->cols,
                                          (const double *)w->data + which * w->rows * w->cols);
    }
}

/* The inputs as given; gradients are taken of these. */
typedef struct {
    node q, k, v;
} given;

static void swap(node *a, node *b)
{
    node kept = *a;
    *a = *b;
    *b = kept;
}

/* e4m3: three fraction bits, evenly spaced below 2^-6. */
static double in_f8(double x, double most)
{
    int exponent;
    frexp(x, &exponent);
    double unit = ldexp(1, (exponent > -5 ? exponent : -5) - 4);
    return fmin(fmax(nearbyint(x / unit) * unit, -448), 448);
}

static double in_int8(double x, double most)
{
    return most > 0 ? nearbyint(x / most * 127) * most / 127 : 0;
}

/* A head's K or V in another type. most: the largest absolute value of a row. */
static node narrowed(head *h, const double *x, int64_t rows, int64_t cols,
                     double (*to)(double x, double most))
{
    double *y = must_allocate((size_t)(rows * cols), sizeof *y);
    for (int64_t i = 0; i < rows * cols; i++) {
        double most = 0;
        for (int64_t j = i / cols * cols; j < (i / cols + 1) * cols; j++)
            most = fmax(most, fabs(x[j]));
        y[i] = to(x[i], most);
    }
    node narrow = tape_input(h->t, rows, cols, y);
    free(y);
    return narrow;
}

/* Reads K and V from the wrong places. */
static void misread_inputs(head *h)
{
    const atn_attention_shape *p = &h->c->shape;
    int64_t head_at = h->batch * p->heads + h->head, keys = p->key_tokens;
    if (has(h, BUG_KEYS_F8) && h->c->k)
        h->k = narrowed(h, h->c->k + head_at * keys * p->dim, keys, p->dim, in_f8);
    if (has(h, BUG_VALUES_INT8))
        h->v = narrowed(h, h->c->v + head_at * keys * p->value_dim, keys, p->value_dim, in_int8);
    static const bug misread[] = {BUG_GROUPS_MODULO,   BUG_KEYS_TOKENS_FIRST, BUG_KEYS_HEADS_FIRST,
                                  BUG_KEYS_ONE_ROW_ON, BUG_CACHE_NOT_WRITTEN, BUG_CACHE_STALE};
    const atn_attention_shape *s = &h->c->shape;
    for (size_t i = 0; i < sizeof misread / sizeof *misread; i++)
        if (has(h, misread[i])) {
            h->k = h->c->k ? misread_input(h, h->c->k, s->key_tokens, s->dim) : h->k;
            h->v = misread_input(h, h->c->v, s->key_tokens, s->value_dim);
        }
}

static given give_inputs(head *h)
{
    const atn_attention_shape *s = &h->c->shape;
    int64_t batch = has(h, BUG_BATCH_STRIDE) ? 0 : h->batch;
    int64_t key_head = has(h, BUG_KEYS_OF_HEAD_0) ? 0 : h->head;
    int64_t value_head = has(h, BUG_VALUES_OF_HEAD_0) ? 0 : h->head;
    given g;
    h->q = input_of(h, h->c->q, h->batch, h->head, s->tokens, s->dim, false);
    bool alone = has(h, BUG_QUERIES_ALONE) || has(h, BUG_KEYS_ALONE);
    h->k = h->c->k ? input_of(h, h->c->k, batch, key_head, s->key_tokens, s->dim,
                              has(h, BUG_KEYS_SHIFTED))
           : alone ? input_of(h, h->c->q, h->batch, h->head, s->tokens, s->dim, false)
                   : h->q;
    h->v = input_of(h, h->c->v, batch, value_head, s->key_tokens, s->value_dim,
                    has(h, BUG_VALUES_SHIFTED));
    misread_inputs(h);
    g.q = has(h, BUG_KEYS_ALONE) ? h->k : h->q;
    g.k = h->k, g.v = h->v;
    h->q_given = h->q, h->k_given = h->k;
    h->query_there = flags_of(h, h->c->query_mask, s->tokens);
    h->key_there = flags_of(h, h->c->key_mask, s->key_tokens);
    bool alike = s->tokens == s->key_tokens;
    if (has(h, BUG_KEYS_ARE_QUERIES) && alike)
        h->k = h->q;
    if (has(h, BUG_QUERIES_KEYS) && alike)
        swap(&h->q, &h->k);
    if (has(h, BUG_KEYS_VALUES))
        swap(&h->k, &h->v);
    change_length(h);
    change_reading(h);
    give_parameters(h);
    return g;
}

/* ---- Results ---- */

/* Adds a gradient (null: none) to a result, as kernels that accumulate do. */
static void accumulate(const head *h, node x, int64_t count, double *to)
{
    const double *from = x == NO_NODE ? NULL : tape_gradient(h->t, x);
    for (int64_t i = 0; from && to && i < count; i++)
        to[i] = round_stored(&h->choice->arithmetic, to[i] + from[i]);
}

static void take_gradients(head *h, const given *g, double *results[RESULT_COUNT])
{
    const atn_attention_shape *s = &h->c->shape;
    int64_t at = h->batch * s->heads + h->head, q = s->tokens * s->dim;
    int64_t k = s->key_tokens * s->dim, v = s->key_tokens * s->value_dim;
    attention_case c = *h->c;
    accumulate(h, g->q, q, results[RESULT_TOKENS] + at * q);
    if (results[RESULT_KEYS])
        accumulate(h, g->k, k, results[RESULT_KEYS] + at * k);
    accumulate(h, g->v, v, results[RESULT_VALUES] + at * v);
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        const atn_tensor *w = atn_attention_parameter(&c.reference, (atn_parameter)p);
        double *to = results[RESULT_PARAMETERS + p];
        int64_t which = w->heads == 1 || has(h, BUG_GAMMA_OF_HEAD_0) ? 0 : h->head;
        if (to && !(has(h, BUG_GRADIENT_BATCH) && h->batch > 0))
            accumulate(h, h->parameters[p], w->rows * w->cols, to + which * w->rows * w->cols);
    }
}

static void run_head(const attention_case *c, const kernel_choice *choice, const arithmetic *a,
                     int64_t batch, int64_t which, const double *dy, double *state_before,
                     double *results[RESULT_COUNT])
{
    const atn_attention_shape *s = &c->shape;
    int64_t size = s->tokens * s->value_dim, at = (batch * s->heads + which) * size;
    head h = {.t = tape_create(a),
              .c = c,
              .choice = choice,
              .batch = batch,
              .head = which,
              .state = state_before};
    given g = give_inputs(&h);
    node y = kernels[c->choice.op](&h);
    if (!has(&h, BUG_PADDED_QUERIES))
        y = there(&h, h.query_there, y); /* rows of padded queries are 0 */
    if (rows_of(&h, y) * tape_cols(h.t, y) != size)
        end_program("a kernel's output has another size");
    if (results[RESULT_OUTPUT])
        memcpy(results[RESULT_OUTPUT] + at, tape_value(h.t, y), (size_t)size * sizeof(double));
    if (choice->gradients) {
        tape_backward(h.t, y, dy + at);
        take_gradients(&h, &g, results);
    }
    tape_free(h.t);
}

static void run_heads(const attention_case *c, const kernel_choice *choice, const double *dy,
                      double *results[RESULT_COUNT])
{
    arithmetic a = spoilt_arithmetic(&choice->arithmetic, choice->bug);
    kernel_choice spoilt = *choice;
    spoilt.arithmetic = a;
    int64_t d = c->shape.dim > c->shape.value_dim ? c->shape.dim : c->shape.value_dim;
    int64_t most = 2 * d > 2048 ? 2 * d : 2048; /* width of the features */
    double *before = must_allocate((size_t)(most * d), sizeof *before);
    for (int64_t b = 0; b < c->shape.batch; b++)
        for (int64_t h = 0; h < c->shape.heads; h++)
            run_head(c, &spoilt, &a, b, h, dy, before, results);
    free(before);
}

static double *room_for(const attention_case *c, result_kind kind)
{
    return result_exists(c, kind) ? must_allocate((size_t)result_size(c, kind), sizeof(double))
                                  : NULL;
}

/* Replaces the results of the kinds from ... to by those of another problem or kernel. */
static void run_in_place(const attention_case *c, const kernel_choice *choice, const double *dy,
                         result_kind from, result_kind to, double *results[RESULT_COUNT])
{
    double *others[RESULT_COUNT] = {NULL};
    for (int kind = 0; kind < RESULT_COUNT; kind++)
        others[kind] =
            kind == RESULT_OUTPUT || choice->gradients ? room_for(c, (result_kind)kind) : NULL;
    run_heads(c, choice, dy, others);
    for (int kind = from; kind <= (int)to; kind++) {
        double *kept = results[kind];
        results[kind] = others[kind];
        others[kind] = kept;
    }
    kernel_free(others);
}

/* dK and dV from a dY whose last rows were not read, or were read alone. */
static void run_with_tail(const attention_case *c, const kernel_choice *choice,
                          double *results[RESULT_COUNT])
{
    int64_t n = c->shape.tokens, d = c->shape.value_dim, count = attention_case_outputs(c);
    bool last = choice->bug == BUG_GRADIENT_LAST_DY;
    double *dy = must_allocate((size_t)count, sizeof *dy);
    for (int64_t i = 0; i < count; i++)
        dy[i] = (i / d % n >= n - tail_of(n, 64)) == last ? c->dout[i] : 0;
    run_in_place(c, choice, dy, RESULT_KEYS, RESULT_VALUES, results);
    free(dy);
}

/* dV = W dY. */
static void run_untransposed(const attention_case *c, const kernel_choice *choice,
                             double *results[RESULT_COUNT])
{
    attention_case of_dy = *c;
    kernel_choice forward = *choice;
    if (c->shape.tokens != c->shape.key_tokens || !results[RESULT_VALUES])
        return;
    of_dy.v = c->dout;
    forward.gradients = false;
    double *output[RESULT_COUNT] = {room_for(c, RESULT_OUTPUT)};
    run_heads(&of_dy, &forward, c->dout, output);
    free(results[RESULT_VALUES]);
    results[RESULT_VALUES] = output[RESULT_OUTPUT];
}

/* The bug of the forward pass that corresponds to one of the backward pass alone. */
static bug of_both_passes(bug b)
{
    return b == BUG_BACKWARD_NO_PADDING ? BUG_PADDING_IGNORED
           : b == BUG_BACKWARD_NO_SCALE ? BUG_SCALE_MISSING
                                        : b;
}

/* dY as the kernel reads it; to be freed. */
static double *read_dy(const attention_case *c, bug b)
{
    int64_t n = c->shape.tokens, d = c->shape.value_dim, count = attention_case_outputs(c);
    double *dy = must_allocate((size_t)count, sizeof *dy);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i / d % n, col = i % d, first = i - row * d - col;
        dy[i] = b == BUG_GRADIENT_OF_ONES         ? 1
                : b == BUG_GRADIENT_DY_TRANSPOSED ? c->dout[first + col * n + row]
                                                  : c->dout[i];
    }
    return dy;
}

void kernel_run(const attention_case *c, const kernel_choice *choice, double *results[RESULT_COUNT])
{
    double *dy = read_dy(c, choice->bug);
    kernel_choice both = *choice, right = *choice;
    both.bug = of_both_passes(choice->bug);
    right.bug = NO_BUG;
    for (int kind = 0; kind < RESULT_COUNT; kind++)
        results[kind] =
            kind == RESULT_OUTPUT || choice->gradients ? room_for(c, (result_kind)kind) : NULL;
    run_heads(c, &both, dy, results);
    if (both.bug != choice->bug)
        run_in_place(c, &right, dy, RESULT_OUTPUT, RESULT_OUTPUT, results);
    if ((choice->bug == BUG_GRADIENT_TAIL_DY || choice->bug == BUG_GRADIENT_LAST_DY) &&
        choice->gradients)
        run_with_tail(c, choice, results);
    if (choice->bug == BUG_GRADIENT_UNTRANSPOSED)
        run_untransposed(c, &right, results);
    spoil_results(c, choice, results);
    free(dy);
}

void kernel_free(double *results[RESULT_COUNT])
{
    for (int kind = 0; kind < RESULT_COUNT; kind++) {
        free(results[kind]);
        results[kind] = NULL;
    }
}
