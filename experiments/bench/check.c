/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/subject.h"
#include "common/report.h"
#include "common/staging.h"

/* Of the CPU's part of a check, and tokens where all of them would be more. */
static const double most_flops = 2e9;
enum { FEW_TOKENS = 784, FEW_MATRICES = 2, RESULTS = 3 };

#define CHECK_NAME(code, name, description) [code] = name,
static const char *const names[] = {CHECK_LIST(CHECK_NAME)};
#undef CHECK_NAME

const char *check_name(check_kind kind)
{
    return names[kind];
}

check_result check_judge(atn_dtype dtype, double error, double f32_error)
{
    double condition = f32_error / atn_dtype_roundoff(ATN_F32);
    if (!(condition >= 1))
        condition = 1;
    check_result r = {.error = error, .bound = 8 * condition * atn_dtype_roundoff(dtype)};
    if (!(r.bound <= 0.5) && isfinite(error))
        r.kind = CHECK_OPEN;
    else
        r.kind = error <= r.bound ? CHECK_PASS : CHECK_FAIL;
    return r;
}

static double relative_error(int64_t count, const double *got, const double *want)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return sqrt(difference / norm);
}

/* Keeps the worse of two: any failure first, then the larger share of its bound. */
static void keep_worse(check_result *worst, check_result r)
{
    bool fails = r.kind == CHECK_FAIL && worst->kind != CHECK_FAIL;
    bool closer = r.kind == worst->kind && !(r.error / r.bound <= worst->error / worst->bound);
    if (!(worst->bound > 0) || fails || closer)
        *worst = r;
}

/* ---- Operators ---- */

/* Y, or the gradients of Q, K, V (K's empty where there is none). */
typedef struct {
    int64_t counts[RESULTS];
    double *values[RESULTS];
} results;

static void free_results(results *r)
{
    for (int i = 0; i < RESULTS; i++)
        free(r->values[i]);
}

static atn_tensor typed_tensor(const attention_case *c, const double *values)
{
    const atn_attention_shape *s = &c->shape;
    int64_t count = s->batch * s->heads * s->tokens * s->dim;
    void *memory = must_allocate((size_t)count, atn_dtype_size(c->choice.dtype));
    if (values)
        atn_convert(c->choice.dtype, memory, ATN_F64, values, count);
    return atn_tensor_dense(memory, c->choice.dtype, s->batch, s->heads, s->tokens, s->dim);
}

/* Runs the case on a context's device; tokens, keys and values are of one shape. */
static atn_status run_case(atn_context *context, const attention_case *c, bench_work work,
                           results *r)
{
    atn_tensor q = typed_tensor(c, c->q), v = typed_tensor(c, c->v),
               dout = typed_tensor(c, c->dout);
    atn_tensor k = c->k ? typed_tensor(c, c->k) : (atn_tensor){0};
    atn_tensor out[RESULTS] = {typed_tensor(c, NULL)};
    atn_attention_inputs inputs = {.q = &q, .k = c->k ? &k : NULL, .v = &v};
    int64_t count = attention_case_queries(c);
    atn_status status;
    if (work == BENCH_BACKWARD) {
        if (c->k)
            out[1] = typed_tensor(c, NULL);
        out[2] = typed_tensor(c, NULL);
        atn_gradients to = {.q = &out[0], .k = c->k ? &out[1] : NULL, .v = &out[2]};
        status = staged_backward(context, &c->desc, &c->shape, &inputs, &dout, &to, NULL);
    } else
        status = staged_forward(context, &c->desc, &c->shape, &inputs, &out[0], NULL);
    for (int i = 0; i < RESULTS; i++) {
        r->counts[i] = out[i].data ? count : 0;
        r->values[i] = must_allocate((size_t)count, sizeof(double));
        if (out[i].data)
            atn_convert(ATN_F64, r->values[i], out[i].dtype, out[i].data, count);
        free(out[i].data);
    }
    free(q.data), free(k.data), free(v.data), free(dout.data);
    return status;
}

/* The tokens of what is timed, in the case's type. */
static void give_tokens(attention_case *c)
{
    double *const all[] = {c->q, c->k, c->v};
    int64_t heads = c->shape.batch * c->shape.heads, count = attention_case_queries(c);
    float *values = must_allocate((size_t)count, sizeof *values);
    void *typed = must_allocate((size_t)count, atn_dtype_size(c->choice.dtype));
    for (int i = 0; i < RESULTS; i++)
        if (all[i]) {
            subject_tokens(0, i, heads, c->shape.tokens, c->shape.dim, values);
            atn_convert(c->choice.dtype, typed, ATN_F32, values, count);
            atn_convert(ATN_F64, all[i], c->choice.dtype, typed, count);
        }
    free(typed);
    free(values);
}

/* A case in a type, on a device, and on the CPU in f64. */
static atn_status compare(atn_context *context, atn_context *cpu, const bench_case *c,
                          atn_dtype dtype, int64_t tokens, double errors[RESULTS])
{
    attention_case narrow = bench_problem(c, dtype, 1, tokens, false);
    give_tokens(&narrow);
    attention_case wide = attention_case_widened(&narrow);
    if (atn_context_device(context) == ATN_CPU) /* which has one form only */
        narrow.desc.passes = ATN_SOFT_AUTO;
    results got = {.counts = {0}}, want = {.counts = {0}};
    atn_status status = run_case(cpu, &wide, c->work, &want);
    if (status < 0)
        report_note("%s", atn_last_error(cpu));
    else
        status = run_case(context, &narrow, c->work, &got);
    for (int i = 0; i < RESULTS && status >= 0; i++)
        errors[i] =
            got.counts[i] ? relative_error(got.counts[i], got.values[i], want.values[i]) : 0;
    free_results(&got);
    free_results(&want);
    attention_case_free(&wide);
    attention_case_free(&narrow);
    return status < 0 ? status : ATN_OK;
}

/* All of them, if the CPU can take them. */
static int64_t choose_tokens(atn_context *cpu, const bench_case *c)
{
    attention_case problem = bench_problem(c, ATN_F64, 1, c->tokens, true);
    atn_cost cost = {0};
    atn_status status = atn_attention_cost(cpu, &problem.desc, &problem.shape, &cost);
    attention_case_free(&problem);
    bool few = status != ATN_OK || !(cost.flops <= most_flops);
    return few && c->tokens > FEW_TOKENS && FEW_TOKENS >= c->landmarks ? FEW_TOKENS : c->tokens;
}

static atn_status check_attention(atn_context *context, atn_context *cpu, const bench_case *c,
                                  check_result *worst)
{
    int64_t tokens = choose_tokens(cpu, c);
    double errors[RESULTS], plain[RESULTS];
    atn_status status = compare(cpu, cpu, c, ATN_F32, tokens, plain);
    if (status == ATN_OK)
        status = compare(context, cpu, c, c->dtype, tokens, errors);
    for (int i = 0; i < RESULTS && status == ATN_OK; i++)
        keep_worse(worst, check_judge(c->dtype, errors[i], plain[i]));
    return status;
}

/* ---- Inverses ---- */

/* The first matrices' inverses on a device, in f64; a status that is not negative is ATN_OK. */
static atn_status invert(atn_context *context, const bench_case *c, atn_dtype dtype,
                         const double *a, double *x)
{
    int64_t m = c->landmarks, batch = c->batch < FEW_MATRICES ? c->batch : FEW_MATRICES;
    int64_t count = batch * m * m;
    size_t size = atn_dtype_size(dtype);
    void *typed_a = must_allocate((size_t)count, size),
         *typed_x = must_allocate((size_t)count, size);
    atn_tensor from = atn_tensor_dense(typed_a, dtype, batch, 1, m, m);
    atn_tensor to = atn_tensor_dense(typed_x, dtype, batch, 1, m, m);
    atn_inverse_desc desc = atn_inverse_defaults(c->inverse);
    atn_convert(dtype, typed_a, ATN_F64, a, count);
    atn_status status = staged_inverse(context, &desc, &from, &to, NULL, NULL);
    atn_convert(ATN_F64, x, dtype, typed_x, count);
    free(typed_x);
    free(typed_a);
    return status < 0 ? status : ATN_OK;
}

/* a as the type holds it. */
static void round_to(atn_dtype dtype, int64_t count, double *a)
{
    void *typed = must_allocate((size_t)count, atn_dtype_size(dtype));
    atn_convert(dtype, typed, ATN_F64, a, count);
    atn_convert(ATN_F64, a, dtype, typed, count);
    free(typed);
}

static atn_status check_inverse(atn_context *context, atn_context *cpu, const bench_case *c,
                                check_result *worst)
{
    int64_t m = c->landmarks, batch = c->batch < FEW_MATRICES ? c->batch : FEW_MATRICES;
    int64_t count = batch * m * m;
    double *a = must_allocate((size_t)count * 4, sizeof *a);
    double *want = a + count, *plain = want + count, *got = plain + count;
    subject_matrices(0, batch, m, a);
    round_to(c->dtype == ATN_F64 ? ATN_F32 : c->dtype, count, a);
    atn_status status = invert(cpu, c, ATN_F64, a, want);
    if (status == ATN_OK)
        status = invert(cpu, c, ATN_F32, a, plain);
    if (status == ATN_OK)
        status = invert(context, c, c->dtype, a, got);
    for (int64_t i = 0; i < count && status == ATN_OK; i += m * m)
        keep_worse(worst, check_judge(c->dtype, relative_error(m * m, got + i, want + i),
                                      relative_error(m * m, plain + i, want + i)));
    free(a);
    return status;
}

atn_status check_case(atn_context *context, const bench_case *c, check_result *result)
{
    atn_context *cpu;
    atn_status status = atn_context_create(NULL, &cpu);
    *result = (check_result){0};
    if (status != ATN_OK)
        return status;
    status = bench_is_attention(c) ? check_attention(context, cpu, c, result)
                                   : check_inverse(context, cpu, c, result);
    atn_context_free(cpu);
    return status;
}
