/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum regress`: the accuracy of every operator, row by row, compared with kept rows
 * (data/golden/accuracy.csv) or those of another run. Its samples are points of accuracy/operators.
 * It is built like an experiment (common/experiment.h), but belongs to no figure of a paper. */
#ifndef EXPERIMENTS_REGRESS_H
#define EXPERIMENTS_REGRESS_H

#include "common/experiment.h"
#include "common/verb.h"

#define REGRESS_OPTIONS                                                                            \
    OPTION_DEVICE, OPTION_INPUT, OPTION_DTYPE, OPTION_STORAGE, OPTION_OPERATOR, OPTION_N,          \
        OPTION_M, OPTION_BASELINE, OPTION_AGAINST, OPTION_UPDATE

extern const experiment regress;
extern const verb regress_verb;

/* Whether all rows are computed: no option selects a part of them. */
bool regress_is_full(const program_options *s);

/* Writes the baseline at `path`, and its metadata: the rows of now, and those of other devices in
 * `kept`, which may be null. Refused where f32 or f64 FAILs. Returns an exit code. */
int regress_update(const table *now, const table *kept, const char *path, const char *reason,
                   const void *state);

#endif
