/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT++ for the registry: SOFT with symmetric normalisation. The arithmetic is that of SOFT, in
 * operators/soft/cpu*.c and cuda*.cu, with `normalise` set. */
#include "operators/soft/plan.h"

static const atn_variant variants[] = {
    {.name = "code",
     .description = "halved start, one alpha for the batch, gradient through the steps",
     .properties = ATN_IS_LINEAR | ATN_IS_COUPLED,
     .duplication = 2,
     .desc = {.inverse = {.method = ATN_INVERSE_NR_SOFTPP}, .gradient = ATN_GRADIENT_STEPS}},
    {.name = "paper",
     .description = "20 Newton-Raphson steps from 2/|A|_1^2 (IJCV Alg. 2, Eq. 17)",
     .properties = ATN_IS_LINEAR,
     .duplication = 2,
     .desc = {.inverse = {.method = ATN_INVERSE_NR_PAPER}}},
    {.name = "exact",
     .description = "rank-revealing Cholesky in factor form",
     .properties = ATN_IS_LINEAR,
     .duplication = 2,
     .desc = {.inverse = {.method = ATN_INVERSE_PIVOTED_CHOLESKY}}},
};

const operator_row core_softpp = {
    .info = {.op = ATN_SOFTPP,
             .name = "softpp",
             .formula = "Y = K(Q,L) D^-1/2 K(L,L)+ D^-1/2 K(L,Q) V, D = diag(K(L,L) 1)",
             .source = "SOFT (IJCV) Eq. 17",
             .parameters = "scale, distance, sampling, inverse, gradient, residual",
             .capabilities = OPERATOR_BASICS | ATN_CAN_CPU_BF16,
             .differentiable = SOFT_DIFFERENTIABLE,
             .unsupported = SOFT_UNSUPPORTED,
             .variants = variants,
             .variant_count = sizeof variants / sizeof *variants},
    .check_values = core_check_soft_values,
    .count = core_count_soft,
};
