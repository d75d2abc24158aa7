/* SPDX-License-Identifier: BSD-3-Clause */
#include "attention_run.h"

#include <stdio.h>
#include <stdlib.h>

#include "data.h"

atn_status attention_expect(const attention_case *c, double *want)
{
    ref_attention_problem problem = attention_case_problem(c);
    atn_status status = ref_attention(&problem, want);
    if (status < 0) {
        fprintf(stderr, "%s: the reference says %s\n", attention_case_label(c),
                atn_status_name(status));
        abort();
    }
    return status;
}

/* ---- Slots ---- */

const char *attention_slot_name(int slot)
{
    static const char *const names[] = {"q", "k", "v"};
    return slot < SLOT_PARAMETERS ? names[slot]
                                  : atn_parameter_name((atn_parameter)(slot - SLOT_PARAMETERS));
}

int64_t attention_slot_count(const attention_case *c, int slot)
{
    int parameter = slot - SLOT_PARAMETERS;
    switch (slot) {
    case SLOT_Q:
        return attention_case_queries(c);
    case SLOT_K:
        return attention_case_keys(c);
    case SLOT_V:
        return attention_case_values(c);
    default:
        return atn_operator_get(c->choice.op)->differentiable & 1u << parameter
                   ? attention_case_parameter(c, (atn_parameter)parameter)
                   : 0;
    }
}

const double *attention_slot_values(const attention_case *c, int slot)
{
    const double *const inputs[] = {c->q, c->k, c->v};
    atn_attention_desc desc = c->reference;
    return slot < SLOT_PARAMETERS
               ? inputs[slot]
               : atn_attention_parameter(&desc, (atn_parameter)(slot - SLOT_PARAMETERS))->data;
}

attention_slots attention_slots_make(const attention_case *c)
{
    attention_slots slots = {{NULL}};
    for (int s = 0; s < SLOT_COUNT; s++)
        if (attention_slot_count(c, s) > 0)
            slots.of[s] = data_allocate(attention_slot_count(c, s));
    return slots;
}

void attention_slots_free(attention_slots *slots)
{
    for (int s = 0; s < SLOT_COUNT; s++)
        free(slots->of[s]);
    *slots = (attention_slots){{NULL}};
}

ref_attention_arrays attention_slots_arrays(const attention_slots *slots)
{
    ref_attention_arrays arrays = {slots->of[SLOT_Q], slots->of[SLOT_K], slots->of[SLOT_V], {NULL}};
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        arrays.parameters[p] = slots->of[SLOT_PARAMETERS + p];
    return arrays;
}

attention_slots attention_expect_gradients(const attention_case *c)
{
    ref_attention_problem problem = attention_case_problem(c);
    attention_slots want = attention_slots_make(c);
    ref_attention_arrays arrays = attention_slots_arrays(&want);
    atn_status status = ref_attention_gradient(&problem, c->dout, &arrays);
    if (status < 0) {
        fprintf(stderr, "%s: the reference's gradient says %s\n", attention_case_label(c),
                atn_status_name(status));
        abort();
    }
    return want;
}

/* ---- Runs ---- */

/* A tensor in the layout that is next in turn. */
static guarded next_tensor(const attention_case *c, int *turn, int64_t rows, int64_t cols)
{
    guarded_layout layout = (guarded_layout)((*turn)++ % GUARDED_LAYOUT_COUNT);
    return guarded_make(c->choice.dtype, layout, c->shape.batch, c->shape.heads, rows, cols);
}

attention_run attention_run_make(const attention_case *c, int layout)
{
    const atn_attention_shape *s = &c->shape;
    attention_run r = {.c = c};
    int turn = layout;
    r.q = next_tensor(c, &turn, s->tokens, s->dim);
    r.k = next_tensor(c, &turn, s->key_tokens, s->dim);
    r.v = next_tensor(c, &turn, s->key_tokens, s->value_dim);
    turn += layout; /* so that out and q do not always agree */
    r.out = next_tensor(c, &turn, s->tokens, s->value_dim);
    r.dout = next_tensor(c, &turn, s->tokens, s->value_dim);
    r.gradients[SLOT_Q] = next_tensor(c, &turn, s->tokens, s->dim);
    if (c->choice.cross)
        r.gradients[SLOT_K] = next_tensor(c, &turn, s->key_tokens, s->dim);
    r.gradients[SLOT_V] = next_tensor(c, &turn, s->key_tokens, s->value_dim);
    atn_attention_desc desc = c->desc;
    for (int i = SLOT_PARAMETERS; i < SLOT_COUNT; i++) {
        const atn_tensor *t = atn_attention_parameter(&desc, (atn_parameter)(i - SLOT_PARAMETERS));
        if (attention_slot_count(c, i) > 0)
            r.gradients[i] =
                guarded_make(c->choice.dtype, GUARDED_DENSE, 1, t->heads, t->rows, t->cols);
    }
    attention_run_load(&r);
    return r;
}

void attention_run_free(attention_run *r)
{
    guarded *const all[] = {&r->q, &r->k, &r->v, &r->out, &r->dout};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        guarded_free(all[i]);
    for (int i = 0; i < SLOT_COUNT; i++)
        guarded_free(&r->gradients[i]);
}

void attention_run_load(attention_run *r)
{
    guarded_set(&r->q, r->c->q);
    if (r->c->k)
        guarded_set(&r->k, r->c->k);
    guarded_set(&r->v, r->c->v);
    guarded_set(&r->dout, r->c->dout);
}

atn_attention_inputs attention_run_inputs(const attention_run *r)
{
    return (atn_attention_inputs){&r->q.view, r->c->choice.cross ? &r->k.view : NULL, &r->v.view,
                                  r->c->query_mask, r->c->key_mask};
}

static atn_tensor *gradient_view(attention_run *r, int slot)
{
    return r->gradients[slot].memory ? &r->gradients[slot].view : NULL;
}

atn_gradients attention_run_gradients(attention_run *r)
{
    atn_gradients g = {.q = gradient_view(r, SLOT_Q),
                       .v = gradient_view(r, SLOT_V),
                       .k = gradient_view(r, SLOT_K)};
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        g.parameters[p] = gradient_view(r, SLOT_PARAMETERS + p);
    return g;
}

static void poison_gradients(attention_run *r)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        if (r->gradients[i].memory)
            guarded_poison(&r->gradients[i]);
}

static void place_gradients(attention_run *r, attention_placed *p)
{
    atn_tensor *all[SLOT_COUNT];
    for (int i = 0; i < SLOT_COUNT; i++)
        all[i] = staged_output(&p->s, &r->gradients[i], &p->gradient_views[i]);
    p->gradients = (atn_gradients){.q = all[SLOT_Q], .v = all[SLOT_V], .k = all[SLOT_K]};
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++)
        p->gradients.parameters[i] = all[SLOT_PARAMETERS + i];
}

void attention_run_place(attention_run *r, atn_context *context, attention_placed *p)
{
    const atn_attention_shape *shape = &r->c->shape;
    *p = (attention_placed){.s = staged_open(context)};
    p->desc = staged_desc(&p->s, &r->c->desc, shape);
    p->inputs.q = staged_input(&p->s, &r->q, &p->q);
    p->inputs.k = r->c->choice.cross ? staged_input(&p->s, &r->k, &p->k) : NULL;
    p->inputs.v = staged_input(&p->s, &r->v, &p->v);
    p->inputs.query_mask =
        staged_bytes(&p->s, r->c->query_mask, (size_t)(shape->batch * shape->tokens));
    p->inputs.key_mask =
        staged_bytes(&p->s, r->c->key_mask, (size_t)(shape->batch * shape->key_tokens));
    staged_input(&p->s, &r->dout, &p->dout);
    staged_output(&p->s, &r->out, &p->out);
    place_gradients(r, p);
}

void attention_placed_close(attention_placed *p)
{
    staged_close(&p->s);
}

atn_status attention_run_forward(attention_run *r, atn_context *context)
{
    atn_plan *plan;
    attention_placed p;
    guarded_poison(&r->out);
    attention_run_place(r, context, &p);
    atn_status status = atn_attention_plan(context, &p.desc, &r->c->shape, &plan);
    if (status == ATN_OK)
        status = atn_attention_forward(plan, &p.inputs, &p.out, &r->info);
    atn_plan_free(plan);
    attention_placed_close(&p);
    return status;
}

atn_status attention_run_backward(attention_run *r, atn_context *context)
{
    atn_plan *plan;
    attention_placed p;
    poison_gradients(r);
    attention_run_place(r, context, &p);
    atn_status status = atn_attention_plan(context, &p.desc, &r->c->shape, &plan);
    if (status == ATN_OK)
        status = atn_attention_backward(plan, &p.inputs, &p.dout, &p.gradients, &r->info);
    atn_plan_free(plan);
    attention_placed_close(&p);
    return status;
}

atn_status attention_run_training(attention_run *r, atn_context *context, bool give_y)
{
    atn_plan *plan;
    attention_placed p;
    guarded_poison(&r->out);
    poison_gradients(r);
    attention_run_place(r, context, &p);
    p.gradients.after_forward = true;
    p.gradients.y = give_y ? &p.out : NULL;
    atn_status status = atn_attention_plan(context, &p.desc, &r->c->shape, &plan);
    if (status == ATN_OK)
        status = atn_attention_forward(plan, &p.inputs, &p.out, &r->info);
    if (status >= 0)
        status = atn_attention_backward(plan, &p.inputs, &p.dout, &p.gradients, &r->info);
    atn_plan_free(plan);
    attention_placed_close(&p);
    return status;
}

bool attention_run_clean(const attention_run *r, bool backward)
{
    if (!backward)
        return guarded_unwritten(&r->out) == 0 && guarded_damaged(&r->out) == 0;
    bool clean = true;
    for (int i = 0; i < SLOT_COUNT; i++)
        if (r->gradients[i].memory)
            clean = clean && guarded_unwritten(&r->gradients[i]) == 0 &&
                    guarded_damaged(&r->gradients[i]) == 0;
    return clean;
}

attention_slots attention_run_slots(const attention_run *r)
{
    attention_slots slots = attention_slots_make(r->c);
    for (int i = 0; i < SLOT_COUNT; i++)
        if (slots.of[i])
            guarded_get(&r->gradients[i], slots.of[i]);
    return slots;
}

double *attention_run_results(const attention_case *c, int layout, atn_context *context,
                              int64_t *count)
{
    attention_run forward = attention_run_make(c, layout), backward = attention_run_make(c, layout);
    int64_t outputs = attention_case_outputs(c);
    *count = outputs;
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        *count += attention_slot_count(c, slot);
    double *all = data_allocate(*count), *next = all + outputs;
    if (attention_run_forward(&forward, context) < 0 ||
        attention_run_backward(&backward, context) < 0) {
        fprintf(stderr, "%s: %s\n", attention_case_label(c), atn_last_error(context));
        abort();
    }
    guarded_get(&forward.out, all);
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (backward.gradients[slot].memory) {
            guarded_get(&backward.gradients[slot], next);
            next += attention_slot_count(c, slot);
        }
    if (next != all + *count) {
        fprintf(stderr, "%s: slots and gradients do not match\n", attention_case_label(c));
        abort();
    }
    attention_run_free(&backward);
    attention_run_free(&forward);
    return all;
}
