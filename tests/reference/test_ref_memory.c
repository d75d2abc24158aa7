/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation fails once: ATN_ERR_MEMORY, and nothing leaks (the sanitizer build says so). */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "dense_soft.h"
#include "linear_algebra.h"
#include "newton.h"
#include "ref_memory.h"

static long calls_left = -1; /* negative: never fail */

static void *allocate(size_t count, size_t size)
{
    if (calls_left == 0)
        return NULL;
    if (calls_left > 0)
        calls_left--;
    return calloc(count, size);
}

static const double a[9] = {2, 1, 0, 1, 3, 1, 0, 1, 2};

static atn_status full_svd(ref_svd_route route, int rows, int cols)
{
    double u[9], s[3], vt[9];
    return ref_svd(route, rows, cols, a, u, s, vt);
}

static atn_status run(int which)
{
    double x[9], y[9], s[3], value;
    int64_t rank;
    switch (which) {
    case 0:
        return full_svd(REF_DGESVD, 3, 2);
    case 1:
        return full_svd(REF_DGESVJ, 3, 2);
    case 2:
        return full_svd(REF_DGESVJ, 2, 3);
    case 3:
        return full_svd(REF_DGESDD, 3, 3);
    case 4:
        return ref_eigen(REF_DSYEVD, 3, a, s, x);
    case 5:
        return ref_eigen(REF_DSYEVR, 3, a, s, x);
    case 6:
        return ref_singular_values(3, 3, a, s, &value);
    case 7:
        return ref_eigenvalues(3, a, s, x, &value);
    case 8:
        return ref_spectral_norm(3, 3, a, &value);
    case 9:
        return ref_pinv(3, 3, a, -1, x, &rank, &value);
    case 10:
        return ref_symmetric_pinv(3, a, -1, x, y, &rank, &value);
    case 11:
        return ref_condition(3, 3, a, &value, &value);
    case 12:
        return ref_filter_matrix(3, a, 0.05, 0, 3, x);
    default:
        return ref_soft(3, 3, 1, 2, a, a, a, 0.5, NULL, true, x, y);
    }
}

Test(ref_memory, every_allocation_fails_once)
{
    ref_memory(allocate, NULL);
    for (int which = 0; which <= 13; which++) {
        int failures = 0;
        for (long allowed = 0; allowed < 100; allowed++) {
            calls_left = allowed;
            atn_status status = run(which);
            calls_left = -1;
            if (status == ATN_OK)
                break;
            failures++;
            cr_expect(status == ATN_ERR_MEMORY, "function %d allocation %ld: %s", which, allowed,
                      atn_status_name(status));
        }
        cr_expect(failures >= 1 && failures < 100, "function %d: %d failures", which, failures);
    }
}
