/* SPDX-License-Identifier: BSD-3-Clause */
/* The pseudo-inverse in long double, by one-sided Jacobi rotations. */
#ifndef REFERENCE_PSEUDO_INVERSE_H
#define REFERENCE_PSEUDO_INVERSE_H

#include <stdint.h>

/* x = A+ of a square matrix (m x m, row-major, finite), singular values <= rcond s_1 dropped; rcond
 * < 0: 16 m u, u the roundoff of long double (2^-64 on x86-64, 2^-113 on aarch64), so that only a
 * singular matrix loses one. Returns the number kept, -1 if out of memory. */
int64_t ref_pseudo_inverse_long(int64_t m, const long double *a, double rcond, long double *x);

#endif
