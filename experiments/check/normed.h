/* SPDX-License-Identifier: BSD-3-Clause */
/* SimA, XNorm and XCA in f64 with changes, and their derivatives:
 *
 *   sima, xnorm:   S = K^^T V,   Y = gamma^2 Q^ S^         (SimA: S^ = S, gamma = 1; XNorm: K^ = K)
 *   xca:           S = Q^^T K^,   Y = V S^^T, S^ the softmax of tau S
 *
 * A hat divides the lines of a matrix (rows or columns) by their norms; a softmax is the same for
 * exp of the matrix, with sums as norms. */
#ifndef EXPERIMENTS_CHECK_NORMED_H
#define EXPERIMENTS_CHECK_NORMED_H

#include "check/check.h"

/* In what follows 0 always means: as the operator's description says. */

typedef enum {
    NORM_CLAIMED,
    NORM_NOT,     /* not divided */
    NORM_SUM,     /* of |x| */
    NORM_SIGNED,  /* of x */
    NORM_ROOT,    /* of the sum of squares */
    NORM_SQUARES, /* without the root */
    NORM_LARGEST
} norm_kind;

/* LINES_TILES: the columns of each tile of rows. */
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
    EPSILON_LEAST,     /* the norm is at least epsilon; the other places add epsilon: */
    EPSILON_NORM,      /* to the norm, */
    EPSILON_TERMS,     /* to each term of its sum, */
    EPSILON_ROOT,      /* to the sum under the root, */
    EPSILON_ROOT_TERMS /* to each of its terms */
} epsilon_place;

/* How a matrix is divided. */
typedef struct {
    norm_kind kind;
    norm_lines lines;
    epsilon_place place;
    double epsilon; /* if place is set */
    int64_t from;   /* norms of columns are taken over the rows from here */
    int64_t end;    /* to here, exclusive; 0: over all rows */
    int64_t tile;   /* for LINES_TILES: rows of a tile */
    bool mean;      /* the mean of the terms instead of their sum */
    bool padded;    /* rows of padding count */
    bool of_other;  /* Q is divided by K's norms, or K by Q's */
    bool detached;  /* there is no derivative through the norm, */
    bool no_sign;   /* or it lacks the sign of x, */
    bool negated;   /* or has the wrong sign, */
    bool unguarded; /* or has the root's derivative even where the norm is 0 */
} norm_division;

enum { NORM_OF_Q, NORM_OF_K, NORM_OF_STATE, NORM_PLACES };

/* Other sums that are still in the accumulator of S: the one before, or all before. */
typedef enum { STALE_NOT, STALE_LAST, STALE_ALL } stale_kind;
/* Sums of the previous heads in the batch, of those in the batch entry, or of this head in previous
 * entries. */
typedef enum { STALE_IN_BATCH, STALE_IN_ENTRY, STALE_OF_HEAD } stale_extent;

typedef struct {
    norm_division of[NORM_PLACES];
    bool power_set;
    int power;           /* of gamma (default 2) or tau (default 1) */
    bool transposed;     /* S is transposed, */
    bool hat_transposed; /* or S^ is */
    double initial;      /* initial value of S */
    stale_kind stale;
    stale_extent extent;
    const double *weights; /* weight of each token in S; null: 1 */
} norm_form;

/* Whether the operator is one of the three. */
bool is_normed(atn_operator op);

/* A result, computed densely for all rows of the case. dout: dY. Negative: it cannot be
 * computed. */
atn_status normed_answer(const attention_case *c, const norm_form *form, const double *dout,
                         result_kind kind, double *to);

/* Typical sizes of S and of the norms of Q and K, from which the search for a number starts. */
double normed_state_size(const attention_case *c);
double normed_norm_size(const attention_case *c);

#endif
