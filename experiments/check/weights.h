/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators whose output is Y = W V with weights that can be written out, computed densely here
 * with a change: another mask, denominator, exponential, distance or feature map.
 *
 *   W_ij = N_ij / D_i,   N = F o E,   D_i = sum_j G_ij E_ij
 *
 * E is exp of the logits or phi(Q) phi(K)^T; F and G are 1 where query i sees key j, 0 elsewhere,
 * times the factors that a wrong online softmax leaves in its accumulators. D is 1 where the
 * operator does not divide. */
#ifndef EXPERIMENTS_CHECK_WEIGHTS_H
#define EXPERIMENTS_CHECK_WEIGHTS_H

#include "check/check.h"

/* The keys that a query sees, if not the claimed ones. */
typedef enum {
    SEEN_CLAIMED,
    SEEN_ALL,
    SEEN_BEFORE,      /* j <= i */
    SEEN_STRICTLY,    /* j < i; the first query sees nothing */
    SEEN_OTHERS,      /* j < i; the first query sees itself */
    SEEN_NEXT,        /* j <= i + 1 */
    SEEN_AFTER,       /* j >= i */
    SEEN_BLOCKS,      /* keys of the query's block of tokens and of those before */
    SEEN_BLOCKS_DONE, /* keys of the blocks before it, and the query's own */
    SEEN_WINDOW,      /* claimed keys that are less than a block away */
    SEEN_NOT_ITSELF,  /* claimed keys of other tokens */
    SEEN_LAST_BLOCK,
    SEEN_FIRST_BLOCK,
    SEEN_WHOLE_BLOCKS /* all but the keys after the last whole block */
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

/* Where an online softmax omits to rescale an accumulator when the maximum has grown. */
typedef enum {
    RESCALE_EACH,
    RESCALE_NEVER,
    RESCALE_NOT_SECOND,
    RESCALE_NOT_LAST,
    RESCALE_BASE_2, /* by 2^x instead of exp(x) */
    RESCALE_OWN     /* each block keeps its own maximum */
} rescaling;

typedef enum {
    EXP_RIGHT,
    EXP_OF_BF16,       /* of the logit in bf16, after the maximum is subtracted */
    EXP_OF_BF16_FIRST, /* before it is subtracted */
    EXP_OF_F16,
    EXP_OF_F16_FIRST,
    EXP_SERIES,    /* 1 + c0 x + c1 x^2 + c2 x^3 */
    EXP_FLOOR,     /* 2^i (1 + c0 f + c1 f^2 + c2 f^3), i the floor of x log2(e), f the rest */
    EXP_NEAREST,   /* the same with i the nearest integer */
    EXP_POWER_256, /* (1 + x / 256)^256 */
    EXP_POWER_1024
} exponential_form;

/* The factor of Q or K before anything else. */
typedef enum {
    FACTOR_1,
    FACTOR_ROOT,   /* 1/sqrt(d) */
    FACTOR_FOURTH, /* d^-1/4 */
    FACTOR_D,      /* 1/d */
    FACTOR_LOG2,   /* log(2): exp2 instead of exp */
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

/* Changes of Nystromformer: its landmarks, its inverse and where that starts, and detached
 * gradients. */
typedef enum {
    NYSTROM_RIGHT,
    NYSTROM_NO_INVERSE,
    NYSTROM_INVERSE_TRANSPOSED,
    NYSTROM_START_A,    /* Z_0 = A, not its transpose, over the norm */
    NYSTROM_BOTH_NORMS, /* A^T over |A|_1 |A|_inf */
    NYSTROM_SUMS,       /* landmarks are sums */
    NYSTROM_FIRST_TOKENS,
    NYSTROM_LAST_TOKENS,
    NYSTROM_INTERLEAVED,  /* means of every m-th token */
    NYSTROM_OF_QUERIES,   /* Q's landmarks instead of K's, */
    NYSTROM_OF_KEYS,      /* or K's instead of Q's */
    NYSTROM_LONGER_FIRST, /* the longer segments come first */
    NYSTROM_DETACH_INVERSE,
    NYSTROM_DETACH_START,
    NYSTROM_DETACH_LANDMARKS
} nystrom_form;

/* How the logits' derivative dX, n x n_k, is multiplied: dQ = dX K and dK = dX^T Q; or dK = dX Q;
 * or dQ = dX Q and dK = dX^T K. */
typedef enum { PRODUCTS_RIGHT, PRODUCTS_NOT_TRANSPOSED, PRODUCTS_EXCHANGED } product_form;

/* The row term dY . Y of a query, which is the derivative through D: with V for Y, of the query
 * before or behind, of the first half of the channels. */
typedef enum { TERM_RIGHT, TERM_OF_VALUES, TERM_BEFORE, TERM_BEHIND, TERM_HALF } term_form;

/* How the backward pass recomputes the weights from the logarithm of the sum: with one in base 2
 * but exp, or with one in base e but exp2. */
typedef enum { SUM_RIGHT, SUM_IN_BASE_2, SUM_OF_BASE_2 } kept_sum;

/* A change of the weights; fields that are 0 change nothing. */
typedef struct {
    seen_kind numerator, denominator;
    bool pads_numerator, pads_denominator; /* the padding mask ignored */
    int64_t block;
    int64_t splits;            /* if not 0: the number of blocks, which sets their size */
    bool pads_features;        /* padding counts in softmaxes over tokens */
    bool mask_set, mask_added; /* logits that are not seen become `masked`, or have it added */
    double masked;
    divisor divide;
    bool unshifted; /* exp(x), not exp(x - max) */
    rescaling accumulator, sum;
    exponential_form exponential;
    distance_form distance;
    input_factor of_queries, of_keys;
    feature_map queries, keys;
    int sines;       /* 0: unchanged; 1: left out; 2: of the other sign for queries */
    int squares;     /* performer's |x|^2/2: 0: unchanged; 1: left out; 2: |x|^2 */
    bool whole_turn; /* cosformer's angles with pi for pi/2 */
    bool angles;     /* and multiplied by fitted[0] */
    stabiliser stabilise;
    state_form state;
    bool detach_sum, detach_keys; /* D, or the keys' part of it, is a constant */
    int row_term;                 /* factor of the derivative through D; 0: 1 */
    term_form term;
    product_form products;
    seen_kind summed; /* the keys in dQ's sum; SEEN_CLAIMED: all */
    bool first_twice; /* the first block of keys enters dQ twice */
    kept_sum kept;
    int positions; /* added to the positions of keys */
    double raise;  /* times fitted[0] is added to D */
    double cap;    /* logits become cap tanh(x / cap); 0: unchanged */
    bool biased; /* ALiBi: 2^(-8 (h + 1) / heads) |i - j| is subtracted in head h, counted from 0 */
    nystrom_form nystrom;
    double fitted[3]; /* c0, c1, c2; or fitted[0] alone, for raise and angles */
} weight_form;

/* A mistake in weights that is tried. numbers: how many are fitted to the result. */
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

/* The changed result, all rows of the case. got: the result to which numbers are fitted. */
atn_status weights_answer(const weight_change *change, const subject *s, result_kind kind,
                          const double *got, double *to);

#endif
