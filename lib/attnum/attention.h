/* SPDX-License-Identifier: BSD-3-Clause */
/* Attention operators: describe, plan, run, differentiate.
 *
 *   atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F32);     operators.h
 *   atn_attention_plan(context, &desc, &shape, &plan);    checks everything, takes the workspace
 *   atn_attention_forward(plan, &(atn_attention_inputs){.q = &q, .k = &k, .v = &v}, &y, NULL);
 *   atn_attention_backward(plan, &inputs, &dy, &gradients, NULL);            both allocate nothing
 *   atn_plan_free(plan); */
#ifndef ATTNUM_ATTENTION_H
#define ATTNUM_ATTENTION_H

#include <attnum/context.h>
#include <attnum/operators.h>

#ifdef __cplusplus
extern "C" {
#endif

/* b x h x n x d queries, b x h x key_tokens x d keys, b x h x key_tokens x value_dim values. */
typedef struct {
    int64_t batch, heads, tokens, dim, value_dim;
    int64_t key_tokens; /* 0: as many as tokens */
} atn_attention_shape;

/* ---- The registry ---- */

/* What the registry can say about an operator (atn_operator_info::capabilities). */
enum {
    ATN_CAN_F32 = 1 << 0,
    ATN_CAN_F64 = 1 << 1,
    ATN_CAN_CPU = 1 << 2,
    ATN_CAN_CUDA = 1 << 3,
    ATN_CAN_BACKWARD = 1 << 4,
    ATN_CAN_MASK = 1 << 5,     /* padding masks */
    ATN_CAN_CROSS = 1 << 6,    /* K different from Q */
    ATN_CAN_CAUSAL = 1 << 7,   /* output i sees keys up to i */
    ATN_CAN_LENGTHS = 1 << 8,  /* queries and keys may differ in number (implies cross) */
    ATN_CAN_CPU_BF16 = 1 << 9, /* forward in bf16 on the CPU, too (CUDA: every operator) */
};

/* What is true of a variant in exact arithmetic (atn_variant::properties). The tests check all. */
enum {
    ATN_IS_PERMUTABLE = 1 << 0, /* permuting the tokens permutes the output */
    ATN_IS_LINEAR = 1 << 1,     /* in V */
    ATN_IS_STOCHASTIC = 1 << 2, /* outputs average the values: tokens' weights >= 0, of sum 1 (up to
                                   its epsilons) */
    ATN_IS_COLUMN_FREE = 1 << 3, /* invariant to positive scaling of columns of Q and K (up to its
                                    epsilons) */
    ATN_IS_COUPLED = 1 << 4,     /* batch entries influence each other */
};

/* A named choice of parameters. */
typedef struct {
    const char *name;        /* "paper", "code", ... */
    const char *description; /* one line, with the source */
    unsigned properties;     /* ATN_IS_ */
    double duplication; /* if every token is given twice, with the same landmarks, the output is
                           multiplied by this; 0: no such law */
    atn_attention_desc desc; /* tensors null, sampling not chosen; use atn_attention_variant */
} atn_variant;

/* Counts for one forward call, and for one backward call, as functions of the shape, without masks.
 *
 * flops are the additions and multiplications, one each, of what the formulas name: averages or
 * convolution, distances (3 d each, or 2 d + 3 expanded), iterations' products, row sums and
 * scaling, norms, feature maps, products, the residual. Softmax attention is counted alike wherever
 * it occurs (softmax, linformer, lsh, twice in nystromformer): 2 d + 2 + 2 value_dim per weight,
 * for its logit, the scale c, the row's sum and the product with V, and value_dim divisions per
 * row; where the softmax matrix itself is formed (efficient, xca, nystromformer's A), its weights
 * are divided instead. Not counted: exp, LayerNorm, GELU and the elementwise operations of an
 * inverse. SOFT's P counts in both passes over the tokens, though on the CPU a thread that has kept
 * it does not compute it again. Exact methods count LAPACK's nominal 9 m^3 (eig), m^3 (cholesky),
 * m^3/3 (pivoted) and the products for the residual they report. Sine and cosine count as exps.
 *
 * A backward call gets the inputs and dY, nothing of an earlier forward call, and gives the
 * gradients of Q, K and V. Counted are, once each, what of forward the derivatives need (landmarks,
 * norms, features, kernel matrices, weights, inverses without their residual, sums over tokens),
 * and the derivatives of what the formulas name: the products, two for each of forward's; 4 of a
 * softmax's weight (the sum of p dp over its row, the difference from it, p times that) and the
 * scale c; 5 of an element of x/|x|, 2 if the norm is l1 (its sign is free); of a kernel value the
 * product with its own derivative, 2 d for either token and its part of their two sums, of which
 * each token takes 2 d; of a feature as many as its formula has. Sums over tokens of x dx for a
 * norm or a softmax over tokens come from what is d x d. Nothing is counted twice: n x m matrices,
 * or the weights of a block of queries, fit into memory proportional to n. So the counts are what
 * every method needs that keeps no more than that, not what a particular one does. Not counted:
 * numbers once a row or column, and what forward does not count. */
typedef struct {
    double flops;
    double exps;
    double bytes;           /* exact: inputs and parameters read once plus output written once */
    double state_bytes;     /* what must be kept between the passes over the tokens, per call */
    double workspace_bytes; /* exact: the plan's memory */
    double backward_flops;
    double backward_exps;
    double backward_bytes; /* exact: bytes, where dY is read instead of Y written, and gradients */
} atn_cost;

typedef struct {
    atn_operator op;
    const char *name;       /* "soft", the name used everywhere */
    const char *formula;    /* one line */
    const char *source;     /* paper and equations */
    const char *parameters; /* the fields of atn_attention_desc it reads */
    unsigned capabilities;
    unsigned differentiable; /* bit p: has a gradient for atn_parameter p */
    const char *unsupported; /* why masks, K, other lengths or a causal form are missing; null: none
                                of them is */
    const atn_variant *variants; /* the first is the default */
    int variant_count;
} atn_operator_info;

/* The registry: one row per operator. null if op is out of range or the name is unknown. */
const atn_operator_info *atn_operator_get(atn_operator op);
const atn_operator_info *atn_operator_find(const char *name);

/* The description of a variant; atn_attention_defaults is variant 0. Sampling (soft, softpp), E
 * (linformer), projection (performer, rff), rotations (lsh), landmarks (nystromformer) and a grid
 * have no default: set them. An index out of range gives the default. */
atn_attention_desc atn_attention_variant(atn_operator op, int variant, atn_dtype dtype);
atn_attention_desc atn_attention_defaults(atn_operator op, atn_dtype dtype);

/* What a plan of the same description costs. Fails as atn_attention_plan does, except that it takes
 * no memory; *cost is then untouched. */
atn_status atn_attention_cost(atn_context *context, const atn_attention_desc *desc,
                              const atn_attention_shape *shape, atn_cost *cost);

/* Random features w (M x d) for performer. The rows of `numbers` are made orthonormal in blocks of
 * d rows, the last of which may have fewer: a block N gives the rows of Q^T, where N^T = Q R by
 * Householder reflections (no sign fix). Row r is then scaled to the norm of row r of `norms`
 * (chi-distributed if that is normal noise), or to sqrt(d) if norms is null. All 1 x 1 x M x d,
 * dense, of one dtype; w must not overlap the others. Allocates 33 d elements. ATN_NONFINITE:
 * numbers or norms are not finite; w is NaN. */
atn_status atn_orthogonal_features(atn_context *context, const atn_tensor *numbers,
                                   const atn_tensor *norms, atn_tensor *w);

/* ---- Plans ---- */

typedef struct atn_plan atn_plan;

/* Checks the description against the shape, fixes the algorithm and takes all memory that forward
 * and backward will ever use, of which desc.causal, padding and gradient decide what is needed:
 *
 *   per thread  blocks of tokens and what the operator sums up over them (softmax, gaussian and
 *               nystromformer on the CPU: dQ of up to 4096 queries); with padding, one
 *               head's tokens and gradients; lsh: every round's order of the tokens, n d for the
 *               keys (on the CPU) and, for backward, n (d + value_dim)
 *   per head    soft, softpp, nystromformer, linformer: landmarks, m x m factors and sums over
 *               tokens (soft: one for each chunk of at least 32 m tokens, on CUDA 4 m); others
 *               but softmax, gaussian and lsh: norms and sums over tokens, d value_dim or
 *               M value_dim numbers (performer and rff on the CPU: the transposed projection,
 *               too); causal: two numbers per query
 *   per head    the gradient of every parameter that is given and has one, so for linformer's E
 *               as much as E
 *
 * Backward through an iteration's steps keeps its iterates, (steps + 1) m^2 per thread, as
 * nystromformer does in any case. Sampling by rpcholesky and greedy needs n (m + 2) doubles per
 * thread, by leverage and kmeans 2 n plus an amount that does not grow with n; kmeans keeps n
 * numbers per head; a softmax over more than 256 keys (f64: 128; CUDA: any number), also that of
 * nystromformer and on CUDA of linformer, keeps four numbers per query of every head, lsh on the
 * CPU two. Nothing else grows with n, and no array has n n_k, n m or n M elements.
 *
 * The description is copied; the arrays it points to (indices, weights, gamma, ...) are not and
 * must outlive the plan; their values are read at every call. Indices and uniforms are then checked
 * again, but on the CPU only: on CUDA they must stay in range. Returns ATN_OK or a negative status,
 * with the detail in the context: ATN_ERR_UNSUPPORTED says what the operator cannot do and why. A
 * shape with no elements (batch, heads, tokens or value_dim 0) is fine and does nothing. */
atn_status atn_attention_plan(atn_context *context, const atn_attention_desc *desc,
                              const atn_attention_shape *shape, atn_plan **plan);

void atn_plan_free(atn_plan *plan);

/* For devices with their own memory: *device becomes *host with pointers to copies of its arrays
 * (dense, already of the description's dtype, see atn_convert). The copies lie in one block of the
 * context's memory, *memory; free it by atn_release after the plans made from *device. shape gives
 * the number of buckets of lsh. *memory is null if there is nothing to copy. */
atn_status atn_attention_upload(atn_context *context, const atn_attention_desc *host,
                                const atn_attention_shape *shape, atn_attention_desc *device,
                                void **memory);

/* ---- Calls ---- */

typedef struct {
    const atn_tensor *q; /* b x h x n x d */
    const atn_tensor *k; /* b x h x key_tokens x d; null: K = Q, and its gradient is part of Q's */
    const atn_tensor *v; /* b x h x key_tokens x value_dim */
    /* Padding, for plans with desc.padding: 0 marks a padded token. It influences no other token,
     * whatever its q, k and v hold; its row of Y is 0. */
    const unsigned char *query_mask; /* batch x tokens; null: key_mask if k is null, else none */
    const unsigned char *key_mask;   /* batch x key_tokens; null: no padding */
} atn_attention_inputs;

/* What a call reports about its heads. */
typedef struct {
    int64_t landmarks;          /* soft, softpp: m; others 0 */
    atn_inverse_info *inverses; /* in: room for batch * heads, or null; out: one per head (soft,
                                   softpp; others: untouched) */
    int64_t failures;           /* out: heads that were not ATN_OK */
} atn_attention_info;

/* Y = attention(Q, K, V); formulas in operators.h.
 *
 *   out   b x h x n x value_dim; its span must not overlap that of an input, of a mask or of an
 *         array of the description that the operator reads
 *   info  or null
 *
 * Tokens are streamed in blocks. The order of every sum depends on the shape alone, so the bits do
 * not depend on the number of threads.
 *
 * Returns ATN_OK; ATN_NOT_CONVERGED or ATN_SINGULAR if a head's inverse says so (soft, softpp: Y is
 * computed with the X it left); ATN_NONFINITE if an input that is not masked out holds NaN or
 * infinity or Y does (Y is all NaN for such a head); negative: Y untouched.
 *
 * Accuracy: soft and softpp: |Y - reference|_F <= 10 kappa max(n, m) u |reference|_F, tested for
 * every sampling and inverse. kappa is A's condition number; for Newton-Raphson the larger of that
 * and the filter's own, l_max max |f_k'| / max |f_k| (with the papers' start and equal row sums,
 * rounding is magnified by 2^T). For a convolution max(n, m, d k^2). Others: kappa is 1 plus the
 * change of the reference's output, relative to it, under relative changes of the inputs;
 * nystromformer with the pseudo-inverse: A's condition number if that is more. */
atn_status atn_attention_forward(atn_plan *plan, const atn_attention_inputs *inputs,
                                 atn_tensor *out, atn_attention_info *info);

/* Waits for the plan's last call and reports what that call would have reported with an info: its
 * status and, if info is not null, info. On the CPU there is nothing to wait for. ATN_OK before the
 * first call. */
atn_status atn_attention_outcome(atn_plan *plan, atn_attention_info *info);

/* Where backward writes; shapes are those of the inputs and parameters. */
typedef struct {
    atn_tensor *q, *v;                           /* wanted always */
    atn_tensor *k;                               /* if k was given, else null */
    atn_tensor *parameters[ATN_PARAMETER_COUNT]; /* null: not wanted; dense */
    /* Set this if the plan's last call was forward and inputs and parameters have not changed
     * since: sums over all tokens (norms, K^T V, S and z, means, P V), softmax's maxima and sums of
     * each query (lsh: with y) and A+ of soft and softpp are then not computed again, nor inputs
     * searched for NaN. On CUDA everything is computed again. false is always correct. */
    bool after_forward;
    /* With after_forward: what that call wrote to `out`, unchanged since. On the CPU lsh, and where
     * there are more than 256 keys (f64: 128) and no masks, softmax and nystromformer without a
     * residual, then need not compute it again. null is always correct and gives the same bits.
     * Without after_forward it is not used, but checked as an input is. */
    const atn_tensor *y;
} atn_gradients;

/* Vector-Jacobian product: with Y = attention(Q, K, V; parameters) and `dout` the derivative of a
 * scalar by Y, the derivatives of that scalar by each input and parameter (overwritten, not added
 * to). No forward call is needed before: intermediate results are computed again. With
 * after_forward they are reused, which changes no bit, except that on the CPU a head whose output
 * was not finite gets NaN (and is left out of what the heads of a batch share).
 *
 * soft, softpp: desc.gradient says how the inverse is differentiated; landmarks that are tokens
 * (indices, leverage, rpcholesky, greedy) are differentiated as those tokens, kmeans's as means of
 * its tokens: the choice itself is piecewise constant. Gradients of all other operators are those
 * of the formula; at a kink (|x|, max, ReLU, argmax) they are those of the branch that was
 * computed.
 *
 * Gradients must not overlap each other, an input, y, a mask or an array of the description that
 * the operator reads. Status as forward; ATN_NONFINITE: a head whose inputs or gradients are not
 * finite has NaN in its gradients of q, k, v (and parameters get NaN); so have all heads that share
 * a parameter whose gradient, their sum, overflows (on CUDA, and of soft and softpp on the CPU, a
 * head alone whose own part of it does). ATN_ERR_UNSUPPORTED: a parameter that this operator has no
 * gradient for, or that is null in the description or ignored there (a sampling's weights where the
 * kind is another); a desc.gradient that does not go with desc.inverse. Cost: 2 to 4 times
 * forward's flops (softmax without y up to 4.5 times), no n x m or n x n array. */
atn_status atn_attention_backward(atn_plan *plan, const atn_attention_inputs *inputs,
                                  const atn_tensor *dout, atn_gradients *gradients,
                                  atn_attention_info *info);

#ifdef __cplusplus
}
#endif
#endif
