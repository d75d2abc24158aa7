/* SPDX-License-Identifier: BSD-3-Clause */
/* Inverses of the bottleneck matrix A (m x m, symmetric): every published Newton-Raphson variant,
 * other polynomial iterations, and the exact ones, by name.
 *
 * The Newton-Raphson variants share one iteration, SOFT (IJCV) Eq. 10,
 *
 *   X_0 = alpha B,   X_{k+1} = 2 X_k - X_k B X_k,   B = A + ridge I,
 *
 * and differ only in alpha and ridge. Every X_k is a polynomial in A and is kept symmetric to the
 * last bit. In exact arithmetic X_k has the eigenvalues f_k(l) = (1 - (1 - alpha l^2)^(2^k)) / l, l
 * those of B: it converges to the pseudo-inverse iff 0 < alpha < 2 / l_max^2. In floating point
 * rounding noise in the null space and in unconverged modes doubles with every step.
 *
 * The polynomial iterations are X_{k+1} = X_k Q(E_k), E_k = I - B X_k, from X_0 = alpha B or
 * alpha I. With l x the eigenvalue of B X, a step maps e = 1 - l x to r(e):
 *
 *   newton-schulz   e^2                                                    2 products
 *   hyperpower-p    e^p, p = 3, 7, 9                                       3, 5, 5
 *   nystromformer   (3 e^3 + e^4) / 4                                      4
 *   chebyshev-p     T_p(e / d) / T_p(1 / d), p = 2, 3, 9                   2, 3, 5
 *
 * For chebyshev-p the spectrum of B X lies in [1 - d, 1 + d]; then |e| <= 1 / T_p(1 / d), the next
 * d, and since T_p o T_q = T_pq k steps are the minimax residual of degree p^k on the interval (Pan
 * and Schreiber 1991 for p = 2); d = 0 is the hyperpower. From alpha I the first step needs 2
 * products fewer: A X_0 = alpha A, and X_1 = alpha Q.
 *
 * alpha I halves the exponents of the condition number, but only for positive definite B: an
 * eigenvalue -eta, even one that rounding has caused, has e = 1 + alpha eta, and e^(p^k) grows
 * without bound. */
#ifndef ATTNUM_INVERSE_H
#define ATTNUM_INVERSE_H

#include <stdbool.h>

#include <attnum/context.h>
#include <attnum/storage.h>
#include <attnum/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(code, name, description) */
#define ATN_INVERSE_LIST(X)                                                                        \
    X(ATN_INVERSE_NR, "nr", "Newton-Raphson, alpha given by the caller")                           \
    X(ATN_INVERSE_NR_PAPER, "nr-paper", "alpha = 2/|A|_1^2 (SOFT IJCV Alg. 2)")                    \
    X(ATN_INVERSE_NR_ADAPTIVE, "nr-adaptive",                                                      \
      "alpha = 2 beta^n/|A|_1^2, beta = 1/2, n the smallest with |I - alpha A|_1 <= 1 "            \
      "(SOFT IJCV section 3.2); no such n up to the cap: not converged")                           \
    X(ATN_INVERSE_NR_SOFT, "nr-soft",                                                              \
      "alpha = 0.9 * 2/|A|_1^2, then A + 0.01 I is inverted (published SOFT code)")                \
    X(ATN_INVERSE_NR_SOFTPP, "nr-softpp",                                                          \
      "alpha = 2/|A|_1^2, the norm's maximum over the whole batch, halved while "                  \
      "max |I - alpha A^2|_1 > 1.01, at most 10 times (published SOFT++ code)")                    \
    X(ATN_INVERSE_NEWTON_SCHULZ, "newton-schulz",                                                  \
      "Newton-Raphson's step from alpha I, alpha = 1.8/|A|_1 (for positive definite A)")           \
    X(ATN_INVERSE_HYPERPOWER_3, "hyperpower-3", "order 3 in 3 products, from 1.8/|A|_1 I")         \
    X(ATN_INVERSE_HYPERPOWER_7, "hyperpower-7", "order 7 in 5 products, from 1.8/|A|_1 I")         \
    X(ATN_INVERSE_HYPERPOWER_9, "hyperpower-9", "order 9 in 5 products, from 1.8/|A|_1 I")         \
    X(ATN_INVERSE_NYSTROMFORMER, "nystromformer",                                                  \
      "order 3 in 4 products, 6 steps from A/|A|_1^2 (Nystromformer, Xiong et al. 2021)")          \
    X(ATN_INVERSE_CHEBYSHEV_2, "chebyshev-2",                                                      \
      "minimax steps of order 2 for an interval of eigenvalues, from alpha I (Pan and Schreiber "  \
      "1991)")                                                                                     \
    X(ATN_INVERSE_CHEBYSHEV_3, "chebyshev-3", "the same with order 3, in 3 products")              \
    X(ATN_INVERSE_CHEBYSHEV_9, "chebyshev-9", "the same with order 9, in 5 products")              \
    X(ATN_INVERSE_EIG, "eig", "pseudo-inverse by eigendecomposition, |l| <= rcond l_max dropped")  \
    X(ATN_INVERSE_CHOLESKY, "cholesky", "inverse of A + jitter I by Cholesky factorisation")       \
    X(ATN_INVERSE_PIVOTED_CHOLESKY, "pivoted-cholesky",                                            \
      "rank-revealing Cholesky, kept as a factor: operators apply it and never form the inverse")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_INVERSE_LIST(ATN_NAMED_ENTRY) ATN_INVERSE_COUNT } atn_inverse_method;
#undef ATN_NAMED_ENTRY

const char *atn_inverse_name(atn_inverse_method method);        /* null if out of range */
const char *atn_inverse_description(atn_inverse_method method); /* null if out of range */

/* Which matrix the search for n tests: none, |I - alpha A|_1 as printed, |I - alpha A^2|_1. */
typedef enum { ATN_SEARCH_NONE, ATN_SEARCH_MATRIX, ATN_SEARCH_SQUARE } atn_alpha_search;

/* Whether each matrix has its own alpha, or all of a call share one, from the largest norm. */
typedef enum { ATN_SCOPE_MATRIX, ATN_SCOPE_BATCH } atn_alpha_scope;

/* When the Newton-Raphson variants stop, and which X_k they return. Rounding leaves an X_k with a
 * residual of about u |B|_F |X_k|_F, which grows with X_k while the error of the method shrinks:
 * where B is ill-conditioned the residual has a minimum at some k, and grows after it until
 * overflow. The updates X_{k+1} - X_k do not show it: they are about X_{k+1} / 2 as long as small
 * eigenvalues are still to be inverted, and before that they may be tiny, where B has small
 * eigenvalues only beyond a gap. `best` therefore measures r_k = |B X_k B - B|_F / |B|_F at every
 * step, for one more product (rounded to the dtype, not to the storage), and stops at the first k
 * with
 *
 *   rounding   r_k <= u |B|_F |X_k|_F, and no r_j below the smallest for 4 steps, or r_k over
 *              10 times the smallest;
 *   diverged   r_k over 10 times the smallest otherwise: alpha was too large.
 *
 * Once rounding dominates, r_k fluctuates, and a later one may be smaller by chance; and r_k, a
 * Frobenius norm, may have its minimum at another k than the papers' spectral norm. In that norm
 * the X returned has 1.04 times (median) and at most 6.2 times the smallest residual of 36 to 126
 * steps, over 480 kernel matrices and precisions (attnum run convergence/precision). The rule does
 * not stop while r_k is above what rounding explains, even if it no longer falls, as in a gap of
 * the spectrum or where the start annihilates a mode; it may then take all T steps. Choose T
 * generously, log2(1/u) + 20: about 2 log2 of B's condition number are needed in any case.
 *
 * X(code, name, description) */
#define ATN_STOPPING_LIST(X)                                                                       \
    X(ATN_STOPPING_NONE, "none", "T steps, and the last X_k (papers and code)")                    \
    X(ATN_STOPPING_BEST, "best", "until rounding takes over, and the X_k of smallest residual")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_STOPPING_LIST(ATN_NAMED_ENTRY) ATN_STOPPING_COUNT } atn_stopping;
#undef ATN_NAMED_ENTRY

const char *atn_stopping_name(atn_stopping stopping); /* null if out of range */

/* X_0 of the polynomial iterations, up to alpha. */
typedef enum { ATN_START_MATRIX, ATN_START_IDENTITY } atn_start;

/* A method and its constants. atn_inverse_defaults fills in the published ones; change what you
 * want to study. */
typedef struct {
    atn_inverse_method method;
    /* Newton-Raphson; the first four also for the polynomial iterations */
    int iterations;           /* T >= 0; 20 in papers and code, see below for other orders */
    double alpha;             /* nr: > 0, used unchanged; polynomial iterations except chebyshev:
                                 the same, or 0 for the rule below; others: 0 */
    double numerator;         /* alpha = numerator / |A|_1^2: 2, or 1.8 for nr-soft */
    double ridge;             /* added to the diagonal after alpha is chosen: 0.01 for nr-soft */
    atn_alpha_search search;  /* the halving rule's test */
    double search_limit;      /* halve while the norm exceeds this: 1 (paper), 1.01 (code) */
    int search_cap;           /* the most halvings: 10 */
    bool search_accepts_last; /* at the cap: continue with the last alpha (code), or fail (paper) */
    atn_alpha_scope scope;
    atn_stopping stopping; /* with best, iterations is the maximum; the polynomial iterations allow
                              only none, and have the guard below instead */
    /* Polynomial iterations. T: the fewest with order^T >= 2^20, the degree of 20 Newton-Raphson
     * steps; nystromformer: 6, as published. alpha: numerator / |B|_1 from alpha I, numerator /
     * |B|_1^2 from alpha B; 1.8 keeps |e| < 1 where all row sums are equal, nystromformer has 1. */
    atn_start start;      /* alpha I, because A is positive definite; nystromformer: alpha B */
    double interval_low;  /* chebyshev: alpha and d come from [low, high], the eigenvalues of B: */
    double interval_high; /* > 0: given; 0: high = |B|_1, a bound, and low the smallest Ritz value
                             of ATN_INTERVAL_STEPS Lanczos steps in the dtype, or sqrt(u) high if
                             that is more, u the dtype's. It lies above l_min: eigenvalues below low
                             converge more slowly, not less surely */
    /* all methods: ATN_OK needs |B X B - B|_F <= tolerance |B|_F; < 0: sqrt(u), because the best
     * explicit inverse of an ill-conditioned B has about that residual; u the storage's */
    double tolerance;
    /* all methods, f32 only: B, every X_k, the output of every product and the results of exact
     * methods are rounded to this type; A must already hold such numbers (atn_storage_round). What
     * exceeds the type's range becomes infinite. Forward only. */
    atn_storage storage;
    /* exact methods */
    double rcond;  /* eig, pivoted-cholesky: relative cut; < 0: m u */
    double jitter; /* cholesky: jitter / |A|_1, and X is judged as the inverse of A + jitter I; < 0:
                      u sqrt(m), times 10 until the factorisation succeeds, and X is judged as the
                      inverse of A */
} atn_inverse_desc;

enum { ATN_INTERVAL_STEPS = 16 }; /* fewer for smaller m; they cost 16 / m of a product */

/* The published constants of a method. For ATN_INVERSE_NR set alpha yourself. */
atn_inverse_desc atn_inverse_defaults(atn_inverse_method method);

/* Why a method stopped. X(code, name, description) */
#define ATN_STOP_LIST(X)                                                                           \
    X(ATN_STOP_ITERATIONS, "iterations", "ran the T steps")                                        \
    X(ATN_STOP_NO_ALPHA, "no-alpha", "nr-adaptive: no n up to the cap; X = 0")                     \
    X(ATN_STOP_NONFINITE, "nonfinite", "an iterate overflowed; X is the last or best finite one")  \
    X(ATN_STOP_DIRECT, "direct", "an exact method: nothing to stop")                               \
    X(ATN_STOP_ROUNDING, "rounding", "best: rounding explains the residual, which falls no more")  \
    X(ATN_STOP_DIVERGED, "diverged",                                                               \
      "best: the residual grew tenfold, and not by rounding; polynomial: the guard, see below")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_STOP_LIST(ATN_NAMED_ENTRY) ATN_STOP_COUNT } atn_stop;
#undef ATN_NAMED_ENTRY

const char *atn_stop_name(atn_stop stop); /* null if out of range */

/* In exact arithmetic a step lets no |e| <= 1 grow past max(|e|, d), d the next half width, so
 * |E_{k+1}|_F^2 <= |E_k|_F^2 + m d^2 on positive semi-definite B. The guard: where |E_{k+1}|_F^2
 * exceeds both 1 and that bound by 1 %, far above its rounding, an eigenvalue at or below 0,
 * rounding noise of that size, or an alpha or interval that does not fit is taking over. The
 * iteration then ends with ATN_STOP_DIVERGED and returns, of the iterates before, the X_k whose
 * |E_k B v|_2, v a fixed vector, is smallest; last_update and the trace still include the later
 * iterates. */

/* What happened to one matrix. Fields that do not apply are 0. */
typedef struct {
    atn_status status; /* ATN_OK, ATN_NOT_CONVERGED, ATN_STAGNATED, ATN_SINGULAR, ATN_NONFINITE */
    atn_stop stop;
    int iterations;   /* steps taken */
    int returned;     /* the k of the X_k that is X: the last, or an earlier one that was better */
    int64_t products; /* products of m x m matrices that the iteration took, including discarded
                         steps; with stopping best including those for r_k, of which the residual is
                         one; otherwise without those for the residual */
    double alpha;     /* start used, as rounded to the dtype */
    double interval_low, interval_high; /* chebyshev: as used */
    int halvings;                       /* n: halvings of alpha */
    double residual;    /* |B X B - B|_F / |B|_F of the returned X, its products not rounded to the
                           storage; NaN where A is not finite and in a plan that keeps a factor */
    double last_update; /* |X_k - X_{k-1}|_F / |X_k|_F of the last step */
    double best_update; /* the smallest of those */
    int best_iteration; /* the best k: that of the smallest residual where stopping best measures
                           it, else that of the smallest update */
    int64_t rank;       /* eig, pivoted-cholesky: modes or pivots kept */
    double jitter;      /* cholesky: the number added to the diagonal */
} atn_inverse_info;

/* What can be recorded about each X_k, in f64 whatever the dtype of A, without changing X_k.
 * X(code, name, description) */
#define ATN_METRIC_LIST(X)                                                                         \
    X(ATN_METRIC_RESIDUAL, "residual", "|A X A - A|_2 / |A|_2, the papers' metric (Fig. 5)")       \
    X(ATN_METRIC_INVERSE_ERROR, "inverse_error", "|X - A+|_2 / |A+|_2")                            \
    X(ATN_METRIC_RANGE_RESIDUAL, "range_residual", "|Pi - A X|_2, Pi the projector on A's range")  \
    X(ATN_METRIC_REFLEXIVE, "reflexive_residual", "|X A X - X|_2 / |X|_2")                         \
    X(ATN_METRIC_SYMMETRY, "symmetry_defect", "max |X - X^T|")                                     \
    X(ATN_METRIC_NORM, "iterate_norm", "|X|_2")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_METRIC_LIST(ATN_NAMED_ENTRY) ATN_METRIC_COUNT } atn_metric;
#undef ATN_NAMED_ENTRY

const char *atn_metric_name(atn_metric metric); /* null if out of range */

/* The trace of one matrix: one entry per X_0 .. X_T for the iterations, one for the exact methods.
 * A metric is recorded where its array is not null, and so are the X_k themselves. */
typedef struct {
    int capacity;                     /* in: entries each array holds */
    double *values[ATN_METRIC_COUNT]; /* in: arrays; out: values[metric][k] */
    double *iterates;                 /* in: room for so many m x m matrices, or null; out: X_k */
    const double *pinv;               /* in: A+, m x m; for ATN_METRIC_INVERSE_ERROR */
    const double *projector;          /* in: Pi, m x m; for ATN_METRIC_RANGE_RESIDUAL */
    int length;                       /* out: entries written */
} atn_trace;

/* X ~ A^-1 or A+ by the named method.
 *
 *   a       b x h x m x m, each matrix dense (row_stride = m) and exactly symmetric; it need not be
 *           a kernel matrix
 *   x       b x h x m x m, out, dense, exactly symmetric; must not overlap a, nor what a trace
 *           reads and writes
 *   infos   b * h of them, or null
 *   traces  b * h of them, or null
 *
 * For pivoted-cholesky X is the inverse of the pivot block, zero elsewhere: a reflexive generalised
 * inverse, formed here for inspection. P^T X P is the same as with A+ where P's columns lie in A's
 * range, as they do for SOFT in exact arithmetic; SOFT++ scales P by D^-1/2, and there the result
 * differs from that with A+ by the contribution of the discarded pivots.
 *
 * Returns the worst of the matrices' statuses: ATN_OK (the residual is within desc->tolerance);
 * ATN_NOT_CONVERGED (the iterations; X is the last finite iterate, with stopping best the one of
 * smallest residual, for ATN_STOP_DIVERGED the best, 0 if there is none); ATN_STAGNATED (likewise,
 * stopped by rounding); ATN_SINGULAR (exact methods: the residual is above the tolerance, with the
 * X that has it; or no factor exists or X leaves the range of the type, and X = 0); ATN_NONFINITE
 * (A holds NaN or infinity; X = 0); or a negative one, in which case X is untouched: ATN_ERR_SHAPE,
 * ATN_ERR_STRIDE, ATN_ERR_DTYPE, ATN_ERR_ALIAS, ATN_ERR_VALUE (a constant out of range, A not
 * symmetric or not of the storage's numbers), ATN_ERR_MEMORY; but ATN_ERR_LIBRARY, LAPACK's failure
 * on one matrix, and ATN_ERR_MEMORY for the second event of atn_timer_inverses leave X undefined.
 *
 * Cost per matrix: 2 T + 2 products of m x m matrices (Newton-Raphson; 1 more with a search on A^2;
 * 3 per step taken and 2 with stopping best), the products above + 2 (polynomial; 1 more after
 * ATN_STOP_DIVERGED, 1 more in a narrow storage), one symmetric eigendecomposition (eig), about m^3
 * flops (cholesky), r^2 m (pivoted, rank r), and 2 products for the residual. A trace adds an f64
 * eigenvalue problem and products per metric and step. Allocates 3 (eig, stopping best: 4,
 * polynomial: 7; cholesky with rows up to an odd multiple of 16) times m^2 elements per thread, and
 * 5 m^2 doubles per thread with a trace. On CUDA all matrices of more than 64 rows take their steps
 * together, so each costs T steps even if it stops earlier. */
atn_status atn_inverse(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                       atn_tensor *x, atn_inverse_info *infos, atn_trace *traces);

/* Y = X W, with X ~ A^-1 or A+ by the named method as atn_inverse has it; for pivoted-cholesky X is
 * never formed: A[piv, piv] = L L^T, and Y[piv] = L^-T (L^-1 W[piv]), 0 elsewhere. CPU only.
 *
 *   a       as for atn_inverse
 *   w       b x h x m x k
 *   y       b x h x m x k, out; must not overlap a or w
 *   infos   b * h of them about X, or null
 *
 * Returns as atn_inverse (where X = 0, Y = 0 if W is finite; a factor has no residual to be judged
 * by, and is ATN_SINGULAR only if there is none), and ATN_ERR_UNSUPPORTED on CUDA. Cost: that of
 * atn_inverse, without inverting the factor and without its residual, plus 2 m^2 k flops. Allocates
 * m^2 elements per thread more than atn_inverse, for pivoted-cholesky also m times k up to a
 * multiple of 16, and X of all matrices for a search on A^2. The errors that leave X undefined
 * there leave Y undefined. */
atn_status atn_inverse_apply(atn_context *context, const atn_inverse_desc *desc,
                             const atn_tensor *a, const atn_tensor *w, atn_tensor *y,
                             atn_inverse_info *infos);

/* How an inverse is differentiated. X(code, name, description) */
#define ATN_GRADIENT_LIST(X)                                                                       \
    X(ATN_GRADIENT_CLOSED, "closed",                                                               \
      "dA = -X^T dX X^T with the X the inverse left, converged or not (SOFT IJCV Eq. 12); exact "  \
      "for the exact methods on a non-singular A, and for the pivot block of pivoted-cholesky")    \
    X(ATN_GRADIENT_STEPS, "steps",                                                                 \
      "through the T steps, the start X_0 and alpha (published SOFT++ code); Newton-Raphson only") \
    X(ATN_GRADIENT_PSEUDO, "pseudo",                                                               \
      "of the pseudo-inverse at constant rank (Golub and Pereyra 1973, Eq. 4.12); eig only")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_GRADIENT_LIST(ATN_NAMED_ENTRY) ATN_GRADIENT_COUNT } atn_gradient;
#undef ATN_NAMED_ENTRY

const char *atn_gradient_name(atn_gradient gradient); /* null if out of range */

/* The derivative of an inverse: da from dx, the derivatives of a scalar by A and by X, for changes
 * of A that keep it symmetric.
 *
 *   a       as for atn_inverse
 *   dx      b x h x m x m, each matrix dense; its symmetric part is what counts
 *   da      b x h x m x m, out, dense, exactly symmetric; must not overlap a or dx
 *   infos   b * h of them about X, or null
 *
 * Halvings and jitter count as constants; |A|_1 in alpha does not, and under ATN_SCOPE_BATCH the
 * derivatives of all matrices by alpha are attributed to the one with the largest norm (the first
 * of them). X = 0 because no start was found counts as a constant.
 *
 * Returns as atn_inverse; ATN_NONFINITE if da overflows (da is NaN) or dx is not finite;
 * ATN_ERR_UNSUPPORTED if `gradient` does not go with the method. Cost on top of the inverse: 2
 * products of m x m matrices (closed), 5 per step (steps, which allocates T m^2 elements per
 * thread), 6 (pseudo). Allocates the inverse and 4 m^2 elements more per thread. */
atn_status atn_inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                atn_gradient gradient, const atn_tensor *a, const atn_tensor *dx,
                                atn_tensor *da, atn_inverse_info *infos);

#ifdef __cplusplus
}
#endif
#endif
