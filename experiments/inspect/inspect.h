/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum inspect tokens.npy`: whether the user's tokens suit softmax-free attention with
 * landmarks, and what to do if not. Like an experiment (common/experiment.h), with a point for each
 * head, it has a journal, tables and metadata; it belongs to no figure of a paper. */
#ifndef EXPERIMENTS_INSPECT_H
#define EXPERIMENTS_INSPECT_H

#include "common/experiment.h"
#include "common/verb.h"

#define INSPECT_OPTIONS                                                                            \
    OPTION_GRID, OPTION_M, OPTION_SCALE, OPTION_CERTIFY, OPTION_DTYPE, OPTION_ITERATIONS,          \
        OPTION_LAYOUT, OPTION_SKIP_TOKENS, OPTION_HEADS, OPTION_INSPECT_SAMPLING,                  \
        OPTION_LANDMARKS, OPTION_HTML

extern const experiment inspect; /* s->inputs has the tokens as its only item */
extern const verb inspect_verb;

#endif
