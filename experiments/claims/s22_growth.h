/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S22, S23 and S26: how the norm of the inverse grows with m (s20_spectra.c has their
 * rows).
 */
#ifndef EXPERIMENTS_CLAIMS_S22_GROWTH_H
#define EXPERIMENTS_CLAIMS_S22_GROWTH_H

#include "claims/claims.h"

int judge_s22(const claim_run *run, verdict *v);
int judge_s23(const claim_run *run, verdict *v);
int judge_s26(const claim_run *run, verdict *v);

#endif
