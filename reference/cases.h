/* SPDX-License-Identifier: BSD-3-Clause */
/* Complete problems for any operator of the registry: random inputs, every parameter that the
 * operator needs, and the same in f64 for the reference. */
#ifndef REFERENCE_CASES_H
#define REFERENCE_CASES_H

#include <attnum/attention.h>

#include "attention.h"

/* The options of a case. */
typedef struct {
    atn_operator op;
    int variant;
    atn_dtype dtype;
    atn_attention_shape shape;
    bool cross;    /* K is given; always so if key_tokens differs from tokens */
    bool padding;  /* masks: about a third of the tokens is padding */
    bool causal;   /* variants that are always causal ignore this */
    bool optional; /* arrays that may be null or shared by heads are given for each head; lsh:
                      random buckets instead of rotations */
    atn_sampling_kind sampling; /* soft, softpp */
    uint64_t seed;
    atn_storage storage; /* f32 only: the type that q, k, v and the parameters are rounded to */
    bool bare;           /* no inputs: q, k, v and dout are null; all parameters are given */
    bool outline;        /* for counting only, never run: parameters have sizes, but no numbers */
    /* Sizes; 0: small ones, for tests. landmarks of soft and softpp: pool takes the nearest square
     * number that its grid has, window about as many, indices and first exactly as many. */
    int64_t landmarks;              /* soft, softpp; linformer's rows; nystromformer */
    int64_t features;               /* performer, rff */
    int64_t chunk, rounds, buckets; /* lsh; chunk must divide tokens */
} attention_choice;

/* All arrays are f64 and dense, with values that the dtype represents exactly. After making a case
 * you may change them, or both descriptions. */
typedef struct {
    attention_choice choice;              /* without the options that the operator does not have */
    atn_attention_desc desc;              /* its tensors are dense and of the dtype */
    atn_attention_desc reference;         /* the same with f64 tensors */
    atn_attention_shape shape;            /* key_tokens filled in */
    double *q, *k, *v;                    /* b x h x n x d, ...; k null: K = Q */
    double *dout;                         /* b x h x n x dv */
    unsigned char *query_mask, *key_mask; /* null: no padding */
    void *owned[40];
    int owned_count;
} attention_case;

/* A case as close to the choice as the operator allows: value_dim becomes dim for xca; a K, mask,
 * causal form or number of keys that it does not support is dropped (compare `choice` with the one
 * given). op must be in the registry. Choices that differ only in dtype and shape have the same
 * random streams. Ends the program if memory runs out. */
attention_case attention_case_make(const attention_choice *choice);
void attention_case_free(attention_case *c);

/* The same numbers for an f64 plan. Its inputs are copies; its parameters are c's. */
attention_case attention_case_widened(const attention_case *c);

ref_attention_problem attention_case_problem(const attention_case *c);

/* Elements of q, k (0: K = Q), v, dout; and of a parameter (0: not given). */
int64_t attention_case_queries(const attention_case *c);
int64_t attention_case_keys(const attention_case *c);
int64_t attention_case_values(const attention_case *c);
int64_t attention_case_outputs(const attention_case *c);
int64_t attention_case_parameter(const attention_case *c, atn_parameter parameter);

/* The largest number of terms in any of the operator's sums: tokens, widths, landmarks, features.
 */
int64_t attention_case_terms(const attention_case *c);

/* "performer favor f32 b=1 h=2 n=5 n_k=7 d=3 dv=4 cross padding"; lasts until the next call. */
const char *attention_case_label(const attention_case *c);

#endif
