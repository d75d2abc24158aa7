/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/rates.h"

#include <cblas.h>
#include <stdlib.h>

#include "bench/subject.h"
#include "common/report.h"

/* ---- Copying ---- */

typedef struct {
    atn_context *context;
    char *memory;
    size_t bytes; /* of one side */
} copy_work;

static atn_status copy_once(void *state, int repeat)
{
    copy_work *w = state;
    size_t from = repeat % 2 ? w->bytes : 0;
    return atn_copy(w->context, w->memory + (w->bytes - from), w->memory + from, w->bytes);
}

/* 1 GiB, or a sixteenth of a small device's memory; 128 MiB where it does not say. */
static size_t copy_bytes(atn_context *context)
{
    static const size_t most = (size_t)1 << 30, usual = (size_t)1 << 27;
    atn_device_info info;
    if (atn_device_describe(atn_context_device(context), 0, &info) != ATN_OK ||
        info.memory_bytes <= 0)
        return usual;
    size_t part = (size_t)info.memory_bytes / 16 / 64 * 64;
    return part < most ? part : most;
}

atn_status rates_copy(atn_context *context, const time_plan *plan, time_result *result,
                      double *bytes)
{
    copy_work w = {.context = context, .bytes = copy_bytes(context)};
    void *memory = NULL;
    atn_status status = atn_allocate(context, 2 * w.bytes, &memory);
    if (status != ATN_OK)
        return status;
    w.memory = memory;
    *bytes = 2 * (double)w.bytes;
    float *values = must_allocate(w.bytes, 1);
    subject_numbers(0, (int64_t)(w.bytes / sizeof *values), values);
    for (int i = 0; i < 2 && status == ATN_OK; i++)
        status = atn_upload(context, w.memory + (size_t)i * w.bytes, values, w.bytes);
    free(values);
    if (status == ATN_OK)
        status = time_repeats(context, plan, NULL, copy_once, &w, result);
    atn_release(context, memory);
    return status;
}

/* ---- Arithmetic ---- */

typedef struct {
    atn_context *context;
    atn_dtype dtype;
    int64_t steps;
    void *scratch;
    double flops;
} arithmetic_work;

static atn_status multiply_add_once(void *state, int repeat)
{
    (void)repeat;
    arithmetic_work *w = state;
    return atn_multiply_add(w->context, w->dtype, w->steps, w->scratch, &w->flops);
}

/* So many steps that one call takes a millisecond or more. */
static atn_status choose_steps(arithmetic_work *w, const time_plan *plan, time_result *result)
{
    time_plan once = {.warm_ups = 1, .least = 1, .most = 1};
    atn_status status = time_repeats(w->context, &once, NULL, multiply_add_once, w, result);
    while (status == ATN_OK && result->median < 1e-3 && w->steps < (int64_t)1 << 30) {
        w->steps *= 4;
        status = time_repeats(w->context, &once, NULL, multiply_add_once, w, result);
    }
    return status == ATN_OK ? time_repeats(w->context, plan, NULL, multiply_add_once, w, result)
                            : status;
}

static atn_status time_multiply_adds(arithmetic_work *w, const time_plan *plan, time_result *result)
{
    atn_status status = atn_allocate(w->context, 64, &w->scratch);
    if (status == ATN_OK)
        status = choose_steps(w, plan, result);
    atn_release(w->context, w->scratch);
    return status;
}

/* Products of 256 x 256 matrices, on each thread its own. */
enum { PRODUCT = 256, PRODUCTS = 8 };

static void multiply(atn_dtype dtype, void *memory)
{
    float *f = memory;
    double *d = memory;
    for (int i = 0; i < PRODUCTS; i++)
        if (dtype == ATN_F32)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, PRODUCT, PRODUCT, PRODUCT, 1, f,
                        PRODUCT, f + PRODUCT * PRODUCT, PRODUCT, 0, f + 2 * PRODUCT * PRODUCT,
                        PRODUCT);
        else
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, PRODUCT, PRODUCT, PRODUCT, 1, d,
                        PRODUCT, d + PRODUCT * PRODUCT, PRODUCT, 0, d + 2 * PRODUCT * PRODUCT,
                        PRODUCT);
}

static atn_status products_once(void *state, int repeat)
{
    (void)repeat;
    arithmetic_work *w = state;
    int threads = atn_context_threads(w->context);
    size_t matrices = 3 * (size_t)PRODUCT * PRODUCT * atn_dtype_size(w->dtype);
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < threads; i++)
        multiply(w->dtype, (char *)w->scratch + (size_t)i * matrices);
    return ATN_OK;
}

static atn_status time_products(arithmetic_work *w, const time_plan *plan, time_result *result)
{
    int threads = atn_context_threads(w->context);
    int64_t count = (int64_t)threads * 3 * PRODUCT * PRODUCT;
    float *numbers = must_allocate((size_t)count, sizeof *numbers);
    w->scratch = must_allocate((size_t)count, sizeof(double));
    subject_numbers(0, count, numbers);
    atn_convert(w->dtype, w->scratch, ATN_F32, numbers, count);
    w->flops = 2.0 * PRODUCTS * threads * PRODUCT * PRODUCT * PRODUCT;
    atn_status status = time_repeats(w->context, plan, NULL, products_once, w, result);
    free(w->scratch);
    free(numbers);
    return status;
}

atn_status rates_arithmetic(atn_context *context, atn_dtype dtype, const time_plan *plan,
                            time_result *result, double *flops)
{
    arithmetic_work w = {.context = context, .dtype = dtype, .steps = 4};
    atn_status status = atn_context_device(context) == ATN_CPU
                            ? time_products(&w, plan, result)
                            : time_multiply_adds(&w, plan, result);
    *flops = w.flops;
    return status;
}
