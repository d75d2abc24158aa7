/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a right result after it was computed: another order, shifted rows, or factors and
 * constants that are fitted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/hypotheses.h"
#include "common/report.h"

static result_sizes sizes_of(const trial *t)
{
    const attention_case *c = &t->s.judged;
    result_sizes s = {.batch = t->kind < RESULT_PARAMETERS ? c->shape.batch : 1,
                      .rows = result_rows(c, t->kind),
                      .cols = result_cols(c, t->kind)};
    s.heads = result_heads(c, t->kind) / s.batch;
    s.size = s.rows * s.cols;
    return s;
}

/* ---- Order ---- */

static double square_distance(int64_t count, int64_t stride, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (a[i * stride] - b[i * stride]) * (a[i * stride] - b[i * stride]);
    return sum;
}

/* Replaces each of `count` parts by the part of `from` that is nearest to it in `got`. A part has
 * `length` elements, `stride` apart; parts are `step` apart. */
static void match(int64_t count, int64_t step, int64_t length, int64_t stride, const double *got,
                  const double *from, double *to)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t nearest = i;
        double least = square_distance(length, stride, got + i * step, from + i * step);
        for (int64_t j = 0; j < count; j++) {
            double distance = square_distance(length, stride, got + i * step, from + j * step);
            if (distance < least) {
                least = distance;
                nearest = j;
            }
        }
        for (int64_t k = 0; k < length; k++)
            to[i * step + k * stride] = from[nearest * step + k * stride];
    }
}

static void match_heads(const trial *t, const double *from, double *to)
{
    result_sizes s = sizes_of(t);
    for (int64_t b = 0; b < s.batch; b++) {
        int64_t at = b * s.heads * s.size;
        match(s.heads, s.size, s.size, 1, t->s.results[t->kind] + at, from + at, to + at);
    }
}

static void match_batches(const trial *t, const double *from, double *to)
{
    result_sizes s = sizes_of(t);
    match(s.batch, s.heads * s.size, s.heads * s.size, 1, t->s.results[t->kind], from, to);
}

static void match_columns(const trial *t, const double *from, double *to)
{
    result_sizes s = sizes_of(t);
    for (int64_t i = 0; i < s.batch * s.heads; i++)
        match(s.cols, 1, s.rows, s.cols, t->s.results[t->kind] + i * s.size, from + i * s.size,
              to + i * s.size);
}

static void match_rows(const trial *t, const double *from, double *to)
{
    result_sizes s = sizes_of(t);
    for (int64_t i = 0; i < s.batch * s.heads; i++)
        match(s.rows, s.cols, s.cols, 1, t->s.results[t->kind] + i * s.size, from + i * s.size,
              to + i * s.size);
}

/* Adds what an accumulator that was not cleared still holds: the result of the head before, of all
 * heads before, or of the batch entry before. */
static void add_before(const trial *t, int64_t step, bool all, const double *from, double *to)
{
    result_sizes s = sizes_of(t);
    for (int64_t i = 0; i < s.batch * s.heads; i++)
        for (int64_t j = 0; j < s.size; j++) {
            bool there = step == 1 ? i % s.heads > 0 : i >= step;
            double before = !there ? 0 : (all ? to : from)[(i - step) * s.size + j];
            to[i * s.size + j] = from[i * s.size + j] + before;
        }
}

static void add_head_before(const trial *t, const double *from, double *to)
{
    add_before(t, 1, false, from, to);
}

static void add_all_heads_before(const trial *t, const double *from, double *to)
{
    add_before(t, 1, true, from, to);
}

static void add_batch_before(const trial *t, const double *from, double *to)
{
    add_before(t, sizes_of(t).heads, false, from, to);
}

/* The sum over all heads in the place of each: the gradient of shared keys instead of one
 * head's. */
static void sum_heads(const trial *t, const double *from, double *to)
{
    result_sizes s = sizes_of(t);
    for (int64_t i = 0; i < s.batch * s.heads; i++)
        for (int64_t j = 0; j < s.size; j++) {
            to[i * s.size + j] = 0;
            for (int64_t k = i / s.heads * s.heads; k < (i / s.heads + 1) * s.heads; k++)
                to[i * s.size + j] += from[k * s.size + j];
        }
}

/* Shifts rows by one, down or up. The row that has no source is taken from the judged result. */
static void shift_rows(const trial *t, int64_t by, const double *from, double *to)
{
    result_sizes s = sizes_of(t);
    for (int64_t i = 0; i < s.batch * s.heads; i++)
        for (int64_t row = 0; row < s.rows; row++) {
            int64_t at = (i * s.rows + row) * s.cols;
            bool there = row - by >= 0 && row - by < s.rows;
            memcpy(to + at, there ? from + at - by * s.cols : t->s.results[t->kind] + at,
                   (size_t)s.cols * sizeof *to);
        }
}

static void shift_down(const trial *t, const double *from, double *to)
{
    shift_rows(t, 1, from, to);
}

static void shift_up(const trial *t, const double *from, double *to)
{
    shift_rows(t, -1, from, to);
}

/* ---- Fits ---- */

typedef enum { FIT_FACTORS, FIT_CONSTANTS } fit_kind;

/* Fits a factor or a constant to each block of rows x cols of every head; 0: all rows or
 * columns. */
static void fit(const trial *t, fit_kind kind, int64_t rows, int64_t cols, const double *from,
                double *to)
{
    result_sizes s = sizes_of(t);
    const double *got = t->s.results[t->kind];
    rows = rows ? rows : s.rows, cols = cols ? cols : s.cols;
    int64_t across = s.cols / cols, groups = s.rows / rows * across;
    double *sums = must_allocate((size_t)(2 * groups), sizeof *sums);
    for (int64_t head = 0; head < s.batch * s.heads; head++) {
        memset(sums, 0, (size_t)(2 * groups) * sizeof *sums);
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < s.size; i++) {
                int64_t at = head * s.size + i;
                double *sum = sums + 2 * (i / s.cols / rows * across + i % s.cols / cols);
                double fitted = sum[1] > 0 ? sum[0] / sum[1] : 0;
                if (pass == 1)
                    to[at] = kind == FIT_FACTORS ? fitted * from[at] : from[at] + fitted;
                else {
                    sum[0] += kind == FIT_FACTORS ? got[at] * from[at] : got[at] - from[at];
                    sum[1] += kind == FIT_FACTORS ? from[at] * from[at] : 1;
                }
            }
    }
    free(sums);
}

static void fit_heads(const trial *t, const double *from, double *to)
{
    fit(t, FIT_FACTORS, 0, 0, from, to);
}

static void fit_rows(const trial *t, const double *from, double *to)
{
    fit(t, FIT_FACTORS, 1, 0, from, to);
}

static void fit_columns(const trial *t, const double *from, double *to)
{
    fit(t, FIT_FACTORS, 0, 1, from, to);
}

static void fit_constant(const trial *t, const double *from, double *to)
{
    fit(t, FIT_CONSTANTS, 0, 0, from, to);
}

static void fit_constants_of_rows(const trial *t, const double *from, double *to)
{
    fit(t, FIT_CONSTANTS, 1, 0, from, to);
}

static void fit_constants_of_columns(const trial *t, const double *from, double *to)
{
    fit(t, FIT_CONSTANTS, 0, 1, from, to);
}

/* Zeros where the result has them; elsewhere the factor that fits best, if it is 1 / (1 - p) for
 * the share p of zeros, within four standard deviations. Zeros with another cause do not scale the
 * other numbers. */
static void drop_out(const trial *t, const double *from, double *to)
{
    result_sizes s = sizes_of(t);
    const double *got = t->s.results[t->kind];
    int64_t count = s.batch * s.heads * s.size, zeros = 0;
    double product = 0, square = 0;
    for (int64_t i = 0; i < count; i++) {
        zeros += got[i] == 0;
        product += got[i] * from[i];
        square += got[i] != 0 ? from[i] * from[i] : 0;
    }
    double p = 1 - square / product, share = (double)zeros / (double)count;
    bool fits = p > 0 && p < 1 && fabs(share - p) <= 4 * sqrt(p * (1 - p) / (double)count);
    for (int64_t i = 0; i < count; i++)
        to[i] = !fits ? from[i] : got[i] != 0 ? from[i] / (1 - p) : 0;
}

/* ---- The table ---- */

/* Whether there is more than one head, batch entry or column. */
static bool has_heads(const result_sizes *s)
{
    return s->heads > 1;
}

static bool has_batches(const result_sizes *s)
{
    return s->batch > 1;
}

static bool has_columns(const result_sizes *s)
{
    return s->cols > 1 && s->rows > 1;
}

/* The same, and few enough rows to compare each with all others. */
static bool has_few_rows(const result_sizes *s)
{
    return has_columns(s) && s->batch * s->heads * s->rows * s->size <= (int64_t)1 << 26;
}

const result_change result_changes[] = {
    {"%s's rows shifted down by one", shift_down, false, has_columns},
    {"%s's rows shifted up by one", shift_up, false, has_columns},
    {"heads in another order, or one in another's place", match_heads, false, has_heads},
    {"batch entries in another order, or one in another's place", match_batches, false,
     has_batches},
    {"columns (channels) in another order", match_columns, false, has_columns},
    {"rows (tokens) in another order, or one in another's place", match_rows, false, has_few_rows},
    {"the head before is still in the accumulator of the %s", add_head_before, false, has_heads},
    {"all heads before are still in the accumulator of the %s", add_all_heads_before, false,
     has_heads},
    {"the sum over all heads in the place of each head's %s", sum_heads, false, has_heads},
    {"the batch entry before is still in the accumulator of the %s", add_batch_before, false,
     has_batches},
    {"dropout left on: some numbers are 0, the others divided by 1 - p", drop_out, true,
     has_columns},
    {"each head multiplied by a factor of its own", fit_heads, true, has_heads},
    {"each column (channel) multiplied by a factor of its own", fit_columns, true, has_columns},
    {"each row multiplied by a factor of its own: another normaliser, or none", fit_rows, true,
     has_columns},
    {"a constant added", fit_constant, true, has_columns},
    {"a constant added to each column (a bias)", fit_constants_of_columns, true, has_columns},
    {"a constant added to each row", fit_constants_of_rows, true, has_columns},
};
const int result_change_count = sizeof result_changes / sizeof *result_changes;

bool result_change_fits(const trial *t, int row)
{
    result_sizes s = sizes_of(t);
    return result_changes[row].applies(&s);
}
