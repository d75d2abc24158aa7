/* SPDX-License-Identifier: BSD-3-Clause */
/* A million tokens: P is never stored, and the output is right. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "data.h"
#include "dense_soft.h"
#include "fixture.h"
#include "linear_algebra.h"

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { SIDE = 1000, STRIDE = 142, N = SIDE * SIDE, M = 49, D = 32, KEPT = 2000 };

/* Cheap values in [-1, 1); a shift apart for neighbours so that landmarks differ. */
static float value_at(uint64_t seed, int64_t i)
{
    uint64_t state = seed + (uint64_t)i * 0x9e3779b97f4a7c15u;
    return (float)((double)(data_next(&state) >> 11) * 0x1p-52 - 1);
}

/* A pattern over the grid plus noise. */
static float token_at(int64_t i)
{
    int64_t token = i / D, cell = token / SIDE / STRIDE * 8 + token % SIDE / STRIDE;
    return value_at(1, cell * D + i % D) + 0.25F * value_at(2, i);
}

static float *allocate(int64_t count)
{
    float *memory = malloc((size_t)count * sizeof *memory);
    cr_assert_not_null(memory);
    return memory;
}

/* S^ on some tokens only needs those: all of V but KEPT rows, half of them the last, is 0. */
static void check_answer(const float *q, const float *v, const float *out)
{
    double *tokens = data_allocate((int64_t)N * D), *landmarks = data_allocate(M * D);
    double *some = data_allocate(KEPT * D), *values = data_allocate(KEPT * D);
    double *want = data_allocate(KEPT * D), *got = data_allocate(KEPT * D),
           *a = data_allocate(M * M);
    double s = 1 / (2 * 5.656854249492380195), kappa, ratio;
    for (int64_t i = 0; i < (int64_t)N * D; i++)
        tokens[i] = (double)q[i];
    ref_pool(SIDE, SIDE, D, STRIDE, tokens, landmarks);
    for (int64_t i = 0; i < KEPT * D; i++) {
        int64_t row = i / D < KEPT / 2 ? i / D : N - KEPT + i / D, at = row * D + i % D;
        some[i] = tokens[at];
        values[i] = (double)v[at];
        got[i] = (double)out[at];
    }
    free(tokens);
    cr_assert_eq(ref_soft(KEPT, M, D, D, some, landmarks, values, s, NULL, false, NULL, want),
                 ATN_OK);
    ref_gaussian(M, M, D, landmarks, landmarks, s, a);
    ref_condition(M, M, a, &kappa, NULL);
    ref_difference difference = ref_compare_f64(KEPT, D, got, D, want, D);
    ref_verdict verdict = ref_judge_forward(&difference, kappa, KEPT, 0x1p-24, &ratio);
    cr_expect_eq(verdict, REF_PASS, "kappa=%.3g ratio=%.3g relative error %.3g", kappa, ratio,
                 difference.relative_frobenius);
    free(a);
    free(got);
    free(want);
    free(values);
    free(some);
    free(landmarks);
}

Test(memory, a_million_tokens)
{
    if (SANITIZED) { /* the sanitizer's shadow memory is not the library's, and the test would take
                        minutes */
        fprintf(stderr, "memory: NOT measured, this is a sanitizer's build\n");
        return;
    }
    int64_t count = (int64_t)N * D;
    allocator_counts counts = {0};
    atn_context *context = fixture_context(2, &counts);
    float *q = allocate(count), *v = allocate(count), *out = allocate(count);
    for (int64_t i = 0; i < count; i++) {
        bool kept = i / D < KEPT / 2 || i / D >= N - KEPT / 2;
        q[i] = token_at(i);
        v[i] = kept ? value_at(3, i) : 0;
    }
    atn_tensor tq = atn_tensor_dense(q, ATN_F32, 1, 1, N, D);
    atn_tensor tv = atn_tensor_dense(v, ATN_F32, 1, 1, N, D);
    atn_tensor to = atn_tensor_dense(out, ATN_F32, 1, 1, N, D);
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F32);
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_POOL, .height = SIDE, .width = SIDE};
    desc.sampling.stride = STRIDE;
    desc.inverse = atn_inverse_defaults(ATN_INVERSE_EIG);
    atn_attention_shape shape = {1, 1, N, D, D, 0};
    atn_plan *plan;
    cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
    int64_t calls = counts.calls;
    cr_expect_eq(
        atn_attention_forward(plan, &(atn_attention_inputs){.q = &tq, .v = &tv}, &to, NULL),
        ATN_OK);
    cr_expect_eq(counts.calls, calls, "forward allocates");
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double peak = (double)usage.ru_maxrss * 1024, bytes = 3.0 * (double)count * sizeof(float);
    cr_expect(peak < 1.5 * bytes, "peak %.0f MB, inputs and outputs %.0f MB, ratio %.3f",
              peak / 1e6, bytes / 1e6, peak / bytes);
    fprintf(stderr, "memory: peak is %.3f times q, v and out\n", peak / bytes);
    atn_plan_free(plan);
    atn_context_free(context);
    check_answer(q, v, out);
    free(out);
    free(v);
    free(q);
}
