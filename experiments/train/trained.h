/* SPDX-License-Identifier: BSD-3-Clause */
/* What the heads of a trained network see: the input `trained`. */
#ifndef EXPERIMENTS_TRAIN_TRAINED_H
#define EXPERIMENTS_TRAIN_TRAINED_H

#include "common/inputs.h"

typedef struct trained trained;

#define TRAINED_USUAL "sima" /* one that is shipped */

/* text: "[WEIGHTS][/blockB][/queries|keys|values]". WEIGHTS is a file of weights, which ends in
 * ".npz", or the name of one in data/trained without it, "soft-code-seed2", or an operator, whose
 * first seed it means; by default TRAINED_USUAL. B counts from 0; by default the last block;
 * queries by default. Reads the weights and the pictures. Returns an exit code; on failure one line
 * on stderr. To be freed in any case. */
int trained_open(const char *text, trained **t);
void trained_free(trained *t);

/* SHA-256 (hex) of the file of weights and the pictures. */
const char *trained_sha256(const trained *t);

/* The side of the grid of tokens that it was trained on. */
int64_t trained_side(const trained *t);

/* The rows of one head, height width x TOKEN_DIM, for one picture of the test set: sample s is head
 * s mod heads of picture (first + s / heads) mod pictures, `first` drawn from the seed. The grid is
 * that of the network's own images or a multiple of it, for which pixels are repeated and the
 * learned positions interpolated bilinearly; strides of landmarks stay as they were trained.
 * Computed in f64 and rounded to f32, so that processors agree on the numbers. Returns an exit
 * code; on failure one line on stderr. Thread-safe. */
int trained_tokens(const trained *t, const input_draw *draw, double *tokens);

#endif
