/* SPDX-License-Identifier: BSD-3-Clause */
/* All claims in one list, and the papers. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "claims/claims.h"

enum { MAX_CLAIMS = 256 };

static const claim *const groups[] = {
#define CLAIM_GROUP_ENTRY(table, file, first, last) table,
    CLAIM_GROUP_LIST(CLAIM_GROUP_ENTRY)
#undef CLAIM_GROUP_ENTRY
};

const claim *const *claims_all(void)
{
    static const claim *all[MAX_CLAIMS + 1];
    int count = 0;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (const claim *c = groups[g]; c->id; c++) {
            assert(count < MAX_CLAIMS);
            all[count++] = c;
        }
    return all;
}

static const struct {
    const char *name, *reference;
} papers[] = {
#define PAPER_ENTRY(code, name, reference) {name, reference},
    PAPER_LIST(PAPER_ENTRY)
#undef PAPER_ENTRY
};

const char *paper_name(claim_paper p)
{
    return papers[p].name;
}

const char *paper_reference(claim_paper p)
{
    return papers[p].reference;
}

bool claim_is_in(const claim *c, claim_paper p)
{
    return strstr(c->source, papers[p].name);
}
