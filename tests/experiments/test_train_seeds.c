/* SPDX-License-Identifier: BSD-3-Clause */
/* train_seeds.csv, from invented trainings. */
#include <criterion/criterion.h>
#include <math.h>

#include "train/seeds.h"

#define RESULT(op, variant, change, seed, ...)                                                     \
    {                                                                                              \
        op, variant, change, seed, __VA_ARGS__                                                     \
    }
#define DONE(op, variant, change, seed, accuracy)                                                  \
    RESULT(op, variant, change, seed, true, 2, 8, accuracy, false, 0, 0)
#define STOPPED(op, variant, change, seed)                                                         \
    RESULT(op, variant, change, seed, false, 2, 8, NAN, false, 0, 0)

static void expect_row(const table *t, int64_t row, const char *variant, const char *change,
                       int64_t seeds, int64_t finished, double accuracy)
{
    cr_expect(cell_is(t, row, "variant", variant) && cell_is(t, row, "change", change), "row %d",
              (int)row);
    cr_expect(cell_integer(t, row, "seeds") == seeds &&
                  cell_integer(t, row, "finished") == finished,
              "%s %s: %d of %d", variant, change, (int)cell_integer(t, row, "finished"),
              (int)cell_integer(t, row, "seeds"));
    cr_expect(finished == 0 ? cell_missing(t, row, "accuracy")
                            : fabs(cell_real(t, row, "accuracy") - accuracy) < 1e-12,
              "%s %s", variant, change);
    cr_expect_eq(cell_missing(t, row, "deviation"), finished < 2, "%s %s", variant, change);
}

/* t of 95 % is 12.706... with two seeds and 4.3026... with three. */
static void expect_compared(const table *t, int64_t row, const char *against, double difference,
                            double interval, const char *verdict)
{
    cr_expect(cell_is(t, row, "against", against), "row %d", (int)row);
    cr_expect(fabs(cell_real(t, row, "difference") - difference) < 1e-12, "row %d: %g", (int)row,
              cell_real(t, row, "difference"));
    cr_expect(fabs(cell_real(t, row, "interval") - interval) < 1e-9, "row %d: %.12g", (int)row,
              cell_real(t, row, "interval"));
    cr_expect(cell_is(t, row, "verdict", verdict), "row %d: %s", (int)row,
              cell_text(t, row, "verdict"));
}

static void expect_alone(const table *t, int64_t row)
{
    cr_expect(cell_missing(t, row, "difference") && cell_missing(t, row, "interval") &&
                  cell_missing(t, row, "verdict"),
              "row %d", (int)row);
}

Test(train_seeds, networks_are_compared_seed_by_seed)
{
    const double two = 12.706204736432095, three = 0.95 * sqrt(2 / (1 - 0.95 * 0.95));
    static const seed_result results[] = {
        DONE("soft", "code", "pool", 1, 0.5),       DONE("soft", "code", "pool", 2, 0.75),
        DONE("soft", "exact", "pool", 1, 0.25),     DONE("soft", "exact", "pool", 2, 0.25),
        DONE("soft", "code", "none", 2, 0.8125),    DONE("soft", "code", "none", 1, 0.625),
        DONE("soft", "exact", "first", 1, 0.5),     DONE("soft", "exact", "first", 2, 0.5625),
        DONE("sima", "paper", "none", 1, 0.5),      DONE("sima", "paper", "none", 2, 0.5),
        DONE("sima", "paper", "none", 3, 0.5),      DONE("sima", "paper", "l2", 1, 0.25),
        DONE("sima", "paper", "l2", 2, 0.2421875),  DONE("sima", "paper", "l2", 3, 0.2578125),
        STOPPED("sima", "paper", "no-norm", 1),     DONE("sima", "paper", "no-norm", 2, 0.5),
        DONE("sima", "paper", "no-norm", 3, 0.5),   STOPPED("sima", "paper", "relu", 1),
        DONE("sima", "paper", "one-head", 1, 0.75), DONE("elu", "stable", "none", 1, 0.75),
    };
    table *t = table_create(seeds_columns, SEEDS_COLUMNS);
    seeds_compare(sizeof results / sizeof *results, results, t);
    cr_assert_eq(table_rows(t), 10);
    expect_row(t, 0, "code", "pool", 2, 2, 0.625); /* against none, although that comes later */
    expect_compared(t, 0, "none", -0.09375, two * 0.03125, "no difference");
    expect_row(t, 1, "exact", "pool", 2, 2, 0.25); /* the first of its variant, which has no none */
    cr_expect(cell_missing(t, 1, "against"));
    expect_alone(t, 1);
    expect_row(t, 2, "code", "none", 2, 2, 0.71875);
    cr_expect(fabs(cell_real(t, 2, "deviation") - 0.1875 / sqrt(2)) < 1e-12);
    expect_row(t, 3, "exact", "first", 2, 2, 0.53125);
    expect_compared(t, 3, "pool", 0.28125, two * 0.03125, "no difference");
    expect_row(t, 4, "paper", "none", 3, 3, 0.5);
    expect_alone(t, 4);
    expect_row(t, 5, "paper", "l2", 3, 3, 0.25);
    expect_compared(t, 5, "none", -0.25, three * 0.0078125 / sqrt(3), "lower");
    expect_row(t, 6, "paper", "no-norm", 3, 2, 0.5);
    expect_alone(t, 6);
    expect_row(t, 7, "paper", "relu", 1, 0, 0);
    expect_row(t, 8, "paper", "one-head", 1, 1, 0.75);
    cr_expect(cell_is(t, 8, "against", "none"));
    expect_alone(t, 8);
    expect_row(t, 9, "stable", "none", 1, 1, 0.75);
    for (int64_t row = 0; row < table_rows(t); row++)
        cr_expect(cell_integer(t, row, "epochs") == 2 && cell_integer(t, row, "steps") == 8);
    table_free(t);
}

/* Networks with and without a change, each seed's accuracy without it and what it differs by. */
typedef struct {
    int seeds;
    double before[3], difference[3];
    bool paired;
    double right[3], wrong[3];
    const char *verdict; /* "": none */
} comparison;

static void expect_verdict(const comparison *c, int number)
{
    seed_result results[6];
    for (int i = 0; i < c->seeds; i++) {
        seed_result without = DONE("sima", "paper", "none", i + 1, c->before[i]), with = without;
        without.paired = with.paired = c->paired;
        with.change = "l2";
        with.accuracy += c->difference[i];
        with.became_right = c->right[i];
        with.became_wrong = c->wrong[i];
        results[2 * i] = without;
        results[2 * i + 1] = with;
    }
    table *t = table_create(seeds_columns, SEEDS_COLUMNS);
    seeds_compare(2 * c->seeds, results, t);
    cr_assert_eq(table_rows(t), 2);
    cr_expect(!cell_missing(t, 1, "difference") && !cell_missing(t, 1, "interval"));
    cr_expect_eq(cell_missing(t, 1, "verdict"), *c->verdict == '\0', "%d", number);
    cr_expect(cell_is(t, 1, "verdict", c->verdict), "%d: %s, expected %s", number,
              cell_text(t, 1, "verdict"), c->verdict);
    table_free(t);
}

/* Where nothing tells the seeds' error there is no verdict, also where rounding makes a difference
 * of 1/10000 in all seeds another number in each. */
Test(train_seeds, equal_differences_give_no_verdict)
{
    static const comparison all[] = {
        {.seeds = 2, {0.5, 0.75}, {-0.125, -0.125}, .verdict = ""},
        {.seeds = 3, {0.7, 0.3, 0.1}, {0.0001, 0.0001, 0.0001}, .verdict = ""},
        {.seeds = 3, {0.7, 0.3, 0.1}, {0, 0, 0}, .verdict = "no difference"},
        {.seeds = 3, {0.7, 0.3, 0.1}, {0.1, 0.1001, 0.1}, .verdict = "higher"},
    };
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        expect_verdict(&all[i], i);
}

/* Of 64 pictures. Of 5 pictures that changed, all in one direction, p is 1/16, of 6 it is 1/32; of
 * 12 and 4 it is 0.077, of 13 and 4 it is 0.049. */
Test(train_seeds, pairs_of_pictures_count)
{
    const double one = 1 / 64.0;
    const comparison all[] = {
        {2, {0.5, 0.5}, {-one, -one}, true, {0, 0}, {1, 1}, "no difference"},
        {3, {0.5, 0.5, 0.5}, {-2 * one, -2 * one, -2 * one}, true, {0}, {2, 2, 2}, "lower"},
        {3, {0.5, 0.5, 0.5}, {2 * one, 2 * one, one}, true, {2, 2, 1}, {0}, "no difference"},
        {3,
         {0.5, 0.5, 0.5},
         {2 * one, 2 * one, 2 * one},
         true,
         {3, 2, 2},
         {1, 0, 0},
         "no difference"},
        {3, {0.5, 0.5, 0.5}, {3 * one, 3 * one, 3 * one}, true, {5, 4, 4}, {2, 1, 1}, "higher"},
        {3,
         {0.5, 0.5, 0.5},
         {3 * one, 3 * one, 2 * one},
         true,
         {4, 4, 4},
         {1, 1, 2},
         "no difference"},
        /* means over draws: 12 2/3 and 4 are 13 and 4 */
        {3,
         {0.5, 0.5, 0.5},
         {3 * one, 3 * one, 8 / 3.0 * one},
         true,
         {13 / 3.0, 13 / 3.0, 4},
         {4 / 3.0, 4 / 3.0, 4 / 3.0},
         "higher"},
        /* 0 is within Student's interval, whatever the pictures say */
        {3, {0.5, 0.5, 0.5}, {0, 0, 20 * one}, true, {0, 0, 20}, {0}, "no difference"},
        /* the change of pictures is clear in one seed, the mean outside the interval */
        {2, {0.5, 0.5}, {-8 * one, -8 * one}, true, {0}, {8, 8}, "lower"},
    };
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        expect_verdict(&all[i], i);
}
