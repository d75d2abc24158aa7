/* SPDX-License-Identifier: BSD-3-Clause */
/* Computations of the judges themselves: one head and small inverses in f64, and seeded random
 * numbers. */
#ifndef EXPERIMENTS_CLAIMS_DIRECT_H
#define EXPERIMENTS_CLAIMS_DIRECT_H

#include "claims/evidence.h"

/* Y (n x dv) of one head in f64, K = Q where k is null. Returns an exit code; reports a failure. */
int direct_forward(const claim_run *run, const atn_attention_desc *desc, int64_t n, int64_t d,
                   int64_t dv, const double *q, const double *k, const double *v, double *y);

/* The cost of a call. Returns an exit code; reports a failure. */
int direct_cost(const claim_run *run, const atn_attention_desc *desc,
                const atn_attention_shape *shape, atn_cost *cost);
/* Its flops, of heads of n tokens, d wide, whose values are dv wide. */
int direct_flops(const claim_run *run, const atn_attention_desc *desc, int64_t heads, int64_t n,
                 int64_t d, int64_t dv, double *flops);

/* The attention matrix (n x n) of an operator's first variant, one head in f64: its output for
 * V = I. Returns an exit code; reports a failure. */
int direct_attention_matrix(const claim_run *run, atn_operator op, int64_t n, int64_t d,
                            const double *q, const double *k, double *matrix);

enum { DIRECT_SMALL = 4, STEPS_OF_PAPER = 20 };

/* The inverse of a small symmetric A (m x m, m at most DIRECT_SMALL) by a method, in f64. x and
 * trace may be null. Returns an exit code; reports a failure. */
int direct_invert(const claim_run *run, const atn_inverse_desc *desc, int64_t m, const double *a,
                  double *x, atn_inverse_info *info, atn_trace *trace);

/* `count` numbers of N(0, 1), to be freed; `purpose` names the stream (common/random.h). */
double *direct_normal(const claim_run *run, const char *purpose, int64_t count);

/* c (rows x cols) = A B or A^T B, A of `inner` columns (rows), summed in long double. */
void direct_multiply(int64_t rows, int64_t inner, int64_t cols, const double *a, const double *b,
                     double *c);
void direct_multiply_transposed(int64_t rows, int64_t inner, int64_t cols, const double *a,
                                const double *b, double *c);

/* The Euclidean norm of x[0], x[step], ..., `count` numbers, in long double. */
double direct_norm(int64_t count, int64_t step, const double *x);

/* The larger and the smaller of both; NaN if either is. */
double direct_worst(double so_far, double next);
double direct_least(double so_far, double next);

/* The range of some values; both ends are NaN once a value is. */
typedef struct {
    double least, most;
} value_range;

extern const value_range range_empty;
void range_widen(value_range *r, double value);

/* "1 to 2", or one number where both ends are the same in `digits` digits; returns `text`. */
enum { RANGE_TEXT = 64 };
const char *range_text(const value_range *r, int digits, char text[RANGE_TEXT]);

#endif
