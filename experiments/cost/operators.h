/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the cost experiments: every operator of the registry at the papers' settings, and its
 * exact counts. */
#ifndef EXPERIMENTS_COST_OPERATORS_H
#define EXPERIMENTS_COST_OPERATORS_H

#include <cases.h>

#include "common/experiment.h"

/* SOFT (IJCV) section 4.1: n = 784 p, p = 1 ... 8, d = 384, h = 12, m = 49. */
enum {
    HEAD_DIM = 32,
    PAPER_HEADS = 12,
    PAPER_LANDMARKS = 49,
    PAPER_TOKENS = 784,
    PAPER_MULTIPLES = 8
};

/* One call: batch 1, f32. */
typedef struct {
    atn_operator op;
    int variant;
    int64_t tokens, heads, dim; /* dim: of one head */
    int64_t landmarks;          /* for operators that have them */
    bool as_they_are;           /* soft, softpp: landmarks are tokens, never averages */
    atn_isa isa;                /* of the context that measures it */
} cost_setting;

/* Whether an operator has an m: soft, softpp, linformer (its r) and nystromformer. */
bool cost_has_landmarks(atn_operator op);

/* The index of a variant by name; the name must be one of the operator's. */
int cost_variant(atn_operator op, const char *name);

/* The description with all its parameters, without inputs; to be freed. It has K where the operator
 * can take it. soft and softpp average windows of tokens where m divides n; where it does not, or
 * where as_they_are is set, they take m tokens as landmarks: so there are exactly m. performer and
 * rff have floor(d ln d) features. lsh has 8 rounds, chunks of 49 tokens or of the next smaller
 * number that divides n, and n/49 buckets (as the published code has a bucket per chunk), less one
 * if that is odd. */
attention_case cost_case(const cost_setting *setting);
/* The same without the values of the parameters, which suffices to count a call but not to run it.
 */
attention_case cost_outline(const cost_setting *setting);

/* Counts a call. Returns an exit code; a failure has been reported. */
int cost_count(atn_context *context, const cost_setting *setting, atn_cost *cost);

/* The work of a call in flops, with each exp at its cost; of both directions with backward. */
double cost_work(const atn_cost *cost, bool backward);
/* Whether work is linear in n, from the costs of a call and of one with twice the tokens. */
bool cost_is_linear(const atn_cost *cost, const atn_cost *doubled);

/* For progress and --dry-run: "sima paper n=784 h=12 d=32". */
void cost_describe(const cost_setting *setting, char *buffer, size_t size);

#endif
