/* SPDX-License-Identifier: BSD-3-Clause */
/* Attention kernels as somebody might write them, right or with one bug. */
#ifndef CHECK_KERNELS_H
#define CHECK_KERNELS_H

#include "check/check.h"

#include "bugs.h"
#include "tape.h"

/* How a kernel is put together; none changes what it computes. X(code, name, operators) */
#define ARRANGEMENT_LIST(X)                                                                        \
    X(PLAIN, "plain", EVERY)                                                                       \
    X(TOKENS_FIRST, "tokens-first", OP(SIMA) | OP(ELU) | OP(COSFORMER) | OP(EFFICIENT))            \
    X(EXPANDED, "expanded", KERNELS)                                                               \
    X(DIVIDED_LATE, "divided-late", OP(SOFTMAX) | OP(SIMA) | OP(XNORM))                            \
    X(ONLINE, "online", OP(SOFTMAX))                                                               \
    X(UNSHIFTED, "unshifted", OP(SOFTMAX) | OP(EFFICIENT) | OP(XCA))

#define ARRANGEMENT_ENTRY(code, name, operators) ARRANGED_##code,
typedef enum { ARRANGEMENT_LIST(ARRANGEMENT_ENTRY) ARRANGEMENT_COUNT } arrangement;
#undef ARRANGEMENT_ENTRY

const char *arrangement_name(arrangement a);
bool arrangement_is_of(arrangement a, atn_operator op);

typedef struct {
    arithmetic arithmetic;
    arrangement arrangement;
    bug bug;
    bool gradients;
} kernel_choice;

/* Whether there is a kernel for it. */
bool kernel_exists(atn_operator op);

/* What the kernel makes of a problem, in the shapes that attnum check has them; null where it has
 * no such result. To be freed by kernel_free. */
void kernel_run(const attention_case *c, const kernel_choice *choice,
                double *results[RESULT_COUNT]);
void kernel_free(double *results[RESULT_COUNT]);

/* ---- spoil.c ---- */

/* The arithmetic with the bug, if it is one of arithmetic that is narrower than it. */
arithmetic spoilt_arithmetic(const arithmetic *a, bug b);

/* Bugs of results as they are written. */
void spoil_results(const attention_case *c, const kernel_choice *choice,
                   double *results[RESULT_COUNT]);

/* How many tokens are behind the last full tile; a full one where none are, one of one tile. */
int64_t tail_of(int64_t tokens, int64_t tile);

/* Dropout's factor of a number. */
double dropout(uint64_t i);

#endif
