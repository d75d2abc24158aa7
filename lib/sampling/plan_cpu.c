/* SPDX-License-Identifier: BSD-3-Clause */
/* Landmarks on the CPU, head by head. */
#include <omp.h>

#include "cpu/backend.h"
#include "cpu/table.h"
#include "sampling/plan.h"

/* The threads' memory. */
typedef struct {
    size_t piece;
    int64_t choices;
    char *work;
    int64_t *chosen;
} sample_memory;

static void lay_out(core_arena *arena, int threads, sample_memory *memory)
{
    memory->work = core_take(arena, threads, memory->piece);
    memory->chosen = core_take(arena, threads * memory->choices, sizeof *memory->chosen);
}

atn_status cpu_sample(atn_context *context, const atn_sampling *sampling, int64_t m,
                      const atn_tensor *tokens, const atn_tensor *landmarks)
{
    const cpu_table *cpu = cpu_table_get(context, tokens->dtype);
    int64_t heads = tokens->heads, n = tokens->rows, d = tokens->cols;
    sample_memory memory = {.choices = core_sampling_choices(sampling, n)};
    core_arena arena = {0};
    void *block;
    int bad = 0;
    memory.piece = (size_t)cpu->sample_work(sampling, n, d) * atn_dtype_size(tokens->dtype);
    lay_out(&arena, context->threads, &memory);
    atn_status status = core_arena_allocate(context, &arena, &block);
    if (status != ATN_OK)
        return status;
    lay_out(&arena, context->threads, &memory);
#pragma omp parallel for num_threads(context->threads) schedule(static) reduction(| : bad)
    for (int64_t i = 0; i < tokens->batch * heads; i++) {
        int thread = omp_get_thread_num();
        /* no pointer arithmetic on null */
        int64_t *chosen = memory.chosen ? memory.chosen + thread * memory.choices : NULL;
        char *work = memory.work ? memory.work + memory.piece * (size_t)thread : NULL;
        bad |= !cpu->sample(sampling, tokens->dtype, n, d,
                            atn_tensor_matrix(tokens, i / heads, i % heads), tokens->row_stride, m,
                            atn_tensor_matrix(landmarks, i / heads, i % heads),
                            landmarks->row_stride, chosen, work);
    }
    core_release(context, block);
    return bad ? ATN_NONFINITE : ATN_OK;
}
