/* SPDX-License-Identifier: BSD-3-Clause */
#include "pairs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 }; /* values of a factor */

/* covered[f][g][a][b]: value a of factor f has occurred together with value b of g >= f; of one
 * factor a value occurs with itself. */
typedef bool coverage[PAIRS_FACTORS][PAIRS_FACTORS][MOST][MOST];

static void *zeros(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

/* Every combination that is allowed. */
static pairs all_of(int factors, const int *sizes, bool (*allowed)(const int *values))
{
    size_t product = 1;
    for (int f = 0; f < factors; f++) {
        if (factors > PAIRS_FACTORS || sizes[f] > MOST)
            abort();
        product *= (size_t)sizes[f];
    }
    pairs all = {0, zeros(product, sizeof *all.combination)};
    for (size_t i = 0; i < product; i++) {
        int *values = all.combination[all.count];
        size_t rest = i;
        for (int f = factors - 1; f >= 0; f--) {
            values[f] = (int)(rest % (size_t)sizes[f]);
            rest /= (size_t)sizes[f];
        }
        all.count += !allowed || allowed(values);
    }
    return all;
}

/* Pairs of a combination that have not occurred; with `mark` they have now. */
static int new_pairs(int factors, const int *values, coverage *covered, bool mark)
{
    int count = 0;
    for (int f = 0; f < factors; f++)
        for (int g = f; g < factors; g++) {
            bool *seen = &(*covered)[f][g][values[f]][values[g]];
            count += !*seen;
            *seen = *seen || mark;
        }
    return count;
}

/* How often the values of a combination have been taken. */
static int uses(int factors, const int *values, int (*used)[MOST], int more)
{
    int count = 0;
    for (int f = 0; f < factors; f++)
        count += used[f][values[f]] += more;
    return count;
}

/* Repeatedly takes the combination that adds most pairs. Of equals it takes one whose values were
 * taken least, and of those the first after the last one taken: every value gets its share, and
 * values of more than two factors come together in many ways. */
static void take_greedily(int factors, const pairs *all, bool *taken)
{
    coverage *covered = zeros(1, sizeof *covered);
    int used[PAIRS_FACTORS][MOST] = {{0}};
    for (int at = 0;;) {
        int best = -1, most = 0, least = 0;
        for (int i = 0; i < all->count; i++) {
            const int candidate = (at + i) % all->count, *values = all->combination[candidate];
            int count = new_pairs(factors, values, covered, false);
            int before = uses(factors, values, used, 0);
            if (count > most || (count == most && count > 0 && before < least))
                most = count, least = before, best = candidate;
        }
        if (best < 0)
            break;
        new_pairs(factors, all->combination[best], covered, true);
        uses(factors, all->combination[best], used, 1);
        taken[best] = true;
        at = best + 1;
    }
    free(covered);
}

static int share, shares = 1;

void pairs_share(int index, int count)
{
    share = index;
    shares = count;
}

bool pairs_all(void)
{
    const char *cases = getenv("ATTNUM_TEST_CASES");
    return cases && strcmp(cases, "all") == 0;
}

pairs pairs_make(int factors, const int *sizes, bool (*allowed)(const int *values))
{
    if (pairs_all())
        return all_of(factors, sizes, allowed);
    int with_share[PAIRS_FACTORS];
    if (factors >= PAIRS_FACTORS)
        abort();
    memcpy(with_share, sizes, (size_t)factors * sizeof *sizes);
    with_share[factors] = shares;
    pairs p = all_of(factors + 1, with_share, allowed);
    bool *taken = zeros((size_t)p.count, sizeof *taken);
    take_greedily(factors + 1, &p, taken);
    int kept = 0;
    for (int i = 0; i < p.count; i++)
        if (taken[i] && p.combination[i][factors] == share)
            memmove(p.combination[kept++], p.combination[i], sizeof *p.combination);
    p.count = kept;
    free(taken);
    return p;
}

void pairs_free(pairs *p)
{
    free(p->combination);
    *p = (pairs){0};
}
