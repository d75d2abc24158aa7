/* SPDX-License-Identifier: BSD-3-Clause */
/* What `attnum bench` times: operators over shapes and types, forward and backward; batches of
 * inverses; and the two rates that the rows are held against. */
#ifndef EXPERIMENTS_BENCH_CASES_H
#define EXPERIMENTS_BENCH_CASES_H

#include <cases.h>

#include "common/settings.h"

/* X(code, name, description) */
#define BENCH_WORK_LIST(X)                                                                         \
    X(BENCH_COPY, "copy", "a copy within the device's memory; bytes are read and written")         \
    X(BENCH_ARITHMETIC, "arithmetic",                                                              \
      "multiply-adds in registers (cuda), or a product of matrices in cache by BLAS (cpu)")        \
    X(BENCH_FORWARD, "forward", "an operator's output")                                            \
    X(BENCH_BACKWARD, "backward", "its gradients by Q, K and V")                                   \
    X(BENCH_INVERSE, "inverse", "inverses of a batch of m x m matrices")

#define BENCH_CODE(code, name, description) code,
typedef enum { BENCH_WORK_LIST(BENCH_CODE) BENCH_WORK_COUNT } bench_work;
#undef BENCH_CODE

const char *bench_work_name(bench_work work);

/* One row. Fields that a kind of work does not have are 0. */
typedef struct {
    bench_work work;
    atn_dtype dtype;
    atn_operator op; /* forward, backward */
    int variant;
    atn_inverse_method inverse; /* of a batch, or soft's and softpp's own */
    atn_soft_passes passes;     /* soft, softpp: other than auto with the clamped distance */
    int64_t batch, heads, tokens, landmarks, dim;
} bench_case;

/* All cases of the settings, the rates first; to be freed. */
bench_case *bench_cases(const settings *s, int64_t *count);

bool bench_is_attention(const bench_case *c);
/* Whether its inverse is a choice. */
bool bench_has_inverse(const bench_case *c);

atn_distance bench_distance(const bench_case *c);

/* The problem of an operator's case with so many sequences and tokens. Arrays in choice.dtype;
 * inputs unless bare. soft and softpp average windows of consecutive tokens where m divides n, and
 * take m tokens as they are otherwise. To be freed. */
attention_case bench_problem(const bench_case *c, atn_dtype dtype, int64_t batch, int64_t tokens,
                             bool bare);

void bench_describe(const bench_case *c, char *buffer, size_t size);

#endif
