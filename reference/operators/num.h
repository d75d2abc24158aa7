/* SPDX-License-Identifier: BSD-3-Clause */
/* The number type of the operators' references: the build defines NUM_REAL or NUM_COMPLEX. The
 * language gives `num` its + - * /; NUM(name) is the name of a function compiled for this type. */
#ifndef REFERENCE_NUM_H
#define REFERENCE_NUM_H

#include <complex.h>
#include <math.h>
#include <stdint.h>

#if defined(NUM_REAL)
typedef long double num;
#define NUM(name)                    name##_real
#define num_value(x)                 (x)
#define num_exp                      expl
#define num_log                      logl
#define num_sqrt                     sqrtl
#define num_cos                      cosl
#define num_sin                      sinl
#define num_slope(x)                 ((void)(x), 0.0L)
#define num_with_slope(value, slope) ((void)(slope), (value))
#define num_has_slope                0
#elif defined(NUM_COMPLEX)
typedef long double _Complex num;
#define NUM(name)                    name##_complex
#define num_value(x)                 creall(x)
#define num_exp                      exp_with_slope
#define num_log                      clogl
#define num_sqrt                     csqrtl
#define num_cos                      ccosl
#define num_sin                      csinl
/* The derivative of a number, times the step; and a number with a value and a derivative. */
#define num_slope(x)                 cimagl(x)
#define num_with_slope(value, slope) ((long double)(value) + I * (long double)(slope))
#define num_has_slope                1
#else
#error "compile with NUM_REAL or NUM_COMPLEX"
#endif

#ifdef NUM_COMPLEX
/* exp of a complex step: cos of the step is 1 and sin of it the step itself, to the last bit.
 * cexpl, which handles all complex numbers, takes several times as long. */
static inline num exp_with_slope(num x)
{
    long double value = expl(num_value(x));
    return num_with_slope(value, value * num_slope(x));
}
#endif

static inline num num_abs(num x)
{
    return num_value(x) < 0 ? -x : x;
}

/* The larger by value; the first of equals, and NaN if either is. */
static inline num num_max(num a, num b)
{
    return num_value(b) > num_value(a) || num_value(b) != num_value(b) ? b : a;
}

#endif
