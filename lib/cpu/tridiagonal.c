/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest eigenvalue of a small tridiagonal matrix, by multisection. */
#include "cpu/simd_set.h"

/* Points between two bounds that are tested together. Their number does not depend on the vectors'
 * width, so all instruction sets take the same points. GROUP vectors of them fit the registers. */
enum { POINTS = 32, GROUP = 4 };
/* 33^11 > 2^55: the bounds then differ by less than the rounding of the larger one. */
enum { ROUNDS = 11 };

typedef int64_t truths __attribute__((vector_size(BYTES)));

/* In units of about its largest entry, so that nothing overflows and minors do not underflow. */
typedef struct {
    int count;
    double diagonal[SIMD_TRIDIAGONAL];
    double squares[SIMD_TRIDIAGONAL]; /* squares of the entries above the diagonal's, first 0 */
    double low, high; /* bounds of the eigenvalue: Gershgorin's, and the smallest diagonal entry */
} scaled_matrix;

static scaled_matrix scale_matrix(double unit, int count, const double *diagonal,
                                  const double *off_diagonal)
{
    scaled_matrix t = {.count = count, .low = INFINITY, .high = INFINITY};
    double before = 0;
    for (int i = 0; i < count; i++) {
        double next = i < count - 1 ? unit * off_diagonal[i] : 0;
        t.diagonal[i] = unit * diagonal[i];
        t.squares[i] = before * before;
        t.low = fmin(t.low, t.diagonal[i] - fabs(before) - fabs(next));
        t.high = fmin(t.high, t.diagonal[i]);
        before = next;
    }
    return t;
}

/* How many of the points low + part k, for k from `first` on, lie below all eigenvalues: there
 * every leading minor of T - x is above 0. Wilkinson (1965), ch. 5, section 37: the computed minors
 * are those of a matrix that differs from T by roundoff. One that underflows counts as 0; then an
 * eigenvalue is within 2^-60 of the norm. */
static inline int count_below(const scaled_matrix *t, double low, double part, int first)
{
    wide shifts[GROUP], minors[GROUP], before[GROUP];
    truths below[GROUP];
    int passed = 0;
    for (int g = 0; g < GROUP; g++) {
        for (int i = 0; i < WIDE; i++)
            shifts[g][i] = low + part * (first + g * WIDE + i);
        minors[g] = before[g] = (wide){0} + 1;
        below[g] = ~(truths){0};
    }
    for (int i = 0; i < t->count; i++)
        for (int g = 0; g < GROUP; g++) {
            wide next = (t->diagonal[i] - shifts[g]) * minors[g] - t->squares[i] * before[g];
            before[g] = minors[g];
            minors[g] = next;
            below[g] &= next > 0;
        }
    for (int g = 1; g < GROUP; g++)
        below[0] += below[g];
    for (int i = 0; i < WIDE; i++)
        passed -= (int)below[0][i];
    return passed;
}

/* The last point that passes is a new lower bound, the next one a new upper bound. */
static double multisect(const scaled_matrix *t)
{
    double low = t->low, high = t->high;
    for (int round = 0; round < ROUNDS; round++) {
        double part = (high - low) / (POINTS + 1);
        int passed = 0;
        for (int first = 1; first <= POINTS; first += GROUP * WIDE)
            passed += count_below(t, low, part, first);
        high = passed < POINTS ? low + part * (passed + 1) : high;
        low += part * passed;
    }
    return low + (high - low) / 2;
}

double R(smallest_eigenvalue)(int count, const double *diagonal, const double *off_diagonal)
{
    enum { LEAST_EXPONENT = -1023 }; /* 2^1023 is finite */
    double largest = 0, zero = 0;
    int exponent;
    for (int i = 0; i < count; i++) {
        double next = i < count - 1 ? off_diagonal[i] : 0;
        largest = fmax(largest, fmax(fabs(diagonal[i]), fabs(next)));
        zero += (diagonal[i] - diagonal[i]) + (next - next);
    }
    if (zero != 0) /* NaN if an entry is not finite */
        return NAN;
    frexp(largest, &exponent);
    exponent = exponent < LEAST_EXPONENT ? LEAST_EXPONENT : exponent;
    scaled_matrix t = scale_matrix(ldexp(1, -exponent), count, diagonal, off_diagonal);
    return ldexp(multisect(&t), exponent);
}
