/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans on the CPU: memory taken once and as foretold, the same bits from any number of threads. */
#include <criterion/criterion.h>

#include "attention_run.h"
#include "fixture.h"

/* bf16 has neither residual nor convolution. */
static attention_case make(int op, int variant, atn_dtype dtype, int64_t tokens)
{
    bool wide = dtype != ATN_BF16;
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = dtype,
                               .shape = {2, 2, tokens, 5, 3, 0},
                               .cross = true,
                               .optional = wide,
                               .sampling = wide ? ATN_SAMPLING_CONV_CODE : ATN_SAMPLING_KMEANS,
                               .seed = 50};
    return attention_case_make(&choice);
}

/* ---- Memory ---- */

/* Whether the CPU computes the operator's forward pass in it. */
static bool has_type(int op, atn_dtype dtype)
{
    return dtype < ATN_CPU_DTYPE_COUNT ||
           atn_operator_get((atn_operator)op)->capabilities & ATN_CAN_CPU_BF16;
}

/* A plan's memory is what was foretold; calls take none and stay within it. */
static void check_memory(int op, int variant, atn_dtype dtype)
{
    allocator_counts counts = {0};
    atn_context *context = fixture_context(2, &counts);
    attention_case c = make(op, variant, dtype, 9);
    attention_run r = attention_run_make(&c, 0);
    atn_attention_inputs inputs = attention_run_inputs(&r);
    atn_gradients gradients = attention_run_gradients(&r);
    atn_cost cost;
    atn_plan *plan;
    cr_expect_eq(atn_attention_cost(context, &c.desc, &c.shape, &cost), ATN_OK, "%s: %s",
                 attention_case_label(&c), atn_last_error(context));
    cr_expect_eq(counts.live, 1, "%s: counting keeps memory", attention_case_label(&c));
    cr_assert_eq(atn_attention_plan(context, &c.desc, &c.shape, &plan), ATN_OK, "%s: %s",
                 attention_case_label(&c), atn_last_error(context));
    cr_expect(cost.workspace_bytes == (double)counts.last_bytes, "%s: %g bytes foretold, %zu taken",
              attention_case_label(&c), cost.workspace_bytes, counts.last_bytes);
    int64_t calls = counts.calls;
    cr_expect(atn_attention_forward(plan, &inputs, &r.out.view, NULL) >= 0);
    atn_status backward = atn_attention_backward(plan, &inputs, &r.dout.view, &gradients, NULL);
    cr_expect(dtype == ATN_BF16 ? backward == ATN_ERR_UNSUPPORTED : backward >= 0);
    cr_expect_eq(counts.calls, calls, "%s: %ld allocations in calls", attention_case_label(&c),
                 (long)(counts.calls - calls));
    atn_plan_free(plan);
    cr_expect(counts.live == 1 && counts.overruns == 0, "%s: %ld blocks left, %ld ends overwritten",
              attention_case_label(&c), (long)(counts.live - 1), (long)counts.overruns);
    attention_run_free(&r);
    attention_case_free(&c);
    atn_context_free(context);
}

Test(workspace, memory_is_taken_once_and_as_foretold)
{
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        for (int variant = 0; variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            check_memory(op, variant, (atn_dtype)(variant % ATN_CPU_DTYPE_COUNT));
        if (has_type(op, ATN_BF16))
            check_memory(op, 0, ATN_BF16);
    }
}

/* For many tokens, twice as many take no more memory, forward and backward, but of lsh, which sorts
 * them, of linformer, whose projections have a row for each, and of softmax, which keeps four
 * numbers per query of each of the 4 heads for backward. */
Test(workspace, memory_does_not_grow_with_tokens)
{
    static const atn_dtype dtypes[] = {ATN_F32, ATN_BF16};
    atn_context *context = fixture_context(2, NULL);
    for (int k = 0; k < 2 * ATN_OPERATOR_COUNT; k++) {
        int op = k / 2;
        attention_choice choice = {.op = (atn_operator)op,
                                   .dtype = dtypes[k % 2],
                                   .shape = {2, 2, 64, 5, 3, 0},
                                   .sampling = ATN_SAMPLING_FIRST};
        if (op == ATN_LSH || op == ATN_LINFORMER || !has_type(op, choice.dtype))
            continue;
        attention_case c = attention_case_make(&choice);
        double bytes[2] = {0};
        for (int i = 0; i < 2; i++) {
            atn_cost cost = {0};
            c.shape.tokens = c.shape.key_tokens = INT64_C(262144) << i;
            cr_expect_eq(atn_attention_cost(context, &c.desc, &c.shape, &cost), ATN_OK, "%s: %s",
                         attention_case_label(&c), atn_last_error(context));
            bytes[i] = cost.workspace_bytes;
        }
        double per_query = op == ATN_SOFTMAX && choice.dtype == ATN_F32 ? 4 * 4 * sizeof(float) : 0;
        cr_expect_eq(bytes[1] - bytes[0], 262144 * per_query, "%s: %g bytes, then %g",
                     attention_case_label(&c), bytes[0], bytes[1]);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* Each allocation of a plan fails in turn: the status says so and nothing is left behind. */
Test(workspace, plans_without_memory)
{
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        attention_case c = make(op, 0, ATN_F64, 9);
        bool made = false;
        for (int fail = 1; !made; fail++) {
            allocator_counts counts = {0};
            atn_context *context = fixture_context(1, &counts);
            atn_plan *plan;
            counts.fail_at = counts.calls + fail;
            atn_status status = atn_attention_plan(context, &c.desc, &c.shape, &plan);
            made = status == ATN_OK;
            cr_assert(made || (status == ATN_ERR_MEMORY && !plan && counts.live == 1 && fail < 9),
                      "%s, allocation %d: %s, %ld blocks left", attention_case_label(&c), fail,
                      atn_status_name(status), (long)(counts.live - 1));
            atn_plan_free(plan);
            atn_context_free(context);
        }
        attention_case_free(&c);
    }
}

/* ---- Shapes whose products wrap around 2^64 ---- */

static atn_status plan_status(atn_context *context, const atn_attention_desc *desc,
                              const atn_attention_shape *shape)
{
    atn_plan *plan;
    atn_status status = atn_attention_plan(context, desc, shape, &plan);
    atn_plan_free(plan);
    return status;
}

/* 64 threads gather 7 2^58 elements each: 0 modulo 2^64. */
Test(workspace, gathered_tokens_that_no_memory_holds)
{
    atn_context *context = fixture_context(64, NULL);
    atn_attention_desc desc = atn_attention_defaults(ATN_GAUSSIAN, ATN_F32);
    atn_attention_shape shape = {1, 1, (int64_t)1 << 34, 1 << 24, 1 << 24, 0};
    desc.padding = true;
    cr_expect_eq(plan_status(context, &desc, &shape), ATN_ERR_SHAPE, "%s", atn_last_error(context));
    atn_context_free(context);
}

/* The gradient of an E of 2^58 elements, for 64 heads. */
Test(workspace, parameter_sums_that_no_memory_holds)
{
    static float e;
    atn_context *context = fixture_context(1, NULL);
    atn_attention_desc desc = atn_attention_defaults(ATN_LINFORMER, ATN_F32);
    atn_attention_shape shape = {1, 64, (int64_t)1 << 34, 1, 1, 0};
    desc.linformer.e = atn_tensor_dense(&e, ATN_F32, 1, 1, (int64_t)1 << 34, 1 << 24);
    cr_expect_eq(plan_status(context, &desc, &shape), ATN_ERR_SHAPE, "%s", atn_last_error(context));
    atn_context_free(context);
}

/* ---- Threads ---- */

static void check_threads(int op, int variant, atn_dtype dtype)
{
    attention_case c = make(op, variant, dtype, 140);
    attention_run runs[3];
    for (int i = 0; i < 3; i++) {
        atn_context *context = fixture_context(i + 1, NULL);
        runs[i] = attention_run_make(&c, 0);
        bool same = attention_run_forward(&runs[i], context) >= 0 &&
                    guarded_same_bits(&runs[i].out, &runs[0].out);
        same = same && attention_run_backward(&runs[i], context) >= 0;
        for (int s = 0; s < SLOT_COUNT; s++)
            if (runs[i].gradients[s].memory)
                same = same && guarded_same_bits(&runs[i].gradients[s], &runs[0].gradients[s]);
        cr_expect(same, "%s: other bits from %d threads", attention_case_label(&c), i + 1);
        atn_context_free(context);
    }
    for (int i = 0; i < 3; i++)
        attention_run_free(&runs[i]);
    attention_case_free(&c);
}

Test(workspace, the_same_bits_from_any_number_of_threads)
{
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int variant = 0; variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            check_threads(op, variant, (atn_dtype)(variant % ATN_CPU_DTYPE_COUNT));
}
