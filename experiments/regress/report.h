/* SPDX-License-Identifier: BSD-3-Clause */
/* What is worth reading of a comparison, on stdout. */
#ifndef EXPERIMENTS_REGRESS_REPORT_H
#define EXPERIMENTS_REGRESS_REPORT_H

#include "regress/compare.h"

/* kept: where the rows come from that these are compared with. changes: every row that is not the
 * same is listed, not just what fails. */
void regress_report(const table *compared, const compare_outcome *o, const char *kept,
                    bool changes);

#endif
