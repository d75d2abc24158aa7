/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum bench`: times of operators and inverses on a device, compared with the best that the
 * device can do. It is built like an experiment (common/experiment.h), with a journal, tables and
 * metadata, but belongs to no figure of a paper. */
#ifndef EXPERIMENTS_BENCH_H
#define EXPERIMENTS_BENCH_H

#include "common/experiment.h"
#include "common/verb.h"

#define BENCH_OPTIONS                                                                              \
    OPTION_DEVICE, OPTION_OPERATOR, OPTION_OP, OPTION_N, OPTION_M, OPTION_DTYPE, OPTION_VARIANT,   \
        OPTION_BATCH, OPTION_SUBJECT, OPTION_EMIT_TOKENS, OPTION_BENCH_THREADS, OPTION_ISA

extern const experiment bench;
extern const verb bench_verb;

/* Writes the tokens of the cases of soft and softpp as .npy files into a folder, for other programs
 * that are timed on the same tokens: tokens_b64_h2_n3136_d32_q.npy and _v.npy, batch x heads x n x
 * d in f32. Returns an exit code. */
int bench_write_tokens(const program_options *s, const char *folder);

#endif
