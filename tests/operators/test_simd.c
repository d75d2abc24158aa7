/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops for wide vectors, in every instruction set that this machine has. Compiled once per
 * real, as they are. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simd_sets.h"

#ifdef REAL_F32
enum { DIGITS = 24, LEAST = -126 };
#else
enum { DIGITS = 53, LEAST = -1022 };
#endif

/* The error of got in units of the last place of want, subnormal numbers' included. */
static double ulps(real got, long double want)
{
    int exponent;
    frexpl(want, &exponent);
    exponent = exponent - 1 < LEAST ? LEAST : exponent - 1;
    return (double)fabsl(((long double)got - want) / ldexpl(1, exponent - DIGITS + 1));
}

/* SLEEF's bound, and that of attnum's own in f32, also below the normal numbers, where results are
 * rounded twice. */
Test(simd, exp_is_within_an_ulp)
{
    enum { COUNT = 4096, BLOCKS = 64 };
    static real x[COUNT], y[COUNT];
    const double low = (LEAST - DIGITS) * log(2.0), high = -LEAST * log(2.0);
    for (int set = 0, count = find_sets(); set < count; set++) {
        double worst = 0, at = 0;
        for (int block = 0; block < BLOCKS; block++) {
            for (int i = 0; i < COUNT; i++) /* evenly over the range, and densely around 0 */
                y[i] = x[i] = (real)(block % 2 ? (low + (high - low) * (i + random_unit()) / COUNT)
                                               : ldexp(random_unit() - 0.5, -i % 30));
            sets[set].kernels->exponentials(COUNT, y);
            for (int i = 0; i < COUNT; i++) {
                double error = ulps(y[i], expl((long double)x[i]));
                if (!(error <= worst)) {
                    worst = error;
                    at = (double)x[i];
                }
            }
        }
        cr_log_info("exp, %s: at most %.3f ulp, at %.17g\n", sets[set].name, worst, at);
        cr_expect(worst <= 1.0, "%s: %.3f ulp at %.17g", sets[set].name, worst, at);
        cr_expect(worst > 0.4, "%s: %.3f ulp: nothing was compared", sets[set].name, worst);
    }
}

/* The power of 2 that is in all weights: log(2) log2(e) is 1 in f32, where it is computed as such.
 * The others round log(2) x, which counts as much as x is large. */
Test(simd, powers_of_2_are_within_an_ulp)
{
    enum { COUNT = 1 << 14 };
    static real x[COUNT], y[COUNT];
    for (int set = 0, count = find_sets(); set < count; set++) {
        /* attnum's own; where base is the only set it may fuse, too, but calls SLEEF */
        bool exact = DIGITS == 24 && sets[set].fuses && count > 1;
        double worst = 0, at = 0;
        for (int i = 0; i < COUNT; i++)
            y[i] = x[i] = (real)(-151 + 279.0 * (i + random_unit()) / COUNT);
        sets[set].kernels->scaled_exponentials(COUNT, log(2), 0, y);
        for (int i = 0; i < COUNT; i++) {
            double error = ulps(y[i], exp2l((long double)x[i])) /
                           (exact ? 1 : 1 + 2 * fabs(log(2) * (double)x[i]));
            if (!(error <= worst)) {
                worst = error;
                at = (double)x[i];
            }
        }
        cr_log_info("2^x, %s: at most %.3f ulp, at %.17g\n", sets[set].name, worst, at);
        cr_expect(worst <= 1 && worst > 0.2, "%s: %.3f at %.17g", sets[set].name, worst, at);
    }
}

Test(simd, exp_of_what_is_special)
{
    const real tiny = (real)ldexp(1, LEAST);
    for (int set = 0, count = find_sets(); set < count; set++)
        for (int scaled = 0; scaled < 2; scaled++) {
            real x[] = {0,
                        (real)-0.0,
                        (real)NAN,
                        (real)INFINITY,
                        (real)-INFINITY,
                        -100000,
                        100000,
                        (real)(LEAST * log(2.0) - 2),
                        tiny,
                        -1e30f};
            const char *name = sets[set].name;
            if (scaled)
                sets[set].kernels->scaled_exponentials(sizeof x / sizeof *x, 1, 0, x);
            else
                sets[set].kernels->exponentials(sizeof x / sizeof *x, x);
            cr_expect(x[0] == 1 && x[1] == 1, "%s: exp(0) is 1 exactly", name);
            cr_expect(isnan(x[2]), "%s: NaN", name);
            cr_expect(isinf(x[3]) && x[3] > 0 && x[4] == 0, "%s: infinities", name);
            cr_expect(x[5] == 0 && isinf(x[6]) && x[9] == 0, "%s: underflow, overflow", name);
            cr_expect(x[7] > 0 && x[7] < tiny, "%s: subnormal: %g", name, (double)x[7]);
            cr_expect(x[8] == 1, "%s: near 1", name);
        }
}

/* An exponential has the same bits whatever else is in its vector: a special number in each place
 * among ordinary ones, and these next to it. */
Test(simd, exp_does_not_depend_on_neighbours)
{
    enum { COUNT = 48 };
    const real other[] = {(real)NAN,
                          (real)INFINITY,
                          (real)-INFINITY,
                          -1e30f,
                          1e30f,
                          LEAST + 0.5f,
                          (real)(LEAST * log(2.0) - 2)};
    for (int set = 0, count = find_sets(); set < count; set++)
        for (int scaled = 0; scaled < 2; scaled++)
            for (int i = 0; i < (int)(sizeof other / sizeof *other) * COUNT; i++) {
                real x[3][COUNT]; /* ordinary, special, one special among ordinary */
                int at = i % COUNT, different = 0;
                for (int j = 0; j < COUNT; j++) {
                    x[0][j] = x[2][j] = (real)(0.37 * j - 9);
                    x[1][j] = other[i / COUNT];
                }
                x[2][at] = x[1][at];
                for (int kind = 0; kind < 3; kind++)
                    if (scaled)
                        sets[set].kernels->scaled_exponentials(COUNT, log(2), 0, x[kind]);
                    else
                        sets[set].kernels->exponentials(COUNT, x[kind]);
                for (int j = 0; j < COUNT; j++) {
                    real want = x[j == at][j];
                    different += x[2][j] != want && !(isnan(x[2][j]) && isnan(want));
                }
                cr_expect(different == 0, "%s: %d differ, with %g in place %d", sets[set].name,
                          different, (double)other[i / COUNT], at);
            }
}

/* What the kernels say of the error of exp(factor (x - shift)): the difference is rounded before.
 */
static double scaled_error(real got, double factor, real shift, real x)
{
    volatile real difference = x - shift;
    double argument = factor * (double)difference;
    return ulps(got, expl((long double)argument)) / (1 + 2 * fabs(argument));
}

/* Any count, any alignment; the neighbours stay. */
Test(simd, exp_takes_any_count)
{
    enum { MOST = 40 };
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int first = 0; first < 3; first++)
            for (int count = 0; count <= MOST; count++) {
                real x[MOST + 6], y[MOST + 6], before[MOST + 6];
                for (int i = 0; i < MOST + 6; i++)
                    x[i] = y[i] = before[i] = (real)(0.37 * i - 5);
                sets[set].kernels->exponentials(count, x + first + 1);
                sets[set].kernels->scaled_exponentials(count, -0.7, (real)0.3, y + first + 1);
                for (int i = 0; i < MOST + 6; i++) {
                    bool in = i > first && i <= first + count;
                    bool good = in ? ulps(x[i], expl((long double)before[i])) <= 1 &&
                                         scaled_error(y[i], -0.7, (real)0.3, before[i]) <= 1
                                   : x[i] == before[i] && y[i] == before[i];
                    cr_expect(good, "%s: element %d, %d from %d", sets[set].name, i, count,
                              first + 1);
                }
            }
}

/* The exponential of min(x, 0), to the bit; naive, less 1; plus max(x, 0). */
Test(simd, elu_and_its_slope)
{
    enum { MOST = 48, ROOM = MOST + 1 };
    static const real special[] = {0, -(real)0., INFINITY, -INFINITY, 1e30f, -1e30f, NAN};
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int count = 0; count <= MOST; count++)
            for (int naive = 0; naive <= 1; naive++) {
                real x[ROOM], slopes[ROOM], phi[ROOM], want_slopes[ROOM], want[ROOM];
                for (int i = 0; i < ROOM; i++) {
                    x[i] = i % 7 == 5 ? special[i / 7] : (real)(0.37 * i - 5);
                    want_slopes[i] = x[i] < 0 ? x[i] : 0;
                    slopes[i] = phi[i] = 7;
                }
                sets[set].kernels->exponentials(count, want_slopes);
                for (int i = 0; i < ROOM; i++) {
                    want[i] = (want_slopes[i] - (real)naive) + (x[i] > 0 ? x[i] : 0);
                    if (i >= count)
                        want_slopes[i] = want[i] = 7;
                }
                sets[set].kernels->elu(count, naive, x, slopes, phi);
                cr_expect(memcmp(slopes, want_slopes, sizeof slopes) == 0 &&
                              memcmp(phi, want, sizeof phi) == 0,
                          "%s: %d numbers%s", sets[set].name, count, naive ? ", naive" : "");
            }
}

/* Rows that are shorter and longer than what is added in real numbers, more of them than are added
 * across together, in place and elsewhere: the exponentials, and nothing beyond them; sums within
 * 16 roundings, of eight terms, of three sums and of their lanes; in f32, whose exponential is
 * attnum's own where the set fuses, the same bits of both such sets. */
Test(simd, rows_of_exponentials)
{
    enum { ROWS = 11, MOST = 300, STRIDE = MOST + 3, OTHER = MOST + 8 };
    static real x[ROWS * STRIDE], first[ROWS * STRIDE], before[ROWS * STRIDE], y[ROWS * OTHER];
    double first_sums[ROWS] = {0};
    for (int i = 0; i < ROWS * STRIDE; i++)
        before[i] = (real)(0.37 * (i % 40) - 5);
    for (int count = 0; count <= MOST; count += count < 150 ? 1 : 37)
        for (int set = 0, there = find_sets(), fusing = 0; set < there; set++) {
            int64_t counts[ROWS];
            real shifts[ROWS];
            double sums[ROWS], other_sums[ROWS];
            long double wanted[ROWS] = {0};
            int wrong = 0, moved = 0;
            for (int i = 0; i < ROWS; i++) {
                counts[i] = i % 4 == 2 ? 0 : count / (1 + i % 4);
                shifts[i] = (real)(9.8 - 0.37 * i);
            }
            memcpy(x, before, sizeof x);
            for (int i = 0; i < ROWS * OTHER; i++)
                y[i] = 7;
            sets[set].kernels->exponential_rows(ROWS, counts, 0.7, shifts, x, STRIDE, y, OTHER,
                                                other_sums);
            sets[set].kernels->exponential_rows(ROWS, counts, 0.7, shifts, x, STRIDE, x, STRIDE,
                                                sums);
            for (int i = 0; i < ROWS * STRIDE; i++) {
                int row = i / STRIDE, column = i % STRIDE;
                bool in = column < counts[row];
                wanted[row] += in ? (long double)x[i] : 0;
                wrong += in ? !(scaled_error(x[i], 0.7, shifts[row], before[i]) <= 1)
                            : x[i] != before[i];
            }
            for (int i = 0; i < ROWS * OTHER; i++) {
                int row = i / OTHER, column = i % OTHER;
                moved += y[i] != (column < counts[row] ? x[row * STRIDE + column] : 7);
            }
            cr_expect(wrong == 0 && moved == 0, "%s: of %d, %d wrong, %d elsewhere", sets[set].name,
                      count, wrong, moved);
            for (int row = 0; row < ROWS; row++)
                cr_expect(fabsl(sums[row] - wanted[row]) <= ldexpl(16, -DIGITS) * wanted[row] &&
                              (sums[row] > 0) == (counts[row] > 0) && sums[row] == other_sums[row],
                          "%s: row %d of %d: %.17g, not %.17Lg", sets[set].name, row, count,
                          sums[row], wanted[row]);
            if (!sets[set].fuses || DIGITS > 24)
                continue;
            if (fusing++ == 0) {
                memcpy(first, x, sizeof x);
                memcpy(first_sums, sums, sizeof sums);
            }
            cr_expect(memcmp(first, x, sizeof x) == 0 && memcmp(first_sums, sums, sizeof sums) == 0,
                      "%s: other bits, %d", sets[set].name, count);
        }
}

/* Columns of exponentials: to the bit those of the differences; sums, added to what was in their
 * place, within 8 roundings, of eight terms and in double; with one number that must be refused in
 * each place, and with the largest that must not. */
Test(simd, columns_of_exponentials)
{
    enum { ROWS = 19, MOST = 37, STRIDE = MOST + 2 };
    static const real special[] = {(real)NAN, INFINITY, -INFINITY, (real)4.5, 4, -1e30f};
    static real x[ROWS * STRIDE], y[ROWS * MOST + 1], want[ROWS * MOST + 1];
    real shifts[MOST];
    for (int set = 0, there = find_sets(); set < there; set++)
        for (int d = 1; d <= MOST; d++)
            for (int rows = 0; rows <= ROWS; rows += d % 8 == 1 ? 1 : ROWS) {
                int at = (7 * d + rows) % (rows * d + 1), kind = (d + rows) % 7, wrong = 0;
                bool plain = kind == 6 || at == rows * d;
                double sums[MOST];
                for (int c = 0; c < MOST; c++) {
                    shifts[c] = (real)(0.25 * (c % 9));
                    sums[c] = 1;
                }
                for (int i = 0; i < ROWS * STRIDE; i++)
                    x[i] = (real)(0.37 * (i % 23) - 5);
                for (int i = 0; i <= ROWS * MOST; i++)
                    y[i] = want[i] = 7;
                if (!plain)
                    x[at / d * STRIDE + at % d] = special[kind] + shifts[at % d];
                for (int i = 0; i < rows * d; i++)
                    want[i] = x[i / d * STRIDE + i % d] - shifts[i % d];
                sets[set].kernels->exponentials((int64_t)rows * d, want);
                bool got = sets[set].kernels->exponential_columns(rows, d, x, STRIDE, shifts, 4, y,
                                                                  rows % 3 ? sums : NULL);
                for (int i = 0; i <= ROWS * MOST; i++)
                    wrong += !(y[i] == want[i] || (i == at && !got));
                for (int c = 0; c < MOST; c++) {
                    long double sum = 1;
                    for (int j = 0; c < d && rows % 3 && j < rows; j++)
                        sum += want[j * d + c];
                    wrong +=
                        (got || c != at % d) && !(fabsl(sums[c] - sum) <= ldexpl(8, -DIGITS) * sum);
                }
                cr_expect(wrong == 0 && got == (plain || kind >= 4),
                          "%s: %d x %d, number %d: %d wrong, %s", sets[set].name, rows, d, at,
                          wrong, got ? "taken" : "refused");
            }
}

/* Sums for a softmax's backward: peaks are exact where one weight of a row is above 1/2, in each
 * place, where one or two are 1/2, and where none is; the other sum is within 24 roundings of its
 * terms. */
Test(simd, weighted_rows_and_peaks)
{
    enum { ROWS = 21, MOST = 150, STRIDE = MOST + 3, OTHER = MOST + 1 };
    static real weights[ROWS * STRIDE], slopes[ROWS * OTHER];
    for (int set = 0, there = find_sets(); set < there; set++)
        for (int count = 0; count <= MOST; count += count < 70 ? 1 : 40) {
            int64_t counts[ROWS];
            real pivots[ROWS], peaks[ROWS];
            double sums[ROWS];
            int wrong = 0;
            for (int i = 0; i < ROWS * STRIDE; i++)
                weights[i] = (real)(i % STRIDE < count ? 0.4 * random_unit() : 0.9);
            for (int i = 0; i < ROWS * OTHER; i++)
                slopes[i] = (real)(random_unit() - 0.5);
            for (int i = 0; i < ROWS; i++) {
                counts[i] = i % 3 == 2 ? count / 2 : count;
                pivots[i] = i % 2 ? (real)0.3 : 0;
                if (count > 0 && i % 2)
                    weights[i * STRIDE + 13 * i % count] = i % 4 == 1 ? (real)0.5 : 1;
                if (count > 0 && i % 8 == 1)
                    weights[i * STRIDE + (13 * i + 1) % count] = (real)0.5;
            }
            sets[set].kernels->softmax_peaks(ROWS, count, weights, STRIDE, slopes, OTHER, peaks);
            sets[set].kernels->weighted_rows(ROWS, counts, weights, STRIDE, slopes, OTHER, pivots,
                                             sums);
            for (int i = 0; i < ROWS; i++) {
                long double sum = 0, size = 0;
                for (int j = 0; j < counts[i]; j++) {
                    long double term =
                        (long double)weights[i * STRIDE + j] *
                        ((long double)slopes[i * OTHER + j] - (long double)pivots[i]);
                    sum += term;
                    size += fabsl(term);
                }
                const real *row = slopes + i * OTHER;
                real peak = count > 0 && i % 2 ? row[13 * i % count] : 0;
                if (i % 4 == 1)
                    peak /= 2;
                if (count > 1 && i % 8 == 1)
                    peak += row[(13 * i + 1) % count] / 2;
                wrong += peaks[i] != peak || !(fabsl(sums[i] - sum) <= ldexpl(24, -DIGITS) * size);
            }
            cr_expect(wrong == 0, "%s: %d rows of %d", sets[set].name, wrong, count);
        }
}

/* Around 0, over one turn and many, and where an argument has to be reduced with care. */
static real circle_argument(int block, double at)
{
    switch (block % 4) {
    case 0:
        return (real)ldexp(at - 0.5, -(int)(30 * at));
    case 1:
        return (real)(8 * at - 4);
    case 2:
        return (real)(2e4 * at - 1e4);
    default: /* next to a multiple of pi/2 */
        return (real)(acos(0.0) * floor(2000 * at - 1000));
    }
}

/* SLEEF's bound is 1.0 ulp for both. */
Test(simd, sines_and_cosines_are_within_an_ulp)
{
    enum { COUNT = 4096, BLOCKS = 64 };
    static real x[COUNT], cosines[COUNT], sines[COUNT];
    for (int set = 0, count = find_sets(); set < count; set++) {
        double worst = 0, at = 0;
        for (int block = 0; block < BLOCKS; block++) {
            for (int i = 0; i < COUNT; i++)
                cosines[i] = x[i] = circle_argument(block, (i + random_unit()) / COUNT);
            sets[set].kernels->sincos(COUNT, cosines, sines);
            for (int i = 0; i < COUNT; i++) {
                double error = fmax(ulps(cosines[i], cosl((long double)x[i])),
                                    ulps(sines[i], sinl((long double)x[i])));
                if (!(error <= worst)) {
                    worst = error;
                    at = (double)x[i];
                }
            }
        }
        cr_log_info("sin, cos, %s: at most %.3f ulp, at %.17g\n", sets[set].name, worst, at);
        cr_expect(worst <= 1.0, "%s: %.3f ulp at %.17g", sets[set].name, worst, at);
        cr_expect(worst > 0.4, "%s: %.3f ulp: nothing was compared", sets[set].name, worst);
    }
}

/* In double in either copy; libm's are within an ulp as well. */
Test(simd, sines_and_cosines_in_double)
{
    enum { COUNT = 61 };
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int count = 0; count <= COUNT; count++) {
            double x[COUNT + 1], sines[COUNT + 1];
            for (int i = 0; i <= COUNT; i++)
                x[i] = sines[i] = 0.0621 * i;
            sets[set].kernels->sincos_f64(count, x, sines);
            for (int i = 0; i < count; i++) {
                double angle = 0.0621 * i;
                cr_expect(fabs(x[i] - cos(angle)) <= 0x1p-52 * fabs(cos(angle)) &&
                              fabs(sines[i] - sin(angle)) <= 0x1p-52 * fabs(sin(angle)),
                          "%s: element %d of %d", sets[set].name, i, count);
            }
            cr_expect(x[count] == 0.0621 * count && sines[count] == 0.0621 * count,
                      "%s: the neighbour of %d", sets[set].name, count);
        }
}

Test(simd, sines_and_cosines_take_any_count)
{
    enum { MOST = 40 };
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int first = 0; first < 3; first++)
            for (int count = 0; count <= MOST; count++) {
                real x[MOST + 6], cosines[MOST + 6], sines[MOST + 6];
                for (int i = 0; i < MOST + 6; i++)
                    cosines[i] = sines[i] = x[i] = (real)(0.37 * i - 5);
                sets[set].kernels->sincos(count, cosines + first + 1, sines + first + 1);
                for (int i = 0; i < MOST + 6; i++) {
                    bool in = i > first && i <= first + count;
                    bool good = in ? ulps(cosines[i], cosl((long double)x[i])) <= 1.0 &&
                                         ulps(sines[i], sinl((long double)x[i])) <= 1.0
                                   : cosines[i] == x[i] && sines[i] == x[i];
                    cr_expect(good, "%s: element %d, %d from %d", sets[set].name, i, count,
                              first + 1);
                }
            }
}

Test(simd, sines_and_cosines_of_what_is_special)
{
    for (int set = 0, count = find_sets(); set < count; set++) {
        real x[] = {0, (real)-0.0, (real)NAN, (real)INFINITY}, sines[4];
        sets[set].kernels->sincos(4, x, sines);
        cr_expect(x[0] == 1 && x[1] == 1, "%s: cos(0) is 1 exactly", sets[set].name);
        cr_expect(sines[0] == 0 && sines[1] == 0, "%s: sin(0) is 0", sets[set].name);
        cr_expect(isnan(x[2]) && isnan(sines[2]), "%s: NaN", sets[set].name);
        cr_expect(isnan(x[3]) && isnan(sines[3]), "%s: infinity", sets[set].name);
    }
}

/* Of x Phi(x) and Phi(x) + x phi(x), in double in either copy, in units of their roundoff u. The
 * argument -x / sqrt(2) of erfc has two roundings, of the constant and of the product, which erfc
 * multiplies by at most x^2 + 1; erfc itself has 1.5 ulp, 3 u, and the products that follow 2 u.
 * Phi and x phi, whose exponential is less sensitive, are added as they are, of either sign. */
Test(simd, gelu_and_its_derivative)
{
    enum { COUNT = 4096, MOST = 41 };
    const long double root_half = sqrtl(0.5L), over = 1 / sqrtl(2 * acosl(-1.0L));
    static double x[COUNT], y[COUNT], slopes[COUNT];
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++) {
        double worst = 0;
        for (int i = 0; i < COUNT; i++)
            y[i] = x[i] = 40 * random_unit() - 30;
        sets[set].kernels->gelu(COUNT, y, slopes);
        for (int i = 0; i < COUNT; i++) {
            long double phi = erfcl(-x[i] * root_half) / 2;
            long double density = x[i] * expl(-(long double)x[i] * x[i] / 2) * over;
            double allowed = (7 + 2 * x[i] * x[i]) * 0x1p-53;
            double error = (double)fabsl(y[i] / (x[i] * phi) - 1) / allowed;
            double slope_error = (double)(fabsl(slopes[i] - (phi + density)) /
                                          ((phi + fabsl(density)) * (long double)allowed));
            worst = fmax(worst, fmax(error, slope_error));
            cr_expect(error <= 1 && slope_error <= 1, "%s: %.17g: %g, %g", sets[set].name, x[i],
                      error, slope_error);
        }
        cr_expect(worst > 0.1, "%s: %.3f: nothing was compared", sets[set].name, worst);
        for (int count = 0; count <= MOST; count++) {
            double some[MOST + 1], some_slopes[MOST + 1];
            for (int i = 0; i <= MOST; i++)
                some[i] = some_slopes[i] = x[i];
            sets[set].kernels->gelu(count, some, count % 2 ? some_slopes : NULL);
            for (int i = 0; i <= MOST; i++)
                cr_expect(some[i] == (i < count ? y[i] : x[i]) &&
                              some_slopes[i] == (i < count && count % 2 ? slopes[i] : x[i]),
                          "%s: element %d of %d", sets[set].name, i, count);
        }
        double special[] = {0, -0.0, (double)NAN, (double)INFINITY, -60}, at[5];
        sets[set].kernels->gelu(5, special, at);
        cr_expect(special[0] == 0 && special[1] == 0 && at[0] == 0.5 && isnan(special[2]) &&
                  isnan(at[2]) && special[3] > 1e300 && special[4] <= 0 && special[4] > -1e-300);
    }
}

/* NaN is larger than nothing. */
Test(simd, largest_of_any_count)
{
    enum { MOST = 70 };
    real x[MOST];
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int count = 0; count <= MOST; count++)
            for (int at = 0; at < count; at++) {
                for (int i = 0; i < MOST; i++)
                    x[i] = i % 7 == 3 ? (real)NAN : i < count ? (real) - (i % 5) - 1 : 100;
                x[at] = 2;
                cr_expect(sets[set].kernels->largest(count, x, 1) == 2, "%s: %d of %d",
                          sets[set].name, at, count);
                cr_expect(sets[set].kernels->largest(count, x, 3) == 3, "%s: %d of %d",
                          sets[set].name, at, count);
                x[at] = (real)NAN;
                cr_expect(sets[set].kernels->largest(count, x, -INFINITY) < 0, "%s: %d of %d",
                          sets[set].name, at, count);
                const int64_t counts[2] = {at, count - at};
                real most[2] = {-INFINITY, -3};
                x[at] = 2;
                sets[set].kernels->largest_of_rows(2, counts, x, at, most);
                cr_expect(most[0] == sets[set].kernels->largest(at, x, -INFINITY) && most[1] == 2,
                          "%s: rows of %d and %d", sets[set].name, at, count - at);
            }
}

/* Every shape; zeros up to the width, and nothing beyond. */
Test(simd, transposes_are_exact)
{
    enum { MOST = 37, PAD = 3, STRIDE = MOST + 2 };
    static real from[MOST * STRIDE], to[MOST * (MOST + PAD) + 1];
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        from[i] = (real)(random_unit() - 0.5);
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int64_t rows = 0; rows <= MOST; rows++)
            for (int64_t columns = 0; columns <= MOST; columns++) {
                int64_t width = rows + rows % (PAD + 1), wrong = 0;
                for (size_t i = 0; i < sizeof to / sizeof *to; i++)
                    to[i] = 7;
                sets[set].kernels->transpose(rows, columns, from, STRIDE, to, width);
                for (int64_t c = 0; c < columns; c++)
                    for (int64_t r = 0; r < width; r++)
                        wrong += to[c * width + r] != (r < rows ? from[r * STRIDE + c] : 0);
                wrong += to[columns * width] != 7;
                cr_expect(wrong == 0, "%s: %d x %d: %d wrong", sets[set].name, (int)rows,
                          (int)columns, (int)wrong);
            }
}

/* The square of a distance as simd.h says. */
static real plain_square(int set, const landmark_set *l, const real *x, int64_t j)
{
    int64_t d = l->d, left = l->count % SIMD_COLUMNS, whole = l->count - left;
    bool parts = j >= whole && whole > 0 && left <= SIMD_FEW_COLUMNS && d % SIMD_COLUMNS == 0;
    real sums[SIMD_COLUMNS] = {0};
    for (int64_t c = 0; c < d; c++) {
        real difference = x[c] - l->rows[j * d + c], *sum = &sums[parts ? c % SIMD_COLUMNS : 0];
        *sum = add_product(set, *sum, difference, difference);
    }
    for (int half = SIMD_COLUMNS / 2; parts && half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sums[i] += sums[i + half];
    return sums[0];
}

/* Any number of tokens and landmarks, to the last bit; nothing is written beyond a set's padding,
 * and what is prefetched need not be there. */
Test(simd, gaussians_of_plain_sums)
{
    enum { ROWS = 21, MOST_D = 48, MOST = 83, SLACK = 5, WIDTH = MOST + SIMD_COLUMNS + SLACK };
    static const int64_t sizes[] = {0, 1, 11, 16, 33, 48};
    static real x[ROWS * (MOST_D + SLACK)], l[MOST * MOST_D], transposed[MOST_D * WIDTH];
    static real out[ROWS * WIDTH];
    const real *const ahead[2] = {x + 1, NULL};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (real)(random_unit() - 0.5);
    for (size_t i = 0; i < sizeof l / sizeof *l; i++)
        l[i] = (real)(random_unit() - 0.5);
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int64_t count = 1; count <= MOST; count++)
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
                int64_t d = sizes[k], p = (count + (int64_t)k) % (ROWS + 1), wrong = 0;
                landmark_set landmarks = {.count = count,
                                          .padded = whole_vectors(count),
                                          .d = d,
                                          .rows = l,
                                          .transposed = transposed};
                int64_t x_stride = d + SLACK, stride = landmarks.padded + (k % 2 ? SLACK : 0);
                for (int64_t c = 0; c < d; c++)
                    for (int64_t j = 0; j < landmarks.padded; j++)
                        transposed[c * landmarks.padded + j] = j < count ? l[j * d + c] : 0;
                memset(out, 0x7f, sizeof out);
                real poison = out[0];
                sets[set].kernels->gaussian(&landmarks, -1.5, p, x, x_stride, out, stride,
                                            k % 3 ? ahead : NULL);
                for (int64_t i = 0; i < ROWS; i++)
                    for (int64_t j = 0; j < stride; j++) {
                        real want = poison;
                        if (i < p && j < count) {
                            want = plain_square(set, &landmarks, x + i * x_stride, j);
                            sets[set].kernels->scaled_exponentials(1, -1.5, 0, &want);
                        } else if (i < p && j < landmarks.padded)
                            continue; /* may be anything */
                        wrong += !(out[i * stride + j] == want);
                    }
                cr_expect(wrong == 0, "%s: p=%d d=%d count=%d: %d wrong", sets[set].name, (int)p,
                          (int)d, (int)count, (int)wrong);
            }
}

/* ---- ReLU ---- */

/* To the last bit; nothing beyond the rows of d is written. */
Test(simd, relu_and_its_gradient)
{
    enum { ROWS = 3, LONGEST = 70, FACTORS = 4, STRIDE = LONGEST + 1 };
    enum { ROOM = ROWS * LONGEST * FACTORS + 1 };
    real x[ROWS * STRIDE], factors[ROWS * FACTORS], slopes[ROOM], start[ROOM], got[ROOM];
    for (int i = 0; i < ROOM; i++) {
        slopes[i] = (real)(random_unit() - 0.5);
        start[i] = (real)(random_unit() - 0.5);
    }
    for (int i = 0; i < ROWS * STRIDE; i++)
        x[i] = i % 9 == 4 ? (real)NAN : i % 9 == 5 ? 0 : (real)(random_unit() - 0.5);
    for (int f = 0; f < ROWS * FACTORS; f++)
        factors[f] = (real)random_unit();
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int d = 0; d <= LONGEST; d++)
            for (int count = 1; count <= FACTORS; count++) {
                int wrong = 0, rows = (d + count) % (ROWS + 1);
                memcpy(got, start, sizeof got);
                sets[set].kernels->relu(rows, count, factors, d, x, STRIDE, got);
                for (int i = 0; i < ROOM; i++) {
                    int c = d > 0 ? i % d : 0, f = d > 0 ? i / d : 0; /* of all rows' factors */
                    real of = x[f / count % ROWS * STRIDE + c];
                    wrong += !(got[i] ==
                               (i < rows * count * d ? factors[f] * (of > 0 ? of : 0) : start[i]));
                }
                for (int add = 0; add < 2; add++) {
                    memcpy(got, start, sizeof got);
                    sets[set].kernels->relu_backward(rows, count, factors, d, x, STRIDE, slopes,
                                                     add, got, STRIDE);
                    for (int i = 0; i < ROOM; i++) {
                        int row = i / STRIDE, c = i % STRIDE;
                        bool in = row < rows && c < d;
                        real sum = 0;
                        for (int f = row * count; in && f < (row + 1) * count; f++)
                            sum = add_product(set, sum, factors[f], slopes[f * d + c]);
                        real want = in ? (add ? start[i] : 0) + (x[i] > 0 ? sum : 0) : start[i];
                        wrong += !(got[i] == want);
                    }
                }
                cr_expect(wrong == 0, "%s: %d rows, %d factors, %d channels: %d wrong",
                          sets[set].name, rows, count, d, wrong);
            }
}

/* ---- Differences ---- */

enum { PAIR_ROWS = 11, PAIR_STRIDE = 90 };

/* As simd.h says, into pairs->grad_x and grad_y. */
static void plain_differences(int set, const weighted_pairs *q)
{
    for (int64_t c = 0; c < q->d; c++)
        for (int64_t i = 0, rows; i < q->p; i += rows) {
            real sums[4][2] = {{0}};
            rows = q->p - i < 4 ? 1 : 4;
            for (int64_t j = 0; j < q->count; j++) {
                real sum = 0;
                for (int64_t r = 0; r < rows; r++) {
                    real w = q->weights[(i + r) * q->weight_row + j];
                    real by = q->y[j * q->y_row + c] - q->x[(i + r) * q->x_row + c];
                    sums[r][j % 2] = add_product(set, sums[r][j % 2], w, by);
                    sum = add_product(set, sum, w, by);
                }
                q->grad_y[j * q->grad_y_row + c] -= sum;
            }
            for (int64_t r = 0; r < rows; r++)
                q->grad_x[(i + r) * q->grad_x_row + c] += sums[r][0] + sums[r][1];
        }
}

/* To the last bit; nothing beyond p rows, count rows and d columns is written. */
Test(simd, differences_are_plain_sums)
{
    enum { MOST = 50, X = PAIR_ROWS * PAIR_STRIDE, Y = MOST * PAIR_STRIDE };
    static real w[PAIR_ROWS * (MOST + 3)], x[X], y[Y], start[X + Y], got[X + Y], want[X + Y];
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = (real)(random_unit() - 0.5);
    for (int i = 0; i < X; i++)
        x[i] = (real)(random_unit() - 0.5);
    for (int i = 0; i < Y; i++)
        y[i] = (real)(random_unit() - 0.5);
    for (int i = 0; i < X + Y; i++)
        start[i] = (real)(random_unit() - 0.5);
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int p = 0; p <= PAIR_ROWS; p += p < 5 ? 1 : 3)
            for (int count = 0; count <= MOST; count += count < 5 ? 1 : 9)
                for (int d = 0; d < PAIR_STRIDE - 3; d += d < 40 ? 3 : 13) {
                    weighted_pairs q = {.p = p,
                                        .count = count,
                                        .d = d,
                                        .weights = w,
                                        .weight_row = MOST + 3,
                                        .x = x,
                                        .x_row = PAIR_STRIDE - 1,
                                        .y = y,
                                        .y_row = PAIR_STRIDE - 2,
                                        .grad_x = got,
                                        .grad_x_row = PAIR_STRIDE,
                                        .grad_y = got + X,
                                        .grad_y_row = PAIR_STRIDE - 3};
                    memcpy(got, start, sizeof got);
                    memcpy(want, start, sizeof want);
                    sets[set].kernels->add_differences(&q);
                    q.grad_x = want;
                    q.grad_y = want + X;
                    plain_differences(set, &q);
                    int wrong = 0;
                    for (int i = 0; i < X + Y; i++)
                        wrong += !(got[i] == want[i]);
                    cr_expect(wrong == 0, "%s: %d and %d rows, %d columns: %d wrong",
                              sets[set].name, p, count, d, wrong);
                }
}

/* ---- Products ---- */

enum { PRODUCT_ROOM = 270 * 540, PRODUCT_SLACK = 3 };

typedef struct {
    int64_t rows, columns, inner;
    bool flip_a, flip_b, add;
} product_case;

/* In order, at most 256 terms at a time, as simd.h says. */
static real plain_entry(int set, const product_case *p, const product_terms *t, int64_t i,
                        int64_t j, real before)
{
    real entry = p->add ? before : 0;
    for (int64_t first = 0; first < p->inner; first += 256) {
        real sum = 0;
        for (int64_t k = first; k < p->inner && k < first + 256; k++)
            sum = add_product(set, sum, t->a[i * t->a_row + k * t->a_step],
                              t->b[k * t->b_step + j * t->b_column]);
        entry = first > 0 || p->add ? entry + sum : sum;
    }
    return entry;
}

static void fill_random(int64_t count, real *x)
{
    cr_assert(count <= PRODUCT_ROOM);
    for (int64_t i = 0; i < count; i++)
        x[i] = (real)(random_unit() - 0.5);
}

/* Every entry to the last bit, and nothing outside of C is written. C's numbers are NaN where they
 * are not added to. */
static int64_t count_wrong(int set, const product_case *p)
{
    static real a[PRODUCT_ROOM], b[PRODUCT_ROOM], c[PRODUCT_ROOM], before[PRODUCT_ROOM];
    int64_t lda = (p->flip_a ? p->rows : p->inner) + PRODUCT_SLACK,
            ldb = (p->flip_b ? p->inner : p->columns) + PRODUCT_SLACK,
            ldc = p->columns + PRODUCT_SLACK, wrong = 0;
    int64_t c_count = (p->rows + 1) * ldc; /* each with one row more than is used */
    fill_random(((p->flip_a ? p->inner : p->rows) + 1) * lda, a);
    fill_random(((p->flip_b ? p->columns : p->inner) + 1) * ldb, b);
    fill_random(c_count, before);
    for (int64_t i = 0; i < c_count && !p->add; i++)
        before[i] = (real)NAN;
    memcpy(c, before, (size_t)c_count * sizeof *c);
    product_terms t =
        real_terms(p->flip_a ? CblasTrans : CblasNoTrans, p->flip_b ? CblasTrans : CblasNoTrans,
                   p->rows, p->columns, p->inner, a, lda, b, ldb, p->add, c, ldc);
    t.ahead[p->add] = before; /* in either place, and longer or shorter than what is prefetched */
    sets[set].kernels->product(&t);
    for (int64_t i = 0; i <= p->rows; i++)
        for (int64_t j = 0; j < ldc; j++) {
            bool in = i < p->rows && j < p->columns;
            real want = before[i * ldc + j], got = c[i * ldc + j];
            if (in)
                want = plain_entry(set, p, &t, i, j, want);
            wrong += memcmp(&got, &want, sizeof got) != 0;
        }
    return wrong;
}

static void check_product(int64_t rows, int64_t columns, int64_t inner)
{
    for (int set = 0, count = find_sets(); set < count; set++)
        for (int how = 0; how < 8; how++) {
            product_case p = {rows, columns, inner, how & 1, how & 2, how & 4};
            int64_t wrong = count_wrong(set, &p);
            cr_expect(wrong == 0, "%s: %d x %d x %d, case %d: %d wrong", sets[set].name, (int)rows,
                      (int)columns, (int)inner, how, (int)wrong);
        }
}

/* Whole tiles, parts of them, nothing; one row, one column, nothing to sum. */
Test(simd, products_are_plain_sums)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 8, 13, 15, 16, 17, 31, 33, 49, 64, 81};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    static const int64_t inner[] = {0, 1, 4, 7, 32};
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++)
            check_product(sizes[i], sizes[j], inner[(i + j) % 5]);
}

/* More terms than one block takes, and rows of B that lie far apart. */
Test(simd, products_of_many_terms)
{
    static const int64_t sizes[][3] = {{3, 50, 255},   {3, 50, 256},   {3, 50, 257}, {17, 20, 299},
                                       {290, 10, 260}, {290, 17, 260}, {256, 530, 9}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_product(sizes[i][0], sizes[i][1], sizes[i][2]);
}

/* ---- Triangular solves ---- */

enum { SOLVE_ROWS = 70, SOLVE_COLUMNS = 7 * SIMD_COLUMNS, SOLVE_STRIDE = SOLVE_COLUMNS + 3 };

static real triangle[SOLVE_ROWS * SOLVE_ROWS], sides[SOLVE_ROWS * SOLVE_STRIDE],
    solved[SOLVE_ROWS * SOLVE_STRIDE], defined[SOLVE_ROWS * SOLVE_STRIDE];

static void random_system(void)
{
    for (int i = 0; i < SOLVE_ROWS * SOLVE_ROWS; i++)
        triangle[i] = (real)(random_unit() - 0.5);
    for (int i = 0; i < SOLVE_ROWS; i++)
        triangle[i * SOLVE_ROWS + i] = (real)(3 + random_unit());
    for (int i = 0; i < SOLVE_ROWS * SOLVE_STRIDE; i++)
        sides[i] = (real)(random_unit() - 0.5);
}

/* L, or L^T with its rows and columns from the last to the first, which is lower too. */
static triangle_terms system_of(bool transposed, int known, int rows, int columns, real *y)
{
    int last = rows - 1;
    triangle_terms lower = {known, rows, triangle, SOLVE_ROWS, 1, columns, y, SOLVE_STRIDE};
    triangle_terms upper = {known,
                            rows,
                            triangle + last * (SOLVE_ROWS + 1),
                            -1,
                            -SOLVE_ROWS,
                            columns,
                            y + last * SOLVE_STRIDE,
                            -SOLVE_STRIDE};
    return transposed && rows > 0 ? upper : lower;
}

/* The definition as a set computes it. */
static void define_solve(int set, const triangle_terms *t)
{
    for (int64_t i = t->known; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++) {
            real left = t->y[i * t->y_row + j];
            for (int64_t k = 0; k < i; k++)
                left = add_product(set, left, -t->l[i * t->l_row + k * t->l_step],
                                   t->y[k * t->y_row + j]);
            t->y[i * t->y_row + j] = left / t->l[i * (t->l_row + t->l_step)];
        }
}

/* Elements that are not the definition's, written beyond included. */
static int wrong_solve(int set, bool transposed, int known, int rows, int columns)
{
    int wrong = 0;
    memcpy(solved, sides, sizeof sides);
    memcpy(defined, sides, sizeof sides);
    triangle_terms got = system_of(transposed, known, rows, columns, solved),
                   want = system_of(transposed, known, rows, columns, defined);
    sets[set].kernels->solve(&got);
    define_solve(set, &want);
    for (int i = 0; i < SOLVE_ROWS * SOLVE_STRIDE; i++)
        wrong += !(solved[i] == defined[i] || (isnan(solved[i]) && isnan(defined[i])));
    return wrong;
}

Test(simd, solves_are_in_order)
{
    static const int sizes[] = {0, 1, 2, 3, 5, 6, 7, 8, 9, 13, 16, 17, 49, SOLVE_ROWS};
    random_system();
    for (int set = 0, count = find_sets(); set < count; set++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int columns = 0; columns <= SOLVE_COLUMNS; columns += SIMD_COLUMNS)
                for (int known = 0; known <= sizes[s]; known += 1 + sizes[s] / 3)
                    for (int transposed = 0; transposed < 2; transposed++) {
                        int wrong = wrong_solve(set, transposed, known, sizes[s], columns);
                        cr_expect(wrong == 0, "%s: %d rows from %d, %d columns, %d: %d wrong",
                                  sets[set].name, sizes[s], known, columns, transposed, wrong);
                    }
}

/* |L y - b| <= r u |L| |y| by entry, for r rows (Higham, Accuracy and Stability, 2nd ed., Thm. 8.5,
 * of any order). */
Test(simd, solves_within_their_bound)
{
    enum { COLUMNS = 5 * SIMD_COLUMNS };
    random_system();
    for (int set = 0, count = find_sets(); set < count; set++)
        for (int transposed = 0; transposed < 2; transposed++) {
            memcpy(solved, sides, sizeof sides);
            memcpy(defined, sides, sizeof sides);
            triangle_terms t = system_of(transposed, 0, SOLVE_ROWS, COLUMNS, solved),
                           before = system_of(transposed, 0, SOLVE_ROWS, COLUMNS, defined);
            sets[set].kernels->solve(&t);
            double worst = 0;
            for (int i = 0; i < SOLVE_ROWS; i++)
                for (int j = 0; j < COLUMNS; j++) {
                    long double error = -(long double)before.y[i * t.y_row + j], size = 0;
                    for (int k = 0; k <= i; k++) {
                        long double term = (long double)t.l[i * t.l_row + k * t.l_step] *
                                           (long double)t.y[k * t.y_row + j];
                        error += term;
                        size += fabsl(term);
                    }
                    worst = fmax(worst, (double)(ldexpl(fabsl(error), DIGITS) /
                                                 (SOLVE_ROWS * (size + ldexpl(1, LEAST)))));
                }
            cr_expect(worst <= 1, "%s: %.3g of the bound", sets[set].name, worst);
            cr_expect(worst > 1e-3, "%s: %.3g: nothing was compared", sets[set].name, worst);
        }
}

/* A 0 or NaN on the diagonal spoils its row and what follows, as division does, and nothing
 * before. */
Test(simd, solves_without_a_diagonal)
{
    enum { ROWS = 21, AT = 10 };
    static const double entries[] = {0, NAN, INFINITY};
    random_system();
    for (int set = 0, count = find_sets(); set < count; set++)
        for (size_t e = 0; e < sizeof entries / sizeof *entries; e++) {
            triangle[AT * (SOLVE_ROWS + 1)] = (real)entries[e];
            for (int transposed = 0; transposed < 2; transposed++) {
                int wrong = wrong_solve(set, transposed, 0, ROWS, 3 * SIMD_COLUMNS);
                cr_expect(wrong == 0, "%s, %g: %d wrong", sets[set].name, entries[e], wrong);
            }
            wrong_solve(set, false, 0, ROWS, SIMD_COLUMNS);
            cr_expect(isfinite(solved[(AT - 1) * SOLVE_STRIDE]), "%g", entries[e]);
            cr_expect(isfinite(solved[AT * SOLVE_STRIDE]) == isinf(entries[e]), "%g", entries[e]);
        }
}
