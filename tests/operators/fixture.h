/* SPDX-License-Identifier: BSD-3-Clause */
/* What the operators' tests share: contexts, samplings with their reference, and complete SOFT
 * cases with inputs, guarded tensors and the dense reference's output. */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include <attnum/attnum.h>

#include "allocator.h"
#include "guarded.h"

/* The device that the tests are about: the environment variable ATTNUM_TEST_DEVICE, cpu (default)
 * or cuda. */
atn_device fixture_device(void);

/* Whether the operator has a form for it. */
bool fixture_runs(const atn_operator_info *info);

/* The next operator that has one, ATN_OPERATOR_COUNT after the last; after -1 there is one, or the
 * program ends: a loop over operators is never empty. */
int fixture_next(int op);

/* Whether a test that follows an iteration looks at X_k: some of k = 0 .. 20 where the device may
 * be an emulated one, which takes a thousand times as long, unless all cases are asked for. */
bool fixture_looks_at(int k);

/* A context for that device; ends the program if there is none. counts may be null. */
atn_context *fixture_context(int threads, allocator_counts *counts);

/* One sampling of tokens on a height x width grid. Fields that a kind does not use are ignored:
 * window and the grids use stride, the others use count; those that look at the tokens have 2
 * steps, a ridge and a kernel, none of them the defaults. Kernel and ridge are such that rounding
 * does not decide the choice: no residuals that are 1 up to rounding, no scores that are rounding.
 */
typedef struct {
    atn_sampling desc;
    int64_t *indices;
    double *uniforms;                          /* 2 n of them */
    double *weights, *norm_weight, *norm_bias; /* f64, as the dtype holds them */
    guarded tensors[3];
} fixture_sampling;

/* affine: give conv-code a norm weight and bias. */
fixture_sampling fixture_sampling_make(atn_sampling_kind kind, atn_dtype dtype, int64_t height,
                                       int64_t width, int64_t d, int64_t stride, int64_t count,
                                       bool affine, uint64_t seed);
void fixture_sampling_free(fixture_sampling *sampling);

/* The number of landmarks, m. */
int64_t fixture_landmark_count(const fixture_sampling *sampling, int64_t n);

/* The landmarks of one head by tests/common/dense_soft.h; m x d. */
void fixture_landmarks(const fixture_sampling *sampling, int64_t n, int64_t d, const double *tokens,
                       double *landmarks);

/* atn_inverse and atn_inverse_backward of tensors that are copied to the context's device and back.
 */
atn_status fixture_inverse(atn_context *context, const atn_inverse_desc *desc, const guarded *a,
                           guarded *x, atn_inverse_info *infos, atn_trace *traces);
atn_status fixture_inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                    atn_gradient gradient, const guarded *a, const guarded *dx,
                                    guarded *da, atn_inverse_info *infos);

/* X of an iteration in exact arithmetic, by its closed form; alpha is that of Newton-Raphson. */
void fixture_filter(const atn_inverse_desc *desc, int64_t m, const double *a, double alpha,
                    double *x);

/* Whether the method is an iteration. */
bool fixture_iterates(int method);

/* Gives Chebyshev methods, whose own interval is estimated, one around every A of the tests. */
void fixture_interval(atn_inverse_desc *desc);

/* The start of the Newton-Raphson variants for `count` m x m matrices, from the papers' text alone:
 * alpha (0: the search finds no n) and the halvings of each. */
void fixture_alpha(const atn_inverse_desc *desc, int64_t count, int64_t m, const double *a,
                   double *alpha, int *halvings);

/* A forward call and its expected output. Fill in the fields above the line, then call
 * fixture_soft_make. */
typedef struct {
    atn_operator op;
    atn_dtype dtype;
    guarded_layout layout;
    atn_sampling_kind sampling;
    atn_inverse_desc inverse;
    int64_t batch, heads, height, width, stride, count, dim, value_dim;
    atn_scale scale;
    double scale_value;
    atn_distance distance;
    int64_t window; /* of the residual convolution; 0: none */
    uint64_t seed;
} fixture_soft_case;

typedef struct {
    fixture_soft_case c;
    int64_t n, m;
    fixture_sampling sampling;
    double *q, *v, *filter; /* dense f64, as the dtype holds them */
    guarded q_view, v_view, out, filter_view;
    atn_attention_desc desc;
    atn_attention_shape shape;
    atn_inverse_info *infos; /* per head, of the last forward call */
    double *a;               /* per head: A by ref_gaussian */
    double *want;            /* by ref_soft, as b x h x n x value_dim */
    double kappa;            /* the largest condition number of A, or of its filter, of all heads */
} fixture_soft;

/* Random normal q and v. */
fixture_soft fixture_soft_make(const fixture_soft_case *c);
void fixture_soft_free(fixture_soft *f);

/* After changing q or v: puts them into the tensors again. */
void fixture_soft_load(fixture_soft *f);

/* Plans, runs, frees, on the context's device. out is poisoned before. */
atn_status fixture_soft_run(fixture_soft *f, atn_context *context);

/* The call alone, of a plan whose description is on the device. */
atn_status fixture_soft_forward(fixture_soft *f, atn_context *context, atn_plan *plan, guarded *out,
                                atn_attention_info *info);

/* Fills a, want and kappa. The Newton-Raphson variants are compared with the closed-form filter,
 * the exact ones with the pseudo-inverse. Needs no run. */
void fixture_soft_expect(fixture_soft *f);

/* The worst forward ratio of out against want over all heads, and its verdict; a trivial answer
 * must have failed the same judge, or the verdict is REF_SKIPPED. */
ref_verdict fixture_soft_judge(const fixture_soft *f, double *ratio);

/* atn_sample, atn_sampling_count and atn_gaussian_* with arrays that are copied to the context's
 * device and back. */
atn_status fixture_sample(atn_context *context, const atn_sampling *sampling,
                          const atn_tensor *tokens, atn_tensor *landmarks);
atn_status fixture_sampling_count(atn_context *context, const atn_sampling *sampling,
                                  int64_t tokens, int64_t dim, int64_t *count);
atn_status fixture_gaussian_self(atn_context *context, atn_distance distance, double s,
                                 const atn_tensor *landmarks, atn_tensor *a);
atn_status fixture_gaussian_cross(atn_context *context, atn_distance distance, double s,
                                  const atn_tensor *x, const atn_tensor *y, atn_tensor *out);

#endif
