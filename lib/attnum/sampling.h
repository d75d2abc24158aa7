/* SPDX-License-Identifier: BSD-3-Clause */
/* Sampling: how landmarks L (m x d) come from tokens Q (n x d), SOFT (IJCV) section 3.2.
 *
 * Grids are row-major: token y * width + x is at row y, column x. */
#ifndef ATTNUM_SAMPLING_H
#define ATTNUM_SAMPLING_H

#include <attnum/context.h>
#include <attnum/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(code, name, description) */
#define ATN_SAMPLING_LIST(X)                                                                       \
    X(ATN_SAMPLING_POOL, "pool",                                                                   \
      "average of k x k windows, stride k, on an H x W grid; rows and columns left over are "      \
      "dropped: m = floor(H/k) floor(W/k)")                                                        \
    X(ATN_SAMPLING_WINDOW, "window",                                                               \
      "average of k consecutive tokens; the last window holds the remainder: m = ceil(n/k)")       \
    X(ATN_SAMPLING_CONV, "conv",                                                                   \
      "k x k convolution, stride k, no bias, one filter bank shared by all heads (SOFT papers)")   \
    X(ATN_SAMPLING_CONV_CODE, "conv-code",                                                         \
      "conv, then LayerNorm over d (eps 1e-5, affine), then exact GELU (published SOFT code)")     \
    X(ATN_SAMPLING_INDICES, "indices", "the tokens the caller names (random sampling)")            \
    X(ATN_SAMPLING_FIRST, "first", "the first m tokens (\"biased\" sampling, SOFT Tab. 10)")       \
    X(ATN_SAMPLING_KMEANS, "kmeans",                                                               \
      "centroids of k-means: k-means++ seeding (Arthur and Vassilvitskii 2007), then `steps` "     \
      "of Lloyd's steps; 0: the seeds")                                                            \
    X(ATN_SAMPLING_LEVERAGE, "leverage",                                                           \
      "tokens drawn by their ridge leverage scores in K(Q,Q), overestimated through m uniformly "  \
      "drawn tokens (Alaoui and Mahoney 2015; Musco and Musco 2017)")                              \
    X(ATN_SAMPLING_RPCHOLESKY, "rpcholesky",                                                       \
      "randomly pivoted Cholesky of K(Q,Q): a token is drawn by the diagonal of what the "         \
      "landmarks before it leave (Chen, Epperly, Tropp and Webber 2025)")                          \
    X(ATN_SAMPLING_GREEDY, "greedy",                                                               \
      "pivoted Cholesky of K(Q,Q): the token with the largest entry on that diagonal")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_SAMPLING_LIST(ATN_NAMED_ENTRY) ATN_SAMPLING_COUNT } atn_sampling_kind;
#undef ATN_NAMED_ENTRY

const char *atn_sampling_name(atn_sampling_kind kind); /* null if out of range */

/* The last four depend on the tokens, so that every head has its own landmarks. Each of them
 * chooses m different tokens (kmeans: as seeds) one after the other, in f64 whatever the dtype:
 *
 *   kmeans      the first uniformly, then with probability proportional to the squared distance to
 *               the nearest seed. A Lloyd step gives every token to the nearest centroid (ties: the
 *               first) and makes a centroid the mean of its tokens; one without tokens stays at its
 *               seed.
 *   leverage    with probability proportional to min(1, r_i / lambda), without replacement, where
 *               r_i = K_ii - k_i^T (A + lambda I)^-1 k_i, A = K(B,B), k_i = K(B, q_i), for m tokens
 *               B drawn uniformly first. With B = Q that is the ridge leverage score
 *               (K (K + lambda I)^-1)_ii; with fewer it is an overestimate. ridge 0: lambda is
 *               sum_i r_i / m at ridge 0, the error that B leaves, shared by m. Never less than
 *               m^2 2^-50, which the Cholesky factor of A + lambda I needs.
 *   rpcholesky  with probability proportional to the residual r_i = (K - K(Q,L) A^-1 K(L,Q))_ii of
 *               the landmarks L before. r_i <= m 2^-50 is taken for 0: it is rounding.
 *   greedy      the largest residual (ties: the first).
 *
 * A draw takes a number u in [0, 1) and gives the first token i with p_1 + ... + p_i > u, p_i the
 * probabilities of the tokens. A token equal to a landmark is drawn only when no others are left.
 * Where no token has a positive weight (or a sum overflows) u is not used: the token with the
 * largest weight is taken (ties: the first), among those that equal no landmark or, if there are
 * none, among the others. */

/* Fields a kind does not name are ignored. Weights have the dtype of the tokens. */
typedef struct {
    atn_sampling_kind kind;
    int64_t height, width;  /* pool, conv, conv-code: the grid, height * width = n */
    int64_t stride;         /* pool, window, conv, conv-code: k */
    int64_t count;          /* indices, first, and the four that depend on the tokens: m */
    const int64_t *indices; /* indices: m numbers in 0..n-1, the same for every head */
    atn_tensor
        weights; /* conv, conv-code: 1 x d x d x (k k), dense: out channel, in channel, window */
    atn_tensor norm_weight; /* conv-code: 1 x 1 x 1 x d; null data: ones */
    atn_tensor norm_bias;   /* conv-code: 1 x 1 x 1 x d; null data: zeros */
    const double *uniforms; /* random numbers in [0, 1), the same for every head; kmeans,
                               rpcholesky: m, one per landmark; leverage: 2 m, of which B takes the
                               first m */
    int64_t uniform_count;  /* how many there are */
    int64_t steps;          /* kmeans: Lloyd's steps, >= 0 */
    double scale;           /* leverage, rpcholesky, greedy: s of the kernel, which may be another
                               than an operator's; 0: 1/(2 sqrt(d)) */
    double ridge;           /* leverage: lambda; 0: see above */
} atn_sampling;

/* m for n tokens of width d. Returns ATN_ERR_SHAPE (grid does not hold n tokens, stride larger than
 * the grid, count > n, fewer uniforms than needed, n m too large), ATN_ERR_VALUE (index outside
 * 0..n-1, uniform outside [0, 1), unknown kind, sizes < 1, steps < 0, scale or ridge negative or
 * not finite), ATN_ERR_NULL. Detail in the context. */
atn_status atn_sampling_count(atn_context *context, const atn_sampling *sampling, int64_t tokens,
                              int64_t dim, int64_t *count);

/* L from Q.
 *
 *   tokens     b x h x n x d
 *   landmarks  b x h x m x d, out; must not overlap tokens or an array that the sampling reads
 *
 * Cost per head: n d additions (pool, window), 2 m k^2 d^2 flops (conv), a copy (indices, first), 3
 * n m d flops a step and once for the seeds (kmeans), 3 n m d + n m^2 (rpcholesky, greedy), two to
 * four times that (leverage). Additional memory per thread: 2 n + m d doubles (kmeans), 2 n + m^2
 * (leverage), n (m + 2) (rpcholesky, greedy). Sums are in the dtype, those of the four that depend
 * on the tokens in f64, in a fixed order.
 *
 * Returns ATN_OK; ATN_NONFINITE: a head's tokens hold NaN or infinity, and the sampling is one of
 * those four: the landmarks of such a head are NaN; negative: landmarks untouched. */
atn_status atn_sample(atn_context *context, const atn_sampling *sampling, const atn_tensor *tokens,
                      atn_tensor *landmarks);

#ifdef __cplusplus
}
#endif
#endif
