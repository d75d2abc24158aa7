/* SPDX-License-Identifier: BSD-3-Clause */
#include "arithmetic.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

/* Bits of precision; the exponent of the smallest normal number; that number; the largest
 * number. */
typedef struct {
    int bits, smallest;
    double normal, largest;
} format;

static const format formats[ATN_DTYPE_COUNT] = {
    [ATN_F64] = {53, -1022, DBL_MIN, DBL_MAX},     [ATN_F32] = {24, -126, FLT_MIN, FLT_MAX},
    [ATN_TF32] = {11, -126, FLT_MIN, 0x1.ffcp127}, [ATN_BF16] = {8, -126, FLT_MIN, 0x1.fep127},
    [ATN_F16] = {11, -14, 0x1p-14, 65504},
};

/* The distance between neighbouring numbers at x. */
static double spacing(const format *f, double x)
{
    int exponent;
    frexp(x, &exponent); /* |x| in [2^(e-1), 2^e) */
    return ldexp(1, (exponent - 1 > f->smallest ? exponent - 1 : f->smallest) - f->bits + 1);
}

/* Rounds in the bits of an f64; x must be normal in the type as well. */
static double round_bits(int bits, double x)
{
    uint64_t u, cut = (uint64_t)53 - (uint64_t)bits;
    memcpy(&u, &x, sizeof u);
    u += (((uint64_t)1 << cut) >> 1) - 1 + (u >> cut & 1);
    u &= ~(((uint64_t)1 << cut) - 1);
    memcpy(&x, &u, sizeof x);
    return x;
}

double round_to(atn_dtype type, double x)
{
    const format *f = &formats[type];
    if (type == ATN_F64 || x == 0 || !isfinite(x))
        return x;
    if (type == ATN_F32)
        return (double)(float)x;
    if (fabs(x) < f->normal) {
        double step = spacing(f, x);
        return nearbyint(x / step) * step;
    }
    double y = round_bits(f->bits, x);
    return fabs(y) > f->largest ? copysign(INFINITY, x) : y;
}

double truncate_to(atn_dtype type, double x)
{
    if (type == ATN_F64 || x == 0 || !isfinite(x))
        return x;
    double step = spacing(&formats[type], x);
    return trunc(x / step) * step;
}

static double flush(atn_dtype type, double x)
{
    return fabs(x) < formats[type].normal ? 0 : x;
}

double round_stored(const arithmetic *a, double x)
{
    x = round_to(a->stored, x);
    return a->flushed ? flush(a->stored, x) : x;
}

/* ---- Sums ---- */

/* sum += a b for each column, in the type of the sums. */
static void add_f64(const arithmetic *s, int64_t cols, double a, const double *b, double *sum)
{
    for (int64_t j = 0; j < cols; j++)
        sum[j] = s->fused ? fma(a, b[j], sum[j]) : sum[j] + a * b[j];
}

/* Exact, because products of two f32 are exact in f64. */
static void add_f32_fused(int64_t cols, double a, const double *b, double *sum)
{
    for (int64_t j = 0; j < cols; j++)
        sum[j] = (double)(float)(sum[j] + a * b[j]);
}

static void add_f32(int64_t cols, double a, const double *b, double *sum)
{
    for (int64_t j = 0; j < cols; j++)
        sum[j] = (double)((float)sum[j] + (float)(a * b[j]));
}

static void add_narrow(const arithmetic *s, int64_t cols, double a, const double *b, double *sum)
{
    for (int64_t j = 0; j < cols; j++)
        sum[j] =
            round_to(s->summed, sum[j] + (s->fused ? a * b[j] : round_to(s->summed, a * b[j])));
}

static void add_product(const arithmetic *s, int64_t cols, double a, const double *b, double *sum)
{
    if (s->summed == ATN_F64)
        add_f64(s, cols, a, b, sum);
    else if (s->summed == ATN_F32 && s->fused)
        add_f32_fused(cols, a, b, sum);
    else if (s->summed == ATN_F32)
        add_f32(cols, a, b, sum);
    else
        add_narrow(s, cols, a, b, sum);
}

/* Adds the sums of all groups to those of the first, sums[0] to sums[cols - 1]. */
static void combine(const arithmetic *s, int64_t groups, int64_t cols, double *sums)
{
    if (s->order == SUM_BLOCKS)
        for (int64_t g = 1; g < groups; g++)
            add_product(s, cols, 1, sums + g * cols, sums);
    else
        for (int64_t step = 1; step < groups; step *= 2)
            for (int64_t g = 0; g + step < groups; g += 2 * step)
                add_product(s, cols, 1, sums + (g + step) * cols, sums + g * cols);
}

void sum_of_products(const arithmetic *s, int64_t terms, int64_t cols, const double *a,
                     const double *b, double *out)
{
    bool grouped = s->order >= SUM_BLOCKS;
    int64_t groups = !grouped                ? 1
                     : s->order == SUM_LANES ? s->group
                                             : (terms + s->group - 1) / s->group;
    groups = groups > 0 ? groups : 1;
    double few[128] = {0}; /* avoids allocations: distances are many small sums */
    bool fits = groups * cols <= (int64_t)(sizeof few / sizeof *few);
    double *sums = fits ? few : must_allocate((size_t)(groups * cols), sizeof *sums);
    for (int64_t i = 0; i < terms; i++) {
        int64_t k = s->order == SUM_BACKWARD ? terms - 1 - i : i;
        int64_t g = !grouped ? 0 : s->order == SUM_LANES ? k % s->group : k / s->group;
        add_product(s, cols, a[k], b + k * cols, sums + g * cols);
    }
    combine(s, groups, cols, sums);
    memcpy(out, sums, (size_t)cols * sizeof *out);
    if (!fits)
        free(sums);
}
