/* SPDX-License-Identifier: BSD-3-Clause */
/* A trained network that is changed without training it again: its attention, the size of its
 * pictures, and noise on them. */
#ifndef EXPERIMENTS_NETWORKS_CHANGED_H
#define EXPERIMENTS_NETWORKS_CHANGED_H

#include "train/changes.h"
#include "train/trained.h"

/* Whether the change can be made in a trained network. The attention of one that was itself trained
 * with a change stays as it is: two changes at once would not be told apart. Landmarks that were
 * drawn are places on the trained grid, and there are none for larger pictures. */
bool change_applies(const change *c, const model_shape *shape);

/* A changed network: what pass_create_changed takes. */
typedef struct {
    model m;
    float *data;
    atn_attention_desc *descs; /* one per block; they point into data, m and indices */
    int64_t *indices;          /* of randomly drawn landmarks, each block its own; or null */
} changed_network;

/* seed and sample are those of what is drawn. Returns an exit code; on failure one line on stderr.
 * To be freed in any case. */
int changed_network_open(const trained *t, const change *c, uint64_t seed, int64_t sample,
                         changed_network *n);
void changed_network_free(changed_network *n);

/* A picture as the changed network is given it, side x side pixels, m.shape.side. The noise on it
 * depends on the seed, the sample and the picture's number, and is the same at all levels but for
 * its size. */
void changed_picture(const change *c, const fashion_set *set, int64_t picture, int64_t side,
                     uint64_t seed, int64_t sample, float *pixels);

#endif
