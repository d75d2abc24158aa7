/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPERIMENTS_INSPECT_SUMMARY_H
#define EXPERIMENTS_INSPECT_SUMMARY_H

#include "inspect/facts.h"

/* The table that is printed: a row per number of landmarks and sampling, over heads. To be freed.
 */
table *inspect_summary(const inspection_list *list);

/* The same for the inverses and for the precisions with the main sampling: the values of the worst
 * head. */
table *inspect_inverse_summary(const inspection_list *list);
table *inspect_precision_summary(const inspection_list *list);

#endif
