/* SPDX-License-Identifier: BSD-3-Clause */
/* SimA, XNorm and XCA in f64 with something done otherwise, and their derivatives:
 *
 *   sima, xnorm:   S = K^^T V,   Y = gamma^2 Q^ S^         (SimA: S^ = S, gamma = 1; XNorm: K^ = K)
 *   xca:           S = Q^^T K^,   Y = V S^^T, S^ the softmax of tau S
 *
 * A hat divides the lines of a matrix, rows or columns, by their norms; a softmax does so with exp
 * of them and their sums. */
#ifndef EXPERIMENTS_CHECK_NORMED_H
#define EXPERIMENTS_CHECK_NORMED_H

#include "check/check.h"

/* Below, 0 always is what the operator's description says. */

typedef enum {
    NORM_CLAIMED,
    NORM_NOT,     /* not divided */
    NORM_SUM,     /* of |x| */
    NORM_SIGNED,  /* of x */
    NORM_ROOT,    /* of the sum of squares */
    NORM_SQUARES, /* without the root */
    NORM_LARGEST
} norm_kind;

/* LINES_TILES: of each tile of rows by itself. */
typedef enum {
    LINES_CLAIMED,
    LINES_COLUMNS,
    LINES_ROWS,
    LINES_OTHER,
    LINES_WHOLE,
    LINES_TILES
} norm_lines;

typedef enum {
    EPSILON_CLAIMED,
    EPSILON_LEAST,     /* a norm is at least epsilon; the others have it added to it */
    EPSILON_NORM,      /* to the norm, */
    EPSILON_TERMS,     /* to each term of its sum, */
    EPSILON_ROOT,      /* to the sum under the root, */
    EPSILON_ROOT_TERMS /* to each of its terms */
} epsilon_place;

/* How one matrix is divided. */
typedef struct {
    norm_kind kind;
    norm_lines lines;
    epsilon_place place;
    double epsilon; /* if place is set */
    int64_t from;   /* norms of columns are of the rows from here */
    int64_t end;    /* to here; 0: of all */
    int64_t tile;   /* LINES_TILES: so many rows */
    bool mean;      /* of the terms, not their sum */
    bool padded;    /* padding counts */
    bool of_other;  /* Q is divided by K's norms, or K by Q's */
    bool detached;  /* the derivative has no part through the norm, */
    bool no_sign;   /* or one as if all were positive, */
    bool negated;   /* or of the wrong sign, */
    bool unguarded; /* or the root's where the norm is 0 */
} norm_division;

enum { NORM_OF_Q, NORM_OF_K, NORM_OF_STATE, NORM_PLACES };

/* What the accumulator of S still holds of others. */
typedef enum { STALE_NOT, STALE_LAST, STALE_ALL } stale_kind;
/* Of the heads before in the whole batch, in the batch entry, or of this head in those before. */
typedef enum { STALE_IN_BATCH, STALE_IN_ENTRY, STALE_OF_HEAD } stale_extent;

typedef struct {
    norm_division of[NORM_PLACES];
    bool power_set;
    int power;           /* of gamma, 2, or tau, 1 */
    bool transposed;     /* S, */
    bool hat_transposed; /* or what follows from it */
    double initial;      /* of S */
    stale_kind stale;
    stale_extent extent;
    const double *weights; /* of each token in S; null: 1 */
} norm_form;

/* Whether the operator is one of them. */
bool is_normed(atn_operator op);

/* A result, dense, all rows of the case. dout: dY. Negative: it cannot be computed. */
atn_status normed_answer(const attention_case *c, const norm_form *form, const double *dout,
                         result_kind kind, double *to);

/* Typical size of S, and of the norms of Q and K: where the search for a number begins. */
double normed_state_size(const attention_case *c);
double normed_norm_size(const attention_case *c);

#endif
