/* SPDX-License-Identifier: BSD-3-Clause */
#define _DEFAULT_SOURCE /* madvise */
#include "cost/calls.h"

#include <stdlib.h>
#include <sys/mman.h>

bool call_has_array(atn_operator op, int array, bool backward)
{
    bool cross = atn_operator_get(op)->capabilities & ATN_CAN_CROSS;
    return (array <= CALL_OUT || backward) && (cross || (array != CALL_K && array != CALL_GRAD_K));
}

const char *call_mode_name(bool backward)
{
    return backward ? "forward+backward" : "forward";
}

/* Fills in numbers in [-1, 1), fast; this makes every page resident. */
static void fill(int64_t count, uint32_t state, float *values)
{
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

/* Memory to be freed; null if there is none. Huge pages, because page tables of 4 KiB pages outgrow
 * the caches at some n, which would look like growth of the operator. */
static float *take_memory(size_t bytes)
{
    enum { HUGE_PAGE = 2 << 20 };
    void *memory = NULL;
    if (bytes < HUGE_PAGE)
        return malloc(bytes);
    if (posix_memalign(&memory, HUGE_PAGE, bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE); /* no effect where the system has no huge pages */
#endif
    return memory;
}

bool call_open(const cost_setting *s, bool backward, prepared_call *call)
{
    *call = (prepared_call){.problem = cost_case(s)};
    int64_t count = s->heads * s->tokens * s->dim;
    for (int i = 0; i < CALL_ARRAYS; i++) {
        if (!call_has_array(s->op, i, backward))
            continue;
        float *values = take_memory((size_t)count * sizeof *values);
        if (!values)
            return false;
        fill(count, (uint32_t)i, values);
        call->arrays[i] = atn_tensor_dense(values, ATN_F32, 1, s->heads, s->tokens, s->dim);
    }
    return true;
}

void call_open_within(const cost_setting *s, const prepared_call *other, prepared_call *call)
{
    *call = (prepared_call){.problem = cost_case(s), .borrowed = true};
    for (int i = 0; i < CALL_ARRAYS; i++)
        if (other->arrays[i].data)
            call->arrays[i] =
                atn_tensor_dense(other->arrays[i].data, ATN_F32, 1, s->heads, s->tokens, s->dim);
}

void call_close(prepared_call *call)
{
    for (int i = 0; i < CALL_ARRAYS && !call->borrowed; i++)
        free(call->arrays[i].data);
    attention_case_free(&call->problem);
}

static const atn_tensor *array_or_null(const prepared_call *call, int array)
{
    return call->arrays[array].data ? &call->arrays[array] : NULL;
}

static atn_attention_inputs inputs_of(const prepared_call *call)
{
    return (atn_attention_inputs){
        .q = &call->arrays[CALL_Q], .k = array_or_null(call, CALL_K), .v = &call->arrays[CALL_V]};
}

atn_status call_forward(atn_plan *plan, prepared_call *call)
{
    atn_attention_inputs inputs = inputs_of(call);
    return atn_attention_forward(plan, &inputs, &call->arrays[CALL_OUT], NULL);
}

atn_status call_backward(atn_plan *plan, prepared_call *call)
{
    atn_attention_inputs inputs = inputs_of(call);
    atn_gradients gradients = {.q = &call->arrays[CALL_GRAD_Q],
                               .k = (atn_tensor *)array_or_null(call, CALL_GRAD_K),
                               .v = &call->arrays[CALL_GRAD_V]};
    return atn_attention_backward(plan, &inputs, &call->arrays[CALL_DOUT], &gradients, NULL);
}

enum { EXP_BLOCK = 1024 };

/* The numbers are in [0, 1] from the second round on. */
atn_status call_exps(atn_context *context, int64_t exps, double *done)
{
    float x[EXP_BLOCK];
    double blocks = 0, rest = 0;
    for (int i = 0; i < EXP_BLOCK; i++)
        x[i] = 8 * (float)i / EXP_BLOCK;
    atn_status status = atn_exponentials(context, ATN_F32, exps / EXP_BLOCK, EXP_BLOCK, x, &blocks);
    if (status == ATN_OK)
        status = atn_exponentials(context, ATN_F32, 1, exps % EXP_BLOCK, x, &rest);
    *done = blocks + rest;
    return status;
}
