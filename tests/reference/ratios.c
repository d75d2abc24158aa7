/* SPDX-License-Identifier: BSD-3-Clause */
#include "ratios.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

double *new_numbers(int64_t count)
{
    double *numbers = calloc((size_t)(count > 0 ? count : 1), sizeof *numbers);
    cr_assert(numbers, "out of memory");
    return numbers;
}

double column_norm(int64_t rows, int64_t cols, const double *a)
{
    long double largest = 0;
    for (int64_t j = 0; j < cols; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += fabs(a[i * cols + j]);
        largest = sum > largest ? sum : largest;
    }
    return (double)largest;
}

double orthogonality_ratio(int64_t length, int64_t count, const double *q)
{
    long double largest = 0;
    for (int64_t j = 0; j < count; j++) {
        long double column = 0;
        for (int64_t i = 0; i < count; i++) {
            long double dot = i == j ? -1 : 0;
            for (int64_t c = 0; c < length; c++)
                dot += (long double)q[c * count + i] * q[c * count + j];
            column += fabsl(dot);
        }
        if (!(column <= largest))
            largest = column;
    }
    return length > 0 ? (double)(largest / (length * (long double)UNIT_ROUNDOFF)) : 0;
}

double reconstruction_ratio(int64_t rows, int64_t cols, int64_t k, const double *a, const double *u,
                            const double *s, const double *vt)
{
    long double largest = 0, norm = column_norm(rows, cols, a);
    int64_t n = rows > cols ? rows : cols;
    for (int64_t j = 0; j < cols; j++) {
        long double column = 0;
        for (int64_t i = 0; i < rows; i++) {
            long double error = a[i * cols + j];
            for (int64_t c = 0; c < k; c++)
                error -= (long double)u[i * k + c] * s[c] * vt[c * cols + j];
            column += fabsl(error);
        }
        if (!(column <= largest))
            largest = column;
    }
    if (n == 0)
        return 0;
    return (double)(norm > 0 ? largest / norm / (n * (long double)UNIT_ROUNDOFF)
                             : largest / UNIT_ROUNDOFF);
}

double spectrum_ratio(int64_t n, int64_t count, const double *s, const double *want)
{
    long double worst = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        long double error = fabsl((long double)s[i] - want[i]);
        if (!(error <= worst))
            worst = error;
        largest = fmaxl(largest, fabs(want[i]));
    }
    if (worst == 0)
        return 0;
    return (double)(worst / largest / (n * (long double)UNIT_ROUNDOFF));
}

double order_ratio(int64_t count, const double *s, bool nonnegative)
{
    for (int64_t i = 0; i < count; i++)
        if (!(i == 0 || s[i] <= s[i - 1]) || (nonnegative && !(s[i] >= 0)))
            return 1;
    return 0;
}

void product(int64_t p, int64_t r, int64_t q, const double *a, const double *b, double *c)
{
    for (int64_t i = 0; i < p; i++) {
        for (int64_t j = 0; j < q; j++) {
            long double sum = 0;
            for (int64_t k = 0; k < r; k++)
                sum += (long double)a[i * r + k] * b[k * q + j];
            c[i * q + j] = (double)sum;
        }
    }
}

static double worst_seen[REF_RULE_COUNT];

static void expect_verdict(ref_rule rule, ref_verdict worst, double ratio, const char *format,
                           va_list arguments)
{
    char what[160];
    vsnprintf(what, sizeof what, format, arguments);
    if (!(ratio <= worst_seen[rule]))
        worst_seen[rule] = ratio;
    const ref_threshold *threshold = ref_threshold_get(rule);
    cr_expect(ref_judge(rule, ratio) <= worst, "%s: rule=%s ratio=%.3g limit=%g", what,
              threshold->name, ratio, worst == REF_PASS ? threshold->pass : threshold->fail);
}

void expect_ratio(ref_rule rule, double ratio, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    expect_verdict(rule, REF_PASS, ratio, format, arguments);
    va_end(arguments);
}

void expect_no_failure(ref_rule rule, double ratio, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    expect_verdict(rule, REF_MARGINAL, ratio, format, arguments);
    va_end(arguments);
}

void log_worst(const char *test)
{
    for (int rule = 0; rule < REF_RULE_COUNT; rule++)
        cr_log_info("%s: rule=%s worst ratio=%.3g", test, ref_threshold_get(rule)->name,
                    worst_seen[rule]);
}
