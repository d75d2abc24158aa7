/* SPDX-License-Identifier: BSD-3-Clause */
#include "registry.h"

#include <stddef.h>

const experiment *const experiments[] = {
    &convergence_curves,
    &convergence_initialisation,
    &spectral_eigenvalues,
    &spectral_norm_growth,
    &spectral_bounds,
    &attention_maps,
    NULL,
};
