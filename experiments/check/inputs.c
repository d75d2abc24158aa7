/* SPDX-License-Identifier: BSD-3-Clause */
/* What a kernel may have read, or left out, in the place of its inputs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/hypotheses.h"
#include "common/report.h"

static bool can(const trial *t, unsigned capability)
{
    return atn_operator_get(t->s.c.reference.op)->capabilities & capability;
}

/* ---- Tails ---- */

/* The last so many tokens; of a modulus, those behind its last multiple. */
static const struct {
    int64_t count, modulus;
} tails[TAILS] = {{1, 0},  {2, 0},   {3, 0},  {4, 0},  {8, 0},  {16, 0},  {32, 0},
                  {64, 0}, {128, 0}, {0, 16}, {0, 32}, {0, 64}, {0, 128}, {0, 256}};

#define TAIL_TEXTS(what)                                                                           \
    what " the last token", what " the last 2 tokens", what " the last 3 tokens",                  \
        what " the last 4 tokens", what " the last 8 tokens", what " the last 16 tokens",          \
        what " the last 32 tokens", what " the last 64 tokens", what " the last 128 tokens",       \
        what " the last tile, n mod 16", what " the last tile, n mod 32",                          \
        what " the last tile, n mod 64", what " the last tile, n mod 128",                         \
        what " the last tile, n mod 256", NULL

const char *const left_out_texts[] = {TAIL_TEXTS("left out:")};
const char *const product_texts[] = {TAIL_TEXTS("left out of the product alone:")};
const char *const twice_texts[] = {TAIL_TEXTS("counted twice:")};

/* How many keys; 0: none, or as many as another row of the table has. */
static int64_t tail_of(const trial *t, int value)
{
    int64_t keys = t->s.c.shape.key_tokens;
    int64_t count = tails[value].modulus ? keys % tails[value].modulus : tails[value].count;
    for (int i = 0; tails[value].modulus && i < value; i++)
        if (count == (tails[i].modulus ? keys % tails[i].modulus : tails[i].count))
            return 0;
    return count < keys ? count : 0;
}

/* A key mask of its own, all there where there was none. */
static unsigned char *own_mask(trial *t)
{
    attention_case *c = &t->s.c;
    int64_t count = c->shape.batch * c->shape.key_tokens;
    unsigned char *mask = must_allocate((size_t)count, sizeof *mask);
    trial_keep(t, mask);
    for (int64_t i = 0; i < count; i++)
        mask[i] = c->key_mask ? c->key_mask[i] : 1;
    c->key_mask = mask;
    c->reference.padding = c->choice.padding = true;
    return mask;
}

static bool mask_keys(trial *t, int64_t from, int64_t to)
{
    if (!can(t, ATN_CAN_MASK) || !can(t, ATN_CAN_CROSS))
        return false;
    trial_separate_keys(t);
    unsigned char *mask = own_mask(t);
    for (int64_t b = 0; b < t->s.c.shape.batch; b++)
        for (int64_t j = from; j < to; j++)
            mask[b * t->s.c.shape.key_tokens + j] = 0;
    return true;
}

bool leave_out_tail(trial *t, int value)
{
    int64_t keys = t->s.c.shape.key_tokens, count = tail_of(t, value);
    return count > 0 && mask_keys(t, keys - count, keys);
}

bool leave_out_first(trial *t, int value)
{
    return t->s.c.shape.key_tokens > 1 && mask_keys(t, 0, 1);
}

/* V's last rows, or another tile's, multiplied. */
static bool multiply_values(trial *t, int64_t from, int64_t to, double factor)
{
    attention_case *c = &t->s.c;
    const atn_attention_shape *s = &c->shape;
    if (is_normed(c->reference.op))
        return weigh_tokens(t, from, to, factor);
    c->v = trial_copy(t, c->v, attention_case_values(c));
    for (int64_t i = 0; i < attention_case_values(c); i++) {
        int64_t row = i / s->value_dim % s->key_tokens;
        c->v[i] *= row >= from && row < to ? factor : 1;
    }
    return to > from && t->of != RESULT_VALUES;
}

static bool multiply_tail(trial *t, int value, double factor)
{
    int64_t keys = t->s.judged.shape.key_tokens, count = tail_of(t, value);
    return count > 0 && multiply_values(t, keys - count, keys, factor);
}

bool leave_out_of_product(trial *t, int value)
{
    return multiply_tail(t, value, 0);
}

bool count_tail_twice(trial *t, int value)
{
    return multiply_tail(t, value, 2);
}

const char *const arriving_tail_texts[] = {TAIL_TEXTS("left out of the sum over queries:")};

bool leave_out_arriving(trial *t, int value)
{
    const atn_attention_shape *s = &t->s.judged.shape;
    int64_t count = tail_of(t, value), rows = s->tokens, cols = s->value_dim;
    if (count == 0 || count >= rows || t->s.c.shape.tokens != rows)
        return false;
    t->s.grad_output = trial_copy(t, t->s.grad_output, attention_case_outputs(&t->s.c));
    for (int64_t i = 0; i < attention_case_outputs(&t->s.c); i++)
        t->s.grad_output[i] *= i / cols % rows >= rows - count ? 0 : 1;
    return true;
}

const char *const first_texts[] = {"counted twice: the first 16 tokens",
                                   "counted twice: the first 32 tokens",
                                   "counted twice: the first 64 tokens",
                                   "left out of the product alone: the first token",
                                   "left out of the product alone: the first 16 tokens",
                                   "left out of the product alone: the first 64 tokens",
                                   NULL};

bool change_first_tile(trial *t, int value)
{
    static const int64_t counts[] = {16, 32, 64, 1, 16, 64};
    return counts[value] < t->s.judged.shape.key_tokens &&
           multiply_values(t, 0, counts[value], value < 3 ? 2 : 0);
}

const char *const padded_texts[] = {
    "zeros up to the next 16 count as tokens", "zeros up to the next 32 count as tokens",
    "zeros up to the next 64 count as tokens", "zeros up to the next 128 count as tokens", NULL};

/* x of every head with rows of 0 behind. */
static double *lengthened(trial *t, const double *x, int64_t cols, int64_t rows, int64_t more)
{
    int64_t heads = t->s.c.shape.batch * t->s.c.shape.heads;
    double *y = trial_own(t, heads * (rows + more) * cols);
    for (int64_t i = 0; i < heads; i++)
        memcpy(y + i * (rows + more) * cols, x + i * rows * cols,
               (size_t)(rows * cols) * sizeof *y);
    return y;
}

bool count_padding(trial *t, int value)
{
    attention_case *c = &t->s.c;
    const int64_t tile = (int64_t)16 << value, keys = c->shape.key_tokens,
                  more = -keys & (tile - 1);
    bool fits = can(t, ATN_CAN_LENGTHS) && !c->key_mask && !c->reference.causal &&
                (t->of == RESULT_OUTPUT || t->of == RESULT_TOKENS) && more > 0;
    if (!fits || (value > 0 && more == (-keys & (tile / 2 - 1))))
        return false;
    trial_separate_keys(t);
    c->k = lengthened(t, c->k, c->shape.dim, keys, more);
    c->v = lengthened(t, c->v, c->shape.value_dim, keys, more);
    c->shape.key_tokens += more;
    c->choice.shape.key_tokens += more;
    return true;
}

/* ---- Shifts and strides ---- */

const char *const shift_texts[] = {"K's rows shifted down by one, the first 0",
                                   "K's rows shifted up by one, the last 0",
                                   "K's rows shifted down by one, cyclically",
                                   "K's rows shifted up by one, cyclically",
                                   "V's rows shifted down by one, the first 0",
                                   "V's rows shifted up by one, the last 0",
                                   "V's rows shifted down by one, cyclically",
                                   "V's rows shifted up by one, cyclically",
                                   "V's rows shifted down by one, the first as it was",
                                   "K's rows shifted down by one, the first as it was",
                                   NULL};

bool shift_inputs(trial *t, int value)
{
    attention_case *c = &t->s.c;
    bool values = (value >= 4 && value < 8) || value == 8, down = value % 2 == 0 || value >= 8;
    int64_t rows = c->shape.key_tokens, cols = values ? c->shape.value_dim : c->shape.dim;
    if (!values && !c->k)
        return false;
    if (t->of == (values ? RESULT_VALUES : RESULT_KEYS))
        return false;
    const double *from = values ? c->v : c->k;
    double *to = trial_own(t, c->shape.batch * c->shape.heads * rows * cols);
    for (int64_t i = 0; i < c->shape.batch * c->shape.heads * rows; i++) {
        int64_t row = i % rows, source = down ? row - 1 : row + 1;
        bool outside = source < 0 || source >= rows;
        if (outside && value % 4 < 2 && value < 8)
            continue;
        source = value >= 8 && outside ? row : (source + rows) % rows;
        memcpy(to + i * cols, from + (i - row + source) * cols, (size_t)cols * sizeof *to);
    }
    *(values ? &c->v : &c->k) = to;
    return rows > 1;
}

const char *const stride_texts[] = {"K of head 0 for every head",
                                    "V of head 0 for every head",
                                    "K and V of head 0 for every head",
                                    "K of batch 0 for every batch entry",
                                    "V of batch 0 for every batch entry",
                                    "K and V of batch 0 for every batch entry",
                                    "K of the head before",
                                    "V of the head before",
                                    NULL};

/* x of which heads, for every head: a wrong stride. */
static double *restrided(trial *t, const double *x, int64_t size, int kind)
{
    const atn_attention_shape *s = &t->s.c.shape;
    double *y = trial_own(t, s->batch * s->heads * size);
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t h = 0; h < s->heads; h++) {
            int64_t from = kind == 0   ? b * s->heads
                           : kind == 1 ? h
                                       : b * s->heads + (h > 0 ? h - 1 : 0);
            memcpy(y + (b * s->heads + h) * size, x + from * size, (size_t)size * sizeof *y);
        }
    return y;
}

bool change_stride(trial *t, int value)
{
    attention_case *c = &t->s.c;
    const atn_attention_shape *s = &c->shape;
    int kind = value < 3 ? 0 : value < 6 ? 1 : 2;
    bool keys = value < 6 ? value % 3 != 1 : value == 6;
    bool values = value < 6 ? value % 3 != 0 : value == 7;
    if ((kind == 1 ? s->batch : s->heads) < 2 || (keys && !c->k) ||
        (t->of == RESULT_KEYS && keys) || (t->of == RESULT_VALUES && values))
        return false;
    if (keys)
        c->k = restrided(t, c->k, s->key_tokens * s->dim, kind);
    if (values)
        c->v = restrided(t, c->v, s->key_tokens * s->value_dim, kind);
    return true;
}

/* ---- Masks ---- */

const char *const mask_texts[] = {"padding mask of keys ignored",
                                  "padding mask of keys inverted",
                                  "padding mask of batch 0 for every batch entry",
                                  "padding masks of queries and keys ignored",
                                  "padding masks of queries and keys inverted",
                                  NULL};

/* A mask inverted, or as batch entry 0 has it; null for null. */
static unsigned char *changed_mask(trial *t, const unsigned char *mask, int64_t rows, bool invert)
{
    int64_t count = t->s.c.shape.batch * rows;
    unsigned char *to = mask ? must_allocate((size_t)count, sizeof *to) : NULL;
    if (to)
        trial_keep(t, to);
    for (int64_t i = 0; to && i < count; i++)
        to[i] = invert ? !mask[i] : mask[i % rows];
    return to;
}

bool change_mask(trial *t, int value)
{
    attention_case *c = &t->s.c;
    const unsigned char *queries = c->query_mask;
    bool both = value > 2;
    if (!c->key_mask || (both && c->k && !queries))
        return false;
    if (!both)
        trial_separate_keys(t);
    if (value % 3 == 0)
        c->key_mask = NULL;
    else
        c->key_mask = changed_mask(t, c->key_mask, c->shape.key_tokens, value != 2);
    if (both)
        c->query_mask = value == 3 ? NULL : changed_mask(t, queries, c->shape.tokens, true);
    c->reference.padding = c->choice.padding = c->key_mask || c->query_mask;
    return true;
}
