/* SPDX-License-Identifier: BSD-3-Clause */
/* What small trained networks tell beside a statement about accuracies that is not testable here:
 * networks/accuracy, which changes them after training. No number of it is one of the papers', and
 * no judge draws a verdict from it. */
#ifndef EXPERIMENTS_CLAIMS_MINIATURE_H
#define EXPERIMENTS_CLAIMS_MINIATURE_H

#include "claims/claims.h"

/* The evidence. */
#define MINIATURE "accuracy"

/* A change as networks/accuracy names it, and in a sentence. */
typedef struct {
    const char *change, *said;
} miniature_change;

/* A sentence with the accuracies of an operator's networks with each of the changes (ended by null),
 * or that there is no such network; to be freed. Adds a table to the notes. */
char *miniature_accuracies(const claim_run *run, verdict *v, const char *operator_name,
                           const miniature_change *changes);

#endif
