/* SPDX-License-Identifier: BSD-3-Clause */
#include "registry.h"

#include <stddef.h>

#include "bench/bench.h"
#include "check/check.h"
#include "claims/claims.h"
#include "inspect/inspect.h"
#include "list.h"
#include "merge/merge.h"
#include "regress/regress.h"
#include "report/report.h"
#include "train/train.h"

/* clang-format off: one to a line */
const experiment *const experiments[] = {
    &convergence_curves,
    &convergence_initialisation,
    &convergence_gradient,
    &convergence_precision,
    &convergence_methods,
    &spectral_eigenvalues,
    &spectral_norm_growth,
    &spectral_bounds,
    &spectral_softmax,
    &spectral_resolution,
    &spectral_sampling,
    &accuracy_operators,
    &attention_maps,
    &attention_half,
    &cost_counts,
    &cost_memory,
    &cost_time,
    &networks_counts,
    &networks_maps,
    &networks_accuracy,
    &networks_epochs,
    NULL,
};

const verb *const verbs[] = {
    &list_verb,  &claims_verb, &inspect_verb, &check_verb,  &regress_verb,
    &bench_verb, &merge_verb,  &train_verb,   &report_verb, NULL,
};
