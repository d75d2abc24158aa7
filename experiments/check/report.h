/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said about a result. */
#ifndef EXPERIMENTS_CHECK_REPORT_H
#define EXPERIMENTS_CHECK_REPORT_H

#include "check/check.h"

void print_subject(const subject *s);
void print_verdict(const subject *s, result_kind kind, const result_verdict *v);
void print_findings(int count, const finding *findings);

#endif
