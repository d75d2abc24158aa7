/* SPDX-License-Identifier: BSD-3-Clause */
/* The attention matrix of an operator on given tokens, row by row, and a substitute for it where
 * there is none. */
#ifndef EXPERIMENTS_ATTENTION_ROWS_H
#define EXPERIMENTS_ATTENTION_ROWS_H

#include <cases.h>
#include <ruler.h>

/* An operator on one head, f64. */
typedef struct {
    attention_case parameters; /* without inputs */
    int64_t *buckets;          /* of lsh, or null */
    double *tokens, *keys;     /* the caller's, n x d; keys null: K = Q */
} token_attention;

/* Draws the parameters under a seed: 49 landmarks, pooled from the most square grid (soft, softpp),
 * means of segments (nystromformer) or rows of E^T K (linformer); 110 features, d log d of d = 32
 * (performer, rff); 8 rounds of chunks of 64 tokens or the next smaller divisor of n, and a bucket
 * per chunk (lsh); norms of at least 1e-12 (xnorm). A name that is no variant of op ends the
 * program. Returns an exit code; a is to be freed in any case. */
int token_attention_open(token_attention *a, atn_operator op, const char *variant, int64_t count,
                         int64_t dim, double *tokens, uint64_t seed);
/* The same for a description in f64, whose tensors must live as long as a. */
int token_attention_describe(token_attention *a, const atn_attention_desc *desc, int64_t count,
                             int64_t dim, double *tokens, double *keys);
void token_attention_free(token_attention *a);

/* Computes Y, n x dv, for values n x dv. Returns an exit code: EXIT_CHECK if Y is not finite. */
int token_attention_forward(const token_attention *a, atn_context *context, int64_t dv,
                            double *values, double *out);

/* w_1 ... w_n with Y_query = sum_j w_j v_j, for operators that are linear in V: with one value per
 * token w_j is the derivative of Y_query by v_j, which backward gives without an n x n array.
 * Returns an exit code: EXIT_CHECK if it is not finite. */
int token_attention_row(const token_attention *a, atn_context *context, int64_t query, double *row);

/* How well sum_j w_j v_j and forward agree with the reference's Y_query, for random V: the larger
 * relative error, the conditioning (1 plus the relative change of Y_query under relative changes of
 * the tokens; for soft and softpp the condition number of A if that is more), the error in these
 * units, and the verdict on it. */
typedef struct {
    double error, condition, ratio;
    ref_verdict verdict;
} row_check;

/* Returns an exit code: EXIT_CHECK for a verdict of REF_FAIL. */
int token_attention_check(const token_attention *a, atn_context *context, int64_t query,
                          const double *row, uint64_t seed, row_check *check);

/* UFO-ViT's substitute for an attention matrix (Fig. 6): M = Y V^+. */
typedef struct {
    int64_t rank;    /* of V: M is unique up to a null space of dimension n - rank */
    double residual; /* |M V - Y|_F / |Y|_F */
    double rounding; /* a bound on its rounding: n u kappa, kappa V's condition on its range */
} stand_in;

/* Row `query` of M, from values and out, both n x dv. Returns an exit code: EXIT_CHECK if the two
 * routes to V^+ disagree. */
int stand_in_row(int64_t n, int64_t dv, const double *values, const double *out, int64_t query,
                 double *row, stand_in *m);

/* EXIT_CHECK if M V is not Y to rounding, where it must be: M V = Y (V^+ V), which is Y if its rows
 * lie in the row space of V, because V has rank dv or rows of Y are sums of values (linear). */
int stand_in_check(const stand_in *m, int64_t dv, bool linear);

#endif
