/* SPDX-License-Identifier: BSD-3-Clause */
/* Attention operators: describe, plan, run.
 *
 *   atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F32);
 *   desc.sampling = ...;
 *   atn_attention_plan(context, &desc, &shape, &plan);    checks everything, takes the workspace
 *   atn_attention_forward(plan, &q, NULL, &v, &out, &info);      allocates nothing
 *   atn_plan_free(plan); */
#ifndef ATTNUM_ATTENTION_H
#define ATTNUM_ATTENTION_H

#include <attnum/context.h>
#include <attnum/inverse.h>
#include <attnum/kernel.h>
#include <attnum/sampling.h>
#include <attnum/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { ATN_SOFT, ATN_SOFTPP, ATN_OPERATOR_COUNT } atn_operator;

/* What the registry can say about an operator (atn_operator_info::capabilities). */
enum {
    ATN_CAN_F32 = 1 << 0,
    ATN_CAN_F64 = 1 << 1,
    ATN_CAN_CPU = 1 << 2,
    ATN_CAN_CUDA = 1 << 3,
    ATN_CAN_BACKWARD = 1 << 4,
    ATN_CAN_MASK = 1 << 5,
    ATN_CAN_CROSS = 1 << 6, /* K different from Q */
};

/* An operator and its parameters. Every published variant is a choice made here. */
typedef struct {
    atn_operator op;
    atn_dtype dtype; /* of all tensors of the plan */
    atn_scale scale;
    double scale_value;
    atn_distance distance;
    atn_sampling sampling;
    atn_inverse_desc inverse;
    /* The published code's residual on V: a depthwise convolution on the grid, zero padding of
     * floor(k/2), one k x k filter per head, shared by its channels, added to the output.
     * 1 x heads x k x k, k odd; null data: none. */
    atn_tensor residual;
    int64_t residual_height, residual_width; /* the grid V is laid out on */
} atn_attention_desc;

/* The papers' defaults: scale 1/(2 sqrt d) per head (published code), direct distance, nr-paper
 * with 20 iterations (SOFT) or nr-softpp (SOFT++), no residual. Sampling has no default: set it. */
atn_attention_desc atn_attention_defaults(atn_operator op, atn_dtype dtype);

/* b x h x n x d tokens, b x h x n x value_dim values. */
typedef struct {
    int64_t batch, heads, tokens, dim, value_dim;
} atn_attention_shape;

/* Counts for one forward call, as functions of the shape.
 *
 * flops are the additions and multiplications, one each, of what the formulas name: averages or
 * convolution, distances (3 d each, or 2 d + 3 expanded), Newton-Raphson's products, the row sums
 * and scaling of SOFT++, the products with V, the residual. Not in them: exp, LayerNorm and GELU,
 * and what is elementwise in m^2. Exact methods count LAPACK's nominal 9 m^3 (eig), m^3 (cholesky),
 * m^3/3 (pivoted) and the products for the residual they report. */
typedef struct {
    double flops;
    double exps;            /* exact: b h (m^2 + 2 n m) */
    double bytes;           /* exact: inputs read once plus output written once */
    double workspace_bytes; /* exact: the plan's memory */
} atn_cost;

typedef struct {
    atn_operator op;
    const char *name;       /* "soft", the name used everywhere */
    const char *formula;    /* one line */
    const char *source;     /* paper and equations */
    const char *parameters; /* the fields of atn_attention_desc it reads */
    unsigned capabilities;
    /* what a plan of the same description costs; fails as atn_attention_plan does */
    atn_status (*cost)(atn_context *context, const atn_attention_desc *desc,
                       const atn_attention_shape *shape, atn_cost *cost);
} atn_operator_info;

/* The registry: one row per operator. null if op is out of range or the name is unknown. */
const atn_operator_info *atn_operator_get(atn_operator op);
const atn_operator_info *atn_operator_find(const char *name);

/* What a forward call has to say: the inverse of each head's bottleneck matrix. */
typedef struct {
    int64_t landmarks;          /* m */
    atn_inverse_info *inverses; /* in: room for batch * heads, or null; out: one per head */
    int64_t failures;           /* out: heads whose inverse was not ATN_OK */
} atn_attention_info;

typedef struct atn_plan atn_plan;

/* Checks the description against the shape, fixes the algorithm and takes all memory the plan will
 * ever use: O(m^2) per head and thread, O(m d) per head, O(m value_dim) per head and per 32 m
 * tokens, one window (d k^2) per thread for a convolution; never O(n m).
 *
 * The description is copied; the arrays it points to (indices, weights) are not and must outlive
 * the plan. Returns ATN_OK or a negative status, the detail in the context. A shape with no
 * elements (batch, heads, tokens or value_dim 0) is fine and does nothing. */
atn_status atn_attention_plan(atn_context *context, const atn_attention_desc *desc,
                              const atn_attention_shape *shape, atn_plan **plan);

void atn_plan_free(atn_plan *plan);

/* Y = attention(Q, K, V).
 *
 *   soft    Y = K(Q,L) A+ K(L,Q) V                        SOFT (IJCV) Eq. 7-9
 *   softpp  Y = K(Q,L) D^-1/2 A+ D^-1/2 K(L,Q) V          Eq. 17, D = diag(A 1)
 *
 *   q     b x h x n x d
 *   k     null: SOFT has Q = K (Eq. 5); anything else is ATN_ERR_UNSUPPORTED
 *   v     b x h x n x value_dim
 *   out   b x h x n x value_dim; its span must not overlap that of q or v
 *   info  or null
 *
 * Tokens are streamed twice in blocks; P is never held. The order of every sum depends on the shape
 * alone, so the bits do not depend on the number of threads.
 *
 * Returns ATN_OK; ATN_NOT_CONVERGED or ATN_SINGULAR if a head's inverse says so (Y is computed with
 * the X it left); ATN_NONFINITE if Q or V holds NaN or infinity or Y overflows (Y is all NaN for
 * such a head); negative: Y untouched.
 *
 * Accuracy: |Y - reference|_F <= 10 kappa max(n, m) u |reference|_F, tested for every sampling and
 * inverse. kappa is A's condition number; for Newton-Raphson the larger of that and the filter's
 * own, l_max max |f_k'| / max |f_k| (with the papers' start and equal row sums, rounding is
 * magnified by 2^T). For a convolution max(n, m, d k^2). */
atn_status atn_attention_forward(atn_plan *plan, const atn_tensor *q, const atn_tensor *k,
                                 const atn_tensor *v, atn_tensor *out, atn_attention_info *info);

#ifdef __cplusplus
}
#endif
#endif
