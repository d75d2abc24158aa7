/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of the polynomial iterations for the inverse that are known without running them. */
#ifndef EXPERIMENTS_CONVERGENCE_ITERATIONS_H
#define EXPERIMENTS_CONVERGENCE_ITERATIONS_H

#include <stdbool.h>

#include <attnum/attnum.h>
#include <filters.h>

/* The order of a step; 0 for methods that are no iterations. */
int iteration_order(atn_inverse_method method);

/* Products of m x m matrices in so many steps (attnum/inverse.h). */
int64_t iteration_products(const atn_inverse_desc *desc, int64_t steps);

/* Steps of the method that have the degree of so many steps of order 2. */
int iteration_steps(atn_inverse_method method, int steps);

bool iteration_is_chebyshev(atn_inverse_method method);

/* The closed form of a description, on a matrix of this 1-norm. alpha and an estimated interval are
 * those of the rule, as the library reports them. */
ref_iteration iteration_filter(const atn_inverse_desc *desc, double norm);

/* Takes over what the library used. */
void iteration_take(const atn_inverse_desc *desc, const atn_inverse_info *info,
                    ref_iteration *iteration);

/* The first k with values[k] < target; -1 if there is none. */
int iteration_first_below(int length, const double *values, double target);

/* Whether two such counts agree: they differ by one step at most, or neither exists. */
bool iteration_counts_agree(int a, int b);

#endif
