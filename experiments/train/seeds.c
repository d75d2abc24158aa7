/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/seeds.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

#include "common/report.h"

/* Mean and standard deviation of `count` numbers, NaN with fewer than two. */
typedef struct {
    int64_t count;
    double mean, deviation;
} spread;

/* Half of the interval that holds the mean of normal numbers in 95 % of cases (Student 1908). */
static double interval_of(const spread *s)
{
    return gsl_cdf_tdist_Pinv(0.975, (double)(s->count - 1)) * s->deviation /
           sqrt((double)s->count);
}

static const char *const verdicts[] = {"lower", "no difference", "higher"};

static const char *verdict_of(const spread *s)
{
    double interval = interval_of(s);
    return verdicts[1 + (s->mean > interval) - (s->mean < -interval)];
}

#define SEEDS_ROW(X)                                                                               \
    X(TEXT, operator, "", "the attention of every block", cell_text(last, first, "operator"))      \
    X(TEXT, variant, "", "of the operator", cell_text(last, first, "variant"))                     \
    X(TEXT, change, "", "with which the network was trained; none: nothing",                       \
      cell_text(last, first, "change"))                                                            \
    X(INTEGER, epochs, "", "of training", cell_integer(last, first, "epoch"))                      \
    X(INTEGER, steps, "", "in all of them", cell_integer(last, first, "steps"))                    \
    X(INTEGER, seeds, "", "that were trained", own.count)                                          \
    X(REAL, accuracy, "", "mean share of the test set classified rightly", own.mean)               \
    X(REAL_IF, deviation, "", "standard deviation over the seeds; missing for one", own.count > 1, \
      own.deviation)                                                                               \
    X(TEXT_IF, against_variant, "",                                                                \
      "the operator's first networks, with which these are compared; missing where they are "      \
      "these",                                                                                     \
      compared, cell_text(last, reference, "variant"))                                             \
    X(TEXT_IF, against_change, "", "their change", compared, cell_text(last, reference, "change")) \
    X(INTEGER_IF, pairs, "", "seeds that both were trained with", compared, pairs.count)           \
    X(REAL_IF, difference, "", "mean over the pairs, this accuracy less that one",                 \
      compared &&pairs.count > 0, pairs.mean)                                                      \
    X(REAL_IF, interval, "",                                                                       \
      "95 % of such means are so near the true one (Student's paired test)",                       \
      compared &&pairs.count > 1, interval_of(&pairs))                                             \
    X(TEXT_IF, verdict, "", "no difference: within the interval; else lower or higher",            \
      compared &&pairs.count > 1, verdict_of(&pairs))

const column seeds_columns[SEEDS_COLUMNS] = {SEEDS_ROW(LIST_COLUMN)};

static bool same_operator(const table *last, int64_t a, int64_t b)
{
    return cell_is(last, a, "operator", cell_text(last, b, "operator"));
}

static bool same_network(const table *last, int64_t a, int64_t b)
{
    return same_operator(last, a, b) &&
           cell_is(last, a, "variant", cell_text(last, b, "variant")) &&
           cell_is(last, a, "change", cell_text(last, b, "change"));
}

static spread spread_of(const double *values, int64_t count)
{
    spread s = {count, 0, 0};
    for (int64_t i = 0; i < count; i++)
        s.mean += values[i] / (double)count;
    for (int64_t i = 0; i < count; i++)
        s.deviation += pow(values[i] - s.mean, 2);
    s.deviation = count > 1 ? sqrt(s.deviation / (double)(count - 1)) : NAN;
    return s;
}

/* The accuracies of a row's network, all seeds. values: room for all rows. */
static spread accuracies(const table *last, int64_t row, double *values)
{
    int64_t count = 0;
    for (int64_t i = 0; i < table_rows(last); i++)
        if (same_network(last, i, row))
            values[count++] = cell_real(last, i, "test_accuracy");
    return spread_of(values, count);
}

static spread differences(const table *last, int64_t row, int64_t reference, double *values)
{
    int64_t count = 0;
    for (int64_t i = 0; i < table_rows(last); i++)
        for (int64_t k = 0; k < table_rows(last); k++)
            if (same_network(last, i, row) && same_network(last, k, reference) &&
                cell_integer(last, i, "seed") == cell_integer(last, k, "seed"))
                values[count++] =
                    cell_real(last, i, "test_accuracy") - cell_real(last, k, "test_accuracy");
    return spread_of(values, count);
}

void seeds_compare(const table *last, table *to)
{
    double *values = must_allocate((size_t)table_rows(last) + 1, sizeof *values);
    for (int64_t first = 0; first < table_rows(last); first++) {
        int64_t reference = 0, seen = 0;
        while (!same_operator(last, reference, first))
            reference++;
        while (!same_network(last, seen, first))
            seen++;
        if (seen < first)
            continue;
        bool compared = reference < first;
        spread own = accuracies(last, first, values);
        spread pairs = differences(last, first, reference, values);
        SEEDS_ROW(LIST_PUT)
    }
    free(values);
}
