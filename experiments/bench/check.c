/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/check.h"

#include <attnum/timing.h>
#include <filters.h>
#include <linear_algebra.h>
#include <math.h>
#include <newton.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plain.h"
#include "bench/workload.h"
#include "common/report.h"
#include "common/staging.h"

/* The most flops of the CPU's part of a check, and the number of tokens that is used if all of them
 * would exceed it. */
static const double most_flops = 2e9;
enum { FEW_TOKENS = 784, REFERENCE_TOKENS = 196, FEW_MATRICES = 2, RESULTS = 3 };

#define CHECK_NAME(code, name, description) [code] = name,
static const char *const names[] = {CHECK_LIST(CHECK_NAME)};
#undef CHECK_NAME

const char *check_name(check_kind kind)
{
    return names[kind];
}

check_result check_judge(atn_dtype dtype, double error, double condition, int64_t terms)
{
    double u = atn_dtype_roundoff(dtype), sums = fmin(u, atn_dtype_roundoff(ATN_F32));
    if (condition < 1)
        condition = 1;
    check_result r = {.error = error, .bound = 8 * condition * (u + sqrt((double)terms) * sums)};
    if (!(r.bound <= 0.5) && isfinite(error))
        r.kind = CHECK_OPEN;
    else
        r.kind = error <= r.bound ? CHECK_PASS : CHECK_FAIL;
    return r;
}

/* Values converted to a type; null: zeros. */
static void *must_typed(atn_dtype dtype, int64_t count, const double *values)
{
    void *typed = must_allocate((size_t)count, atn_dtype_size(dtype));
    if (values)
        atn_convert(dtype, typed, ATN_F64, values, count);
    return typed;
}

static double relative_error(int64_t count, const double *got, const double *want)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return difference == 0 ? 0 : sqrt(difference / norm); /* zeros may be what is right */
}

/* Changes each value by one roundoff of f32, up or down. */
static void move(uint64_t stream, int64_t count, double *values)
{
    const double u = atn_dtype_roundoff(ATN_F32);
    float *signs = must_allocate((size_t)count, sizeof *signs);
    workload_numbers(stream, count, signs);
    for (int64_t i = 0; i < count; i++)
        values[i] *= signs[i] < 0 ? 1 - u : 1 + u;
    free(signs);
}

/* The relative change of a result under that change of its inputs, in units of f32's roundoff. */
static double condition_of(int64_t count, const double *moved, const double *want)
{
    return relative_error(count, moved, want) / atn_dtype_roundoff(ATN_F32);
}

/* A kernel matrix of one or two landmarks has equal row sums. The papers' start, 2 A / |A|_1^2, is
 * then on the boundary of divergence, where each step doubles the rounding errors of A's largest
 * mode. Moved tokens do not show that, since the row sums stay equal. */
static double at_least_doubled(const atn_inverse_desc *desc, int64_t m, double condition)
{
    bool boundary =
        m <= 2 && (desc->method == ATN_INVERSE_NR_PAPER || desc->method == ATN_INVERSE_NR_SOFTPP);
    double doubled = boundary ? ldexp(1, desc->iterations) : 1;
    return condition < doubled ? doubled : condition; /* NaN stays */
}

/* A check that would pass whatever is computed is left open. */
static check_result leave_open(check_result r)
{
    if (r.kind == CHECK_PASS)
        r.kind = CHECK_OPEN;
    return r;
}

void check_keep_worse(check_result *worst, check_result r)
{
    static const int badness[CHECK_COUNT] = {[CHECK_OPEN] = 1, [CHECK_FAIL] = 2};
    int more = badness[r.kind] - badness[worst->kind];
    bool closer = more == 0 && !(r.error / r.bound <= worst->error / worst->bound);
    if (worst->bound == 0 || more > 0 || closer)
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

/* Sets the tokens to those that are timed, in the case's type. */
static void give_tokens(attention_case *c)
{
    double *const all[] = {c->q, c->k, c->v};
    int64_t heads = c->shape.batch * c->shape.heads, count = attention_case_queries(c);
    float *values = must_allocate((size_t)count, sizeof *values);
    void *typed = must_allocate((size_t)count, atn_dtype_size(c->choice.dtype));
    for (int i = 0; i < RESULTS; i++)
        if (all[i]) {
            workload_tokens(0, i, heads, c->shape.tokens, c->shape.dim, values);
            atn_convert(c->choice.dtype, typed, ATN_F32, values, count);
            atn_convert(ATN_F64, all[i], c->choice.dtype, typed, count);
        }
    free(typed);
    free(values);
}

/* Whether the case is the CPU in f64, with which other cases are compared. */
static bool is_own_measure(const atn_context *context, const bench_case *c)
{
    return atn_context_device(context) == ATN_CPU && c->dtype == ATN_F64 && c->maker == BENCH_OURS;
}

/* Computes the result on the CPU in f64, and the result for perturbed inputs. */
static atn_status run_wide(atn_context *cpu, const attention_case *narrow, bench_work work,
                           results *want, results *moved)
{
    attention_case wide = attention_case_widened(narrow);
    int64_t count = attention_case_queries(&wide);
    atn_status status = run_case(cpu, &wide, work, want);
    double *const inputs[] = {wide.q, wide.k, wide.v, wide.dout};
    for (uint64_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i])
            move(i, count, inputs[i]);
    if (status >= 0)
        status = run_case(cpu, &wide, work, moved);
    if (status < 0)
        report_note("%s", atn_last_error(cpu));
    attention_case_free(&wide);
    return status;
}

/* The error of a gradient G by the reference's derivative in a direction S of random signs: as
 * G's errors are independent, |<G, S> - <dY, Y'(S)>| / |G|_F is about their Frobenius norm. */
static atn_status gradient_error(const attention_case *c, int input, int64_t count,
                                 const double *got, double *error)
{
    double *signs = must_allocate((size_t)count * 2, sizeof *signs), *slope = signs + count;
    float *numbers = must_allocate((size_t)count, sizeof *numbers);
    ref_attention_arrays direction = {.q = input == 0 ? signs : NULL,
                                      .k = input == 1 ? signs : NULL,
                                      .v = input == 2 ? signs : NULL};
    ref_attention_problem problem = attention_case_problem(c);
    workload_numbers((uint64_t)input, count, numbers);
    for (int64_t i = 0; i < count; i++)
        signs[i] = numbers[i] < 0 ? -1 : 1;
    atn_status status = ref_attention_derivative(&problem, &direction, slope);
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += got[i] * signs[i] - c->dout[i] * slope[i];
        norm += got[i] * got[i];
    }
    *error = fabs(difference) / sqrt(norm);
    if (difference == 0)
        *error = 0;
    free(numbers);
    free(signs);
    return status;
}

/* The error of a result of the CPU in f64 by the reference, which shares no code with the library.
 */
static atn_status reference_error(const attention_case *c, bench_work work, int i, int64_t count,
                                  const double *got, double *error)
{
    if (work == BENCH_BACKWARD)
        return gradient_error(c, i, count, got, error);
    double *exact = must_allocate((size_t)count, sizeof *exact);
    ref_attention_problem problem = attention_case_problem(c);
    atn_status status = ref_attention(&problem, exact);
    *error = relative_error(count, got, exact);
    free(exact);
    return status;
}

/* Compares the device with the CPU in f64; where these are the same, compares with the reference.
 */
static atn_status compare(atn_context *context, atn_context *cpu, const bench_case *c,
                          attention_case *narrow, check_result *worst)
{
    results got = {.counts = {0}}, want = {.counts = {0}}, moved = {.counts = {0}};
    atn_status status = run_wide(cpu, narrow, c->work, &want, &moved);
    if (atn_context_device(context) == ATN_CPU) /* the CPU has only one form */
        narrow->desc.passes = ATN_SOFT_AUTO;
    if (status >= 0)
        status = run_case(context, narrow, c->work, &got);
    for (int i = 0; i < RESULTS && status >= 0; i++)
        if (got.counts[i]) {
            int64_t count = got.counts[i], terms = attention_case_terms(narrow);
            double condition = condition_of(count, moved.values[i], want.values[i]);
            if (c->op == ATN_SOFT || c->op == ATN_SOFTPP)
                condition = at_least_doubled(&narrow->desc.inverse, c->landmarks, condition);
            double error = relative_error(count, got.values[i], want.values[i]), exact;
            bool own = is_own_measure(context, c);
            bool known =
                own && reference_error(narrow, c->work, i, count, got.values[i], &exact) == ATN_OK;
            check_result r = check_judge(c->dtype, known ? exact : error, condition, terms);
            check_keep_worse(worst, own && !known ? leave_open(r) : r);
        }
    free_results(&moved);
    free_results(&got);
    free_results(&want);
    return status < 0 ? status : ATN_OK;
}

/* Chooses all tokens if the CPU is fast enough, and few for the reference. */
static int64_t choose_tokens(atn_context *context, atn_context *cpu, const bench_case *c)
{
    if (is_own_measure(context, c) && c->tokens > REFERENCE_TOKENS)
        return c->landmarks > REFERENCE_TOKENS ? c->landmarks : REFERENCE_TOKENS;
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
    attention_case narrow = bench_problem(c, c->dtype, 1, choose_tokens(context, cpu, c), false);
    give_tokens(&narrow);
    atn_status status = compare(context, cpu, c, &narrow, worst);
    attention_case_free(&narrow);
    return status;
}

/* ---- Inverses ---- */

/* The first matrices of a batch, in f64, and the size of the result: X, or X W. */
typedef struct {
    const bench_case *c;
    int64_t batch, cols;
    double *a, *w;
    int64_t count; /* elements of the result */
} few_matrices;

/* X W by the published steps through OpenBLAS. */
static void solve_plainly(const few_matrices *f, const atn_tensor *a, const atn_tensor *w,
                          const atn_tensor *y)
{
    int64_t m = a->rows;
    void *work = must_allocate((size_t)(3 * m * m), atn_dtype_size(a->dtype));
    for (int64_t i = 0; i < f->batch; i++)
        plain_newton(a->dtype, m, f->cols, atn_tensor_matrix(a, i, 0), atn_tensor_matrix(w, i, 0),
                     work, atn_tensor_matrix(y, i, 0));
    free(work);
}

/* By default exact methods choose jitter and cutoff by the roundoff of their type. f64 must invert
 * the same A + jitter I as an f32 factorisation, so it gets the values of f32. */
static void give_constants(atn_dtype dtype, int64_t m, atn_inverse_desc *desc)
{
    double u = fmin(atn_dtype_roundoff(dtype), atn_dtype_roundoff(ATN_F32));
    if (desc->jitter < 0)
        desc->jitter = u * sqrt((double)m);
    if (desc->rcond < 0)
        desc->rcond = u * (double)m;
}

static bool estimates_interval(const atn_inverse_desc *desc)
{
    atn_inverse_method m = desc->method;
    return desc->interval_low == 0 &&
           (m == ATN_INVERSE_CHEBYSHEV_2 || m == ATN_INVERSE_CHEBYSHEV_3 ||
            m == ATN_INVERSE_CHEBYSHEV_9);
}

/* The result of an iteration that has not converged depends on the estimated ends of the spectrum,
 * and these on the rounding of the estimate. So f64 is given the ends that f32 finds for the first
 * matrix. */
static atn_status give_interval(atn_context *cpu, const few_matrices *f, atn_inverse_desc *desc)
{
    int64_t m = f->c->landmarks;
    atn_inverse_info info = {0};
    float *x = must_allocate((size_t)(m * m), sizeof *x);
    atn_tensor to = atn_tensor_dense(x, ATN_F32, 1, 1, m, m);
    atn_tensor from = atn_tensor_dense(must_typed(ATN_F32, m * m, f->a), ATN_F32, 1, 1, m, m);
    atn_status status = atn_inverse(cpu, desc, &from, &to, &info, NULL);
    desc->interval_low = info.interval_low;
    desc->interval_high = info.interval_high;
    free(from.data);
    free(x);
    return status < 0 ? status : ATN_OK;
}

/* Computes X or X W in a type on a device. The result is converted to f64; a status that is not
 * negative becomes ATN_OK. desc and infos (null, or one for each matrix): the description used, and
 * what the library reports. */
static atn_status invert(atn_context *context, const few_matrices *f, bench_maker maker,
                         atn_dtype dtype, atn_inverse_desc *desc, atn_inverse_info *infos,
                         double *result)
{
    int64_t m = f->c->landmarks;
    int64_t sides = BENCH_RIGHT_SIDES;
    atn_tensor from =
        atn_tensor_dense(must_typed(dtype, f->batch * m * m, f->a), dtype, f->batch, 1, m, m);
    atn_tensor side = atn_tensor_dense(must_typed(dtype, f->batch * m * sides, f->w), dtype,
                                       f->batch, 1, m, sides);
    atn_tensor to =
        atn_tensor_dense(must_typed(dtype, f->count, NULL), dtype, f->batch, 1, m, f->cols);
    atn_status status = workload_inverse(f->c, atn_context_isa(context), desc);
    if (dtype == ATN_F64)
        give_constants(f->c->dtype, m, desc);
    if (status == ATN_OK && dtype == ATN_F64 && estimates_interval(desc))
        status = give_interval(context, f, desc);
    if (status == ATN_OK && f->c->work == BENCH_INVERSE)
        status = staged_inverse(context, desc, &from, &to, infos, NULL);
    else if (status == ATN_OK && maker == BENCH_OURS)
        status = atn_inverse_apply(context, desc, &from, &side, &to, infos);
    else if (status == ATN_OK)
        solve_plainly(f, &from, &side, &to);
    atn_convert(ATN_F64, result, dtype, to.data, f->count);
    free(to.data);
    free(side.data);
    free(from.data);
    return status < 0 ? status : ATN_OK;
}

/* Rounds values to a type. */
static void round_to(atn_dtype dtype, int64_t count, double *values)
{
    void *typed = must_typed(dtype, count, values);
    atn_convert(ATN_F64, values, dtype, typed, count);
    free(typed);
}

static void make_matrices(const bench_case *c, few_matrices *f)
{
    int64_t m = c->landmarks, sides = m * BENCH_RIGHT_SIDES;
    atn_dtype dtype = c->dtype == ATN_F64 ? ATN_F32 : c->dtype;
    atn_inverse_desc desc = atn_inverse_defaults(c->inverse);
    int64_t most = estimates_interval(&desc) ? 1 : FEW_MATRICES;
    *f = (few_matrices){.c = c, .batch = c->batch < most ? c->batch : most};
    f->cols = c->work == BENCH_SOLVE ? BENCH_RIGHT_SIDES : m;
    f->count = f->batch * m * f->cols;
    f->a = must_allocate((size_t)(f->batch * m * m), sizeof *f->a);
    f->w = must_allocate((size_t)(f->batch * sides), sizeof *f->w);
    float *values = must_allocate((size_t)(f->batch * sides), sizeof *values);
    workload_matrices(0, f->batch, m, f->a);
    workload_tokens(0, 1, f->batch, m, BENCH_RIGHT_SIDES, values);
    atn_convert(ATN_F64, f->w, ATN_F32, values, f->batch * sides);
    round_to(dtype, f->batch * m * m, f->a);
    round_to(dtype, f->batch * sides, f->w);
    free(values);
}

/* Changes matrices so that they stay symmetric. */
static void move_matrices(few_matrices *f)
{
    int64_t m = f->c->landmarks;
    move(0, f->batch * m * m, f->a);
    move(1, f->batch * m * BENCH_RIGHT_SIDES, f->w);
    for (int64_t k = 0; k < f->batch; k++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < i; j++)
                f->a[(k * m + j) * m + i] = f->a[(k * m + i) * m + j];
}

/* X as a method defines it, from the start, steps and interval that it reports, by eigenvalues.
 * ATN_ERR_UNSUPPORTED: a factor of lower rank, whose X depends on the pivots. */
static atn_status exact_inverse(const atn_inverse_desc *desc, const atn_inverse_info *info,
                                int64_t m, const double *a, double *x)
{
    atn_inverse_desc used = *desc;
    ref_iteration iteration;
    used.interval_low = info->interval_low;
    used.interval_high = info->interval_high;
    if (ref_iteration_of(&used, m, a, &iteration))
        return ref_iteration_matrix(m, a, &iteration, info->returned, x);
    if (info->stop != ATN_STOP_DIRECT)
        return ref_filter_matrix(m, a, info->alpha, desc->ridge, info->returned, x);
    if (desc->method == ATN_INVERSE_PIVOTED_CHOLESKY && info->rank < m)
        return ATN_ERR_UNSUPPORTED;
    double *shifted = must_allocate((size_t)(m * m), sizeof *shifted);
    for (int64_t i = 0; i < m * m; i++)
        shifted[i] = a[i] + (i % (m + 1) == 0 ? info->jitter : 0);
    double rcond = desc->method == ATN_INVERSE_EIG ? desc->rcond : 0;
    atn_status status = ref_symmetric_pinv(m, shifted, rcond, x, NULL, NULL, NULL);
    free(shifted);
    return status;
}

/* The error of X or X W, computed in f64 from matrix i, compared with that X. */
static atn_status inverse_error(const few_matrices *f, int64_t i, const atn_inverse_desc *desc,
                                const atn_inverse_info *info, const double *got, double *error)
{
    int64_t m = f->c->landmarks, cols = f->cols;
    double *x = must_allocate((size_t)(m * m), sizeof *x);
    double *want = must_allocate((size_t)(m * cols), sizeof *want);
    atn_status status = exact_inverse(desc, info, m, f->a + i * m * m, x);
    if (f->c->work == BENCH_INVERSE)
        memcpy(want, x, (size_t)(m * m) * sizeof *want);
    else
        plain_product(ATN_F64, false, false, m, cols, m, x, f->w + i * m * cols, want);
    *error = relative_error(m * cols, got, want);
    free(want);
    free(x);
    return status;
}

static atn_status check_inverse(atn_context *context, atn_context *cpu, const bench_case *c,
                                check_result *worst)
{
    few_matrices f;
    make_matrices(c, &f);
    int64_t one = f.count / f.batch;
    double *want = must_allocate((size_t)f.count * 3, sizeof *want);
    double *moved = want + f.count, *got = moved + f.count, exact[FEW_MATRICES];
    bool own = is_own_measure(context, c), known[FEW_MATRICES] = {false};
    atn_inverse_desc desc;
    atn_inverse_info infos[FEW_MATRICES] = {{0}};
    atn_status status = invert(cpu, &f, BENCH_OURS, ATN_F64, &desc, infos, want);
    for (int64_t i = 0; i < f.batch && status == ATN_OK && own; i++)
        known[i] = inverse_error(&f, i, &desc, &infos[i], want + i * one, &exact[i]) == ATN_OK;
    if (status == ATN_OK)
        status = invert(context, &f, c->maker, c->dtype, &desc, NULL, got);
    move_matrices(&f);
    if (status == ATN_OK)
        status = invert(cpu, &f, BENCH_OURS, ATN_F64, &desc, NULL, moved);
    for (int64_t i = 0; i < f.batch && status == ATN_OK; i++) {
        double error = relative_error(one, got + i * one, want + i * one);
        double condition = at_least_doubled(&desc, c->landmarks,
                                            condition_of(one, moved + i * one, want + i * one));
        check_result r =
            check_judge(c->dtype, known[i] ? exact[i] : error, condition, c->landmarks);
        check_keep_worse(worst, own && !known[i] ? leave_open(r) : r);
    }
    free(want);
    free(f.w);
    free(f.a);
    return status;
}

/* ---- Parts of operators ---- */

/* Runs the part as in the timed call, exp once instead of repeatedly; result: that of the first
 * head, or of all threads' numbers. */
static atn_status run_part(atn_context *context, const bench_case *c, int64_t count, double *result)
{
    workload_store store;
    workload s;
    double exps;
    workload_store_open(context, 1, c, &store);
    workload_open(&store, context, c, &s);
    if (s.status == ATN_OK && c->work != BENCH_EXP)
        workload_try(&s);
    else if (s.status == ATN_OK && c->maker == BENCH_OURS)
        s.status = atn_exponentials(context, c->dtype, 1, c->tokens, s.work, &exps);
    else if (s.status == ATN_OK)
        plain_exponentials(c->dtype, count, s.work);
    atn_status status = s.status;
    if (status == ATN_OK)
        atn_convert(ATN_F64, result, c->dtype,
                    c->work == BENCH_EXP ? s.work : s.arrays->outputs[0].data, count);
    workload_close(&s);
    workload_store_close(&store);
    return status;
}

/* Compares with other code, on the same numbers: ours with the libraries', theirs with ours. */
static atn_status check_part(atn_context *context, atn_context *cpu, const bench_case *c,
                             check_result *worst)
{
    (void)cpu;
    int64_t count = c->work == BENCH_EXP ? c->threads * c->tokens : c->tokens * c->landmarks;
    double *got = must_allocate((size_t)count * 3, sizeof *got);
    double *want = got + count, *narrow = want + count;
    bench_case other = *c;
    other.maker = c->maker != BENCH_OURS  ? BENCH_OURS
                  : c->work == BENCH_GEMM ? BENCH_OPENBLAS
                                          : BENCH_LIBM;
    atn_status status = run_part(context, c, count, got);
    other.dtype = ATN_F64;
    if (status == ATN_OK)
        status = run_part(context, &other, count, want);
    other.dtype = ATN_F32;
    if (status == ATN_OK)
        status = run_part(context, &other, count, narrow);
    if (status == ATN_OK)
        *worst = check_judge(c->dtype, relative_error(count, got, want),
                             condition_of(count, narrow, want), 0);
    free(got);
    return status;
}

/* Of whole networks there is no other code but PyTorch's (bench/peers/test_networks.py). */
static atn_status check_training(atn_context *context, atn_context *cpu, const bench_case *c,
                                 check_result *result)
{
    (void)context, (void)cpu, (void)c;
    result->kind = CHECK_OPEN;
    return ATN_OK;
}

static atn_status (*const checks[BENCH_WORK_COUNT])(atn_context *, atn_context *,
                                                    const bench_case *, check_result *) = {
    [BENCH_FORWARD] = check_attention, [BENCH_BACKWARD] = check_attention,
    [BENCH_INVERSE] = check_inverse,   [BENCH_SOLVE] = check_inverse,
    [BENCH_KERNEL] = check_part,       [BENCH_GEMM] = check_part,
    [BENCH_EXP] = check_part,          [BENCH_TRAINING] = check_training,
};

atn_status check_case(atn_context *context, const bench_case *c, check_result *result)
{
    atn_context *cpu;
    atn_context_options options = {.isa = atn_context_isa(context)};
    atn_status status = atn_context_create(&options, &cpu);
    *result = (check_result){0};
    if (status != ATN_OK)
        return status;
    status = checks[c->work](context, cpu, c, result);
    atn_context_free(cpu);
    return status;
}
