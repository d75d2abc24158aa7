/* SPDX-License-Identifier: BSD-3-Clause */
/* What a backward call is refused for, with which status; its outputs are then untouched. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "attention_run.h"
#include "fixture.h"

enum { T_Q, T_K, T_V, T_DOUT, T_GRAD_Q, T_GRAD_K, T_GRAD_V, T_COUNT };

/* What is made wrong about a tensor; PLACE: it gets the memory of tensor `amount`. */
typedef enum { GONE, NO_DATA, PLACE, BATCH, HEADS, ROWS, COLS, DTYPE, STRIDE } fault_kind;

static const struct {
    const char *what;
    int tensor;
    fault_kind fault;
    int amount;
    atn_status status;
} faults[] = {
    {"no q", T_Q, GONE, 0, ATN_ERR_NULL},
    {"no v", T_V, GONE, 0, ATN_ERR_NULL},
    {"no dY", T_DOUT, GONE, 0, ATN_ERR_NULL},
    {"no gradient of q", T_GRAD_Q, GONE, 0, ATN_ERR_NULL},
    {"no gradient of k", T_GRAD_K, GONE, 0, ATN_ERR_NULL},
    {"no gradient of v", T_GRAD_V, GONE, 0, ATN_ERR_NULL},
    {"a gradient of k without k", T_K, GONE, 0, ATN_ERR_VALUE},
    {"null data of dY", T_DOUT, NO_DATA, 0, ATN_ERR_NULL},
    {"null data of the gradient of v", T_GRAD_V, NO_DATA, 0, ATN_ERR_NULL},
    {"the gradient of q over q", T_GRAD_Q, PLACE, T_Q, ATN_ERR_ALIAS},
    {"the gradient of q over dY", T_GRAD_Q, PLACE, T_DOUT, ATN_ERR_ALIAS},
    {"the gradient of k over q", T_GRAD_K, PLACE, T_Q, ATN_ERR_ALIAS},
    {"the gradient of k over that of q", T_GRAD_K, PLACE, T_GRAD_Q, ATN_ERR_ALIAS},
    {"the gradient of v over v", T_GRAD_V, PLACE, T_V, ATN_ERR_ALIAS},
    {"the gradient of v over that of q", T_GRAD_V, PLACE, T_GRAD_Q, ATN_ERR_ALIAS},
    {"another batch of dY", T_DOUT, BATCH, -1, ATN_ERR_SHAPE},
    {"other heads of the gradient of q", T_GRAD_Q, HEADS, -1, ATN_ERR_SHAPE},
    {"fewer rows of the gradient of k", T_GRAD_K, ROWS, -1, ATN_ERR_SHAPE},
    {"fewer columns of the gradient of v", T_GRAD_V, COLS, -1, ATN_ERR_SHAPE},
    {"fewer rows of k", T_K, ROWS, -1, ATN_ERR_SHAPE},
    {"f32 for dY", T_DOUT, DTYPE, ATN_F32, ATN_ERR_DTYPE},
    {"f32 for the gradient of q", T_GRAD_Q, DTYPE, ATN_F32, ATN_ERR_DTYPE},
    {"rows of the gradient of q that overlap", T_GRAD_Q, STRIDE, -1, ATN_ERR_STRIDE},
    {"rows of dY that overlap", T_DOUT, STRIDE, -1, ATN_ERR_STRIDE},
};

/* A right call; views of what the run holds. */
typedef struct {
    attention_run *run;
    atn_plan *plan;
    atn_tensor views[T_COUNT];
    bool gone[T_COUNT];
    int also; /* a parameter's slot whose gradient is asked for, too; 0: none */
} valid_call;

static valid_call right_call(attention_run *r, atn_plan *plan)
{
    const guarded *const all[] = {&r->q,
                                  &r->k,
                                  &r->v,
                                  &r->dout,
                                  &r->gradients[SLOT_Q],
                                  &r->gradients[SLOT_K],
                                  &r->gradients[SLOT_V]};
    valid_call c = {.run = r, .plan = plan};
    for (int i = 0; i < T_COUNT; i++)
        c.views[i] = all[i]->view;
    c.gone[T_K] = c.gone[T_GRAD_K] = !r->c->choice.cross;
    return c;
}

static void make_wrong(valid_call *c, int tensor, fault_kind fault, int amount)
{
    atn_tensor *t = &c->views[tensor];
    switch (fault) {
    case GONE:
        c->gone[tensor] = true;
        break;
    case NO_DATA:
        t->data = NULL;
        break;
    case PLACE:
        t->data = c->views[amount].data;
        break;
    case BATCH:
        t->batch += amount;
        break;
    case HEADS:
        t->heads += amount;
        break;
    case ROWS:
        t->rows += amount;
        break;
    case COLS:
        t->cols += amount;
        break;
    case DTYPE:
        t->dtype = (atn_dtype)amount;
        break;
    case STRIDE:
        t->row_stride = t->cols + amount;
        break;
    }
}

static atn_tensor *view(valid_call *c, int tensor)
{
    return c->gone[tensor] ? NULL : &c->views[tensor];
}

static void poison_gradients(attention_run *r)
{
    for (int s = 0; s < SLOT_COUNT; s++)
        if (r->gradients[s].memory)
            guarded_poison(&r->gradients[s]);
}

static bool untouched(const attention_run *r)
{
    for (int s = 0; s < SLOT_COUNT; s++)
        if (r->gradients[s].memory &&
            (guarded_unwritten(&r->gradients[s]) != attention_slot_count(r->c, s) ||
             guarded_damaged(&r->gradients[s]) != 0))
            return false;
    return true;
}

/* Makes the call. slot: 0, or the parameter whose gradient is asked for. */
static void expect(atn_context *context, valid_call *c, atn_status status, const char *what,
                   int slot, atn_tensor *gradient)
{
    atn_attention_inputs inputs = {.q = view(c, T_Q), .k = view(c, T_K), .v = view(c, T_V)};
    atn_gradients g = {.q = view(c, T_GRAD_Q), .k = view(c, T_GRAD_K), .v = view(c, T_GRAD_V)};
    if (slot)
        g.parameters[slot - SLOT_PARAMETERS] = gradient;
    if (c->also)
        g.parameters[c->also - SLOT_PARAMETERS] = &c->run->gradients[c->also].view;
    poison_gradients(c->run);
    atn_status got = atn_attention_backward(c->plan, &inputs, view(c, T_DOUT), &g, NULL);
    bool right = status == ATN_OK ? got >= 0 && got != ATN_NONFINITE /* or ATN_NOT_CONVERGED */
                                  : got == status && untouched(c->run) && *atn_last_error(context);
    cr_expect(right, "%s, %s: %s, expected %s (%s), gradients %s", attention_case_label(c->run->c),
              what, atn_status_name(got), atn_status_name(status), atn_last_error(context),
              untouched(c->run) ? "untouched" : "written");
}

static void check_arguments(atn_context *context, attention_run *r, atn_plan *plan)
{
    bool cross = r->c->choice.cross;
    atn_attention_inputs inputs = attention_run_inputs(r);
    atn_gradients gradients = attention_run_gradients(r);
    valid_call right = right_call(r, plan);
    expect(context, &right, ATN_OK, "nothing wrong", 0, NULL);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        valid_call wrong = right_call(r, plan);
        bool needs_k = faults[i].tensor == T_K || faults[i].tensor == T_GRAD_K;
        make_wrong(&wrong, faults[i].tensor, faults[i].fault, faults[i].amount);
        if (cross || !needs_k)
            expect(context, &wrong, faults[i].status, faults[i].what, 0, NULL);
    }
    poison_gradients(r);
    cr_expect_eq(atn_attention_backward(NULL, &inputs, &r->dout.view, &gradients, NULL),
                 ATN_ERR_NULL);
    cr_expect_eq(atn_attention_backward(plan, NULL, &r->dout.view, &gradients, NULL), ATN_ERR_NULL);
    cr_expect_eq(atn_attention_backward(plan, &inputs, &r->dout.view, NULL, NULL), ATN_ERR_NULL);
    cr_expect(untouched(r), "%s: null arguments, but gradients", attention_case_label(r->c));
}

/* Every parameter: right, wrong, or not one of this operator's or this description's. */
static void check_parameters(atn_context *context, attention_run *r, atn_plan *plan)
{
    const atn_operator_info *info = atn_operator_get(r->c->choice.op);
    atn_attention_desc desc = r->c->desc;
    double stray[4];
    atn_tensor none = atn_tensor_dense(stray, ATN_F64, 1, 1, 2, 2);
    for (int slot = SLOT_PARAMETERS; slot < SLOT_COUNT; slot++) {
        int p = slot - SLOT_PARAMETERS;
        valid_call c = right_call(r, plan);
        bool differentiable = info->differentiable & 1u << p;
        if (!r->gradients[slot].memory) {
            expect(context, &c, ATN_ERR_UNSUPPORTED,
                   differentiable ? "a parameter that is not given" : "not its parameter", slot,
                   &none);
            continue;
        }
        atn_tensor t = r->gradients[slot].view, wrong = t;
        expect(context, &c, ATN_OK, "a parameter", slot, &t);
        wrong.rows++, wrong.head_stride += wrong.row_stride;
        wrong.batch_stride = wrong.heads * wrong.head_stride;
        expect(context, &c, ATN_ERR_SHAPE, "too many rows of a parameter", slot, &wrong);
        wrong = t, wrong.dtype = ATN_F32;
        expect(context, &c, ATN_ERR_DTYPE, "f32 for a parameter", slot, &wrong);
        wrong = t, wrong.data = NULL;
        expect(context, &c, ATN_ERR_NULL, "null data of a parameter", slot, &wrong);
        wrong = t, wrong.data = c.views[T_GRAD_Q].data;
        expect(context, &c, ATN_ERR_ALIAS, "a parameter's gradient over that of q", slot, &wrong);
        wrong = t, wrong.data = c.views[T_V].data;
        expect(context, &c, ATN_ERR_ALIAS, "a parameter's gradient over v", slot, &wrong);
        wrong = t, wrong.data = atn_attention_parameter(&desc, (atn_parameter)p)->data;
        expect(context, &c, ATN_ERR_ALIAS, "a parameter's gradient over it", slot, &wrong);
        for (c.also = SLOT_PARAMETERS; c.also < slot; c.also++) {
            wrong = t, wrong.data = r->gradients[c.also].view.data;
            if (r->gradients[c.also].memory)
                expect(context, &c, ATN_ERR_ALIAS, "a parameter's gradient over another's", slot,
                       &wrong);
        }
    }
}

static void check_narrow(atn_context *context, int op)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .dtype = ATN_F32,
                               .shape = {1, 1, 6, 4, 4, 0},
                               .sampling = ATN_SAMPLING_FIRST,
                               .seed = 70};
    attention_case c = attention_case_make(&choice);
    c.desc.storage = ATN_STORAGE_BF16;
    attention_run r = attention_run_make(&c, 0);
    atn_status status = attention_run_backward(&r, context);
    cr_expect(status == ATN_ERR_UNSUPPORTED && untouched(&r), "%s in bf16: %s",
              attention_case_label(&c), atn_status_name(status));
    attention_run_free(&r);
    attention_case_free(&c);
}

/* Fields that a sampling does not name may hold anything, and have no gradient. */
Test(statuses, of_parameters_that_the_sampling_ignores)
{
    static const atn_sampling_kind kinds[] = {ATN_SAMPLING_FIRST, ATN_SAMPLING_POOL,
                                              ATN_SAMPLING_CONV};
    atn_context *context = fixture_context(1, NULL);
    double number = 1;
    atn_tensor small = atn_tensor_dense(&number, ATN_F64, 1, 1, 1, 1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        attention_choice choice = {.op = ATN_SOFT,
                                   .dtype = ATN_F64,
                                   .shape = {1, 1, 16, 4, 4, 0},
                                   .sampling = kinds[i],
                                   .seed = 71};
        attention_case c = attention_case_make(&choice);
        int first = kinds[i] == ATN_SAMPLING_CONV ? ATN_PARAMETER_NORM_WEIGHT : ATN_PARAMETER_CONV;
        for (int p = first; p <= ATN_PARAMETER_NORM_BIAS; p++)
            *atn_attention_parameter(&c.desc, (atn_parameter)p) = small;
        attention_run r = attention_run_make(&c, 0);
        atn_plan *plan;
        cr_assert_eq(atn_attention_plan(context, &c.desc, &c.shape, &plan), ATN_OK, "%s",
                     atn_last_error(context));
        valid_call call = right_call(&r, plan);
        for (int p = first; p <= ATN_PARAMETER_NORM_BIAS; p++)
            expect(context, &call, ATN_ERR_UNSUPPORTED, "a parameter that is ignored",
                   SLOT_PARAMETERS + p, &small);
        cr_expect_eq(number, 1);
        atn_plan_free(plan);
        attention_run_free(&r);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

Test(statuses, of_backward)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        for (int optional = 0; optional < 2; optional++) {
            attention_choice choice = {.op = (atn_operator)op,
                                       .dtype = ATN_F64,
                                       .shape = {2, 2, 6, 4, 4, 0},
                                       .cross = true,
                                       .optional = optional,
                                       .sampling =
                                           optional ? ATN_SAMPLING_CONV_CODE : ATN_SAMPLING_INDICES,
                                       .seed = 70};
            attention_case c = attention_case_make(&choice);
            attention_run r = attention_run_make(&c, 2);
            atn_plan *plan;
            cr_assert_eq(atn_attention_plan(context, &c.desc, &c.shape, &plan), ATN_OK);
            check_arguments(context, &r, plan);
            check_parameters(context, &r, plan);
            atn_plan_free(plan);
            attention_run_free(&r);
            attention_case_free(&c);
        }
        check_narrow(context, op);
    }
    atn_context_free(context);
}
