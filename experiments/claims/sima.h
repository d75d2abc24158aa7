/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges of SimA's rows (sima.c) that have a file of their own. */
#ifndef EXPERIMENTS_CLAIMS_SIMA_H
#define EXPERIMENTS_CLAIMS_SIMA_H

#include "claims/claims.h"

/* sima_half.c */
int sima_judge_m02(const claim_run *run, verdict *v);
int sima_judge_m04(const claim_run *run, verdict *v);
int sima_judge_m06(const claim_run *run, verdict *v);

#endif
