/* SPDX-License-Identifier: BSD-3-Clause */
/* ATN_STOPPING_BEST, for any iteration towards an inverse whose iterates have a residual. */
#ifndef CORE_STOPPING_H
#define CORE_STOPPING_H

#include "core/internal.h"

typedef struct {
    double smallest; /* the smallest residual so far; INFINITY before the first */
    int best;        /* and its k; 0 if none was finite */
} core_stopping;

/* Takes the residual of iterate k = 0, 1, ... and what rounding may leave of it. Returns why to
 * stop there, or ATN_STOP_ITERATIONS if nothing speaks against another step. */
atn_stop core_stopping_take(core_stopping *stopping, int k, double residual, double noise);

#endif
