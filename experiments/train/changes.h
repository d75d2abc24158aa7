/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be changed in a network of `attnum train`: before training, so that it is trained with
 * the change (--change), or afterwards, without training it again (networks/accuracy). */
#ifndef EXPERIMENTS_TRAIN_CHANGES_H
#define EXPERIMENTS_TRAIN_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include <attnum/attnum.h>

/* The norm that takes the place of UFO-ViT's XNorm (train/crossnorm.h), and what it learns. */
typedef enum {
    CROSSNORM_NONE, /* none does */
    CROSSNORM_QUERIES,
    CROSSNORM_CLUSTERS,
    CROSSNORM_POWER,
    CROSSNORM_LAYER,
    CROSSNORM_GROUP,
    CROSSNORM_INSTANCE
} crossnorm_kind;
enum {
    CROSSNORM_GAMMA,
    CROSSNORM_P,
    CROSSNORM_WEIGHT, /* of the queries' norm, then of the clusters' */
    CROSSNORM_BIAS = CROSSNORM_WEIGHT + 2,
    CROSSNORM_PARAMETERS = CROSSNORM_BIAS + 2
};

typedef struct change change;
struct change {
    const char *name;
    const char *description;
    unsigned operators; /* 1 << ATN_...: to which it applies */
    bool before, after; /* whether it can be made before training, and after it */
    bool iterated;      /* only where the variant's inverse takes steps */
    bool drawn;         /* depends on a seed */
    int64_t factor;     /* of the sides of pictures; 0: 1 */
    bool same_m;        /* of a larger picture: as many landmarks as before, in wider windows */
    double noise;       /* standard deviation of normal noise on the pixels, where that of the
                           training set's pixels is 1 */
    bool symmetric;     /* K = Q */
    bool relu;          /* in the MLP, instead of GELU */
    bool one_head;      /* as wide as all heads */
    bool code_kernel;   /* queries are divided by d^(1/4) before attention; see edit */
    crossnorm_kind crossnorm; /* instead of XNorm */
    int64_t landmarks;        /* their number; 0: as without the change */
    void (*edit)(const change *c, atn_attention_desc *desc); /* null: nothing */
    int value;                                               /* for edit */
};

enum { CHANGE_NONE = 0 }; /* changes[CHANGE_NONE] is the network as it is */
extern const change changes[];
extern const int change_count;

/* Whether an operator's variant has what is changed. */
bool change_suits(const change *c, const atn_operator_info *info, int variant);
/* "softmax, sima": the operators that have it. To be freed. */
char *change_operators(const change *c);

/* Whether it replaces a part of the attention, not only the type in which that is stored. */
bool change_is_of_attention(const change *c);

/* Of soft and softpp with the change: whether landmarks are a convolution of the tokens, as they
 * are without it, and whether they are tokens at places that are drawn. */
bool change_convolves(const change *c);
bool change_has_drawn_landmarks(const change *c);

/* Draws m of n tokens for each block, blocks x m indices. To be freed. */
int64_t *change_draw_landmarks(uint64_t seed, int64_t sample, int64_t blocks, int64_t n, int64_t m);

/* The change of this name, or null. */
const change *change_find(const char *name);

#endif
