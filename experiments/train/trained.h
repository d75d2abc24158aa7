/* SPDX-License-Identifier: BSD-3-Clause */
/* The input `trained`: queries, keys or values of a trained network's heads. */
#ifndef EXPERIMENTS_TRAIN_TRAINED_H
#define EXPERIMENTS_TRAIN_TRAINED_H

#include <attnum/attnum.h>

#include "common/inputs.h"
#include "train/fashion.h"
#include "train/model.h"

typedef struct trained trained;

#define TRAINED_USUAL "sima" /* a network that is shipped */

/* text: "[WEIGHTS][/blockB][/queries|keys|values]". WEIGHTS is a file of weights, whose name ends
 * in ".npz"; or the name of one in data/trained without that ending, such as "soft-code-seed2"; or
 * an operator, for its first seed there. The default is TRAINED_USUAL. B counts from 0; the default
 * is the last block, and queries. Reads the weights and the pictures. Returns an exit code; on
 * failure one line on stderr. To be freed in any case. */
int trained_open(const char *text, trained **t);
void trained_free(trained *t);

/* Whether the weights that a name without ".npz" stands for are in data/trained. */
bool trained_is_shipped(const char *name);

/* SHA-256 (hex) of the file of weights and the pictures. */
const char *trained_sha256(const trained *t);

/* The side of the grid of tokens that the network was trained on. */
int64_t trained_side(const trained *t);
/* Whether it takes pictures whose tokens have a grid of that side: its own, or a multiple of
 * model_grid_step. */
bool trained_has_side(const trained *t, int64_t side);
/* EXIT_USAGE, reported, if it does not. */
int trained_check_side(const trained *t, int64_t side);

/* The number of landmarks that the block of trained_open takes from its queries on a grid of
 * side x side tokens; 0 if it takes none, as in all but SOFT's and SOFT++'s networks, if the part
 * is not the queries, or if the network has no such grid. */
int64_t trained_landmark_count(const trained *t, int64_t side);
/* Those landmarks of the tokens of a head, both 1 x 1 x rows x TOKEN_DIM in f64 or f32, as the
 * block takes them: by its trained convolution, unless the network was trained with others. Returns
 * an exit code; on failure one line on stderr. Thread-safe. */
int trained_landmarks(const trained *t, int64_t side, atn_context *context,
                      const atn_tensor *tokens, atn_tensor *landmarks);

/* One head of a block, for one picture of the test set: sample s is head s mod heads of picture
 * (first + s / heads) mod pictures, where `first` is drawn from the seed. The grid is that of the
 * network's own images, or another one (trained_has_side), for which pixels are averages of the
 * area that they cover and the learned positions are interpolated bilinearly; the strides of
 * landmarks are those of training. All in f64. */
typedef struct {
    int64_t picture, head;
    int64_t side;            /* of the picture, in pixels */
    float *pixels;           /* side x side, as fashion_image gives them */
    double *q, *k, *v;       /* height width x TOKEN_DIM; k null: K = Q */
    atn_attention_desc desc; /* of this head alone (softpp/code's start also depends on the other
                                heads); its tensors point into `parameters` */
    double *parameters;      /* of the network */
    model m;                 /* into which desc's drawn landmarks point */
} trained_head;

/* Returns an exit code; on failure one line on stderr. To be freed in any case. Thread-safe. */
int trained_head_open(const trained *t, int64_t block, const input_draw *draw, trained_head *h);
void trained_head_free(trained_head *h);

/* Q, K or V of such a head, in the block and part that trained_open was given, rounded to f32, so
 * that processors agree on the numbers. Returns an exit code; on failure one line on stderr.
 * Thread-safe. */
int trained_tokens(const trained *t, const input_draw *draw, double *tokens);
/* The keys that go with such queries, in the same form. */
int trained_keys(const trained *t, const input_draw *draw, double *tokens);
/* False: the part is not the queries, or K = Q. */
bool trained_has_keys(const trained *t);

/* The network in another shape, its parameters in f64: learned positions are interpolated to its
 * grid, and where the convolution's window has sides f times as long, each weight becomes f x f
 * weights of 1/f^2 of it, which convolves averages of f x f tokens. Arrays of the file that are no
 * parameters of this network are refused, unless it would have them without a change that the
 * file's does not have. Returns an exit code; on failure one line on stderr. Both are to be freed
 * in any case. */
int trained_network(const trained *t, const model_shape *shape, model *m, double **data);
/* Notes which arrays such a network lacks because of its change, if any. */
void trained_note_left_out(const trained *t, const model *m);
const model_shape *trained_shape(const trained *t); /* in which it was trained */
const char *trained_path(const trained *t);         /* of its file */
const fashion_set *trained_pictures(const trained *t);

/* The properties of the operator's variant: ATN_IS_LINEAR, ... */
unsigned trained_properties(const trained *t);
/* The numbers of blocks and of heads in the network. */
int64_t trained_depth(const trained *t);
int64_t trained_heads(const trained *t);
/* The heads of all pictures: later samples are the first ones again. */
int64_t trained_samples(const trained *t);
/* A number of the metadata, such as "steps"; NaN if there is none. */
double trained_number(const trained *t, const char *name);

#endif
