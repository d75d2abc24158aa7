/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ forward against the dense reference, SOFT (IJCV) Eq. 5-9 and 17. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "dense_soft.h"
#include "fixture.h"
#include "linear_algebra.h"
#include "pairs.h"
#include "staged.h"

/* A usual case, for tests to change. */
static fixture_soft_case usual(atn_operator op, atn_dtype dtype)
{
    return (fixture_soft_case){
        .op = op,
        .dtype = dtype,
        .layout = GUARDED_STRIDED,
        .sampling = ATN_SAMPLING_FIRST,
        .inverse = atn_inverse_defaults(ATN_INVERSE_EIG),
        .batch = 1,
        .heads = 1,
        .height = 6,
        .width = 8,
        .stride = 2,
        .count = 12,
        .dim = 16,
        .value_dim = 5,
        .seed = 1,
    };
}

static const char *describe(const fixture_soft_case *c)
{
    static char text[200];
    snprintf(text, sizeof text,
             "%s %s %s %s layout=%d b=%ld h=%ld n=%ldx%ld stride=%ld count=%ld d=%ld dv=%ld "
             "window=%ld",
             atn_operator_get(c->op)->name, atn_dtype_name(c->dtype),
             atn_sampling_name(c->sampling), atn_inverse_name(c->inverse.method), c->layout,
             (long)c->batch, (long)c->heads, (long)c->height, (long)c->width, (long)c->stride,
             (long)c->count, (long)c->dim, (long)c->value_dim, (long)c->window);
    return text;
}

/* Runs and judges one case. Returns whether it could be judged. */
static bool check(atn_context *context, const fixture_soft_case *c)
{
    fixture_soft f = fixture_soft_make(c);
    double ratio;
    fixture_soft_expect(&f);
    atn_status status = fixture_soft_run(&f, context);
    ref_verdict verdict = fixture_soft_judge(&f, &ratio);
    cr_expect(status >= 0 && verdict != REF_FAIL && verdict != REF_MARGINAL &&
                  guarded_unwritten(&f.out) == 0 && guarded_damaged(&f.out) == 0,
              "%s: %s (%s) m=%ld kappa=%.3g ratio=%.3g unwritten=%ld damaged=%ld", describe(c),
              atn_status_name(status), atn_last_error(context), (long)f.m, f.kappa, ratio,
              (long)guarded_unwritten(&f.out), (long)guarded_damaged(&f.out));
    fixture_soft_free(&f);
    return verdict != REF_SKIPPED;
}

typedef struct {
    int64_t height, width, stride, count, batch, heads, dim, value_dim;
} soft_shape;

static bool fits(atn_sampling_kind kind, const soft_shape *s)
{
    bool grid =
        kind == ATN_SAMPLING_POOL || kind == ATN_SAMPLING_CONV || kind == ATN_SAMPLING_CONV_CODE;
    return !grid || (s->stride <= s->height && s->stride <= s->width);
}

/* n = 1, 2, 3, 49, 64, 100, 127 .. 130; m = 1 and m = n; dv = 1 and dv != d. */
static const soft_shape small_shapes[] = {
    {1, 1, 1, 1, 2, 1, 8, 3},    {1, 2, 1, 2, 1, 2, 9, 1},   {1, 3, 1, 1, 1, 1, 16, 16},
    {7, 7, 7, 1, 1, 3, 8, 5},    {8, 8, 1, 64, 1, 1, 32, 7}, {10, 10, 2, 33, 2, 2, 17, 33},
    {127, 1, 1, 16, 1, 1, 8, 2}, {16, 8, 4, 17, 1, 2, 8, 4}, {3, 43, 3, 31, 1, 1, 12, 1},
    {10, 13, 3, 49, 2, 1, 8, 9},
};

static fixture_soft_case shaped(atn_operator op, atn_dtype dtype, const soft_shape *s, int i)
{
    fixture_soft_case c = usual(op, dtype);
    c.height = s->height, c.width = s->width, c.stride = s->stride, c.count = s->count;
    c.batch = s->batch, c.heads = s->heads, c.dim = s->dim, c.value_dim = s->value_dim;
    c.layout = (guarded_layout)(i % GUARDED_LAYOUT_COUNT);
    c.seed = 100 + (uint64_t)i;
    return c;
}

/* The starts that converge for these matrices; the adaptive rule finds none and is tested below. */
static atn_inverse_desc inverse_for(int method)
{
    atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
    desc.alpha = method == ATN_INVERSE_NR ? 1e-4 : 0;
    fixture_interval(&desc);
    return desc;
}

enum { SMALL_SHAPES = sizeof small_shapes / sizeof *small_shapes };

/* Sampling, inverse, dtype, shape. */
static bool can_be_combined(const int *v)
{
    return v[1] != ATN_INVERSE_NR_ADAPTIVE && fits((atn_sampling_kind)v[0], &small_shapes[v[3]]);
}

/* What cannot be judged in f32, whose A is too ill-conditioned, can in f64. */
static void every_combination(atn_operator op)
{
    static const int sizes[] = {ATN_SAMPLING_COUNT, ATN_INVERSE_COUNT, ATN_CPU_DTYPE_COUNT,
                                SMALL_SHAPES};
    atn_context *context = fixture_context(1, NULL);
    pairs chosen = pairs_make(4, sizes, can_be_combined);
    int judged = 0;
    for (int i = 0; i < chosen.count; i++) {
        const int *v = chosen.combination[i];
        fixture_soft_case c = shaped(op, (atn_dtype)v[2], &small_shapes[v[3]], v[3]);
        c.sampling = (atn_sampling_kind)v[0];
        c.inverse = inverse_for(v[1]);
        bool judgeable = check(context, &c);
        judged += judgeable;
        c.dtype = ATN_F64;
        /* the papers' starts do not invert A = 1 */
        cr_expect(judgeable || c.count == 1 || (v[2] == ATN_F32 && check(context, &c)),
                  "%s could not be judged", describe(&c));
    }
    cr_expect(2 * judged >= chosen.count, "%d of %d judged", judged, chosen.count);
    pairs_free(&chosen);
    atn_context_free(context);
}

Test(soft, every_sampling_and_inverse)
{
    every_combination(ATN_SOFT);
}

Test(softpp, every_sampling_and_inverse)
{
    every_combination(ATN_SOFTPP);
}

/* Several chunks (1024 tokens, or 32 m, or a 32nd of all) and blocks (128), with remainders of 1,
 * 127 and none. The last shape is for the CPU: an emulated device is slow. */
Test(soft, chunks_and_blocks)
{
    static const soft_shape shapes[] = {
        {1, 1023, 64, 9, 1, 1, 8, 3},   {1, 1024, 64, 9, 1, 1, 8, 3},
        {1, 1025, 64, 9, 1, 2, 8, 3},   {1, 1151, 64, 9, 1, 1, 8, 2},
        {1, 1152, 90, 9, 1, 1, 8, 2},   {3, 1000, 90, 33, 1, 1, 8, 2},
        {41, 50, 50, 40, 2, 1, 16, 20}, {43, 50, 34, 64, 1, 1, 16, 2},
        {1, 4097, 300, 9, 1, 1, 8, 2},  {1, 32769, 4000, 9, 1, 1, 8, 2},
    };
    static const atn_sampling_kind kinds[] = {ATN_SAMPLING_WINDOW, ATN_SAMPLING_INDICES};
    static const int methods[] = {ATN_INVERSE_EIG, ATN_INVERSE_PIVOTED_CHOLESKY};
    atn_context *context = fixture_context(2, NULL);
    size_t count = sizeof shapes / sizeof *shapes - (fixture_device() != ATN_CPU);
    int judged = 0, run = 0;
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (size_t i = 0; i < count; i++)
            for (int k = 0; k < 4; k++) {
                atn_dtype dtype = (atn_dtype)((k / 2 + (int)i) % 2);
                fixture_soft_case c = shaped((atn_operator)op, dtype, &shapes[i], (int)i);
                if (k % 2 == op) /* every sampling with every inverse, over the shapes */
                    continue;
                c.sampling = kinds[k / 2];
                c.inverse = inverse_for(methods[(k + (int)i) % 2]);
                bool judgeable = check(context, &c);
                cr_expect(judgeable || dtype == ATN_F32, "%s could not be judged", describe(&c));
                judged += judgeable;
                run++;
            }
    cr_expect(3 * judged >= 2 * run, "%d of %d judged", judged, run);
    atn_context_free(context);
}

Test(soft, residual_convolution)
{
    /* the last two have several chunks, which share out rows unevenly */
    static const int64_t grids[][2] = {{1, 1}, {7, 9},   {1, 30},  {30, 1},
                                       {3, 4}, {37, 33}, {1, 2100}};
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
            for (int64_t window = 1; window <= 9; window += window == 5 ? 4 : 2) {
                fixture_soft_case c = usual((atn_operator)(g % 2), (atn_dtype)dtype);
                c.height = grids[g][0], c.width = grids[g][1];
                c.count = c.height * c.width < 9 ? 1 : 9;
                c.batch = 2, c.heads = 3;
                c.window = window;
                cr_expect(check(context, &c), "%s could not be judged", describe(&c));
            }
    atn_context_free(context);
}

Test(soft, scales_and_distances)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
            for (int scale = 0; scale < ATN_SCALE_COUNT; scale++)
                for (int distance = 0; distance < ATN_DISTANCE_COUNT; distance++)
                    for (int factored = 0; factored < 2; factored++) {
                        fixture_soft_case c = usual((atn_operator)op, (atn_dtype)dtype);
                        c.heads = 3;
                        c.scale = (atn_scale)scale;
                        c.scale_value = 0.4;
                        c.distance = (atn_distance)distance;
                        if (factored)
                            c.inverse = inverse_for(ATN_INVERSE_PIVOTED_CHOLESKY);
                        cr_expect(check(context, &c), "%s could not be judged", describe(&c));
                    }
    atn_context_free(context);
}

/* Landmarks = tokens: S^ = S (Eq. 5), whatever exact inverse. */
Test(soft, all_tokens_as_landmarks_give_s_itself)
{
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int method = ATN_INVERSE_EIG; method < ATN_INVERSE_COUNT; method++) {
            fixture_soft_case c = usual(ATN_SOFT, (atn_dtype)dtype);
            c.inverse = inverse_for(method);
            c.count = c.height * c.width;
            fixture_soft f = fixture_soft_make(&c);
            double *s = data_allocate(f.n * f.n), ratio;
            fixture_soft_expect(&f);
            ref_gaussian(f.n, f.n, c.dim, f.q, f.q, 0.125, s);
            for (int64_t i = 0; i < f.n * c.value_dim; i++) {
                f.want[i] = 0;
                for (int64_t j = 0; j < f.n; j++)
                    f.want[i] +=
                        s[i / c.value_dim * f.n + j] * f.v[j * c.value_dim + i % c.value_dim];
            }
            atn_status status = fixture_soft_run(&f, context);
            ref_verdict verdict = fixture_soft_judge(&f, &ratio);
            cr_expect(status == ATN_OK && verdict == REF_PASS, "%s: %s ratio=%.3g", describe(&c),
                      atn_status_name(status), ratio);
            free(s);
            fixture_soft_free(&f);
        }
    atn_context_free(context);
}

/* Y(2 V1 - 3 V2) = 2 Y(V1) - 3 Y(V2). */
Test(soft, linear_in_v)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++) {
        fixture_soft_case c = usual((atn_operator)op, ATN_F64), other = c;
        c.inverse = inverse_for(op == ATN_SOFT ? ATN_INVERSE_NR_PAPER : ATN_INVERSE_NR_SOFTPP);
        c.window = 3, other = c, other.seed = 2;
        fixture_soft f = fixture_soft_make(&c), g = fixture_soft_make(&other);
        int64_t count = f.n * c.value_dim;
        double *y1 = data_allocate(count), ratio;
        fixture_soft_expect(&f); /* for kappa */
        fixture_soft_run(&f, context);
        guarded_get(&f.out, y1);
        double *v1 = data_allocate(count);
        memcpy(v1, f.v, (size_t)count * sizeof *v1);
        memcpy(f.v, g.v, (size_t)count * sizeof *v1);
        fixture_soft_load(&f);
        fixture_soft_run(&f, context);
        guarded_get(&f.out, f.want);
        for (int64_t i = 0; i < count; i++) {
            f.want[i] = 2 * y1[i] - 3 * f.want[i];
            f.v[i] = 2 * v1[i] - 3 * f.v[i];
        }
        fixture_soft_load(&f);
        fixture_soft_run(&f, context);
        cr_expect_eq(fixture_soft_judge(&f, &ratio), REF_PASS, "%s: ratio=%.3g", describe(&c),
                     ratio);
        free(v1);
        free(y1);
        fixture_soft_free(&g);
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}

/* Tokens in another order, the same landmarks: outputs in that order. */
Test(soft, permutation_equivariant)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++) {
        fixture_soft_case c = usual((atn_operator)op, ATN_F64);
        c.sampling = ATN_SAMPLING_INDICES;
        fixture_soft f = fixture_soft_make(&c), g = fixture_soft_make(&c);
        int64_t order[64], place[64], dv = c.value_dim, d = c.dim;
        double y[64 * 5], ratio;
        fixture_soft_expect(&f);
        fixture_soft_run(&f, context);
        guarded_get(&f.out, y);
        data_permutation(17, f.n, order);
        for (int64_t i = 0; i < f.n; i++) {
            place[order[i]] = i;
            memcpy(g.q + i * d, f.q + order[i] * d, (size_t)d * sizeof *g.q);
            memcpy(g.v + i * dv, f.v + order[i] * dv, (size_t)dv * sizeof *g.v);
            memcpy(g.want + i * dv, y + order[i] * dv, (size_t)dv * sizeof *y);
        }
        for (int64_t l = 0; l < c.count; l++)
            g.sampling.indices[l] = place[f.sampling.indices[l]];
        g.kappa = f.kappa;
        fixture_soft_load(&g);
        fixture_soft_run(&g, context);
        cr_expect_eq(fixture_soft_judge(&g, &ratio), REF_PASS, "ratio=%.3g", ratio);
        fixture_soft_free(&g);
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}

/* Every token twice, the landmarks held fixed: twice the output. */
Test(soft, doubled_tokens_double_the_output)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++) {
        fixture_soft_case c = usual((atn_operator)op, ATN_F64), twice = c;
        twice.height *= 2;
        fixture_soft f = fixture_soft_make(&c), g = fixture_soft_make(&twice);
        int64_t q = f.n * c.dim, v = f.n * c.value_dim;
        double y[64 * 5], ratio;
        fixture_soft_expect(&f);
        fixture_soft_run(&f, context);
        guarded_get(&f.out, y);
        for (int half = 0; half < 2; half++) {
            memcpy(g.q + half * q, f.q, (size_t)q * sizeof *g.q);
            memcpy(g.v + half * v, f.v, (size_t)v * sizeof *g.v);
            for (int64_t i = 0; i < v; i++)
                g.want[half * v + i] = 2 * y[i];
        }
        g.kappa = f.kappa;
        fixture_soft_load(&g);
        fixture_soft_run(&g, context);
        cr_expect_eq(fixture_soft_judge(&g, &ratio), REF_PASS, "ratio=%.3g", ratio);
        fixture_soft_free(&g);
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}

/* Equal tokens: A and P are all ones, S^ is all ones under SOFT and all 1/m^2 m = 1/m under SOFT++,
 * so every row of Y is the column sum of V, or a m-th of it. nr-paper loses it all. */
Test(soft, constant_tokens)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_EIG, ATN_INVERSE_PIVOTED_CHOLESKY,
                                                 ATN_INVERSE_NR_SOFTPP, ATN_INVERSE_NR_PAPER};
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
            for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
                fixture_soft_case c = usual((atn_operator)op, (atn_dtype)dtype);
                c.inverse = inverse_for((int)methods[k]);
                c.count = 16; /* alpha = 2/16^2 is exact: nr-paper's X_1 is 0 */
                fixture_soft f = fixture_soft_make(&c);
                bool lost = methods[k] == ATN_INVERSE_NR_PAPER;
                double weight = lost ? 0 : op == ATN_SOFT ? 1 : 1.0 / (double)f.m, worst = 0;
                for (int64_t i = 0; i < f.n * c.dim; i++)
                    f.q[i] = 0.5;
                fixture_soft_load(&f);
                atn_status status = fixture_soft_run(&f, context);
                for (int64_t i = 0; i < f.n * c.value_dim; i++) {
                    double sum = 0, size = 0;
                    for (int64_t j = 0; j < f.n; j++) {
                        sum += f.v[j * c.value_dim + i % c.value_dim];
                        size += fabs(f.v[j * c.value_dim + i % c.value_dim]);
                    }
                    double got = guarded_at(&f.out, 0, 0, i / c.value_dim, i % c.value_dim);
                    double bound = 4 * (double)(f.n + f.m) * atn_dtype_roundoff(c.dtype) * size;
                    worst = fmax(worst, fabs(got - weight * sum) / bound);
                }
                cr_expect(worst <= 1 && status == (lost ? ATN_NOT_CONVERGED : ATN_OK),
                          "%s: %s ratio=%.3g", describe(&c), atn_status_name(status), worst);
                fixture_soft_free(&f);
            }
    atn_context_free(context);
}

/* Finite input may overflow on the way: the sum of V, or a squared distance of the clamped form.
 * That is said too, and never with ATN_OK. */
Test(soft, overflow_is_not_ok)
{
    atn_context *context = fixture_context(1, NULL);
    for (int in_q = 0; in_q < 2; in_q++) {
        fixture_soft_case c = usual(ATN_SOFT, ATN_F32);
        c.distance = ATN_DISTANCE_CLAMPED;
        c.height = 1, c.width = 8, c.count = 2, c.dim = c.value_dim = 1;
        fixture_soft f = fixture_soft_make(&c);
        for (int i = 0; i < 8; i++) {
            f.q[i] = in_q ? (i < 4 ? 1e19 : 1e20) : 0;
            f.v[i] = in_q ? 0 : 3e38;
        }
        fixture_soft_load(&f);
        atn_status status = fixture_soft_run(&f, context);
        cr_expect(status == ATN_NONFINITE && isnan(guarded_at(&f.out, 0, 0, 0, 0)) &&
                      isnan(guarded_at(&f.out, 0, 0, 7, 0)),
                  "%s: %s, y[0] = %g", in_q ? "q" : "v", atn_status_name(status),
                  guarded_at(&f.out, 0, 0, 0, 0));
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}

/* NaN or infinity in one head's Q or V: that head all NaN and marked, the others right. */
static void check_poisoned(atn_context *context, fixture_soft_case c, double bad, bool in_q,
                           int64_t row)
{
    fixture_soft f = fixture_soft_make(&c);
    int64_t count = c.batch * c.heads, hit = 2, width = in_q ? c.dim : c.value_dim, finite = 0;
    double ratio;
    fixture_soft_expect(&f);
    (in_q ? f.q : f.v)[(hit * f.n + row) * width + width - 1] = bad;
    fixture_soft_load(&f);
    atn_status status = fixture_soft_run(&f, context);
    for (int64_t i = 0; i < f.n * c.value_dim; i++)
        finite += !isnan(
            guarded_at(&f.out, hit / c.heads, hit % c.heads, i / c.value_dim, i % c.value_dim));
    cr_expect(status == ATN_NONFINITE && finite == 0 && guarded_damaged(&f.out) == 0 &&
                  guarded_unwritten(&f.out) == 0,
              "%s, %g in %s row %ld: %s, %ld entries not NaN", describe(&c), bad, in_q ? "q" : "v",
              (long)row, atn_status_name(status), (long)finite);
    for (int64_t i = 0; i < count; i++) {
        ref_difference difference =
            guarded_compare(&f.out, i / c.heads, i % c.heads, f.want + i * f.n * c.value_dim);
        cr_expect(i == hit ? f.infos[i].status == ATN_NONFINITE
                           : f.infos[i].status == ATN_OK &&
                                 ref_judge_forward(&difference, f.kappa, f.n,
                                                   atn_dtype_roundoff(c.dtype), &ratio) == REF_PASS,
                  "%s, %g in %s row %ld: head %ld is %s, relative error %g", describe(&c), bad,
                  in_q ? "q" : "v", (long)row, (long)i, atn_status_name(f.infos[i].status),
                  difference.relative_frobenius);
    }
    fixture_soft_free(&f);
}

Test(soft, nonfinite_input_spoils_its_own_head_only)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    static const int methods[] = {ATN_INVERSE_EIG, ATN_INVERSE_NR_SOFTPP,
                                  ATN_INVERSE_PIVOTED_CHOLESKY};
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
            for (int i = 0; i < 3; i++)
                for (int where = 0; where < 4; where++) { /* q or v; landmark or last token */
                    fixture_soft_case c = usual((atn_operator)op, (atn_dtype)dtype);
                    c.batch = 2, c.heads = 2;
                    c.window = where == 1 ? 3 : 0;
                    c.inverse = inverse_for(methods[(i + where) % 3]);
                    if (c.inverse.method == ATN_INVERSE_NR_SOFTPP)
                        c.inverse.scope = ATN_SCOPE_MATRIX;
                    check_poisoned(context, c, bad[i], where % 2 == 0,
                                   where < 2 ? 3 : c.height * c.width - 1);
                }
    atn_context_free(context);
}

/* Under the published batch-wide alpha as well, a spoilt head must not decide for the others. */
Test(soft, nonfinite_input_under_a_shared_alpha)
{
    static const double bad[] = {NAN, INFINITY};
    atn_context *context = fixture_context(2, NULL);
    for (int i = 0; i < 2; i++)
        for (int64_t row = 3; row < 48; row += 44) {
            fixture_soft_case c = usual(ATN_SOFTPP, ATN_F64);
            c.batch = 2, c.heads = 2;
            c.inverse = inverse_for(ATN_INVERSE_NR_SOFTPP);
            fixture_soft f = fixture_soft_make(&c);
            f.q[(2 * f.n + row) * c.dim] = bad[i];
            fixture_soft_load(&f);
            fixture_soft_run(&f, context);
            for (int head = 0; head < 4; head++)
                cr_expect_eq(f.infos[head].status, head == 2 ? ATN_NONFINITE : ATN_OK,
                             "%g at token %ld: head %d is %s, alpha %g", bad[i], (long)row, head,
                             atn_status_name(f.infos[head].status), f.infos[head].alpha);
            fixture_soft_free(&f);
        }
    atn_context_free(context);
}

Test(soft, empty_shapes)
{
    static const atn_attention_shape shapes[] = {{0, 2, 6, 3, 4, 0},
                                                 {2, 0, 6, 3, 4, 0},
                                                 {1, 1, 0, 3, 4, 0},
                                                 {1, 1, 6, 3, 0, 0},
                                                 {0, 0, 0, 0, 0, 0}};
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const atn_attention_shape *s = &shapes[i];
            atn_attention_desc desc = atn_attention_defaults((atn_operator)op, ATN_F32);
            desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_WINDOW, .stride = 2};
            float q[64] = {0};
            staged on_device = staged_open(context);
            atn_tensor tq = atn_tensor_dense((void *)staged_bytes(&on_device, q, sizeof q), ATN_F32,
                                             s->batch, s->heads, s->tokens, s->dim);
            atn_tensor tv =
                atn_tensor_dense(NULL, ATN_F32, s->batch, s->heads, s->tokens, s->value_dim);
            atn_plan *plan;
            atn_attention_info info = {9, NULL, 9};
            cr_assert_eq(atn_attention_plan(context, &desc, s, &plan), ATN_OK, "shape %zu: %s", i,
                         atn_last_error(context));
            cr_expect_eq(atn_attention_forward(plan, &(atn_attention_inputs){.q = &tq, .v = &tv},
                                               &tv, &info),
                         ATN_OK);
            cr_expect_eq(info.failures, 0);
            atn_plan_free(plan);
            staged_close(&on_device);
        }
    atn_context_free(context);
}

/* A smooth field in f32: the inverse is out of reach, its factor is not. */
Test(soft, pivoted_cholesky_is_100_times_better_on_smooth_tokens)
{
    enum { SIDE = 56, STRIDE = 4 };
    atn_context *context = fixture_context(2, NULL);
    double errors[2];
    static const int methods[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_PIVOTED_CHOLESKY};
    for (int k = 0; k < 2; k++) {
        fixture_soft_case c = usual(ATN_SOFT, ATN_F32);
        c.height = c.width = SIDE;
        c.stride = STRIDE;
        c.sampling = ATN_SAMPLING_POOL;
        c.dim = 32, c.value_dim = 4;
        c.inverse = inverse_for(methods[k]);
        fixture_soft f = fixture_soft_make(&c);
        data_smooth(12, SIDE, SIDE, c.dim, f.q);
        data_round(ATN_F32, f.n * c.dim, f.q);
        fixture_soft_load(&f);
        fixture_soft_case exact = c;
        exact.inverse = inverse_for(ATN_INVERSE_EIG);
        f.c = exact; /* both are compared with the pseudo-inverse */
        fixture_soft_expect(&f);
        cr_expect_eq(f.m, 196);
        cr_expect(fixture_soft_run(&f, context) >= 0);
        errors[k] = guarded_compare(&f.out, 0, 0, f.want).relative_frobenius;
        cr_expect(ref_discriminates(f.n, c.value_dim, f.want, 0.01));
        fixture_soft_free(&f);
    }
    cr_expect(errors[1] <= errors[0] / 100, "nr-paper %.3g, pivoted-cholesky %.3g", errors[0],
              errors[1]);
    cr_expect(errors[1] < 1e-3, "pivoted-cholesky %.3g", errors[1]);
    fprintf(stderr, "smooth, m = 196, f32: nr-paper is off by %.3g, pivoted-cholesky by %.3g\n",
            errors[0], errors[1]);
    atn_context_free(context);
}

/* Exact duplicates among the landmarks: A is singular, the answer that without them. */
Test(soft, duplicate_landmarks)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
            for (int method = ATN_INVERSE_EIG; method < ATN_INVERSE_COUNT; method += 2) {
                fixture_soft_case c = usual((atn_operator)op, (atn_dtype)dtype);
                c.inverse = inverse_for(method);
                fixture_soft f = fixture_soft_make(&c);
                double ratio;
                for (int copy = 1; copy < 4; copy++) /* tokens 3, 6, 9 = token 1 */
                    memcpy(f.q + 3 * copy * c.dim, f.q + c.dim, (size_t)c.dim * sizeof *f.q);
                fixture_soft_load(&f);
                fixture_soft_expect(&f);
                f.kappa = 100; /* of what is left; A's own is infinite */
                atn_status status = fixture_soft_run(&f, context);
                ref_verdict verdict = fixture_soft_judge(&f, &ratio);
                cr_expect(status == ATN_OK && verdict == REF_PASS && f.infos[0].rank == f.m - 3,
                          "%s: %s rank %ld ratio=%.3g", describe(&c), atn_status_name(status),
                          (long)f.infos[0].rank, ratio);
                fixture_soft_free(&f);
            }
    atn_context_free(context);
}

/* Without a start, X = 0: the output is 0, or the residual alone, and the status says so. */
Test(soft, adaptive_without_a_start)
{
    atn_context *context = fixture_context(2, NULL);
    fixture_soft_case c = usual(ATN_SOFT, ATN_F64);
    c.scale = ATN_SCALE_VALUE, c.scale_value = 0.02;
    c.inverse = inverse_for(ATN_INVERSE_NR_ADAPTIVE);
    c.window = 3;
    fixture_soft f = fixture_soft_make(&c);
    double ratio;
    ref_depthwise(c.height, c.width, c.value_dim, c.window, f.filter, f.v, f.want);
    f.kappa = 1;
    cr_expect_eq(fixture_soft_run(&f, context), ATN_NOT_CONVERGED);
    cr_expect_eq(f.infos[0].stop, ATN_STOP_NO_ALPHA);
    cr_expect_eq(fixture_soft_judge(&f, &ratio), REF_PASS, "ratio=%.3g", ratio);
    c.scale_value = 20; /* far apart: A = I, n = 0 */
    fixture_soft g = fixture_soft_make(&c);
    cr_expect_eq(fixture_soft_run(&g, context), ATN_NOT_CONVERGED);
    cr_expect(g.infos[0].stop == ATN_STOP_ITERATIONS && g.infos[0].halvings == 0);
    fixture_soft_free(&g);
    fixture_soft_free(&f);
    atn_context_free(context);
}

/* One token, whatever row stride its view names. */
Test(soft, one_token_with_an_odd_row_stride)
{
    static const int64_t strides[] = {3, 7, (int64_t)1 << 33, 0, -5};
    atn_context *context = fixture_context(1, NULL);
    fixture_soft_case c = usual(ATN_SOFT, ATN_F64);
    c.layout = GUARDED_DENSE;
    c.height = c.width = c.count = 1, c.dim = c.value_dim = 3;
    fixture_soft f = fixture_soft_make(&c);
    guarded *const tensors[] = {&f.q_view, &f.v_view, &f.out};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        for (int which = 0; which < 3; which++) {
            tensors[which]->view.row_stride = strides[i];
            atn_status status = fixture_soft_run(&f, context);
            tensors[which]->view.row_stride = 3;
            bool right = true; /* S^ = 1 */
            for (int j = 0; j < 3; j++)
                right = right && guarded_at(&f.out, 0, 0, 0, j) == f.v[j];
            cr_expect(status == ATN_OK ? right
                                       : status == ATN_ERR_STRIDE && guarded_unwritten(&f.out) == 3,
                      "row_stride %ld of tensor %d: %s", (long)strides[i], which,
                      atn_status_name(status));
        }
    fixture_soft_free(&f);
    atn_context_free(context);
}

/* info: m, the heads' inverses in order, the failures; a plan runs again and again. */
Test(soft, info_and_repeated_runs)
{
    atn_context *context = fixture_context(2, NULL);
    fixture_soft_case c = usual(ATN_SOFT, ATN_F32);
    c.batch = 2, c.heads = 2;
    c.inverse = inverse_for(ATN_INVERSE_NR_PAPER);
    fixture_soft f = fixture_soft_make(&c);
    for (int64_t i = 0; i < f.n * c.dim; i++)
        f.q[2 * f.n * c.dim + i] = 1; /* head 2: A = ones, lost by nr-paper */
    fixture_soft_load(&f);
    atn_plan *plan;
    atn_attention_info info = {.inverses = f.infos};
    guarded again = guarded_make(c.dtype, c.layout, c.batch, c.heads, f.n, c.value_dim);
    staged s = staged_open(context);
    atn_attention_desc desc = staged_desc(&s, &f.desc, &f.shape);
    cr_assert_eq(atn_attention_plan(context, &desc, &f.shape, &plan), ATN_OK);
    cr_expect_eq(fixture_soft_forward(&f, context, plan, &f.out, &info), ATN_NOT_CONVERGED);
    cr_expect(info.landmarks == 12 && info.failures == 1, "m=%ld, %ld failures",
              (long)info.landmarks, (long)info.failures);
    for (int head = 0; head < 4; head++)
        cr_expect_eq(f.infos[head].status, head == 2 ? ATN_NOT_CONVERGED : ATN_OK, "head %d", head);
    atn_status status = fixture_soft_forward(&f, context, plan, &again, NULL);
    cr_expect_eq(status, fixture_device() == ATN_CUDA ? ATN_OK : ATN_NOT_CONVERGED);
    cr_expect_eq(atn_attention_outcome(plan, NULL), ATN_NOT_CONVERGED);
    cr_expect(guarded_same_bits(&f.out, &again) && guarded_unwritten(&again) == 0);
    atn_plan_free(plan);
    staged_close(&s);
    guarded_free(&again);
    fixture_soft_free(&f);
    atn_context_free(context);
}
