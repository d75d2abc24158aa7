/* SPDX-License-Identifier: BSD-3-Clause */
/* Attention kernels as users might write them, right or with one bug. */
#ifndef CHECK_KERNELS_H
#define CHECK_KERNELS_H

#include "check/check.h"

#include "bugs.h"
#include "tape.h"

/* How a kernel is arranged, which does not change what it computes. X(code, name, operators) */
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

/* Whether there is a kernel of the operator. */
bool kernel_exists(atn_operator op);

/* Computes the results of a problem, in the shapes of attnum check; null where there is no such
 * result. To be freed by kernel_free. */
void kernel_run(const attention_case *c, const kernel_choice *choice,
                double *results[RESULT_COUNT]);
void kernel_free(double *results[RESULT_COUNT]);

/* ---- spoil.c ---- */

/* The arithmetic, narrowed by the bug if that is one of arithmetic. */
arithmetic spoilt_arithmetic(const arithmetic *a, bug b);

/* Applies bugs of written results, and rounds results to the claimed type. */
void spoil_results(const attention_case *c, const kernel_choice *choice,
                   double *results[RESULT_COUNT]);

/* The number of tokens after the last full tile: a whole tile if there are none, 1 if there is only
 * one tile. */
int64_t tail_of(int64_t tokens, int64_t tile);

/* The factor of number i with dropout. */
double dropout(uint64_t i);

#endif
