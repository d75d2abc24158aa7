/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operator and variant forward against its dense reference. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"
#include "pairs.h"

typedef struct {
    atn_attention_shape shape; /* b, h, n, d, dv, n_k */
    bool cross, padding, causal, optional;
} forward_row;

/* 64 tokens are a block. What an operator cannot do is left out (attention_case_make). */
static const forward_row rows[] = {
    {{2, 2, 0, 5, 3, 0}, false, false, false, false},
    {{0, 2, 4, 5, 3, 0}, false, false, false, false},
    {{1, 2, 4, 5, 0, 6}, true, false, false, true},
    {{1, 1, 1, 1, 1, 0}, false, false, false, false},
    {{2, 1, 1, 8, 5, 0}, true, false, false, true},
    {{1, 2, 2, 2, 1, 3}, true, false, false, false},
    {{2, 2, 3, 5, 8, 0}, false, false, true, false},
    {{2, 2, 7, 8, 5, 0}, false, true, false, true},
    {{1, 3, 7, 8, 2, 5}, true, true, false, false},
    {{3, 2, 5, 1, 2, 0}, true, false, true, true},
    {{1, 1, 63, 5, 2, 0}, false, false, false, false},
    {{1, 2, 64, 2, 5, 65}, true, false, false, true},
    {{2, 1, 65, 8, 1, 0}, true, true, true, false},
    {{1, 1, 130, 2, 5, 64}, true, true, false, false},
    {{1, 1, 130, 5, 2, 0}, false, false, true, true},
    {{1, 2, 33, 33, 8, 0}, true, false, false, false},
    {{1, 1, 63, 8, 33, 64}, true, false, false, true},
    {{2, 2, 65, 5, 5, 0}, false, true, false, false},
    {{1, 1, 800, 3, 2, 0}, true, true, true, false}, /* softmax: more than a block of 768 */
    /* several groups of 512, which threads share; few queries of many keys */
    {{1, 1, 1100, 5, 3, 0}, true, true, true, false},
    {{1, 1, 66, 5, 2, 1100}, true, true, false, true},
    /* several chunks of CUDA's, which hold at least 256 tokens */
    {{1, 1, 600, 3, 2, 530}, true, true, false, true},
    {{1, 1, 600, 3, 2, 0}, false, false, true, false},
    {{1, 1, 530, 3, 2, 0}, true, true, true, false},
};
enum { ROWS = sizeof rows / sizeof *rows, CPU_ROWS = ROWS - 2 };

/* The statistics of one variant. */
typedef struct {
    int judged, run;
    double worst;
} variant_tally;

/* Whether it could be judged. */
static bool check(atn_context *context, const attention_case *c, int layout, const double *want,
                  const double *kappa, variant_tally *t)
{
    attention_run r = attention_run_make(c, layout);
    double ratio;
    atn_status status = attention_run_forward(&r, context);
    ref_verdict verdict = judge_forward(&r, want, kappa, &ratio);
    cr_expect(status >= 0 && status != ATN_NONFINITE && verdict != REF_FAIL &&
                  verdict != REF_MARGINAL && attention_run_clean(&r, false),
              "%s: %s (%s), ratio %.3g, kappa %.3g, unwritten %ld, damaged %ld",
              attention_case_label(c), atn_status_name(status), atn_last_error(context), ratio,
              judge_largest(c->shape.batch * c->shape.heads, kappa),
              (long)guarded_unwritten(&r.out), (long)guarded_damaged(&r.out));
    t->run += attention_case_outputs(c) > 0;
    t->judged += verdict == REF_PASS && attention_case_outputs(c) > 0;
    t->worst = verdict == REF_SKIPPED ? t->worst : fmax(t->worst, ratio);
    attention_run_free(&r);
    return verdict == REF_PASS;
}

/* One row of the table in f64, f32 or both; kappa is measured once. A row that cannot be judged in
 * f32 can be in f64. */
static void check_row(atn_context *context, int op, int variant, int row, const bool *dtypes,
                      variant_tally *t)
{
    double *kappa = NULL;
    bool narrow_only = !dtypes[ATN_F64], judgeable = true;
    for (int turn = 0; turn < ATN_CPU_DTYPE_COUNT; turn++) {
        int dtype = narrow_only == (turn == 0) ? ATN_F32 : ATN_F64;
        const forward_row *f = &rows[row];
        attention_choice choice = {.op = (atn_operator)op,
                                   .variant = variant,
                                   .dtype = (atn_dtype)dtype,
                                   .shape = f->shape,
                                   .cross = f->cross,
                                   .padding = f->padding,
                                   .causal = f->causal,
                                   .optional = f->optional,
                                   .sampling = f->shape.dim < 5 ? ATN_SAMPLING_WINDOW
                                                                : ATN_SAMPLING_CONV_CODE,
                                   .seed = (uint64_t)(row + 1)};
        if (!dtypes[dtype] && judgeable)
            continue;
        attention_case c = attention_case_make(&choice);
        double *want = data_allocate(attention_case_outputs(&c));
        attention_expect(&c, want);
        if (!kappa) {
            kappa = data_allocate(c.shape.batch * c.shape.heads);
            judge_conditions(&c, want, kappa);
        }
        judgeable = check(context, &c, row, want, kappa, t);
        free(want);
        attention_case_free(&c);
    }
    free(kappa);
}

/* On the CPU every row in both dtypes. */
Test(attention, forward_is_the_reference)
{
    atn_context *context = fixture_context(1, NULL);
    bool on_cpu = fixture_device() == ATN_CPU;
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        const int sizes[] = {info->variant_count, on_cpu ? CPU_ROWS : ROWS, ATN_CPU_DTYPE_COUNT};
        pairs chosen = pairs_make(on_cpu ? 2 : 3, sizes, NULL);
        for (int i = 0, variant = 0; variant < info->variant_count; variant++) {
            variant_tally t = {0};
            for (; i < chosen.count && chosen.combination[i][0] == variant; i++) {
                const int *v = chosen.combination[i];
                const bool dtypes[] = {
                    [ATN_F32] = on_cpu || v[2] == ATN_F32, [ATN_F64] = on_cpu || v[2] == ATN_F64};
                check_row(context, op, variant, v[1], dtypes, &t);
            }
            fprintf(stderr, "%s %s: %d of %d judged, worst ratio %.3g\n", info->name,
                    info->variants[variant].name, t.judged, t.run, t.worst);
            /* soft's long rows have an A too ill-conditioned for f32 */
            cr_expect(t.judged > 0 && t.judged >= t.run * 2 / 5,
                      "%s %s: only %d of %d could be judged", info->name,
                      info->variants[variant].name, t.judged, t.run);
        }
        pairs_free(&chosen);
    }
    atn_context_free(context);
}
