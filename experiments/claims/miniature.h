/* SPDX-License-Identifier: BSD-3-Clause */
/* What small trained networks tell beside a statement about training that is not testable here:
 * networks/accuracy, which changes them after training, networks/epochs, which measures their
 * bottleneck matrices, and what `attnum train --change` made of networks that are trained with a
 * change. No number of these is one of the papers', and no judge draws a verdict from
 * them. */
#ifndef EXPERIMENTS_CLAIMS_MINIATURE_H
#define EXPERIMENTS_CLAIMS_MINIATURE_H

#include "claims/claims.h"

/* The evidence. */
#define MINIATURE          "accuracy"
#define MINIATURE_MATRICES "epochs"

/* A change as networks/accuracy names it, and in a sentence. */
typedef struct {
    const char *change, *said;
} miniature_change;

/* A sentence with the accuracies of an operator's networks with each of the changes (ended by
 * null), or that there is no such network; to be freed. Adds a table to the notes. */
char *miniature_accuracies(const claim_run *run, verdict *v, const char *operator_name,
                           const miniature_change *changes);

/* A sentence on an operator's networks that were trained with each of the changes, over seeds, by
 * data/trained/seeds.csv: the accuracy with the first, and by how much the others differ from it.
 * To be freed. Adds a table to the notes. */
char *miniature_trained(verdict *v, const char *operator_name, const miniature_change *changes);

/* Adds a sentence on the matrices A of the network of SOFT in data/trained to the notes, or that
 * there is none. */
void miniature_matrices(const claim_run *run, verdict *v);

#endif
