/* SPDX-License-Identifier: BSD-3-Clause */
/* A network's loss and its gradient in either type, from one source (training/real.h). */
#ifndef TESTS_TRAINING_RUN_H
#define TESTS_TRAINING_RUN_H

#include "training/model.h"

typedef struct {
    const model *m;
    int64_t images;
    const double *parameters, *pixels;
    const unsigned char *labels;
} training_case;

/* The mean loss with label smoothing 0.1; logits and gradient may be null. */
double training_run_f32(const training_case *c, double *logits, double *gradient);
double training_run_f64(const training_case *c, double *logits, double *gradient);

#endif
