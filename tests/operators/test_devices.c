/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and their memory, on the device the tests are about. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_run.h"
#include "data.h"
#include "fixture.h"

Test(devices, names_and_counts)
{
    const char *reason = NULL;
    cr_expect_str_eq(atn_device_name(ATN_CPU), "cpu");
    cr_expect_str_eq(atn_device_name(ATN_CUDA), "cuda");
    cr_expect_null(atn_device_name((atn_device)2));
    cr_expect_null(atn_device_name((atn_device)-1));
    cr_expect_eq(atn_device_count(ATN_CPU, &reason), 1);
    cr_expect_str_eq(reason, "");
    cr_expect_geq(atn_device_count(fixture_device(), NULL), 1);
    int count = atn_device_count(ATN_CUDA, &reason);
    cr_expect(count >= 0 && (count == 0) == (strlen(reason) > 0), "%d, \"%s\"", count, reason);
    cr_expect_eq(atn_device_count((atn_device)7, &reason), 0);
    cr_expect(strlen(reason) > 0);
}

Test(devices, description)
{
    atn_device device = fixture_device();
    atn_device_info info;
    cr_assert_eq(atn_device_describe(device, 0, &info), ATN_OK);
    cr_expect(strlen(info.name) > 0 && strlen(info.name) < sizeof info.name);
    if (device == ATN_CPU)
        cr_expect(strcmp(info.name, "cpu") == 0 && info.capability == 0 && info.memory_bytes == 0);
    else
        cr_expect(info.capability >= 80 && info.multiprocessors > 0 && info.memory_bytes > 0 &&
                      info.shared_bytes > 48 * 1024 && info.cache_bytes > 0 && info.runtime > 0,
                  "%d, %d, %ld, %ld, %ld, %d", info.capability, info.multiprocessors,
                  (long)info.memory_bytes, (long)info.shared_bytes, (long)info.cache_bytes,
                  info.runtime);
    cr_expect_eq(atn_device_describe(device, 0, NULL), ATN_ERR_NULL);
    cr_expect_eq(atn_device_describe((atn_device)7, 0, &info), ATN_ERR_VALUE);
    cr_expect_eq(atn_device_describe(device, -1, &info), ATN_ERR_DEVICE);
    cr_expect_eq(atn_device_describe(device, atn_device_count(device, NULL), &info),
                 ATN_ERR_DEVICE);
}

Test(devices, contexts_know_their_device)
{
    atn_context *context = fixture_context(1, NULL);
    cr_expect_eq(atn_context_device(context), fixture_device());
    cr_expect_eq(atn_context_device(NULL), ATN_CPU);
    cr_expect_eq(atn_synchronise(context), ATN_OK);
    cr_expect_eq(atn_synchronise(NULL), ATN_ERR_NULL);
    atn_context_free(context);
}

Test(devices, memory_there_and_back)
{
    enum { COUNT = 1000 };
    atn_context *context = fixture_context(1, NULL);
    unsigned char from[COUNT], to[COUNT] = {0};
    void *memory = NULL, *nothing = &memory;
    for (int i = 0; i < COUNT; i++)
        from[i] = (unsigned char)(i * 7);
    cr_assert_eq(atn_allocate(context, COUNT, &memory), ATN_OK);
    cr_expect_not_null(memory);
    cr_expect_eq(atn_upload(context, memory, from, COUNT), ATN_OK);
    cr_expect_eq(atn_download(context, to + 1, (char *)memory + 1, COUNT - 2), ATN_OK);
    cr_expect(to[0] == 0 && to[COUNT - 1] == 0 && memcmp(to + 1, from + 1, COUNT - 2) == 0);
    atn_release(context, memory);
    cr_expect_eq(atn_allocate(context, 0, &nothing), ATN_OK);
    cr_expect_null(nothing);
    atn_release(context, NULL);
    atn_release(NULL, NULL);
    atn_context_free(context);
}

Test(devices, memory_that_cannot_be)
{
    allocator_counts counts = {0};
    atn_context *context = fixture_context(1, &counts);
    char byte = 1;
    void *memory = &byte;
    counts.fail_at = counts.calls + 1; /* the CPU's memory; a device has no such limit to set */
    cr_expect_eq(atn_allocate(context, (size_t)1 << 62, &memory), ATN_ERR_MEMORY);
    cr_expect_null(memory);
    cr_expect(strstr(atn_last_error(context), "4611686018427387904"), "%s",
              atn_last_error(context));
    cr_expect_eq(atn_allocate(context, 1, NULL), ATN_ERR_NULL);
    cr_expect_eq(atn_allocate(NULL, 1, &memory), ATN_ERR_NULL);
    cr_expect_eq(atn_upload(context, NULL, &byte, 1), ATN_ERR_NULL);
    cr_expect_eq(atn_upload(context, &byte, NULL, 1), ATN_ERR_NULL);
    cr_expect_eq(atn_download(context, NULL, &byte, 1), ATN_ERR_NULL);
    cr_expect_eq(atn_download(context, &byte, NULL, 1), ATN_ERR_NULL);
    cr_expect_eq(atn_upload(NULL, &byte, &byte, 1), ATN_ERR_NULL);
    cr_expect_eq(atn_download(NULL, &byte, &byte, 1), ATN_ERR_NULL);
    cr_expect_eq(atn_upload(context, NULL, NULL, 0), ATN_OK, "nothing to copy");
    cr_expect_eq(atn_allocate(context, 1, &memory), ATN_OK, "a want of memory is no failure");
    atn_release(context, memory);
    atn_context_free(context);
}

/* ---- Descriptions ---- */

/* The result of atn_attention_upload for one tensor of a description. */
static void check_tensor(atn_context *context, const char *name, const atn_tensor *host,
                         const atn_tensor *device)
{
    size_t bytes = (size_t)(host->heads * host->rows * host->cols) * atn_dtype_size(host->dtype);
    cr_expect((host->data == NULL) == (device->data == NULL), "%s", name);
    cr_expect(host->rows == device->rows && host->cols == device->cols &&
                  host->dtype == device->dtype && host->row_stride == device->row_stride,
              "%s", name);
    if (!host->data)
        return;
    char *copy = malloc(bytes);
    cr_expect(host->data != device->data, "%s was not copied", name);
    cr_expect_eq(atn_download(context, copy, device->data, bytes), ATN_OK);
    cr_expect(memcmp(copy, host->data, bytes) == 0, "%s is another on the device", name);
    free(copy);
}

/* Every array of every operator's description. */
Test(devices, descriptions_are_copied)
{
    atn_context *context = fixture_context(1, NULL);
    int with_memory = 0;
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        attention_choice choice = {.op = (atn_operator)op,
                                   .dtype = ATN_F32,
                                   .shape = {1, 2, 9, 4, 4, 0},
                                   .optional = true,
                                   .sampling = ATN_SAMPLING_CONV_CODE,
                                   .seed = 70};
        attention_case c = attention_case_make(&choice);
        atn_attention_desc host = c.desc, device;
        void *memory = NULL;
        cr_assert_eq(atn_attention_upload(context, &host, &c.shape, &device, &memory), ATN_OK, "%s",
                     atn_last_error(context));
        for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
            check_tensor(context, atn_parameter_name((atn_parameter)p),
                         atn_attention_parameter(&host, (atn_parameter)p),
                         atn_attention_parameter(&device, (atn_parameter)p));
        check_tensor(context, "performer", &host.performer.projection,
                     &device.performer.projection);
        check_tensor(context, "rff", &host.rff.projection, &device.rff.projection);
        check_tensor(context, "rotations", &host.lsh.rotations, &device.lsh.rotations);
        cr_expect(memcmp(&host, &c.desc, sizeof host) == 0, "the original was changed");
        with_memory += memory != NULL;
        atn_release(context, memory);
        attention_case_free(&c);
    }
    cr_expect_geq(with_memory, 8);
    atn_context_free(context);
}

/* The arrays that are not tensors: indices, uniform numbers and buckets. */
Test(devices, indices_uniforms_and_buckets_are_copied)
{
    atn_context *context = fixture_context(1, NULL);
    int64_t indices[] = {4, 2, 0}, buckets[2 * 5], back[2 * 5];
    double uniforms[] = {0.5, 0.25, 0.125, 0.0625}, numbers[4];
    atn_attention_shape shape = {1, 1, 5, 2, 2, 5};
    atn_attention_desc host = {.sampling = {.indices = indices,
                                            .count = 3,
                                            .uniforms = uniforms,
                                            .uniform_count = 4},
                               .lsh = {.buckets = buckets, .rounds = 2}},
                       device;
    void *memory;
    for (int i = 0; i < 10; i++)
        buckets[i] = 100 - i;
    cr_assert_eq(atn_attention_upload(context, &host, &shape, &device, &memory), ATN_OK);
    cr_expect(device.sampling.indices != indices && device.sampling.uniforms != uniforms &&
              device.lsh.buckets != buckets);
    atn_download(context, back, device.sampling.indices, sizeof indices);
    cr_expect(memcmp(back, indices, sizeof indices) == 0);
    atn_download(context, numbers, device.sampling.uniforms, sizeof uniforms);
    cr_expect(memcmp(numbers, uniforms, sizeof uniforms) == 0);
    atn_download(context, back, device.lsh.buckets, sizeof buckets);
    cr_expect(memcmp(back, buckets, sizeof buckets) == 0);
    atn_release(context, memory);
    host.sampling.count = 0, host.sampling.uniform_count = 0, host.lsh.rounds = 0;
    cr_assert_eq(atn_attention_upload(context, &host, &shape, &device, &memory), ATN_OK);
    cr_expect(!device.sampling.indices && !device.sampling.uniforms && !device.lsh.buckets &&
                  !memory,
              "arrays without elements");
    atn_context_free(context);
}

Test(devices, descriptions_that_cannot_be_copied)
{
    allocator_counts counts = {0};
    atn_context *context = fixture_context(1, &counts);
    int64_t index = 0;
    atn_attention_shape shape = {1, 1, 5, 2, 2, 5};
    atn_attention_desc host = {.sampling = {.indices = &index, .count = 1}}, device;
    void *memory;
    cr_expect_eq(atn_attention_upload(NULL, &host, &shape, &device, &memory), ATN_ERR_NULL);
    cr_expect_eq(atn_attention_upload(context, NULL, &shape, &device, &memory), ATN_ERR_NULL);
    cr_expect_eq(atn_attention_upload(context, &host, NULL, &device, &memory), ATN_ERR_NULL);
    cr_expect_eq(atn_attention_upload(context, &host, &shape, NULL, &memory), ATN_ERR_NULL);
    cr_expect_eq(atn_attention_upload(context, &host, &shape, &device, NULL), ATN_ERR_NULL);
    host.sampling.count = INT64_MAX;
    cr_expect_eq(atn_attention_upload(context, &host, &shape, &device, &memory), ATN_ERR_SHAPE);
    host.sampling.count = INT64_C(1) << 60; /* 2^63 bytes */
    cr_expect_eq(atn_attention_upload(context, &host, &shape, &device, &memory), ATN_ERR_SHAPE);
    host.sampling.count = -1;
    cr_expect_eq(atn_attention_upload(context, &host, &shape, &device, &memory), ATN_ERR_SHAPE);
    host.sampling.count = (int64_t)1 << 58;
    counts.fail_at = counts.calls + 1;
    cr_expect_eq(atn_attention_upload(context, &host, &shape, &device, &memory), ATN_ERR_MEMORY);
    cr_expect_null(memory);
    atn_context_free(context);
}

/* b h r n buckets, where that is no int64_t, by any of its products: what would be left of it are
 * none at all, a few, or fewer than none. */
Test(devices, buckets_whose_number_overflows)
{
    static const struct {
        int64_t batch, heads, rounds, tokens;
    } rows[] = {{(int64_t)1 << 32, (int64_t)1 << 32, 1, 5},
                {((int64_t)1 << 32) + 1, (int64_t)1 << 32, 1, 1},
                {((int64_t)1 << 31) + 1, 2, ((int64_t)1 << 31), 1},
                {1, ((int64_t)1 << 20) + 1, 1 << 20, (int64_t)1 << 24},
                {3, 1, INT64_C(0x5555555555555556), 1},
                {1, 1, 2, (int64_t)1 << 62}};
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t bucket = 0;
        atn_attention_shape shape = {rows[i].batch, rows[i].heads, rows[i].tokens, 2, 2, 0};
        atn_attention_desc host = {.lsh = {.buckets = &bucket, .rounds = rows[i].rounds}}, device;
        void *memory = &bucket;
        atn_status status = atn_attention_upload(context, &host, &shape, &device, &memory);
        cr_expect(status == ATN_ERR_SHAPE && !memory, "row %zu: %s", i, atn_status_name(status));
    }
    atn_context_free(context);
}

/* ---- What a call was like, asked for later ---- */

/* Head 1 of q is not finite, or nothing is. */
static void check_outcome(atn_context *context, int op, bool spoilt)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .dtype = ATN_F64,
                               .shape = {2, 2, 6, 4, 4, 0},
                               .sampling = ATN_SAMPLING_INDICES,
                               .seed = 71};
    attention_case c = attention_case_make(&choice);
    if (spoilt)
        c.q[attention_case_queries(&c) / 4] = NAN;
    attention_run r = attention_run_make(&c, 0);
    attention_placed p;
    atn_plan *plan;
    attention_run_place(&r, context, &p);
    cr_assert_eq(atn_attention_plan(context, &p.desc, &c.shape, &plan), ATN_OK, "%s",
                 atn_last_error(context));
    atn_attention_info told = {0}, later = {.landmarks = 9, .failures = 9};
    cr_expect_eq(atn_attention_outcome(plan, &later), ATN_OK, "before the first call");
    cr_expect(later.landmarks == 0 && later.failures == 0, "before the first call");
    for (int backward = 0; backward < 2; backward++) {
        atn_status status =
            backward ? atn_attention_backward(plan, &p.inputs, &p.dout, &p.gradients, &told)
                     : atn_attention_forward(plan, &p.inputs, &p.out, &told);
        cr_expect_eq(atn_attention_outcome(plan, &later), status, "%s", attention_case_label(&c));
        cr_expect_eq(atn_attention_outcome(plan, NULL), status, "%s", attention_case_label(&c));
        cr_expect(later.landmarks == told.landmarks && later.failures == told.failures,
                  "%s: %ld and %ld landmarks, %ld and %ld failures", attention_case_label(&c),
                  (long)later.landmarks, (long)told.landmarks, (long)later.failures,
                  (long)told.failures);
        cr_expect_eq(status == ATN_NONFINITE, spoilt, "%s: %s", attention_case_label(&c),
                     atn_status_name(status));
        cr_expect(!spoilt || told.failures >= 1);
    }
    atn_plan_free(plan);
    attention_placed_close(&p);
    attention_run_free(&r);
    attention_case_free(&c);
}

Test(devices, outcome_is_what_the_call_would_have_said)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        check_outcome(context, op, true);
        check_outcome(context, op, false);
    }
    cr_expect_eq(atn_attention_outcome(NULL, NULL), ATN_ERR_NULL);
    atn_context_free(context);
}
