/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators whose output is Y = W V with weights that can be written out, computed here densely
 * with one thing done otherwise: another mask, denominator, exponential, distance or feature map.
 *
 *   W_ij = N_ij / D_i,   N = F o E,   D_i = sum_j G_ij E_ij
 *
 * E is exp of the logits or phi(Q) phi(K)^T; F and G are 1 where query i sees key j, 0 elsewhere,
 * and the factors that an online softmax leaves in its accumulators. D is 1 where the operator does
 * not divide. */
#ifndef EXPERIMENTS_CHECK_WEIGHTS_H
#define EXPERIMENTS_CHECK_WEIGHTS_H

#include "check/check.h"

/* Which keys a query sees, where these are to be others than those that are claimed. */
typedef enum {
    SEEN_CLAIMED,
    SEEN_ALL,
    SEEN_BEFORE,      /* j <= i */
    SEEN_STRICTLY,    /* j < i; the first query sees nothing */
    SEEN_OTHERS,      /* j < i; the first query sees itself */
    SEEN_NEXT,        /* j <= i + 1 */
    SEEN_AFTER,       /* j >= i */
    SEEN_BLOCKS,      /* of the query's block of tokens and those before */
    SEEN_BLOCKS_DONE, /* of the blocks before it, and itself */
    SEEN_WINDOW,      /* of the claimed keys those less than a block away */
    SEEN_NOT_ITSELF,  /* of the claimed keys those of other tokens */
    SEEN_LAST_BLOCK,
    SEEN_FIRST_BLOCK,
    SEEN_WHOLE_BLOCKS /* all but the keys behind the last whole block */
} seen_kind;

/* What replaces D. */
typedef enum {
    DIVIDE_CLAIMED,
    DIVIDE_NOT,
    DIVIDE_ROWS,    /* sums over keys */
    DIVIDE_COLUMNS, /* sums over queries: D_j */
    DIVIDE_COUNT,   /* n_k */
    DIVIDE_SEEN,    /* the number of keys that are seen */
    DIVIDE_LARGEST, /* max_j E_ij */
    DIVIDE_ROOT,    /* sqrt(sum_j E_ij^2) */
    DIVIDE_ALL,     /* the sum of all of E */
    DIVIDE_QUERIES, /* phi(q_i) . sum_j phi(q_j) */
    DIVIDE_TWICE,   /* the square of the sum */
    DIVIDE_BLOCKS   /* each block of keys by its own sum, and the mean of all blocks */
} divisor;

/* When an online softmax, whose maximum has grown, does not rescale an accumulator. */
typedef enum {
    RESCALE_EACH,
    RESCALE_NEVER,
    RESCALE_NOT_SECOND,
    RESCALE_NOT_LAST,
    RESCALE_BASE_2, /* by 2^x for exp(x) */
    RESCALE_OWN     /* each block keeps its own maximum */
} rescaling;

typedef enum {
    EXP_RIGHT,
    EXP_OF_BF16,       /* of the logit in bf16, after the maximum is subtracted */
    EXP_OF_BF16_FIRST, /* and before */
    EXP_OF_F16,
    EXP_OF_F16_FIRST,
    EXP_SERIES,    /* 1 + c0 x + c1 x^2 + c2 x^3 */
    EXP_FLOOR,     /* 2^i (1 + c0 f + c1 f^2 + c2 f^3), i the floor of x log2(e), f the rest */
    EXP_NEAREST,   /* and i the nearest integer */
    EXP_POWER_256, /* (1 + x / 256)^256 */
    EXP_POWER_1024
} exponential_form;

/* What Q and K are multiplied by first. */
typedef enum {
    FACTOR_1,
    FACTOR_ROOT,   /* 1/sqrt(d) */
    FACTOR_FOURTH, /* d^-1/4 */
    FACTOR_D,      /* 1/d */
    FACTOR_LOG2,   /* log(2): exp2 for exp */
    FACTOR_LOG2E   /* log2(e) */
} input_factor;

typedef enum {
    MAP_CLAIMED,
    MAP_IDENTITY,
    MAP_ELU,
    MAP_ELU_1,
    MAP_ELU_BRANCH,
    MAP_ELU_EXP2,
    MAP_RELU,
    MAP_RELU_1,
    MAP_EXP,
    MAP_SOFTPLUS,
    MAP_SIGMOID,
    MAP_SQUARE,
    MAP_ABSOLUTE,
    MAP_POINTWISE_COUNT,
    MAP_OVER_CHANNELS = MAP_POINTWISE_COUNT, /* softmax */
    MAP_OVER_TOKENS,
    MAP_OVER_ALL,
    MAP_EXP_CHANNELS, /* exp(x - max), not divided */
    MAP_EXP_TOKENS
} feature_map;

typedef enum { STABILISED, STABILISED_NOT, STABILISED_EACH, STABILISED_DETACHED } stabiliser;

typedef enum {
    STATE_RIGHT,
    STATE_TRANSPOSED,
    STATE_OF_HEAD_BEFORE,
    STATE_OF_ALL_BEFORE
} state_form;

/* Nystromformer's landmarks, its inverse and where that starts, and what carries no gradient. */
typedef enum {
    NYSTROM_RIGHT,
    NYSTROM_NO_INVERSE,
    NYSTROM_INVERSE_TRANSPOSED,
    NYSTROM_START_A,    /* Z_0 = A, not its transpose, over the norm */
    NYSTROM_BOTH_NORMS, /* A^T over |A|_1 |A|_inf */
    NYSTROM_SUMS,       /* landmarks: sums */
    NYSTROM_FIRST_TOKENS,
    NYSTROM_LAST_TOKENS,
    NYSTROM_INTERLEAVED,  /* means of every m-th token */
    NYSTROM_OF_QUERIES,   /* those of Q for those of K, */
    NYSTROM_OF_KEYS,      /* or those of K for those of Q */
    NYSTROM_LONGER_FIRST, /* segments */
    NYSTROM_DETACH_INVERSE,
    NYSTROM_DETACH_START,
    NYSTROM_DETACH_LANDMARKS
} nystrom_form;

/* What a logit's derivative dX, n x n_k, is multiplied by: K and, transposed, Q; or by both that
 * are of one kind, or without being transposed. */
typedef enum { PRODUCTS_RIGHT, PRODUCTS_NOT_TRANSPOSED, PRODUCTS_EXCHANGED } product_form;

/* dY . Y of a query, which is the derivative through D: of V for Y, of the query before or behind,
 * of the first half of the channels. */
typedef enum { TERM_RIGHT, TERM_OF_VALUES, TERM_BEFORE, TERM_BEHIND, TERM_HALF } term_form;

/* The logarithm of the sum in the backward pass, by which it makes its weights anew. */
typedef enum { SUM_RIGHT, SUM_IN_BASE_2, SUM_OF_BASE_2 } kept_sum;

/* What is done otherwise; 0: nothing. */
typedef struct {
    seen_kind numerator, denominator;
    bool pads_numerator, pads_denominator; /* the padding mask ignored */
    int64_t block;
    int64_t splits;            /* as many blocks */
    bool pads_features;        /* padding counts in softmaxes over tokens */
    bool mask_set, mask_added; /* logits that are not seen become `masked`, or that more */
    double masked;
    divisor divide;
    bool unshifted; /* exp(x), not exp(x - max) */
    rescaling accumulator, sum;
    exponential_form exponential;
    distance_form distance;
    input_factor of_queries, of_keys;
    feature_map queries, keys;
    int sines;       /* 0: as they are; 1: left out; 2: of the other sign for queries */
    int squares;     /* performer's |x|^2/2: 0: as it is; 1: left out; 2: |x|^2 */
    bool whole_turn; /* cosformer's angles with pi for pi/2 */
    bool angles;     /* and multiplied by what is fitted */
    stabiliser stabilise;
    state_form state;
    bool detach_sum, detach_keys; /* D is a constant, or the keys' part of it */
    int row_term;                 /* the derivative through D, so many times; 0: once */
    term_form term;
    product_form products;
    seen_kind summed; /* of the keys of dQ's sum; SEEN_CLAIMED: all */
    bool first_twice; /* the first block of keys enters dQ twice */
    kept_sum kept;
    int positions; /* added to those of keys */
    double raise;  /* added to D */
    double cap;    /* logits are cap tanh(x / cap); 0: as they are */
    bool biased;   /* by distance: 2^(-8 (h + 1) / heads) |i - j| less, the first head's h 0 */
    nystrom_form nystrom;
    double fitted[3]; /* c0, c1, c2; or what is added to D */
} weight_form;

/* What may have been done otherwise. numbers: how many are fitted to the result. */
typedef struct {
    const char *text;
    unsigned operators;
    enum { ANY_MASK, IF_CAUSAL, IF_NOT_CAUSAL, IF_PADDED, IF_MASKED } needs;
    bool output_only, gradient_only;
    int numbers;
    weight_form form;
} weight_change;

extern const weight_change weight_changes[];
extern const int weight_change_count;

/* Whether a change applies to a problem, and is affordable. */
bool weight_change_fits(const weight_change *change, const subject *s, result_kind kind);

/* The result, all rows of the case. got: what is fitted to. */
atn_status weights_answer(const weight_change *change, const subject *s, result_kind kind,
                          const double *got, double *to);

#endif
