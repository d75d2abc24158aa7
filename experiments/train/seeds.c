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
    bool paired;
    double became_right, became_wrong; /* pictures, over all seeds */
} spread;

/* Half the width of Student's 95 % confidence interval of the mean. */
static double interval_of(const spread *s)
{
    return gsl_cdf_tdist_Pinv(0.975, (double)(s->count - 1)) * s->deviation /
           sqrt((double)s->count);
}

const char *sign_test(int64_t right, int64_t wrong)
{
    int64_t least = right < wrong ? right : wrong;
    double p = 2 * gsl_cdf_binomial_P((unsigned)least, 0.5, (unsigned)(right + wrong));
    return !(p <= 0.05) ? "no difference" : right > wrong ? "higher" : "lower";
}

static const char *verdict_of(const spread *s)
{
    if (!(fabs(s->mean) > interval_of(s)))
        return "no difference";
    return s->paired     ? sign_test(llround(s->became_right), llround(s->became_wrong))
           : s->mean > 0 ? "higher"
                         : "lower";
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
      "no difference: 0 is within the interval or, of networks that are changed after training, "  \
      "the exact sign test of the pictures that became right and wrong in all seeds has p > "      \
      "0.05; else lower or higher; missing for one seed, where a training has not finished, and "  \
      "where networks trained with a change differ by the same in every seed",                     \
      compared && (pairs.paired || pairs.deviation > 0 || pairs.mean == 0), verdict_of(&pairs))

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
    static const double rounding = 1e-12; /* of shares of pictures, which differ by more */
    double *values = must_allocate((size_t)count, sizeof *values);
    spread s = {.paired = network->paired};
    for (int64_t i = 0; i < count; i++) {
        const seed_result *one = &results[i];
        if (!same_network(one, network))
            continue;
        const seed_result *other =
            reference ? find_seed(count, results, reference, one->seed) : NULL;
        bool known = one->finished && (!reference || (other && other->finished));
        s.all++;
        s.became_right += one->became_right;
        s.became_wrong += one->became_wrong;
        if (known)
            values[s.count++] = one->accuracy - (other ? other->accuracy : 0);
    }
    for (int64_t i = 0; i < s.count; i++)
        s.mean += values[i] / (double)s.count;
    for (int64_t i = 0; i < s.count; i++)
        s.deviation += pow(values[i] - s.mean, 2);
    s.deviation = s.count > 1 ? sqrt(s.deviation / (double)(s.count - 1)) : NAN;
    s.deviation = s.deviation < rounding ? 0 : s.deviation;
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
