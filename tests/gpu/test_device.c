/* SPDX-License-Identifier: BSD-3-Clause */
/* What CUDA's contexts and plans owe their callers, with faults made by the emulator. */
#include <criterion/criterion.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "emulator.h"
#include "fixture.h"

/* A small case of every operator: K given, padding where it can be, every parameter. */
static attention_case make(int op, int variant, atn_dtype dtype, int64_t tokens)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = dtype,
                               .shape = {2, 2, tokens, 5, 3, 0},
                               .cross = true,
                               .padding = true,
                               .optional = true,
                               .sampling = ATN_SAMPLING_WINDOW,
                               .seed = 110};
    return attention_case_make(&choice);
}

/* SOFT++ with more landmarks than a block inverts by itself (inverse/cuda.h). */
static attention_case make_large(atn_dtype dtype)
{
    attention_choice choice = {.op = ATN_SOFTPP,
                               .dtype = dtype,
                               .shape = {2, 2, 80, 5, 3, 0},
                               .sampling = ATN_SAMPLING_FIRST,
                               .landmarks = 70,
                               .seed = 111};
    return attention_case_make(&choice);
}

/* A case on the device, with its plan. */
typedef struct {
    attention_case c;
    attention_run run;
    attention_placed placed;
    atn_plan *plan;
} planned;

/* Not to be moved. */
static void plan_make(planned *p, atn_context *context, attention_case c)
{
    p->c = c;
    p->run = attention_run_make(&p->c, 2);
    attention_run_place(&p->run, context, &p->placed);
    cr_assert_eq(atn_attention_plan(context, &p->placed.desc, &p->c.shape, &p->plan), ATN_OK,
                 "%s: %s", attention_case_label(&p->c), atn_last_error(context));
}

static void plan_drop(planned *p)
{
    atn_plan_free(p->plan);
    attention_placed_close(&p->placed);
    attention_run_free(&p->run);
    attention_case_free(&p->c);
}

static atn_status forward(planned *p, atn_attention_info *info)
{
    return atn_attention_forward(p->plan, &p->placed.inputs, &p->placed.out, info);
}

static atn_status backward(planned *p, atn_attention_info *info)
{
    return atn_attention_backward(p->plan, &p->placed.inputs, &p->placed.dout, &p->placed.gradients,
                                  info);
}

/* ---- What a call does not do ---- */

/* Ends the case. */
static void check_quiet(atn_context *context, attention_case c)
{
    planned p;
    plan_make(&p, context, c);
    emulator_counts before = emulator_counted();
    cr_expect_eq(forward(&p, NULL), ATN_OK, "%s: %s", attention_case_label(&p.c),
                 atn_last_error(context));
    emulator_counts middle = emulator_counted();
    cr_expect_eq(backward(&p, NULL), ATN_OK, "%s: %s", attention_case_label(&p.c),
                 atn_last_error(context));
    emulator_counts after = emulator_counted();
    cr_expect(before.launches < middle.launches && middle.launches < after.launches);
    cr_expect(after.allocations == before.allocations && after.frees == before.frees,
              "%s: %ld allocations, %ld frees", attention_case_label(&p.c),
              (long)(after.allocations - before.allocations), (long)(after.frees - before.frees));
    cr_expect_eq(after.synchronisations, before.synchronisations, "%s waits %ld times",
                 attention_case_label(&p.c),
                 (long)(after.synchronisations - before.synchronisations));
    plan_drop(&p);
}

Test(device, calls_neither_allocate_nor_wait)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int dtype = 0; dtype < ATN_DTYPE_COUNT; dtype++)
            check_quiet(context, make(op, 0, (atn_dtype)dtype, 9));
    atn_context_free(context);
    context = fixture_context(1, NULL); /* whose first products are these */
    check_quiet(context, make_large(ATN_F32));
    atn_context_free(context);
}

/* ---- Memory ---- */

Test(device, plans_without_device_memory)
{
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        atn_context *context = fixture_context(1, NULL);
        attention_case c = make(op, 0, ATN_F64, 9);
        staged s = staged_open(context);
        atn_attention_desc desc = staged_desc(&s, &c.desc, &c.shape);
        size_t live = emulator_counted().live;
        bool made = false;
        int fail;
        for (fail = 1; !made; fail++) {
            atn_plan *plan = (atn_plan *)&plan;
            emulator_fail_allocation(fail);
            atn_status status = atn_attention_plan(context, &desc, &c.shape, &plan);
            made = status == ATN_OK;
            cr_assert(made || (status == ATN_ERR_MEMORY && !plan && fail < 30),
                      "%s, allocation %d: %s", attention_case_label(&c), fail,
                      atn_status_name(status));
            cr_expect(made || strstr(atn_last_error(context), "memory"), "%s",
                      atn_last_error(context));
            emulator_fail_allocation(0);
            atn_plan_free(plan);
            cr_expect_eq(emulator_counted().live, live, "%s, allocation %d: %ld bytes are lost",
                         attention_case_label(&c), fail, (long)(emulator_counted().live - live));
        }
        cr_expect_gt(fail, 2, "%s takes no device memory", attention_case_label(&c));
        staged_close(&s);
        attention_case_free(&c);
        atn_context_free(context);
    }
    cr_expect_eq(emulator_counted().live, 0);
}

/* The host's part of a plan and of a context. */
Test(device, plans_without_host_memory)
{
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        attention_case c = make(op, 0, ATN_F64, 9);
        bool made = false;
        for (int fail = 1; !made; fail++) {
            allocator_counts counts = {0};
            atn_context *context = fixture_context(1, &counts);
            staged s = staged_open(context);
            atn_attention_desc desc = staged_desc(&s, &c.desc, &c.shape);
            atn_plan *plan;
            int64_t live = counts.live;
            counts.fail_at = counts.calls + fail;
            atn_status status = atn_attention_plan(context, &desc, &c.shape, &plan);
            made = status == ATN_OK;
            cr_assert(made || (status == ATN_ERR_MEMORY && !plan && fail < 9),
                      "%s, allocation %d: %s", attention_case_label(&c), fail,
                      atn_status_name(status));
            atn_plan_free(plan);
            staged_close(&s);
            cr_expect_eq(counts.live, live, "%s, allocation %d", attention_case_label(&c), fail);
            atn_context_free(context);
            cr_expect(counts.live == 0 && counts.overruns == 0);
        }
        attention_case_free(&c);
    }
    cr_expect_eq(emulator_counted().live, 0);
}

Test(device, contexts_without_host_memory)
{
    for (int fail = 1; fail < 3; fail++) {
        allocator_counts counts = {.fail_at = fail};
        atn_context_options options = {.device = ATN_CUDA,
                                       .allocator = allocator_counting(&counts)};
        atn_context *context;
        cr_expect_eq(atn_context_create(&options, &context), ATN_ERR_MEMORY, "allocation %d", fail);
        cr_expect(!context && counts.live == 0, "allocation %d", fail);
    }
}

/* As much as foretold, and no more than the device has. */
Test(device, memory_is_as_foretold)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        attention_case c = make(op, 0, ATN_BF16, 300);
        staged s = staged_open(context);
        atn_attention_desc desc = staged_desc(&s, &c.desc, &c.shape);
        size_t live = emulator_counted().live;
        atn_cost cost;
        atn_plan *plan;
        cr_assert_eq(atn_attention_cost(context, &desc, &c.shape, &cost), ATN_OK);
        cr_expect_eq(emulator_counted().live, live, "counting takes memory");
        cr_assert_eq(atn_attention_plan(context, &desc, &c.shape, &plan), ATN_OK);
        cr_expect_eq((double)(emulator_counted().live - live), cost.workspace_bytes, "%s",
                     attention_case_label(&c));
        atn_plan_free(plan);
        emulator_memory(live + (size_t)cost.workspace_bytes - 1);
        cr_expect_eq(atn_attention_plan(context, &desc, &c.shape, &plan), ATN_ERR_MEMORY, "%s",
                     attention_case_label(&c));
        emulator_memory((size_t)1 << 30);
        staged_close(&s);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* ---- A device that fails ---- */

static void expect_failed(atn_context *context, atn_status status, const char *text,
                          const char *what)
{
    cr_expect_eq(status, ATN_ERR_DEVICE, "%s: %s", what, atn_status_name(status));
    cr_expect_str_eq(atn_last_error(context), text, "%s", what);
}

/* Everything that can be called after a failure. */
static void check_failed(atn_context *context, planned *p, void *memory)
{
    char text[256], byte = 0;
    atn_attention_info info = {0};
    atn_plan *plan;
    void *other;
    snprintf(text, sizeof text, "%s", atn_last_error(context));
    cr_expect(strstr(text, "launch failure"), "%s", text);
    expect_failed(context, forward(p, NULL), text, "forward");
    expect_failed(context, forward(p, &info), text, "forward with an info");
    expect_failed(context, backward(p, NULL), text, "backward");
    expect_failed(context, atn_attention_outcome(p->plan, &info), text, "outcome");
    expect_failed(context, atn_synchronise(context), text, "synchronise");
    expect_failed(context, atn_allocate(context, 8, &other), text, "allocate");
    expect_failed(context, atn_upload(context, memory, &byte, 1), text, "upload");
    expect_failed(context, atn_download(context, &byte, memory, 1), text, "download");
    expect_failed(context, atn_attention_plan(context, &p->placed.desc, &p->c.shape, &plan), text,
                  "plan");
    cr_expect_null(plan);
}

/* The k-th launch of a forward or backward call fails, for all k there are. */
Test(device, a_failed_launch_is_told_from_then_on)
{
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int back = 0; back < 2; back++) {
            bool done = false;
            for (int k = 1; !done; k++) {
                atn_context *context = fixture_context(1, NULL);
                planned p;
                void *memory;
                plan_make(&p, context, make(op, 0, ATN_F32, 9));
                cr_assert_eq(atn_allocate(context, 1, &memory), ATN_OK);
                emulator_fail_launch(k);
                atn_status status = back ? backward(&p, NULL) : forward(&p, NULL);
                done = status == ATN_OK;
                cr_assert(done || (status == ATN_ERR_DEVICE && k < 60), "%s, launch %d: %s",
                          attention_case_label(&p.c), k, atn_status_name(status));
                if (!done)
                    check_failed(context, &p, memory);
                emulator_fail_launch(0);
                atn_release(context, memory);
                plan_drop(&p);
                atn_context_free(context);
                emulator_reset();
            }
        }
}

Test(device, no_device)
{
    atn_context_options options = {.device = ATN_CUDA};
    for (int devices = 0; devices >= -1; devices--) {
        atn_context *context = (atn_context *)&context;
        atn_device_info info;
        const char *reason = NULL;
        emulator_devices(devices);
        cr_expect_eq(atn_device_count(ATN_CUDA, &reason), 0);
        cr_expect(strstr(reason, "no device") && (devices == 0 || strstr(reason, "driver")), "%s",
                  reason);
        cr_expect_eq(atn_device_count(ATN_CUDA, NULL), 0);
        cr_expect_eq(atn_context_create(&options, &context), ATN_ERR_DEVICE);
        cr_expect_null(context);
        cr_expect_eq(atn_device_describe(ATN_CUDA, 0, &info), ATN_ERR_DEVICE);
        cr_expect_eq(atn_context_create(NULL, &context), ATN_OK, "the CPU is there");
        atn_context_free(context);
    }
    emulator_devices(2);
    options.ordinal = 1;
    atn_context *second;
    cr_expect_eq(atn_context_create(&options, &second), ATN_OK);
    atn_context_free(second);
    options.ordinal = 2;
    cr_expect_eq(atn_context_create(&options, &second), ATN_ERR_DEVICE);
}

/* SOFT in tf32 with 64 channels, whose fused passes take 103 KiB of shared memory. */
Test(device, passes_that_the_device_has_no_room_for)
{
    static const int capabilities[] = {80, 86, 89, 90};
    for (int i = 0; i < 4; i++) {
        atn_context *context = fixture_context(1, NULL);
        bool room = capabilities[i] % 10 == 0;
        emulator_capability(capabilities[i]);
        for (int wide = 0; wide < 2; wide++) {
            attention_choice choice = {.op = ATN_SOFT,
                                       .variant = 1,
                                       .dtype = ATN_TF32,
                                       .shape = {1, 1, 100, wide ? 64 : 32, 8, 0},
                                       .sampling = ATN_SAMPLING_WINDOW,
                                       .seed = 112};
            attention_case c = attention_case_make(&choice);
            c.desc.distance = ATN_DISTANCE_CLAMPED;
            staged s = staged_open(context);
            atn_attention_desc desc = staged_desc(&s, &c.desc, &c.shape);
            for (int passes = ATN_SOFT_AUTO; passes <= ATN_SOFT_FUSED; passes++) {
                atn_plan *plan = NULL;
                desc.passes = (atn_soft_passes)passes;
                bool fits = room || !wide || passes != ATN_SOFT_FUSED;
                atn_status status = atn_attention_plan(context, &desc, &c.shape, &plan);
                cr_expect_eq(status, fits ? ATN_OK : ATN_ERR_UNSUPPORTED, "%d, d = %d, %s: %s",
                             capabilities[i], wide ? 64 : 32, atn_soft_passes_name(desc.passes),
                             atn_status_name(status));
                cr_expect(fits || strstr(atn_last_error(context), "shared memory"), "%s",
                          atn_last_error(context));
                atn_plan_free(plan);
            }
            staged_close(&s);
            attention_run r = attention_run_make(&c, 0);
            cr_expect_geq(attention_run_forward(&r, context), 0, "%d: %s", capabilities[i],
                          atn_last_error(context));
            attention_run_free(&r);
            attention_case_free(&c);
        }
        atn_context_free(context);
        emulator_reset();
    }
}

/* ---- The caller's device ---- */

static void expect_first(const char *what)
{
    cr_expect_eq(emulator_current_device(), 0, "after %s the current device is %d", what,
                 emulator_current_device());
}

/* A context of the second device in a thread whose current device is the first: work goes to the
 * second (launches into its stream fail elsewhere), and the thread's device stays. */
static void check_second(atn_context *context, atn_operator op)
{
    planned p;
    atn_attention_info info = {0};
    plan_make(&p, context, make(op, 0, ATN_F32, 9));
    expect_first("a plan");
    cr_expect_eq(forward(&p, NULL), ATN_OK, "%s", atn_last_error(context));
    expect_first("forward");
    cr_expect_eq(backward(&p, NULL), ATN_OK, "%s", atn_last_error(context));
    expect_first("backward");
    cr_expect_geq(atn_attention_outcome(p.plan, &info), 0, "%s", atn_last_error(context));
    expect_first("the outcome");
    plan_drop(&p);
    expect_first("a plan's end");
}

Test(device, callers_keep_their_device)
{
    emulator_devices(2);
    atn_context_options options = {.device = ATN_CUDA, .ordinal = 1};
    atn_context *context;
    void *memory;
    double number = 1;
    cr_assert_eq(atn_context_create(&options, &context), ATN_OK);
    expect_first("a context");
    cr_expect_eq(atn_allocate(context, 8, &memory), ATN_OK);
    expect_first("an allocation");
    cr_expect_eq(atn_upload(context, memory, &number, 8), ATN_OK);
    cr_expect_eq(atn_download(context, &number, memory, 8), ATN_OK);
    expect_first("copies");
    cr_expect_eq(atn_synchronise(context), ATN_OK);
    atn_release(context, memory);
    expect_first("giving memory back");
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        check_second(context, (atn_operator)op);
    guarded a = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, 3, 3);
    const double matrix[9] = {2, 1, 0, 1, 2, 1, 0, 1, 2};
    guarded x = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, 3, 3);
    guarded_set(&a, matrix);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_CHOLESKY);
    atn_inverse_info info;
    cr_expect_geq(fixture_inverse(context, &desc, &a, &x, &info, NULL), 0, "%s",
                  atn_last_error(context));
    expect_first("an inverse");
    guarded_free(&a);
    guarded_free(&x);
    atn_context_free(context);
    expect_first("a context's end");
    cr_expect_eq(emulator_counted().live, 0);
}

/* ---- What is handed over ---- */

static void expect_refused(atn_context *context, atn_status status, atn_status want,
                           const char *name, const planned *p)
{
    cr_expect_eq(status, want, "%s, %s: %s", attention_case_label(&p->c), name,
                 atn_status_name(status));
    cr_expect(strstr(atn_last_error(context), name), "%s: \"%s\"", name, atn_last_error(context));
}

/* Each array in turn on the host. */
Test(device, host_memory_is_refused)
{
    static double host[4096];
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        planned p;
        plan_make(&p, context, make(op, 0, ATN_F64, 9));
        attention_placed *d = &p.placed;
        struct {
            const char *name;
            void **data;
        } arrays[] = {
            {"q", &d->q.data},
            {"k", d->inputs.k ? &d->k.data : NULL},
            {"v", &d->v.data},
            {"out", &d->out.data},
            {"query_mask", d->inputs.query_mask ? (void **)&d->inputs.query_mask : NULL},
            {"key_mask", d->inputs.key_mask ? (void **)&d->inputs.key_mask : NULL},
        };
        int64_t launches = emulator_counted().launches;
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
            if (!arrays[i].data)
                continue;
            void *kept = *arrays[i].data;
            *arrays[i].data = host;
            expect_refused(context, forward(&p, NULL), ATN_ERR_VALUE, arrays[i].name, &p);
            *arrays[i].data = kept;
        }
        void *dout = d->dout.data;
        d->dout.data = host;
        expect_refused(context, backward(&p, NULL), ATN_ERR_VALUE, "dout", &p);
        d->dout.data = dout;
        for (int s = 0; s < SLOT_COUNT; s++) {
            if (!p.run.gradients[s].memory)
                continue;
            void *kept = d->gradient_views[s].data;
            d->gradient_views[s].data = host;
            expect_refused(context, backward(&p, NULL), ATN_ERR_VALUE, attention_slot_name(s), &p);
            d->gradient_views[s].data = kept;
        }
        cr_expect_eq(emulator_counted().launches, launches, "something was started");
        cr_expect_eq(forward(&p, NULL), ATN_OK, "the context is as good as before");
        plan_drop(&p);
    }
    atn_context_free(context);
}

/* A description's arrays, which a plan reads at every call. */
Test(device, host_memory_in_a_description_is_refused)
{
    atn_context *context = fixture_context(1, NULL);
    int refused = 0;
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        attention_case c = make(op, 0, ATN_F64, 9);
        bool arrays = false;
        atn_plan *plan;
        atn_attention_desc desc = c.desc;
        for (int i = 0; i < ATN_PARAMETER_COUNT; i++)
            arrays |= atn_attention_parameter(&desc, (atn_parameter)i)->data != NULL;
        atn_status status = atn_attention_plan(context, &c.desc, &c.shape, &plan);
        cr_expect(arrays ? status == ATN_ERR_VALUE : status == ATN_OK || status == ATN_ERR_VALUE,
                  "%s: %s", attention_case_label(&c), atn_status_name(status));
        cr_expect(status == ATN_OK || strstr(atn_last_error(context), "not in the memory"), "%s",
                  atn_last_error(context));
        refused += status == ATN_ERR_VALUE;
        atn_plan_free(plan);
        attention_case_free(&c);
    }
    cr_expect_geq(refused, 5);
    atn_context_free(context);
}

/* Views that begin between two elements, whose rows overlap or lie too far apart. */
Test(device, views_that_do_not_fit)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        planned p;
        plan_make(&p, context, make(op, 0, ATN_F32, 9));
        attention_placed *d = &p.placed;
        struct {
            const char *name;
            atn_tensor *view;
            bool backward;
        } views[] = {{"q", &d->q, false},
                     {"v", &d->v, false},
                     {"out", &d->out, false},
                     {"dout", &d->dout, true},
                     {"gradient of q", &d->gradient_views[SLOT_Q], true}};
        int64_t launches = emulator_counted().launches;
        for (size_t i = 0; i < sizeof views / sizeof *views; i++)
            for (int what = 0; what < 3; what++) {
                atn_tensor kept = *views[i].view;
                if (what == 0)
                    views[i].view->data = (char *)kept.data + 1;
                else
                    views[i].view->row_stride = what == 1 ? kept.cols - 1 : (int64_t)1 << 32;
                atn_status status = views[i].backward ? backward(&p, NULL) : forward(&p, NULL);
                expect_refused(context, status, what == 0 ? ATN_ERR_VALUE : ATN_ERR_STRIDE,
                               views[i].name, &p);
                *views[i].view = kept;
            }
        cr_expect_eq(emulator_counted().launches, launches, "something was started");
        cr_expect_eq(forward(&p, NULL), ATN_OK, "the context is as good as before");
        plan_drop(&p);
    }
    atn_context_free(context);
}

Test(device, storage_emulation_is_the_cpus)
{
    atn_context *context = fixture_context(1, NULL);
    atn_attention_shape shape = {1, 1, 4, 2, 2, 0};
    for (int storage = ATN_STORAGE_NATIVE + 1; storage < ATN_STORAGE_COUNT; storage++) {
        atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F32);
        atn_plan *plan;
        desc.storage = (atn_storage)storage;
        cr_expect_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_ERR_UNSUPPORTED);
        cr_expect(strstr(atn_last_error(context), atn_storage_name(desc.storage)), "%s",
                  atn_last_error(context));
    }
    atn_context_free(context);
}

/* ---- Streams, threads, and the same bits ---- */

/* The emulator's, whose header is C++; both return 0, cudaSuccess. */
int cudaStreamCreateWithFlags(void **stream, unsigned flags);
int cudaStreamDestroy(void *stream);

/* Launches, copies and waits are all on the stream that was given, and it outlives the context. */
Test(device, the_callers_stream_is_used)
{
    void *stream;
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, 0), 0);
    atn_context_options options = {.device = ATN_CUDA, .stream = stream};
    atn_context *context;
    emulator_expect_stream(stream);
    cr_assert_eq(atn_context_create(&options, &context), ATN_OK);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        planned p;
        atn_attention_info info = {0};
        plan_make(&p, context, make(op, 0, ATN_F16, 9));
        cr_expect_eq(forward(&p, &info), ATN_OK);
        cr_expect_eq(backward(&p, &info), ATN_OK);
        plan_drop(&p);
        cr_expect_eq(emulator_counted().strays, 0, "%s: %ld things were done on another stream",
                     atn_operator_get((atn_operator)op)->name, (long)emulator_counted().strays);
    }
    atn_context_free(context);
    context = fixture_context(1, NULL);
    cr_expect_eq(atn_synchronise(context), ATN_OK);
    cr_expect_eq(emulator_counted().strays, 1, "a context's own stream is another");
    atn_context_free(context);
    cr_expect_eq(cudaStreamDestroy(stream), 0);
}

/* Forward and backward of one operator in a context of the thread's own. */
static void *run_in_thread(void *argument)
{
    attention_run *r = argument;
    atn_context *context = fixture_context(1, NULL);
    atn_status there = attention_run_forward(r, context);
    atn_status back = attention_run_backward(r, context);
    atn_context_free(context);
    bool right = there >= 0 && there != ATN_NONFINITE && back >= 0 && back != ATN_NONFINITE;
    return right ? r : NULL;
}

static bool same_results(const attention_run *a, const attention_run *b)
{
    bool same = guarded_same_bits(&a->out, &b->out);
    for (int s = 0; s < SLOT_COUNT; s++)
        if (a->gradients[s].memory)
            same = same && guarded_same_bits(&a->gradients[s], &b->gradients[s]);
    return same;
}

Test(device, contexts_in_several_threads)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    attention_case c[THREADS];
    attention_run alone[THREADS], concurrent[THREADS];
    int op = fixture_next(-1);
    for (int i = 0; i < THREADS; i++, op = fixture_next(op) % ATN_OPERATOR_COUNT) {
        if (!fixture_runs(atn_operator_get((atn_operator)op)))
            op = fixture_next(-1);
        c[i] = make(op, 0, ATN_F32, 70);
        alone[i] = attention_run_make(&c[i], 1);
        concurrent[i] = attention_run_make(&c[i], 1);
        cr_assert(run_in_thread(&alone[i]), "%s", attention_case_label(&c[i]));
    }
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_in_thread, &concurrent[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *right;
        pthread_join(threads[i], &right);
        cr_expect(right && same_results(&alone[i], &concurrent[i]), "%s",
                  attention_case_label(&c[i]));
        attention_run_free(&concurrent[i]);
        attention_run_free(&alone[i]);
        attention_case_free(&c[i]);
    }
}

/* A context made in one thread and used in another, which CUDA must be told the device of. */
static void *use_in_thread(void *argument)
{
    planned *p = argument;
    return forward(p, &p->run.info) == ATN_OK ? p : NULL;
}

Test(device, a_context_may_change_threads)
{
    atn_context_options options = {.device = ATN_CUDA, .ordinal = 1};
    atn_context *context;
    planned p;
    pthread_t thread;
    void *right;
    emulator_devices(2);
    cr_assert_eq(atn_context_create(&options, &context), ATN_OK);
    plan_make(&p, context, make(fixture_next(-1), 0, ATN_F32, 9));
    cr_assert_eq(pthread_create(&thread, NULL, use_in_thread, &p), 0);
    pthread_join(thread, &right);
    cr_expect_not_null(right, "%s", atn_last_error(context));
    plan_drop(&p);
    atn_context_free(context);
}

static const char *const orders[] = {"forward", "backward", "shuffle:1", "warp-forward",
                                     "warp-backward"};
enum { ORDERS = sizeof orders / sizeof *orders };

/* A NaN in the last channel of the last value, which is not for a block's first thread. */
Test(device, a_nan_is_found_in_every_order)
{
    attention_case c = make(ATN_SIMA, 0, ATN_F32, 70);
    c.v[attention_case_values(&c) - 1] = NAN;
    for (int i = 0; i < ORDERS; i++) {
        attention_run r = attention_run_make(&c, 1);
        atn_context *context = fixture_context(1, NULL);
        setenv("EMULATOR_ORDER", orders[i], 1);
        atn_status status = attention_run_forward(&r, context);
        cr_expect(status == ATN_NONFINITE && r.info.failures == 1, "%s: %s, %ld failures",
                  orders[i], atn_status_name(status), (long)r.info.failures);
        atn_context_free(context);
        attention_run_free(&r);
    }
    attention_case_free(&c);
}

/* Blocks and threads run in five orders: no bit of a result depends on it. */
static void check_orders(attention_case c)
{
    attention_run runs[ORDERS];
    for (int i = 0; i < ORDERS; i++) {
        runs[i] = attention_run_make(&c, 1);
        setenv("EMULATOR_ORDER", orders[i], 1);
        cr_expect(run_in_thread(&runs[i]) && same_results(&runs[0], &runs[i]),
                  "%s: other bits when run %s", attention_case_label(&c), orders[i]);
    }
    for (int i = 0; i < ORDERS; i++)
        attention_run_free(&runs[i]);
    attention_case_free(&c);
}

Test(device, the_same_bits_in_every_order)
{
    static const atn_dtype dtypes[] = {ATN_F32, ATN_BF16, ATN_TF32};
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; variant < info->variant_count; variant++)
            check_orders(make(op, variant, dtypes[variant % 3], variant % 2 ? 300 : 70));
    }
    check_orders(make_large(ATN_F32));
}

/* Nor does one depend on when other threads see what one has stored, before a barrier. An inverse
 * has so much shared memory that comparing it at every shuffle takes minutes; the others take 20 s,
 * so that only the slow tests run them all. */
Test(device, the_same_bits_with_late_stores)
{
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        bool inverts = op == ATN_SOFT || op == ATN_SOFTPP || op == ATN_NYSTROMFORMER;
        if (inverts || (op != ATN_SIMA && !getenv("ATTNUM_TEST_CASES")))
            continue;
        attention_case c = make(op, 0, ATN_F32, 9);
        attention_run at_once = attention_run_make(&c, 1), late = attention_run_make(&c, 1);
        cr_expect(run_in_thread(&at_once), "%s", attention_case_label(&c));
        setenv("EMULATOR_STORES", "late", 1);
        cr_expect(run_in_thread(&late) && same_results(&at_once, &late), "%s: other bits",
                  attention_case_label(&c));
        setenv("EMULATOR_STORES", "at once", 1);
        attention_run_free(&at_once);
        attention_run_free(&late);
        attention_case_free(&c);
    }
}
