/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be changed in a trained network without training it again: its attention, the size of
 * its pictures, and noise on them. */
#ifndef EXPERIMENTS_NETWORKS_CHANGES_H
#define EXPERIMENTS_NETWORKS_CHANGES_H

#include "train/trained.h"

typedef struct change change;
struct change {
    const char *name;
    const char *description;
    unsigned operators; /* 1 << ATN_...: to which it applies */
    bool iterated;      /* only where the trained variant's inverse takes steps */
    bool drawn;         /* depends on the seed and the sample */
    int64_t factor;     /* of the sides of pictures; 0: 1 */
    bool same_m;        /* of a larger picture: as many landmarks as before, in wider windows */
    double noise;       /* standard deviation of normal noise on the pixels, where that of the
                           training set's pixels is 1 */
    void (*edit)(const change *c, atn_attention_desc *desc); /* null: nothing */
    int value;                                               /* for edit */
};

enum { CHANGE_NONE = 0 }; /* changes[CHANGE_NONE] leaves the network as it is */
extern const change changes[];
extern const int change_count;

/* Whether the change applies to the operator and variant of a network. */
bool change_applies(const change *c, const model_shape *shape);

/* A changed network: what pass_create_changed takes. */
typedef struct {
    model m;
    float *data;
    atn_attention_desc *descs; /* one per block; their tensors point into data */
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
