/* SPDX-License-Identifier: BSD-3-Clause */
/* Training in f32: AdamW (Loshchilov and Hutter 2019) on slices of a batch. Each slice is a
 * separate pass with its own gradient, and gradients are added in the order of the slices. No
 * number depends on the threads, nor on where a training was stopped and resumed. */
#ifndef EXPERIMENTS_TRAIN_TRAINER_H
#define EXPERIMENTS_TRAIN_TRAINER_H

#include "train/fashion.h"
#include "train/model.h"

typedef struct {
    model_shape shape;
    uint64_t seed; /* key of the initial values, the order of the images and their crops */
    int64_t epochs, batch;
    int64_t images; /* the first ones of the training set; 0: all */
    double rate;    /* the largest learning rate; it rises through the first epoch (with one epoch,
                       through the first tenth of it) and falls along a cosine to a hundredth */
    double decay;   /* weight decay of matrices, as a factor of the rate */
    double clip;    /* bound on the gradient's Euclidean norm */
    double smoothing; /* label smoothing */
    int threads;
    const double *start;      /* the initial values; null: drawn from the seed */
    const char *start_sha256; /* of the file that they are from */
} training;

/* DEFAULT_EPOCHS epochs, batches of 32, rate 2e-3, decay 0.05, clip 1, smoothing 0.1. name and
 * result as in model_defaults. */
bool training_defaults(const char *name, training *plan);

typedef struct trainer trainer;

/* The sets must outlive the trainer. Returns an exit code; on failure one line on stderr. To be
 * freed in any case. */
int trainer_create(const training *plan, const fashion_set *train, const fashion_set *test,
                   trainer **t);
void trainer_free(trainer *t);

const model *trainer_model(const trainer *t);
const float *trainer_parameters(const trainer *t);

int64_t trainer_steps(const trainer *t); /* taken so far */
int64_t trainer_epoch_steps(const trainer *t);

typedef struct {
    double loss;     /* mean over the images */
    double accuracy; /* share of images classified correctly */
} training_score;

/* What is known of an epoch. */
typedef struct {
    training_score train; /* of the batches as they were trained, cropped and with smoothing */
    training_score test;  /* without smoothing; once the epoch has ended */
    double gradient_norm; /* mean over the steps, before clipping */
    double rate;          /* of the last step */
    double seconds;       /* of training; 0 if the epoch was interrupted and resumed */
} training_epoch;

/* Takes one step; the last one of an epoch is followed by the test. Returns an exit code;
 * EXIT_CHECK: a loss or a gradient is not finite, and one line on stderr says in which step and
 * where it began. */
int trainer_step(trainer *t);

/* Computes the score on the test set with the current parameters. Returns an exit code; a failure
 * has been reported. EXIT_CHECK: the loss is not finite. */
int trainer_test(trainer *t, training_score *score);

/* The number of whole epochs so far, and one of them or the current one. */
int64_t trainer_epochs(const trainer *t);
training_epoch trainer_epoch(const trainer *t, int64_t epoch);

/* trainer_write writes the weights, with a text that describes them. trainer_save writes everything
 * that trainer_resume needs to continue; trainer_resume returns EXIT_USAGE if the file is of
 * another plan. All return an exit code; a failure has been reported. */
int trainer_write(const trainer *t, const char *folder, const char *name, atn_dtype dtype,
                  const char *metadata);
int trainer_save(const trainer *t, const char *folder, const char *name);
int trainer_resume(trainer *t, const char *path);

/* The plan and the sets as the members of a JSON object, without its braces. To be freed. */
char *trainer_plan(const trainer *t);

#endif
