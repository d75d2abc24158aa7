/* SPDX-License-Identifier: BSD-3-Clause */
/* ATN_STOPPING_BEST, for any iteration towards an inverse whose iterates have a residual. In a
 * header, because kernels call it, too. */
#ifndef INVERSE_STOPPING_H
#define INVERSE_STOPPING_H

#include "core/internal.h"

typedef struct {
    double smallest; /* the smallest residual so far; initially INFINITY */
    int best;        /* and its k; 0 if none was finite */
} core_stopping;

/* After PATIENCE steps without a smaller residual it counts as no longer falling; at RUNAWAY times
 * the smallest it counts as diverging. With less patience the first fluctuation is mistaken for the
 * end: of the 480 matrices and precisions of convergence/precision 1, 2, 3, 4 and 6 steps leave 21,
 * 14, 11, 10 and 10 with more than three times the smallest residual of all steps. */
enum { CORE_STOPPING_PATIENCE = 4, CORE_STOPPING_RUNAWAY = 10 };

/* Takes the residual of iterate k = 0, 1, ... and the part of it that rounding explains. Returns
 * why to stop there, or ATN_STOP_ITERATIONS to continue. */
static inline CORE_ON_DEVICE atn_stop core_stopping_take(core_stopping *stopping, int k,
                                                         double residual, double noise)
{
    bool explained = residual <= noise;
    if (residual < stopping->smallest) {
        stopping->smallest = residual;
        stopping->best = k;
    }
    if (!(residual <= CORE_STOPPING_RUNAWAY * stopping->smallest))
        return explained ? ATN_STOP_ROUNDING : ATN_STOP_DIVERGED;
    if (explained && k - stopping->best >= CORE_STOPPING_PATIENCE)
        return ATN_STOP_ROUNDING;
    return ATN_STOP_ITERATIONS;
}

#endif
