/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of combinations that the tests of many cases run (tests/common/pairs.h). */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "pairs.h"

static bool no_equal_neighbours(const int *v)
{
    return v[0] != v[1];
}

/* 2 of the first factor goes with one value of the second only. */
static bool lonely(const int *v)
{
    return v[0] != 2 || v[1] == 4;
}

static bool nothing(const int *v)
{
    (void)v;
    return false;
}

typedef struct {
    int factors, sizes[PAIRS_FACTORS];
    bool (*allowed)(const int *values);
    int most; /* combinations: a bound by hand, or what a greedy choice may need */
} pairs_row;

/* The least number is the product of the two largest sizes. */
static const pairs_row rows[] = {
    {1, {7}, NULL, 7},
    {2, {3, 4}, NULL, 12},
    {3, {2, 2, 2}, NULL, 6},
    {3, {10, 14, 2}, NULL, 140},
    {4, {10, 14, 2, 10}, NULL, 180},
    {5, {2, 3, 5, 7, 4}, NULL, 50},
    {3, {5, 5, 3}, no_equal_neighbours, 25},
    {3, {4, 9, 2}, lonely, 36},
    {2, {1, 1}, NULL, 1},
    {2, {0, 3}, NULL, 0},
    {2, {3, 3}, nothing, 0},
};

/* Whether values a of factor f and b of factor g occur together in one of the combinations. */
static bool occurs(const pairs *p, int f, int a, int g, int b)
{
    for (int i = 0; i < p->count; i++)
        if (p->combination[i][f] == a && p->combination[i][g] == b)
            return true;
    return false;
}

/* A row's combinations in so many shares: each value is in every share, each pair in one. */
static void check_shares(size_t r, int shares)
{
    enum { MOST_SHARES = 3 };
    const pairs_row *row = &rows[r];
    pairs few[MOST_SHARES];
    setenv("ATTNUM_TEST_CASES", "all", 1);
    pairs all = pairs_make(row->factors, row->sizes, row->allowed);
    unsetenv("ATTNUM_TEST_CASES");
    for (int s = 0; s < shares; s++) {
        pairs_share(s, shares);
        few[s] = pairs_make(row->factors, row->sizes, row->allowed);
        cr_expect_leq(few[s].count, row->most, "row %zu: %d combinations", r, few[s].count);
        for (int i = 0; i < few[s].count; i++)
            cr_expect(!row->allowed || row->allowed(few[s].combination[i]), "row %zu", r);
    }
    int missing = 0;
    for (int i = 0; i < all.count; i++)
        for (int f = 0; f < row->factors; f++)
            for (int g = 0; g < row->factors; g++) {
                int a = all.combination[i][f], b = all.combination[i][g], in = 0;
                for (int s = 0; s < shares; s++)
                    in += occurs(&few[s], f, a, g, b);
                missing += f == g ? in < shares : in == 0;
            }
    cr_expect_eq(missing, 0, "row %zu, %d shares: %d pairs are missing", r, shares, missing);
    for (int s = 0; s < shares; s++)
        pairs_free(&few[s]);
    pairs_free(&all);
}

Test(pairs, every_pair_occurs)
{
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int shares = 1; shares <= 3; shares += 2)
            check_shares(r, shares);
}

/* All of them, once each, in the order of nested loops. */
Test(pairs, all_is_the_product)
{
    static const int sizes[] = {2, 3, 4};
    setenv("ATTNUM_TEST_CASES", "all", 1);
    pairs all = pairs_make(3, sizes, NULL);
    cr_assert_eq(all.count, 24);
    for (int i = 0; i < 24; i++) {
        const int *v = all.combination[i];
        cr_expect(v[0] == i / 12 && v[1] == i / 4 % 3 && v[2] == i % 4, "combination %d", i);
    }
    pairs_free(&all);
}
