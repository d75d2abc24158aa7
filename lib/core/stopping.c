/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/stopping.h"

/* Steps without a smaller residual until it counts as falling no more, and how far above the
 * smallest it has run away. With fewer steps the first wave of noise passes for the end: of the 480
 * matrices and precisions of convergence/precision 1, 2, 3, 4 and 6 steps leave 21, 14, 11, 10 and
 * 10 with over three times the smallest residual there is. */
enum { PATIENCE = 4, RUNAWAY = 10 };

atn_stop core_stopping_take(core_stopping *stopping, int k, double residual, double noise)
{
    bool explained = residual <= noise;
    if (residual < stopping->smallest) {
        stopping->smallest = residual;
        stopping->best = k;
    }
    if (!(residual <= RUNAWAY * stopping->smallest))
        return explained ? ATN_STOP_ROUNDING : ATN_STOP_DIVERGED;
    if (explained && k - stopping->best >= PATIENCE)
        return ATN_STOP_ROUNDING;
    return ATN_STOP_ITERATIONS;
}
