/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices, operations on them one at a time as in PyTorch's eager mode, each of which stores its
 * result rounded (arithmetic.h), and their derivatives by reverse-mode differentiation. */
#ifndef CHECK_TAPE_H
#define CHECK_TAPE_H

#include "arithmetic.h"

typedef struct tape tape;
typedef int node; /* index of a matrix on the tape */
enum { NO_NODE = -1 };

tape *tape_create(const arithmetic *a);
void tape_free(tape *t);

/* A matrix from outside, rounded to the claimed type; and a constant, which has no derivative. */
node tape_input(tape *t, int64_t rows, int64_t cols, const double *values);
node tape_constant(tape *t, int64_t rows, int64_t cols, const double *values);
/* A constant column of 1 for rows that are there and 0 for the others. Null: all are there. */
node tape_flags(tape *t, int64_t rows, const unsigned char *there);

int64_t tape_rows(const tape *t, node x);
int64_t tape_cols(const tape *t, node x);
const double *tape_value(const tape *t, node x);

/* op(a) op(b), where op transposes or not. */
node tape_product(tape *t, bool transpose_a, bool transpose_b, node a, node b);

/* A matrix with one row or column is broadcast. X(code, value, derivative by a, by b), where z is
 * the value. */
#define TAPE_PAIR_LIST(X)                                                                          \
    X(TAPE_ADD, a + b, 1, 1)                                                                       \
    X(TAPE_SUB, a - b, 1, -1)                                                                      \
    X(TAPE_MUL, a *b, b, a)                                                                        \
    X(TAPE_DIV, a / b, 1 / b, -z / b)                                                              \
    X(TAPE_MAX, a >= b ? a : b, a >= b, !(a >= b))

/* X(code, value, derivative), where y is the value and c a number. */
#define TAPE_SINGLE_LIST(X)                                                                        \
    X(TAPE_EXP, exponential(s, x), y)                                                              \
    X(TAPE_EXP2, exponential(s, x *ln2), y *ln2)                                                   \
    X(TAPE_LOG, log(x), 1 / x)                                                                     \
    X(TAPE_SQUARE, x *x, 2 * x)                                                                    \
    X(TAPE_SQRT, sqrt(x), 0.5 / y)                                                                 \
    X(TAPE_ABS, fabs(x), (x > 0) - (x < 0))                                                        \
    X(TAPE_ABS_UNSIGNED, fabs(x), 1) /* a bug */                                                   \
    X(TAPE_RELU, x > 0 ? x : 0, x > 0)                                                             \
    X(TAPE_ELU, x >= 0 ? x : expm1(x), x >= 0 ? 1 : y + 1)                                         \
    X(TAPE_ELU_1, x >= 0 ? x + 1 : exp(x), x >= 0 ? 1 : y)  /* 1 + elu(x) */                       \
    X(TAPE_ELU_BRANCH, x >= 0 ? x : exp(x), x >= 0 ? 1 : y) /* a bug */                            \
    X(TAPE_COS, cos(x), -sin(x))                                                                   \
    X(TAPE_SIN, sin(x), cos(x))                                                                    \
    X(TAPE_SCALE, x *c, c)                                                                         \
    X(TAPE_SHIFT, x + c, 1)                                                                        \
    X(TAPE_AS_BF16, round_to(ATN_BF16, x), 1)                                                      \
    X(TAPE_AS_F16, round_to(ATN_F16, x), 1)                                                        \
    X(TAPE_AS_TF32, round_to(ATN_TF32, x), 1)                                                      \
    X(TAPE_LEAST, x >= c || isnan(x) ? x : c, x >= c)

#define TAPE_ENTRY(code, ...) code,
typedef enum { TAPE_PAIR_LIST(TAPE_ENTRY) } tape_pair;
typedef enum { TAPE_SINGLE_LIST(TAPE_ENTRY) } tape_single;
#undef TAPE_ENTRY

node tape_with(tape *t, tape_pair op, node a, node b);
node tape_of(tape *t, tape_single op, node x, double number);

/* Over the rows (the result is 1 x cols), or over the columns (rows x 1). */
typedef enum { OVER_ROWS, OVER_COLS } tape_axis;
node tape_sum(tape *t, tape_axis axis, node x);
node tape_largest(tape *t, tape_axis axis, node x);

/* |a_i - b_j|^2, as a sum of squares. */
node tape_distances(tape *t, node a, node b);

node tape_slice(tape *t, node x, int64_t first, int64_t count);   /* of the rows */
node tape_columns(tape *t, node x, int64_t first, int64_t count); /* of the columns */
node tape_below(tape *t, node a, node b);                         /* rows of b below those of a */
/* x where flags (which may have one row or column) are not 0, and a number elsewhere. */
node tape_where(tape *t, node flags, node x, double otherwise);
node tape_transposed(tape *t, node x);
node tape_detached(tape *t, node x);

/* Finds the derivatives of sum dy * y, once per tape. */
void tape_backward(tape *t, node y, const double *dy);
const double *tape_gradient(const tape *t, node x); /* null: none */

#endif
