/* SPDX-License-Identifier: BSD-3-Clause */
/* The bugs of the corpus, one line each: real ones from the issue trackers of attention kernels
 * (README.md says which), described in this project's own words. */
#ifndef CHECK_BUGS_H
#define CHECK_BUGS_H

#include <attnum/operators.h>

#define OP(name) (1u << ATN_##name)
#define EVERY    (~0u)
#define SOFTS    (OP(SOFT) | OP(SOFTPP))
#define KERNELS  (SOFTS | OP(GAUSSIAN))
#define LOGITS   (OP(SOFTMAX) | OP(LINFORMER) | OP(NYSTROMFORMER))
#define KEYED    (EVERY & ~SOFTS)
#define LENGTHS  (KEYED & ~OP(XCA) & ~OP(LINFORMER) & ~OP(NYSTROMFORMER))
#define RATIOS   (OP(ELU) | OP(COSFORMER) | OP(PERFORMER))
#define PRODUCTS                                                                                   \
    (OP(SOFTMAX) | OP(GAUSSIAN) | OP(LINFORMER) | OP(NYSTROMFORMER) | OP(PERFORMER) | OP(RFF))
#define TOKENS (OP(SIMA) | OP(XNORM) | OP(EFFICIENT) | OP(XCA) | OP(RFF) | RATIOS)

/* What a problem must have for the bug to have an effect. */
enum {
    NEEDS_HEADS = 1,
    NEEDS_BATCH = 2,
    NEEDS_CAUSAL = 4,
    NEEDS_PADDING = 8,
    NEEDS_DEAD = 16,
    NEEDS_LARGE = 32,
    NEEDS_TINY = 64,
    NEEDS_GROUPS = 128, /* heads that share keys and values */
    NEEDS_SHARED = 256  /* K = Q */
};

/* X(code, name, operators, needs, words). words: what a finding that names the bug says:
 * alternatives between |, of each all parts between & (case does not matter). */
#define BUG_LIST(X)                                                                                \
    /* The output as a whole. */                                                                   \
    X(OUTPUT_1_05, "output x 1.05", EVERY, 0, "constant|factor")                                   \
    X(OUTPUT_1_02, "output x 1.02", EVERY, 0, "constant|factor")                                   \
    X(OUTPUT_1_005, "output x 1.005", EVERY, 0, "constant|factor")                                 \
    X(CHANNEL_10, "one channel + 10 %", EVERY, 0, "column|channel")                                \
    X(CHANNEL_2, "one channel + 2 %", EVERY, 0, "column|channel")                                  \
    X(SECOND_ROWS, "every second row x 1.01", EVERY, 0, "row")                                     \
    X(ONE_HEAD_1_02, "one head x 1.02", EVERY, NEEDS_HEADS, "head")                                \
    X(TILE_ZERO, "a 64-row tile of one head is zero", EVERY, 0, "zero|missing|tile")               \
    X(TAIL_NOT_WRITTEN, "the last rows (n mod 64) are not written", EVERY, 0, "last|tail|zero")    \
    X(TILE_STALE, "a tile's accumulator keeps the tile before", EVERY, 0,                          \
      "tile|accumul|stale|rows")                                                                   \
    X(HEADS_SWAPPED, "two heads swapped", EVERY, NEEDS_HEADS, "heads")                             \
    X(BATCH_SWAPPED, "two batch entries swapped", EVERY, NEEDS_BATCH, "batch")                     \
    X(HEADS_FIRST, "output as batch x tokens x heads x width", EVERY, NEEDS_HEADS,                 \
      "tokens x heads|layout|laid out")                                                            \
    X(ROWS_SHIFTED, "output's rows shifted by one", EVERY, 0, "shift")                             \
    X(CHANNELS_SWAPPED, "two channels swapped", EVERY, 0, "channel|column")                        \
    X(LAST_CHANNELS, "the last channels (d mod 16, or 8) not written", EVERY, 0, "channel|column") \
    X(HEAD_ZERO, "one head not written", EVERY, NEEDS_HEADS,                                       \
      "head&zero|head&missing|head&written")                                                       \
    X(BATCH_TWICE, "the second batch entry has the first added", EVERY, NEEDS_BATCH,               \
      "batch|accumul")                                                                             \
    X(HEAD_TWICE, "each head has the one before added", EVERY, NEEDS_HEADS,                        \
      "head before|heads before|accumul")                                                          \
    X(NAN_ROW, "one row is NaN", EVERY, 0, "nan|finite")                                           \
    X(OFFSET, "a constant added: 1 % of the output's size", EVERY, 0,                              \
      "bias|offset|constant added|mean")                                                           \
    X(VALUES_ADDED, "V added: a residual connection", KEYED, 0, "values added|residual")           \
    X(DROPOUT, "dropout left on: a tenth of the output 0, the rest / 0.9", EVERY, 0, "dropout")    \
    X(ROWS_INTERLEAVED, "rows of each 8 in the order 0 4 1 5 2 6 3 7", EVERY, 0, "rows&order")     \
    X(RESULT_BF16, "results rounded to bf16, though more is claimed", EVERY, 0, "bf16")            \
    X(RESULT_F16, "results rounded to f16, though more is claimed", EVERY, 0, "f16|tf32")          \
    X(RESULT_F32, "results rounded to f32, f64 claimed", EVERY, 0, "f32")                          \
    X(TRUNCATED, "results cut off instead of rounded", EVERY, 0, "toward|truncat|cut|bias")        \
    /* Arithmetic. */                                                                              \
    X(SUMS_BF16, "sums kept in bf16", EVERY, 0, "bf16")                                            \
    X(SUMS_F16, "sums kept in f16", EVERY, 0, "f16|tf32")                                          \
    X(SUMS_F32, "sums kept in f32, f64 claimed", EVERY, 0, "f32")                                  \
    X(STORED_BF16, "intermediate results in bf16, f32 claimed", EVERY & ~SOFTS, 0, "bf16")         \
    X(STORED_F16, "intermediate results in f16, f32 claimed", EVERY & ~SOFTS, 0, "f16|tf32")       \
    X(OPERANDS_TF32, "products in tf32, f32 claimed", EVERY & ~SOFTS, 0, "tf32|f16")               \
    X(OPERANDS_BF16, "products in bf16, f32 claimed", EVERY & ~SOFTS, 0, "bf16")                   \
    X(PARTIALS_BF16, "sums over tokens kept in bf16 between tiles of 16", EVERY, 0, "bf16")        \
    X(STATE_TF32, "the sum over tokens in tf32, f32 claimed", EVERY & ~SOFTS, 0, "tf32|f16")       \
    X(EXP_OVERFLOW, "exponentials in f16, without the maximum", LOGITS | OP(EFFICIENT),            \
      NEEDS_LARGE, "overflow|nan|finite|maximum|f16")                                              \
    X(FLUSHED, "subnormal numbers flushed to zero", EVERY, NEEDS_TINY, "subnormal|flush|zero")     \
    X(FAST_EXP, "exp by a parabola, 0.2 % off", KERNELS | LOGITS | OP(EFFICIENT), 0, "exp")        \
    /* Inputs. */                                                                                  \
    X(KEYS_OF_HEAD_0, "head 0's K for every head", KEYED, NEEDS_HEADS, "head&k|stride")            \
    X(VALUES_OF_HEAD_0, "head 0's V for every head", EVERY, NEEDS_HEADS, "head&v|stride")          \
    X(BATCH_STRIDE, "batch entry 0's K and V for every one", EVERY, NEEDS_BATCH, "batch|stride")   \
    X(VALUES_SHIFTED, "V's rows shifted by one", EVERY, 0, "shift")                                \
    X(KEYS_SHIFTED, "K's rows shifted by one", KEYED, 0, "shift")                                  \
    X(KEYS_ARE_QUERIES, "Q for K", KEYED, 0, "keys ignored|k = q")                                 \
    X(QUERIES_KEYS, "Q and K exchanged", KEYED, 0, "queries and keys")                             \
    X(KEYS_VALUES, "K and V exchanged", KEYED, 0, "keys and values")                               \
    X(GROUPS_MODULO, "key head h mod g, not h / (heads / g)", KEYED, NEEDS_GROUPS, "head&mod")     \
    X(KEYS_TOKENS_FIRST, "K and V read as batch x tokens x heads x width", KEYED, NEEDS_HEADS,     \
      "tokens x heads")                                                                            \
    X(KEYS_HEADS_FIRST, "K and V read as heads x batch", KEYED, NEEDS_HEADS | NEEDS_BATCH,         \
      "heads x batch")                                                                             \
    X(KEYS_ONE_ROW_ON, "K and V read one row too far", KEYED, 0, "one row|shift")                  \
    X(CACHE_NOT_WRITTEN, "the last token's K and V still are 0", LENGTHS, 0,                       \
      "zero|are 0|left out")                                                                       \
    X(CACHE_STALE, "the last token's K and V are those of the one before", KEYED, 0,               \
      "one before|twice&last")                                                                     \
    X(KEYS_F8, "K kept in f8 (e4m3)", KEYED, 0, "f8")                                              \
    X(VALUES_INT8, "V kept in int8, a scale for each token", EVERY, 0, "int8")                     \
    X(CHANNELS_HALF, "Q K^T over the first half of the channels", PRODUCTS, 0,                     \
      "half of the channels|channels of q and k")                                                  \
    X(ROTARY, "Q and K turned by their positions, as for another model", KEYED, 0, "rotary")       \
    X(TILE_AGAIN, "V's second tile is the first again", EVERY, 0, "second tile")                   \
    X(TILE_OUT, "the second tile of tokens left out", LENGTHS, 0, "second tile")                   \
    X(TAIL_OVERLAPS, "the last tile moved back to be whole: some tokens count twice", LENGTHS, 0,  \
      "twice")                                                                                     \
    X(KEYS_TAIL_ZERO, "the last n mod 16 keys are 0", KEYED, 0, "are 0")                           \
    X(LAST_TOKEN, "the last token left out", LENGTHS, 0, "last|tail|left out|missing")             \
    X(LAST_4, "the last 4 tokens left out", LENGTHS, 0, "last|tail|left out|missing")              \
    X(TAIL_16, "the last n mod 16 (or 16) tokens left out", LENGTHS, 0,                            \
      "last|tail|left out|missing")                                                                \
    X(TAIL_64, "the last n mod 64 (or 64) tokens left out", LENGTHS, 0,                            \
      "last|tail|left out|missing")                                                                \
    X(FIRST_TOKEN, "the first token left out", LENGTHS, 0, "first")                                \
    X(ZEROS_BEHIND, "zeros up to the next 64 count as tokens", LENGTHS, 0,                         \
      "zero&token|padd|phantom|tile")                                                              \
    X(STATE_TAIL, "the product with V leaves out the last n mod 16 (or 16) tokens", EVERY, 0,      \
      "last|tail|left out|missing")                                                                \
    X(STATE_OF_LAST_TILE, "the product with V of the last tile alone: = for +=", EVERY, 0,         \
      "= for +=")                                                                                  \
    X(STATE_TWICE, "the product with V counts 16 tokens twice", EVERY, 0, "twice|tile|token")      \
    X(STATE_STALE, "the head before is still in the accumulator", TOKENS, NEEDS_HEADS,             \
      "head before|previous|accumul|stale")                                                        \
    X(STATE_INITIAL, "the state starts at 0.1, not at 0", TOKENS & ~OP(XCA), 0,                    \
      "initial|offset|constant added")                                                             \
    X(STATE_TRANSPOSED, "the state is transposed",                                                 \
      OP(SIMA) | OP(XNORM) | OP(EFFICIENT) | OP(XCA) | OP(ELU), 0, "transpos")                     \
    /* Masks. */                                                                                   \
    X(CAUSAL_IGNORED, "causal mask ignored", EVERY, NEEDS_CAUSAL, "causal")                        \
    X(CAUSAL_NEXT, "causal mask off by one: j <= i + 1", EVERY, NEEDS_CAUSAL, "causal|off by one") \
    X(CAUSAL_STRICT, "causal mask off by one: j < i", EVERY, NEEDS_CAUSAL, "causal|off by one")    \
    X(CAUSAL_REVERSED, "causal mask on the wrong side", EVERY, NEEDS_CAUSAL, "causal|side")        \
    X(CAUSAL_TILES, "causal mask by tiles of 16 only", EVERY, NEEDS_CAUSAL, "causal|tile")         \
    X(PADDING_IGNORED, "padding mask ignored", EVERY & ~SOFTS, NEEDS_PADDING, "mask|padd")         \
    X(PADDING_INVERTED, "padding mask inverted", EVERY & ~SOFTS, NEEDS_PADDING, "mask|padd")       \
    X(PADDING_OF_BATCH_0, "batch entry 0's mask for every one", EVERY & ~SOFTS,                    \
      NEEDS_PADDING | NEEDS_BATCH, "mask|padd")                                                    \
    X(NORM_PADDED, "norms, or K's softmax, count padded tokens",                                   \
      OP(SIMA) | OP(XCA) | OP(EFFICIENT), NEEDS_PADDING, "padd")                                   \
    X(PADDED_QUERIES, "rows of padded queries are not 0", EVERY & ~SOFTS, NEEDS_PADDING,           \
      "mask|padd")                                                                                 \
    /* Scales and exponentials. */                                                                 \
    X(SCALE_MISSING, "scale missing", KERNELS | LOGITS | OP(PERFORMER) | OP(RFF), 0,               \
      "not scaled|scale 1|scale")                                                                  \
    X(SCALE_TWICE, "scale applied twice", KERNELS | LOGITS, 0, "twice|scale")                      \
    X(SCALE_NO_ROOT, "1/d for 1/sqrt(d)", KERNELS | LOGITS, 0, "square root|scale")                \
    X(SCALE_D_PLUS_1, "d + 1 for d in the scale", KERNELS | LOGITS, 0, "scale")                    \
    X(SCALE_EMBED, "width of all heads in the scale", KERNELS | LOGITS, NEEDS_HEADS,               \
      "embed|scale")                                                                               \
    X(SCALE_BF16, "the scale rounded to bf16", KERNELS | LOGITS, 0, "scale")                       \
    X(SCALE_NO_HALF, "the kernel's scale without its half", KERNELS, 0, "half|scale")              \
    X(EXP2, "exp2 without the factor log2(e)", KERNELS | LOGITS | OP(EFFICIENT), 0,                \
      "log2|exp2|base 2")                                                                          \
    X(LOGITS_CAPPED, "logits capped by tanh, as for another model", OP(SOFTMAX) | OP(LINFORMER),   \
      0, "capped")                                                                                 \
    /* Distances. */                                                                               \
    X(DISTANCE_ROOT, "the distance, not its square", KERNELS, 0,                                   \
      "not squared|square root|distance itself")                                                   \
    X(DISTANCE_CROSS, "|x|^2 + |y|^2 - x.y: the 2 missing", KERNELS, 0, "2 missing|cross|- x.y")   \
    X(DISTANCE_KEYS, "|x|^2 - 2 x.y: |y|^2 missing", KERNELS, 0,                                   \
      "norm of y|norms of k|missing&distance")                                                     \
    /* Softmax. */                                                                                 \
    X(NOT_DIVIDED, "not divided by the sum", OP(SOFTMAX) | OP(EFFICIENT) | RATIOS, 0,              \
      "normalis|divid|sum")                                                                        \
    X(WRONG_AXIS, "softmax over the wrong axis", OP(SOFTMAX) | OP(EFFICIENT) | OP(XCA), 0, "axis") \
    X(RESCALE_FORGOTTEN, "online softmax: one block not rescaled", OP(SOFTMAX), 0,                 \
      "rescal|maximum|online|block")                                                               \
    X(SUM_NOT_RESCALED, "online softmax: the sum not rescaled", OP(SOFTMAX), 0,                    \
      "rescal|maximum|online|sum")                                                                 \
    X(SUM_OF_LAST_BLOCK, "online softmax: the sum of the last block alone", OP(SOFTMAX), 0,        \
      "sum|block|online")                                                                          \
    X(RESCALE_LAST, "online softmax: the last block not rescaled", OP(SOFTMAX), 0,                 \
      "rescal|maximum|online|block")                                                               \
    X(RESCALE_BASE_2, "online softmax: rescaled by 2^x for exp(x)", OP(SOFTMAX), 0, "2^x")         \
    X(DENOMINATOR_TAIL, "the denominator leaves out the last n mod 16 keys", RATIOS, 0,            \
      "denominator")                                                                               \
    X(SPLITS_AVERAGED, "two splits of the keys, averaged without their sums", OP(SOFTMAX), 0,      \
      "block|split|each")                                                                          \
    X(WEIGHTS_DROPPED, "dropout of the weights left on", OP(SOFTMAX) | OP(GAUSSIAN), 0, "dropout") \
    X(QUERY_WEIGHTS, "softmax of Q left out", OP(EFFICIENT), 0, "q&softmax")                       \
    X(KEY_WEIGHTS, "softmax of K over channels", OP(EFFICIENT), 0, "axis|channel")                 \
    X(LOGITS_SCALED, "Q divided by sqrt(d) first", OP(EFFICIENT) | OP(SIMA) | OP(ELU), 0,          \
      "scale|sqrt|constant")                                                                       \
    /* Norms. */                                                                                   \
    X(NORM_AXIS, "norms over the wrong axis", OP(SIMA) | OP(XNORM) | OP(XCA), 0,                   \
      "axis|channels, not|over channels|rows")                                                     \
    X(NORM_AXIS_KEYS, "K alone normed over the wrong axis", OP(SIMA) | OP(XCA), 0,                 \
      "k&channels|k&axis")                                                                         \
    X(NORM_LARGEST, "amax for the norm's sum", OP(SIMA), 0, "max")                                 \
    X(NORM_MEAN, "mean for the norm's sum", OP(SIMA), 0, "mean|constant|divided by n")             \
    X(NORM_OTHER, "l2 for l1, or l1 for l2", OP(SIMA) | OP(XNORM) | OP(XCA), 0,                    \
      "l2|l1|norm=l1|norm=l2")                                                                     \
    X(NORM_SQUARED, "norm without its square root", OP(XNORM) | OP(XCA), 0, "square root|squares") \
    X(NORM_ALL, "one norm for the whole matrix", OP(SIMA) | OP(XNORM) | OP(XCA), 0,                \
      "whole|one norm|frobenius")                                                                  \
    X(NORM_TILE, "norms of the first 64 tokens for all", OP(SIMA) | OP(XCA), 0, "tile|first 64")   \
    X(NORM_SIGNED, "sums of x for sums of |x|", OP(SIMA), 0, "sums of x")                          \
    X(NORM_TILES, "each tile of 16 tokens has norms of its own", OP(SIMA) | OP(XCA), 0,            \
      "each tile")                                                                                 \
    X(NORM_OF_Q_MISSING, "Q not normalised", OP(SIMA) | OP(XNORM) | OP(XCA), 0,                    \
      "q not|queries not|normal")                                                                  \
    X(NORM_OF_K_MISSING, "K not normalised", OP(SIMA) | OP(XCA), 0, "k not|keys not|normal")       \
    X(NORM_OF_K, "Q divided by K's norms", OP(SIMA) | OP(XCA), 0, "k's norm|norms of k|norm of k") \
    X(EPSILON_FORGOTTEN, "epsilon forgotten, a dead channel", OP(SIMA) | OP(XCA), NEEDS_DEAD,      \
      "epsilon")                                                                                   \
    X(ROOT_OF_ZERO, "the root's derivative at 0, a dead channel", OP(XCA), NEEDS_DEAD,             \
      "nan|finite|epsilon|root")                                                                   \
    X(EPSILON_LARGE, "epsilon too large", OP(SIMA) | OP(XNORM) | OP(XCA) | RATIOS, 0, "epsilon")   \
    X(GAMMA_ONCE, "gamma applied to Q alone", OP(XNORM), 0, "gamma")                               \
    X(GAMMA_OF_HEAD_0, "head 0's gamma or tau for all", OP(XNORM) | OP(XCA), NEEDS_HEADS,          \
      "gamma|temperature|tau")                                                                     \
    X(GAMMA_IGNORED, "gamma or tau ignored", OP(XNORM) | OP(XCA), 0, "gamma|temperature|tau")      \
    X(TAU_DIVIDES, "divided by tau", OP(XCA), 0, "tau|temperature")                                \
    X(TAU_LATE, "tau applied after the softmax", OP(XCA), 0, "tau|temperature|factor of its own")  \
    X(TAU_EXP, "exp(gamma) or exp(tau)", OP(XNORM) | OP(XCA), 0, "exp of")                         \
    X(TAU_WIDTH, "divided by sqrt(d) as well", OP(XCA), 0, "sqrt(d)")                              \
    X(MATRIX_TRANSPOSED, "the softmax's matrix transposed", OP(XCA), 0, "transposed")              \
    X(NORM_BEFORE_HEADS, "Q normed before it is split into heads", OP(XNORM), NEEDS_HEADS,         \
      "heads&norm|all heads")                                                                      \
    /* Linear attention's ratios. */                                                               \
    X(DIVIDED_BY_N, "divided by n for the normaliser", RATIOS, 0, "divid|normalis")                \
    X(SUM_OF_QUERIES, "sum of phi(q) in the denominator", RATIOS, 0, "denominator|phi(q)")         \
    X(CAUSAL_DENOMINATOR, "causal denominator", OP(ELU), 0, "denominator|causal")                  \
    X(FULL_DENOMINATOR, "denominator over all keys, causal numerator", OP(ELU), NEEDS_CAUSAL,      \
      "denominator")                                                                               \
    X(ELU_WITHOUT_1, "elu without its 1", OP(ELU), 0, "elu|1 +")                                   \
    X(ELU_BRANCH, "x, not x + 1, where x > 0", OP(ELU), 0, "elu|1 +")                              \
    X(KEYS_RELU, "ReLU for phi(k)", OP(ELU), 0, "relu")                                            \
    X(FEATURES_OF_K_ONLY, "phi applied to K alone", OP(ELU) | OP(COSFORMER), 0,                    \
      "phi|feature|relu")                                                                          \
    X(SIN_MISSING, "the sines' half missing", OP(COSFORMER) | OP(RFF), 0, "sin")                   \
    X(SIN_SIGN, "cos of a sum for that of a difference", OP(COSFORMER) | OP(RFF), 0, "sin")        \
    X(WEIGHTS_IGNORED, "cosines left out", OP(COSFORMER), 0, "weighting|cos")                      \
    X(LENGTH_WRONG, "M = n + 64 in the cosines", OP(COSFORMER), 0, "length|m =")                   \
    X(LENGTH_OTHER, "M = 3 n in the cosines", OP(COSFORMER), 0, "length m")                        \
    X(POSITIONS_SHIFTED, "keys' positions one too large", OP(COSFORMER), 0, "position")            \
    X(FEATURE_COUNT, "1/M or 1/sqrt(M) forgotten", OP(RFF), 0, "constant|sqrt(m)|features")        \
    X(FEATURE_SCALE, "sqrt(s) for sqrt(2 s)", OP(RFF), 0, "scale|2 s")                             \
    X(FEATURES_HALF, "the second half of the features left out", OP(PERFORMER), 0,                 \
      "features left out|half of the features")                                                    \
    X(HALF_SQUARE, "|x|^2/2 left out of the features", OP(PERFORMER), 0, "|x|^2|square|feature")   \
    X(STABILISER_PER_KEY, "a stabiliser of its own for each key", OP(PERFORMER), 0, "stabilise")   \
    X(FEATURE_EPSILON, "the features' epsilon forgotten", OP(PERFORMER), 0, "epsilon")             \
    /* SOFT, Nystromformer, Linformer. */                                                          \
    X(INVERSE_MISSING, "A+ left out", SOFTS | OP(NYSTROMFORMER), 0, "a+|inverse")                  \
    X(STEPS_FEW, "half of the steps of the inverse", SOFTS | OP(NYSTROMFORMER), 0,                 \
      "iterations|steps")                                                                          \
    X(STEPS_ONE_LESS, "one step less", SOFTS | OP(NYSTROMFORMER), 0, "iterations|steps")           \
    X(RIDGE, "the ridge left out, or one of 0.01 added", SOFTS, 0, "ridge|variant")                \
    X(LANDMARKS_FIRST, "the first tokens as landmarks", SOFTS, 0, "first tokens|landmarks")        \
    X(LANDMARKS_SUM, "landmarks: sums, not means", SOFTS | OP(NYSTROMFORMER), 0, "landmark|mean")  \
    X(LANDMARKS_WINDOW, "landmarks of consecutive tokens, not of the grid", SOFTS, 0,              \
      "consecutive|landmarks")                                                                     \
    X(LANDMARKS_LAST, "landmarks: the last of every n/m tokens", SOFTS | OP(NYSTROMFORMER), 0,     \
      "landmarks: the last")                                                                       \
    X(LANDMARKS_HALF, "half as many landmarks", OP(NYSTROMFORMER), 0, "half as many")              \
    X(START_TRANSPOSED, "the iteration starts from A, not A^T", OP(NYSTROMFORMER), 0,              \
      "transpos|start")                                                                            \
    X(NORMALISATION_MISSING, "D left out", OP(SOFTPP), 0, "normalisation")                         \
    X(NORMALISATION_ROOT, "D^-1 for D^-1/2", OP(SOFTPP), 0, "square root of d|d^-1")               \
    X(PROJECTIONS_SWAPPED, "E and F exchanged", OP(LINFORMER), 0, "e and f")                       \
    X(PROJECTION_SHIFTED, "E's rows off by one", OP(LINFORMER), 0, "shift|off by one")             \
    X(PROJECTION_HALF, "the second half of E's and F's columns left out", OP(LINFORMER), 0,        \
      "columns of e and f")                                                                        \
    X(PROJECTION_ONE, "E for F as well", OP(LINFORMER), 0, "f ignored|f = e")                      \
    /* Gradients alone: the output is right. */                                                    \
    X(NORM_DETACHED, "norms detached", OP(SIMA) | OP(XNORM) | OP(XCA), 0, "detach")                \
    X(SIGN_MISSING, "sign(q) missing in the norm's derivative", OP(SIMA), 0, "sign(|sign of q")    \
    X(SUM_DETACHED, "the denominator detached (softmax: the row term)",                            \
      OP(SOFTMAX) | OP(EFFICIENT) | RATIOS, 0, "detach|row term")                                  \
    X(KEY_SUM_DETACHED, "the denominator's keys detached", RATIOS, 0, "detach")                    \
    X(STABILISER_DETACHED, "stabiliser detached", OP(PERFORMER), 0, "detach")                      \
    X(INVERSE_DETACHED, "inverse detached", SOFTS | OP(NYSTROMFORMER), 0,                          \
      "inverse detached|detach&inverse")                                                           \
    X(ALPHA_DETACHED, "the inverse's start detached", OP(NYSTROMFORMER), 0, "detach")              \
    X(LANDMARKS_DETACHED, "landmarks detached", SOFTS | OP(NYSTROMFORMER), 0,                      \
      "landmarks detached")                                                                        \
    X(SIDE_DETACHED, "K(L, Q) detached", SOFTS, 0, "k(l, q) detached|k(l; q) detached")            \
    X(BACKWARD_UNMASKED, "no causal mask in the backward pass", OP(SOFTMAX), NEEDS_CAUSAL,         \
      "causal|mask")                                                                               \
    X(BACKWARD_NO_PADDING, "no padding mask in the backward pass", KEYED, NEEDS_PADDING,           \
      "mask|padd")                                                                                 \
    X(BACKWARD_NO_SCALE, "no scale in the backward pass", KERNELS | LOGITS, 0, "scale")            \
    X(SUM_IN_BASE_2, "backward: the sum's logarithm in base 2, but exp", OP(SOFTMAX), 0,           \
      "base 2|log2")                                                                               \
    X(ROW_TERM_SIGN, "backward: the row term of the wrong sign", OP(SOFTMAX), 0, "row term")       \
    X(ROW_TERM_TWICE, "backward: the row term twice", OP(SOFTMAX), 0, "row term")                  \
    X(ROW_TERM_OF_VALUES, "backward: the row term from V for Y", OP(SOFTMAX), 0, "row term")       \
    X(KEYS_OF_LAST_TILE, "dQ of the last tile of keys alone: = for +=", OP(SOFTMAX), 0,            \
      "= for +=")                                                                                  \
    X(QUERIES_ALONE, "dQ without what comes by K = Q", KEYED, NEEDS_SHARED, "part of q")           \
    X(KEYS_ALONE, "dQ of K = Q alone", KEYED, NEEDS_SHARED, "part of k")                           \
    X(GRADIENT_SIGN, "dQ of the wrong sign", EVERY, 0, "sign")                                     \
    X(GRADIENT_DOUBLED, "dQ doubled", EVERY, 0, "doubled|factor|constant")                         \
    X(GRADIENT_HALVED, "dQ halved", EVERY, 0, "halved|factor|constant")                            \
    X(GRADIENT_1_02, "gradients x 1.02", EVERY, 0, "constant|factor")                              \
    X(GRADIENT_1_005, "gradients x 1.005", EVERY, 0, "constant|factor")                            \
    X(GRADIENT_CHANNEL, "one channel of dQ and dV + 5 %", EVERY, 0, "column|channel")              \
    X(GRADIENT_UNSCALED, "dQ without the scale", KERNELS | LOGITS, 0, "scale|constant")            \
    X(GRADIENT_LN2, "dQ without the factor ln 2 of exp2", LOGITS | KERNELS, 0, "log(2)|log2")      \
    X(GRADIENTS_SWAPPED, "dQ and dK exchanged", KEYED, 0, "in its place|exchang|swap")             \
    X(GRADIENT_TAIL, "the last tile of dV not written", EVERY, 0, "last|tail|zero|tile")           \
    X(GRADIENT_TAIL_DY, "dK and dV without the last tile of queries", EVERY, 0,                    \
      "last|tail|tile|queries")                                                                    \
    X(GRADIENT_LAST_DY, "dK and dV of the last tile of queries alone: = for +=", EVERY, 0,         \
      "= for +=")                                                                                  \
    X(GRADIENT_HEAD_TWICE, "dK and dV of the head before not cleared", EVERY, NEEDS_HEADS,         \
      "head before|heads before|accumul")                                                          \
    X(GRADIENT_HEADS_SUMMED, "dK and dV summed over heads, as if these shared keys", EVERY,        \
      NEEDS_HEADS, "sum over all heads")                                                           \
    X(GRADIENT_UNTRANSPOSED, "dV = W dY, not W^T dY", KEYED, 0, "transpos")                        \
    X(GRADIENT_TILE, "16 rows of dQ added twice", EVERY, 0, "twice|tile|row")                      \
    X(GRADIENT_BATCH, "a parameter's gradient of one batch entry alone",                           \
      OP(XNORM) | OP(XCA) | OP(LINFORMER), NEEDS_BATCH, "batch")                                   \
    X(GRADIENT_OF_ONES, "ones for dY", EVERY, 0, "dy not used|ones")                               \
    X(GRADIENT_DY_TRANSPOSED, "dY read as width x tokens", EVERY, 0, "dy read|transpos")           \
    X(GRADIENT_HEADS, "heads of the gradients swapped", EVERY, NEEDS_HEADS, "heads")               \
    X(GRADIENT_BF16, "gradients rounded to bf16, though more is claimed", EVERY, 0, "bf16")

#define BUG_ENTRY(code, name, operators, needs, words) BUG_##code,
typedef enum { NO_BUG = -1, BUG_LIST(BUG_ENTRY) BUG_COUNT } bug;
#undef BUG_ENTRY

typedef struct {
    const char *code, *name;
    unsigned operators, needs;
    const char *words;
} bug_info;

extern const bug_info bugs[BUG_COUNT];

#endif
