/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of the polynomial iterations for the inverse that are known without running them. */
#ifndef EXPERIMENTS_CONVERGENCE_ITERATIONS_H
#define EXPERIMENTS_CONVERGENCE_ITERATIONS_H

#include <stdbool.h>

#include <attnum/attnum.h>
#include <filters.h>

/* The order of a step; 0 for methods that do not iterate. */
int iteration_order(atn_inverse_method method);

/* The number of products of m x m matrices in `steps` steps (attnum/inverse.h). */
int64_t iteration_products(const atn_inverse_desc *desc, int64_t steps);

/* The number of steps of the method that reaches the polynomial degree of `steps` steps of order 2.
 */
int iteration_steps(atn_inverse_method method, int steps);

bool iteration_is_chebyshev(atn_inverse_method method);

/* The closed form of the described iteration, for a matrix with |A|_1 = norm. Where the method
 * chooses alpha or the interval from A, iteration_take must fill in the library's values. */
ref_iteration iteration_filter(const atn_inverse_desc *desc, double norm);

/* Sets alpha and the interval of the closed form to those that the library used. */
void iteration_take(const atn_inverse_desc *desc, const atn_inverse_info *info,
                    ref_iteration *iteration);

/* The first k with values[k] < target; -1 if there is none. */
int iteration_first_below(int length, const double *values, double target);

/* Whether two such counts agree: they differ by one step at most, or neither exists. */
bool iteration_counts_agree(int a, int b);

#endif
