/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the cases of reference/cases.h in guarded tensors, and the registry's rows in turn. */
#ifndef TESTS_ATTENTION_RUN_H
#define TESTS_ATTENTION_RUN_H

#include <attnum/attnum.h>

#include "cases.h"
#include "guarded.h"
#include "staged.h"

/* What has a gradient: the inputs, then the parameters. */
enum {
    SLOT_Q,
    SLOT_K,
    SLOT_V,
    SLOT_PARAMETERS,
    SLOT_COUNT = SLOT_PARAMETERS + ATN_PARAMETER_COUNT
};

/* The reference's output and status; a negative one ends the test. */
atn_status attention_expect(const attention_case *c, double *want);

/* ---- Slots ---- */

const char *attention_slot_name(int slot);

/* Elements; 0 for a slot without a derivative: k not given, a parameter not given or
 * without a gradient. */
int64_t attention_slot_count(const attention_case *c, int slot);

/* The values, f64. */
const double *attention_slot_values(const attention_case *c, int slot);

/* One array per slot, null where its count is 0, all zeros. */
typedef struct {
    double *of[SLOT_COUNT];
} attention_slots;

attention_slots attention_slots_make(const attention_case *c);
void attention_slots_free(attention_slots *slots);
ref_attention_arrays attention_slots_arrays(const attention_slots *slots);

/* The reference's gradients of sum dout Y; a failure ends the test. */
attention_slots attention_expect_gradients(const attention_case *c);

/* ---- Runs ---- */

typedef struct {
    const attention_case *c;
    guarded q, k, v, out, dout;
    guarded gradients[SLOT_COUNT]; /* of the slots that the operator has */
    atn_attention_info info;
} attention_run;

/* Layouts: 0 .. GUARDED_LAYOUT_COUNT - 1; each tensor gets a different one. */
attention_run attention_run_make(const attention_case *c, int layout);
void attention_run_free(attention_run *run);

/* After changing the case's q, k, v or dout. */
void attention_run_load(attention_run *run);

atn_attention_inputs attention_run_inputs(const attention_run *run);
atn_gradients attention_run_gradients(attention_run *run);

/* A run's description and inputs, and where its results go, as the context's device can read and
 * write them. Must not be moved: it has pointers into itself. */
typedef struct {
    staged s;
    atn_tensor q, k, v, out, dout, gradient_views[SLOT_COUNT];
    atn_attention_desc desc;
    atn_attention_inputs inputs;
    atn_gradients gradients;
} attention_placed;

/* attention_placed_close brings the results back. */
void attention_run_place(attention_run *run, atn_context *context, attention_placed *placed);
void attention_placed_close(attention_placed *placed);

/* Plans, fills the outputs with NaN, runs, frees the plan. */
atn_status attention_run_forward(attention_run *run, atn_context *context);
atn_status attention_run_backward(attention_run *run, atn_context *context);

/* One plan: forward, then backward that reuses what forward computed; give_y: and its output. */
atn_status attention_run_training(attention_run *run, atn_context *context, bool give_y);

/* Whether a forward (backward) call wrote every element of its results and nothing else. */
bool attention_run_clean(const attention_run *run, bool backward);

/* The gradients of the last backward call. */
attention_slots attention_run_slots(const attention_run *run);

/* Y and all gradients, one after the other, of a forward and a backward call on tensors in one
 * layout; *count: their elements. The caller frees them. A negative status ends the test. */
double *attention_run_results(const attention_case *c, int layout, atn_context *context,
                              int64_t *count);

#endif
