/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of operators, by this library and by others: kernel matrices, products, exponentials. */
#include <attnum/timing.h>
#include <omp.h>

#include "bench/plain.h"
#include "bench/workload.h"

/* ---- Kernels ---- */

static void open_kernel(workload_store *store, workload *s)
{
    const bench_case *c = s->c;
    workload_arrays *a = s->arrays;
    double size = (double)atn_dtype_size(c->dtype), heads = (double)(c->batch * c->heads);
    double n = (double)c->tokens, m = (double)c->landmarks, d = (double)c->dim;
    if (!a->open) {
        a->sets = 1;
        a->inputs[0][0] = workload_take_array(store, s, c->tokens, c->dim);
        a->inputs[0][1] = workload_take_array(store, s, c->landmarks, c->dim);
        a->outputs[0] = workload_take_array(store, s, c->tokens, c->landmarks);
        for (int i = 0; i < 2; i++)
            workload_fill(s, &a->inputs[0][i], 0, i);
    }
    if (c->maker == BENCH_LIBM)
        s->work = workload_take(s, (size_t)c->threads * (size_t)(c->tokens + c->landmarks) *
                                       atn_dtype_size(c->dtype));
    s->flops = heads * n * m * (c->distance == ATN_DISTANCE_DIRECT ? 3 * d : 2 * d + 3);
    s->exps = heads * n * m;
    s->bytes = heads * size * (n * d + m * d + n * m);
}

static void run_plain_kernel(workload *s)
{
    const bench_case *c = s->c;
    const atn_tensor *x = &s->arrays->inputs[0][0], *l = &s->arrays->inputs[0][1],
                     *out = &s->arrays->outputs[0];
    size_t work = (size_t)(c->tokens + c->landmarks) * atn_dtype_size(c->dtype);
    int threads = c->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < c->batch * c->heads; i++)
        plain_kernel(c->dtype, workload_scale(c), c->tokens, c->landmarks, c->dim,
                     atn_tensor_matrix(x, i / c->heads, i % c->heads),
                     atn_tensor_matrix(l, i / c->heads, i % c->heads),
                     (char *)s->work + (size_t)omp_get_thread_num() * work,
                     atn_tensor_matrix(out, i / c->heads, i % c->heads));
}

static atn_status run_kernel(workload *s, int set)
{
    if (s->c->maker == BENCH_OURS)
        return atn_gaussian_cross(s->context, s->c->distance, workload_scale(s->c),
                                  &s->arrays->inputs[0][0], &s->arrays->inputs[0][1],
                                  &s->arrays->outputs[0]);
    run_plain_kernel(s);
    return ATN_OK;
}

const workload_kind part_kernel = {open_kernel, run_kernel};

/* ---- Products ---- */

static void open_gemm(workload_store *store, workload *s)
{
    const bench_case *c = s->c;
    workload_arrays *a = s->arrays;
    bool ta = c->transpose_a, tb = c->transpose_b;
    double rows = (double)c->tokens, cols = (double)c->landmarks, inner = (double)c->dim;
    if (!a->open) {
        a->sets = 1;
        a->inputs[0][0] =
            workload_take_array(store, s, ta ? c->dim : c->tokens, ta ? c->tokens : c->dim);
        a->inputs[0][1] =
            workload_take_array(store, s, tb ? c->landmarks : c->dim, tb ? c->dim : c->landmarks);
        a->outputs[0] = workload_take_array(store, s, c->tokens, c->landmarks);
        for (int i = 0; i < 2; i++)
            workload_fill(s, &a->inputs[0][i], 0, i);
    }
    if (c->maker == BENCH_LIBXSMM) {
        s->product = xsmm_make(c->dtype, ta, tb, c->tokens, c->landmarks, c->dim);
        if (!s->product && s->status == ATN_OK)
            s->status = ATN_ERR_UNSUPPORTED;
    }
    s->flops = 2 * rows * cols * inner;
    s->bytes = (rows * inner + inner * cols + rows * cols) * (double)atn_dtype_size(c->dtype);
}

static atn_status run_gemm(workload *s, int set)
{
    const bench_case *c = s->c;
    const void *a = s->arrays->inputs[0][0].data, *b = s->arrays->inputs[0][1].data;
    void *to = s->arrays->outputs[0].data;
    if (c->maker == BENCH_OURS) {
        atn_product_shape shape = {.transpose_a = c->transpose_a,
                                   .transpose_b = c->transpose_b,
                                   .rows = c->tokens,
                                   .cols = c->landmarks,
                                   .inner = c->dim};
        return atn_product(s->context, c->dtype, &shape, a, b, to);
    }
    if (c->maker == BENCH_LIBXSMM)
        xsmm_run(s->product, a, b, to);
    else
        plain_product(c->dtype, c->transpose_a, c->transpose_b, c->tokens, c->landmarks, c->dim, a,
                      b, to);
    return ATN_OK;
}

const workload_kind part_gemm = {open_gemm, run_gemm};

/* ---- Exponentials ---- */

/* Every thread has c->tokens numbers of its own. */
static void open_exp(workload_store *store, workload *s)
{
    const bench_case *c = s->c;
    s->work = workload_take_numbers(s, c->threads * c->tokens);
    s->exps = (double)c->threads * (double)c->tokens * WORKLOAD_EXPONENTIALS;
    s->bytes = 2 * (double)c->threads * (double)c->tokens * (double)atn_dtype_size(c->dtype);
}

static atn_status run_exp(workload *s, int set)
{
    const bench_case *c = s->c;
    int threads = c->threads;
    size_t part = (size_t)c->tokens * atn_dtype_size(c->dtype);
    if (c->maker == BENCH_OURS)
        return atn_exponentials(s->context, c->dtype, WORKLOAD_EXPONENTIALS, c->tokens, s->work,
                                &s->exps);
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < threads; i++)
        for (int repeat = 0; repeat < WORKLOAD_EXPONENTIALS; repeat++)
            plain_exponentials(c->dtype, c->tokens, (char *)s->work + (size_t)i * part);
    return ATN_OK;
}

const workload_kind part_exp = {open_exp, run_exp};
