/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum bench`: times of operators and inverses on a device, held against what it does at most.
 * One case after the other; built like an experiment (common/experiment.h), for its journal,
 * tables and metadata, but no figure of a paper. */
#ifndef EXPERIMENTS_BENCH_H
#define EXPERIMENTS_BENCH_H

#include "common/experiment.h"
#include "common/verb.h"

enum {
    BENCH_OPTIONS = USES_DEVICE | USES_OPERATOR | USES_TOKENS | USES_LANDMARKS | USES_DTYPE |
                    USES_VARIANT | USES_BATCH | USES_BENCH
};

extern const experiment bench;
extern const verb bench_verb;

/* Writes the tokens of the cases of soft and softpp as .npy files into a folder, for peers that
 * time the same: tokens_b64_h2_n3136_d32_q.npy and _v.npy, batch x heads x n x d in f32. Returns an
 * exit code. */
int bench_write_tokens(const program_options *s, const char *folder);

#endif
