/* SPDX-License-Identifier: BSD-3-Clause */
/* The same bits whatever the number of threads, and contexts that do not disturb each other. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>

#include "attention_run.h"
#include "data.h"
#include "fixture.h"
#include "latms.h"
#include "sampling.h"

static const int thread_counts[] = {1, 2, 3, 7};
enum { THREAD_COUNTS = sizeof thread_counts / sizeof *thread_counts };

static fixture_soft_case long_case(atn_operator op, atn_dtype dtype, atn_inverse_method method)
{
    fixture_soft_case c = {.op = op, .dtype = dtype, .sampling = ATN_SAMPLING_POOL};
    c.inverse = atn_inverse_defaults(method);
    c.height = 50, c.width = 100, c.stride = 12; /* n = 5000, m = 32: 5 chunks */
    c.batch = 1, c.heads = 3, c.dim = 16, c.value_dim = 11;
    c.window = 3, c.seed = 4;
    return c;
}

Test(threads, forward_has_the_same_bits)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_NR_SOFTPP,
                                                 ATN_INVERSE_EIG, ATN_INVERSE_PIVOTED_CHOLESKY};
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int k = 0; k < (int)(sizeof methods / sizeof *methods); k++) {
            atn_dtype dtype = (atn_dtype)((op + k) % ATN_CPU_DTYPE_COUNT);
            fixture_soft_case c = long_case((atn_operator)op, dtype, methods[k]);
            fixture_soft f[THREAD_COUNTS];
            for (int i = 0; i < THREAD_COUNTS; i++) {
                atn_context *context = fixture_context(thread_counts[i], NULL);
                f[i] = fixture_soft_make(&c);
                cr_expect(fixture_soft_run(&f[i], context) >= 0);
                cr_expect(
                    guarded_unwritten(&f[i].out) == 0 && guarded_same_bits(&f[i].out, &f[0].out),
                    "%s %s %s: %d threads", atn_operator_get(c.op)->name, atn_dtype_name(c.dtype),
                    atn_inverse_name(c.inverse.method), thread_counts[i]);
                atn_context_free(context);
            }
            for (int i = 0; i < THREAD_COUNTS; i++)
                fixture_soft_free(&f[i]);
        }
}

/* Fewer heads than threads, of so many tokens, with values of size `values` if that is above 1. */
static void check_few_heads(atn_operator op, int64_t heads, int64_t tokens, int64_t keys,
                            attention_choice choice, double values)
{
    choice.op = op;
    choice.shape = (atn_attention_shape){1, heads, tokens, 6, 6, keys};
    choice.sampling = ATN_SAMPLING_WINDOW;
    choice.seed = 9;
    attention_case c = attention_case_make(&choice);
    attention_run r[THREAD_COUNTS];
    atn_status status[2][THREAD_COUNTS];
    for (int64_t i = 0; values > 1 && i < attention_slot_count(&c, SLOT_V); i++)
        c.v[i] = values;
    for (int i = 0; i < THREAD_COUNTS; i++) {
        atn_context *context = fixture_context(thread_counts[i], NULL);
        r[i] = attention_run_make(&c, 0);
        status[0][i] = attention_run_forward(&r[i], context);
        status[1][i] = i % 2 ? attention_run_training(&r[i], context, true)
                             : attention_run_backward(&r[i], context);
        bool same = status[0][i] == status[0][0] && status[1][i] == status[1][0] &&
                    guarded_same_bits(&r[i].out, &r[0].out) && attention_run_clean(&r[i], true);
        for (int slot = 0; slot < SLOT_COUNT; slot++)
            same &= !r[i].gradients[slot].memory ||
                    guarded_same_bits(&r[i].gradients[slot], &r[0].gradients[slot]);
        cr_expect(same, "%s: %d threads", attention_case_label(&c), thread_counts[i]);
        atn_context_free(context);
    }
    if (values > 1 && op == ATN_GAUSSIAN)
        cr_expect_eq(status[0][THREAD_COUNTS - 1], ATN_NONFINITE);
    for (int i = 0; i < THREAD_COUNTS; i++)
        attention_run_free(&r[i]);
    attention_case_free(&c);
}

/* One head, or two with tokens for more than two threads. With values so large that sums over keys
 * leave the range of doubles, every part of a head is NaN; softmax and gaussian also in two spans
 * of queries. */
Test(threads, few_heads_have_the_same_bits)
{
    static const attention_choice choices[] = {
        {.dtype = ATN_F64},
        {.dtype = ATN_F64, .cross = true, .optional = true},
        {.dtype = ATN_F32, .cross = true},
        {.dtype = ATN_F32, .padding = true},
        {.dtype = ATN_F64, .causal = true},
    };
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
            check_few_heads((atn_operator)op, 1, 1000, 0, choices[i], 1);
            if (i < 2)
                check_few_heads((atn_operator)op, 1, 1000, 0, choices[i], 1e308);
            else
                check_few_heads((atn_operator)op, 2, 1700, 0, choices[i], 1);
            if (choices[i].cross) { /* few queries of many keys, and the reverse */
                check_few_heads((atn_operator)op, 1, 66, 1100, choices[i], 1);
                check_few_heads((atn_operator)op, 1, 1100, 70, choices[i], 1);
            }
        }
    for (int i = 0; i < 2; i++) {
        check_few_heads(ATN_SOFTMAX, 1, 4500, 0, choices[i], 1);
        check_few_heads(ATN_GAUSSIAN, 1, 4500, 0, choices[i], 1);
    }
}

/* SOFT with so many landmarks that a thread which computes a whole head keeps P of 1152 tokens, and
 * computes it again for the others, as threads do that share a head. */
Test(threads, a_head_kept_in_part_has_the_same_bits)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_CHOLESKY,
                                                 ATN_INVERSE_PIVOTED_CHOLESKY};
    for (int i = 0; i < 2; i++) {
        attention_choice choice = {.op = ATN_SOFT,
                                   .dtype = ATN_F64,
                                   .shape = {1, 1, 1400, 40, 5, 0},
                                   .sampling = ATN_SAMPLING_FIRST,
                                   .seed = 14};
        attention_case c = attention_case_make(&choice);
        c.desc.sampling.count = 420;
        c.desc.inverse = atn_inverse_defaults(methods[i]);
        attention_run r[2];
        for (int shared = 0; shared < 2; shared++) {
            atn_context *context = fixture_context(1 + 2 * shared, NULL);
            r[shared] = attention_run_make(&c, 0);
            cr_expect(attention_run_forward(&r[shared], context) >= 0 &&
                      attention_run_backward(&r[shared], context) >= 0);
            atn_context_free(context);
        }
        cr_expect(guarded_unwritten(&r[1].out) == 0 && guarded_same_bits(&r[0].out, &r[1].out),
                  "%s: Y", atn_inverse_name(methods[i]));
        for (int slot = 0; slot < SLOT_COUNT; slot++)
            cr_expect(!r[0].gradients[slot].memory ||
                          guarded_same_bits(&r[0].gradients[slot], &r[1].gradients[slot]),
                      "%s: gradient of %s", atn_inverse_name(methods[i]),
                      attention_slot_name(slot));
        for (int shared = 0; shared < 2; shared++)
            attention_run_free(&r[shared]);
        attention_case_free(&c);
    }
}

static void check_parameters(int op, bool shared, atn_sampling_kind sampling)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .dtype = ATN_F32,
                               .shape = {5, 2, 36, 6, 6, 0},
                               .cross = true,
                               .padding = shared,
                               .optional = !shared,
                               .sampling = sampling,
                               .seed = 10};
    attention_case c = attention_case_make(&choice);
    attention_run r[THREAD_COUNTS];
    for (int i = 0; i < THREAD_COUNTS; i++) {
        atn_context *context = fixture_context(thread_counts[i], NULL);
        r[i] = attention_run_make(&c, 0);
        atn_status status = attention_run_backward(&r[i], context);
        cr_expect(status >= 0 && status != ATN_NONFINITE && attention_run_clean(&r[i], true),
                  "%s: %s", attention_case_label(&c), atn_status_name(status));
        for (int slot = 0; slot < SLOT_COUNT; slot++)
            cr_expect(!r[i].gradients[slot].memory ||
                          guarded_same_bits(&r[i].gradients[slot], &r[0].gradients[slot]),
                      "%s: gradient of %s, %d threads", attention_case_label(&c),
                      attention_slot_name(slot), thread_counts[i]);
        atn_context_free(context);
    }
    for (int i = 0; i < THREAD_COUNTS; i++)
        attention_run_free(&r[i]);
    attention_case_free(&c);
}

/* A sum over five entries of a batch: of two, which commute, any order would do. */
Test(threads, parameter_gradients_have_the_same_bits)
{
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        bool soft = op == ATN_SOFT || op == ATN_SOFTPP;
        if (!atn_operator_get((atn_operator)op)->differentiable)
            continue;
        check_parameters(op, false, ATN_SAMPLING_CONV_CODE);
        check_parameters(op, true, soft ? ATN_SAMPLING_CONV : ATN_SAMPLING_FIRST);
    }
}

Test(threads, choices_have_the_same_bits)
{
    for (int kind = 0; kind < ATN_SAMPLING_COUNT; kind++) {
        fixture_soft_case c = long_case(ATN_SOFT, (atn_dtype)(kind % ATN_CPU_DTYPE_COUNT),
                                        ATN_INVERSE_PIVOTED_CHOLESKY);
        fixture_soft first, other;
        if (!ref_sampling_chooses((atn_sampling_kind)kind))
            continue;
        c.sampling = (atn_sampling_kind)kind;
        c.height = 20, c.width = 20, c.count = 19, c.heads = 5;
        for (int i = 0; i < THREAD_COUNTS; i++) {
            atn_context *context = fixture_context(thread_counts[i], NULL);
            other = fixture_soft_make(&c);
            cr_expect(fixture_soft_run(&other, context) >= 0);
            first = i == 0 ? other : first;
            cr_expect(guarded_unwritten(&other.out) == 0 &&
                          guarded_same_bits(&other.out, &first.out),
                      "%s: %d threads", atn_sampling_name(c.sampling), thread_counts[i]);
            if (i > 0)
                fixture_soft_free(&other);
            atn_context_free(context);
        }
        fixture_soft_free(&first);
    }
}

Test(threads, inverse_has_the_same_bits)
{
    enum { M = 20, COUNT = 9 };
    double lambda[M];
    guarded a = guarded_make(ATN_F32, GUARDED_HEADS, 3, 3, M, M), x[THREAD_COUNTS];
    double *values = data_allocate(COUNT * M * M);
    for (int i = 0; i < COUNT; i++)
        latms_symmetric(M, 3, 10 * (i + 1), i + 1, values + i * M * M, lambda);
    guarded_set(&a, values);
    for (int method = 1; method < ATN_INVERSE_COUNT; method++) {
        atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
        for (int i = 0; i < THREAD_COUNTS; i++) {
            atn_context *context = fixture_context(thread_counts[i], NULL);
            x[i] = guarded_make(ATN_F32, GUARDED_HEADS, 3, 3, M, M);
            cr_expect(atn_inverse(context, &desc, &a.view, &x[i].view, NULL, NULL) >= 0);
            cr_expect(guarded_unwritten(&x[i]) == 0 && guarded_same_bits(&x[i], &x[0]),
                      "%s: %d threads", atn_inverse_name((atn_inverse_method)method),
                      thread_counts[i]);
            atn_context_free(context);
        }
        for (int i = 0; i < THREAD_COUNTS; i++)
            guarded_free(&x[i]);
    }
    free(values);
    guarded_free(&a);
}

typedef struct {
    fixture_soft f;
    int runs, different;
    const guarded *alone;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    atn_context *context = fixture_context(2, NULL);
    for (int i = 0; i < w->runs; i++) {
        fixture_soft_run(&w->f, context);
        w->different += !guarded_same_bits(&w->f.out, w->alone);
    }
    atn_context_free(context);
    return NULL;
}

Test(threads, two_contexts_at_once)
{
    worker workers[2];
    fixture_soft alone[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        fixture_soft_case c = long_case((atn_operator)i, (atn_dtype)i,
                                        i ? ATN_INVERSE_PIVOTED_CHOLESKY : ATN_INVERSE_NR_PAPER);
        atn_context *context = fixture_context(1, NULL);
        alone[i] = fixture_soft_make(&c);
        fixture_soft_run(&alone[i], context);
        atn_context_free(context);
        workers[i] = (worker){.f = fixture_soft_make(&c), .runs = 5, .alone = &alone[i].out};
    }
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(workers[i].different, 0, "worker %d: %d of %d runs differ", i,
                     workers[i].different, workers[i].runs);
        fixture_soft_free(&workers[i].f);
        fixture_soft_free(&alone[i]);
    }
}
