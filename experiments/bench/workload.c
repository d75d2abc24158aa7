/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/workload.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plain.h"
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
void workload_numbers(uint64_t stream, int64_t count, float *values)
{
    uint64_t state = stream;
    state = next(&state);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((double)(int64_t)next(&state) * 0x1p-63 * 1.7320508075688772);
}

void workload_tokens(int set, int input, int64_t heads, int64_t n, int64_t d, float *values)
{
    static const double noise = 0.5, turn = 6.283185307179586;
    float *waves = must_allocate((size_t)(n * d), sizeof *waves);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < d; c++)
            waves[i * d + c] = (float)sin(turn * ((double)(1 + c % 8) * (double)i / (double)n +
                                                  (double)(c + input) / (double)d));
    int64_t some = (heads < WORKLOAD_HEADS ? heads : WORKLOAD_HEADS) * n * d;
    workload_numbers((uint64_t)(set * WORKLOAD_INPUTS + input), some, values);
    for (int64_t i = 0; i < some; i++)
        values[i] = (float)noise * values[i] + waves[i % (n * d)];
    for (int64_t i = some; i < heads * n * d; i++)
        values[i] = values[i - some];
    free(waves);
}

/* The tokens are so close to each other that A is far from the identity, where the papers' start is
 * on the boundary of divergence. */
void workload_matrices(int set, int64_t count, int64_t m, double *a)
{
    enum { DIM = 32 };
    static const double spread = 0.3;
    float *tokens = must_allocate((size_t)(m * DIM), sizeof *tokens);
    for (int64_t matrix = 0; matrix < count; matrix++, a += m * m) {
        workload_numbers(((uint64_t)set << 32) + (uint64_t)matrix, m * DIM, tokens);
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

static size_t byte_count(const atn_tensor *t)
{
    return (size_t)(t->batch * t->heads * t->rows * t->cols) * atn_dtype_size(t->dtype);
}

static void *take(workload *s, atn_context *context, size_t bytes, int room, void **owned,
                  int *count)
{
    void *memory = NULL;
    if (s->status == ATN_OK)
        s->status = *count < room ? atn_allocate(context, bytes, &memory) : ATN_ERR_MEMORY;
    if (s->status == ATN_OK)
        owned[(*count)++] = memory;
    return memory;
}

void *workload_take(workload *s, size_t bytes)
{
    return take(s, s->context, bytes, WORKLOAD_OWNED, s->owned, &s->owned_count);
}

static void upload(workload *s, void *data, const void *values, size_t bytes)
{
    if (s->status == ATN_OK)
        s->status = atn_upload(s->context, data, values, bytes);
}

void *workload_take_numbers(workload *s, int64_t count)
{
    size_t bytes = (size_t)count * atn_dtype_size(s->c->dtype);
    void *memory = workload_take(s, bytes), *typed = must_allocate(bytes, 1);
    float *values = must_allocate((size_t)count, sizeof *values);
    workload_numbers(0, count, values);
    atn_convert(s->c->dtype, typed, ATN_F32, values, count);
    upload(s, memory, typed, bytes);
    free(values);
    free(typed);
    return memory;
}

atn_tensor workload_take_array(workload_store *store, workload *s, int64_t rows, int64_t cols)
{
    const bench_case *c = s->c;
    atn_tensor t = atn_tensor_dense(NULL, c->dtype, c->batch, c->heads, rows, cols);
    t.data =
        take(s, store->context, byte_count(&t), STORE_OWNED, store->owned, &store->owned_count);
    return t;
}

/* Copies the first `filled` bytes repeatedly, up to the end. */
static void repeat(workload *s, const atn_tensor *t, size_t filled)
{
    char *memory = t->data;
    size_t bytes = byte_count(t);
    while (s->status == ATN_OK && filled > 0 && filled < bytes) {
        size_t more = bytes - filled < filled ? bytes - filled : filled;
        s->status = atn_copy(s->context, memory + filled, memory, more);
        filled += more;
    }
}

void workload_fill(workload *s, const atn_tensor *t, int set, int input)
{
    int64_t all = t->batch * t->heads, heads = all < WORKLOAD_HEADS ? all : WORKLOAD_HEADS;
    int64_t count = heads * t->rows * t->cols;
    size_t bytes = (size_t)count * atn_dtype_size(t->dtype);
    float *values = must_allocate((size_t)count, sizeof *values);
    void *typed = must_allocate(bytes, 1);
    workload_tokens(set, input, heads, t->rows, t->cols, values);
    atn_convert(t->dtype, typed, ATN_F32, values, count);
    upload(s, t->data, typed, bytes);
    repeat(s, t, bytes);
    free(typed);
    free(values);
}

/* Fills a tensor with bits of 1, which are NaN in every type. */
static void poison(workload *s, const atn_tensor *t)
{
    char ones[4096];
    size_t bytes = byte_count(t) < sizeof ones ? byte_count(t) : sizeof ones;
    memset(ones, 0xff, sizeof ones);
    upload(s, t->data, ones, bytes);
    repeat(s, t, bytes);
}

/* The number of sets that fit into the type's share of a quarter of the device's memory, or of 8
 * GiB if that is unknown. */
static int count_sets(const workload_store *store, double bytes)
{
    atn_device_info info;
    double memory = 0x1p33;
    if (atn_device_describe(atn_context_device(store->context), 0, &info) == ATN_OK &&
        info.memory_bytes > 0)
        memory = (double)info.memory_bytes;
    int sets = WORKLOAD_SETS;
    while (sets > 1 && sets * bytes > memory / 4 / store->type_count)
        sets--;
    return sets;
}

void workload_store_open(atn_context *context, int64_t count, const bench_case *cases,
                         workload_store *store)
{
    bool seen[ATN_DTYPE_COUNT] = {false};
    *store = (workload_store){.context = context};
    for (int64_t i = 0; i < count; i++) {
        store->type_count += !seen[cases[i].dtype];
        seen[cases[i].dtype] = true;
    }
}

/* Releases all arrays but the first `kept`. */
static void release_arrays(workload_store *store, int kept)
{
    while (store->owned_count > kept)
        atn_release(store->context, store->owned[--store->owned_count]);
}

void workload_store_close(workload_store *store)
{
    release_arrays(store, 0);
}

/* ---- Attention ---- */

/* The cost of SOFT's forward has P = K(Q, L) in both passes: a floor has it once. */
static void count_kernel_once(workload *s, atn_distance distance)
{
    const bench_case *c = s->c;
    double pairs = (double)(c->batch * c->heads) * (double)c->tokens * (double)c->landmarks;
    double d = (double)c->dim;
    s->flops -= pairs * (distance == ATN_DISTANCE_DIRECT ? 3 * d : 2 * d + 3);
    s->exps -= pairs;
}

static void open_plan(workload *s)
{
    const bench_case *c = s->c;
    attention_case problem = bench_problem(c, c->dtype, c->batch, c->tokens, true);
    atn_attention_desc desc = problem.desc;
    atn_cost cost = {0};
    void *memory = NULL;
    if (atn_context_device(s->context) != ATN_CPU) {
        s->status = atn_attention_upload(s->context, &problem.desc, &problem.shape, &desc, &memory);
        if (s->status == ATN_OK)
            s->owned[s->owned_count++] = memory;
    } else { /* the plan reads the arrays directly */
        for (int i = 0; i < problem.owned_count; i++)
            s->host[i] = problem.owned[i];
        s->host_count = problem.owned_count;
        problem.owned_count = 0;
    }
    if (s->status == ATN_OK)
        s->status = atn_attention_cost(s->context, &desc, &problem.shape, &cost);
    if (s->status == ATN_OK)
        s->status = atn_attention_plan(s->context, &desc, &problem.shape, &s->plan);
    s->forward_flops = cost.flops;
    bool backward = c->work == BENCH_BACKWARD;
    s->flops = backward ? cost.backward_flops : cost.flops;
    s->exps = backward ? cost.backward_exps : cost.exps;
    s->bytes = backward ? cost.backward_bytes : cost.bytes;
    if (!backward && (c->op == ATN_SOFT || c->op == ATN_SOFTPP))
        count_kernel_once(s, desc.distance);
    attention_case_free(&problem);
}

static bool has_keys(const bench_case *c)
{
    return atn_operator_get(c->op)->capabilities & ATN_CAN_CROSS;
}

/* Creates inputs for both directions, whichever is opened first. */
static void fill_attention(workload_store *store, workload *s)
{
    const bench_case *c = s->c;
    workload_arrays *a = s->arrays;
    bool backward = atn_operator_get(c->op)->capabilities & ATN_CAN_BACKWARD;
    a->sets = count_sets(store, 3.0 * (double)(c->batch * c->heads * c->tokens * c->dim) *
                                    (double)atn_dtype_size(c->dtype));
    for (int set = 0; set < a->sets; set++)
        for (int i = 0; i < WORKLOAD_INPUTS; i++)
            if (i != 1 || has_keys(c)) {
                a->inputs[set][i] = workload_take_array(store, s, c->tokens, c->dim);
                workload_fill(s, &a->inputs[set][i], set, i);
            }
    if (backward) {
        a->dout = workload_take_array(store, s, c->tokens, c->dim);
        workload_fill(s, &a->dout, WORKLOAD_SETS, 0);
    }
    for (int i = 0; i < WORKLOAD_OUTPUTS; i++)
        if (i == 0 || (backward && (i != 1 || has_keys(c))))
            a->outputs[i] = workload_take_array(store, s, c->tokens, c->dim);
}

static void open_attention(workload_store *store, workload *s)
{
    open_plan(s);
    if (!s->arrays->open)
        fill_attention(store, s);
}

static atn_status run_attention(workload *s, int set)
{
    atn_tensor *in = s->arrays->inputs[set], *out = s->arrays->outputs;
    atn_attention_inputs inputs = {.q = &in[0], .k = in[1].data ? &in[1] : NULL, .v = &in[2]};
    atn_gradients to = {.q = &out[0], .k = in[1].data ? &out[1] : NULL, .v = &out[2]};
    return s->c->work == BENCH_FORWARD
               ? atn_attention_forward(s->plan, &inputs, &out[0], NULL)
               : atn_attention_backward(s->plan, &inputs, &s->arrays->dout, &to, NULL);
}

static const workload_kind attention = {open_attention, run_attention};

/* ---- Inverses ---- */

/* |AXA - A| / |A| after the given number of steps; a status that is not negative becomes ATN_OK. */
static atn_status residual_of(atn_context *cpu, atn_inverse_desc *desc, int steps, int64_t m,
                              double *a, double *residual)
{
    double *x = must_allocate((size_t)(m * m), sizeof *x);
    atn_tensor from = atn_tensor_dense(a, ATN_F64, 1, 1, m, m);
    atn_tensor to = atn_tensor_dense(x, ATN_F64, 1, 1, m, m);
    atn_inverse_info info = {0};
    desc->iterations = steps;
    atn_status status = atn_inverse(cpu, desc, &from, &to, &info, NULL);
    *residual = info.residual;
    free(x);
    return status < 0 ? status : ATN_OK;
}

/* Sets the interval of desc to the one that it would find itself. */
static atn_status know_interval(atn_context *cpu, int64_t m, double *a, atn_inverse_desc *desc)
{
    double *x = must_allocate((size_t)(m * m), sizeof *x);
    atn_tensor from = atn_tensor_dense(a, ATN_F64, 1, 1, m, m);
    atn_tensor to = atn_tensor_dense(x, ATN_F64, 1, 1, m, m);
    atn_inverse_info info = {0};
    atn_status status = atn_inverse(cpu, desc, &from, &to, &info, NULL);
    desc->interval_low = info.interval_low;
    desc->interval_high = info.interval_high;
    free(x);
    return status < 0 ? status : ATN_OK;
}

/* Finds the number of steps that desc needs, at most its iterations. */
static atn_status choose_steps(atn_context *cpu, const bench_case *c, double *a,
                               atn_inverse_desc *desc)
{
    atn_inverse_desc paper = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    int most = desc->iterations, steps = 0;
    double wanted, residual = INFINITY;
    atn_status status = residual_of(cpu, &paper, paper.iterations, c->landmarks, a, &wanted);
    if (!(wanted > atn_dtype_roundoff(c->dtype)))
        wanted = atn_dtype_roundoff(c->dtype);
    while (status == ATN_OK && !(residual <= wanted) && steps < most)
        status = residual_of(cpu, desc, ++steps, c->landmarks, a, &residual);
    desc->iterations = steps;
    if (status == ATN_OK && c->interval_known)
        status = know_interval(cpu, c->landmarks, a, desc);
    return status;
}

atn_status workload_inverse(const bench_case *c, atn_isa isa, atn_inverse_desc *desc)
{
    *desc = atn_inverse_defaults(c->inverse);
    if (desc->start != ATN_START_IDENTITY || desc->iterations == 0)
        return ATN_OK;
    atn_context *cpu;
    atn_context_options options = {.isa = isa};
    atn_status status = atn_context_create(&options, &cpu);
    double *a = must_allocate((size_t)(c->landmarks * c->landmarks), sizeof *a);
    workload_matrices(0, 1, c->landmarks, a);
    if (status == ATN_OK) {
        status = choose_steps(cpu, c, a, desc);
        atn_context_free(cpu);
    }
    free(a);
    return status;
}

static void fill_matrices(workload_store *store, workload *s)
{
    const bench_case *c = s->c;
    workload_arrays *a = s->arrays;
    int64_t m = c->landmarks, count = c->batch * m * m;
    double *values = must_allocate((size_t)count, sizeof *values);
    void *typed = must_allocate((size_t)count, atn_dtype_size(c->dtype));
    a->sets = bench_is_hot(c, atn_context_device(s->context))
                  ? 1
                  : count_sets(store, (double)count * (double)atn_dtype_size(c->dtype));
    for (int set = 0; set < a->sets; set++) {
        workload_matrices(set, c->batch, m, values);
        atn_convert(c->dtype, typed, ATN_F64, values, count);
        a->inputs[set][0] = workload_take_array(store, s, m, m);
        upload(s, a->inputs[set][0].data, typed, byte_count(&a->inputs[set][0]));
        a->inputs[set][1] = workload_take_array(store, s, m, BENCH_RIGHT_SIDES);
        workload_fill(s, &a->inputs[set][1], set, 1);
    }
    a->outputs[0] = workload_take_array(store, s, m, m);
    a->outputs[1] = workload_take_array(store, s, m, BENCH_RIGHT_SIDES);
    free(typed);
    free(values);
}

static void open_inverses(workload_store *store, workload *s)
{
    const bench_case *c = s->c;
    double size = (double)c->landmarks;
    s->infos = must_allocate((size_t)c->batch, sizeof *s->infos);
    memset(s->infos, 0, (size_t)c->batch * sizeof *s->infos);
    s->status = workload_inverse(c, atn_context_isa(s->context), &s->inverse);
    if (!s->arrays->open)
        fill_matrices(store, s);
    if (c->maker == BENCH_OPENBLAS)
        s->work = workload_take(s, (size_t)(c->threads * 3 * c->landmarks * c->landmarks) *
                                       atn_dtype_size(c->dtype));
    double written = c->work == BENCH_SOLVE ? 2 * BENCH_RIGHT_SIDES : size;
    s->bytes = (double)c->batch * size * (size + written) * (double)atn_dtype_size(c->dtype);
}

static atn_status run_newton(workload *s, int set)
{
    const bench_case *c = s->c;
    const atn_tensor *in = s->arrays->inputs[set], *y = &s->arrays->outputs[1];
    int threads = c->threads;
    size_t work = (size_t)(3 * c->landmarks * c->landmarks) * atn_dtype_size(c->dtype);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < c->batch; i++)
        plain_newton(c->dtype, c->landmarks, BENCH_RIGHT_SIDES, atn_tensor_matrix(&in[0], i, 0),
                     atn_tensor_matrix(&in[1], i, 0),
                     (char *)s->work + (size_t)omp_get_thread_num() * work,
                     atn_tensor_matrix(y, i, 0));
    for (int64_t i = 0; i < c->batch; i++) {
        s->infos[i].products = 2 * PLAIN_STEPS;
        s->infos[i].iterations = PLAIN_STEPS;
    }
    return ATN_OK;
}

static atn_status run_inverses(workload *s, int set)
{
    atn_tensor *in = s->arrays->inputs[set], *out = s->arrays->outputs;
    if (s->c->maker == BENCH_OPENBLAS)
        return run_newton(s, set);
    atn_status status =
        s->c->work == BENCH_SOLVE
            ? atn_inverse_apply(s->context, &s->inverse, &in[0], &in[1], &out[1], s->infos)
            : atn_inverse(s->context, &s->inverse, &in[0], &out[0], s->infos, NULL);
    return status == ATN_NONFINITE || status < 0 ? status : ATN_OK;
}

/* Counts operations: of an iteration the products that were reported for each matrix, of exact
 * methods LAPACK's nominal counts (atn_cost), in m^3. */
static void count_inverses(workload *s)
{
    static const double cubes[ATN_INVERSE_COUNT] = {
        [ATN_INVERSE_EIG] = 9, [ATN_INVERSE_CHOLESKY] = 1, [ATN_INVERSE_PIVOTED_CHOLESKY] = 1};
    const bench_case *c = s->c;
    double size = (double)c->landmarks, cube = size * size * size, batch = (double)c->batch;
    bool factor = c->work == BENCH_SOLVE && c->inverse == ATN_INVERSE_PIVOTED_CHOLESKY;
    s->flops = batch * cube * (factor ? 1.0 / 3 : cubes[c->inverse]);
    for (int64_t i = 0; i < c->batch; i++)
        s->flops += 2 * cube * (double)s->infos[i].products;
    if (c->work == BENCH_SOLVE)
        s->flops += batch * 2 * size * size * BENCH_RIGHT_SIDES;
}

static const workload_kind inverses = {open_inverses, run_inverses};

/* ---- All kinds of work ---- */

static const workload_kind *const kinds[BENCH_WORK_COUNT] = {
    [BENCH_COPY] = &rate_copy,
    [BENCH_ARITHMETIC] = &rate_arithmetic,
    [BENCH_FORWARD] = &attention,
    [BENCH_EXPONENTIALS] = &rate_exponentials,
    [BENCH_BACKWARD] = &attention,
    [BENCH_INVERSE] = &inverses,
    [BENCH_SOLVE] = &inverses,
    [BENCH_KERNEL] = &part_kernel,
    [BENCH_GEMM] = &part_gemm,
    [BENCH_EXP] = &part_exp,
    [BENCH_TRAINING] = &bench_training_kind,
};

double workload_scale(const bench_case *c)
{
    return 1 / (2 * sqrt((double)c->dim));
}

/* Arrays that could not be created completely are left to the next member. */
void workload_open(workload_store *store, atn_context *context, const bench_case *c, workload *s)
{
    workload_arrays *shared = &store->types[c->dtype], own = *shared;
    int kept = store->owned_count;
    *s = (workload){.context = context, .c = c, .arrays = &own};
    kinds[c->work]->open(store, s);
    s->arrays = shared;
    if (s->status == ATN_OK) {
        own.open = true;
        *shared = own;
    } else
        release_arrays(store, kept);
}

void workload_close(workload *s)
{
    atn_plan_free(s->plan);
    while (s->owned_count > 0)
        atn_release(s->context, s->owned[--s->owned_count]);
    while (s->host_count > 0)
        free(s->host[--s->host_count]);
    xsmm_free(s->product);
    bench_training_free(s->training);
    free(s->infos);
}

void workload_run(workload *s, int set)
{
    if (s->status != ATN_OK)
        return;
    int sets = s->arrays->sets > 0 ? s->arrays->sets : 1;
    atn_status status = kinds[s->c->work]->run(s, set % sets);
    if (status < 0 || (status == ATN_NONFINITE && bench_is_inverse(s->c)))
        s->status = status;
}

/* Whether a matrix of t was written completely and is finite. */
static bool is_finite(workload *s, const atn_tensor *t, int64_t batch, int64_t head)
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

/* Whether the kind of work writes output i. */
static bool is_written(const workload *s, int i)
{
    bool second = s->c->work == BENCH_SOLVE;
    return s->arrays->outputs[i].data && (s->c->work == BENCH_BACKWARD || i == (second ? 1 : 0));
}

atn_status workload_outcome(workload *s)
{
    atn_status outcome = ATN_OK;
    if (s->status == ATN_OK && s->plan)
        outcome = atn_attention_outcome(s->plan, NULL);
    if (outcome < 0)
        s->status = outcome;
    return s->status != ATN_OK ? s->status : outcome == ATN_NONFINITE ? ATN_NONFINITE : ATN_OK;
}

atn_status workload_try(workload *s)
{
    for (int i = 0; i < WORKLOAD_OUTPUTS && s->status == ATN_OK; i++)
        if (is_written(s, i))
            poison(s, &s->arrays->outputs[i]);
    workload_run(s, 0);
    atn_status outcome = workload_outcome(s);
    for (int i = 0; i < WORKLOAD_OUTPUTS && s->status == ATN_OK && outcome == ATN_OK; i++) {
        const atn_tensor *t = &s->arrays->outputs[i];
        if (is_written(s, i) &&
            !(is_finite(s, t, 0, 0) && is_finite(s, t, t->batch - 1, t->heads - 1)))
            outcome = ATN_NONFINITE;
    }
    if (bench_is_inverse(s->c))
        count_inverses(s);
    return s->status != ATN_OK ? s->status : outcome;
}
