/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

/* ---- Numbers ---- */

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform between -sqrt(3) and sqrt(3). */
void subject_numbers(uint64_t stream, int64_t count, float *values)
{
    uint64_t state = stream;
    state = next(&state);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((double)(int64_t)next(&state) * 0x1p-63 * 1.7320508075688772);
}

void subject_tokens(int set, int input, int64_t heads, int64_t n, int64_t d, float *values)
{
    static const double noise = 0.5, turn = 6.283185307179586;
    float *waves = must_allocate((size_t)(n * d), sizeof *waves);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < d; c++)
            waves[i * d + c] = (float)sin(turn * ((double)(1 + c % 8) * (double)i / (double)n +
                                                  (double)(c + input) / (double)d));
    int64_t some = (heads < SUBJECT_HEADS ? heads : SUBJECT_HEADS) * n * d;
    subject_numbers((uint64_t)(set * SUBJECT_INPUTS + input), some, values);
    for (int64_t i = 0; i < some; i++)
        values[i] = (float)noise * values[i] + waves[i % (n * d)];
    for (int64_t i = some; i < heads * n * d; i++)
        values[i] = values[i - some];
    free(waves);
}

/* Tokens near enough to each other that A is far from the identity, on which the papers' start
 * stands at the edge of divergence. */
void subject_matrices(int set, int64_t count, int64_t m, double *a)
{
    enum { DIM = 32 };
    static const double spread = 0.3;
    float *tokens = must_allocate((size_t)(m * DIM), sizeof *tokens);
    for (int64_t matrix = 0; matrix < count; matrix++, a += m * m) {
        subject_numbers(((uint64_t)set << 32) + (uint64_t)matrix, m * DIM, tokens);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j <= i; j++) {
                double distance = 0;
                for (int k = 0; k < DIM; k++) {
                    double x = spread * (double)(tokens[i * DIM + k] - tokens[j * DIM + k]);
                    distance += x * x;
                }
                a[i * m + j] = a[j * m + i] = exp(-distance / (2 * sqrt(DIM)));
            }
    }
    free(tokens);
}

/* ---- Memory ---- */

static int64_t element_count(const atn_tensor *t)
{
    return t->batch * t->heads * t->rows * t->cols;
}

static size_t byte_count(const atn_tensor *t)
{
    return (size_t)element_count(t) * atn_dtype_size(t->dtype);
}

static void *take(subject *s, size_t bytes)
{
    void *memory = NULL;
    if (s->status == ATN_OK)
        s->status = atn_allocate(s->context, bytes, &memory);
    if (s->status == ATN_OK)
        s->owned[s->owned_count++] = memory;
    return memory;
}

static void upload(subject *s, const atn_tensor *t, const void *values, size_t bytes)
{
    if (s->status == ATN_OK)
        s->status = atn_upload(s->context, t->data, values, bytes);
}

static atn_tensor take_tensor(subject *s, int64_t rows, int64_t cols)
{
    const bench_case *c = s->c;
    atn_tensor t = atn_tensor_dense(NULL, c->dtype, c->batch, c->heads, rows, cols);
    t.data = take(s, byte_count(&t));
    return t;
}

/* The first `filled` bytes over and over, to the end. */
static void repeat(subject *s, const atn_tensor *t, size_t filled)
{
    char *memory = t->data;
    size_t bytes = byte_count(t);
    while (s->status == ATN_OK && filled > 0 && filled < bytes) {
        size_t more = bytes - filled < filled ? bytes - filled : filled;
        s->status = atn_copy(s->context, memory + filled, memory, more);
        filled += more;
    }
}

static void fill(subject *s, const atn_tensor *t, int set, int input)
{
    int64_t all = t->batch * t->heads, heads = all < SUBJECT_HEADS ? all : SUBJECT_HEADS;
    int64_t count = heads * t->rows * t->cols;
    size_t bytes = (size_t)count * atn_dtype_size(t->dtype);
    float *values = must_allocate((size_t)count, sizeof *values);
    void *typed = must_allocate(bytes, 1);
    subject_tokens(set, input, heads, t->rows, t->cols, values);
    atn_convert(t->dtype, typed, ATN_F32, values, count);
    upload(s, t, typed, bytes);
    repeat(s, t, bytes);
    free(typed);
    free(values);
}

/* NaN in every element of every type: all bits 1. */
static void poison(subject *s, const atn_tensor *t)
{
    char ones[4096];
    size_t bytes = byte_count(t) < sizeof ones ? byte_count(t) : sizeof ones;
    memset(ones, 0xff, sizeof ones);
    upload(s, t, ones, bytes);
    repeat(s, t, bytes);
}

/* As many sets as a quarter of the device's memory holds; 8 GiB where it does not say. */
static int count_sets(const subject *s, double bytes)
{
    atn_device_info info;
    double memory = 0x1p33;
    if (atn_device_describe(atn_context_device(s->context), 0, &info) == ATN_OK &&
        info.memory_bytes > 0)
        memory = (double)info.memory_bytes;
    int sets = SUBJECT_SETS;
    while (sets > 1 && sets * bytes > memory / 4)
        sets--;
    return sets;
}

/* ---- Attention ---- */

static void open_plan(subject *s)
{
    const bench_case *c = s->c;
    attention_case problem = bench_problem(c, c->dtype, c->batch, c->tokens, true);
    atn_attention_desc desc = problem.desc;
    void *memory = NULL;
    if (atn_context_device(s->context) != ATN_CPU) {
        s->status = atn_attention_upload(s->context, &problem.desc, &problem.shape, &desc, &memory);
        if (s->status == ATN_OK)
            s->owned[s->owned_count++] = memory;
    } else { /* the plan reads the arrays as they stand */
        for (int i = 0; i < problem.owned_count; i++)
            s->host[i] = problem.owned[i];
        s->host_count = problem.owned_count;
        problem.owned_count = 0;
    }
    if (s->status == ATN_OK)
        s->status = atn_attention_cost(s->context, &desc, &problem.shape, &s->cost);
    if (s->status == ATN_OK)
        s->status = atn_attention_plan(s->context, &desc, &problem.shape, &s->plan);
    attention_case_free(&problem);
}

static bool has_keys(const bench_case *c)
{
    return atn_operator_get(c->op)->capabilities & ATN_CAN_CROSS;
}

static void open_attention(subject *s)
{
    const bench_case *c = s->c;
    open_plan(s);
    s->sets = count_sets(s, 3.0 * (double)(c->batch * c->heads * c->tokens * c->dim) *
                                (double)atn_dtype_size(c->dtype));
    for (int set = 0; set < s->sets; set++)
        for (int i = 0; i < SUBJECT_INPUTS; i++)
            if (i != 1 || has_keys(c)) {
                s->inputs[set][i] = take_tensor(s, c->tokens, c->dim);
                fill(s, &s->inputs[set][i], set, i);
            }
    if (c->work == BENCH_BACKWARD) {
        s->dout = take_tensor(s, c->tokens, c->dim);
        fill(s, &s->dout, SUBJECT_SETS, 0);
    }
    for (int i = 0; i < SUBJECT_OUTPUTS; i++)
        if (i == 0 || (c->work == BENCH_BACKWARD && (i != 1 || has_keys(c)))) {
            s->outputs[i] = take_tensor(s, c->tokens, c->dim);
            poison(s, &s->outputs[i]);
        }
}

static void run_attention(subject *s, int set)
{
    atn_tensor *in = s->inputs[set], *out = s->outputs;
    atn_attention_inputs inputs = {.q = &in[0], .k = in[1].data ? &in[1] : NULL, .v = &in[2]};
    atn_gradients to = {.q = &out[0], .k = in[1].data ? &out[1] : NULL, .v = &out[2]};
    atn_status status = s->c->work == BENCH_FORWARD
                            ? atn_attention_forward(s->plan, &inputs, &out[0], NULL)
                            : atn_attention_backward(s->plan, &inputs, &s->dout, &to, NULL);
    if (status < 0)
        s->status = status;
}

/* ---- Inverses ---- */

static void open_inverses(subject *s)
{
    const bench_case *c = s->c;
    int64_t m = c->landmarks, count = c->batch * m * m;
    double *values = must_allocate((size_t)count, sizeof *values);
    void *typed = must_allocate((size_t)count, atn_dtype_size(c->dtype));
    s->inverse = atn_inverse_defaults(c->inverse);
    s->infos = must_allocate((size_t)c->batch, sizeof *s->infos);
    s->sets = count_sets(s, (double)count * (double)atn_dtype_size(c->dtype));
    for (int set = 0; set < s->sets; set++) {
        subject_matrices(set, c->batch, m, values);
        atn_convert(c->dtype, typed, ATN_F64, values, count);
        s->inputs[set][0] = take_tensor(s, m, m);
        upload(s, &s->inputs[set][0], typed, byte_count(&s->inputs[set][0]));
    }
    s->outputs[0] = take_tensor(s, m, m);
    poison(s, &s->outputs[0]);
    free(typed);
    free(values);
}

static void run_inverses(subject *s, int set)
{
    atn_status status =
        atn_inverse(s->context, &s->inverse, &s->inputs[set][0], &s->outputs[0], s->infos, NULL);
    if (status < 0 || status == ATN_NONFINITE)
        s->status = status;
}

/* ---- Both ---- */

void subject_open(atn_context *context, const bench_case *c, subject *s)
{
    *s = (subject){.context = context, .c = c};
    if (bench_is_attention(c))
        open_attention(s);
    else
        open_inverses(s);
}

void subject_close(subject *s)
{
    atn_plan_free(s->plan);
    while (s->owned_count > 0)
        atn_release(s->context, s->owned[--s->owned_count]);
    while (s->host_count > 0)
        free(s->host[--s->host_count]);
    free(s->infos);
}

void subject_run(subject *s, int set)
{
    if (s->status != ATN_OK)
        return;
    if (bench_is_attention(s->c))
        run_attention(s, set % s->sets);
    else
        run_inverses(s, set % s->sets);
}

/* Whether one of t's matrices was written, with nothing but numbers. */
static bool is_finite(subject *s, const atn_tensor *t, int64_t batch, int64_t head)
{
    int64_t count = t->rows * t->cols;
    size_t bytes = (size_t)count * atn_dtype_size(t->dtype);
    void *typed = must_allocate(bytes, 1);
    double *values = must_allocate((size_t)count, sizeof *values);
    bool finite = true;
    s->status = atn_download(s->context, typed, atn_tensor_matrix(t, batch, head), bytes);
    atn_convert(ATN_F64, values, t->dtype, typed, count);
    for (int64_t i = 0; i < count && s->status == ATN_OK; i++)
        finite &= isfinite(values[i]) != 0;
    free(values);
    free(typed);
    return finite;
}

atn_status subject_outcome(subject *s)
{
    atn_status outcome = ATN_OK;
    if (s->status == ATN_OK && s->plan)
        outcome = atn_attention_outcome(s->plan, NULL);
    if (outcome < 0)
        s->status = outcome;
    bool finite = outcome != ATN_NONFINITE;
    for (int i = 0; i < SUBJECT_OUTPUTS && s->status == ATN_OK; i++) {
        const atn_tensor *t = &s->outputs[i];
        if (t->data)
            finite &= is_finite(s, t, 0, 0) && is_finite(s, t, t->batch - 1, t->heads - 1);
    }
    return s->status != ATN_OK ? s->status : finite ? ATN_OK : ATN_NONFINITE;
}

double subject_bytes(const subject *s)
{
    const bench_case *c = s->c;
    double size = (double)atn_dtype_size(c->dtype);
    if (c->work == BENCH_INVERSE)
        return 2 * size * (double)c->batch * (double)c->landmarks * (double)c->landmarks;
    /* backward reads dY where forward writes Y, and writes the gradients */
    double gradients = has_keys(c) ? 3 : 2;
    return s->cost.bytes + (c->work == BENCH_BACKWARD
                                ? gradients * size * (double)c->batch * (double)c->heads *
                                      (double)c->tokens * (double)c->dim
                                : 0);
}
