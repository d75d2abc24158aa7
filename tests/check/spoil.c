/* SPDX-License-Identifier: BSD-3-Clause */
/* Bugs of a kernel's arithmetic, and of how its results are written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "kernels.h"

/* ---- Arithmetic ---- */

/* Which types a bug narrows, and to what. It is a bug if the type is narrower than the claimed one;
 * for sums, which should be in f32, also if it is the claimed one. */
enum { STORED = 1, OPERANDS = 2, SUMS = 4 };
static const struct {
    bug bug;
    int what;
    atn_dtype to;
} narrowings[] = {
    {BUG_SUMS_BF16, SUMS, ATN_BF16},
    {BUG_SUMS_F16, SUMS, ATN_F16},
    {BUG_SUMS_F32, SUMS, ATN_F32},
    {BUG_STORED_BF16, STORED | OPERANDS, ATN_BF16},
    {BUG_STORED_F16, STORED | OPERANDS, ATN_F16},
    {BUG_OPERANDS_TF32, OPERANDS, ATN_TF32},
    {BUG_OPERANDS_BF16, OPERANDS, ATN_BF16},
};

static void narrow(atn_dtype *type, atn_dtype to)
{
    if (atn_dtype_roundoff(to) > atn_dtype_roundoff(*type))
        *type = to;
}

arithmetic spoilt_arithmetic(const arithmetic *from, bug b)
{
    arithmetic a = *from;
    for (size_t i = 0; i < sizeof narrowings / sizeof *narrowings; i++) {
        atn_dtype to = narrowings[i].to;
        int what = narrowings[i].what;
        double wider = atn_dtype_roundoff(to) / atn_dtype_roundoff(from->claimed);
        if (narrowings[i].bug != b || wider < 1 || (wider == 1 && what != SUMS))
            continue;
        if (what & STORED)
            narrow(&a.stored, to);
        if (what & OPERANDS)
            narrow(&a.operands, to);
        if (what & SUMS)
            narrow(&a.summed, to);
    }
    a.flushed |= b == BUG_FLUSHED;
    a.fast_exp |= b == BUG_FAST_EXP;
    return a;
}

/* ---- Results ---- */

/* A result, batch x heads x rows x cols. */
typedef struct {
    const attention_case *c;
    int64_t batch, heads, rows, cols;
    double *x;
    const double *before; /* the result before the change */
    double number;
} area;

enum { OF_OUTPUT = 1, OF_TOKENS = 2, OF_KEYS = 4, OF_VALUES = 8, OF_PARAMETERS = 16 };
enum { OF_INPUTS = OF_TOKENS | OF_KEYS | OF_VALUES, OF_GRADIENTS = OF_INPUTS | OF_PARAMETERS };

static int64_t head_size(const area *a)
{
    return a->rows * a->cols;
}

static int64_t head_count(const area *a)
{
    return a->batch * a->heads;
}

static int64_t size_of(const area *a)
{
    return head_count(a) * head_size(a);
}

/* The rows of the last head. */
static double *last_head(const area *a)
{
    return a->x + (head_count(a) - 1) * head_size(a);
}

static void times_all(area *a)
{
    for (int64_t i = 0; i < size_of(a); i++)
        a->x[i] *= a->number;
}

static void times_channel(area *a)
{
    for (int64_t i = a->cols / 2; i < size_of(a); i += a->cols)
        a->x[i] *= a->number;
}

static void times_second_rows(area *a)
{
    for (int64_t i = 0; i < size_of(a); i++)
        a->x[i] *= i / a->cols % 2 ? a->number : 1;
}

static void times_one_head(area *a)
{
    for (int64_t i = 0; i < head_size(a); i++)
        last_head(a)[i] *= a->number;
}

/* The rows of a tile: 64, or a quarter of the rows if these are fewer than 128. Bugs affect the
 * second tile of the last head. */
static int64_t tile_of(const area *a)
{
    return a->rows >= 128 ? 64 : a->rows / 4 > 0 ? a->rows / 4 : 1;
}

static void tile_zero(area *a)
{
    int64_t count = tile_of(a) * a->cols;
    memset(last_head(a) + (a->rows > 1 ? count : 0), 0, (size_t)count * sizeof *a->x);
}

static void tail_zero(area *a)
{
    int64_t tail = tail_of(a->rows, 64) * a->cols;
    for (int64_t h = 0; h < head_count(a); h++)
        memset(a->x + (h + 1) * head_size(a) - tail, 0, (size_t)tail * sizeof *a->x);
}

static void tile_stale(area *a)
{
    int64_t count = tile_of(a) * a->cols;
    for (int64_t i = 0; i < count && a->rows > 1; i++)
        last_head(a)[count + i] += last_head(a)[i];
}

static void tile_twice(area *a)
{
    int64_t rows = a->rows < 16 ? a->rows : 16;
    for (int64_t i = 0; i < rows * a->cols; i++)
        a->x[i] *= 2;
}

/* In blocks of `count` numbers, block `to` becomes what block `from` was. */
static void take_block(area *a, int64_t count, int64_t to, int64_t from)
{
    memcpy(a->x + to * count, a->before + from * count, (size_t)count * sizeof *a->x);
}

static void swap_heads(area *a)
{
    for (int64_t b = 0; b < a->batch && a->heads > 1; b++) {
        take_block(a, head_size(a), b * a->heads, b * a->heads + 1);
        take_block(a, head_size(a), b * a->heads + 1, b * a->heads);
    }
}

static void swap_batch(area *a)
{
    for (int64_t i = 0; i < 2 && a->batch > 1; i++)
        take_block(a, a->heads * head_size(a), i, 1 - i);
}

static void tokens_before_heads(area *a)
{
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->rows; i++)
                take_block(a, a->cols, (b * a->rows + i) * a->heads + h,
                           (b * a->heads + h) * a->rows + i);
}

static void shift_rows(area *a)
{
    for (int64_t i = 0; i < head_count(a) * a->rows; i++)
        take_block(a, a->cols, i, i / a->rows * a->rows + (i % a->rows + 1) % a->rows);
}

static void swap_channels(area *a)
{
    for (int64_t i = 0; i + 1 < size_of(a); i += a->cols) {
        a->x[i] = a->before[i + 1];
        a->x[i + 1] = a->before[i];
    }
}

static void zero_channels(area *a)
{
    int64_t tail = a->cols % 16 > 0 ? a->cols % 16 : 8;
    for (int64_t i = 0; i < size_of(a); i++)
        a->x[i] = i % a->cols < a->cols - tail ? a->x[i] : 0;
}

static void zero_head(area *a)
{
    memset(last_head(a), 0, (size_t)head_size(a) * sizeof *a->x);
}

static void add_first_entry(area *a)
{
    int64_t count = a->heads * head_size(a);
    for (int64_t i = 0; i < count && a->batch > 1; i++)
        a->x[count + i] += a->x[i];
}

static void add_head_before(area *a)
{
    for (int64_t i = head_size(a); i < size_of(a); i++)
        a->x[i] += i / head_size(a) % a->heads ? a->before[i - head_size(a)] : 0;
}

static void sum_heads(area *a)
{
    int64_t all = a->heads * head_size(a);
    for (int64_t i = 0; i < size_of(a); i++) {
        a->x[i] = 0;
        for (int64_t j = i / all * all + i % head_size(a); j < (i / all + 1) * all;
             j += head_size(a))
            a->x[i] += a->before[j];
    }
}

static void drop_out(area *a)
{
    for (int64_t i = 0; i < size_of(a); i++)
        a->x[i] *= dropout((uint64_t)i);
}

/* In each 8 rows, row i becomes row i / 2, plus 4 for an odd i. */
static void interleave_rows(area *a)
{
    for (int64_t i = 0; i < head_count(a) * a->rows; i++) {
        int64_t row = i % a->rows, from = row / 8 * 8 + row % 2 * 4 + row % 8 / 2;
        if (row / 8 * 8 + 8 <= a->rows)
            take_block(a, a->cols, i, i - row + from);
    }
}

static void nan_row(area *a)
{
    for (int64_t j = 0; j < a->cols; j++)
        last_head(a)[(a->rows - 1) * a->cols + j] = NAN;
}

static void offset(area *a)
{
    double squares = 0;
    for (int64_t i = 0; i < size_of(a); i++)
        squares += a->x[i] * a->x[i];
    for (int64_t i = 0; i < size_of(a); i++)
        a->x[i] += 0.01 * sqrt(squares / (double)size_of(a));
}

static void add_values(area *a)
{
    int64_t count = attention_case_values(a->c);
    for (int64_t i = 0; i < count && count == size_of(a); i++)
        a->x[i] += a->c->v[i];
}

/* number: the type to round to. */
static void round_all(area *a)
{
    for (int64_t i = 0; i < size_of(a); i++)
        a->x[i] = round_to((atn_dtype)a->number, a->x[i]);
}

/* Undoes the scale of the logits, or that of the kernel and the 2 of its square's derivative. */
static void unscale(area *a)
{
    for (int64_t i = 0; i < size_of(a); i++)
        a->x[i] *= sqrt((double)a->c->shape.dim);
}

static const struct {
    bug bug;
    int of;
    void (*change)(area *);
    double number;
} changes[] = {
    {BUG_OUTPUT_1_05, OF_OUTPUT, times_all, 1.05},
    {BUG_OUTPUT_1_02, OF_OUTPUT, times_all, 1.02},
    {BUG_OUTPUT_1_005, OF_OUTPUT, times_all, 1.005},
    {BUG_CHANNEL_10, OF_OUTPUT, times_channel, 1.1},
    {BUG_CHANNEL_2, OF_OUTPUT, times_channel, 1.02},
    {BUG_SECOND_ROWS, OF_OUTPUT, times_second_rows, 1.01},
    {BUG_ONE_HEAD_1_02, OF_OUTPUT, times_one_head, 1.02},
    {BUG_TILE_ZERO, OF_OUTPUT, tile_zero, 0},
    {BUG_TAIL_NOT_WRITTEN, OF_OUTPUT, tail_zero, 0},
    {BUG_TILE_STALE, OF_OUTPUT, tile_stale, 0},
    {BUG_HEADS_SWAPPED, OF_OUTPUT, swap_heads, 0},
    {BUG_BATCH_SWAPPED, OF_OUTPUT, swap_batch, 0},
    {BUG_HEADS_FIRST, OF_OUTPUT, tokens_before_heads, 0},
    {BUG_ROWS_SHIFTED, OF_OUTPUT, shift_rows, 0},
    {BUG_CHANNELS_SWAPPED, OF_OUTPUT, swap_channels, 0},
    {BUG_LAST_CHANNELS, OF_OUTPUT, zero_channels, 0},
    {BUG_HEAD_ZERO, OF_OUTPUT, zero_head, 0},
    {BUG_BATCH_TWICE, OF_OUTPUT, add_first_entry, 0},
    {BUG_HEAD_TWICE, OF_OUTPUT, add_head_before, 0},
    {BUG_DROPOUT, OF_OUTPUT, drop_out, 0},
    {BUG_ROWS_INTERLEAVED, OF_OUTPUT, interleave_rows, 0},
    {BUG_NAN_ROW, OF_OUTPUT, nan_row, 0},
    {BUG_OFFSET, OF_OUTPUT, offset, 0},
    {BUG_VALUES_ADDED, OF_OUTPUT, add_values, 0},
    {BUG_RESULT_BF16, OF_OUTPUT, round_all, ATN_BF16},
    {BUG_RESULT_F16, OF_OUTPUT, round_all, ATN_F16},
    {BUG_RESULT_F32, OF_OUTPUT, round_all, ATN_F32},
    {BUG_GRADIENT_SIGN, OF_TOKENS, times_all, -1},
    {BUG_GRADIENT_DOUBLED, OF_TOKENS, times_all, 2},
    {BUG_GRADIENT_HALVED, OF_TOKENS, times_all, 0.5},
    {BUG_GRADIENT_1_02, OF_GRADIENTS, times_all, 1.02},
    {BUG_GRADIENT_1_005, OF_GRADIENTS, times_all, 1.005},
    {BUG_GRADIENT_CHANNEL, OF_TOKENS | OF_VALUES, times_channel, 1.05},
    {BUG_GRADIENT_UNSCALED, OF_TOKENS, unscale, 0},
    {BUG_GRADIENT_LN2, OF_TOKENS, times_all, 1.4426950408889634},
    {BUG_GRADIENT_HEAD_TWICE, OF_KEYS | OF_VALUES, add_head_before, 0},
    {BUG_GRADIENT_HEADS_SUMMED, OF_KEYS | OF_VALUES, sum_heads, 0},
    {BUG_GRADIENT_TAIL, OF_VALUES, tail_zero, 0},
    {BUG_GRADIENT_TILE, OF_TOKENS, tile_twice, 0},
    {BUG_GRADIENT_HEADS, OF_INPUTS, swap_heads, 0},
    {BUG_GRADIENT_BF16, OF_GRADIENTS, round_all, ATN_BF16},
};

static void change_result(const attention_case *c, bug b, result_kind kind, double *x)
{
    static const int of[] = {OF_OUTPUT, OF_TOKENS, OF_KEYS, OF_VALUES};
    int is = kind < RESULT_PARAMETERS ? of[kind] : OF_PARAMETERS;
    area a = {.c = c, .rows = result_rows(c, kind), .cols = result_cols(c, kind), .x = x};
    a.batch = kind < RESULT_PARAMETERS ? c->shape.batch : 1;
    a.heads = result_heads(c, kind) / a.batch;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (changes[i].bug == b && changes[i].of & is) {
            double *before = must_allocate((size_t)size_of(&a), sizeof *before);
            memcpy(before, x, (size_t)size_of(&a) * sizeof *before);
            a.before = before;
            a.number = changes[i].number;
            changes[i].change(&a);
            free(before);
        }
}

/* Rounds a result to the claimed type. */
static void write_result(const kernel_choice *choice, int64_t count, double *x)
{
    atn_dtype type = choice->arithmetic.claimed;
    for (int64_t i = 0; i < count; i++)
        x[i] = choice->bug == BUG_TRUNCATED ? truncate_to(type, x[i]) : round_to(type, x[i]);
}

void spoil_results(const attention_case *c, const kernel_choice *choice,
                   double *results[RESULT_COUNT])
{
    if (choice->bug == BUG_GRADIENTS_SWAPPED && results[RESULT_KEYS] &&
        c->shape.tokens == c->shape.key_tokens) {
        double *kept = results[RESULT_KEYS];
        results[RESULT_KEYS] = results[RESULT_TOKENS];
        results[RESULT_TOKENS] = kept;
    }
    for (int kind = 0; kind < RESULT_COUNT; kind++)
        if (results[kind]) {
            change_result(c, choice->bug, (result_kind)kind, results[kind]);
            write_result(choice, result_size(c, (result_kind)kind), results[kind]);
        }
}
