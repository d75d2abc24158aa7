/* SPDX-License-Identifier: BSD-3-Clause */
#include "registry.h"

#include <stddef.h>

const experiment *const experiments[] = {
    &convergence_curves,
    &convergence_initialisation,
    &convergence_gradient,
    &spectral_eigenvalues,
    &spectral_norm_growth,
    &spectral_bounds,
    &accuracy_operators,
    &attention_maps,
    &attention_half,
    &cost_counts,
    &cost_memory,
    &cost_time,
    NULL,
};
