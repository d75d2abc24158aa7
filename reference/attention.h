/* SPDX-License-Identifier: BSD-3-Clause */
/* Every attention operator and its derivative, computed densely in long double from the definition
 * (attnum/operators.h). No code is shared with lib/.
 *
 * Each operator is written once over a number type and compiled twice: for long double, which gives
 * the value, and for complex long double, which gives the derivative by the complex step
 * (Squire and Trapp 1998): f(x + i h e) = f(x) + i h f'(x) e + O(h^2), h = 1e-200, without
 * cancellation. |x|, max, ReLU and argmax follow the real parts. */
#ifndef REFERENCE_ATTENTION_H
#define REFERENCE_ATTENTION_H

#include <attnum/attention.h>

/* Dense f64. The description's tensors must be f64, too, whatever its dtype; its types, storage,
 * order of products and distances have no effect here. */
typedef struct {
    const atn_attention_desc *desc;
    atn_attention_shape shape;
    const double *q;                            /* b x h x n x d */
    const double *k;                            /* b x h x n_k x d; null: K = Q */
    const double *v;                            /* b x h x n_k x dv */
    const unsigned char *query_mask, *key_mask; /* as in atn_attention_inputs */
} ref_attention_problem;

/* Directions to differentiate in, or gradients, in the shapes of the inputs. Null: zero, or not
 * wanted. k must be null if the problem's k is. */
typedef struct {
    double *q, *k, *v;
    double *parameters[ATN_PARAMETER_COUNT];
} ref_attention_arrays;

/* Y, b x h x n x dv; rows of padded queries are 0.
 *
 * soft, softpp: X is the inverse named by the description: Newton-Raphson's T steps in long double,
 * for the exact methods the inverse of A (cholesky: of A + jitter |A|_1 I where a jitter is given;
 * eig: the pseudo-inverse, cut at rcond where one is given). A counts as singular only if it is so
 * in long double, not in f64. Neither convergence nor a residual is checked.
 *
 * Returns ATN_OK, ATN_ERR_NULL, ATN_ERR_SHAPE, ATN_ERR_VALUE (a shape or description that no
 * operator accepts), ATN_ERR_MEMORY, ATN_SINGULAR (an exact inverse met a singular A; Y is NaN),
 * ATN_NONFINITE (0/0 and the like: Y holds NaN). Cost O(n n_k (d + dv)) per head at least. */
atn_status ref_attention(const ref_attention_problem *problem, double *out);

/* dY = the derivative of Y in one direction. soft, softpp: with desc.gradient `closed` the
 * derivative of X is taken to be dX = -X dA X, whatever X is (Eq. 12), with `pseudo` that of the
 * pseudo-inverse at constant rank, with `steps` that of the steps that compute X; ATN_ERR_VALUE if
 * the inverse has no such gradient. */
atn_status ref_attention_derivative(const ref_attention_problem *problem,
                                    const ref_attention_arrays *direction, double *dout);

/* All derivatives of sum_i weights_i Y_i: it takes one derivative per element of the arrays wanted,
 * so it is for small shapes only. */
atn_status ref_attention_gradient(const ref_attention_problem *problem, const double *weights,
                                  const ref_attention_arrays *gradient);

/* The matrices that an operator inverts, one per head: A = K(L, L) for soft and softpp, with the
 * start alpha of their Newton-Raphson iteration (0: the search found none; exact methods: no
 * meaning), A = softmax(c Q~ K~^T) for nystromformer. a: b x h x m x m, alpha: b x h; either may be
 * null. Returns m, 0 for other operators, or a negative status. */
int64_t ref_attention_bottlenecks(const ref_attention_problem *problem, double *a, double *alpha);

/* lsh: the bucket numbers of a problem by the description's rotations, b x h x rounds x n, 0 for
 * padded tokens; they may be used as desc.lsh.buckets. margin (or null): the smallest error of the
 * sums (x R)_b, relative to sum_c |x_c R_cb|, that could change one of them; a sum of d products
 * has an error below d u. Returns the number of buckets, ATN_ERR_NULL or ATN_ERR_SHAPE. */
int64_t ref_lsh_buckets(const ref_attention_problem *problem, int64_t *buckets, double *margin);

#endif
