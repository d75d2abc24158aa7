/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that run lib/cuda's building blocks alone. Arrays are on the host. Each returns 0, or the
 * error of the CUDA runtime. */
#ifndef TESTS_PROBES_H
#define TESTS_PROBES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { PROBE_BF16, PROBE_F16, PROBE_TF32, PROBE_TYPES } probe_type;

/* C (16 x 8) += A (16 x inner) B (inner x 8), inner = 16, tf32: 8; with each element where the PTX
 * ISA places it. */
int probe_product(probe_type type, const float *a, const float *b, float *c);

/* The same with B^T (8 x inner) and A copied to shared memory and loaded from there. Narrow types
 * with `transposed`: B (inner x 8) itself, loaded transposed. */
int probe_loads(probe_type type, int transposed, const float *a, const float *b, float *c);

/* a b + c and a b - c, and in f64 (1 + e)^2 - 1 - 2 e, e = 2^-27 a, as the compiler contracts them.
 */
int probe_arithmetic(float a, float b, float c, float out[3]);

/* y[i] = exp(x[i]) as operators compute it, or 2^x[i] as the fused passes do. */
typedef enum { PROBE_EXP, PROBE_EXP2 } probe_function;
int probe_power(probe_function function, int64_t count, const float *x, float *y);

#ifdef __cplusplus
}
#endif
#endif
