/* SPDX-License-Identifier: BSD-3-Clause */
/* Training in f32: AdamW (Loshchilov and Hutter 2019) on slices of a batch, each a pass of its own
 * with its own gradient; the sum over slices is taken in their order. No number depends on the
 * threads, and none on where a training was stopped and resumed. */
#ifndef EXPERIMENTS_TRAIN_TRAINER_H
#define EXPERIMENTS_TRAIN_TRAINER_H

#include "train/fashion.h"
#include "train/model.h"

typedef struct {
    model_shape shape;
    uint64_t seed; /* of the start, the order of the images and their crops */
    int64_t epochs, batch;
    int64_t images;   /* of the training set, the first ones; 0: all */
    double rate;      /* the largest; it rises through the first epoch (with one epoch, through the
                         first tenth of it) and falls along a cosine to a hundredth */
    double decay;     /* of matrices, times the rate */
    double clip;      /* of the gradient's Euclidean norm */
    double smoothing; /* of labels */
    int threads;
} training;

/* 10 epochs, batches of 32, rate 2e-3, decay 0.05, clip 1, smoothing 0.1; name as for
 * model_defaults, and the result as well. */
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
    double accuracy; /* share of them */
} training_score;

/* An epoch, so far. */
typedef struct {
    training_score train; /* of the batches as they were, cropped, with smoothing */
    training_score test;  /* without smoothing; once the epoch has ended */
    double gradient_norm; /* mean over the steps, before clipping */
    double rate;          /* of the last step */
    double seconds;       /* of training; 0 where it was resumed in between */
} training_epoch;

/* One step; with the last of an epoch the test set. Returns an exit code; EXIT_CHECK: a loss or a
 * gradient is not finite, and one line on stderr says in which step and where it began. */
int trainer_step(trainer *t);

/* The test set, with the parameters as they are. Returns an exit code and has reported the reason;
 * EXIT_CHECK: the loss is not finite. */
int trainer_test(trainer *t, training_score *score);

/* Whole epochs so far, and the one that is being trained, with what is known of it. */
int64_t trainer_epochs(const trainer *t);
training_epoch trainer_epoch(const trainer *t, int64_t epoch);

/* Writes the weights, with a text that says what they are; or everything that resuming needs, which
 * trainer_resume reads, EXIT_USAGE if it is of another plan. All return an exit code and have
 * reported the reason. */
int trainer_write(const trainer *t, const char *folder, const char *name, const char *metadata);
int trainer_save(const trainer *t, const char *folder, const char *name);
int trainer_resume(trainer *t, const char *path);

/* The plan and the sets as the members of a JSON object, without its braces. To be freed. */
char *trainer_plan(const trainer *t);

#endif
