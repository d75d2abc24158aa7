/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict on an output in accuracy/operators, and its table. */
#ifndef EXPERIMENTS_ACCURACY_OPERATORS_H
#define EXPERIMENTS_ACCURACY_OPERATORS_H

#include <conditioning.h>

#include "common/table.h"

enum { ACCURACY_COLUMNS = 17 };
extern const column accuracy_columns[ACCURACY_COLUMNS];

typedef struct {
    ref_verdict verdict;
    const char *reason; /* why it is skipped, or FAILs without a comparison; "" */
    bool measured;      /* the reference has a value; else relative_error and digits are 0 */
    double relative_error, digits;
    double rounding; /* sum of the relative rounding errors of all terms and of a stored number */
    double ratio;    /* relative_error / (kappa rounding); NaN where it is not judged */
    bool fault;      /* FAILs, and not because of conditioning alone */
} accuracy;

/* The relative rounding error to be expected of an output if nothing magnifies it: N u of the dtype
 * for sums of N terms, plus the storage's u once, because sums are not formed in it. */
double accuracy_rounding(const attention_case *c, atn_dtype dtype);

/* Judges the output `out` (n x value_dim, of the dtype) of a call that returned `status`, for a
 * case of one head. want is ref_attention's answer, of status `reference`. */
accuracy accuracy_judge(const attention_case *c, atn_dtype dtype, const void *out,
                        atn_status status, const double *want, atn_status reference, double kappa);

/* lsh's tokens per chunk: the largest divisor of n that is at most 64 and gives at least four
 * chunks; 1 if there is none. */
int64_t accuracy_chunk(int64_t n);

#endif
