/* SPDX-License-Identifier: BSD-3-Clause */
/* S01 - S07: the Gaussian kernel and its Nystroem decomposition. */
#include "claims/claims.h"

const claim soft_kernel_claims[] = {
    {0},
};
