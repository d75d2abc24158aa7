/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum train`: small vision transformers with any of the operators, trained on Fashion-MNIST. It
 * is no figure of a paper, but is built like an experiment (common/experiment.h), a point per
 * operator, change and seed, and so has a journal, tables and metadata. */
#ifndef EXPERIMENTS_TRAIN_H
#define EXPERIMENTS_TRAIN_H

#include "common/experiment.h"
#include "common/verb.h"

#define TRAIN_OPTIONS                                                                              \
    OPTION_OPERATOR, OPTION_CHANGE, OPTION_SEED, OPTION_EPOCHS, OPTION_IMAGES, OPTION_PATCH,       \
        OPTION_SIDE, OPTION_TRAIN_HEADS, OPTION_START, OPTION_KEEP_EPOCHS, OPTION_F16,             \
        OPTION_DATASET

extern const experiment train;
extern const verb train_verb;

#endif
