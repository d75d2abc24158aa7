/* SPDX-License-Identifier: BSD-3-Clause */
/* One problem over `num`, for the operators' references. */
#ifndef REFERENCE_PROBLEM_H
#define REFERENCE_PROBLEM_H

#include <stdbool.h>
#include <stdlib.h>

#include <attnum/attention.h>

#include "operators/list.h"

#include "../ref_memory.h"
#include "num.h"

typedef struct {
    const atn_attention_desc *desc;
    atn_attention_shape shape;                  /* key_tokens filled in */
    const num *q, *k, *v;                       /* b x h x n x d, ...; k = q if the problem has no
                                                   k */
    const num *parameters[ATN_PARAMETER_COUNT]; /* 1 x (1 or h) x rows x cols; null: not given */
    const unsigned char *query_mask, *key_mask; /* batch x tokens; null: no padding */
} NUM(problem);
typedef NUM(problem) problem;

/* One head of it. */
typedef struct {
    const problem *all;
    const atn_attention_desc *desc;
    int64_t batch, head;
    int64_t n, n_k, d, dv;
    const num *q, *k, *v;
    const unsigned char *query_mask, *key_mask; /* this batch entry's masks, or null */
} NUM(ref_head);
typedef NUM(ref_head) ref_head;

/* Y of one head, n x dv, zeros when called: rows of padded queries stay 0. */
typedef atn_status NUM(ref_operator)(const ref_head *h, num *out);

/* The function of each operator, in the file of its name. */
#define HEADS_EXTERN(name) extern NUM(ref_operator) NUM(ref_##name);
#define SOFT_EXTERN(name)
#define REF_EXTERN(code, name, family) family##_EXTERN(name)
OPERATOR_LIST(REF_EXTERN)
extern NUM(ref_operator) NUM(ref_soft);

/* Head (batch, head) of a problem; for operators that look at other heads. */
ref_head NUM(ref_head_of)(const problem *p, int64_t batch, int64_t head);

static inline bool ref_query(const ref_head *h, int64_t i)
{
    return !h->query_mask || h->query_mask[i];
}

static inline bool ref_key(const ref_head *h, int64_t j)
{
    return !h->key_mask || h->key_mask[j];
}

/* Whether query i sees key j: neither is padded, and j <= i if causal. */
static inline bool ref_sees(const ref_head *h, int64_t i, int64_t j)
{
    return ref_query(h, i) && ref_key(h, j) && (!h->desc->causal || j <= i);
}

/* This head's matrix of a parameter; null: not given. */
const num *NUM(ref_parameter)(const ref_head *h, atn_parameter parameter);

/* This head's matrix of a dense f64 tensor of the description (projection, rotations). */
const double *NUM(ref_constant)(const ref_head *h, const atn_tensor *tensor);

/* c: logit_scale or 1/sqrt(d). */
long double NUM(ref_logit_scale)(const ref_head *h);

/* s of the Gaussian kernel, from the description's scale. */
long double NUM(ref_kernel_scale)(const ref_head *h);

/* x.y of d numbers. */
num NUM(ref_dot)(int64_t d, const num *x, const num *y);

/* The sum of row i of the weights (n x n_k), over the keys that query i sees. */
num NUM(ref_row_sum)(const ref_head *h, const num *weights, int64_t i);

/* Y_i = sum_j weights_ij v_j / divisors_i over the keys that query i sees; null divisors: 1. */
void NUM(ref_apply)(const ref_head *h, const num *weights, const num *divisors, num *out);

/* x_i = exp(x_i) / sum of exp(x_j), in place. */
void NUM(ref_soft_weights)(int64_t count, num *x);

/* Allocates count numbers, all 0; null: out of memory. */
static inline num *ref_zeros(int64_t count)
{
    return ref_take((size_t)(count > 0 ? count : 0), sizeof(num));
}

#endif
