/* SPDX-License-Identifier: BSD-3-Clause */
#include "dominant.h"

#include <math.h>

/* 1/(1 + N exp(-t)), and 1 minus it without cancellation. */
static long double share(long double others, long double t, long double *rest)
{
    long double odds = others * expl(-t); /* may overflow */
    *rest = 1 / (1 + 1 / odds);
    return 1 / (1 + odds);
}

/* The larger singular value of [a b; c d]. */
static long double norm_2x2(long double a, long double b, long double c, long double d)
{
    return (hypotl(a + d, c - b) + hypotl(a - d, b + c)) / 2;
}

ref_dominant ref_dominant_softmax(int64_t n, long double c, long double r)
{
    if (n < 2 || !(c > 0 && isfinite(c)) || !(r > 0 && isfinite(r)))
        return (ref_dominant){NAN, NAN};
    long double others = (long double)(n - 1), root = sqrtl(others), rest_0, rest;
    long double p_0 = share(others, c * r * (r - 1), &rest_0);
    long double p = share(others, c * (r - 1), &rest);
    return (ref_dominant){norm_2x2(p_0, rest_0 / root, p * root, rest),
                          p_0 > 0.5L ? rest - rest_0 : p_0 - p};
}
