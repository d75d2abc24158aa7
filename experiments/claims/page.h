/* SPDX-License-Identifier: BSD-3-Clause */
/* claims.html: the report for a browser, one page that needs no other file. Its links lead to
 * the CSVs of the evidence, which are in the same folder. */
#ifndef EXPERIMENTS_CLAIMS_PAGE_H
#define EXPERIMENTS_CLAIMS_PAGE_H

#include "claims/report.h"

void claims_page_write(const claim_run *run, const judged *all, int count, FILE *file);

#endif
