/* SPDX-License-Identifier: BSD-3-Clause */
/* The attention operators and their parameters: what each computes, where it comes from, and every
 * choice on which papers and published code differ.
 *
 * One head has queries q_i (n x d), keys k_j (n_k x d) and values v_j (n_k x d_v); Y is n x d_v.
 * `c` is logit_scale. An average over no keys (n_k = 0, or all of them padded), by softmax or
 * otherwise, is 0. So is a sum over no keys, which xnorm without an epsilon divides by its norm,
 * 0/0. Fields that an operator does not name are ignored. Tensors are not copied but read at every
 * call; they must be dense (no gaps between rows or heads) and have the plan's dtype. Where null
 * data is allowed, its meaning is stated. */
#ifndef ATTNUM_OPERATORS_H
#define ATTNUM_OPERATORS_H

#include <stdbool.h>

#include <attnum/inverse.h>
#include <attnum/kernel.h>
#include <attnum/sampling.h>
#include <attnum/storage.h>
#include <attnum/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    ATN_SOFT,          /* Y = K(Q,L) A+ K(L,Q) V */
    ATN_SOFTPP,        /* Y = K(Q,L) D^-1/2 A+ D^-1/2 K(L,Q) V */
    ATN_GAUSSIAN,      /* Y = K(Q,K) V */
    ATN_SOFTMAX,       /* Y = softmax(c Q K^T) V */
    ATN_SIMA,          /* Y = Q^ K^^T V, columns of Q and K of l1 norm 1 */
    ATN_XNORM,         /* Y = XN(Q) XN(K^T V) */
    ATN_LINFORMER,     /* Y = softmax(c Q (E^T K)^T) F^T V */
    ATN_PERFORMER,     /* Y = phi(Q) phi(K)^T V / phi(Q) phi(K)^T 1, positive random features */
    ATN_RFF,           /* Y = phi(Q) phi(K)^T V, random Fourier features of K(Q,K) */
    ATN_NYSTROMFORMER, /* Y = softmax(c Q K~^T) softmax(c Q~ K~^T)+ softmax(c Q~ K^T) V */
    ATN_XCA,           /* Y^T = softmax(tau Q^^T K^) V^T */
    ATN_EFFICIENT,     /* Y = softmax_channels(Q) softmax_tokens(K)^T V */
    ATN_ELU,           /* Y = phi(Q) phi(K)^T V / phi(Q) phi(K)^T 1, phi = 1 + elu */
    ATN_COSFORMER,     /* the same with phi = ReLU, re-weighted by cos of the distance */
    ATN_LSH,           /* softmax attention within chunks of equal hash (Reformer) */
    ATN_OPERATOR_COUNT
} atn_operator;

/* SimA: how the columns of Q and K are normalised (Eq. 1 and section 4.6). */
#define ATN_SIMA_NORM_LIST(X)                                                                      \
    X(ATN_SIMA_L1, "l1", "sum over tokens of |x|")                                                 \
    X(ATN_SIMA_L2, "l2", "Euclidean norm over tokens (ablation)")                                  \
    X(ATN_SIMA_NONE, "none", "no normalisation (ablation)")

/* Which product comes first. X(code, name, description) */
#define ATN_ORDER_LIST(X)                                                                          \
    X(ATN_ORDER_AUTO, "auto", "the one with fewer flops; in bf16 on the CPU channels")             \
    X(ATN_ORDER_TOKENS, "tokens", "(Q K^T) V: 2 n n_k (d + d_v) flops")                            \
    X(ATN_ORDER_CHANNELS, "channels", "Q (K^T V): 2 (n + n_k) d d_v flops")

/* UFO-ViT: along which index K^T V is normalised. */
#define ATN_XNORM_AXIS_LIST(X)                                                                     \
    X(ATN_XNORM_COLUMNS, "columns",                                                                \
      "over d, the index contracted with Q: a cosine (paper, Eq. 8)")                              \
    X(ATN_XNORM_ROWS, "rows", "over d_v (the popular port)")

/* Performer's features. X(code, name, description) */
#define ATN_FEATURES_LIST(X)                                                                       \
    X(ATN_FEATURES_EXP, "exp", "FAVOR+: (exp(w.x - |x|^2/2 - stabiliser) + eps) / sqrt(M)")        \
    X(ATN_FEATURES_RELU, "relu", "generalised kernel: max(w.x, 0) + eps")

/* Nystromformer: Z for the pseudo-inverse of its m x m factor A. */
#define ATN_NYSTROM_LIST(X)                                                                        \
    X(ATN_NYSTROM_ORIGINAL, "original",                                                            \
      "order-3 iteration from A^T / max |A|_1, the maximum over the whole batch (published code)") \
    X(ATN_NYSTROM_EXACT, "exact", "order-3 iteration from A^T / |A|_1, each matrix its own")       \
    X(ATN_NYSTROM_PINV, "pinv", "the pseudo-inverse, by singular values")

/* The form of 1 + elu for x < 0. */
#define ATN_ELU_LIST(X)                                                                            \
    X(ATN_ELU_STABLE, "stable", "exp(x)")                                                          \
    X(ATN_ELU_NAIVE, "naive", "(exp(x) - 1) + 1, as published: cancels to 0 for large -x")

/* SOFT, SOFT++: how their two passes over the tokens run on CUDA. In bf16 on the CPU they round as
 * fused does, for every shape and distance (direct ones come from products where that changes no
 * kernel value by more than a quarter of a roundoff); there is no pivoted-cholesky, residual, conv
 * or conv-code.
 *
 * fused: tensor cores, 16-byte accesses; a tile of K(Q,L) is formed, multiplied and discarded on
 * chip. bf16, f16 and tf32; distance expanded or clamped, not direct; at most 64 landmarks,
 * channels and value channels, rows of multiples of 16 bytes; no residual, no pivoted-cholesky.
 * Landmarks, kernel values and A+ U are rounded to the dtype (landmarks before A is formed); norms,
 * distances and sums are f32. Forward only: backward runs in tiles. */
#define ATN_SOFT_PASSES_LIST(X)                                                                    \
    X(ATN_SOFT_AUTO, "auto", "fused where plan and views allow it, else tiles")                    \
    X(ATN_SOFT_TILES, "tiles", "in what the plan computes in, for every shape and type")           \
    X(ATN_SOFT_FUSED, "fused", "tensor cores; ATN_ERR_UNSUPPORTED where a plan does not allow it") \
    X(ATN_SOFT_CHAIN, "chain",                                                                     \
      "calls of cuBLAS with K(Q,L) in device memory, as published code runs: to compare with")

/* cosFormer's re-weighting. */
#define ATN_COSINE_LIST(X)                                                                         \
    X(ATN_COSINE_1D, "1d", "cos(pi (i - j) / (2 M)) (cosFormer)")                                  \
    X(ATN_COSINE_2D, "2d", "cos(pi (y - y') / (2 H)) cos(pi (x - x') / (2 W)) (SimA appendix)")    \
    X(ATN_COSINE_NONE, "none", "no re-weighting")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_SIMA_NORM_LIST(ATN_NAMED_ENTRY) ATN_SIMA_NORM_COUNT } atn_sima_norm;
typedef enum { ATN_ORDER_LIST(ATN_NAMED_ENTRY) ATN_ORDER_COUNT } atn_order;
typedef enum { ATN_XNORM_AXIS_LIST(ATN_NAMED_ENTRY) ATN_XNORM_AXIS_COUNT } atn_xnorm_axis;
typedef enum { ATN_FEATURES_LIST(ATN_NAMED_ENTRY) ATN_FEATURES_COUNT } atn_features;
typedef enum { ATN_NYSTROM_LIST(ATN_NAMED_ENTRY) ATN_NYSTROM_COUNT } atn_nystrom;
typedef enum { ATN_ELU_LIST(ATN_NAMED_ENTRY) ATN_ELU_COUNT } atn_elu_form;
typedef enum { ATN_COSINE_LIST(ATN_NAMED_ENTRY) ATN_COSINE_COUNT } atn_cosine;
typedef enum { ATN_SOFT_PASSES_LIST(ATN_NAMED_ENTRY) ATN_SOFT_PASSES_COUNT } atn_soft_passes;
#undef ATN_NAMED_ENTRY

/* Softmax attention (Vaswani et al. 2017, Eq. 1), without options of its own:
 *
 *   Y_i = sum_j exp(c q_i.k_j) v_j / sum_j exp(c q_i.k_j)                    (causal: j <= i)
 *
 * A query that sees no key has a row of 0 and no gradient. storage: the weights exp(c q_i.k_j - the
 * row's maximum up to that block of keys) are rounded; their sum is not. */

/* SimA (SimA Eq. 1-2):   q^_ic = q_ic / max(|q_:c|, epsilon), k^ likewise,   Y = q^ (k^^T v).
 * Cross-attention: Q and K are normalised over their own tokens. auto takes the order with fewer
 * flops, which for n = n_k, d = d_v is the published rule: tokens first iff n < d; the shape alone
 * decides, so that masks do not change a plan's order. A dead channel with epsilon 0 is 0/0:
 * ATN_NONFINITE. Gradient of the l1 norm: |x| has slope 1 at 0. */
typedef struct {
    atn_sima_norm norm;
    atn_order order;
    double epsilon; /* 0 (paper), 1e-12 (code, blocks), 1e-6 (code, class attention) */
} atn_sima_options;

/* UFO-ViT (Eq. 4-8):   q^_i = gamma q_i / max(|q_i|, epsilon),   T = K^T V (d x d_v),
 * T^_:c = gamma T_:c / max(|T_:c|, epsilon) (columns) or T^_r: (rows),   Y = q^ T^. */
typedef struct {
    atn_xnorm_axis axis;
    double epsilon;   /* 0: none, as published; a zero row or column is then 0/0: ATN_NONFINITE */
    atn_tensor gamma; /* 1 x h x 1 x 1; null: 1 */
} atn_xnorm_options;

/* Linformer (Wang et al. 2020):   Y = softmax(c Q K'^T) V',   K' = E^T K (r x d), V' = F^T V.
 * A padded token (mask) enters neither sum; token j uses row j of E and F. */
typedef struct {
    atn_tensor e; /* 1 x h' x N x r, h' = 1 (shared by all heads) or h, N >= n_k: rows sliced */
    atn_tensor f; /* the same shape; null: F = E */
} atn_linformer_options;

/* Performer, FAVOR+ (Choromanski et al. 2021):   x' = sqrt(c) x,
 *
 *   phi(x)_r = (exp(w_r.x' - |x'|^2/2 - t) + feature_epsilon) / sqrt(M)               exp
 *   phi(x)_r = max(w_r.x', 0) + feature_epsilon                                      relu
 *   Y_i = phi(q_i)^T S / phi(q_i).z,   S = sum_j phi(k_j) v_j^T,
 *   z_r = denominator_epsilon + sum_j phi(k_j)_r                             (causal: j <= i)
 *
 * stabilise: t = max_r w_r.x' for a query, max over all keys and r of w_r.x' for keys (published
 * code); otherwise t = 0. With feature_epsilon > 0 a causal output then depends on later keys
 * through t. The gradient is the exact one, through t as well (published code detaches it). A query
 * that sees no key (mask) gives 0, here and in elu and cosformer. */
typedef struct {
    atn_tensor projection; /* w: 1 x h' x M x d, h' = 1 or h; not differentiated */
    atn_features features;
    bool stabilise;
    double feature_epsilon;     /* 1e-4 (exp), 1e-3 (relu) in the published code; 0: unbiased */
    double denominator_epsilon; /* 0; 1e-6 in the published causal form */
} atn_performer_options;

/* Random Fourier features of SOFT's kernel (Rahimi and Recht 2007):
 *
 *   phi(x) = [cos(sqrt(2 s) w_r.x), sin(sqrt(2 s) w_r.x)] / sqrt(M),   Y = phi(Q) phi(K)^T V
 *
 * with E phi(x).phi(y) = exp(-s |x-y|^2) for w_r ~ N(0, I). Not normalised: an estimate of
 * `gaussian`. s is scale, scale_value. */
typedef struct {
    atn_tensor projection; /* w: 1 x h' x M x d, h' = 1 or h; not differentiated */
} atn_rff_options;

/* Nystromformer (Xiong et al. 2021):   Y = F Z B V + residual,   F = softmax(c Q K~^T) (n x m),
 * A = softmax(c Q~ K~^T), B = softmax(c Q~ K^T) (m x n_k), Q~ and K~ means of m segments of
 * floor(n/m) tokens, the last n mod m segments one longer. Z by `inverse`:
 *
 *   Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4
 *
 * m = n = n_k is softmax(c Q K^T) V + residual, as published. Mask: padded tokens count as zero
 * vectors in the segment means (which divide by the segment's full length), have weight 0 in B, no
 * row in Y.
 * residual: desc.residual, 1 x h x k x 1, k odd: V convolved over tokens, zero padding; queries and
 * keys must then be the same number.
 *
 * The gradient is that of the whole formula: of the steps, of |A|_1 (original: attributed to the
 * one matrix that has the maximum), and for pinv of the inverse without the dropped singular
 * values; where those are 0, it is the pseudo-inverse's at constant rank (Golub and Pereyra 1973,
 * Eq. 4.12). */
typedef struct {
    int64_t landmarks; /* m */
    atn_nystrom inverse;
    int iterations; /* 6 in the published code */
    double rcond;   /* pinv: singular values <= rcond s_1 are dropped; < 0: m u */
} atn_nystromformer_options;

/* Cross-covariance attention (XCiT, El-Nouby et al. 2021):   Y_ia = sum_b A_ab v_ib, A =
 * softmax_b(tau q^_:a . k^_:b) (d x d), columns of q^, k^ of Euclidean norm 1: x_:c / max(|x_:c|,
 * epsilon). n_k = n and d_v = d. The code multiplies by tau, the paper divides. Masks: token i
 * enters norms and sums only if neither its query nor its key is padded; otherwise its row of Y is
 * 0. */
typedef struct {
    atn_tensor temperature; /* tau: 1 x h x 1 x 1; null: 1 */
    double epsilon;         /* 1e-12 */
} atn_xca_options;

/* Efficient attention (Shen et al. 2021, softmax normalisation) has no parameters:
 *
 *   Y = rho_q (rho_k^T V),   rho_q,ic = exp(q_ic) / sum_a exp(q_ia) over channels,
 *   rho_k,jc = exp(k_jc) / sum_l exp(k_lc) over unpadded tokens (if there are none, Y = 0). */

/* Linear attention (Katharopoulos et al. 2020):   phi(x) = 1 + elu(x) = x + 1 for x >= 0, exp(x)
 * otherwise;   Y_i = phi(q_i)^T S / (phi(q_i).z + epsilon), S and z as for performer. */
typedef struct {
    atn_elu_form form;
    double epsilon; /* 1e-6 */
} atn_elu_options;

/* cosFormer (Qin et al. 2022): w(i,j) ReLU(q_i).ReLU(k_j) over the sum of the same, the sum
 * clamped: max(., epsilon). Token i = 1, 2, ... (1-D), or row y and column x of the grid (2-D; i =
 * y W + x, counted from 0); padding does not change the positions of other tokens. Zero rows give
 * 0, or 0/0 without epsilon. */
typedef struct {
    atn_cosine weighting;
    int64_t length;        /* M >= n, n_k; 0: max(n, n_k) (1-D) */
    int64_t height, width; /* 2-D: H W = n = n_k */
    double epsilon;        /* 1e-6 */
} atn_cosformer_options;

/* Reformer's LSH attention (Kitaev et al. 2020), K = Q, as in the widest-used code.
 *
 * Round r: bucket of q_j = argmax of [q_j R_r, -q_j R_r] (first maximum). The tokens of all rounds
 * form one sequence, ordered by (round, bucket, token), which is cut into chunks. The queries of a
 * chunk attend to its own keys and to those of the chunk before it (the first chunk: to those of
 * the last one); keys are q_j / max(|q_j|, 1e-12), logits c q.k, a token's logit to itself is
 * self_logit. A token that is in both chunks (of two rounds, or where there is one chunk in all)
 * counts twice. Y_i = sum_r w_r Y_i^r with w_r the rounds' softmax weights exp(lse_r - logsumexp
 * lse). The buckets carry no gradient. */
typedef struct {
    atn_tensor rotations;   /* 1 x rounds x d x (buckets / 2) */
    const int64_t *buckets; /* b x h x rounds x n given buckets, instead of rotations; or null */
    int64_t rounds;         /* only with given buckets; otherwise that of rotations */
    int64_t chunk;          /* tokens per chunk, divides n; 64 in the published code */
    double self_logit;      /* -5e4 */
} atn_lsh_options;

/* An operator and its parameters. */
typedef struct {
    atn_operator op;
    atn_dtype dtype;     /* of all tensors of the plan */
    atn_storage storage; /* f32 only: every array an implementation in that type would store
                            (features, kernel blocks, states, iterates, outputs) is rounded to it,
                            sums are in f32; inputs must hold such values already
                            (atn_storage_round); forward only. inverse.storage is
                            this one or left native */
    bool causal;         /* output i sees keys j <= i only; n_k = n */
    bool padding;        /* masks will be given */
    /* kernel of soft, softpp, gaussian, rff */
    atn_scale scale;
    double scale_value;
    atn_distance distance;
    /* c of softmax, linformer, performer, nystromformer, lsh; 0: 1/sqrt(d) */
    double logit_scale;
    /* soft, softpp */
    atn_sampling sampling;
    atn_inverse_desc inverse;
    atn_gradient gradient;  /* of the inverse (inverse.h); a choice that the method does not have
                               fails in backward only */
    atn_soft_passes passes; /* CUDA; the CPU has tiles only */
    /* soft, softpp: the published code's residual on V: a depthwise convolution on the grid, zero
     * padding of floor(k/2), one k x k filter per head, shared by its channels, added to the
     * output. 1 x heads x k x k, k odd; null data: none. nystromformer: see above. */
    atn_tensor residual;
    int64_t residual_height, residual_width; /* the grid V is laid out on */
    /* the operators' own */
    atn_sima_options sima;
    atn_xnorm_options xnorm;
    atn_linformer_options linformer;
    atn_performer_options performer;
    atn_rff_options rff;
    atn_nystromformer_options nystromformer;
    atn_xca_options xca;
    atn_elu_options elu;
    atn_cosformer_options cosformer;
    atn_lsh_options lsh;
} atn_attention_desc;

const char *atn_soft_passes_name(atn_soft_passes passes); /* null if out of range */

/* The tensors of a description that have a gradient. X(code, name, description) */
#define ATN_PARAMETER_LIST(X)                                                                      \
    X(ATN_PARAMETER_CONV, "conv", "sampling.weights (soft, softpp)")                               \
    X(ATN_PARAMETER_NORM_WEIGHT, "norm_weight", "sampling.norm_weight (soft, softpp)")             \
    X(ATN_PARAMETER_NORM_BIAS, "norm_bias", "sampling.norm_bias (soft, softpp)")                   \
    X(ATN_PARAMETER_RESIDUAL, "residual", "residual (soft, softpp, nystromformer)")                \
    X(ATN_PARAMETER_GAMMA, "gamma", "xnorm.gamma")                                                 \
    X(ATN_PARAMETER_E, "e", "linformer.e; with F = E both sums")                                   \
    X(ATN_PARAMETER_F, "f", "linformer.f")                                                         \
    X(ATN_PARAMETER_TEMPERATURE, "temperature", "xca.temperature")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_PARAMETER_LIST(ATN_NAMED_ENTRY) ATN_PARAMETER_COUNT } atn_parameter;
#undef ATN_NAMED_ENTRY

const char *atn_parameter_name(atn_parameter parameter); /* null if out of range */

/* This parameter's tensor in a description; null if that is null or the parameter out of range. */
atn_tensor *atn_attention_parameter(atn_attention_desc *desc, atn_parameter parameter);

#ifdef __cplusplus
}
#endif
#endif
