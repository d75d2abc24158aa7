/* SPDX-License-Identifier: BSD-3-Clause */
/* phi(Q) and phi(K) of the operators whose weights are products of features, and the backward pass
 * through them. */
#ifndef EXPERIMENTS_CHECK_FEATURES_H
#define EXPERIMENTS_CHECK_FEATURES_H

#include "check/weights.h"

/* Queries or keys of one head. */
typedef struct {
    const attention_case *c;
    const weight_form *form;
    int64_t head, tokens; /* head: its index within the batch entry */
    bool keys;
    const double *x;            /* tokens x d */
    const unsigned char *there; /* null: all */
} feature_input;

/* Whether the operator's weights are products of features, and these are implemented here. */
bool features_exist(const attention_case *c);
int64_t feature_width(const feature_input *in);
/* phi: tokens x width. */
void features_forward(const feature_input *in, double *phi);
/* Computes dx from dphi, which is overwritten. */
void features_backward(const feature_input *in, const double *phi, double *dphi, double *dx);

/* Nystromformer with a change (nystrom.c); its output is not W V with the weights of one
 * softmax. */
bool nystrom_exists(const attention_case *c, const weight_form *form);
void nystrom_answer(const weight_form *form, const subject *s, result_kind kind, double *to);

/* exp(x), or what replaces it. */
double exponential_of(const weight_form *form, double x);

/* C = factor op(A) op(B) + beta C, C m x n, matrices dense. */
void multiply_matrices(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                       double factor, const double *a, const double *b, double beta, double *c);

#endif
