/* SPDX-License-Identifier: BSD-3-Clause */
/* How a kernel's arithmetic rounds. Numbers are stored in f64, each rounded to the type that the
 * kernel would use. No code is shared with lib/. */
#ifndef CHECK_ARITHMETIC_H
#define CHECK_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#include <attnum/tensor.h>

/* The order in which the terms of a sum are added. Groups have sums of their own, which are then
 * added one after the other, or in pairs as a tree. X(code, name) */
#define SUM_ORDER_LIST(X)                                                                          \
    X(SUM_FORWARD, "forward")                                                                      \
    X(SUM_BACKWARD, "backward")                                                                    \
    X(SUM_BLOCKS, "blocks") /* groups of consecutive terms, added one after the other */           \
    X(SUM_PAIRS, "pairs")   /* the same groups, added as a tree */                                 \
    X(SUM_LANES, "lanes")   /* group l holds the terms l, l + group, ...; added as a tree */

#define SUM_ORDER_ENTRY(code, name) code,
typedef enum { SUM_ORDER_LIST(SUM_ORDER_ENTRY) SUM_ORDER_COUNT } sum_order;
#undef SUM_ORDER_ENTRY

typedef struct {
    const char *name;
    atn_dtype claimed;  /* the type of inputs and results */
    atn_dtype stored;   /* the type of what every operation between them stores */
    atn_dtype operands; /* what matrix products read: narrower on tensor cores */
    bool cut;           /* operands are truncated, as tensor cores may do that read f32 as tf32 */
    atn_dtype summed;   /* the type of accumulators */
    sum_order order;
    int group;
    bool fused;    /* one rounding per multiply-add */
    bool flushed;  /* subnormal numbers become 0 */
    bool fast_exp; /* exp by a parabola in the exponent's fraction, with an error of 2e-3 */
} arithmetic;

/* Rounds x to a type, to nearest, ties to even; overflow gives infinity. */
double round_to(atn_dtype type, double x);

/* Rounds towards zero. */
double truncate_to(atn_dtype type, double x);

/* Rounds x to what an operation stores. */
double round_stored(const arithmetic *a, double x);

/* out_j = sum over k of a_k b_kj, where b is terms x cols and all numbers are in the type
 * `operands`. */
void sum_of_products(const arithmetic *s, int64_t terms, int64_t cols, const double *a,
                     const double *b, double *out);

#endif
