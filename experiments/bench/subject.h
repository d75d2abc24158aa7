/* SPDX-License-Identifier: BSD-3-Clause */
/* A case ready to be run: its plan, and several sets of random inputs in the device's memory. */
#ifndef EXPERIMENTS_BENCH_SUBJECT_H
#define EXPERIMENTS_BENCH_SUBJECT_H

#include "bench/cases.h"

enum { SUBJECT_SETS = 3, SUBJECT_INPUTS = 3, SUBJECT_OUTPUTS = 3 };

typedef struct {
    atn_context *context;
    const bench_case *c;
    int sets; /* of inputs; fewer where memory is short */
    /* Q, K, V, or A; K's data is null where an operator takes none. */
    atn_tensor inputs[SUBJECT_SETS][SUBJECT_INPUTS];
    atn_tensor dout;
    atn_tensor outputs[SUBJECT_OUTPUTS]; /* Y; the gradients of Q, K, V; or X */
    atn_plan *plan;
    atn_inverse_desc inverse;
    atn_inverse_info *infos; /* of a batch's matrices */
    atn_cost cost;           /* of one forward call */
    atn_status status;       /* the first failure */
    void *owned[32];         /* of the device's memory */
    int owned_count;
    void *host[40]; /* what a plan on the CPU reads */
    int host_count;
} subject;

/* Makes a subject; status says how it went, the context why. The uploaded numbers are random, the
 * outputs NaN. To be closed in any case. */
void subject_open(atn_context *context, const bench_case *c, subject *s);
void subject_close(subject *s);

/* Enqueues the work on set number `set`. */
void subject_run(subject *s, int set);

/* Waits, and says what came of the calls: of the first and the last head or matrix of each output
 * every element must have been written, and be finite. Anything but a failure of the calls is
 * ATN_OK or ATN_NONFINITE. */
atn_status subject_outcome(subject *s);

/* Bytes that one call must move at least: inputs read once, outputs written once. */
double subject_bytes(const subject *s);

/* Numbers of mean 0 and variance 1; fast, and others for every stream. */
void subject_numbers(uint64_t stream, int64_t count, float *values);

/* Tokens of input number `input` of a set, heads x n x d: waves along the sequence, of 1 to 8
 * periods, with noise on them, so that averages of neighbours differ. The first SUBJECT_HEADS heads
 * differ, and are then repeated. */
enum { SUBJECT_HEADS = 8 };
void subject_tokens(int set, int input, int64_t heads, int64_t n, int64_t d, float *values);

/* Kernel matrices for batched inverses: count m x m matrices in f64, exactly symmetric. */
void subject_matrices(int set, int64_t count, int64_t m, double *a);

#endif
