/* SPDX-License-Identifier: BSD-3-Clause */
/* Gaussian kernel matrices, SOFT (IJCV) Eq. 4, 5 and 8:
 *
 *   K_ij = exp(-s |x_i - y_j|^2),   A = K(L, L),   P = K(L, Q)
 *
 * for tokens Q (n x d) and landmarks L (m x d). */
#ifndef ATTNUM_KERNEL_H
#define ATTNUM_KERNEL_H

#include <attnum/context.h>
#include <attnum/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How |x - y|^2 is evaluated. X(code, name, description) */
#define ATN_DISTANCE_LIST(X)                                                                       \
    X(ATN_DISTANCE_DIRECT, "direct", "sum of (x - y)^2: no cancellation, K(x,x) = 1 exactly")      \
    X(ATN_DISTANCE_EXPANDED, "expanded",                                                           \
      "|x|^2 + |y|^2 - 2 x.y, unclamped, as in the published torch kernel: K may exceed 1")        \
    X(ATN_DISTANCE_CLAMPED, "clamped",                                                             \
      "expanded, clamped at 0, and the diagonal of K(L, L) set to 1")

/* Where the kernel's s comes from. X(code, name, description) */
#define ATN_SCALE_LIST(X)                                                                          \
    X(ATN_SCALE_HEAD, "head", "1/(2 sqrt(d)), d the width of one head (published code)")           \
    X(ATN_SCALE_EMBED, "embed", "1/(2 sqrt(heads d)), the embedding width (SOFT Eq. 4, 5)")        \
    X(ATN_SCALE_VALUE, "value", "a number given by the caller")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_DISTANCE_LIST(ATN_NAMED_ENTRY) ATN_DISTANCE_COUNT } atn_distance;
typedef enum { ATN_SCALE_LIST(ATN_NAMED_ENTRY) ATN_SCALE_COUNT } atn_scale;
#undef ATN_NAMED_ENTRY

const char *atn_distance_name(atn_distance distance); /* null if out of range */
const char *atn_scale_name(atn_scale scale);          /* null if out of range */

/* The kernel's s for a head of width dim, one of `heads`. value is used by ATN_SCALE_VALUE only. */
double atn_kernel_scale(atn_scale scale, double value, int64_t heads, int64_t dim);

/* The bottleneck matrix A = K(L, L), symmetric to the last bit.
 *
 *   landmarks  b x h x m x d
 *   a          b x h x m x m, out
 *   s          > 0, finite
 *
 * Same dtype for both; a must not overlap landmarks. Cost per head: m^2 exp and 3 m^2 d flops
 * (direct). With ATN_DISTANCE_EXPANDED the diagonal may differ from 1 by rounding; the lower
 * triangle is computed, the upper one is a copy. Accuracy (direct): |A_ij - exact| <= ((d + 4) s
 * |x_i - x_j|^2 + 3) u A_ij, tested element by element. */
atn_status atn_gaussian_self(atn_context *context, atn_distance distance, double s,
                             const atn_tensor *landmarks, atn_tensor *a);

/* The cross kernel K(X, Y): x is b x h x p x d, y is b x h x q x d, out is b x h x p x q. The
 * operators never form K for all tokens; this function is for callers who want P itself. Cost per
 * head: p q exp and 3 p q d flops (direct). ATN_DISTANCE_CLAMPED only clamps. */
atn_status atn_gaussian_cross(atn_context *context, atn_distance distance, double s,
                              const atn_tensor *x, const atn_tensor *y, atn_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
