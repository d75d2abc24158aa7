/* SPDX-License-Identifier: BSD-3-Clause */
/* N01 - N05: costs and networks. */
#include "claims/claims.h"

const claim network_claims[] = {
    {0},
};
