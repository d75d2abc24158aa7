/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum bench`: times of operators and inverses on a device, held against what it does at most.
 * One case after the other; built like an experiment (common/experiment.h), for its journal,
 * tables and metadata, but no figure of a paper. */
#ifndef EXPERIMENTS_BENCH_H
#define EXPERIMENTS_BENCH_H

#include "common/experiment.h"

extern const experiment bench;

/* Writes the tokens of the cases of soft and softpp as .npy files into a folder, for peers that
 * time the same: tokens_b64_h2_n3136_d32_q.npy and _v.npy, batch x heads x n x d in f32. Returns an
 * exit code. */
int bench_write_tokens(const settings *s, const char *folder);

/* The arguments after `bench`. Returns an exit code. */
int bench_command(int argc, char **argv);

#endif
