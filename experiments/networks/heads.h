/* SPDX-License-Identifier: BSD-3-Clause */
/* Experiments on every head of trained networks: a point is one head of one block of one network
 * on one picture. Their state begins with a head_sweep. */
#ifndef NETWORKS_HEADS_H
#define NETWORKS_HEADS_H

#include "common/experiment.h"
#include "common/landmarks.h"
#include "train/trained.h"

typedef struct {
    const input *in;             /* the network */
    int64_t block, head, sample; /* sample: of the pictures */
    uint64_t seed;               /* of the pictures */
} head_point;

typedef struct {
    input_set networks;
    int64_t points;
    head_point *all;
} head_sweep;

/* Lists the heads of --network, or of the usual networks (ended by null), on `samples` pictures for
 * each seed; more than there are in data/trained, which would be the first ones again, are refused.
 * check returns an exit code, on failure after one line on stderr, and is asked of every network
 * first. */
int heads_prepare(const program_options *s, const char *const *usual, int64_t samples,
                  int (*check)(const program_options *s, const input *in), head_sweep *w);
void heads_release(head_sweep *w);

/* Members of an experiment. */
bool heads_input(const void *state, int index, const char **name, const char **sha256);
void heads_describe(const void *state, int64_t point, char *buffer, size_t size);
void heads_replay(const void *state, int64_t point, options_point *options);

const head_point *heads_point(const void *state, int64_t point);
/* What trained_head_open is given, on the grid that the network was trained on. */
input_draw heads_draw(const head_point *p);
int heads_open(const head_point *p, trained_head *h);

#endif
