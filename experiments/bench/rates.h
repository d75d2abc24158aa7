/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device does at most, measured in the same run: of copying, and of multiply-adds. */
#ifndef EXPERIMENTS_BENCH_RATES_H
#define EXPERIMENTS_BENCH_RATES_H

#include "bench/cases.h"
#include "bench/time.h"

/* Times one call; *work is its bytes (read and written) or flops. ATN_ERR_UNSUPPORTED: this
 * device's arithmetic in the case's type is not measured. */
atn_status rates_copy(atn_context *context, const time_plan *plan, time_result *result,
                      double *bytes);
atn_status rates_arithmetic(atn_context *context, atn_dtype dtype, const time_plan *plan,
                            time_result *result, double *flops);

#endif
