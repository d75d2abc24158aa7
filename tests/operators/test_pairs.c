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

Test(pairs, every_pair_occurs)
{
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const pairs_row *row = &rows[r];
        setenv("ATTNUM_TEST_CASES", "all", 1);
        pairs all = pairs_make(row->factors, row->sizes, row->allowed);
        unsetenv("ATTNUM_TEST_CASES");
        pairs few = pairs_make(row->factors, row->sizes, row->allowed);
        int missing = 0;
        for (int i = 0; i < all.count; i++)
            for (int f = 0; f < row->factors; f++)
                for (int g = 0; g < row->factors; g++)
                    missing += !occurs(&few, f, all.combination[i][f], g, all.combination[i][g]);
        cr_expect_eq(missing, 0, "row %zu: %d pairs are missing", r, missing);
        cr_expect_leq(few.count, row->most, "row %zu: %d combinations", r, few.count);
        for (int i = 0; i < few.count; i++)
            cr_expect(!row->allowed || row->allowed(few.combination[i]), "row %zu", r);
        pairs_free(&few);
        pairs_free(&all);
    }
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
