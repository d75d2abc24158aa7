/* SPDX-License-Identifier: BSD-3-Clause */
/* The resident memory that one call of an operator needs: the peak of a separate process. */
#ifndef EXPERIMENTS_COST_RESIDENT_H
#define EXPERIMENTS_COST_RESIDENT_H

#include "cost/operators.h"

/* Why resident memory cannot be measured here (sanitisers keep their own memory; no /proc), or
 * null.
 */
const char *resident_obstacle(void);

/* Bytes of q, k, v and the output, each once; with backward also of their gradients. Without the
 * parameters. */
double resident_io_bytes(const cost_setting *setting, bool backward);

/* Bytes of parameters that grow with n: E of linformer, which is held in f64 and f32. */
double resident_parameter_bytes(const cost_setting *setting);

/* The largest growth of a process's resident memory, in bytes, while it makes a plan and runs it
 * forward (and backward), on one thread. The inputs, the parameters and memory for the results are
 * resident before; so are the code and BLAS's buffers, which a first call with at most 784 tokens
 * loads. Returns an exit code; a failure has been reported.
 *
 * The process is a fork of this one. Several threads may measure at a time. */
int resident_measure(const cost_setting *setting, bool backward, int64_t *bytes);

/* Whether the memory of a call fits into this machine's while `processes` measure at a time;
 * reports it if not. workspace: the plan's. */
bool resident_fits(const cost_setting *setting, bool backward, double workspace, int processes);

/* Whether a measured growth is at most the plan's workspace and a few pages. Returns an exit code;
 * a failure has been reported. */
int resident_check(const cost_setting *setting, double workspace, int64_t bytes);

#endif
