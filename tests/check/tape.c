/* SPDX-License-Identifier: BSD-3-Clause */
#include "tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

typedef enum {
    IS_LEAF,
    IS_PRODUCT,
    IS_PAIR,
    IS_SINGLE,
    IS_SUM,
    IS_LARGEST,
    IS_DISTANCES,
    IS_SLICE,
    IS_COLUMNS,
    IS_BELOW,
    IS_WHERE,
    IS_TRANSPOSED
} node_kind;

typedef struct {
    node_kind kind;
    int64_t rows, cols;
    double *value, *gradient; /* gradient null: none so far */
    bool differentiable;
    node a, b;
    int op; /* tape_pair, tape_single, tape_axis */
    bool transpose_a, transpose_b;
    double number;
    int64_t first;
} step;

struct tape {
    arithmetic s;
    step *steps;
    int count;
};

tape *tape_create(const arithmetic *a)
{
    tape *t = must_allocate(1, sizeof *t);
    t->s = *a;
    return t;
}

void tape_free(tape *t)
{
    for (int i = 0; i < t->count; i++) {
        free(t->steps[i].value), free(t->steps[i].gradient);
    }
    free(t->steps);
    free(t);
}

static step *at(const tape *t, node x)
{
    return &t->steps[x];
}

int64_t tape_rows(const tape *t, node x)
{
    return at(t, x)->rows;
}

int64_t tape_cols(const tape *t, node x)
{
    return at(t, x)->cols;
}

const double *tape_value(const tape *t, node x)
{
    return at(t, x)->value;
}

const double *tape_gradient(const tape *t, node x)
{
    return at(t, x)->gradient;
}

static node add_step(tape *t, node_kind kind, int64_t rows, int64_t cols, node a, node b)
{
    t->steps = must_resize(t->steps, (size_t)t->count + 1, sizeof *t->steps);
    t->steps[t->count] = (step){.kind = kind, .rows = rows, .cols = cols, .a = a, .b = b};
    step *s = &t->steps[t->count];
    s->value = must_allocate((size_t)(rows * cols), sizeof *s->value);
    s->differentiable =
        (a >= 0 && at(t, a)->differentiable) || (b >= 0 && at(t, b)->differentiable);
    return t->count++;
}

/* Rounds a matrix to what the operation stores. */
static node stored(tape *t, node x)
{
    step *s = at(t, x);
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        s->value[i] = round_stored(&t->s, s->value[i]);
    return x;
}

node tape_input(tape *t, int64_t rows, int64_t cols, const double *values)
{
    node x = tape_constant(t, rows, cols, values);
    for (int64_t i = 0; i < rows * cols; i++)
        at(t, x)->value[i] = round_to(t->s.claimed, at(t, x)->value[i]);
    at(t, x)->differentiable = true;
    return x;
}

node tape_constant(tape *t, int64_t rows, int64_t cols, const double *values)
{
    node x = add_step(t, IS_LEAF, rows, cols, NO_NODE, NO_NODE);
    memcpy(at(t, x)->value, values, (size_t)(rows * cols) * sizeof *values);
    return stored(t, x);
}

node tape_flags(tape *t, int64_t rows, const unsigned char *there)
{
    node x = add_step(t, IS_LEAF, rows, 1, NO_NODE, NO_NODE);
    for (int64_t i = 0; i < rows; i++)
        at(t, x)->value[i] = !there || there[i];
    return x;
}

/* ---- Products ---- */

static double *transposed(int64_t rows, int64_t cols, const double *x)
{
    double *y = must_allocate((size_t)(rows * cols), sizeof *y);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            y[j * rows + i] = x[i * cols + j];
    return y;
}

/* op(x) (rows x cols), rounded as products read it; to be freed. */
static double *operand(const arithmetic *s, bool transpose, int64_t rows, int64_t cols,
                       const double *x)
{
    double *y =
        transpose ? transposed(cols, rows, x) : must_allocate((size_t)(rows * cols), sizeof *y);
    if (!transpose)
        memcpy(y, x, (size_t)(rows * cols) * sizeof *y);
    for (int64_t i = 0; s->operands != s->stored && i < rows * cols; i++)
        y[i] = s->cut ? truncate_to(s->operands, y[i]) : round_to(s->operands, y[i]);
    return y;
}

/* out (rows x cols) = op(a) op(b), a sum over `terms` terms. */
static void multiply(const arithmetic *s, int64_t rows, int64_t terms, int64_t cols, bool ta,
                     bool tb, const double *a, const double *b, double *out)
{
    double *left = operand(s, ta, rows, terms, a), *right = operand(s, tb, terms, cols, b);
    for (int64_t i = 0; i < rows; i++)
        sum_of_products(s, terms, cols, left + i * terms, right, out + i * cols);
    for (int64_t i = 0; i < rows * cols; i++)
        out[i] = round_stored(s, out[i]);
    free(left), free(right);
}

node tape_product(tape *t, bool transpose_a, bool transpose_b, node a, node b)
{
    const step *x = at(t, a), *y = at(t, b);
    int64_t rows = transpose_a ? x->cols : x->rows, terms = transpose_a ? x->rows : x->cols;
    int64_t cols = transpose_b ? y->rows : y->cols;
    if (terms != (transpose_b ? y->cols : y->rows))
        end_program("a product of matrices that do not fit");
    node z = add_step(t, IS_PRODUCT, rows, cols, a, b);
    at(t, z)->transpose_a = transpose_a;
    at(t, z)->transpose_b = transpose_b;
    multiply(&t->s, rows, terms, cols, transpose_a, transpose_b, at(t, a)->value, at(t, b)->value,
             at(t, z)->value);
    return z;
}

/* ---- Element by element ---- */

/* Where element (i, j) of a larger matrix has its counterpart. */
static int64_t place(const step *s, int64_t i, int64_t j)
{
    return (s->rows == 1 ? 0 : i) * s->cols + (s->cols == 1 ? 0 : j);
}

#define PAIR_VALUE(code, value, by_a, by_b)                                                        \
    case code:                                                                                     \
        return value;

static double pair_value(tape_pair op, double a, double b)
{
    switch (op) {
        TAPE_PAIR_LIST(PAIR_VALUE)
    }
    return NAN;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

node tape_with(tape *t, tape_pair op, node a, node b)
{
    int64_t rows = larger(tape_rows(t, a), tape_rows(t, b));
    int64_t cols = larger(tape_cols(t, a), tape_cols(t, b));
    node z = add_step(t, IS_PAIR, rows, cols, a, b);
    const step *x = at(t, a), *y = at(t, b);
    at(t, z)->op = op;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            at(t, z)->value[i * cols + j] =
                pair_value(op, x->value[place(x, i, j)], y->value[place(y, i, j)]);
    return stored(t, z);
}

static const double log2e = 1.4426950408889634, ln2 = 0.6931471805599453;

/* 2^x by a parabola that is exact at integers. */
static double fast_exp2(double x)
{
    double whole = floor(x), f = x - whole;
    return isfinite(x) ? ldexp(1 + f * (0.6565 + 0.3435 * f), (int)fmax(whole, -2000)) : exp2(x);
}

static double exponential(const arithmetic *s, double x)
{
    return s->fast_exp ? fast_exp2(x * log2e) : exp(x);
}

#define SINGLE_VALUE(code, value, slope)                                                           \
    case code:                                                                                     \
        return value;

static double single_value(const arithmetic *s, tape_single op, double x, double c)
{
    switch (op) {
        TAPE_SINGLE_LIST(SINGLE_VALUE)
    }
    return NAN;
}

#define SINGLE_SLOPE(code, value, slope)                                                           \
    case code:                                                                                     \
        return slope;

/* The derivative from x and the stored value y, as eager mode computes it. */
static double single_slope(tape_single op, double x, double y, double c)
{
    switch (op) {
        TAPE_SINGLE_LIST(SINGLE_SLOPE)
    }
    return NAN;
}

node tape_of(tape *t, tape_single op, node x, double number)
{
    node z = add_step(t, IS_SINGLE, tape_rows(t, x), tape_cols(t, x), x, NO_NODE);
    step *s = at(t, z);
    s->op = op;
    s->number = number;
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        s->value[i] = single_value(&t->s, op, at(t, x)->value[i], number);
    return stored(t, z);
}

/* ---- Along rows and columns ---- */

static double *ones(int64_t count)
{
    double *x = must_allocate((size_t)count, sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = 1;
    return x;
}

/* Sums of x over its rows, or over its columns. */
static void sum_along(const arithmetic *s, tape_axis axis, int64_t rows, int64_t cols,
                      const double *x, double *out)
{
    double *one = ones(larger(rows, cols));
    if (axis == OVER_ROWS)
        sum_of_products(s, rows, cols, one, x, out);
    else
        for (int64_t i = 0; i < rows; i++)
            sum_of_products(s, cols, 1, one, x + i * cols, out + i);
    free(one);
}

static node along(tape *t, node_kind kind, tape_axis axis, node x)
{
    int64_t rows = tape_rows(t, x), cols = tape_cols(t, x);
    node z =
        add_step(t, kind, axis == OVER_ROWS ? 1 : rows, axis == OVER_ROWS ? cols : 1, x, NO_NODE);
    at(t, z)->op = axis;
    return z;
}

node tape_sum(tape *t, tape_axis axis, node x)
{
    node z = along(t, IS_SUM, axis, x);
    sum_along(&t->s, axis, tape_rows(t, x), tape_cols(t, x), at(t, x)->value, at(t, z)->value);
    return stored(t, z);
}

node tape_largest(tape *t, tape_axis axis, node x)
{
    node z = along(t, IS_LARGEST, axis, x);
    const step *from = at(t, x);
    double *to = at(t, z)->value;
    for (int64_t i = 0; i < at(t, z)->rows * at(t, z)->cols; i++)
        to[i] = -INFINITY;
    for (int64_t i = 0; i < from->rows * from->cols; i++) {
        double *most = &to[axis == OVER_ROWS ? i % from->cols : i / from->cols];
        *most = from->value[i] > *most || isnan(from->value[i]) ? from->value[i] : *most;
    }
    return z;
}

node tape_distances(tape *t, node a, node b)
{
    int64_t rows = tape_rows(t, a), cols = tape_rows(t, b), d = tape_cols(t, a);
    node z = add_step(t, IS_DISTANCES, rows, cols, a, b);
    double *difference = must_allocate((size_t)d, sizeof *difference);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            for (int64_t c = 0; c < d; c++)
                difference[c] =
                    round_stored(&t->s, at(t, a)->value[i * d + c] - at(t, b)->value[j * d + c]);
            sum_of_products(&t->s, d, 1, difference, difference, &at(t, z)->value[i * cols + j]);
        }
    free(difference);
    return stored(t, z);
}

/* ---- Parts ---- */

node tape_slice(tape *t, node x, int64_t first, int64_t count)
{
    int64_t cols = tape_cols(t, x);
    node z = add_step(t, IS_SLICE, count, cols, x, NO_NODE);
    at(t, z)->first = first;
    memcpy(at(t, z)->value, at(t, x)->value + first * cols,
           (size_t)(count * cols) * sizeof(double));
    return z;
}

node tape_columns(tape *t, node x, int64_t first, int64_t count)
{
    int64_t rows = tape_rows(t, x), cols = tape_cols(t, x);
    node z = add_step(t, IS_COLUMNS, rows, count, x, NO_NODE);
    at(t, z)->first = first;
    for (int64_t i = 0; i < rows * count; i++)
        at(t, z)->value[i] = at(t, x)->value[i / count * cols + first + i % count];
    return z;
}

node tape_below(tape *t, node a, node b)
{
    int64_t cols = tape_cols(t, a), above = tape_rows(t, a) * cols, below = tape_rows(t, b) * cols;
    node z = add_step(t, IS_BELOW, tape_rows(t, a) + tape_rows(t, b), cols, a, b);
    memcpy(at(t, z)->value, at(t, a)->value, (size_t)above * sizeof(double));
    memcpy(at(t, z)->value + above, at(t, b)->value, (size_t)below * sizeof(double));
    return z;
}

node tape_where(tape *t, node flags, node x, double otherwise)
{
    int64_t rows = tape_rows(t, x), cols = tape_cols(t, x);
    node z = add_step(t, IS_WHERE, rows, cols, x, NO_NODE);
    const step *f = at(t, flags);
    at(t, z)->b = flags;
    for (int64_t i = 0; i < rows * cols; i++)
        at(t, z)->value[i] =
            f->value[place(f, i / cols, i % cols)] != 0 ? at(t, x)->value[i] : otherwise;
    return z;
}

node tape_transposed(tape *t, node x)
{
    int64_t rows = tape_rows(t, x), cols = tape_cols(t, x);
    node z = add_step(t, IS_TRANSPOSED, cols, rows, x, NO_NODE);
    free(at(t, z)->value);
    at(t, z)->value = transposed(rows, cols, at(t, x)->value);
    return z;
}

node tape_detached(tape *t, node x)
{
    return tape_constant(t, tape_rows(t, x), tape_cols(t, x), at(t, x)->value);
}

/* ---- Backward ---- */

/* Adds a contribution, rows x cols, to the gradient of x; sums it where x was broadcast. */
static void add_gradient(tape *t, node x, int64_t rows, int64_t cols, const double *gradient)
{
    step *s = at(t, x);
    double *summed = NULL;
    if (s->rows != rows) {
        summed = must_allocate((size_t)cols, sizeof *summed);
        sum_along(&t->s, OVER_ROWS, rows, cols, gradient, summed);
        rows = 1;
    }
    if (s->cols != cols) {
        double *narrow = must_allocate((size_t)rows, sizeof *narrow);
        sum_along(&t->s, OVER_COLS, rows, cols, summed ? summed : gradient, narrow);
        free(summed);
        summed = narrow;
    }
    const double *from = summed ? summed : gradient;
    bool first = !s->gradient;
    if (first)
        s->gradient = must_allocate((size_t)(s->rows * s->cols), sizeof *s->gradient);
    for (int64_t i = 0; i < s->rows * s->cols; i++) {
        double term = round_stored(&t->s, from[i]);
        s->gradient[i] = first ? term : round_stored(&t->s, s->gradient[i] + term);
    }
    free(summed);
}

static bool wanted(const tape *t, node x)
{
    return x >= 0 && at(t, x)->differentiable;
}

static double *room_of(const tape *t, node x)
{
    return must_allocate((size_t)(at(t, x)->rows * at(t, x)->cols), sizeof(double));
}

/* C = op(A) op(B): the gradient of op(A) is dC op(B)^T, that of op(B) is op(A)^T dC; transposed
 * where op transposes. */
static void product_backward(tape *t, const step *s)
{
    const step *a = at(t, s->a), *b = at(t, s->b);
    int64_t terms = s->transpose_a ? a->rows : a->cols;
    if (wanted(t, s->a)) {
        double *to = room_of(t, s->a);
        if (s->transpose_a)
            multiply(&t->s, terms, s->cols, s->rows, s->transpose_b, true, b->value, s->gradient,
                     to);
        else
            multiply(&t->s, s->rows, s->cols, terms, false, !s->transpose_b, s->gradient, b->value,
                     to);
        add_gradient(t, s->a, a->rows, a->cols, to);
        free(to);
    }
    if (wanted(t, s->b)) {
        double *to = room_of(t, s->b);
        if (s->transpose_b)
            multiply(&t->s, s->cols, s->rows, terms, true, s->transpose_a, s->gradient, a->value,
                     to);
        else
            multiply(&t->s, terms, s->rows, s->cols, !s->transpose_a, false, a->value, s->gradient,
                     to);
        add_gradient(t, s->b, b->rows, b->cols, to);
        free(to);
    }
}

#define PAIR_SLOPE(code, value, by_a, by_b)                                                        \
    case code:                                                                                     \
        return first ? by_a : by_b;

/* The derivative by the first or the second operand. */
static double pair_slope(tape_pair op, bool first, double a, double b, double z)
{
    switch (op) {
        TAPE_PAIR_LIST(PAIR_SLOPE)
    }
    return NAN;
}

static void pair_backward(tape *t, const step *s)
{
    double *to = must_allocate((size_t)(s->rows * s->cols), sizeof *to);
    for (int turn = 0; turn < 2; turn++) {
        const step *a = at(t, s->a), *b = at(t, s->b);
        node x = turn ? s->b : s->a;
        if (!wanted(t, x))
            continue;
        for (int64_t i = 0; i < s->rows * s->cols; i++) {
            int64_t row = i / s->cols, col = i % s->cols;
            double slope = pair_slope((tape_pair)s->op, turn == 0, a->value[place(a, row, col)],
                                      b->value[place(b, row, col)], s->value[i]);
            to[i] = round_stored(&t->s, s->gradient[i] * slope);
        }
        add_gradient(t, x, s->rows, s->cols, to);
    }
    free(to);
}

static void single_backward(tape *t, const step *s)
{
    double *to = room_of(t, s->a);
    for (int64_t i = 0; i < s->rows * s->cols; i++) {
        double slope =
            single_slope((tape_single)s->op, at(t, s->a)->value[i], s->value[i], s->number);
        to[i] = s->gradient[i] * round_stored(&t->s, slope);
    }
    add_gradient(t, s->a, s->rows, s->cols, to);
    free(to);
}

/* Every term of a sum gets its gradient; of a maximum only the first largest number. */
static void along_backward(tape *t, const step *s)
{
    const step *from = at(t, s->a);
    bool *found = must_allocate((size_t)(s->rows * s->cols), sizeof *found);
    double *to = room_of(t, s->a);
    for (int64_t i = 0; i < from->rows * from->cols; i++) {
        int64_t j = s->op == OVER_ROWS ? i % from->cols : i / from->cols;
        bool takes = s->kind == IS_SUM || (from->value[i] == s->value[j] && !found[j]);
        found[j] |= takes;
        to[i] = takes ? s->gradient[j] : 0;
    }
    add_gradient(t, s->a, from->rows, from->cols, to);
    free(to), free(found);
}

/* 2 sum_j g_ij (a_i - b_j) for a; for b the roles are exchanged. */
static void distances_backward(tape *t, const step *s)
{
    for (int turn = 0; turn < 2; turn++) {
        const step *x = at(t, turn ? s->b : s->a), *y = at(t, turn ? s->a : s->b);
        int64_t d = x->cols;
        if (!wanted(t, turn ? s->b : s->a))
            continue;
        double *to = must_allocate((size_t)(x->rows * d), sizeof *to);
        double *differences = must_allocate((size_t)(y->rows * d), sizeof *differences);
        double *weights = must_allocate((size_t)y->rows, sizeof *weights);
        for (int64_t i = 0; i < x->rows; i++) {
            for (int64_t j = 0; j < y->rows; j++)
                weights[j] = 2 * s->gradient[turn ? j * s->cols + i : i * s->cols + j];
            for (int64_t j = 0; j < y->rows * d; j++)
                differences[j] = round_stored(&t->s, x->value[i * d + j % d] - y->value[j]);
            sum_of_products(&t->s, y->rows, d, weights, differences, to + i * d);
        }
        add_gradient(t, turn ? s->b : s->a, x->rows, d, to);
        free(to), free(differences), free(weights);
    }
}

static void part_backward(tape *t, const step *s)
{
    const step *from = at(t, s->a);
    double *to = room_of(t, s->a);
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        to[s->kind == IS_SLICE ? s->first * s->cols + i
                               : i / s->cols * from->cols + s->first + i % s->cols] =
            s->gradient[i];
    add_gradient(t, s->a, from->rows, from->cols, to);
    free(to);
}

static void below_backward(tape *t, const step *s)
{
    int64_t above = at(t, s->a)->rows;
    if (wanted(t, s->a))
        add_gradient(t, s->a, above, s->cols, s->gradient);
    if (wanted(t, s->b))
        add_gradient(t, s->b, s->rows - above, s->cols, s->gradient + above * s->cols);
}

static void where_backward(tape *t, const step *s)
{
    const step *flags = at(t, s->b);
    double *to = room_of(t, s->a);
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        to[i] = flags->value[place(flags, i / s->cols, i % s->cols)] != 0 ? s->gradient[i] : 0;
    add_gradient(t, s->a, s->rows, s->cols, to);
    free(to);
}

static void transposed_backward(tape *t, const step *s)
{
    double *to = transposed(s->rows, s->cols, s->gradient);
    add_gradient(t, s->a, s->cols, s->rows, to);
    free(to);
}

void tape_backward(tape *t, node y, const double *dy)
{
    static void (*const backward[])(tape *, const step *) = {
        [IS_PRODUCT] = product_backward,
        [IS_PAIR] = pair_backward,
        [IS_SINGLE] = single_backward,
        [IS_SUM] = along_backward,
        [IS_LARGEST] = along_backward,
        [IS_DISTANCES] = distances_backward,
        [IS_SLICE] = part_backward,
        [IS_COLUMNS] = part_backward,
        [IS_BELOW] = below_backward,
        [IS_WHERE] = where_backward,
        [IS_TRANSPOSED] = transposed_backward,
    };
    double *rounded = room_of(t, y);
    for (int64_t i = 0; i < tape_rows(t, y) * tape_cols(t, y); i++)
        rounded[i] = round_to(t->s.claimed, dy[i]);
    add_gradient(t, y, tape_rows(t, y), tape_cols(t, y), rounded);
    free(rounded);
    for (node x = y; x >= 0; x--)
        if (at(t, x)->gradient && at(t, x)->differentiable && backward[at(t, x)->kind])
            backward[at(t, x)->kind](t, at(t, x));
}
