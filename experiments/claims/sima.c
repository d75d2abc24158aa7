/* SPDX-License-Identifier: BSD-3-Clause */
/* M01 - M08: SimA. */
#include "claims/claims.h"

const claim sima_claims[] = {
    {0},
};
