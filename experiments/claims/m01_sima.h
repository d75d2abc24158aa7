/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of SimA's statements. */
#ifndef EXPERIMENTS_CLAIMS_M01_SIMA_H
#define EXPERIMENTS_CLAIMS_M01_SIMA_H

#include "claims/claims.h"

/* ---- m02_half.c ---- */

/* The judges of rows in the table of m01_sima.c. */
int sima_judge_m02(const claim_run *run, verdict *v);
int sima_judge_m04(const claim_run *run, verdict *v);
int sima_judge_m06(const claim_run *run, verdict *v);

/* The operator in f32 with one value channel, rounding what it stores to `storage`. */
typedef struct {
    atn_storage storage;
    atn_sima_options options;
} sima_narrow;

/* Computes y (n) from q, k (n x d) and v (n), whose numbers the storage must hold exactly; y is not
 * finite if anything computed is not. Returns an exit code. */
int sima_narrow_forward(const claim_run *run, const sima_narrow *sima, int64_t n, int64_t d,
                        const float *q, const float *k, const float *v, float *y);

/* Whole numbers whose columns have powers of two as l1 norms: f64 holds Q^ (side 0), K^ (side 1)
 * and all that is computed from them without rounding. */
enum { WHOLE_TOKENS = 8, WHOLE_WIDTH = 4, WHOLE_VALUES = 3 };
void sima_fill_whole(int side, double x[WHOLE_TOKENS * WHOLE_WIDTH]);

#endif
