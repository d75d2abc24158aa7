/* SPDX-License-Identifier: BSD-3-Clause */
/* Which numbers of steps to 1e-6 rounding cannot explain. */
#ifndef EXPERIMENTS_CONVERGENCE_METHODS_H
#define EXPERIMENTS_CONVERGENCE_METHODS_H

#include <stdbool.h>

#include <filters.h>

/* |A X A - A|_2 / |A|_2, |I - A X|_2 */
enum { AXA, I_AX, METRICS };

/* Whether, in each metric, the closed form comes to 1e-6 within `steps` (at most 64), and to within
 * one step as soon on eigenvalues that rounding has moved by 8 m^2 u |A|, up or down. largest: |A|;
 * roundoff: u. */
void methods_find_steady(const ref_iteration *iteration, int64_t m, const double *lambda,
                         double largest, double roundoff, int steps, bool steady[METRICS]);

#endif
