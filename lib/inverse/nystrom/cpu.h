/* SPDX-License-Identifier: BSD-3-Clause */
/* Nystromformer's Z, its approximation of the pseudo-inverse of its m x m factor A. */
#ifndef INVERSE_NYSTROM_CPU_H
#define INVERSE_NYSTROM_CPU_H

#include "cpu/heads.h"

typedef struct {
    const atn_attention_desc *desc;
    int64_t m;
    const real *a; /* m x m, dense, row-major, like all matrices here */
    real norm;     /* Z_0 = A^T / norm; not for pinv */
    real *work;    /* nystrom_inverse_work elements */
} R(nystrom_problem);
typedef R(nystrom_problem) nystrom_problem;

int64_t R(nystrom_inverse_work)(const atn_nystromformer_options *options, int64_t m);

/* Z, within work; NaN where LAPACK fails. */
const real *R(nystrom_inverse)(const nystrom_problem *p);

/* From the derivative by Z (destroyed): adds that by A to grad_a and that by norm to *grad_norm.
 * work is as nystrom_inverse left it. */
void R(nystrom_inverse_backward)(const nystrom_problem *p, real *grad_z, real *grad_a,
                                 real *grad_norm);

#endif
