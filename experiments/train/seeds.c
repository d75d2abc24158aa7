/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/seeds.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

/* Sums over a group of trainings: their number, and those of their accuracies (or differences of
 * two) that are known. */
typedef struct {
    int64_t all, count;
    double mean, deviation; /* deviation: NaN for fewer than two */
} spread;

/* Half the width of Student's 95 % confidence interval of the mean. */
static double interval_of(const spread *s)
{
    return gsl_cdf_tdist_Pinv(0.975, (double)(s->count - 1)) * s->deviation /
           sqrt((double)s->count);
}

static const char *verdict_of(const spread *s)
{
    static const char *const verdicts[] = {"lower", "no difference", "higher"};
    double interval = interval_of(s);
    return verdicts[1 + (s->mean > interval) - (s->mean < -interval)];
}

#define SEEDS_ROW(X)                                                                               \
    X(TEXT, operator, "", "the attention of every block", of->operator_name)                       \
    X(TEXT, variant, "", "of the operator", of->variant)                                           \
    X(TEXT, change, "", "of the networks, before or after training; none: nothing", of->change)    \
    X(INTEGER, epochs, "", "of training", of->epochs)                                              \
    X(INTEGER, steps, "", "in all of them", of->steps)                                             \
    X(INTEGER, seeds, "", "of training", own.all)                                                  \
    X(INTEGER, finished, "", "of them; the others came to numbers that are not finite", own.count) \
    X(REAL_IF, accuracy, "", "mean share of the test pictures classified rightly", own.count > 0,  \
      own.mean)                                                                                    \
    X(REAL_IF, deviation, "", "standard deviation over the seeds; missing for one", own.count > 1, \
      own.deviation)                                                                               \
    X(TEXT_IF, against, "",                                                                        \
      "the change of the networks that these are compared with; missing in their own row",         \
      reference != of, reference->change)                                                          \
    X(REAL_IF, difference, "", "mean over the seeds, this accuracy less that of the same seed",    \
      compared, pairs.mean)                                                                        \
    X(REAL_IF, interval, "",                                                                       \
      "half the width of Student's 95 % confidence interval of the mean difference", compared,     \
      interval_of(&pairs))                                                                         \
    X(TEXT_IF, verdict, "",                                                                        \
      "no difference: 0 is within the interval; else lower or higher; missing for one seed, and "  \
      "where a training has not finished",                                                         \
      compared, verdict_of(&pairs))

const column seeds_columns[SEEDS_COLUMNS] = {SEEDS_ROW(LIST_COLUMN)};

static bool same_variant(const seed_result *a, const seed_result *b)
{
    return strcmp(a->operator_name, b->operator_name) == 0 && strcmp(a->variant, b->variant) == 0;
}

static bool same_network(const seed_result *a, const seed_result *b)
{
    return same_variant(a, b) && strcmp(a->change, b->change) == 0;
}

static const seed_result *find_seed(int64_t count, const seed_result *results,
                                    const seed_result *network, int64_t seed)
{
    for (int64_t i = 0; i < count; i++)
        if (same_network(&results[i], network) && results[i].seed == seed)
            return &results[i];
    return NULL;
}

/* The first training of the networks that `of` is compared with. */
static const seed_result *find_reference(int64_t count, const seed_result *results,
                                         const seed_result *of)
{
    const seed_result *first = NULL;
    for (int64_t i = 0; i < count; i++)
        if (same_variant(&results[i], of)) {
            first = first ? first : &results[i];
            if (strcmp(results[i].change, "none") == 0)
                return &results[i];
        }
    return first;
}

/* Of a network's accuracies or, with a reference, of what they exceed those of the same seeds by.
 */
static spread spread_of(int64_t count, const seed_result *results, const seed_result *network,
                        const seed_result *reference)
{
    double *values = must_allocate((size_t)count, sizeof *values);
    spread s = {0};
    for (int64_t i = 0; i < count; i++) {
        const seed_result *one = &results[i];
        if (!same_network(one, network))
            continue;
        const seed_result *other =
            reference ? find_seed(count, results, reference, one->seed) : NULL;
        bool known = one->finished && (!reference || (other && other->finished));
        s.all++;
        if (known)
            values[s.count++] = one->accuracy - (other ? other->accuracy : 0);
    }
    for (int64_t i = 0; i < s.count; i++)
        s.mean += values[i] / (double)s.count;
    for (int64_t i = 0; i < s.count; i++)
        s.deviation += pow(values[i] - s.mean, 2);
    s.deviation = s.count > 1 ? sqrt(s.deviation / (double)(s.count - 1)) : NAN;
    free(values);
    return s;
}

void seeds_compare(int64_t count, const seed_result *results, table *to)
{
    for (int64_t i = 0; i < count; i++) {
        const seed_result *of = &results[i];
        int64_t first = 0;
        while (!same_network(&results[first], of))
            first++;
        if (first < i)
            continue;
        const seed_result *reference = find_reference(count, results, of);
        if (same_network(reference, of))
            reference = of;
        spread own = spread_of(count, results, of, NULL);
        spread pairs = spread_of(count, results, of, reference);
        bool compared = reference != of && pairs.count == pairs.all && pairs.count > 1;
        SEEDS_ROW(LIST_PUT)
    }
}
