/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPERIMENTS_INSPECT_SUMMARY_H
#define EXPERIMENTS_INSPECT_SUMMARY_H

#include "inspect/facts.h"

/* For people: a row per number of landmarks and sampling, over heads. To be freed. */
table *inspect_summary(const inspection_list *list);

/* The same of the inverses and of the precisions under the main sampling: the worst head. */
table *inspect_inverse_summary(const inspection_list *list);
table *inspect_precision_summary(const inspection_list *list);

#endif
