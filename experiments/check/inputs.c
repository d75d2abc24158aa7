/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs that a kernel may have misread or left out. */
#include <stdlib.h>
#include <string.h>

#include "check/hypotheses.h"
#include "common/report.h"

static bool can(const trial *t, unsigned capability)
{
    return atn_operator_get(t->s.c.reference.op)->capabilities & capability;
}

/* ---- Tails ---- */

/* The last `count` tokens; with a modulus, the tokens after its last multiple. */
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

/* The number of keys in a tail; 0: there is none, or an earlier row of the table has as many. */
static int64_t tail_of(const trial *t, int value)
{
    int64_t keys = t->s.c.shape.key_tokens;
    int64_t count = tails[value].modulus ? keys % tails[value].modulus : tails[value].count;
    for (int i = 0; tails[value].modulus && i < value; i++)
        if (count == (tails[i].modulus ? keys % tails[i].modulus : tails[i].count))
            return 0;
    return count < keys ? count : 0;
}

/* A key mask of the trial's own; without one before, no key is padding. */
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

/* Multiplies rows of V by a factor. */
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

const char *const kept_texts[] = {TAIL_TEXTS("= for +=: the product holds nothing but")};

/* Linformer has two sums over tokens, of K and of V, so both are masked. */
bool keep_tail_alone(trial *t, int value)
{
    int64_t keys = t->s.judged.shape.key_tokens, count = tail_of(t, value);
    if (count == 0)
        return false;
    return t->s.c.reference.op == ATN_LINFORMER ? mask_keys(t, 0, keys - count)
                                                : multiply_values(t, 0, keys - count, 0);
}

const char *const grad_output_tail_texts[] = {TAIL_TEXTS("left out of the sum over queries:")};
const char *const grad_output_kept_texts[] = {
    TAIL_TEXTS("= for +=: the sum over queries holds nothing but")};

/* Sets the last rows of dY, or all others, to 0. */
static bool clear_grad_output(trial *t, int value, bool last)
{
    const atn_attention_shape *s = &t->s.judged.shape;
    int64_t count = tail_of(t, value), rows = s->tokens, cols = s->value_dim;
    if (count == 0 || count >= rows || t->s.c.shape.tokens != rows)
        return false;
    t->s.grad_output = trial_copy(t, t->s.grad_output, attention_case_outputs(&t->s.c));
    for (int64_t i = 0; i < attention_case_outputs(&t->s.c); i++)
        t->s.grad_output[i] *= (i / cols % rows >= rows - count) == last ? 0 : 1;
    return true;
}

bool leave_out_grad_output_tail(trial *t, int value)
{
    return clear_grad_output(t, value, true);
}

bool keep_grad_output_tail_alone(trial *t, int value)
{
    return clear_grad_output(t, value, false);
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

/* x with `more` rows of zeros appended to every head. */
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

/* Where rows of K and V are read from. */
typedef enum {
    FROM_HEAD_0,
    FROM_BATCH_0,
    FROM_HEAD_BEFORE,
    FROM_GROUP_MODULO, /* head h mod g of g key heads, not h / (heads / g) */
    FROM_TOKENS_FIRST, /* as if laid out as batch x tokens x heads x width */
    FROM_HEADS_FIRST,  /* as if laid out as heads x batch x tokens x width */
    FROM_NEXT_ROW,
    LAST_FROM_BEFORE, /* only the last token: from the one before, */
    LAST_FROM_NOWHERE /* or it is 0 */
} row_source;

enum { OF_K = 1, OF_V = 2 };
static const struct {
    int of;
    row_source from;
} strides[STRIDES] = {{OF_K, FROM_HEAD_0},
                      {OF_V, FROM_HEAD_0},
                      {OF_K | OF_V, FROM_HEAD_0},
                      {OF_K, FROM_BATCH_0},
                      {OF_V, FROM_BATCH_0},
                      {OF_K | OF_V, FROM_BATCH_0},
                      {OF_K, FROM_HEAD_BEFORE},
                      {OF_V, FROM_HEAD_BEFORE},
                      {OF_K | OF_V, FROM_GROUP_MODULO},
                      {OF_K, FROM_TOKENS_FIRST},
                      {OF_V, FROM_TOKENS_FIRST},
                      {OF_K | OF_V, FROM_TOKENS_FIRST},
                      {OF_K | OF_V, FROM_HEADS_FIRST},
                      {OF_K, FROM_NEXT_ROW},
                      {OF_V, FROM_NEXT_ROW},
                      {OF_K | OF_V, FROM_NEXT_ROW},
                      {OF_K | OF_V, LAST_FROM_BEFORE},
                      {OF_K | OF_V, LAST_FROM_NOWHERE}};

const char *const stride_texts[] = {"K of head 0 for every head",
                                    "V of head 0 for every head",
                                    "K and V of head 0 for every head",
                                    "K of batch 0 for every batch entry",
                                    "V of batch 0 for every batch entry",
                                    "K and V of batch 0 for every batch entry",
                                    "K of the head before",
                                    "V of the head before",
                                    "K and V of head h mod g of g, not of h / (heads / g)",
                                    "K read as batch x tokens x heads x width",
                                    "V read as batch x tokens x heads x width",
                                    "K and V read as batch x tokens x heads x width",
                                    "K and V read as heads x batch",
                                    "K read one row too far",
                                    "V read one row too far",
                                    "K and V read one row too far",
                                    "K and V of the last token are those of the one before",
                                    "K and V of the last token are 0, but count",
                                    NULL};

/* The row, among those of all heads, that is read as row i of head h; -1: none. */
static int64_t source_row(const trial *t, row_source from, int64_t rows, int64_t b, int64_t h,
                          int64_t i)
{
    const atn_attention_shape *s = &t->s.c.shape;
    int64_t groups = t->s.key_heads, at = (b * s->heads + h) * rows + i, last = i == rows - 1;
    switch (from) {
    case FROM_HEAD_0:
        return b * s->heads * rows + i;
    case FROM_BATCH_0:
        return h * rows + i;
    case FROM_HEAD_BEFORE:
        return h > 0 ? at - rows : at;
    case FROM_GROUP_MODULO:
        return (b * s->heads + h % groups * (s->heads / groups)) * rows + i;
    case FROM_TOKENS_FIRST:
        return (b * rows + i) * s->heads + h;
    case FROM_HEADS_FIRST:
        return (h * s->batch + b) * rows + i;
    case FROM_NEXT_ROW:
        return at + 1 < s->batch * s->heads * rows ? at + 1 : -1;
    case LAST_FROM_BEFORE:
        return at - last;
    case LAST_FROM_NOWHERE:
        return last ? -1 : at;
    }
    return at;
}

static double *misread(trial *t, const double *x, int64_t cols, row_source from)
{
    const atn_attention_shape *s = &t->s.c.shape;
    int64_t rows = s->key_tokens;
    double *y = trial_own(t, s->batch * s->heads * rows * cols);
    for (int64_t i = 0; i < s->batch * s->heads * rows; i++) {
        int64_t head = i / rows,
                source = source_row(t, from, rows, head / s->heads, head % s->heads, i % rows);
        if (source >= 0)
            memcpy(y + i * cols, x + source * cols, (size_t)cols * sizeof *y);
    }
    return y;
}

/* Whether the problem has enough heads, batch entries, groups of heads or tokens for it. */
static bool can_misread(const trial *t, row_source from)
{
    const atn_attention_shape *s = &t->s.c.shape;
    if (from == FROM_BATCH_0)
        return s->batch > 1;
    if (from == FROM_GROUP_MODULO)
        return t->s.key_heads > 1 && t->s.key_heads < s->heads;
    if (from >= FROM_NEXT_ROW)
        return s->key_tokens > 1;
    return s->heads > 1 && (from != FROM_HEADS_FIRST || s->batch > 1);
}

bool change_stride(trial *t, int value)
{
    attention_case *c = &t->s.c;
    row_source from = strides[value].from;
    bool keys = strides[value].of & OF_K, values = strides[value].of & OF_V;
    if (!can_misread(t, from) || trial_has_landmarks(t) || (keys && !values && !c->k))
        return false;
    if (keys && c->k)
        c->k = misread(t, c->k, c->shape.dim, from);
    if (values)
        c->v = misread(t, c->v, c->shape.value_dim, from);
    return c->k || !keys || from < FROM_NEXT_ROW; /* K = Q cannot be misread alone */
}

/* ---- Masks ---- */

const char *const mask_texts[] = {"padding mask of keys ignored",
                                  "padding mask of keys inverted",
                                  "padding mask of batch 0 for every batch entry",
                                  "padding masks of queries and keys ignored",
                                  "padding masks of queries and keys inverted",
                                  "padding mask of queries ignored: their rows are not 0",
                                  NULL};

/* A mask inverted, or with the mask of batch entry 0 for every entry; null for null. */
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
    bool both = value > 2 && value < 5;
    if (!c->key_mask || (both && c->k && !queries))
        return false;
    if (!both)
        trial_separate_keys(t);
    if (value == 5)
        c->query_mask = NULL;
    else if (value % 3 == 0)
        c->key_mask = NULL;
    else
        c->key_mask = changed_mask(t, c->key_mask, c->shape.key_tokens, value != 2);
    if (both)
        c->query_mask = value == 3 ? NULL : changed_mask(t, queries, c->shape.tokens, true);
    c->reference.padding = c->choice.padding = c->key_mask || c->query_mask;
    return true;
}
