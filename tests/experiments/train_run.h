/* SPDX-License-Identifier: BSD-3-Clause */
/* A network's loss and its gradient in either type, from one source (train/real.h). */
#ifndef TESTS_TRAIN_RUN_H
#define TESTS_TRAIN_RUN_H

#include "train/model.h"

typedef struct {
    const model *m;
    int64_t images;
    const double *parameters, *pixels;
    const unsigned char *labels;
} train_case;

/* The mean loss with label smoothing 0.1; logits and gradient may be null. */
double train_run_f32(const train_case *c, double *logits, double *gradient);
double train_run_f64(const train_case *c, double *logits, double *gradient);

/* So many steps of AdamW at the rate 1e-3, each on the next `images` of `pixels` and `labels`, and
 * the loss before each. */
void train_steps_f32(const train_case *c, int64_t steps, double *losses);
void train_steps_f64(const train_case *c, int64_t steps, double *losses);

#endif
