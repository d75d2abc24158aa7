/* SPDX-License-Identifier: BSD-3-Clause */
/* U01 - U05: UFO-ViT. */
#include "claims/claims.h"

const claim ufo_vit_claims[] = {
    {0},
};
