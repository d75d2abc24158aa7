/* SPDX-License-Identifier: BSD-3-Clause */
/* Pivoted Cholesky, the inverse of its factor and their loops, in every instruction set that this
 * machine has. Compiled once per real, as they are. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "inverse/direct/cpu_pivoted.h"
#include "simd_sets.h"

enum { MOST = 131 };

#ifdef REAL_F32
static const double roundoff = 0x1p-24, tiny = 0x1p-126;
#else
static const double roundoff = 0x1p-53, tiny = 0x1p-1022;
#endif

typedef struct {
    int64_t rank;
    int pivots[MOST];
    real factor[MOST * MOST + 1]; /* the last stays as it is */
} answer;

/* The definition in the arithmetic of a set, entry by entry and without moving any. Ties go to the
 * earliest place, as interchanges leave the places. */
static void define(int set, int64_t m, const real *a, real cut, answer *want)
{
    static real columns[MOST][MOST]; /* columns[k][i]: row i of A, pivot k */
    memset(want->factor, 0, sizeof want->factor);
    for (int64_t i = 0; i < m; i++)
        want->pivots[i] = (int)i;
    for (want->rank = 0; want->rank < m; want->rank++) {
        int64_t k = want->rank, best = -1;
        real largest = k > 0 ? cut : 0;
        for (int64_t place = k; place < m; place++) {
            int64_t i = want->pivots[place];
            real left = a[i * m + i];
            for (int64_t l = 0; l < k; l++)
                left = add_product(set, left, -columns[l][i], columns[l][i]);
            if (left > largest) {
                largest = left;
                best = place;
            }
        }
        if (best < 0)
            break;
        int pivot = want->pivots[best];
        want->pivots[best] = want->pivots[k];
        want->pivots[k] = pivot;
        volatile real root = real_sqrt(largest);
        for (int64_t i = 0; i < m; i++) {
            real entry = a[pivot * m + i];
            for (int64_t l = 0; l < k; l++)
                entry = add_product(set, entry, -columns[l][pivot], columns[l][i]);
            entry /= root;
            columns[k][i] = i == pivot ? root : entry;
        }
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k <= i && k < want->rank; k++)
            want->factor[i * m + k] = columns[k][want->pivots[i]];
}

/* Bits, so that NaN is NaN and -0 is not 0. */
static int64_t differences(int64_t m, const answer *x, const answer *y)
{
    int64_t wrong = x->rank != y->rank;
    for (int64_t i = 0; i < m; i++)
        wrong += x->pivots[i] != y->pivots[i];
    for (int64_t i = 0; i < m * m; i++)
        wrong += !(x->factor[i] == y->factor[i] || (isnan(x->factor[i]) && isnan(y->factor[i])));
    return wrong;
}

/* Every instruction set computes the result of the definition, and writes nothing else. */
static void check(const char *what, int64_t m, const real *a, real cut, answer *want)
{
    static answer got;
    int64_t count = R(pivoted_factor_work)(m), wrong = 0;
    real *work = malloc((size_t)(count + 1) * sizeof *work);
    cr_assert(work);
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++) {
        define(set, m, a, cut, want);
        for (int64_t i = 0; i < count; i++)
            work[i] = (real)NAN; /* what nobody wrote */
        work[count] = 3;
        memset(&got, 0x7f, sizeof got);
        real poison = got.factor[m * m];
        got.rank = R(pivoted_factor)(sets[set].kernels, m, a, cut, got.pivots, got.factor, work);
        wrong = differences(m, &got, want);
        cr_expect(wrong == 0, "%s, m=%d, %s: rank %d for %d, %d wrong", what, (int)m,
                  sets[set].name, (int)got.rank, (int)want->rank, (int)wrong);
        cr_expect(work[count] == 3 && got.factor[m * m] == poison, "%s, m=%d, %s: written beyond",
                  what, (int)m, sets[set].name);
    }
    free(work);
}

/* exp(-s |l_i - l_j|^2) of m landmarks in 3 dimensions; entries are exactly symmetric. */
static void gaussian(int64_t m, double s, const double *l, real *a)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) {
            double square = 0;
            for (int c = 0; c < 3; c++)
                square += (l[3 * i + c] - l[3 * j + c]) * (l[3 * i + c] - l[3 * j + c]);
            a[i * m + j] = (real)exp(-s * square);
        }
}

static void random_landmarks(int64_t m, double *l)
{
    for (int64_t i = 0; i < 3 * m; i++)
        l[i] = random_unit() - 0.5;
}

static real cut_of(int64_t m)
{
    return (real)((double)m * roundoff);
}

/* Sizes around whole vectors, from full rank to nearly none. */
Test(pivoted, factors_are_the_definitions)
{
    static const int sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 49, 64, 65, 128, MOST};
    static real a[MOST * MOST];
    static double l[3 * MOST];
    static answer want;
    int lost = 0, kept = 0;
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
        for (int power = -4; power <= 10; power += 7) {
            int64_t m = sizes[size];
            random_landmarks(m, l);
            gaussian(m, ldexp(1, power), l, a);
            check("gaussian", m, a, cut_of(m), &want);
            lost += want.rank < m;
            kept += want.rank == m;
            check("gaussian, no cut", m, a, 0, &want); /* what rounding leaves are pivots too */
        }
    cr_expect(lost >= 4 && kept >= 10, "%d lost rank, %d kept it", lost, kept);
}

/* Exact ties: all of a kernel's diagonal is 1 at first, and duplicates stay tied to the end. */
Test(pivoted, duplicates_add_no_rank)
{
    enum { M = 49, DISTINCT = 11 };
    static real a[M * M];
    static double l[3 * M];
    static answer want;
    random_landmarks(M, l);
    for (int i = DISTINCT; i < M; i++)
        memcpy(l + 3 * i, l + (ptrdiff_t)3 * (i * 7 % DISTINCT), 3 * sizeof *l);
    gaussian(M, 40, l, a);
    check("duplicates", M, a, cut_of(M), &want);
    cr_expect(want.rank == DISTINCT, "rank %d, expected %d", (int)want.rank, DISTINCT);
    for (int i = 0; i < M * M; i++)
        a[i] = i % (M + 1) == 0;
    check("identity", M, a, cut_of(M), &want);
    for (int i = 0; i < M; i++)
        cr_expect(want.pivots[i] == i && want.factor[i * M + i] == 1, "identity, pivot %d", i);
    for (int i = 0; i < M * M; i++)
        a[i] = 1;
    check("ones", M, a, cut_of(M), &want);
    cr_expect(want.rank == 1, "ones: rank %d", (int)want.rank);
}

/* B B^T of integers is exact, so is its rank. */
Test(pivoted, rank_deficient)
{
    enum { M = 40 };
    static real a[M * M], b[M * M];
    static answer want;
    for (int rank = 0; rank < M; rank += 3) {
        for (int i = 0; i < M * M; i++)
            b[i] = (real)floor(8 * random_unit()) - 4;
        for (int i = 0; i < M; i++)
            for (int j = 0; j < M; j++) {
                a[i * M + j] = 0;
                for (int k = 0; k < rank; k++)
                    a[i * M + j] += b[i * M + k] * b[j * M + k];
            }
        real largest = 0;
        for (int i = 0; i < M; i++)
            largest = a[i * M + i] > largest ? a[i * M + i] : largest;
        check("rank", M, a, cut_of(M) * largest, &want);
        cr_expect(want.rank == rank, "rank %d, expected %d", (int)want.rank, rank);
    }
}

/* Nothing above 0 has no factor; a cut as large as the largest leaves the first pivot alone; a cut
 * of 0, and a pivot equal to the cut: only pivots above it count. */
Test(pivoted, zero_and_cuts)
{
    enum { M = 20 };
    static real a[M * M];
    static answer want;
    check("zero", M, a, 0, &want);
    cr_expect(want.rank == 0, "zero: rank %d", (int)want.rank);
    for (int i = 0; i < M; i++)
        a[i * M + i] = (real)-1;
    check("negative", M, a, 0, &want);
    cr_expect(want.rank == 0, "negative: rank %d", (int)want.rank);
    for (int i = 0; i < M; i++)
        a[i * M + i] = (real)(M - i);
    static const struct {
        int cut, rank;
    } cuts[] = {{0, M}, {1, M - 1}, {5, M - 5}, {M, 1}, {2 * M, 1}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        check("diagonal", M, a, (real)cuts[i].cut, &want);
        cr_expect(want.rank == cuts[i].rank, "cut %d: rank %d", cuts[i].cut, (int)want.rank);
    }
    for (int i = M / 2; i < M; i++) /* below what rounding leaves of the pivots before */
        a[i * M + i] = (real)ldexp(M - i, -90);
    check("tiny", M, a, 0, &want);
    cr_expect(want.rank == M, "tiny: rank %d", (int)want.rank);
}

/* Entries that are not finite: NaN is not a pivot; infinity on the diagonal is one, and everything
 * else is 0 relative to it. */
Test(pivoted, nan_and_infinity)
{
    enum { M = 37 };
    static real a[M * M];
    static double l[3 * M];
    static answer want;
    static const struct {
        int row, column;
        double value;
        bool whole;
    } spots[] = {{3, 3, NAN, false},  {0, 20, NAN, false},    {36, 36, NAN, false},
                 {5, 9, 1e30, false}, {7, 7, INFINITY, true}, {0, 0, -INFINITY, false}};
    for (size_t i = 0; i < sizeof spots / sizeof *spots; i++) {
        random_landmarks(M, l);
        gaussian(M, 20, l, a);
        a[spots[i].row * M + spots[i].column] = a[spots[i].column * M + spots[i].row] =
            (real)spots[i].value;
        check("special", M, a, cut_of(M), &want);
        cr_expect((want.rank == M) == spots[i].whole, "spot %d: rank %d", (int)i, (int)want.rank);
    }
    for (int i = 0; i < M * M; i++)
        a[i] = (real)NAN;
    check("NaN", M, a, 0, &want);
    cr_expect(want.rank == 0, "NaN: rank %d", (int)want.rank);
}

/* The same pivots and rank as LAPACK where its other order of summation decides nothing, and a
 * factor that is as near: in what pivots explain, |L L^T - A| <= (m + 1) u |L| |L^T| (Higham,
 * Thm. 10.3), by entry. */
Test(pivoted, agrees_with_lapack)
{
    static real a[MOST * MOST], theirs[MOST * MOST], work[2 * MOST];
    static double l[3 * MOST];
    static answer want;
    for (int64_t m = 1; m <= MOST; m += 13) {
        int pivots[MOST], rank = 0;
        random_landmarks(m, l);
        gaussian(m, 300, l, a);
        for (int64_t i = 0; i < m; i++)
            a[i * m + i] += (real)(0.01 * (double)(i * 29 % m)); /* no ties */
        memcpy(theirs, a, sizeof a);
        check("lapack", m, a, cut_of(m), &want);
        lapack_pstrf(LAPACK_COL_MAJOR, 'U', (lapack_int)m, theirs, (lapack_int)m, pivots, &rank,
                     cut_of(m), work);
        cr_expect(rank == want.rank, "m=%d: rank %d, LAPACK %d", (int)m, (int)want.rank, rank);
        double worst = 0;
        for (int64_t i = 0; i < m; i++) {
            cr_expect(pivots[i] == want.pivots[i] + 1, "m=%d: pivot %d", (int)m, (int)i);
            for (int64_t j = 0; j < want.rank; j++) {
                double sum = 0, size = 0;
                for (int64_t k = 0; k < want.rank; k++) {
                    double product = (double)want.factor[i * m + k] * want.factor[j * m + k];
                    sum += product;
                    size += fabs(product);
                }
                double error = fabs(sum - (double)a[want.pivots[i] * m + want.pivots[j]]);
                worst = fmax(worst, error / (((double)m + 1) * roundoff * (size + tiny)));
            }
        }
        cr_expect(worst <= 1, "m=%d: %.3g of the bound", (int)m, worst);
    }
}

/* The lower triangle of (L L^T)^-1 as sums in order, as a set computes them. */
static void define_inverse(int set, int64_t r, int64_t stride, const real *l, real *x)
{
    static real w[MOST][MOST];
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j <= i; j++) {
            real entry = i == j;
            for (int64_t k = j; k < i; k++)
                entry = add_product(set, entry, -l[i * stride + k], w[k][j]);
            w[i][j] = entry / l[i * stride + i];
        }
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j <= i; j++) {
            real sum = 0;
            for (int64_t k = i; k < r; k++)
                sum = add_product(set, sum, w[k][i], w[k][j]);
            x[i * stride + j] = sum;
        }
}

/* A condition number of L of at most some 10 leaves X L L^T within so many (r + 1) u of I; beyond
 * r rows and columns nothing is written. */
Test(pivoted, inverses_of_factors)
{
    static const int sizes[] = {0, 1, 2, 15, 16, 17, 33, 49, 64, 100};
    enum { SLACK = 3, LARGEST = 100 + SLACK };
    static real l[LARGEST * LARGEST], got[LARGEST * LARGEST], want[LARGEST * LARGEST];
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++) {
        int64_t r = sizes[size], stride = r + SLACK, count = R(pivoted_factor_work)(r);
        real *work = malloc((size_t)(count + 1) * sizeof *work);
        cr_assert(work);
        for (int64_t i = 0; i < r * stride; i++)
            l[i] = (real)(i / stride == i % stride ? 1 + random_unit()
                                                   : (random_unit() - 0.5) / (double)r);
        for (int set = 0, sets_there = find_sets(); set < sets_there; set++) {
            memcpy(want, l, sizeof l);
            define_inverse(set, r, stride, l, want);
            for (int64_t i = 0; i <= count; i++)
                work[i] = i < count ? (real)NAN : 3;
            memcpy(got, l, sizeof l);
            R(factor_inverse)(sets[set].kernels, r, got, stride, 1, stride, got, work);
            int64_t wrong = 0;
            for (int64_t i = 0; i < LARGEST * LARGEST; i++)
                wrong += (i / stride >= r || i % stride <= i / stride || i % stride >= r) &&
                         !(got[i] == want[i]);
            cr_expect(wrong == 0 && work[count] == 3, "%s: r=%d, %d wrong", sets[set].name, (int)r,
                      (int)wrong);
        }
        free(work);
        double worst = 0;
        for (int64_t i = 0; i < r; i++)
            for (int64_t j = 0; j < r; j++) {
                double sum = -(i == j);
                for (int64_t k = 0; k < r; k++) {
                    double x = (double)(k <= i ? want[i * stride + k] : want[k * stride + i]),
                           a = 0;
                    for (int64_t c = 0; c <= k && c <= j; c++)
                        a += (double)l[k * stride + c] * (double)l[j * stride + c];
                    sum += x * a;
                }
                worst = fmax(worst, fabs(sum));
            }
        cr_expect(worst <= 10 * ((double)r + 1) * roundoff, "r=%d: %.3g u", (int)r,
                  worst / roundoff);
    }
}

/* Without pivots: L as the definition has it, by entry, with its pivots in their order; false where
 * one is not above 0. */
static bool define_cholesky(int set, int64_t m, const real *a, real *l)
{
    for (int64_t k = 0; k < m; k++)
        for (int64_t i = k; i < m; i++) {
            real entry = a[k * m + i];
            for (int64_t j = 0; j < k; j++)
                entry = add_product(set, entry, -l[k * m + j], l[i * m + j]);
            if (i == k && !(entry > 0))
                return false;
            volatile real root = real_sqrt(entry);
            l[i * m + k] = i == k ? root : entry / l[k * m + k];
        }
    return true;
}

/* Every set computes the result of the definition; returns whether there is a factor. */
static bool check_cholesky(const char *what, int64_t m, const real *a)
{
    static real want[MOST * MOST];
    int64_t stride = R(cholesky_stride)(m), count = m * stride;
    real *rows = malloc((size_t)(count + 1) * sizeof *rows);
    bool exists = false;
    cr_assert(rows);
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++) {
        exists = define_cholesky(set, m, a, want);
        for (int64_t i = 0; i <= count; i++)
            rows[i] = i == count ? 3 : i % stride < whole_vectors(m) ? 0 : (real)NAN;
        for (int64_t i = 0; i < m; i++)
            memcpy(rows + i * stride, a + i * m, (size_t)m * sizeof *rows);
        bool got = R(cholesky_factor)(sets[set].kernels, m, rows);
        int64_t wrong = 0;
        for (int64_t i = 0; i < m && exists; i++)
            for (int64_t k = 0; k <= i; k++)
                wrong += !(rows[k * stride + i] == want[i * m + k]);
        cr_expect(got == exists && wrong == 0 && rows[count] == 3,
                  "%s, m=%d, %s: %d for %d, %d wrong", what, (int)m, sets[set].name, got, exists,
                  (int)wrong);
    }
    free(rows);
    return exists;
}

Test(pivoted, factors_without_pivots)
{
    static const int sizes[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 49, 64, 65, 128, MOST};
    static real a[MOST * MOST];
    static double l[3 * MOST];
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++) {
        int64_t m = sizes[size];
        random_landmarks(m, l);
        gaussian(m, 300, l, a);
        for (int64_t i = 0; i < m; i++)
            a[i * m + i] += 1;
        cr_expect(check_cholesky("regular", m, a), "m=%d: no factor", (int)m);
        static const double pivots[] = {0, -1, NAN, -INFINITY};
        for (size_t i = 0; i < sizeof pivots / sizeof *pivots; i++)
            for (int at = 0; at < 3; at++) { /* the first, one inside, the last */
                int64_t k = at * (m - 1) / 2;
                real kept = a[k * m + k];
                a[k * m + k] = (real)pivots[i];
                cr_expect(!check_cholesky("bad pivot", m, a), "m=%d: %g at %d has a factor", (int)m,
                          pivots[i], (int)k);
                a[k * m + k] = kept;
            }
    }
}

/* 0 after the others' products: integers are exact. */
Test(pivoted, a_pivot_that_vanishes)
{
    static real a[MOST * MOST];
    for (int64_t m = 2; m <= MOST; m += 43) {
        for (int64_t i = 0; i < m; i++) /* L L^T with l_ik = 1 */
            for (int64_t j = 0; j < m; j++)
                a[i * m + j] = (real)((i < j ? i : j) + 1);
        cr_expect(check_cholesky("whole", m, a), "m=%d", (int)m);
        a[m * m - 1] -= 1;
        cr_expect(!check_cholesky("vanishes", m, a), "m=%d", (int)m);
    }
}

/* The loops alone: any count and stride, and neighbouring elements are not changed. */
Test(pivoted, loops_are_in_order)
{
    enum { ROWS = 9, COLUMNS = 7 * SIMD_COLUMNS, STRIDE = COLUMNS + 5 };
    static real rows[ROWS * STRIDE], factors[ROWS * STRIDE], row[STRIDE], rest[STRIDE];
    for (int i = 0; i < ROWS * STRIDE; i++) {
        rows[i] = (real)(random_unit() - 0.5);
        factors[i] = (real)(random_unit() - 0.5);
    }
    for (int set = 0, sets_there = find_sets(); set < sets_there; set++)
        for (int columns = 0; columns <= COLUMNS; columns += SIMD_COLUMNS)
            for (int count = 0; count <= ROWS; count++) {
                int wrong = 0;
                for (int j = 0; j < STRIDE; j++)
                    row[j] = rest[j] = (real)(0.125 * j - 3);
                sets[set].kernels->eliminate(count, factors + 2, STRIDE - 3, rows, STRIDE, columns,
                                             row);
                sets[set].kernels->scale_and_downdate(columns, 3, row, rest);
                for (int j = 0; j < STRIDE; j++) {
                    real left = (real)(0.125 * j - 3), diagonal = left;
                    for (int k = 0; k < count && j < columns; k++)
                        left = add_product(set, left, -factors[2 + k * (STRIDE - 3)],
                                           rows[k * STRIDE + j]);
                    if (j < columns) {
                        left /= 3;
                        diagonal = add_product(set, diagonal, -left, left);
                    }
                    wrong += !(row[j] == left && rest[j] == diagonal);
                }
                cr_expect(wrong == 0, "%s: %d rows, %d columns: %d wrong", sets[set].name, count,
                          columns, wrong);
            }
}
