/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest eigenvalue of a small tridiagonal matrix, in every instruction set that this machine
 * has, compared with bisection in long double and LAPACK. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cpu/simd.h"
#include "simd_sets.h"

enum { MOST = SIMD_TRIDIAGONAL };
/* Of norm roundoff: two roundings of an entry of the diagonal, no more for an off-diagonal entry,
 * whose square has three, and what is left of the bounds. */
static const double allowed = 4;

typedef struct {
    int count;
    double diagonal[MOST], off_diagonal[MOST]; /* what lies beyond is NaN: nobody reads it */
} matrix;

static double norm_of(const matrix *t)
{
    double norm = 0;
    for (int i = 0; i < t->count; i++)
        norm = fmax(norm, fabs(t->diagonal[i]) + (i > 0 ? fabs(t->off_diagonal[i - 1]) : 0) +
                              (i < t->count - 1 ? fabs(t->off_diagonal[i]) : 0));
    return norm;
}

static bool is_positive(const matrix *t, long double shift)
{
    long double pivot = (long double)t->diagonal[0] - shift;
    for (int i = 1; i < t->count && pivot > 0; i++)
        pivot = t->diagonal[i] - shift - t->off_diagonal[i - 1] * (t->off_diagonal[i - 1] / pivot);
    return pivot > 0;
}

static long double bisect(const matrix *t)
{
    long double low = -2 * (long double)norm_of(t), high = -low;
    for (int i = 0; i < 100; i++) {
        long double middle = low + (high - low) / 2;
        *(is_positive(t, middle) ? &low : &high) = middle;
    }
    return low + (high - low) / 2;
}

static double lapack(matrix t)
{
    cr_assert(LAPACKE_dsterf_work(t.count, t.diagonal, t.off_diagonal) == 0);
    return t.diagonal[0];
}

/* All sets come as near as they should, and agree to the last bit: none fuses. */
static void check(const char *what, const matrix *t)
{
    double room = allowed * 0x1p-53 * norm_of(t) + 0x1p-1074, first = NAN;
    long double want = bisect(t);
    cr_expect(fabsl(lapack(*t) - want) <= 4 * room, "%s, %d: LAPACK says %g for %Lg", what,
              t->count, lapack(*t), want);
    for (int set = 0, count = find_sets(); set < count; set++) {
        double got = sets[set].kernels->smallest_eigenvalue(t->count, t->diagonal, t->off_diagonal);
        cr_expect(fabsl(got - want) <= room, "%s, %d, %s: %.17g for %.20Lg, %.3Lg of its room",
                  what, t->count, sets[set].name, got, want, fabsl(got - want) / room);
        first = set == 0 ? got : first;
        cr_expect(got == first, "%s, %d, %s: bits differ from %s's", what, t->count, sets[set].name,
                  sets[0].name);
    }
}

static matrix make(int count)
{
    matrix t = {.count = count};
    for (int i = 0; i < MOST; i++)
        t.diagonal[i] = t.off_diagonal[i] = NAN;
    return t;
}

static double random_signed(void)
{
    return 2 * random_unit() - 1;
}

static double one(int i)
{
    (void)i;
    return 1;
}

static double graded_down(int i)
{
    return ldexp(1, -5 * i);
}

static double graded_up(int i)
{
    return ldexp(1, 5 * i - 80);
}

static double huge(int i)
{
    return (i + 1) * 0x1p1018;
}

static double tiny(int i)
{
    return (i + 1) * 0x1p-1070;
}

static double mixed(int i)
{
    return i % 3 == 0 ? 0x1p-60 : 1;
}

/* Entries of these sizes, and off-diagonal entries smaller by this. */
static const struct {
    const char *name;
    double (*size)(int i);
    double off_diagonal, shift; /* added to the diagonal */
} kinds[] = {
    {"random", one, 1, 0},
    {"nearly diagonal", one, 0x1p-30, 0},
    {"clustered", one, 0x1p-50, 0x1p40},
    {"diagonal", one, 0, 0},
    {"mostly off the diagonal", one, 1000, 0},
    {"positive", one, 0.5, 2},
    {"graded down", graded_down, 0.5, 0},
    {"graded up", graded_up, 0.5, 0},
    {"huge", huge, 1, 0},
    {"tiny", tiny, 1, 0},
    {"far apart", mixed, 1, 0},
};

Test(tridiagonal, random_matrices)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int repeat = 0; repeat < 20; repeat++)
            for (int count = 1; count <= MOST; count++) {
                matrix t = make(count);
                for (int i = 0; i < count; i++)
                    t.diagonal[i] = kinds[k].size(i) * random_signed() + kinds[k].shift;
                for (int i = 0; i < count - 1; i++)
                    t.off_diagonal[i] = kinds[k].off_diagonal * sqrt(kinds[k].size(i)) *
                                        sqrt(kinds[k].size(i + 1)) * random_signed();
                check(kinds[k].name, &t);
            }
}

/* Independent blocks; the least eigenvalue is that of any of them. */
Test(tridiagonal, blocks)
{
    for (int count = 3; count <= MOST; count++)
        for (int at = 0; at + 1 < count; at++) {
            matrix t = make(count);
            for (int i = 0; i < count; i++)
                t.diagonal[i] = 1;
            for (int i = 0; i < count - 1; i++)
                t.off_diagonal[i] = 0;
            t.off_diagonal[at] = at % 2 == 0 ? 10 : -10;
            check("a block", &t);
        }
}

/* Points from -32 to -1 are tried first; the minor of two rows is 0 at -5, and so are all after
 * it. */
Test(tridiagonal, zero_minors)
{
    static const double off_diagonal[] = {5, 0, 16.5, 16.5};
    matrix t = make(5);
    memset(t.diagonal, 0, 5 * sizeof(double));
    memcpy(t.off_diagonal, off_diagonal, sizeof off_diagonal);
    check("zero minors", &t);
}

/* 2 - 2 cos(pi / (n + 1)) and, of off-diagonal entries of 1 and a diagonal of 0, -2 cos(pi / (n +
 * 1)). */
Test(tridiagonal, known_eigenvalues)
{
    find_sets();
    for (int count = 1; count <= MOST; count++) {
        double cosine = 2 * cos(acos(-1.0) / (count + 1));
        for (int diagonal = 0; diagonal <= 2; diagonal += 2) {
            matrix t = make(count);
            for (int i = 0; i < count; i++)
                t.diagonal[i] = diagonal;
            for (int i = 0; i < count - 1; i++)
                t.off_diagonal[i] = diagonal - 1;
            check("second differences", &t);
            double got = sets[0].kernels->smallest_eigenvalue(count, t.diagonal, t.off_diagonal);
            cr_expect(fabs(got - (diagonal - cosine)) <= (allowed + 2) * 0x1p-53 * 4, "%d", count);
        }
    }
}

/* A diagonal's least, and 0 of nothing but zeros, are exact. */
Test(tridiagonal, exact)
{
    for (int set = 0, sets_here = find_sets(); set < sets_here; set++)
        for (int count = 1; count <= MOST; count++) {
            matrix t = make(count);
            memset(t.diagonal, 0, sizeof t.diagonal);
            memset(t.off_diagonal, 0, (size_t)(count - 1) * sizeof(double));
            cr_expect(sets[set].kernels->smallest_eigenvalue(count, t.diagonal, t.off_diagonal) ==
                      0);
            for (int i = 0; i < count; i++)
                t.diagonal[i] = 3 + (i + 5) % count / 7.0;
            cr_expect(sets[set].kernels->smallest_eigenvalue(count, t.diagonal, t.off_diagonal) ==
                      3);
        }
}

/* NaN, infinity, nothing: NaN. */
Test(tridiagonal, not_finite)
{
    static const double wrong[] = {NAN, INFINITY, -INFINITY};
    for (int set = 0, sets_here = find_sets(); set < sets_here; set++) {
        cr_expect(isnan(sets[set].kernels->smallest_eigenvalue(0, NULL, NULL)));
        for (int count = 1; count <= MOST; count++)
            for (int at = 0; at < 2 * count - 1; at++)
                for (int kind = 0; kind < 3; kind++) {
                    matrix t = make(count);
                    for (int i = 0; i < count; i++)
                        t.diagonal[i] = 1;
                    for (int i = 0; i < count - 1; i++)
                        t.off_diagonal[i] = 0.25;
                    *(at < count ? &t.diagonal[at] : &t.off_diagonal[at - count]) = wrong[kind];
                    cr_expect(isnan(sets[set].kernels->smallest_eigenvalue(count, t.diagonal,
                                                                           t.off_diagonal)),
                              "%s, %d, %d", sets[set].name, count, at);
                }
    }
}
