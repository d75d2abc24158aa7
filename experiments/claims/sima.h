/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of SimA's statements share. */
#ifndef EXPERIMENTS_CLAIMS_SIMA_H
#define EXPERIMENTS_CLAIMS_SIMA_H

#include "claims/claims.h"

/* ---- sima_values.c ---- */

/* Divides every column of x (n x d) by its l1 norm, none 0, in long double. */
void sima_divide_by_norms(int64_t n, int64_t d, double *x);

/* ---- sima_half.c ---- */

/* Judges of rows of sima.c. */
int sima_judge_m02(const claim_run *run, verdict *v);
int sima_judge_m04(const claim_run *run, verdict *v);
int sima_judge_m06(const claim_run *run, verdict *v);

/* One value channel of the operator in f32, what it stores rounded to `storage`. */
typedef struct {
    atn_storage storage;
    atn_sima_options options;
} sima_narrow;

/* y (n) of q, k (n x d) and v (n), which the storage must hold; not finite if anything is not.
 * Returns an exit code. */
int sima_narrow_forward(const claim_run *run, const sima_narrow *sima, int64_t n, int64_t d,
                        const float *q, const float *k, const float *v, float *y);

/* Whole numbers whose columns have a power of two as their l1 norm: Q^ (side 0) and K^ (side 1) and
 * all that follows from them is held by f64 without rounding. */
enum { WHOLE_TOKENS = 8, WHOLE_WIDTH = 4, WHOLE_VALUES = 3 };
void sima_fill_whole(int side, double x[WHOLE_TOKENS * WHOLE_WIDTH]);

#endif
