/* SPDX-License-Identifier: BSD-3-Clause */
/* The arrays that a description points to and the masks of a call: values that change after the
 * plan was made, and outputs that overlap them. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_run.h"
#include "data.h"
#include "fixture.h"

/* ---- Values are checked where they are read ---- */

static attention_case soft_case(atn_operator op, atn_sampling_kind sampling)
{
    attention_choice choice = {.op = op,
                               .dtype = ATN_F64,
                               .shape = {2, 2, 36, 5, 3, 0},
                               .sampling = sampling,
                               .landmarks = 6,
                               .seed = 71};
    return attention_case_make(&choice);
}

static bool backward_untouched(const attention_run *r)
{
    for (int s = 0; s < SLOT_COUNT; s++)
        if (r->gradients[s].memory &&
            guarded_unwritten(&r->gradients[s]) != attention_slot_count(r->c, s))
            return false;
    return true;
}

/* Both calls of a plan that was made while the description was right. */
static void check_changed(atn_context *context, attention_run *r, atn_plan *plan, bool right,
                          double value)
{
    atn_attention_inputs inputs = attention_run_inputs(r);
    atn_gradients gradients = attention_run_gradients(r);
    guarded_poison(&r->out);
    atn_status status = atn_attention_forward(plan, &inputs, &r->out.view, NULL);
    cr_expect(right ? status >= 0
                    : status == ATN_ERR_VALUE && *atn_last_error(context) &&
                          guarded_unwritten(&r->out) == attention_case_outputs(r->c),
              "%s, %g: forward %s (%s)", attention_case_label(r->c), value, atn_status_name(status),
              atn_last_error(context));
    for (int s = 0; s < SLOT_COUNT; s++)
        if (r->gradients[s].memory)
            guarded_poison(&r->gradients[s]);
    status = atn_attention_backward(plan, &inputs, &r->dout.view, &gradients, NULL);
    cr_expect(right ? status >= 0 : status == ATN_ERR_VALUE && backward_untouched(r),
              "%s, %g: backward %s (%s), gradients %s", attention_case_label(r->c), value,
              atn_status_name(status), atn_last_error(context),
              backward_untouched(r) ? "untouched" : "written");
}

/* On CUDA they would have to be copied back: there they are checked only when the plan is made. */
static atn_context *cpu_context(void)
{
    atn_context *context;
    cr_assert_eq(atn_context_create(&(atn_context_options){.threads = 1}, &context), ATN_OK);
    return context;
}

Test(arrays, changed_indices_are_refused)
{
    static const int64_t bad[] = {400, -7, 36, -1, INT64_MAX, INT64_MIN};
    atn_context *context = cpu_context();
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++) {
        attention_case c = soft_case((atn_operator)op, ATN_SAMPLING_INDICES);
        int64_t m = c.desc.sampling.count, *indices = malloc((size_t)m * sizeof *indices);
        memcpy(indices, c.desc.sampling.indices, (size_t)m * sizeof *indices);
        c.desc.sampling.indices = indices;
        attention_run r = attention_run_make(&c, 0);
        atn_plan *plan;
        cr_assert_eq(atn_attention_plan(context, &c.desc, &c.shape, &plan), ATN_OK);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            for (int64_t at = 0; at < m; at += m - 1) {
                int64_t kept = indices[at];
                indices[at] = bad[i];
                check_changed(context, &r, plan, false, (double)bad[i]);
                indices[at] = kept;
            }
        indices[m - 1] = 35;
        check_changed(context, &r, plan, true, 35);
        atn_plan_free(plan);
        attention_run_free(&r);
        attention_case_free(&c);
        free(indices);
    }
    atn_context_free(context);
}

Test(arrays, changed_uniforms_are_refused)
{
    static const atn_sampling_kind kinds[] = {ATN_SAMPLING_KMEANS, ATN_SAMPLING_LEVERAGE,
                                              ATN_SAMPLING_RPCHOLESKY};
    static const double bad[] = {1, -0x1p-60, NAN, INFINITY};
    atn_context *context = cpu_context();
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        attention_case c = soft_case(ATN_SOFT, kinds[kind]);
        int64_t m = c.desc.sampling.count, read = kinds[kind] == ATN_SAMPLING_LEVERAGE ? 2 * m : m;
        double *uniforms = data_allocate(read + 1);
        memcpy(uniforms, c.desc.sampling.uniforms, (size_t)read * sizeof *uniforms);
        uniforms[read] = 7; /* one more than it takes, which may be anything */
        c.desc.sampling.uniforms = uniforms;
        c.desc.sampling.uniform_count = read + 1;
        attention_run r = attention_run_make(&c, 0);
        atn_plan *plan;
        cr_assert_eq(atn_attention_plan(context, &c.desc, &c.shape, &plan), ATN_OK);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            double kept = uniforms[read - 1];
            uniforms[read - 1] = bad[i];
            check_changed(context, &r, plan, false, bad[i]);
            uniforms[read - 1] = kept;
        }
        uniforms[read - 1] = 1 - 0x1p-53;
        check_changed(context, &r, plan, true, 1 - 0x1p-53);
        atn_plan_free(plan);
        attention_run_free(&r);
        attention_case_free(&c);
        free(uniforms);
    }
    atn_context_free(context);
}

/* ---- Outputs stay apart from what is read ---- */

/* An array that a call may read. */
typedef struct {
    const char *name;
    void *memory;
    size_t bytes;
} array;

enum { MOST_ARRAYS = 12 };

static void add_tensor(array *all, int *count, const char *name, const atn_tensor *t)
{
    if (t->data)
        all[(*count)++] =
            (array){name, t->data,
                    (size_t)(t->batch * t->heads * t->rows * t->cols) * atn_dtype_size(t->dtype)};
}

/* The arrays that the case's operator reads in addition to q, k, v and dout, from operators.h. */
static int list_read(const attention_case *c, array all[MOST_ARRAYS])
{
    const atn_attention_desc *d = &c->desc;
    const atn_sampling *s = &d->sampling;
    bool soft = d->op == ATN_SOFT || d->op == ATN_SOFTPP;
    int count = 0;
    if (soft && (s->kind == ATN_SAMPLING_CONV || s->kind == ATN_SAMPLING_CONV_CODE))
        add_tensor(all, &count, "weights", &s->weights);
    if (soft && s->kind == ATN_SAMPLING_CONV_CODE) {
        add_tensor(all, &count, "norm_weight", &s->norm_weight);
        add_tensor(all, &count, "norm_bias", &s->norm_bias);
    }
    if (soft && s->kind == ATN_SAMPLING_INDICES)
        all[count++] = (array){"indices", (void *)(uintptr_t)s->indices, (size_t)s->count * 8};
    if (soft && s->kind == ATN_SAMPLING_KMEANS)
        all[count++] = (array){"uniforms", (void *)(uintptr_t)s->uniforms, (size_t)s->count * 8};
    if (soft && s->kind == ATN_SAMPLING_LEVERAGE)
        all[count++] = (array){"uniforms", (void *)(uintptr_t)s->uniforms, (size_t)s->count * 16};
    if (soft || d->op == ATN_NYSTROMFORMER)
        add_tensor(all, &count, "residual", &d->residual);
    if (d->op == ATN_XNORM)
        add_tensor(all, &count, "gamma", &d->xnorm.gamma);
    if (d->op == ATN_XCA)
        add_tensor(all, &count, "temperature", &d->xca.temperature);
    if (d->op == ATN_LINFORMER) {
        add_tensor(all, &count, "e", &d->linformer.e);
        add_tensor(all, &count, "f", &d->linformer.f);
    }
    if (d->op == ATN_PERFORMER)
        add_tensor(all, &count, "performer.projection", &d->performer.projection);
    if (d->op == ATN_RFF)
        add_tensor(all, &count, "rff.projection", &d->rff.projection);
    if (d->op == ATN_LSH && d->lsh.buckets)
        all[count++] = (array){
            "buckets", (void *)(uintptr_t)d->lsh.buckets,
            (size_t)(c->shape.batch * c->shape.heads * d->lsh.rounds * c->shape.tokens * 8)};
    else if (d->op == ATN_LSH)
        add_tensor(all, &count, "rotations", &d->lsh.rotations);
    if (c->choice.padding) {
        all[count++] =
            (array){"key_mask", c->key_mask, (size_t)(c->shape.batch * c->shape.key_tokens)};
        if (c->query_mask)
            all[count++] =
                (array){"query_mask", c->query_mask, (size_t)(c->shape.batch * c->shape.tokens)};
    }
    return count;
}

/* A view that starts at the last element that ends within the array. */
static atn_tensor over_the_end(const atn_tensor *view, const array *a)
{
    atn_tensor moved = *view;
    size_t size = atn_dtype_size(view->dtype);
    uintptr_t end = (uintptr_t)a->memory + a->bytes;
    moved.data = (void *)((end - 1) / size * size);
    return moved;
}

static void expect_alias(atn_status status, atn_context *context, const attention_case *c,
                         const char *what, const array *a, const unsigned char *before)
{
    cr_expect(status == ATN_ERR_ALIAS && *atn_last_error(context) &&
                  memcmp(a->memory, before, a->bytes) == 0,
              "%s, %s over %s: %s (%s)%s", attention_case_label(c), what, a->name,
              atn_status_name(status), atn_last_error(context),
              memcmp(a->memory, before, a->bytes) == 0 ? "" : ", and it is written");
}

static void check_overlaps(atn_context *context, attention_run *r, atn_plan *plan, const array *a)
{
    unsigned char *before = malloc(a->bytes);
    memcpy(before, a->memory, a->bytes);
    atn_attention_inputs inputs = attention_run_inputs(r);
    atn_tensor out = over_the_end(&r->out.view, a);
    expect_alias(atn_attention_forward(plan, &inputs, &out, NULL), context, r->c, "Y", a, before);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!r->gradients[slot].memory)
            continue;
        atn_tensor moved = over_the_end(&r->gradients[slot].view, a);
        atn_gradients g = attention_run_gradients(r);
        if (slot == SLOT_Q)
            g.q = &moved;
        else if (slot == SLOT_K)
            g.k = &moved;
        else if (slot == SLOT_V)
            g.v = &moved;
        else
            g.parameters[slot - SLOT_PARAMETERS] = &moved;
        expect_alias(atn_attention_backward(plan, &inputs, &r->dout.view, &g, NULL), context, r->c,
                     attention_slot_name(slot), a, before);
    }
    free(before);
}

/* Tensors that the operator reads unless they are null. */
static bool may_be_null(atn_operator op, const atn_attention_desc *desc, const atn_tensor *t)
{
    return (op == ATN_NYSTROMFORMER && t == &desc->residual) ||
           (op == ATN_XNORM && t == &desc->xnorm.gamma) ||
           (op == ATN_XCA && t == &desc->xca.temperature) ||
           (op == ATN_LINFORMER && t == &desc->linformer.f);
}

/* Neither the arrays of other operators nor those of other samplings are read: here all of them
 * share the memory of Y, and contain its numbers after the call. */
static void check_unread(atn_context *context, attention_run *r)
{
    attention_case *c = (attention_case *)(uintptr_t)r->c;
    array all[MOST_ARRAYS];
    atn_attention_desc desc = c->desc;
    atn_tensor stray = atn_tensor_dense(r->out.view.data, ATN_F64, 1, 1, 1, 1);
    atn_tensor *const tensors[] = {
        &desc.sampling.weights, &desc.sampling.norm_weight, &desc.sampling.norm_bias,
        &desc.residual,         &desc.xnorm.gamma,          &desc.linformer.e,
        &desc.linformer.f,      &desc.performer.projection, &desc.rff.projection,
        &desc.xca.temperature,  &desc.lsh.rotations};
    int count = list_read(c, all);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        bool read = false;
        for (int j = 0; j < count; j++)
            read |= tensors[i]->data == all[j].memory;
        if (!read && !may_be_null(desc.op, &desc, tensors[i]))
            *tensors[i] = stray;
    }
    if (desc.op != ATN_SOFT && desc.op != ATN_SOFTPP) {
        desc.sampling.indices = r->out.view.data, desc.sampling.count = 1;
        desc.sampling.uniforms = r->out.view.data, desc.sampling.uniform_count = 1;
    }
    if (desc.op != ATN_LSH)
        desc.lsh.buckets = r->out.view.data, desc.lsh.rounds = 1;
    atn_plan *plan;
    cr_assert_eq(atn_attention_plan(context, &desc, &c->shape, &plan), ATN_OK, "%s: %s",
                 attention_case_label(c), atn_last_error(context));
    atn_attention_inputs inputs = attention_run_inputs(r);
    atn_status status = atn_attention_forward(plan, &inputs, &r->out.view, NULL);
    cr_expect_geq((int)status, 0, "%s, over arrays that nobody reads: %s (%s)",
                  attention_case_label(c), atn_status_name(status), atn_last_error(context));
    atn_plan_free(plan);
}

Test(arrays, outputs_overlap_nothing_that_is_read)
{
    static const atn_sampling_kind samplings[] = {ATN_SAMPLING_CONV_CODE, ATN_SAMPLING_INDICES,
                                                  ATN_SAMPLING_KMEANS, ATN_SAMPLING_LEVERAGE,
                                                  ATN_SAMPLING_FIRST};
    atn_context *context = cpu_context();
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        bool soft = op == ATN_SOFT || op == ATN_SOFTPP;
        for (size_t i = 0; i < (soft ? sizeof samplings / sizeof *samplings : 2); i++) {
            attention_choice choice = {.op = (atn_operator)op,
                                       .dtype = ATN_F64,
                                       .shape = {2, 2, 16, 4, 4, 0},
                                       .cross = true,
                                       .padding = true,
                                       .optional = soft || i == 0,
                                       .sampling = samplings[i],
                                       .seed = 72};
            attention_case c = attention_case_make(&choice);
            attention_run r = attention_run_make(&c, 0);
            array all[MOST_ARRAYS];
            atn_plan *plan;
            cr_assert_eq(atn_attention_plan(context, &c.desc, &c.shape, &plan), ATN_OK, "%s: %s",
                         attention_case_label(&c), atn_last_error(context));
            for (int j = list_read(&c, all); j-- > 0;)
                check_overlaps(context, &r, plan, &all[j]);
            atn_plan_free(plan);
            check_unread(context, &r);
            attention_run_free(&r);
            attention_case_free(&c);
        }
    }
    atn_context_free(context);
}

/* Landmarks that overlap arrays which their sampling reads, and arrays which it does not read. */
Test(arrays, landmarks_overlap_nothing_that_is_read)
{
    enum { N = 12, D = 4, M = 3 };
    static double q[N * D], landmarks[M * D];
    atn_context *context = cpu_context();
    atn_tensor tq = atn_tensor_dense(q, ATN_F64, 1, 1, N, D);
    atn_tensor out = atn_tensor_dense(landmarks, ATN_F64, 1, 1, M, D);
    atn_sampling s = {.kind = ATN_SAMPLING_INDICES,
                      .count = M,
                      .indices = (const int64_t *)(const void *)landmarks};
    cr_expect_eq(atn_sample(context, &s, &tq, &out), ATN_ERR_ALIAS, "%s", atn_last_error(context));
    s.kind = ATN_SAMPLING_FIRST;
    cr_expect_eq(atn_sample(context, &s, &tq, &out), ATN_OK, "%s", atn_last_error(context));
    memset(landmarks, 0, sizeof landmarks);
    s = (atn_sampling){
        .kind = ATN_SAMPLING_KMEANS, .count = M, .uniforms = landmarks, .uniform_count = M};
    cr_expect_eq(atn_sample(context, &s, &tq, &out), ATN_ERR_ALIAS, "%s", atn_last_error(context));
    atn_context_free(context);
}
