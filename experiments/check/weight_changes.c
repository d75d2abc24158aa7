/* SPDX-License-Identifier: BSD-3-Clause */
/* The mistakes that are tried for kernels whose output is Y = W V. */
#include "check/features.h"

#define OP(name)  (1u << ATN_##name)
#define LOGITS    (OP(SOFTMAX) | OP(LINFORMER))
#define RATIOS    (OP(ELU) | OP(COSFORMER) | OP(PERFORMER))
#define DIVIDED   (LOGITS | RATIOS)
#define CAUSAL    (OP(SOFTMAX) | RATIOS)
#define PRODUCTS  (RATIOS | OP(RFF) | OP(EFFICIENT))
#define UNDIVIDED (OP(GAUSSIAN) | OP(RFF))
#define NYSTROM   OP(NYSTROMFORMER)
#define EXPS      (LOGITS | OP(GAUSSIAN) | OP(EFFICIENT) | NYSTROM)

/* One row for each common block size. output, gradient: of that result alone. */
#define SIZED(what, of, when, output, gradient, size, ...)                                         \
    {                                                                                              \
        what " (blocks of " #size ")", of, when, output, gradient, 0,                              \
        {                                                                                          \
            .block = size, __VA_ARGS__                                                             \
        }                                                                                          \
    }
#define EACH_SIZE(what, of, when, output, gradient, ...)                                           \
    SIZED(what, of, when, output, gradient, 16, __VA_ARGS__),                                      \
        SIZED(what, of, when, output, gradient, 32, __VA_ARGS__),                                  \
        SIZED(what, of, when, output, gradient, 64, __VA_ARGS__),                                  \
        SIZED(what, of, when, output, gradient, 128, __VA_ARGS__),                                 \
        SIZED(what, of, when, output, gradient, 256, __VA_ARGS__)
#define BLOCKS(what, of, when, only_output, ...)                                                   \
    EACH_SIZE(what, of, when, only_output, false, __VA_ARGS__)
#define BACK_BLOCKS(what, of, ...) EACH_SIZE(what, of, ANY_MASK, false, true, __VA_ARGS__)
/* Any result; the output alone; gradients alone. */
#define ANY(what, of, when, ...)                                                                   \
    {                                                                                              \
        what, of, when, false, false, 0,                                                           \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define OUTPUT(what, of, when, ...)                                                                \
    {                                                                                              \
        what, of, when, true, false, 0,                                                            \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define GRADIENT(what, of, ...)                                                                    \
    {                                                                                              \
        what, of, ANY_MASK, false, true, 0,                                                        \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define FITTED(what, of, count, ...)                                                               \
    {                                                                                              \
        what, of, ANY_MASK, true, false, count,                                                    \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define BOTH_MASKS(kind)   .numerator = kind, .denominator = kind
#define BOTH_MAPS(kind)    .queries = kind, .keys = kind
#define BOTH_FACTORS(kind) .of_queries = kind, .of_keys = kind

/* Coefficients of exp and of 2^f from which fits start. */
#define OF_EXP  .fitted = {1, 0.5, 0.16666666666666666}
#define OF_EXP2 .fitted = {0.6931471805599453, 0.2402265069591007, 0.0555041086648216}

const weight_change weight_changes[] = {
    /* Masks. */
    ANY("causal mask off by one: j < i, the first token sees itself", CAUSAL, IF_CAUSAL,
        BOTH_MASKS(SEEN_OTHERS)),
    ANY("causal mask off by one: j < i, the first token sees nothing", CAUSAL, IF_CAUSAL,
        BOTH_MASKS(SEEN_STRICTLY)),
    ANY("causal mask off by one: j <= i + 1, the next token is seen", CAUSAL, IF_CAUSAL,
        BOTH_MASKS(SEEN_NEXT)),
    ANY("causal mask on the wrong side: j >= i", CAUSAL, IF_CAUSAL, BOTH_MASKS(SEEN_AFTER)),
    BLOCKS("causal mask by tiles only: all of the diagonal one is seen", CAUSAL, IF_CAUSAL, false,
           BOTH_MASKS(SEEN_BLOCKS)),
    BLOCKS("causal mask by tiles only: the diagonal one is not seen, but the token itself", CAUSAL,
           IF_CAUSAL, false, BOTH_MASKS(SEEN_BLOCKS_DONE)),
    BLOCKS("a sliding window: keys that are farther away are not seen", CAUSAL | OP(GAUSSIAN),
           ANY_MASK, false, BOTH_MASKS(SEEN_WINDOW)),
    ANY("a token does not see itself", CAUSAL | OP(GAUSSIAN), ANY_MASK,
        BOTH_MASKS(SEEN_NOT_ITSELF)),
    ANY("causal mask after the division: denominator over all keys", CAUSAL, IF_CAUSAL,
        .denominator = SEEN_ALL),
    ANY("causal denominator, numerator over all keys", CAUSAL, IF_CAUSAL, .numerator = SEEN_ALL),
    ANY("causal denominator, though nothing is causal", CAUSAL, IF_NOT_CAUSAL,
        .denominator = SEEN_BEFORE),
    ANY("causal numerator, though nothing is causal, denominator over all keys", CAUSAL,
        IF_NOT_CAUSAL, .numerator = SEEN_BEFORE),
    ANY("padded keys counted in the denominator: masked after the division", OP(SOFTMAX) | RATIOS,
        IF_PADDED, .pads_denominator = true),
    ANY("padding mask in the denominator alone", OP(SOFTMAX) | RATIOS, IF_PADDED,
        .pads_numerator = true),
    OUTPUT("mask multiplies the logits: those not seen are 0, not -infinity", OP(SOFTMAX),
           IF_MASKED, .mask_set = true),
    OUTPUT("mask adds too little: -1 to logits that are not seen", OP(SOFTMAX), IF_MASKED,
           .mask_added = true, .masked = -1),
    OUTPUT("mask adds too little: -5 to logits that are not seen", OP(SOFTMAX), IF_MASKED,
           .mask_added = true, .masked = -5),
    OUTPUT("mask adds too little: -10 to logits that are not seen", OP(SOFTMAX), IF_MASKED,
           .mask_added = true, .masked = -10),
    /* Denominators. */
    ANY("not divided by the sum of the weights", DIVIDED, ANY_MASK, .divide = DIVIDE_NOT),
    ANY("not divided by the sum of the weights exp(x), without the maximum", LOGITS, ANY_MASK,
        .divide = DIVIDE_NOT, .unshifted = true),
    ANY("divided by n, the number of keys, for the sum of the weights", DIVIDED, ANY_MASK,
        .divide = DIVIDE_COUNT),
    ANY("divided by n for the sum of the weights exp(x), without the maximum", LOGITS, ANY_MASK,
        .divide = DIVIDE_COUNT, .unshifted = true),
    ANY("divided by n, the number of keys, though nothing is", UNDIVIDED | OP(EFFICIENT), ANY_MASK,
        .divide = DIVIDE_COUNT),
    ANY("divided by the number of keys that are seen, for the sum of the weights", DIVIDED,
        IF_MASKED, .divide = DIVIDE_SEEN),
    ANY("wrong axis: divided by the sums over queries, not over keys", DIVIDED, ANY_MASK,
        .divide = DIVIDE_COLUMNS, .unshifted = true),
    ANY("wrong axis: divided by the sums over queries, the maximum that of rows", LOGITS, ANY_MASK,
        .divide = DIVIDE_COLUMNS),
    ANY("divided by the sum of the weights, though nothing is divided", UNDIVIDED, ANY_MASK,
        .divide = DIVIDE_ROWS),
    ANY("divided by the sums over queries, though nothing is divided", UNDIVIDED, ANY_MASK,
        .divide = DIVIDE_COLUMNS),
    ANY("sum of phi(q), not of phi(k), in the denominator", RATIOS, IF_NOT_CAUSAL,
        .divide = DIVIDE_QUERIES),
    OUTPUT("divided by the largest weight, not by their sum", DIVIDED, ANY_MASK,
           .divide = DIVIDE_LARGEST),
    OUTPUT("divided by the weights' Euclidean norm (l2), not by their sum", DIVIDED, ANY_MASK,
           .divide = DIVIDE_ROOT),
    OUTPUT("divided twice by the sum of the weights", RATIOS, ANY_MASK, .divide = DIVIDE_TWICE),
    OUTPUT("one denominator for all queries: the sum of all weights", DIVIDED, ANY_MASK,
           .divide = DIVIDE_ALL, .unshifted = true),
    FITTED("an epsilon too large: a constant added to the denominator", DIVIDED, 1, .raise = 1),
    FITTED("a constant added to the sum of the weights exp(x), without the maximum", LOGITS, 1,
           .raise = 1, .unshifted = true),
    BLOCKS("denominator of the last block of keys alone", DIVIDED, ANY_MASK, false,
           .denominator = SEEN_LAST_BLOCK),
    BLOCKS("denominator of the first block of keys alone", DIVIDED, ANY_MASK, false,
           .denominator = SEEN_FIRST_BLOCK),
    BLOCKS("denominator without the last keys, which fill no block", DIVIDED, ANY_MASK, false,
           .denominator = SEEN_WHOLE_BLOCKS),
    /* Softmax in blocks, with a maximum that grows. */
    BLOCKS("online softmax: the accumulator never rescaled", LOGITS, ANY_MASK, false,
           .accumulator = RESCALE_NEVER),
    BLOCKS("online softmax: the sum never rescaled", LOGITS, ANY_MASK, false, .sum = RESCALE_NEVER),
    BLOCKS("online softmax: neither accumulator nor sum rescaled", LOGITS, ANY_MASK, false,
           .accumulator = RESCALE_NEVER, .sum = RESCALE_NEVER),
    BLOCKS("online softmax: the accumulator not rescaled in the second block", LOGITS, ANY_MASK,
           false, .accumulator = RESCALE_NOT_SECOND),
    BLOCKS("online softmax: the accumulator not rescaled in the last block", LOGITS, ANY_MASK,
           false, .accumulator = RESCALE_NOT_LAST),
    BLOCKS("online softmax: rescaled by 2^x for exp(x)", LOGITS, ANY_MASK, false,
           .accumulator = RESCALE_BASE_2, .sum = RESCALE_BASE_2),
    ANY("online softmax: the accumulator never rescaled (key by key)", LOGITS, ANY_MASK,
        .accumulator = RESCALE_NEVER, .block = 1),
    ANY("online softmax: the sum never rescaled (key by key)", LOGITS, ANY_MASK,
        .sum = RESCALE_NEVER, .block = 1),
    BLOCKS("online softmax: each block keeps its own maximum, nothing is rescaled", LOGITS,
           ANY_MASK, false, .accumulator = RESCALE_OWN, .sum = RESCALE_OWN),
    BLOCKS("softmax of each block of keys by itself, and the mean of all", DIVIDED, ANY_MASK, true,
           .divide = DIVIDE_BLOCKS),
    OUTPUT("softmax of each of 2 splits of the keys by itself, and the mean of all", DIVIDED,
           ANY_MASK, .divide = DIVIDE_BLOCKS, .splits = 2),
    OUTPUT("softmax of each of 4 splits of the keys by itself, and the mean of all", DIVIDED,
           ANY_MASK, .divide = DIVIDE_BLOCKS, .splits = 4),
    OUTPUT("softmax of each of 8 splits of the keys by itself, and the mean of all", DIVIDED,
           ANY_MASK, .divide = DIVIDE_BLOCKS, .splits = 8),
    /* Logits as other models change them. */
    OUTPUT("logits capped: 5 tanh(x / 5)", LOGITS, ANY_MASK, .cap = 5),
    OUTPUT("logits capped: 10 tanh(x / 10)", LOGITS, ANY_MASK, .cap = 10),
    OUTPUT("logits capped: 20 tanh(x / 20)", LOGITS, ANY_MASK, .cap = 20),
    OUTPUT("logits capped: 30 tanh(x / 30)", LOGITS, ANY_MASK, .cap = 30),
    OUTPUT("logits capped: 50 tanh(x / 50)", LOGITS, ANY_MASK, .cap = 50),
    OUTPUT("logits biased by distance (ALiBi)", OP(SOFTMAX), ANY_MASK, .biased = true),
    /* Exponentials. */
    OUTPUT("exp of logits in bf16", (LOGITS | OP(GAUSSIAN)), ANY_MASK,
           .exponential = EXP_OF_BF16_FIRST),
    OUTPUT("exp of logits less their maximum in bf16", LOGITS, ANY_MASK,
           .exponential = EXP_OF_BF16),
    OUTPUT("exp of logits in f16", (LOGITS | OP(GAUSSIAN)), ANY_MASK,
           .exponential = EXP_OF_F16_FIRST),
    OUTPUT("exp of logits less their maximum in f16", LOGITS, ANY_MASK, .exponential = EXP_OF_F16),
    OUTPUT("exp as (1 + x/256)^256", EXPS, ANY_MASK, .exponential = EXP_POWER_256),
    OUTPUT("exp as (1 + x/1024)^1024", EXPS, ANY_MASK, .exponential = EXP_POWER_1024),
    FITTED("fast exp: 2^i times a polynomial of the rest, i rounded down", EXPS, 3,
           .exponential = EXP_FLOOR, OF_EXP2),
    FITTED("fast exp: 2^i times a polynomial of the rest, i the nearest", EXPS, 3,
           .exponential = EXP_NEAREST, OF_EXP2),
    FITTED("exp(x) as a polynomial of x", EXPS, 3, .exponential = EXP_SERIES, OF_EXP),
    FITTED("fast exp without the maximum: 2^i times a polynomial, i rounded down", LOGITS, 3,
           .exponential = EXP_FLOOR, .unshifted = true, OF_EXP2),
    FITTED("fast exp without the maximum: 2^i times a polynomial, i the nearest", LOGITS, 3,
           .exponential = EXP_NEAREST, .unshifted = true, OF_EXP2),
    FITTED("exp(x) without the maximum as a polynomial of x", LOGITS, 3, .exponential = EXP_SERIES,
           .unshifted = true, OF_EXP),
    /* Distances. */
    ANY("|q|^2 + |k|^2 - q.k: the 2 missing in the distance", OP(GAUSSIAN), ANY_MASK,
        .distance = DISTANCE_NO_2),
    ANY("|q|^2 - 2 q.k: the norm of k is missing in the distance", OP(GAUSSIAN), ANY_MASK,
        .distance = DISTANCE_NO_KEYS),
    ANY("|k|^2 - 2 q.k: the norm of q is missing in the distance", OP(GAUSSIAN), ANY_MASK,
        .distance = DISTANCE_NO_QUERIES),
    ANY("exp(2 s q.k): both norms are missing in the distance", OP(GAUSSIAN), ANY_MASK,
        .distance = DISTANCE_PRODUCT),
    ANY("|q|^2 + |k|^2 + 2 q.k: the distance of q and -k", OP(GAUSSIAN), ANY_MASK,
        .distance = DISTANCE_PLUS),
    ANY("the distance itself, not its square", OP(GAUSSIAN), ANY_MASK, .distance = DISTANCE_ROOT),
    /* Inputs of feature maps that have no scale. */
    ANY("Q divided by sqrt(d), a scale that the operator has not", OP(ELU) | OP(EFFICIENT),
        ANY_MASK, .of_queries = FACTOR_ROOT),
    ANY("K divided by sqrt(d), a scale that the operator has not", OP(ELU) | OP(EFFICIENT),
        ANY_MASK, .of_keys = FACTOR_ROOT),
    ANY("Q and K divided by d^1/4, a scale that the operator has not", OP(ELU) | OP(EFFICIENT),
        ANY_MASK, BOTH_FACTORS(FACTOR_FOURTH)),
    ANY("Q and K divided by sqrt(d), a scale that the operator has not", OP(ELU) | OP(EFFICIENT),
        ANY_MASK, BOTH_FACTORS(FACTOR_ROOT)),
    ANY("Q divided by d, a scale that the operator has not", OP(ELU) | OP(EFFICIENT), ANY_MASK,
        .of_queries = FACTOR_D),
    ANY("exp2 without the factor log2(e)", OP(EFFICIENT), ANY_MASK, BOTH_FACTORS(FACTOR_LOG2)),
    ANY("exp2 of Q without the factor log2(e)", OP(EFFICIENT), ANY_MASK, .of_queries = FACTOR_LOG2),
    ANY("exp2 of K without the factor log2(e)", OP(EFFICIENT), ANY_MASK, .of_keys = FACTOR_LOG2),
    ANY("Q and K multiplied by log2(e), but exp", OP(EFFICIENT), ANY_MASK,
        BOTH_FACTORS(FACTOR_LOG2E)),
    /* Feature maps. */
    ANY("elu without its 1 in phi", OP(ELU), ANY_MASK, BOTH_MAPS(MAP_ELU)),
    ANY("elu without its 1 in phi(q)", OP(ELU), ANY_MASK, .queries = MAP_ELU),
    ANY("elu without its 1 in phi(k)", OP(ELU), ANY_MASK, .keys = MAP_ELU),
    ANY("elu: x, not 1 + x, where x > 0", OP(ELU), ANY_MASK, BOTH_MAPS(MAP_ELU_BRANCH)),
    ANY("elu: x, not 1 + x, where x > 0, in phi(q)", OP(ELU), ANY_MASK, .queries = MAP_ELU_BRANCH),
    ANY("elu: x, not 1 + x, where x > 0, in phi(k)", OP(ELU), ANY_MASK, .keys = MAP_ELU_BRANCH),
    ANY("phi(q) = ReLU, for 1 + elu", OP(ELU), ANY_MASK, .queries = MAP_RELU),
    ANY("phi(k) = ReLU, for 1 + elu", OP(ELU), ANY_MASK, .keys = MAP_RELU),
    ANY("phi = 1 + elu, for ReLU", OP(COSFORMER), ANY_MASK, BOTH_MAPS(MAP_ELU_1)),
    ANY("phi = ReLU, for 1 + elu", OP(ELU), ANY_MASK, BOTH_MAPS(MAP_RELU)),
    ANY("phi = 1 + ReLU", OP(ELU) | OP(COSFORMER), ANY_MASK, BOTH_MAPS(MAP_RELU_1)),
    ANY("phi = exp", OP(ELU) | OP(COSFORMER), ANY_MASK, BOTH_MAPS(MAP_EXP)),
    ANY("phi = 2^x for x < 0: exp2 without the factor log2(e)", OP(ELU), ANY_MASK,
        BOTH_MAPS(MAP_ELU_EXP2)),
    ANY("phi = softplus", OP(ELU) | OP(COSFORMER), ANY_MASK, BOTH_MAPS(MAP_SOFTPLUS)),
    ANY("phi = sigmoid", OP(ELU) | OP(COSFORMER), ANY_MASK, BOTH_MAPS(MAP_SIGMOID)),
    ANY("phi = x^2", OP(ELU) | OP(COSFORMER), ANY_MASK, BOTH_MAPS(MAP_SQUARE)),
    ANY("phi = |x|", OP(ELU) | OP(COSFORMER), ANY_MASK, BOTH_MAPS(MAP_ABSOLUTE)),
    ANY("phi applied to K alone, not to Q", OP(ELU) | OP(COSFORMER), ANY_MASK,
        .queries = MAP_IDENTITY),
    ANY("phi applied to Q alone, not to K", OP(ELU) | OP(COSFORMER), ANY_MASK,
        .keys = MAP_IDENTITY),
    ANY("phi left out: Q K^T over its sum", OP(ELU) | OP(COSFORMER), ANY_MASK,
        BOTH_MAPS(MAP_IDENTITY)),
    ANY("the sines' half of the features left out", OP(COSFORMER) | OP(RFF), ANY_MASK, .sines = 1),
    ANY("the sines' sign: cos of a sum, not of a difference", OP(COSFORMER) | OP(RFF), ANY_MASK,
        .sines = 2),
    ANY("keys' positions one too large", OP(COSFORMER), ANY_MASK, .positions = 1),
    ANY("keys' positions one too small", OP(COSFORMER), ANY_MASK, .positions = -1),
    ANY("the angles with pi for pi/2", OP(COSFORMER), ANY_MASK, .whole_turn = true),
    FITTED("another length M in the angles of the cosines", OP(COSFORMER), 1, .angles = true,
           .fitted = {1}),
    ANY("softmax of Q left out", OP(EFFICIENT), ANY_MASK, .queries = MAP_IDENTITY),
    ANY("softmax of K left out", OP(EFFICIENT), ANY_MASK, .keys = MAP_IDENTITY),
    ANY("both softmaxes left out", OP(EFFICIENT), ANY_MASK, BOTH_MAPS(MAP_IDENTITY)),
    ANY("softmax of Q over the wrong axis: tokens, not channels", OP(EFFICIENT), ANY_MASK,
        .queries = MAP_OVER_TOKENS),
    ANY("softmax of K over the wrong axis: channels, not tokens", OP(EFFICIENT), ANY_MASK,
        .keys = MAP_OVER_CHANNELS),
    ANY("both softmaxes over the wrong axis", OP(EFFICIENT), ANY_MASK, .queries = MAP_OVER_TOKENS,
        .keys = MAP_OVER_CHANNELS),
    ANY("padding counts in the sums of K's softmax", OP(EFFICIENT), IF_PADDED,
        .pads_features = true),
    ANY("softmax of K over all of the matrix, not over tokens", OP(EFFICIENT), ANY_MASK,
        .keys = MAP_OVER_ALL),
    ANY("softmax of Q not divided by its sum: exp(x)", OP(EFFICIENT), ANY_MASK, .queries = MAP_EXP),
    ANY("softmax of K not divided by its sum: exp(x)", OP(EFFICIENT), ANY_MASK, .keys = MAP_EXP),
    ANY("softmaxes not divided by their sums: exp(x)", OP(EFFICIENT), ANY_MASK, BOTH_MAPS(MAP_EXP)),
    ANY("softmax of Q not divided by its sum: exp(x - max)", OP(EFFICIENT), ANY_MASK,
        .queries = MAP_EXP_CHANNELS),
    ANY("softmax of K not divided by its sum: exp(x - max)", OP(EFFICIENT), ANY_MASK,
        .keys = MAP_EXP_TOKENS),
    ANY("softmaxes not divided by their sums: exp(x - max)", OP(EFFICIENT), ANY_MASK,
        .queries = MAP_EXP_CHANNELS, .keys = MAP_EXP_TOKENS),
    ANY("|x|^2/2 left out of the features", OP(PERFORMER), ANY_MASK, .squares = 1),
    ANY("|x|^2 for |x|^2/2 in the features: the half missing", OP(PERFORMER), ANY_MASK,
        .squares = 2),
    ANY("a stabiliser of its own for each key", OP(PERFORMER), ANY_MASK,
        .stabilise = STABILISED_EACH),
    /* States: sums over tokens of phi(k) v^T. */
    OUTPUT("the state phi(K)^T V transposed", PRODUCTS, IF_NOT_CAUSAL, .state = STATE_TRANSPOSED),
    OUTPUT("the state of the head before is still in the accumulator", PRODUCTS, IF_NOT_CAUSAL,
           .state = STATE_OF_HEAD_BEFORE),
    OUTPUT("the states of all heads before are still in the accumulator", PRODUCTS, IF_NOT_CAUSAL,
           .state = STATE_OF_ALL_BEFORE),
    /* Nystromformer. */
    ANY("A+ left out: no inverse", NYSTROM, ANY_MASK, .nystrom = NYSTROM_NO_INVERSE),
    ANY("A+ transposed", NYSTROM, ANY_MASK, .nystrom = NYSTROM_INVERSE_TRANSPOSED),
    ANY("the iteration for A+ starts from A, not transposed", NYSTROM, ANY_MASK,
        .nystrom = NYSTROM_START_A),
    OUTPUT("the iteration for A+ starts from A^T over |A|_1 |A|_inf", NYSTROM, ANY_MASK,
           .nystrom = NYSTROM_BOTH_NORMS),
    ANY("landmarks: sums of tokens, not means", NYSTROM, ANY_MASK, .nystrom = NYSTROM_SUMS),
    ANY("landmarks: the first token of each segment", NYSTROM, ANY_MASK,
        .nystrom = NYSTROM_FIRST_TOKENS),
    ANY("landmarks: the last token of each segment", NYSTROM, ANY_MASK,
        .nystrom = NYSTROM_LAST_TOKENS),
    ANY("landmarks: averages of every m-th token", NYSTROM, ANY_MASK,
        .nystrom = NYSTROM_INTERLEAVED),
    OUTPUT("landmarks of Q for those of K", NYSTROM, ANY_MASK, .nystrom = NYSTROM_OF_QUERIES),
    OUTPUT("landmarks of K for those of Q", NYSTROM, ANY_MASK, .nystrom = NYSTROM_OF_KEYS),
    ANY("landmarks: the longer segments come first", NYSTROM, ANY_MASK,
        .nystrom = NYSTROM_LONGER_FIRST),
    ANY("softmaxes not divided by their sums", NYSTROM, ANY_MASK, .divide = DIVIDE_NOT),
    /* Gradients: detached parts, wrong row terms, products and sums. */
    GRADIENT("inverse detached: no gradient through A+", NYSTROM,
             .nystrom = NYSTROM_DETACH_INVERSE),
    GRADIENT("the inverse's start detached: no gradient through |A|_1", NYSTROM,
             .nystrom = NYSTROM_DETACH_START),
    GRADIENT("landmarks detached: no gradient through the means", NYSTROM,
             .nystrom = NYSTROM_DETACH_LANDMARKS),
    GRADIENT("denominator detached: no gradient through the sum", DIVIDED | OP(EFFICIENT) | NYSTROM,
             .detach_sum = true),
    GRADIENT("the row term from V for Y: dY . V", OP(SOFTMAX), .term = TERM_OF_VALUES),
    GRADIENT("the row term of the query before", LOGITS, .term = TERM_BEFORE),
    GRADIENT("the row term of the next query", LOGITS, .term = TERM_BEHIND),
    GRADIENT("the row term of half of the channels", LOGITS, .term = TERM_HALF),
    GRADIENT("dK = dX Q, not transposed: dX^T Q", OP(SOFTMAX), .products = PRODUCTS_NOT_TRANSPOSED),
    GRADIENT("dK from K, dQ from Q: they are exchanged", OP(SOFTMAX),
             .products = PRODUCTS_EXCHANGED),
    BACK_BLOCKS("= for +=: dQ's sum over keys holds nothing but the last block", LOGITS,
                .summed = SEEN_LAST_BLOCK),
    BACK_BLOCKS("dQ's sum over keys without the last keys, which fill no block", LOGITS,
                .summed = SEEN_WHOLE_BLOCKS),
    BACK_BLOCKS("dQ's sum over keys has the first block twice", LOGITS, .first_twice = true),
    GRADIENT("the row term, the denominator's gradient, of the wrong sign", DIVIDED,
             .row_term = -1),
    GRADIENT("the row term, the denominator's gradient, twice", DIVIDED, .row_term = 2),
    GRADIENT("the sum's logarithm in base 2 in the backward pass, but exp", OP(SOFTMAX),
             .kept = SUM_IN_BASE_2),
    GRADIENT("the sum's logarithm in base e in the backward pass, but exp2", OP(SOFTMAX),
             .kept = SUM_OF_BASE_2),
    GRADIENT("the keys' sum detached: no gradient through it", RATIOS, .detach_keys = true),
    GRADIENT("stabiliser detached: no gradient through the maximum", OP(PERFORMER),
             .stabilise = STABILISED_DETACHED),
};
const int weight_change_count = sizeof weight_changes / sizeof *weight_changes;

/* The most multiplications for one change: about a hundred changes are tried. */
static const double most_work = 2e8;

/* Multiplications for the pairs of tokens of all heads. */
static double work_of(const weight_change *change, const subject *s)
{
    const atn_attention_shape *p = &s->c.shape;
    feature_input of_q = {.c = &s->c, .form = &change->form};
    double width = (double)(features_exist(&s->c) ? feature_width(&of_q) : p->dim);
    double keys = (double)(s->c.reference.op == ATN_LINFORMER ? s->c.reference.linformer.e.cols
                                                              : p->key_tokens);
    return (double)p->batch * (double)p->heads * (double)p->tokens * keys *
           (width + (double)p->value_dim + 20);
}

bool weight_change_fits(const weight_change *change, const subject *s, result_kind kind)
{
    const attention_case *c = &s->c;
    const weight_form *form = &change->form;
    const bool causal = c->reference.causal, padded = c->key_mask != NULL;
    const bool masks[] = {[ANY_MASK] = true,
                          [IF_CAUSAL] = causal,
                          [IF_NOT_CAUSAL] = !causal,
                          [IF_PADDED] = padded,
                          [IF_MASKED] = causal || padded};
    feature_input of_q = {.c = c, .form = form};
    int64_t keys =
        c->reference.op == ATN_LINFORMER ? c->reference.linformer.e.cols : c->shape.key_tokens;
    if (!(change->operators >> c->reference.op & 1) || !masks[change->needs] ||
        (!features_exist(c) && c->reference.op == ATN_COSFORMER) ||
        (c->reference.op == ATN_NYSTROMFORMER && !nystrom_exists(c, form)))
        return false;
    if ((form->term == TERM_OF_VALUES || form->products != PRODUCTS_RIGHT) &&
        c->shape.tokens != keys)
        return false;
    if (kind == RESULT_OUTPUT ? change->gradient_only : kind > RESULT_VALUES || change->output_only)
        return false;
    if (form->block >= keys || form->splits >= keys ||
        (form->state == STATE_TRANSPOSED && feature_width(&of_q) != c->shape.value_dim) ||
        (form->state > STATE_TRANSPOSED && c->shape.heads * c->shape.batch < 2))
        return false;
    return work_of(change, s) * (change->numbers ? 3 : 1) <= most_work;
}
