/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts, and what happens when memory runs out. ATN_ERR_LIBRARY (LAPACK failing on a finite
 * matrix) and ATN_BELOW_FLOOR cannot be provoked through the library: the first has no known input,
 * only the reference returns the second. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attention_run.h"
#include "data.h"
#include "fixture.h"
#include "latms.h"

Test(context, options)
{
    const struct {
        const char *what;
        atn_context_options options;
        atn_status want;
    } rows[] = {
        {"defaults", {0}, ATN_OK},
        {"five threads", {.threads = 5}, ATN_OK},
        {"negative threads", {.threads = -1}, ATN_ERR_VALUE},
        {"the most threads", {.threads = 1024}, ATN_OK},
        {"more threads than a machine has", {.threads = 1025}, ATN_ERR_VALUE},
        {"one CUDA device too many",
         {.device = ATN_CUDA, .ordinal = atn_device_count(ATN_CUDA, NULL)},
         ATN_ERR_DEVICE},
        {"unknown device", {.device = (atn_device)9}, ATN_ERR_DEVICE},
        {"a second CPU", {.ordinal = 1}, ATN_ERR_DEVICE},
        {"a negative ordinal", {.ordinal = -1}, ATN_ERR_DEVICE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        atn_context *context = (atn_context *)&context;
        atn_status status = atn_context_create(&rows[i].options, &context);
        cr_expect_eq(status, rows[i].want, "%s: %s", rows[i].what, atn_status_name(status));
        cr_expect_eq(context != NULL, status == ATN_OK, "%s", rows[i].what);
        if (context) {
            int threads = atn_context_threads(context), asked = rows[i].options.threads;
            cr_expect(asked > 0 ? threads == asked : threads > 0, "%s: %d", rows[i].what, threads);
            cr_expect_str_eq(atn_last_error(context), "");
        }
        atn_context_free(context);
    }
}

Test(context, nulls)
{
    atn_context *context;
    cr_expect_eq(atn_context_create(NULL, NULL), ATN_ERR_NULL);
    cr_expect_eq(atn_context_create(NULL, &context), ATN_OK, "options may be null");
    atn_context_free(context);
    atn_context_free(NULL);
    cr_expect_str_eq(atn_last_error(NULL), "");
    cr_expect_eq(atn_context_threads(NULL), 0);
}

Test(context, allocator)
{
    allocator_counts counts = {0};
    atn_context_options options = {.threads = 1, .allocator = allocator_counting(&counts)};
    atn_context *context;
    options.allocator.release = NULL;
    cr_expect_eq(atn_context_create(&options, &context), ATN_ERR_VALUE, "no release");
    options.allocator = allocator_counting(&counts);
    options.allocator.allocate = NULL;
    cr_expect_eq(atn_context_create(&options, &context), ATN_ERR_VALUE, "no allocate");
    cr_expect_eq(counts.calls, 0);
    options.allocator = allocator_counting(&counts);
    counts.fail_at = 1;
    cr_expect_eq(atn_context_create(&options, &context), ATN_ERR_MEMORY);
    cr_expect_null(context);
    cr_expect_eq(atn_context_create(&options, &context), ATN_OK);
    cr_expect_eq(counts.live, 1);
    atn_context_free(context);
    cr_expect_eq(counts.live, 0);
}

/* Sizes that rounding up to the alignment would carry past the largest. */
Test(context, no_block_of_any_size)
{
    atn_context *context = fixture_context(1, NULL);
    static const size_t sizes[] = {SIZE_MAX,      SIZE_MAX - 22, SIZE_MAX - 45,   SIZE_MAX - 63,
                                   SIZE_MAX - 64, PTRDIFF_MAX,   PTRDIFF_MAX - 63};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *memory = &memory;
        atn_status status = atn_allocate(context, sizes[i], &memory);
        cr_expect(status == ATN_ERR_MEMORY && !memory && *atn_last_error(context),
                  "%zu bytes: %s, %p", sizes[i], atn_status_name(status), memory);
    }
    void *memory;
    cr_expect_eq(atn_allocate(context, 65, &memory), ATN_OK);
    cr_expect_eq((uintptr_t)memory % 64, 0);
    atn_release(context, memory);
    atn_context_free(context);
}

/* A context for the CPU, and its results for a case. */
static atn_status run_on(int threads, attention_run *r)
{
    atn_context *context;
    atn_status status = atn_context_create(&(atn_context_options){.threads = threads}, &context);
    if (status == ATN_OK)
        status = attention_run_forward(r, context);
    atn_context_free(context);
    return status;
}

static void *run_on_two(void *run)
{
    return run_on(2, run) == ATN_OK ? run : NULL;
}

/* The child of a process that has computed on several threads computes on one, or on several from a
 * thread that it started itself (context.h). An operator that calls LAPACK, and one that does not.
 */
Test(context, computes_after_fork, .timeout = 60)
{
    static const atn_operator ops[] = {ATN_SOFT, ATN_SOFTMAX};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        attention_choice choice = {.op = ops[i],
                                   .dtype = ATN_F64,
                                   .shape = {2, 3, 40, 5, 3, 0},
                                   .sampling = ATN_SAMPLING_FIRST,
                                   .seed = 73};
        attention_case c = attention_case_make(&choice);
        c.desc.inverse = atn_inverse_defaults(ATN_INVERSE_EIG);
        attention_run first = attention_run_make(&c, 0), r = attention_run_make(&c, 0);
        cr_assert_eq(run_on(2, &first), ATN_OK);
        fflush(NULL);
        pid_t child = fork();
        cr_assert_geq(child, 0);
        if (child == 0) {
            pthread_t thread;
            void *done = NULL;
            alarm(20);
            bool good = run_on(1, &r) == ATN_OK && guarded_same_bits(&r.out, &first.out);
            good = good && pthread_create(&thread, NULL, run_on_two, &r) == 0 &&
                   pthread_join(thread, &done) == 0 && done &&
                   guarded_same_bits(&r.out, &first.out);
            _exit(good ? 0 : 1);
        }
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the child ended with %#x",
                  attention_case_label(&c), (unsigned)status);
        cr_expect(run_on(2, &r) == ATN_OK && guarded_same_bits(&r.out, &first.out),
                  "%s: the parent", attention_case_label(&c));
        attention_run_free(&r);
        attention_run_free(&first);
        attention_case_free(&c);
    }
}

Test(context, an_error_is_kept_until_the_next)
{
    atn_context *context = fixture_context(1, NULL);
    atn_sampling bad = {.kind = ATN_SAMPLING_FIRST, .count = 9};
    int64_t m;
    cr_expect_eq(atn_sampling_count(context, &bad, 4, 1, &m), ATN_ERR_SHAPE);
    cr_expect(strstr(atn_last_error(context), "9 landmarks"), "%s", atn_last_error(context));
    bad.count = 8;
    cr_expect_eq(atn_sampling_count(context, &bad, 4, 1, &m), ATN_ERR_SHAPE);
    cr_expect(strstr(atn_last_error(context), "8 landmarks"), "%s", atn_last_error(context));
    atn_context_free(context);
}

/* The results of each function with a given context and the same inputs. */
enum { M = 9, D = 3 };

typedef struct {
    double tokens[2 * M * D], weights[D * D], a[2 * M * M], out[2 * M * M];
} memory_inputs;

static atn_status call_inverse(atn_context *context, memory_inputs *in, atn_inverse_method method,
                               atn_stopping stopping)
{
    double trace_memory[ATN_METRIC_COUNT][32];
    atn_trace traces[2] = {{.capacity = 32}, {.capacity = 32}};
    traces[0].values[ATN_METRIC_RESIDUAL] = trace_memory[0];
    traces[1].values[ATN_METRIC_NORM] = trace_memory[1];
    atn_inverse_desc desc = atn_inverse_defaults(method);
    desc.stopping = stopping;
    atn_tensor a = atn_tensor_dense(in->a, ATN_F64, 1, 2, M, M);
    atn_tensor x = atn_tensor_dense(in->out, ATN_F64, 1, 2, M, M);
    return atn_inverse(context, &desc, &a, &x, NULL, traces);
}

static atn_status call_paper(atn_context *context, memory_inputs *in)
{
    return call_inverse(context, in, ATN_INVERSE_NR_PAPER, ATN_STOPPING_NONE);
}

static atn_status call_best(atn_context *context, memory_inputs *in)
{
    return call_inverse(context, in, ATN_INVERSE_NR_PAPER, ATN_STOPPING_BEST);
}

static atn_status call_eig(atn_context *context, memory_inputs *in)
{
    return call_inverse(context, in, ATN_INVERSE_EIG, ATN_STOPPING_NONE);
}

static atn_status call_sample(atn_context *context, memory_inputs *in)
{
    atn_sampling conv = {.kind = ATN_SAMPLING_CONV, .height = 3, .width = 3, .stride = 1};
    conv.weights = atn_tensor_dense(in->weights, ATN_F64, 1, D, D, 1);
    atn_tensor tokens = atn_tensor_dense(in->tokens, ATN_F64, 1, 2, M, D);
    atn_tensor landmarks = atn_tensor_dense(in->out, ATN_F64, 1, 2, M, D);
    return atn_sample(context, &conv, &tokens, &landmarks);
}

static atn_status call_self(atn_context *context, memory_inputs *in)
{
    atn_tensor tokens = atn_tensor_dense(in->tokens, ATN_F64, 1, 2, M, D);
    atn_tensor a = atn_tensor_dense(in->out, ATN_F64, 1, 2, M, M);
    return atn_gaussian_self(context, ATN_DISTANCE_DIRECT, 1, &tokens, &a);
}

static atn_status call_cross(atn_context *context, memory_inputs *in)
{
    atn_tensor tokens = atn_tensor_dense(in->tokens, ATN_F64, 1, 2, M, D);
    atn_tensor p = atn_tensor_dense(in->out, ATN_F64, 1, 2, M, M);
    return atn_gaussian_cross(context, ATN_DISTANCE_EXPANDED, 1, &tokens, &tokens, &p);
}

static atn_status call_plan(atn_context *context, memory_inputs *in)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFTPP, ATN_F64);
    atn_attention_shape shape = {1, 2, M, D, D, 0};
    atn_plan *plan;
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 4};
    atn_status status = atn_attention_plan(context, &desc, &shape, &plan);
    cr_expect_eq(plan != NULL, status == ATN_OK);
    if (status == ATN_OK) {
        atn_tensor tokens = atn_tensor_dense(in->tokens, ATN_F64, 1, 2, M, D);
        atn_tensor out = atn_tensor_dense(in->out, ATN_F64, 1, 2, M, D);
        status = atn_attention_forward(plan, &(atn_attention_inputs){.q = &tokens, .v = &tokens},
                                       &out, NULL);
    }
    atn_plan_free(plan);
    return status;
}

/* The k-th allocation fails for k = 1, 2, ... until the call succeeds. */
Test(context, every_allocation_may_fail)
{
    static const struct {
        const char *what;
        atn_status (*call)(atn_context *, memory_inputs *);
        int64_t fewest;
    } rows[] = {
        {"inverse nr-paper, traced", call_paper, 1},
        {"inverse nr-paper, stopping best, traced", call_best, 1},
        {"inverse eig, traced", call_eig, 1},
        {"sample conv", call_sample, 1},
        {"gaussian_self", call_self, 1},
        {"gaussian_cross", call_cross, 1},
        {"plan and forward", call_plan, 3},
    };
    memory_inputs in;
    double lambda[M];
    data_normal(1, 2 * M * D, in.tokens);
    data_normal(2, D * D, in.weights);
    cr_assert_eq(latms_symmetric(M, 3, 10, 1, in.a, lambda), ATN_OK);
    cr_assert_eq(latms_symmetric(M, 3, 20, 2, in.a + M * M, lambda), ATN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        allocator_counts counts = {0};
        atn_context *context = fixture_context(2, &counts);
        int64_t k = 0;
        atn_status status = ATN_ERR_MEMORY;
        for (; status == ATN_ERR_MEMORY && k < 50; k++) {
            counts.calls = 0;
            counts.fail_at = k + 1;
            memset(in.out, 0x5a, sizeof in.out);
            status = rows[i].call(context, &in);
            if (status != ATN_ERR_MEMORY)
                break;
            cr_expect(strstr(atn_last_error(context), "out of memory"), "%s: %s", rows[i].what,
                      atn_last_error(context));
            cr_expect_eq(counts.live, 1, "%s k=%ld: %ld blocks live", rows[i].what, (long)k + 1,
                         (long)counts.live);
            for (size_t b = 0; b < sizeof in.out; b++)
                if (((unsigned char *)in.out)[b] != 0x5a)
                    cr_assert_fail("%s k=%ld: output touched", rows[i].what, (long)k + 1);
        }
        cr_expect_eq(status, ATN_OK, "%s: %s", rows[i].what, atn_status_name(status));
        cr_expect(k >= rows[i].fewest, "%s failed only %ld times", rows[i].what, (long)k);
        cr_expect_eq(counts.live, 1, "%s leaks", rows[i].what);
        cr_expect_eq(counts.overruns, 0, "%s writes past its memory", rows[i].what);
        atn_context_free(context);
        cr_expect_eq(counts.live, 0);
    }
}
