/* SPDX-License-Identifier: BSD-3-Clause */
/* The singular value decomposition that the pseudo-inverse uses: of matrices with known singular
 * values, of any rank, and of what has none. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cpu/blocks.h"
#include "simd_sets.h"

enum { MOST = 67 };
#ifdef REAL_F32
static const double roundoff = 0x1p-24;
#else
static const double roundoff = 0x1p-53;
#endif

typedef struct {
    int m;
    real a[MOST * MOST], right[MOST * MOST], left[MOST * MOST], values[MOST];
    double squares[MOST];
} problem;

static bool decompose(problem *p)
{
    memcpy(p->right, p->a, sizeof p->a);
    return R(singular_values)(p->m, p->right, p->left, p->values, p->squares);
}

/* The largest entry of |X X^T - I| for the rows of X. */
static double distance_from_orthogonal(int m, const real *x)
{
    double worst = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            double sum = i == j ? -1 : 0;
            for (int k = 0; k < m; k++)
                sum += (double)x[i * m + k] * (double)x[j * m + k];
            worst = fmax(worst, fabs(sum));
        }
    return worst;
}

/* |U S W^T - A|, its largest entry. */
static double backward_error(const problem *p)
{
    double worst = 0;
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->m; j++) {
            double sum = -(double)p->a[i * p->m + j];
            for (int k = 0; k < p->m; k++)
                sum += (double)p->left[k * p->m + i] * (double)p->values[k] *
                       (double)p->right[k * p->m + j];
            worst = fmax(worst, fabs(sum));
        }
    return worst;
}

/* Rows of rank `rank`: a Gaussian kernel of few points, repeated, or random rows. */
static void fill(problem *p, int m, int rank, bool kernel)
{
    p->m = m;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            p->a[i * m + j] = i >= rank ? p->a[i % rank * m + j]
                              : kernel  ? (real)exp(-0.01 * (i - j) * (i - j))
                                        : (real)(random_unit() - 0.5);
}

static void check(problem *p, const char *what)
{
    bool found = decompose(p);
    double norm = p->m > 0 ? (double)p->values[0] : 0, room = 4 * (p->m + 1) * roundoff;
    cr_expect(found, "%s, m=%d", what, p->m);
    for (int i = 1; i < p->m; i++)
        cr_expect(p->values[i] <= p->values[i - 1] && p->values[i] >= 0, "%s, m=%d: %d", what, p->m,
                  i);
    double left = distance_from_orthogonal(p->m, p->left);
    double right = distance_from_orthogonal(p->m, p->right), error = backward_error(p);
    cr_expect(left <= room && right <= room && error <= room * norm,
              "%s, m=%d: U %g, W %g, A %g times roundoff", what, p->m, left / roundoff,
              right / roundoff, error / norm / roundoff);
}

Test(singular, matrices_of_any_rank)
{
    static problem p;
    const int sizes[] = {0, 1, 2, 5, 16, 49, MOST};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int rank = 1; rank <= sizes[i]; rank += 1 + sizes[i] / 4) {
            fill(&p, sizes[i], rank, false);
            check(&p, "random");
            fill(&p, sizes[i], rank, true);
            check(&p, "kernel");
        }
    fill(&p, 16, 16, false);
    memset(p.a, 0, sizeof p.a);
    check(&p, "zero");
}

/* Equal entries, and a circulant matrix, whose singular values come in pairs. */
Test(singular, what_is_equal)
{
    static problem p;
    p.m = 49;
    for (int i = 0; i < 49 * 49; i++)
        p.a[i] = (real)(1.0 / 49);
    check(&p, "constant");
    cr_expect(fabs((double)p.values[0] - 1) <= 49 * roundoff &&
                  (double)p.values[1] <= 49 * roundoff,
              "%g, %g", (double)p.values[0], (double)p.values[1]);
    p.m = 16;
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            p.a[i * 16 + j] = (real)exp(cos(2 * acos(-1) * (i - j) / 16));
    check(&p, "circulant");
    for (int k = 1; k < 15; k += 2) /* its largest is a row's sum; pairs follow */
        cr_expect(fabs((double)p.values[k] - (double)p.values[k + 1]) <=
                      64 * roundoff * (double)p.values[0],
                  "%d: %g, %g", k, (double)p.values[k], (double)p.values[k + 1]);
}

/* Rows that differ by many orders of magnitude, the shortest first, keep their digits: those of a
 * scaled orthogonal matrix, whose lengths are powers of 2. */
Test(singular, rows_of_any_size)
{
    static problem p;
    const int m = 8;
    p.m = m;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) /* I - 2 v v^T / |v|^2, v = (1, 2, ..., 8), |v|^2 = 204 */
            p.a[i * m + j] = (real)ldexp((i == j) - 2.0 * (i + 1) * (j + 1) / 204, 8 * i - 60);
    cr_expect(decompose(&p));
    for (int i = 0; i < m; i++)
        cr_expect(fabs((double)p.values[i] / ldexp(1, 8 * (m - 1 - i) - 60) - 1) <= 64 * roundoff,
                  "%d: %g", i, (double)p.values[i]);
}

/* What rotations leave of a row that is a sum of others, noise of noise, ends at the least numbers,
 * where rows cannot be orthogonal to as many digits. */
Test(singular, columns_that_are_equal)
{
    static problem p;
    for (int m = 2; m <= 6; m++)
        for (int trial = 0; trial < 500; trial++) {
            p.m = m;
            for (int i = 0; i < m; i++)
                for (int j = 0; j < m; j++)
                    p.a[i * m + j] = j < m - 1 ? (real)random_unit() : p.a[i * m];
            check(&p, "equal columns");
        }
}

Test(singular, what_is_not_finite_is_not_decomposed)
{
    static problem p;
    for (int at = 0; at < 25; at++) {
        fill(&p, 5, 5, false);
        p.a[at] = at % 2 ? (real)NAN : (real)INFINITY;
        cr_expect(!decompose(&p), "%d", at);
    }
}
