/* SPDX-License-Identifier: BSD-3-Clause */
/* S20 - S29: the spectra, and SOFT++'s normalisation. */
#include "claims/claims.h"

const claim softpp_claims[] = {
    {0},
};
