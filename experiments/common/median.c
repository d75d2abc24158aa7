/* SPDX-License-Identifier: BSD-3-Clause */
#include "median.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return isnan(x) || isnan(y) ? (isnan(x) != 0) - (isnan(y) != 0) : (x > y) - (x < y);
}

void sort_numbers(int64_t count, double *values)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
}

double median(int64_t count, double *values)
{
    sort_numbers(count, values);
    double low = values[(count - 1) / 2], high = values[count / 2];
    return low == high ? low : low + (high - low) / 2;
}
