/* SPDX-License-Identifier: BSD-3-Clause */
/* All experiments and verbs. experiments[] (experiment.h) lists the former in this order. */
#ifndef EXPERIMENTS_REGISTRY_H
#define EXPERIMENTS_REGISTRY_H

#include "common/experiment.h"
#include "common/verb.h"

extern const experiment convergence_curves;
extern const experiment convergence_initialisation;
extern const experiment convergence_gradient;
extern const experiment convergence_precision;
extern const experiment convergence_methods;
extern const experiment spectral_eigenvalues;
extern const experiment spectral_norm_growth;
extern const experiment spectral_bounds;
extern const experiment spectral_softmax;
extern const experiment spectral_resolution;
extern const experiment spectral_sampling;
extern const experiment cost_counts;
extern const experiment cost_memory;
extern const experiment networks_counts;
extern const experiment networks_maps;
extern const experiment networks_accuracy;
extern const experiment networks_epochs;
extern const experiment cost_time;
extern const experiment accuracy_operators;
extern const experiment attention_maps;
extern const experiment attention_half;

/* All verbs but `run`; ended by null. */
extern const verb *const verbs[];

#endif
