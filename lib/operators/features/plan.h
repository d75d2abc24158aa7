/* SPDX-License-Identifier: BSD-3-Clause */
/* What the rows of performer, rff, elu and cosformer share; their arithmetic is in
 * operators/features/cpu.c. */
#ifndef FEATURES_PLAN_H
#define FEATURES_PLAN_H

#include "operators/checks.h"

/* How the denominator D of a query follows from phi(q).z. */
typedef enum {
    LINEAR_PLAIN,   /* D = 1 */
    LINEAR_ADDED,   /* D = phi(q).z + epsilon */
    LINEAR_CLAMPED, /* D = max(phi(q).z, epsilon) */
} linear_denominator;

/* Checks a projection w: at least one row, as wide as a head, no more features than BLAS takes. */
atn_status core_check_projection(atn_context *context, const atn_tensor *projection,
                                 const atn_attention_desc *desc, const atn_attention_shape *shape);

/* The bytes of a projection. */
double core_projection_bytes(const atn_tensor *projection);

/* Adds one head's products with S and, if normalised, z, forward and backward, and its state, S and
 * z, for `features` features. */
void core_count_linear(const atn_attention_desc *desc, const atn_attention_shape *shape,
                       double features, bool normalised, atn_cost *cost);

#endif
