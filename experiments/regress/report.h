/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a comparison on stdout. */
#ifndef EXPERIMENTS_REGRESS_REPORT_H
#define EXPERIMENTS_REGRESS_REPORT_H

#include "regress/compare.h"

/* kept: where the other rows come from. changes: lists every row that is not the same, not only
 * failures. */
void regress_report(const table *compared, const compare_outcome *o, const char *kept,
                    bool changes);

#endif
